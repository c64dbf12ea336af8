//! The cells of one trace with memory cgroups, spread over the cores.

use super::cell::Grouped;
use super::row::{GroupRow, GroupedRow};
use super::tree::{Group, Tree};
use crate::Failure;
use crate::replay::policy::RowPolicy;
use crate::threads::on_threads;
use crate::watch::{Progress, Watch};
use refault_mm::{Config, Kernel};
use refault_trace::{LoadOptions, RecordSource, Trace};
use std::time::Instant;

/// Accesses between two reports of progress.
const STEP: usize = 1 << 16;

/// A trace, the tree of its groups if it says anything of them, and bytes a page.
///
/// # Errors
/// The trace cannot be read, or its groups are too many or too deep.
pub fn load(mut source: Box<dyn RecordSource>, load: &LoadOptions) -> Result<(Trace, Option<Tree>, u32), Failure> {
    let trace = Trace::load(&mut source, &LoadOptions { keep_memcg: true, ..load.clone() })?;
    let header = source.header();
    if header.memcgs.is_empty() && trace.groups == ["/0"] {
        return Ok((trace, None, header.page_size));
    }
    let tree = Tree::new(&trace.groups).map_err(|e| format!("{}: {e}", source.name()))?;
    Ok((trace, Some(tree), header.page_size))
}

/// Replay of a trace whose accesses come from groups.
#[derive(Debug)]
pub struct GroupPlan<'a> {
    /// The trace, with the group of each access.
    pub trace: &'a Trace,
    /// Its groups with their limits.
    pub tree: &'a Tree,
    /// Bytes a page.
    pub page_size: u32,
    /// Memory of all groups together, in pages; `u64::MAX` is no limit.
    pub sizes: Vec<u64>,
    /// Policies with their configurations.
    pub policies: &'a [(RowPolicy, &'a Config)],
    /// Limit of swap in pages.
    pub swap_max_pages: u64,
    /// The kernel of the configurations, for the rows.
    pub kernel: Kernel,
    /// The seed of the configurations, for the rows.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Progress and cancel.
    pub watch: Watch,
}

impl GroupPlan<'_> {
    /// Replays every cell; rows are by size, then by policy.
    ///
    /// # Errors
    /// An impossible configuration, or cancel.
    pub fn run(&self) -> Result<Vec<GroupedRow>, String> {
        let cell = |pages: u64| self.policies.iter().map(move |policy| (pages, *policy));
        let cells: Vec<_> = self.sizes.iter().flat_map(|&pages| cell(pages)).collect();
        let total = self.trace.accesses.len() as u64 * cells.len() as u64;
        let progress = self.watch.accesses(format!("replaying {}", self.trace.name), Some(total));
        let one = |(pages, (policy, cfg)): (u64, (RowPolicy, &Config))| self.row(pages, policy, cfg, &progress);
        let rows = on_threads(self.threads, &cells, &one);
        self.watch.check()?;
        rows
    }

    fn row(&self, pages: u64, policy: RowPolicy, cfg: &Config, progress: &Progress) -> Result<GroupedRow, String> {
        let started = Instant::now();
        let mut cell = Grouped::new(self.trace, self.tree, cfg.clone(), pages, self.swap_max_pages)?;
        feed(&mut cell, self.trace, progress, &self.watch);
        Ok(GroupedRow {
            trace: self.trace.name.clone(),
            policy,
            kernel: self.kernel,
            memory_pages: pages,
            page_size: self.page_size.into(),
            footprint_pages: u64::from(self.trace.footprint_pages()),
            trace_accesses: self.trace.accesses.len() as u64,
            seed: self.seed,
            oom_at: cell.cell.oom_at,
            seconds: started.elapsed().as_secs_f64(),
            groups: group_rows(&cell, self.tree),
        })
    }
}

/// Replays the whole trace.
pub fn feed(cell: &mut Grouped<'_>, trace: &Trace, progress: &Progress, watch: &Watch) {
    let times = trace.time_ns.as_deref().filter(|t| t.last().is_some_and(|&last| last > 0));
    for start in (0..trace.accesses.len()).step_by(STEP) {
        let end = (start + STEP).min(trace.accesses.len());
        if watch.is_stopped() || !cell.run(trace, start..end, times) {
            break;
        }
        progress.add((end - start) as u64);
    }
}

fn group_rows(grouped: &Grouped<'_>, tree: &Tree) -> Vec<GroupRow> {
    let engine = &grouped.cell.engine;
    let row = |((group, count), &id): ((&Group, _), _)| GroupRow {
        path: group.path.clone(),
        limits: group.limits,
        count,
        counters: engine.memcg_tree_stats(id),
        gauges: engine.memcg_tree_gauges(id),
        events: engine.memcg_events(id).iter().collect(),
        swap_events: engine.memcg_events(id).swap_iter().collect(),
    };
    tree.groups.iter().zip(grouped.totals()).zip(&grouped.cell.groups).map(row).collect()
}
