//! The cells of one trace, spread over the cores; all read one decoded trace.

use super::cell::MissSink;
use super::plan::{CellResult, Plan, STEP, with_records};
use super::policy::RowPolicy;
use super::prefix::{Fork, SharedPrefix, Task, Tasks, before_file_writes, feed_prefix, prefixes};
use crate::threads::on_each_thread;
use crate::watch::Progress;
use refault_mm::opt::{Opt, next_uses};
use std::sync::Mutex;
use std::time::Instant;

impl Plan<'_> {
    /// Replays every cell; rows are by size, then by policy, whatever the threads.
    pub fn run(&self) -> Result<Vec<CellResult>, String> {
        let cells = self.cells().len();
        let next = self.next_uses()?;
        let progress = self.progress(cells);
        let tasks = Tasks::new(prefixes(self), self.threads.min(cells));
        let done: Mutex<Vec<Option<Result<CellResult, String>>>> = Mutex::new((0..cells).map(|_| None).collect());
        let put = |at: usize, result| {
            if let Ok(mut done) = done.lock() {
                done[at] = Some(result);
            }
        };
        on_each_thread(self.threads.min(cells), &|| {
            while let Some(task) = tasks.next() {
                match task {
                    Task::Finish(fork) => self.finish(*fork, &progress, &put),
                    Task::Lead(prefix) => {
                        self.lead(prefix, &next, &tasks, &progress, &put);
                        tasks.led();
                    }
                }
            }
        });
        self.watch.check()?;
        // A thread that panicked ended the scope with its panic: every cell has a result.
        done.into_inner().unwrap_or_default().into_iter().flatten().collect()
    }

    /// The next use of each access, which OPT must know, once for all its cells.
    fn next_uses(&self) -> Result<Vec<u32>, String> {
        if self.policies.iter().all(|(policy, _)| *policy != RowPolicy::Opt) {
            return Ok(Vec::new());
        }
        let pages = self.trace.accesses.iter().map(|a| a.page());
        next_uses(pages, self.trace.footprint_pages() as usize)
    }

    /// Replays the largest memory of cells that begin alike; the others leave it where they begin
    /// to differ.
    fn lead<'p>(
        &'p self,
        prefix: SharedPrefix<'p>,
        next: &[u32],
        tasks: &Tasks<'p>,
        progress: &Progress,
        put: &dyn Fn(usize, Result<CellResult, String>),
    ) {
        let SharedPrefix { policy, cells } = prefix;
        let Some((&(largest, pages), smaller)) = cells.split_last() else { return };
        let mut running = match self.begin(policy, pages) {
            None => return put(largest, Ok(self.opt(next, pages, progress))),
            Some(Err(e)) => return cells.iter().for_each(|&(at, _)| put(at, Err(e.clone()))),
            Some(Ok(running)) => running,
        };
        let mut from = 0;
        let end = if smaller.is_empty() { 0 } else { before_file_writes(self.trace) };
        for &(at, pages) in smaller {
            from = feed_prefix(self, &mut running, pages, from..end, progress);
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
    fn finish(&self, fork: Fork<'_>, progress: &Progress, put: &dyn Fn(usize, Result<CellResult, String>)) {
        let Fork { at, from, mut running } = fork;
        self.feed(&mut running, &self.trace.accesses[from..], self.times_from(from), progress);
        put(at, Ok(self.end(running)));
    }

    fn opt(&self, next: &[u32], pages: u64, progress: &Progress) -> CellResult {
        let mut opt = Opt::new(pages, next.len());
        let mut recorder = self.recorder();
        let keeps = recorder.keeps();
        let (mut at, mut misses) = (0, 0);
        let started = Instant::now();
        for chunk in next.chunks(STEP) {
            if self.watch.is_stopped() {
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
}
