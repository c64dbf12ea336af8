//! Results of refault as one page of HTML that needs nothing else: no network, no other file.
//!
//! Plain data go in, text comes out: no I/O happens here, so that any program can use it.
//!
//! A recording becomes a page by three calls:
//!
//! ```
//! use refault::document::{Document, Source};
//! use refault::report::{ReportRequest, of_trace};
//!
//! # fn main() -> Result<(), refault::Failure> {
//! # let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/orders.parquet");
//! let open = || Ok(refault_trace::open(data.as_ref(), &refault_trace::OpenOptions::default())?);
//! let request = ReportRequest { limit: Some("16M".parse()?), ..ReportRequest::default() };
//! let document = of_trace(&request, "orders", &open)?;
//! assert!(document.verify.is_some(), "the recorded kernel beside the lab");
//! let sources = [Source::new("orders", Document::Trace(Box::new(document)))];
//! let made = refault_report::Made { command: "example".into(), version: "1".into() };
//! assert!(refault_report::html(&sources, &made).starts_with("<!"));
//! # Ok(())
//! # }
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | `pages` | from a result to pages: a question, a sentence that answers it, figures |
//! | `watch` | the page of live groups |
//! | `compare` | what differs between results |
//! | `model` | what a page shows, as data: charts, heat maps, ranges, tables |
//! | `documentation` | what figures name of the documentation, as part of the page |
//! | `render` | the model as HTML, with the script, the styles and the charts library |
//! | `rounded` | numbers rounded as they are embedded |
//! | `lead` | the line that a page begins with, and what it rests on |
//! | `words` | both words for one share: misses and hits |
//! | `names` | names and JSON as parts of a page |
#![deny(missing_docs)]

mod compare;
mod documentation;
mod lead;
mod model;
mod names;
mod pages;
mod render;
mod rounded;
mod watch;
mod words;

pub use render::Made;
pub use watch::{WatchedGroup, WatchedMoment, watch_html};

use refault::document::Source;

/// The page of one result, or of several beside each other.
pub fn html(sources: &[Source], made: &Made) -> String {
    let sources = &with_own_names(&as_carried(sources));
    let mut pages = compare::pages(sources);
    let many = sources.len() > 1;
    for (n, source) in sources.iter().enumerate() {
        let prefix = if many { format!("i{}-", n + 1) } else { String::new() };
        let mut own = pages::of(&source.document);
        for page in &mut own {
            page.id = format!("{prefix}{}", page.id);
            page.input = many.then(|| source.name.clone());
        }
        pages.extend(own);
    }
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    render::html(&names.join(" beside "), &pages, sources, made)
}

/// Results with their numbers as the page carries them: read back, it shows the same digits.
fn as_carried(sources: &[Source]) -> Vec<Source> {
    serde_json::from_str(&render::carried_json(sources)).unwrap_or_else(|_| sources.to_vec())
}

/// Results of the same name get a number.
fn with_own_names(sources: &[Source]) -> Vec<Source> {
    let is_twice = |name: &str| sources.iter().filter(|other| other.name == name).count() > 1;
    let named = |(n, source): (usize, &Source)| match is_twice(&source.name) {
        true => Source { name: format!("{} ({})", source.name, n + 1), ..source.clone() },
        false => source.clone(),
    };
    sources.iter().enumerate().map(named).collect()
}

/// Results embedded in a page; `None` if the page carries none.
pub fn read_back(html: &str) -> Option<Result<Vec<Source>, String>> {
    let json = render::carried(html)?;
    if !html.trim_end().ends_with("</html>") {
        return Some(Err("the page does not end as it was written: it was cut, or something was added".to_owned()));
    }
    let read: Result<Vec<Source>, _> = serde_json::from_str(json);
    Some(match read {
        Ok(sources) if sources.is_empty() => Err("the page is of refault watch, which carries no results".to_owned()),
        read => read.map_err(|e| format!("the results that the page carries are broken: {e}")),
    })
}
