//! The cells of one trace, spread over the cores; all read one decoded trace.

use super::alike::{Family, Fork, Task, Tasks};
use super::cell::{Cell, CountOnly, MissBits, MissSink};
use super::policy::RowPolicy;
use super::progress::Progress;
use super::recorder::{Recorder, Windows};
use super::row::{EngineFigures, Row};
use crate::Stop;
use refault_mm::opt::{Opt, next_uses};
use refault_mm::{CacheExtOps, Config, Kernel, Policy};
use refault_trace::{PackedAccess, Trace};
use std::sync::Mutex;
use std::time::Instant;

/// Accesses between two steps of the progress bar.
pub(super) const STEP: usize = 1 << 17;

/// A policy in the form of cache_ext that a program brings.
#[derive(Debug)]
pub struct PlugIn {
    /// What rows call it.
    pub name: String,
    /// The policy before it begins; each cell has a copy.
    pub ops: Box<dyn CacheExtOps>,
}

/// What to replay a trace with.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Accesses of the trace, though `trace` may hold none of them.
    pub accesses: u64,
    /// Bytes a page.
    pub page_size: u32,
    /// Memory sizes in pages.
    pub sizes: Vec<u64>,
    /// Policies, with the configuration of those that the engine runs.
    pub policies: &'a [(RowPolicy, Option<Config>)],
    /// Policies that a program brings, and the configuration of the two lists that they are beside.
    pub plug_ins: &'a [(&'a PlugIn, Config)],
    /// Limit of swap in pages.
    pub swap_max_pages: u64,
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
    /// Ends all cells, and the run with an error.
    pub stop: Stop,
}

/// What decides in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decides<'a> {
    Policy(&'a (RowPolicy, Option<Config>)),
    PlugIn(&'a (&'a PlugIn, Config)),
}

/// A row, and the bits of its misses if they were asked for.
pub(crate) type Done = (Row, Option<MissBits>);

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
    fn with_memory(&self, pages: u64) -> Result<Running<'a>, String> {
        let Running { policy, cfg, plug_in, recorder, seconds, cell, .. } = self;
        let (cell, recorder) = (cell.with_memory(pages)?, recorder.clone());
        Ok(Running { policy: *policy, cfg, plug_in: *plug_in, pages, cell, recorder, seconds: *seconds })
    }
}

impl Plan<'_> {
    /// Replays every cell; rows are by size, then by policy, whatever the threads.
    pub fn run(&self) -> Result<Vec<Done>, String> {
        let cells = self.cells().len();
        let next = self.next_uses()?;
        let progress = self.progress(cells);
        let tasks = Tasks::new(self.families(), self.threads.min(cells));
        let done: Mutex<Vec<Option<Result<Done, String>>>> = Mutex::new((0..cells).map(|_| None).collect());
        let put = |at: usize, result| {
            if let Ok(mut done) = done.lock() {
                done[at] = Some(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(cells) {
                scope.spawn(|| {
                    while let Some(task) = tasks.next() {
                        match task {
                            Task::Finish(fork) => self.finish(*fork, &progress, &put),
                            Task::Lead(family) => {
                                self.lead(family, &next, &tasks, &progress, &put);
                                tasks.led();
                            }
                        }
                    }
                });
            }
        });
        self.stop.check()?;
        // A thread that panicked ended the scope with its panic: every cell has a result.
        done.into_inner().unwrap_or_default().into_iter().flatten().collect()
    }

    /// The cells: by size, then by policy.
    pub(super) fn cells(&self) -> Vec<(u64, Decides<'_>)> {
        let all = self.policies.iter().map(Decides::Policy).chain(self.plug_ins.iter().map(Decides::PlugIn));
        self.sizes.iter().flat_map(|&pages| all.clone().map(move |one| (pages, one))).collect()
    }

    /// A bar over so many cells.
    pub(super) fn progress(&self, cells: usize) -> Progress {
        Progress::new(format!("replaying {}", self.trace.name), Some(self.accesses * cells as u64))
    }

    /// What OPT must know of the future, once for all its cells.
    fn next_uses(&self) -> Result<Vec<u32>, String> {
        if self.policies.iter().all(|(policy, _)| *policy != RowPolicy::Opt) {
            return Ok(Vec::new());
        }
        let pages = self.trace.accesses.iter().map(|a| a.page());
        next_uses(pages, self.trace.footprint_pages() as usize)
    }

    fn recorder(&self) -> Recorder {
        let accesses = self.accesses as usize;
        Recorder {
            bits: self.bits.then(|| MissBits::new(accesses)),
            windows: self.windows.map(|n| Windows::new(n, accesses)),
        }
    }

    /// A cell before its first access; none for OPT, which is not the engine's.
    pub(super) fn begin<'p>(&'p self, decides: Decides<'p>, pages: u64) -> Option<Result<Running<'p>, String>> {
        let (policy, cfg, plug_in) = match decides {
            Decides::Policy((policy, cfg)) => (*policy, cfg.as_ref()?, None),
            Decides::PlugIn((plug_in, cfg)) => (RowPolicy::Linux(Policy::Lru), cfg, Some(*plug_in)),
        };
        let cell = Cell::new(self.trace, cfg.clone(), pages, self.swap_max_pages).and_then(|mut cell| {
            if let Some(plug_in) = plug_in {
                cell.engine.attach_cache_ext(cell.group, &*plug_in.ops)?;
            }
            Ok(cell)
        });
        let recorder = self.recorder();
        Some(cell.map(|cell| Running { policy, cfg, plug_in, pages, cell, recorder, seconds: 0.0 }))
    }

    /// Replays the largest memory of a family; the others leave it where they begin to differ.
    fn lead<'p>(
        &'p self,
        family: Family<'p>,
        next: &[u32],
        tasks: &Tasks<'p>,
        progress: &Progress,
        put: &dyn Fn(usize, Result<Done, String>),
    ) {
        let Family { decides, cells } = family;
        let Some((&(largest, pages), smaller)) = cells.split_last() else { return };
        let mut running = match self.begin(decides, pages) {
            None => return put(largest, Ok(self.opt(next, pages, progress))),
            Some(Err(e)) => return cells.iter().for_each(|&(at, _)| put(at, Err(e.clone()))),
            Some(Ok(running)) => running,
        };
        let mut from = 0;
        let end = if smaller.is_empty() { 0 } else { self.before_file_writes() };
        for &(at, pages) in smaller {
            from = self.feed_while_alike(&mut running, pages, from, end, progress);
            match running.with_memory(pages) {
                Err(e) => put(at, Err(e)),
                Ok(running) => {
                    progress.add(from as u64);
                    if let Err(fork) = tasks.offer(Box::new(Fork { at, from, running })) {
                        self.finish(*fork, progress, put);
                    }
                }
            }
        }
        self.finish(Fork { at: largest, from, running }, progress, put);
    }

    /// Replays what is left of the trace for a cell.
    fn finish(&self, fork: Fork<'_>, progress: &Progress, put: &dyn Fn(usize, Result<Done, String>)) {
        let Fork { at, from, mut running } = fork;
        self.feed(&mut running, &self.trace.accesses[from..], self.times_from(from), progress);
        put(at, Ok(self.end(running)));
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
            if self.stop.is_set() {
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

    /// What came out of a cell.
    pub(super) fn end(&self, running: Running<'_>) -> Done {
        let Running { policy, cfg, plug_in, pages, cell, recorder, seconds } = running;
        let figures = EngineFigures::of(&cell, cfg, self.kernel, self.lru_gen);
        let inside = EngineFigures { swap_map: self.swap_map, ..figures };
        let mut row = self.row(policy, pages, seconds);
        (row.accesses, row.misses, row.oom_at) = (cell.accesses, cell.misses, cell.oom_at);
        row.inside = Some(inside);
        row.plug_in = plug_in.map(|plug_in| plug_in.name.clone());
        with_records(row, recorder)
    }

    fn opt(&self, next: &[u32], pages: u64, progress: &Progress) -> Done {
        let mut opt = Opt::new(pages, next.len());
        let mut recorder = self.recorder();
        let keeps = recorder.keeps();
        let (mut at, mut misses) = (0, 0);
        let started = Instant::now();
        for chunk in next.chunks(STEP) {
            if self.stop.is_set() {
                break;
            }
            for &next in chunk {
                if !opt.access(next) {
                    misses += 1;
                    if keeps {
                        recorder.miss(at);
                    }
                }
                at += 1;
            }
            progress.add(chunk.len() as u64);
        }
        let mut row = self.row(RowPolicy::Opt, pages, started.elapsed().as_secs_f64());
        row.misses = misses;
        with_records(row, recorder)
    }

    fn row(&self, policy: RowPolicy, pages: u64, seconds: f64) -> Row {
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
            reads: None,
            oom_at: None,
            seconds,
            window_misses: None,
            inside: None,
        }
    }
}

fn with_records(mut row: Row, recorder: Recorder) -> Done {
    row.window_misses = recorder.windows.map(Windows::into_misses);
    (row, recorder.bits)
}
