//! Passages of the documentation that figures name, as part of the page: a page that was attached
//! to a ticket has no other file beside it, and the passage is of the version that made it.

use crate::names::escaped;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The pages that figures name, from `docs`, or from the root of the repository.
const PAGES: [(&str, &str); 13] = [
    ("crates/run/docs/run.md", include_str!("../crates/run/docs/run.md")),
    ("mechanisms.md", include_str!("../docs/mechanisms.md")),
    ("how-to/memory-tiers.md", include_str!("../docs/how-to/memory-tiers.md")),
    ("how-to/read-a-report.md", include_str!("../docs/how-to/read-a-report.md")),
    ("how-to/read-the-swap-map.md", include_str!("../docs/how-to/read-the-swap-map.md")),
    ("reference/bench.md", include_str!("../docs/reference/bench.md")),
    ("reference/record.md", include_str!("../docs/reference/record.md")),
    ("reference/replay.md", include_str!("../docs/reference/replay.md")),
    ("reference/replay-scenario.md", include_str!("../docs/reference/replay-scenario.md")),
    ("reference/report.md", include_str!("../docs/reference/report.md")),
    ("reference/scenario-keys.md", include_str!("../docs/reference/scenario-keys.md")),
    ("reference/whatif.md", include_str!("../docs/reference/whatif.md")),
    ("reference/size.md", include_str!("../docs/reference/size.md")),
];

/// A link to the passage at `path`, a page and perhaps a heading of it.
pub(crate) fn link(path: &str) -> String {
    let id = id(path);
    match passage(path) {
        Some(passage) => format!(" <a class=\"doc\" href=\"#{id}\">More: {}</a>", escaped(&passage.title)),
        // A test holds all names against the documentation.
        None => String::new(),
    }
}

/// All passages that are linked, in the order of their names; nothing: no figure names one.
pub(crate) fn section(paths: &BTreeSet<&str>, version: &str) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let version = escaped(version);
    let mut out = format!(
        "<section id=\"documentation\" aria-labelledby=\"documentation-h\">\n<details>\n<summary><h2 \
         id=\"documentation-h\">From the documentation of refault {version}</h2></summary>\n"
    );
    for path in paths {
        let Some(passage) = passage(path) else { continue };
        let _ = writeln!(
            out,
            "<article id=\"{}\">\n<h3>{}</h3>\n<p class=\"of\">{}</p>\n{}</article>",
            id(path),
            escaped(&passage.title),
            escaped(&place(path)),
            html(passage.text, path, paths)
        );
    }
    out + "</details>\n</section>\n"
}

/// The page and heading from the root of the repository.
fn place(path: &str) -> String {
    if path.starts_with("crates/") { path.to_owned() } else { format!("docs/{path}") }
}

/// A part of a page of the documentation.
struct Passage {
    /// Its heading.
    title: String,
    /// Text below it, up to the next heading of its rank.
    text: &'static str,
}

/// The whole page, or what stands below the heading behind the `#`.
fn passage(path: &str) -> Option<Passage> {
    let (page, anchor) = path.split_once('#').map_or((path, None), |(page, anchor)| (page, Some(anchor)));
    let text = PAGES.iter().find(|(name, _)| *name == page)?.1;
    let mut headings = headings(text).into_iter();
    let found = headings.find(|heading| anchor.is_none_or(|anchor| heading.anchor() == anchor))?;
    let end = headings.find(|next| next.level <= found.level).map_or(text.len(), |next| next.start);
    Some(Passage { title: found.title, text: &text[found.end..end] })
}

struct Heading {
    level: HeadingLevel,
    title: String,
    start: usize,
    end: usize,
}

impl Heading {
    /// As GitHub makes them.
    fn anchor(&self) -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        self.title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    }
}

fn headings(text: &str) -> Vec<Heading> {
    let mut all: Vec<Heading> = Vec::new();
    let mut is_inside = false;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                is_inside = true;
                all.push(Heading { level, title: String::new(), start: range.start, end: range.end });
            }
            Event::End(TagEnd::Heading(_)) => is_inside = false,
            Event::Text(word) | Event::Code(word) if is_inside => {
                if let Some(heading) = all.last_mut() {
                    heading.title += &word;
                }
            }
            _ => {}
        }
    }
    all
}

/// Markdown as HTML: links lead to passages that are here, or are words alone; so are pictures.
fn html(text: &str, path: &str, paths: &BTreeSet<&str>) -> String {
    let mut open = Vec::new();
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id: of }) => {
            let to = resolved(path, &dest_url);
            let is_here = paths.contains(to.as_str());
            open.push(is_here);
            let dest_url = format!("#{}", id(&to)).into();
            is_here.then_some(Event::Start(Tag::Link { link_type, dest_url, title, id: of }))
        }
        Event::End(TagEnd::Link) => open.pop()?.then_some(Event::End(TagEnd::Link)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Heading { .. }) => {
            Some(Event::Start(Tag::Heading { level: HeadingLevel::H4, id: None, classes: vec![], attrs: vec![] }))
        }
        Event::End(TagEnd::Heading(_)) => Some(Event::End(TagEnd::Heading(HeadingLevel::H4))),
        Event::Html(raw) | Event::InlineHtml(raw) => Some(Event::Text(raw)),
        other => Some(other),
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    out.replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>").replace("</table>", "</table></div>")
}

/// Where a link of the page at `path` leads, named as the pages are.
fn resolved(path: &str, link: &str) -> String {
    let page = path.split('#').next().unwrap_or_default();
    if let Some(anchor) = link.strip_prefix('#') {
        return format!("{page}#{anchor}");
    }
    let page = place(page);
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    let place = parts.join("/");
    place.strip_prefix("docs/").map_or(place.clone(), str::to_owned)
}

fn id(path: &str) -> String {
    format!("doc-{}", path.replace(['/', '#'], "-").replace(".md", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_ends_where_the_next_of_its_rank_begins() {
        let passage = passage("reference/report.md#objects").unwrap();
        assert_eq!(passage.title, "Objects");
        assert!(passage.text.contains("An object is a file") && !passage.text.contains("#"), "{}", passage.text);
        assert!(super::passage(&format!("{}#no-such", PAGES[0].0)).is_none() && super::passage("no.md").is_none());
    }

    #[test]
    fn links_lead_to_what_is_here_and_are_words_otherwise() {
        let both = BTreeSet::from(["mechanisms.md#refault-distance", "reference/report.md#access"]);
        let html = section(&both, "1.2.3");
        assert!(html.contains("<article id=\"doc-mechanisms-refault-distance\">"), "{html}");
        assert!(html.contains("<a href=\"#doc-mechanisms-refault-distance\">Refault distance</a>"), "{html}");
        let one = section(&BTreeSet::from(["reference/report.md#access"]), "1.2.3");
        assert!(one.contains("Refault distance") && !one.contains("<a "), "{one}");
        assert!(link("reference/report.md#access").contains("href=\"#doc-reference-report-access\""));
        let run = "crates/run/docs/run.md";
        assert_eq!(resolved(run, "../../../docs/mechanisms.md#swap"), "mechanisms.md#swap");
        assert_eq!(resolved("reference/report.md", "../../crates/run/docs/run.md"), run);
        assert!(section(&BTreeSet::from([run]), "1.2.3").contains("<p class=\"of\">crates/run/docs/run.md</p>"));
    }
}
