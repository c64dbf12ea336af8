//! Traits of every kind of input: its machine, its metrics, and runs.

use super::answer::MetricTrust;
use super::change::{Setup, WhatIfChange};
use crate::memory_size::Size as MemorySize;
use crate::size::Metric;
use crate::{Failure, Watch};

/// Percent of the limit that starts are apart from it, in their order: which page goes first
/// depends on when memory runs out.
const STARTS: [i64; 5] = [0, -2, 2, -4, 4];

/// Differences of no more misses than this are none, nor below a thousandth of the accesses.
pub(super) const FEW: u64 = 100;

/// Distance of the lab from kernels in hits of all accesses (docs/measurements/real-kernels.md).
pub(super) const POINTS: f64 = 0.002;

/// Reason why an input without kswapd does not know `min_ttl_ms`.
pub(super) const MIN_TTL_IDLE: &str =
    "acts where kswapd ages a machine that is short, and not in a group at its limit; a scenario has kswapd";

/// A value with bounds, which are the value where nothing is open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) low: f64,
    pub(super) value: f64,
    pub(super) high: f64,
}

impl Measured {
    /// A value of which nothing is open.
    pub(super) fn exact(value: f64) -> Measured {
        Measured { low: value, value, high: value }
    }
}

/// Result of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Values by metric, in the order of the subject; none: not measured.
    pub(super) values: Vec<Option<Measured>>,
    /// The reason why the run says nothing; none: it does.
    pub(super) failed: Option<&'static str>,
    /// Remark on the run.
    pub(super) remark: Option<String>,
}

/// An input.
pub(super) trait WhatIfSubject {
    /// The name of the input.
    fn name(&self) -> &str;

    /// Kind and size of the input, in words.
    fn about(&self) -> String;

    /// The machine as it is.
    fn today(&self) -> &Setup;

    /// Where today's limit is from, in words.
    fn limit_is(&self) -> &'static str;

    /// Metrics that are measured; the first is the one that is judged first.
    fn metrics(&self) -> &[Metric];

    /// How many of the first metrics sentences are of.
    fn spoken(&self) -> usize {
        1
    }

    /// Runs of each machine where their number is not chosen.
    fn usual_starts(&self) -> u16 {
        5
    }

    /// The reason why a change is not known of this input; none: it is.
    fn refuses(&self, change: &WhatIfChange) -> Option<String>;

    /// Windows of readahead that are tried where none is named.
    fn read_ahead(&self) -> Vec<MemorySize> {
        Vec::new()
    }

    /// Fails on a machine that cannot be.
    fn check(&self, machine: &Setup) -> Result<(), Failure>;

    /// A machine as start number `n` has it.
    fn start(&self, machine: &Setup, n: u16) -> Setup {
        let shift = STARTS[usize::from(n) % STARTS.len()];
        // Beyond these the limit is the same again, and the seed alone differs.
        let pages = i128::from(machine.memory_pages) * i128::from(100 + shift) / 100;
        let memory_pages = match machine.memory_pages {
            u64::MAX => u64::MAX,
            _ => u64::try_from(pages).unwrap_or(u64::MAX).max(1),
        };
        Setup { memory_pages, seed: machine.seed.wrapping_add(u64::from(n)), ..machine.clone() }
    }

    /// A machine in the other reading of what the input leaves open, beside its starts; none: there
    /// is no other.
    fn other_reading(&self, _machine: &Setup) -> Option<Setup> {
        None
    }

    /// Runs machines; outcomes are in their order.
    fn run(&self, machines: &[Setup], threads: Option<u16>, watch: &Watch) -> Result<Vec<Outcome>, Failure>;

    /// How near the run of today's machine is to the kernel that was recorded, by metric.
    fn trust(&self, _today: &Outcome) -> Vec<MetricTrust> {
        Vec::new()
    }

    /// Least difference of a metric that counts: of counts a number, of shares a part of 1.
    fn least(&self, metric: Metric) -> f64;

    /// How far two machines may be off against each other, as kernels that were measured say: of
    /// shares in these, of counts in the count.
    fn distance(&self, metric: Metric, today: &Setup, other: &Setup) -> f64;

    /// The reason why a metric is not known of a change although it ran; none: it is.
    fn doubts(&self, _metric: Metric, _changes: &[WhatIfChange]) -> Option<String> {
        None
    }

    /// Questions that the input leaves open, in sentences.
    fn unknown(&self) -> Vec<String>;
}
