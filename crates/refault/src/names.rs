//! Names as results have them: they come from files and may hold anything, signs that steer, a page
//! of text.

/// Characters kept from the start of a long name.
const HEAD: usize = 160;
/// Characters kept from the end of a long name.
const TAIL: usize = 60;

/// A name as it is shown: one line, no sign that turns_text, not longer than 221 characters.
pub fn shown(name: &str) -> String {
    let plain = |c: char| if turns_text(c) { ' ' } else { c };
    let long = name.chars().count();
    if long <= HEAD + TAIL + 1 {
        return name.chars().map(plain).collect();
    }
    let (head, tail) = (name.chars().take(HEAD), name.chars().skip(long - TAIL));
    head.chain(['…']).chain(tail).map(plain).collect()
}

/// Characters kept of a sentence: it has names in it.
const SENTENCE: usize = 1000;

/// A sentence as it is shown: one line, no sign that turns_text, not longer than a paragraph.
pub fn sentence(text: &str) -> String {
    let plain = |c: char| if turns_text(c) { ' ' } else { c };
    match text.chars().count() > SENTENCE {
        true => text.chars().take(SENTENCE - 1).chain(['…']).map(plain).collect(),
        false => text.chars().map(plain).collect(),
    }
}

/// Control characters, and characters that change the direction of the text after them.
fn turns_text(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(shown("a\nb\u{202e}c"), "a b c");
        let long = shown(&"x".repeat(4000));
        assert_eq!(long.chars().count(), HEAD + TAIL + 1);
        assert_eq!(sentence(&"y\n".repeat(4000)).chars().count(), SENTENCE);
    }
}
