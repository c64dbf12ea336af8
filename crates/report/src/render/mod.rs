//! The model as HTML.
//!
//! | file | what is in it |
//! |---|---|
//! | `assets` | the script, the styles, the library of charts |
//! | `figure` | a figure with its words and its table |
//! | `table` | tables, and charts as tables |
//! | `ranges` | points, spans and bands on a scale, as SVG |
//!
//! It calls `model`, `documentation`, `rounded` and `names`; the crate's root calls it.

mod assets;
mod figure;
mod ranges;
mod table;

use crate::documentation;
use crate::lead;
use crate::model::Page;
use crate::names::{escaped, script_safe};
use crate::rounded::round_all;
use crate::words;
use refault::document::Source;
use std::fmt::Write as _;

/// Origin of a page.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The command, as it was typed.
    pub command: String,
    /// The version of refault.
    pub version: String,
}

/// Tag before the results in a page.
const CARRIED: &str = "<script type=\"application/json\" id=\"refault-source\">";

/// The whole page.
pub(crate) fn html(title: &str, pages: &[Page], sources: &[Source], made: &Made) -> String {
    let title = escaped(title);
    let mut charts = Vec::new();
    let body: String = pages.iter().map(|page| section(page, &mut charts)).collect();
    let charts = script_safe(&serde_json::to_string(&charts).unwrap_or_default());
    let mut out = String::with_capacity(256 << 10);
    // Should anything slip through, the page may load nothing.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"generator\" content=\"refault {}\">\n<title>refault: {title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{}\n{}</style>\n</head>\n<body>\n",
        escaped(&made.version),
        assets::UPLOT_CSS,
        assets::CSS
    );
    let _ = write!(
        out,
        "<header>\n<p class=\"brand\">refault report</p>\n<h1>{title}</h1>\n{}{}</header>\n",
        lead::html(sources),
        facts(sources)
    );
    let named = pages.iter().flat_map(|page| &page.figures).filter_map(|figure| figure.doc).collect();
    let passages = documentation::section(&named, &made.version);
    let word =
        if words::has_both(&charts) || out.contains("w-hits\"") || body.contains("w-hits\"") { SWITCH } else { "" };
    let _ =
        write!(out, "{}{word}<main>\n{body}{passages}</main>\n{}", contents(pages), footer(made, !sources.is_empty()));
    let _ = writeln!(out, "<script type=\"application/json\" id=\"refault-charts\">{charts}</script>");
    let _ = writeln!(out, "{CARRIED}{}</script>", script_safe(&carried_json(sources)));
    let _ = writeln!(out, "<!--\n{}\n-->", assets::UPLOT_LICENCE.trim());
    let _ = write!(out, "<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n", assets::UPLOT_JS, assets::JS);
    out
}

/// The results as they are carried, rounded.
pub(crate) fn carried_json(sources: &[Source]) -> String {
    let mut value = serde_json::to_value(sources).unwrap_or_default();
    round_all(&mut value);
    value.to_string()
}

/// The results of a page, as JSON.
pub(crate) fn carried(html: &str) -> Option<&str> {
    let start = html.find(CARRIED)? + CARRIED.len();
    let end = html[start..].find("</script>")?;
    Some(&html[start..start + end])
}

/// Switch between the two words.
const SWITCH: &str = "<p class=\"switch\" hidden><button type=\"button\" id=\"word\">Show \
                      <span class=\"w-misses\">hits in the place of misses</span>\
                      <span class=\"w-hits\">misses in the place of hits</span></button></p>\n";

/// Facts and notes on each input, folded away.
fn facts(sources: &[Source]) -> String {
    let mut out = String::from("<details class=\"about\"><summary>About the input, and notes</summary>\n");
    for source in sources {
        let _ = write!(out, "<p class=\"facts\">");
        if sources.len() > 1 {
            let _ = write!(out, "<b>{}</b>: ", escaped(&source.name));
        }
        let _ = writeln!(out, "{}</p>", escaped(&source.document.facts()));
        for note in source.document.notes() {
            let _ = writeln!(out, "<p class=\"facts\">note: {}</p>", escaped(&note));
        }
    }
    out + "</details>\n"
}

/// The questions, as links.
fn contents(pages: &[Page]) -> String {
    let mut out = String::from("<nav aria-label=\"Questions\"><ul>\n");
    let mut input = None;
    for page in pages {
        if page.input != input {
            input.clone_from(&page.input);
            let name = input.as_deref().unwrap_or_default();
            let _ = writeln!(out, "<li class=\"input\">{}</li>", escaped(name));
        }
        let _ = writeln!(out, "<li><a href=\"#{}\">{}</a></li>", escaped(&page.id), escaped(&page.question));
    }
    out + "</ul></nav>\n"
}

fn section(page: &Page, charts: &mut Vec<serde_json::Value>) -> String {
    let id = escaped(&page.id);
    let of = page.input.as_ref().map_or(String::new(), |name| format!("<p class=\"of\">{}</p>", escaped(name)));
    let mut out = format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n{of}<h2 id=\"{id}-h\">{}</h2>\n<p class=\"answer\">{}</p>\n",
        escaped(&page.question),
        words::html(&page.answer)
    );
    for (n, figure) in page.figures.iter().enumerate() {
        out += &figure::figure(figure, &format!("{}-{}", page.id, n + 1), charts);
    }
    out + "</section>\n"
}

fn footer(made: &Made, carries: bool) -> String {
    let carried = " The page carries the numbers that it was made of: <code>refault report THIS-FILE</code> reads them \
                   back, beside others if you like.";
    format!(
        "<footer>\n<p>Made by <code>{}</code> with refault {}.{}</p>\n\
         <p>Colours are those of Okabe and Ito, which people with any colour vision tell apart; heat maps run from dark \
         blue to yellow (cividis). Charts are drawn by uPlot {} (MIT licence).</p>\n\
         <p>The page links to nothing outside of itself, so that it is whole without a network.</p>\n</footer>\n",
        escaped(&refault::names::shown(&made.command)),
        escaped(&made.version),
        if carries { carried } else { "" },
        assets::UPLOT_VERSION
    )
}
