//! Numbers and names as a person reads them.

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Number of times in words: once, 1,234 times.
pub fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        n => format!("{} times", grouped(n)),
    }
}

/// A number with its noun: 1 process, 1,234 processes.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Names come from files: no control character reaches the terminal, nor one that turns the
/// direction of the text.
pub fn printable(text: &str) -> String {
    let turns_text = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if turns_text(c) { '?' } else { c }).collect()
}

/// Widest line, in characters, that a terminal shows without a break of its own.
pub(crate) const WIDEST: usize = 120;

/// A line of words, in lines of at most 120 characters; all but the first begin with two blanks.
pub fn folded(line: &str) -> String {
    let words = line.trim_start();
    let mut text = line[..line.len() - words.len()].to_owned();
    let mut width = text.chars().count();
    for (n, word) in words.split(' ').enumerate() {
        let more = word.chars().count();
        if n > 0 && width + 1 + more > WIDEST {
            text.push_str("\n  ");
            width = 2;
        } else if n > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += more;
    }
    text
}

/// Four digits that count, and no more than it has.
pub fn number(n: f64) -> String {
    match n.abs() {
        _ if n.fract() == 0.0 && n.abs() < 1e15 => {
            format!("{}{}", if n < 0.0 { "-" } else { "" }, grouped(n.abs() as u64))
        }
        size if size >= 1000.0 => grouped(n.round() as u64),
        size if size >= 100.0 => format!("{n:.1}"),
        size if size >= 10.0 => format!("{n:.2}"),
        size if size >= 0.001 => format!("{n:.3}"),
        _ => format!("{n:.2e}"),
    }
}

/// Nanoseconds as 1.23 ms.
pub fn duration(ns: u64) -> String {
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let n = ns as f64 / unit;
    let digits = if n >= 100.0 {
        0
    } else if n >= 10.0 {
        1
    } else {
        2
    };
    format!("{n:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below() {
        assert_eq!(folded("  (a line that fits)"), "  (a line that fits)");
        let text = folded(&"word, ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() <= 120) && text.lines().count() == 4, "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")), "{text}");
        assert_eq!(folded(&"x".repeat(200)).lines().count(), 1);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn nouns_follow_their_number() {
        let processes = |n| counted(n, "process", "processes");
        assert_eq!([0, 1, 1234].map(processes), ["0 processes", "1 process", "1,234 processes"]);
    }

    #[test]
    fn numbers_have_four_digits() {
        for (n, want) in [
            (0.0, "0"),
            (758_174_720.0, "758,174,720"),
            (796.432, "796.4"),
            (3209.192, "3,209"),
            (0.5234, "0.523"),
            (12.5, "12.50"),
            (0.000_012, "1.20e-5"),
        ] {
            assert_eq!(number(n), want);
        }
    }

    #[test]
    fn durations_have_units() {
        let shown = [0, 999, 1_000, 12_345, 999_000_000, 1_500_000_000, 90_000_000_000].map(duration);
        assert_eq!(shown, ["0 ns", "999 ns", "1.00 us", "12.3 us", "999 ms", "1.50 s", "90.0 s"]);
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb"), "a?[2Jb");
    }
}
