//! Numbers with units: sizes, times, rates. Decimals are exact.

const PAGE_BYTES: u128 = 4096;
/// The longest time: ten years.
pub(super) const MAX_TIME_NS: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// Splits `1.5GB` into its number, in units of 10^-9, and the rest.
fn decimal(text: &str) -> Option<(u128, &str)> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole_len = digits(text);
    let (whole, rest) = text.split_at(whole_len);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let bad_point = rest.len() + whole_len < text.len() && fraction.is_empty();
    if whole.is_empty() || whole.len() > 18 || fraction.len() > 9 || bad_point {
        return None;
    }
    let nano: u128 = format!("{whole}{fraction:0<9}").parse().ok()?;
    Some((nano, rest.trim_start_matches(' ')))
}

fn scaled(text: &str, unit: impl Fn(&str) -> Option<u128>) -> Option<u128> {
    let (nano, rest) = decimal(text)?;
    Some(nano.checked_mul(unit(rest)?)? / 1_000_000_000)
}

fn binary(unit: &str) -> Option<u128> {
    match unit {
        "K" | "KiB" => Some(1 << 10),
        "M" | "MiB" => Some(1 << 20),
        "G" | "GiB" => Some(1 << 30),
        "T" | "TiB" => Some(1 << 40),
        _ => None,
    }
}

/// A size in pages: `512M`, `1.5G`, `4096p`, `0`. Parts of a page are rounded up.
pub(super) fn pages(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let bytes = scaled(text, |unit| if unit == "p" { Some(PAGE_BYTES) } else { binary(unit) })?;
    u64::try_from(bytes.div_ceil(PAGE_BYTES)).ok()
}

/// A time in nanoseconds: `50us`, `1.5s`, `15m`, `0`.
pub(super) fn time_ns(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let ns = scaled(text, |unit| match unit {
        "ns" => Some(1),
        "us" => Some(1000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" | "min" => Some(60 * 1_000_000_000),
        "h" => Some(3600 * 1_000_000_000),
        _ => None,
    })?;
    u64::try_from(ns).ok()
}

/// Bytes a second: `68.6MB/s` (decimal), `64MiB/s` (binary).
pub(super) fn bytes_per_s(text: &str) -> Option<u64> {
    let text = text.strip_suffix("/s")?;
    let bytes = scaled(text, |unit| match unit {
        "B" => Some(1),
        "KB" | "kB" => Some(1000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        _ if unit.ends_with("iB") => binary(unit),
        _ => None,
    })?;
    u64::try_from(bytes).ok()
}

/// Operations a second: `1000/s`, `90/m`, `2/h`.
pub(super) fn per_s(text: &str) -> Option<f64> {
    let (nano, rest) = decimal(text)?;
    let seconds = match rest {
        "/s" => 1.0,
        "/m" | "/min" => 60.0,
        "/h" => 3600.0,
        _ => return None,
    };
    Some(nano as f64 / 1e9 / seconds)
}

/// A size as a person writes it.
pub(super) fn size_text(pages: u64) -> String {
    let unit = [(28, "T"), (18, "G"), (8, "M")]
        .into_iter()
        .find(|(bits, _)| pages >> bits > 0 && pages.is_multiple_of(1 << bits));
    match unit {
        Some((bits, unit)) => format!("{}{unit}", pages >> bits),
        None => format!("{pages}p"),
    }
}

/// A time as a person writes it.
pub(super) fn time_text(ns: u64) -> String {
    let units = [(3_600_000_000_000, "h"), (1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    match units.into_iter().find(|(one, _)| ns >= *one && ns.is_multiple_of(*one)) {
        Some((one, unit)) => format!("{}{unit}", ns / one),
        None => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good =
            [("16G", 4 << 20), ("1.5G", 393_216), ("4096p", 4096), ("0", 0), ("4KiB", 1), ("5K", 2), ("1T", 1 << 28)];
        for (text, want) in good {
            assert_eq!(pages(text), Some(want), "{text}");
        }
        for text in
            ["16Q", "", "G", "16", "-1G", "1.G", ".5G", "1e3K", "16GB", "1..5G", "9999999999999999999K", "+1G", "1 G x"]
        {
            assert_eq!(pages(text), None, "{text}");
        }
        assert_eq!(pages("999999999999999999T"), None);
        assert_eq!(pages("0.0000000001K"), None, "too many digits");
    }

    #[test]
    fn times() {
        let good =
            [("50us", 50_000), ("1.5s", 1_500_000_000), ("15m", 900_000_000_000), ("0", 0), ("1h", 3_600_000_000_000)];
        for (text, want) in good {
            assert_eq!(time_ns(text), Some(want), "{text}");
        }
        for text in ["5", "s", "5 parsecs", "1.s", "5S"] {
            assert_eq!(time_ns(text), None, "{text}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(bytes_per_s("68.6MB/s"), Some(68_600_000));
        assert_eq!(bytes_per_s("70000KB/s"), Some(70_000_000));
        assert_eq!(bytes_per_s("64MiB/s"), Some(64 << 20));
        for text in ["68MB", "68M/s", "MB/s", "68/s", "1p/s"] {
            assert_eq!(bytes_per_s(text), None, "{text}");
        }
        assert_eq!(per_s("1000/s"), Some(1000.0));
        assert_eq!(per_s("90/m"), Some(1.5));
        assert_eq!(per_s("0.5/s"), Some(0.5));
        for text in ["1000", "/s", "x/s", "1/d"] {
            assert_eq!(per_s(text), None, "{text}");
        }
    }
}
