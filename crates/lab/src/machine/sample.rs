//! Samples of the time series, and the end of a run.

use refault_mm::{Counter, MemcgId, PsiKind};

use super::state::Machine;
use crate::results::RunResult;
use crate::sched::{Event, Thread};
use crate::task::Task;

impl Machine {
    /// A row of the time series, and the next one announced.
    pub(super) fn take_sample(&mut self) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        let [ops, accesses, hits] = self.totals();
        let engine = &self.kernel.engine;
        let gauges = engine.node_gauges();
        let get = |name: &str| gauges.iter().find(|g| g.name == name).map_or(0.0, |g| g.value as f64);
        let vmstat = engine.vmstat();
        let refaults = vmstat.get(Counter::WorkingsetRefaultFile) + vmstat.get(Counter::WorkingsetRefaultAnon);
        let seqs = engine.lru_gen_seqs(MemcgId::ROOT);
        let psi = [PsiKind::Some, PsiKind::Full].map(|k| self.threads.pressure.read(0, now_ns, k).avg10);
        let row = [
            ops as f64,
            accesses as f64,
            hits as f64,
            engine.free_pages() as f64,
            get("inactive_anon") + get("active_anon"),
            get("inactive_file") + get("active_file"),
            engine.swap_used_pages() as f64,
            refaults as f64,
            vmstat.get(Counter::Pswpout) as f64,
            get("file_dirty"),
            seqs.0 as f64,
            seqs.1 as f64,
            psi[0],
            psi[1],
        ];
        match &self.tiering {
            None => self.series.push(now_ns, &row),
            Some(tiering) => self.series.push(now_ns, &[&row[..], &tiering.columns(&self.kernel)].concat()),
        }
        if self.check {
            self.conserves()?;
        }
        // Samples alone do not keep a machine going in which nothing else happens.
        if self.clock.announced() <= usize::from(self.spec.machine.dirty_expire_ns > 0) {
            return Ok(());
        }
        self.clock.push(now_ns + self.spec.sample_ns.max(1), Event::Sample);
        Ok(())
    }

    /// Operations, accesses and hits of all tasks.
    fn totals(&self) -> [u64; 3] {
        let done = self.threads.iter().filter_map(Thread::task).flat_map(Task::all_done);
        done.fold([0; 3], |sum, d| [sum[0] + d.ops, sum[1] + d.accesses, sum[2] + d.hits])
    }

    /// The end: checks, and the result.
    pub(super) fn finish(mut self) -> Result<RunResult, String> {
        self.take_sample()?;
        if self.check {
            self.kernel.engine.validate()?;
        }
        Ok(self.result())
    }
}
