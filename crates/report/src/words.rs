//! Both words for one share of the accesses: what misses, and what hits. A page shows one of them
//! everywhere, and has a switch for the other.
//!
//! A text carries both between signs of the private use area; `html` makes of them what the switch
//! shows and hides.

use crate::names::escaped;
use refault::units::Unit;

const OPEN: char = '\u{e000}';
const MIDDLE: char = '\u{e001}';
const CLOSE: char = '\u{e002}';

/// Text that reads otherwise where hits are shown.
pub(crate) fn either(misses: &str, hits: &str) -> String {
    format!("{OPEN}{misses}{MIDDLE}{hits}{CLOSE}")
}

/// The noun.
pub(crate) fn misses() -> String {
    either("misses", "hits")
}

/// The verb, of several.
pub(crate) fn miss() -> String {
    either("miss", "hit")
}

/// Percent of the accesses that miss, or that hit.
pub(crate) fn share(percent: f64) -> String {
    either(&Unit::Percent.text(percent), &Unit::Percent.text(100.0 - percent))
}

/// Difference of the misses in points, or of the hits.
pub(crate) fn change(points: f64) -> String {
    either(&Unit::Percent.difference(points), &Unit::Percent.difference(-points))
}

/// Whether a text or a page has two readings.
pub(crate) fn has_both(text: &str) -> bool {
    text.contains(OPEN)
}

/// The text as HTML: both readings, each in a span of its own.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    pieces(text, |piece| match piece {
        Piece::Plain(text) => out += &escaped(text),
        Piece::Both(misses, hits) => {
            out += &format!("<span class=\"w-misses\">{}</span>", escaped(misses));
            out += &format!("<span class=\"w-hits\">{}</span>", escaped(hits));
        }
    });
    out
}

/// The text with the word that a page begins with, for attributes.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    pieces(text, |piece| match piece {
        Piece::Plain(text) | Piece::Both(text, _) => out += text,
    });
    out
}

enum Piece<'a> {
    Plain(&'a str),
    Both(&'a str, &'a str),
}

/// Cuts a text. Signs that do not belong together are plain text: names may hold anything.
fn pieces(mut text: &str, mut each: impl FnMut(Piece<'_>)) {
    while let Some((before, rest)) = text.split_once(OPEN) {
        let Some((misses, after)) = rest.split_once(MIDDLE) else { break };
        let Some((hits, after)) = after.split_once(CLOSE) else { break };
        each(Piece::Plain(before));
        each(Piece::Both(misses, hits));
        text = after;
    }
    each(Piece::Plain(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_both_words_and_an_attribute_the_first() {
        let text = format!("a <b {} {}", share(12.5), miss());
        assert_eq!(plain(&text), "a <b 12.5 % miss");
        let spans = "<span class=\"w-misses\">12.5 %</span><span class=\"w-hits\">87.5 %</span>";
        assert!(html(&text).starts_with(&format!("a &lt;b {spans} ")), "{}", html(&text));
        assert_eq!(plain(&change(-0.5)), "−0.50 points");
        assert!(html(&change(-0.5)).contains("+0.50 points"));
    }

    #[test]
    fn signs_of_a_hostile_name_stay_text() {
        for name in ["\u{e000}x", "\u{e000}x\u{e001}y", "\u{e002}<\u{e001}"] {
            assert!(!html(name).contains("span"), "{name:?}");
        }
        assert!(!html("\u{e000}<script>\u{e001}<b>\u{e002}").contains("<script"));
    }
}
