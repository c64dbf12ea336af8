//! Rates of samples.

use std::fmt;
use std::str::FromStr;

/// Rate of a sample: one in this many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneIn(pub u64);

/// The most pages that one may stand for.
const MOST: u64 = 1_000_000;

impl FromStr for OneIn {
    type Err = String;

    fn from_str(text: &str) -> Result<OneIn, String> {
        let wrong = || format!("{text:?} is not a rate; write 1%, 0.1% or 1/33, down to 1/{MOST}");
        let n = match (text.strip_suffix('%'), text.strip_prefix("1/")) {
            (Some(percent), _) => {
                let percent: f64 = percent.parse().map_err(|_| wrong())?;
                let n = 100.0 / percent;
                if !(1.0..=MOST as f64).contains(&n) {
                    return Err(wrong());
                }
                if (n - n.round()).abs() > 1e-6 * n {
                    return Err(format!("{text:?} is not one page in a whole number; write 1/{}", n.round()));
                }
                n.round() as u64
            }
            (None, Some(n)) => n.parse().map_err(|_| wrong())?,
            (None, None) => return Err(wrong()),
        };
        if (1..=MOST).contains(&n) { Ok(OneIn(n)) } else { Err(wrong()) }
    }
}

impl fmt::Display for OneIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("all"),
            n => write!(f, "1 in {n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, n) in [("1%", 100), ("0.1%", 1000), ("100%", 1), ("1/33", 33), ("12.5%", 8), ("0.0001%", MOST)] {
            assert_eq!(text.parse(), Ok(OneIn(n)), "{text}");
        }
        for text in ["1", "0%", "-1%", "200%", "nan%", "1/0", "1/x", "0.00001%", "1/1000001", ""] {
            assert!(text.parse::<OneIn>().is_err(), "{text}");
        }
        let error = "3%".parse::<OneIn>().expect_err("a third of a page");
        assert!(error.ends_with("write 1/33"), "{error}");
    }
}
