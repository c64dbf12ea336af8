//! Rows of a recorded machine, spread over the cores.

use super::machine::{CellSettings, RecordedCell, RecordedMachine};
use crate::replay::policy::RowPolicy;
use crate::replay::{CellResult, Plan, PlugIn};
use crate::settings::{self, kernel_of};
use crate::threads::on_threads;
use crate::watch::Watch;
use refault_mm::Policy;
use refault_trace::Trace;

/// Bytes a page of a recording.
pub const PAGE_SIZE: u32 = 4096;

/// Replay of a recording in several sizes and under several policies.
#[derive(Debug)]
pub struct RecordedPlan<'a> {
    /// The machine.
    pub machine: &'a RecordedMachine,
    /// Its accesses page by page, which OPT needs.
    pub trace: Option<&'a Trace>,
    /// Memory sizes in pages.
    pub sizes: Vec<u64>,
    /// Policies; OPT is left out without a trace.
    pub policies: &'a [RowPolicy],
    /// Policies that a program brings.
    pub plug_ins: &'a [PlugIn],
    /// Settings of every run.
    pub settings: CellSettings<'a>,
    /// Threads.
    pub threads: usize,
    /// Progress and cancel.
    pub watch: Watch,
}

impl RecordedPlan<'_> {
    /// Runs the machine for every row; rows are by size, then by policy, plug-ins last.
    ///
    /// # Errors
    /// An impossible configuration, or cancel.
    pub fn run(&self) -> Result<Vec<CellResult>, String> {
        self.check_acts()?;
        let cells = self.cells();
        let jobs: Vec<&RecordedCell<'_>> = cells.iter().flatten().collect();
        let about = self.machine.about();
        let total = about.accesses * jobs.len() as u64;
        let progress = self.watch.accesses(format!("replaying {}", about.name), Some(total));
        let one = |cell: &RecordedCell<'_>| {
            self.watch.check()?;
            let done = self.machine.run(cell)?;
            progress.add(about.accesses);
            Ok(done)
        };
        let done = on_threads(self.threads, &jobs, &one);
        self.watch.check()?;
        let mut done = done.map_err(|e| format!("{}: {e}", about.name))?.into_iter();
        let mut opt = self.opt(cells.iter().any(Option::is_none))?.into_iter();
        let in_order = cells.iter().filter_map(|cell| if cell.is_some() { done.next() } else { opt.next() });
        Ok(in_order.collect())
    }

    /// Fails on a setting that does nothing under any of the policies.
    fn check_acts(&self) -> Result<(), String> {
        let kernel = self.settings.kernel.unwrap_or(kernel_of(&self.machine.about().recording));
        let config = |policy| {
            let mut cfg = settings::config(Some(kernel), policy);
            self.settings.set.iter().for_each(|set| set.apply(&mut cfg));
            cfg
        };
        let own = self.policies.iter().map(|&policy| match policy {
            RowPolicy::Linux(linux) => (policy.name(), Some(config(linux))),
            RowPolicy::Opt => (policy.name(), None),
        });
        let beside = self.plug_ins.iter().map(|plug_in| (plug_in.name.as_str(), Some(config(Policy::Lru))));
        let all: Vec<_> = own.chain(beside).collect();
        settings::check_acts(self.settings.set, all.iter().map(|(name, cfg)| (*name, cfg.as_ref())))
    }

    /// The runs in the order of the rows; none in the place of OPT.
    fn cells(&self) -> Vec<Option<RecordedCell<'_>>> {
        let settings = self.settings;
        let cell = |memory_pages, policy, plug_in| RecordedCell { policy, plug_in, memory_pages, settings };
        let mut cells = Vec::new();
        for &pages in &self.sizes {
            for &policy in self.policies {
                cells.push(match policy {
                    RowPolicy::Linux(policy) => Some(cell(pages, policy, None)),
                    RowPolicy::Opt => None,
                });
            }
            cells.extend(self.plug_ins.iter().map(|plug_in| Some(cell(pages, Policy::Lru, Some(plug_in)))));
        }
        cells
    }

    /// Rows of OPT, which knows pages only.
    fn opt(&self, is_wanted: bool) -> Result<Vec<CellResult>, String> {
        let Some(trace) = self.trace.filter(|_| is_wanted) else { return Ok(Vec::new()) };
        let plan = Plan {
            trace,
            accesses: trace.accesses.len() as u64,
            page_size: PAGE_SIZE,
            sizes: self.sizes.clone(),
            policies: &[(RowPolicy::Opt, None)],
            plug_ins: &[],
            swap_max_pages: u64::MAX,
            swap: None,
            kernel: self.settings.kernel.unwrap_or_default(),
            seed: self.settings.seed,
            windows: self.settings.windows,
            bits: self.settings.bits,
            lru_gen: self.settings.lru_gen,
            swap_map: false,
            threads: self.threads,
            watch: self.watch.clone(),
        };
        plan.run()
    }
}
