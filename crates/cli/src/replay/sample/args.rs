//! The flags of `--sample`.

use clap::{Args, ValueEnum};
use refault_trace::{Sample, SampleUnit};
use std::fmt;
use std::str::FromStr;

/// Samples in place of the whole trace.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Samples")]
pub struct SampleArgs {
    /// Replay the accesses to a part of the pages in that part of the memory, and estimate the hit
    /// rate: 1%, 0.1% or 1/33
    #[arg(long, value_name = "RATE")]
    pub(super) sample: Option<OneIn>,

    /// What a sample keeps or leaves out as a whole
    #[arg(long, value_name = "UNIT", default_value = "page", requires = "sample")]
    pub(super) sample_unit: UnitArg,

    /// Samples, each with a salt of its own: the error of the estimate is what they differ by
    #[arg(long, value_name = "N", default_value_t = 5, requires = "sample", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) salts: u32,
}

impl SampleArgs {
    /// Whether there is a rate.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.sample.is_some()
    }

    /// The rate; without one, all pages.
    pub(crate) fn one_in(&self) -> OneIn {
        self.sample.unwrap_or(OneIn(1))
    }

    /// How many samples.
    pub(crate) fn salts(&self) -> u32 {
        self.salts
    }

    /// The samples, with salts by the seed.
    pub(crate) fn samples(&self, seed: u64) -> Vec<Sample> {
        let salts = (0..u64::from(self.salts)).map(|n| seed.wrapping_mul(1 << 32).wrapping_add(n));
        salts.map(|salt| Sample::new(self.one_in().0, self.sample_unit.into(), salt)).collect()
    }
}

/// `--sample-unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// Single pages: the smallest error on most traces.
    Page,
    /// 64 pages in a row, so that neighbours stay together that a fault maps and that multi-gen LRU
    /// looks at: for large traces that live from them.
    Node,
    /// 512 pages in a row: page tables, and large folios.
    Table,
}

impl From<UnitArg> for SampleUnit {
    fn from(unit: UnitArg) -> SampleUnit {
        match unit {
            UnitArg::Page => SampleUnit::Page,
            UnitArg::Node => SampleUnit::Node,
            UnitArg::Table => SampleUnit::Table,
        }
    }
}

/// One in so many.
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
