//! Sizes of memory as people write them: `512M`, `1.5G`, `4096p`, `25%`.

use std::fmt;
use std::str::FromStr;

/// A size as it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    text: String,
    amount: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Bytes(u64),
    Pages(u64),
    /// Percent of the footprint of the trace.
    Percent(f64),
    /// No limit.
    Max,
}

impl Size {
    /// Size in percent of the footprint.
    pub fn percent(percent: f64) -> Size {
        Size { text: format!("{percent}%"), amount: Amount::Percent(percent) }
    }

    /// Reads a size; `whole` is what percent are of.
    pub fn parse(text: &str, whole: &str) -> Result<Size, String> {
        let wrong = || format!("{text:?} is not a size; write 512M, 1.5G, 4096p (pages) or 25% (of {whole})");
        Size::read(text).ok_or_else(wrong)
    }

    /// Reads a size where there is nothing that it could be a share of, and no size without a
    /// limit.
    pub fn absolute(text: &str) -> Result<Size, String> {
        let found = Size::read(text).filter(|size| matches!(size.amount, Amount::Bytes(_) | Amount::Pages(_)));
        found.ok_or_else(|| format!("{text:?} is not a size; write 512M, 1.5G or 4096p (pages)"))
    }

    fn read(text: &str) -> Option<Size> {
        let text = text.trim();
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let amount = match unit {
            "max" if number.is_empty() => Some(Amount::Max),
            "p" | "P" => scaled(number, 1).map(Amount::Pages),
            "%" => number.parse().ok().filter(|p: &f64| p.is_finite()).map(Amount::Percent),
            _ => byte_unit(unit).and_then(|shift| scaled(number, 1 << shift)).map(Amount::Bytes),
        };
        Some(Size { text: text.to_owned(), amount: amount? })
    }

    /// Whether it is no limit at all.
    pub fn is_max(&self) -> bool {
        self.amount == Amount::Max
    }

    /// Whether it is a share of a footprint.
    pub fn is_share(&self) -> bool {
        matches!(self.amount, Amount::Percent(_))
    }

    /// Whether the size is a share of more than the whole.
    pub fn is_beyond_all(&self) -> bool {
        matches!(self.amount, Amount::Percent(percent) if percent > 100.0)
    }

    /// The size in pages. A share of the footprint is rounded to the nearest page.
    pub fn pages(&self, page_size: u32, footprint_pages: u64) -> u64 {
        match self.amount {
            Amount::Bytes(bytes) => bytes / u64::from(page_size),
            Amount::Pages(pages) => pages,
            Amount::Max => u64::MAX,
            Amount::Percent(percent) => (footprint_pages as f64 * percent / 100.0).round() as u64,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        Size::parse(text, "the footprint")
    }
}

/// log2 of a unit of bytes.
fn byte_unit(unit: &str) -> Option<u32> {
    let shift = match unit.trim_end_matches("iB") {
        "" if unit.is_empty() => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    Some(shift)
}

/// A decimal number times a unit; whole numbers exactly.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    if !number.contains('.') {
        return number.parse::<u64>().ok()?.checked_mul(unit);
    }
    let value = number.parse::<f64>().ok()? * unit as f64;
    // Half a page is a slip, half a GiB is not.
    (unit > 1 && value < u64::MAX as f64).then_some(value as u64)
}

/// Remark on a size, in pages, that holds all that a trace touches; `what` is the flag that says
/// it.
pub(crate) fn beyond_footprint(what: &str, pages: u64, footprint: u64, page_size: u64) -> Option<String> {
    (pages > footprint).then(|| {
        let all = human(footprint * page_size);
        format!("{what}: is above the footprint, {all}, where everything fits and next to nothing changes")
    })
}

/// Bytes as people read them: `730.0M`.
pub fn human(bytes: u64) -> String {
    with_digits(bytes, 1)
}

fn with_digits(bytes: u64, digits: usize) -> String {
    let mut value = bytes as f64;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        // A value that rounds to 1024 is 1 of the next unit.
        if value < 1024.0 - 0.5 / 10f64.powi(digits as i32) {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit.is_empty() { format!("{bytes}") } else { format!("{value:.digits$}{unit}") }
}

/// Sizes that stand beside one another, with as many digits as tell them apart.
#[derive(Clone, Copy, Debug)]
pub struct DistinctSizes {
    digits: usize,
}

impl DistinctSizes {
    /// For these sizes, in bytes.
    pub fn of(bytes: &[u64]) -> DistinctSizes {
        let mut bytes = bytes.to_vec();
        bytes.sort_unstable();
        bytes.dedup();
        let tells = |digits: &usize| {
            let shown: Vec<_> = bytes.iter().map(|&size| with_digits(size, *digits)).collect();
            shown.windows(2).all(|pair| pair[0] != pair[1])
        };
        // Six digits of a T are a M: beyond that it is bytes that differ.
        DistinctSizes { digits: (1..=6).find(tells).unwrap_or(6) }
    }

    /// A size as people read it.
    pub fn human(self, bytes: u64) -> String {
        with_digits(bytes, self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str) -> u64 {
        text.parse::<Size>().expect(text).pages(4096, 1011)
    }

    #[test]
    fn regression_sizes_that_differ_are_shown_apart() {
        let mib = [1100u64, 1124, 1148].map(|m| m << 20);
        let apart = DistinctSizes::of(&mib);
        assert_eq!(mib.map(|size| apart.human(size)), ["1.07G", "1.10G", "1.12G"]);
        assert_eq!(DistinctSizes::of(&[8 << 20, 9 << 20, 8 << 20]).human(8 << 20), "8.0M");
        assert_eq!(DistinctSizes::of(&[]).human(5), "5");
    }

    #[test]
    fn every_unit() {
        for (text, want) in [
            ("4096p", 4096),
            ("8192", 2),
            ("512M", 131_072),
            ("512MiB", 131_072),
            ("1.5G", 393_216),
            ("1T", 1 << 28),
            ("64k", 16),
            ("10%", 101),
            ("100%", 1011),
            ("0.01%", 0),
            ("0", 0),
            ("0%", 0),
            ("4095", 0),
            ("max", u64::MAX),
        ] {
            assert_eq!(pages(text), want, "{text}");
        }
    }

    #[test]
    fn others_are_refused() {
        for text in
            ["", "x", "M", "-1", "1.5p", "1..5M", "5%%", "1e9", "1 M", "99999999999T", "nan%", "iB", "5iB", "5max"]
        {
            let error = text.parse::<Size>().expect_err(text);
            assert!(error.contains("is not a size"), "{error}");
        }
    }

    #[test]
    fn a_size_that_is_no_share_is_not_advised_to_be_one() {
        assert_eq!(Size::absolute("512M").map(|size| size.pages(4096, 0)), Ok(131_072));
        for text in ["25%", "max", "x", ""] {
            let error = Size::absolute(text).expect_err(text);
            assert!(error.contains("4096p") && !error.contains("25% ("), "{error}");
        }
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(human(1000), "1000");
        assert_eq!(human(186_880 * 4096), "730.0M");
        assert_eq!(human((1 << 30) - 1), "1.0G");
    }
}
