//! Request of a report on a trace.

use crate::memory_size::Size;
use crate::replay::policy::RowPolicy;
use crate::{Failure, Watch, threads};
use refault_mm::{Kernel, Policy};
use refault_trace::{LoadOptions, RecordSource, Via};
use std::path::PathBuf;

/// Request of a report on a trace or a recording.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// Policies; each has a curve.
    pub policies: Vec<RowPolicy>,
    /// Sizes of the curves; none: up to 16 from 2% to 100%.
    pub memory: Vec<Size>,
    /// The limit that there is today; none: that of a recording.
    pub limit: Option<Size>,
    /// The size that details are of; none: the limit, or the knee of the curve.
    pub at: Option<Size>,
    /// The kernel whose rules hold; none: that of a recording, or the default one.
    pub kernel: Option<Kernel>,
    /// Limit of swap for anonymous memory; none: no limit.
    pub swap_max: Option<Size>,
    /// How file pages are touched where the trace does not say.
    pub via: Via,
    /// Seed of the engine.
    pub seed: u64,
    /// Only the first accesses.
    pub max_accesses: Option<u64>,
    /// A file of limits of groups.
    pub limits: Option<PathBuf>,
    /// Threads; none: one a core.
    pub threads: Option<u16>,
    /// Names of chosen flags that may do nothing: a flag that does nothing is refused.
    pub flags: Vec<&'static str>,
    /// Progress and cancel.
    pub watch: Watch,
}

impl Default for ReportRequest {
    fn default() -> ReportRequest {
        ReportRequest {
            policies: vec![RowPolicy::Linux(Policy::Lru), RowPolicy::Linux(Policy::Mglru), RowPolicy::Opt],
            memory: Vec::new(),
            limit: None,
            at: None,
            kernel: None,
            swap_max: None,
            via: Via::Fd,
            seed: 0,
            max_accesses: None,
            limits: None,
            threads: None,
            flags: Vec::new(),
            watch: Watch::default(),
        }
    }
}

/// Opens a trace; what is read from it is read once for each call.
pub(super) type Open<'a> = dyn Fn() -> Result<Box<dyn RecordSource>, Failure> + 'a;

impl ReportRequest {
    pub(super) fn threads(&self) -> usize {
        threads(self.threads)
    }

    pub(super) fn load_options(&self) -> LoadOptions {
        LoadOptions { default_via: self.via, max_accesses: self.max_accesses, ..LoadOptions::default() }
    }

    pub(super) fn swap_max_pages(&self, page_size: u32, footprint: u64) -> u64 {
        self.swap_max.as_ref().map_or(u64::MAX, |size| size.pages(page_size, footprint))
    }
}
