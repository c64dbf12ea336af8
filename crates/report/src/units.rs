//! Numbers as people read them, and rounded as they are embedded.

use serde::{Serialize, Serializer};

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

    /// The same with its sign: a difference. Of percents these are points.
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

/// Up to four digits that count; whole numbers as they are, with their thousands apart.
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

/// Six digits that count, and of whole numbers and of those from a million on all before the point:
/// more is never shown, and would only take room.
pub fn rounded(n: f64) -> f64 {
    if n == 0.0 || !n.is_finite() {
        return 0.0;
    }
    if n.fract() == 0.0 || n.abs() >= 1e6 {
        return n.round();
    }
    let digits = 5 - n.abs().log10().floor() as i32;
    if digits > 300 {
        return 0.0;
    }
    // A power of ten is exact where a small one is not.
    let ten = 10f64.powi(digits);
    (n * ten).round() / ten
}

/// A number as it is embedded: rounded, and whole where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded(pub(crate) f64);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let n = rounded(self.0);
        if n.fract() == 0.0 && n.abs() < 9e15 { to.serialize_i64(n as i64) } else { to.serialize_f64(n) }
    }
}

/// Rounds every number of a JSON value that is not whole.
pub(crate) fn round_all(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Number(n) if n.is_f64() => {
            let n = n.as_f64().unwrap_or(0.0);
            *value = serde_json::to_value(Rounded(n)).unwrap_or(Value::Null);
        }
        Value::Array(all) => all.iter_mut().for_each(round_all),
        Value::Object(all) => all.values_mut().for_each(round_all),
        _ => {}
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

    #[test]
    fn what_is_embedded_has_six_digits() {
        for (n, want) in [
            (0.123_456_789, "0.123457"),
            (5.0, "5"),
            (1_234_567.8, "1234568"),
            (745_253_993.0, "745253993"),
            (-2.5, "-2.5"),
            (1e-320, "0"),
        ] {
            assert_eq!(serde_json::to_string(&Rounded(n)).unwrap(), want);
        }
    }
}
