//! The cells of a replay: a trace, sizes in pages, and configurations; and each of them on its way.

use super::cell::{Cell, CountOnly, MissBits};
use super::policy::RowPolicy;
use super::recorder::{Recorder, Windows};
use super::row::{EngineFigures, Row};
use super::swap::SwapSetup;
use crate::Failure;
use crate::watch::{Progress, Watch};
use refault_mm::{CacheExtOps, Config, Kernel, Policy};
use refault_trace::{PackedAccess, Trace};
use std::time::Instant;

/// Accesses between two reports of progress.
pub(super) const STEP: usize = 1 << 17;

/// A policy in the form of cache_ext that a program brings.
#[derive(Debug)]
pub struct PlugIn {
    /// Its name in rows.
    pub name: String,
    /// The policy before it begins; each cell has a copy.
    pub ops: Box<dyn CacheExtOps>,
}

impl PlugIn {
    /// Checks that rows tell policies apart by name.
    ///
    /// # Errors
    /// A name that another policy has.
    pub fn check_names(plug_ins: &[PlugIn]) -> Result<(), Failure> {
        for (n, PlugIn { name, .. }) in plug_ins.iter().enumerate() {
            if RowPolicy::every().any(|policy| policy.name() == name) {
                return Err(format!("policy {name:?}: is one of refault's own; give the new one another name").into());
            }
            if plug_ins[..n].iter().any(|other| other.name == *name) {
                return Err(format!("policy {name:?}: is the name of two; give one of them another").into());
            }
        }
        Ok(())
    }
}

/// Replay of a trace.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Accesses of the trace, even if `trace` holds none.
    pub accesses: u64,
    /// Bytes a page.
    pub page_size: u32,
    /// Memory sizes in pages.
    pub sizes: Vec<u64>,
    /// Policies; a policy that the engine runs has a configuration.
    pub policies: &'a [(RowPolicy, Option<Config>)],
    /// Policies that a program brings, and the configuration of the two lists that they are beside.
    pub plug_ins: &'a [(&'a PlugIn, Config)],
    /// Limit of swap in pages.
    pub swap_max_pages: u64,
    /// The kind of swap, which the configurations have; none: as they have it, and not looked at.
    pub swap: Option<SwapSetup>,
    /// The kernel of the configurations, for the rows.
    pub kernel: Kernel,
    /// The seed, for the rows.
    pub seed: u64,
    /// Equal windows to count misses in.
    pub windows: Option<usize>,
    /// Keep a bit an access.
    pub bits: bool,
    /// Keep the generations at the end.
    pub lru_gen: bool,
    /// Show the clusters of the swap devices at the end.
    pub swap_map: bool,
    /// Threads.
    pub threads: usize,
    /// Progress and cancel.
    pub watch: Watch,
}

/// The policy of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum CellPolicy<'a> {
    /// A policy of refault itself; it has a configuration if the engine runs it.
    Own(&'a (RowPolicy, Option<Config>)),
    /// A policy that a program brings.
    PlugIn(&'a (&'a PlugIn, Config)),
}

/// A row, and the bits of its misses if they were asked for.
pub type CellResult = (Row, Option<MissBits>);

/// A cell of the engine on its way.
#[derive(Debug)]
pub(super) struct Running<'a> {
    policy: RowPolicy,
    pub(super) cfg: &'a Config,
    plug_in: Option<&'a PlugIn>,
    pages: u64,
    pub(super) cell: Cell,
    recorder: Recorder,
    seconds: f64,
}

impl<'a> Running<'a> {
    /// The same in less memory, where that makes no difference yet.
    pub(super) fn with_memory(&self, pages: u64) -> Result<Running<'a>, String> {
        let Running { policy, cfg, plug_in, recorder, seconds, cell, .. } = self;
        let (cell, recorder) = (cell.with_memory(pages)?, recorder.clone());
        Ok(Running { policy: *policy, cfg, plug_in: *plug_in, pages, cell, recorder, seconds: *seconds })
    }
}

impl Plan<'_> {
    /// The cells: by size, then by policy.
    pub(super) fn cells(&self) -> Vec<(u64, CellPolicy<'_>)> {
        let all = self.policies.iter().map(CellPolicy::Own).chain(self.plug_ins.iter().map(CellPolicy::PlugIn));
        self.sizes.iter().flat_map(|&pages| all.clone().map(move |one| (pages, one))).collect()
    }

    /// Progress over `cells` cells.
    pub(super) fn progress(&self, cells: usize) -> Progress {
        self.watch.accesses(format!("replaying {}", self.trace.name), Some(self.accesses * cells as u64))
    }

    pub(super) fn recorder(&self) -> Recorder {
        let accesses = self.accesses as usize;
        Recorder {
            bits: self.bits.then(|| MissBits::new(accesses)),
            windows: self.windows.map(|n| Windows::new(n, accesses)),
        }
    }

    /// A cell before its first access; none for OPT, which is not the engine's.
    pub(super) fn begin<'p>(&'p self, policy: CellPolicy<'p>, pages: u64) -> Option<Result<Running<'p>, String>> {
        let (policy, cfg, plug_in) = match policy {
            CellPolicy::Own((policy, cfg)) => (*policy, cfg.as_ref()?, None),
            CellPolicy::PlugIn((plug_in, cfg)) => (RowPolicy::Linux(Policy::Lru), cfg, Some(*plug_in)),
        };
        let cell = Cell::new(self.trace, cfg.clone(), pages, self.swap_max_pages).and_then(|mut cell| {
            cell.machine.swap = self.swap.as_ref().map(|swap| Box::new(swap.pool(self.seed, self.accesses)));
            if let Some(plug_in) = plug_in {
                cell.engine.attach_cache_ext(cell.group, &*plug_in.ops)?;
            }
            Ok(cell)
        });
        let recorder = self.recorder();
        Some(cell.map(|cell| Running { policy, cfg, plug_in, pages, cell, recorder, seconds: 0.0 }))
    }

    /// The times of the accesses from a place on; a trace without any gets a microsecond an access.
    pub(super) fn times_from(&self, from: usize) -> Option<&[u64]> {
        let times = self.trace.time_ns.as_deref().filter(|t| t.last().is_some_and(|&last| last > 0));
        times.map(|t| &t[from..])
    }

    /// Gives a cell its next accesses, and their times if the trace has any.
    pub(super) fn feed(
        &self,
        running: &mut Running<'_>,
        accesses: &[PackedAccess],
        times: Option<&[u64]>,
        progress: &Progress,
    ) {
        let started = Instant::now();
        let Running { cell, recorder, .. } = running;
        for (i, chunk) in accesses.chunks(STEP).enumerate() {
            if self.watch.is_stopped() {
                break;
            }
            let times = times.map(|t| &t[i * STEP..]);
            match recorder.keeps() {
                true => cell.run_with_drops(chunk, times, &self.trace.drops, recorder),
                false => cell.run_with_drops(chunk, times, &self.trace.drops, &mut CountOnly),
            }
            progress.add(chunk.len() as u64);
        }
        running.seconds += started.elapsed().as_secs_f64();
    }

    /// The result of a cell.
    pub(super) fn end(&self, running: Running<'_>) -> CellResult {
        let Running { policy, cfg, plug_in, pages, cell, recorder, seconds } = running;
        let figures = EngineFigures::of(&cell, cfg, self.kernel, self.lru_gen);
        let inside = EngineFigures { swap_map: self.swap_map, ..figures };
        let mut row = self.row(policy, pages, seconds);
        (row.accesses, row.misses, row.oom_at) = (cell.accesses, cell.misses, cell.oom_at);
        row.swap = cell.machine.swap.map(|swap| swap.figures(&cell.engine));
        row.inside = Some(inside);
        row.plug_in = plug_in.map(|plug_in| plug_in.name.clone());
        with_records(row, recorder)
    }

    pub(super) fn row(&self, policy: RowPolicy, pages: u64, seconds: f64) -> Row {
        Row {
            trace: self.trace.name.clone(),
            policy,
            plug_in: None,
            memory_pages: pages,
            memory_bytes: pages.saturating_mul(u64::from(self.page_size)),
            page_size: u64::from(self.page_size),
            footprint_pages: u64::from(self.trace.footprint_pages()),
            trace_accesses: self.accesses,
            seed: self.seed,
            accesses: self.accesses,
            misses: 0,
            sampling_error: None,
            reads: None,
            oom_at: None,
            seconds,
            window_misses: None,
            swap: None,
            inside: None,
        }
    }
}

pub(super) fn with_records(mut row: Row, recorder: Recorder) -> CellResult {
    row.window_misses = recorder.windows.map(Windows::into_misses);
    (row, recorder.bits)
}
