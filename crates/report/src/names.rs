//! Names come from files and may hold anything: signs that steer, a page of text.

/// Characters kept of the begin of a long name.
const HEAD: usize = 160;
/// Characters kept of its end.
const TAIL: usize = 60;

/// A name as it is shown: one line, no sign that steers, not longer than 221 characters.
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

/// A sentence as it is shown: one line, no sign that steers, not longer than a paragraph.
pub fn sentence(text: &str) -> String {
    let plain = |c: char| if turns_text(c) { ' ' } else { c };
    match text.chars().count() > SENTENCE {
        true => text.chars().take(SENTENCE - 1).chain(['…']).map(plain).collect(),
        false => text.chars().map(plain).collect(),
    }
}

/// Control characters, and those that turn the direction of what follows.
fn turns_text(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text as HTML, also inside of an attribute.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand in a `<script>`: no sign ends it.
pub fn script_safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
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
        assert_eq!(escaped("</script>\"'&"), "&lt;/script&gt;&quot;&#39;&amp;");
        let json = serde_json::to_string("</script><!--").unwrap();
        let safe = script_safe(&json);
        assert!(!safe.contains('<'), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--");
    }
}
