//! Numbers as people read them.

use serde::Serialize;

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Parts of 100.
    Percent,
    /// Seconds.
    Seconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Anything else.
    Number,
}

impl Unit {
    /// A number with its unit.
    pub fn text(self, n: f64) -> String {
        match self {
            Unit::Bytes => bytes(n),
            Unit::Count | Unit::Number => number(n),
            Unit::Percent => format!("{} %", percent_digits(n)),
            Unit::Seconds => seconds(n),
            Unit::Nanoseconds => seconds(n / 1e9),
        }
    }

    /// The same with its sign: a difference. Percents differ by points.
    pub fn difference(self, n: f64) -> String {
        let sign = if n > 0.0 {
            "+"
        } else if n < 0.0 {
            "−"
        } else {
            "±"
        };
        match self {
            Unit::Percent => format!("{sign}{} points", percent_digits(n.abs())),
            _ => format!("{sign}{}", self.text(n.abs())),
        }
    }
}

fn percent_digits(n: f64) -> String {
    match n.abs() {
        size if size >= 10.0 || size == 0.0 => format!("{n:.1}"),
        size if size >= 0.01 => format!("{n:.2}"),
        size if size >= 0.001 => format!("{n:.3}"),
        _ => "below 0.001".into(),
    }
}

/// So many things, of which one is no plural.
pub fn counted(n: u64, thing: &str) -> String {
    let plural = match thing {
        _ if n == 1 => "",
        thing if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", number(n as f64))
}

/// Bytes in powers of 1024.
pub fn bytes(n: f64) -> String {
    let (mut n, mut unit) = (n, "B");
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if n.abs() < 1024.0 {
            break;
        }
        (n, unit) = (n / 1024.0, next);
    }
    match n.abs() {
        size if size >= 100.0 || n.fract() == 0.0 => format!("{n:.0} {unit}"),
        size if size >= 10.0 => format!("{n:.1} {unit}"),
        _ => format!("{n:.2} {unit}"),
    }
}

/// Formats with up to four significant digits; whole numbers in full, thousands separated.
pub fn number(n: f64) -> String {
    match n.abs() {
        _ if !n.is_finite() => "–".into(),
        size if n.fract() == 0.0 && size < 1e15 => grouped(n),
        size if size >= 1000.0 => grouped(n.round()),
        size if size >= 100.0 => format!("{n:.1}"),
        size if size >= 10.0 => format!("{n:.2}"),
        size if size >= 0.001 => format!("{n:.3}"),
        _ => format!("{n:.2e}"),
    }
}

fn grouped(n: f64) -> String {
    let digits = format!("{:.0}", n.abs());
    let mut text = String::from(if n < 0.0 { "−" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(n: f64) -> String {
    let (n, unit) = match n.abs() {
        0.0 => return "0 s".into(),
        size if size < 1e-6 => (n * 1e9, "ns"),
        size if size < 1e-3 => (n * 1e6, "µs"),
        size if size < 1.0 => (n * 1e3, "ms"),
        size if size < 600.0 => (n, "s"),
        size if size < 36_000.0 => (n / 60.0, "min"),
        _ => (n / 3600.0, "h"),
    };
    match n.abs() {
        size if size >= 100.0 || n.fract() == 0.0 => format!("{n:.0} {unit}"),
        size if size >= 10.0 => format!("{n:.1} {unit}"),
        _ => format!("{n:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(Unit::Bytes.text(18_108_416.0), "17.3 MiB");
        assert_eq!(Unit::Count.text(1_234_567.0), "1,234,567");
        assert_eq!(Unit::Percent.text(2.71999), "2.72 %");
        assert_eq!(Unit::Percent.text(0.0094), "0.009 %");
        assert_eq!(Unit::Percent.text(0.000_9), "below 0.001 %");
        assert_eq!(Unit::Percent.difference(-0.5), "−0.50 points");
        assert_eq!(Unit::Nanoseconds.text(1_500_000.0), "1.50 ms");
        assert_eq!(Unit::Seconds.text(0.0), "0 s");
    }

    #[test]
    fn one_of_a_thing_is_no_things() {
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!((counted(1200, "row"), counted(2, "access")), ("1,200 rows".into(), "2 accesses".into()));
    }
}
