//! Workloads out of a seed: phases, each an interleaving of streams over sets of pages.
//!
//! A [`Workload`] is built by hand or parsed from the grammar of [`Workload::parse`]; its
//! [`Generator`] is a [`RecordSource`](crate::RecordSource), so [`Trace::load`](crate::Trace::load)
//! takes it as it takes a file. The same workload and seed give the same accesses on every machine
//! and in every version: the generator is PCG XSL RR 128/64, and all arithmetic on its numbers is
//! in this module or in exactly rounded operations. (`normal`, which no workload of a trace draws
//! with, takes the system's logarithm and cosine.)
//!
//! `spec` parses the grammar, `run` interleaves the streams, `rng`, `zipf` and `normal` draw, the
//! last two with the tables of `guide`. The command and the lab draw with them, too.

mod guide;
mod normal;
mod rng;
mod run;
mod spec;
mod zipf;

pub use normal::Normal;
pub use rng::{Probability, Rng};
pub use run::Generator;
pub use zipf::Zipf;

use crate::error::TraceError;
use crate::record::{ObjectKind, Via};

/// The most pages of a stream: what a dense trace can number.
pub const MAX_PAGES: u32 = 1 << 29;

/// The most streams of a phase.
pub const MAX_STREAMS: usize = 1024;

/// The largest skew of a zipf stream; nothing but rank 1 is left far below it.
pub const MAX_SKEW: f64 = 32.0;

/// In which order a stream goes over its pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Every page as likely as any other.
    Uniform,
    /// Rank k with a probability proportional to k^-skew.
    Zipf {
        /// The skew, 0 (uniform) to [`MAX_SKEW`].
        skew: f64,
        /// Scatter the ranks over the set; otherwise rank 1 is its first page.
        permute: bool,
    },
    /// Once from the start to the end of the set; then the stream is over.
    Sequential,
    /// Round and round.
    Loop,
}

/// One reader or writer of a set of pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The name of the object; streams of one name share it.
    pub object: String,
    /// Backing of the object.
    pub kind: ObjectKind,
    /// The order.
    pub pattern: Pattern,
    /// The size of the set in pages.
    pub pages: u32,
    /// The page of the object where the set begins.
    pub base: u64,
    /// The place in the set where a sequential or cyclic stream begins.
    pub start: u32,
    /// Its share of the accesses of the phase, relative to the weights of the others.
    pub weight: u32,
    /// Whether it writes.
    pub write: bool,
    /// How it touches pages; `None` leaves that to the replay.
    pub via: Option<Via>,
    /// Its task.
    pub task: u32,
    /// The path of the memory cgroup that its task is in; none: the root.
    pub memcg: Option<String>,
}

impl Stream {
    /// A stream of reads of a file, of weight 1, by task 0.
    pub fn new(object: impl Into<String>, pattern: Pattern, pages: u32) -> Self {
        Self {
            object: object.into(),
            kind: ObjectKind::File,
            pattern,
            pages,
            base: 0,
            start: 0,
            weight: 1,
            write: false,
            via: None,
            task: 0,
            memcg: None,
        }
    }
}

/// How the streams of a phase take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interleave {
    /// At random, by weight.
    #[default]
    Random,
    /// In a fixed order, by weight and as evenly as possible (smooth weighted round robin).
    Round,
}

/// A number of accesses by some streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The number of accesses.
    pub accesses: u64,
    /// How the streams take turns.
    pub interleave: Interleave,
    /// The streams. Each begins anew in every phase.
    pub streams: Vec<Stream>,
}

/// Phases one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The phases.
    pub phases: Vec<Phase>,
    /// The seed of everything that is random.
    pub seed: u64,
}

impl Workload {
    /// One stream alone.
    pub fn single(stream: Stream, accesses: u64, seed: u64) -> Self {
        let phase = Phase { accesses, interleave: Interleave::Random, streams: vec![stream] };
        Self { phases: vec![phase], seed }
    }

    /// A generator at the start of the workload; an error if the workload makes no sense.
    pub fn generator(&self, name: &str) -> Result<Generator, TraceError> {
        Generator::new(name, self)
    }

    /// The number of accesses.
    pub fn accesses(&self) -> u64 {
        self.phases.iter().fold(0, |sum, phase| sum.saturating_add(phase.accesses))
    }
}
