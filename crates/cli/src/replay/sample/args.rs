//! The flags of `--sample`.

use clap::{Args, ValueEnum};
use refault::replay::sample::{OneIn, SampledBy};
use refault_trace::{Sample, SampleUnit};

/// Samples in place of the whole trace.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Samples")]
pub struct SampleArgs {
    /// Replay the accesses to a part of the pages in that part of the memory, and estimate the hit
    /// rate: 1%, 0.1% or 1/33
    #[arg(long, value_name = "RATE")]
    pub(super) sample: Option<OneIn>,

    /// Unit that a sample keeps or leaves out as a whole
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

    /// The samples that are asked for; none: all pages.
    pub(crate) fn sampling(&self) -> Option<SampledBy> {
        let of = |one_in| SampledBy { one_in, unit: self.sample_unit.into(), salts: self.salts };
        self.sample.map(of)
    }

    /// The samples, with salts by the seed.
    pub(crate) fn samples(&self, seed: u64) -> Vec<Sample> {
        self.sampling().map_or_else(Vec::new, |sampling| sampling.samples(seed))
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
