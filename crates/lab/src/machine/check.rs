//! Invariants of the machine: frames, requests, bytes, pressure.

use refault_mm::{Counter, PageId, PsiKind};

use super::state::Machine;
use crate::device::PAGE_BYTES;
use crate::sched::Resource;

impl Machine {
    /// Checks the invariants of the machine. An error says what does not, and when.
    pub(super) fn conserves(&mut self) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        let checks = [
            Machine::check_engine,
            Machine::check_requests,
            Machine::check_bytes,
            Machine::check_nodes,
            Machine::check_contention,
            Machine::check_cpu_time,
        ];
        let checked = checks.into_iter().try_for_each(|check| check(self)).and_then(|()| self.check_pressure());
        checked.map_err(|what| format!("at {now_ns} ns: {what}"))
    }

    fn check_engine(&self) -> Result<(), String> {
        self.kernel.engine.validate_node()
    }

    /// Every request that a device was given has ended or is under way, on both sides; zram holds
    /// what it says.
    fn check_requests(&self) -> Result<(), String> {
        let storage = &self.kernel.hw.storage;
        let (mut submitted, mut depth, mut ended) = (0, 0, 0);
        for d in storage.devices.iter().filter(|d| d.spec().synchronous.is_none()) {
            d.validate().map_err(|e| format!("{}: {e}", d.spec().name))?;
            submitted += d.stats().submitted;
            depth += d.stats().depth;
            ended += d.stats().reads + d.stats().writes;
        }
        let (in_flight, completed) = self.requests.counts();
        if submitted != depth + ended || ended != completed || depth != in_flight {
            return Err(format!(
                "{submitted} requests, {ended} ended, {depth} under way; {completed} known to have ended, {in_flight} remembered"
            ));
        }
        storage.swap.iter().filter_map(|s| s.zram.as_ref()).try_for_each(|zram| zram.validate())
    }

    /// Bytes of devices are the pages that the engine counts.
    fn check_bytes(&self) -> Result<(), String> {
        let written: u64 = self.kernel.hw.storage.devices.iter().map(|d| d.stats().write_bytes).sum();
        let direct = self.kernel.hw.storage.direct_writes();
        let counted = (self.kernel.engine.vmstat().get(Counter::NrWritten) + direct) * PAGE_BYTES;
        // Bytes that a device has written and not reported yet are in no counter, and only they.
        match written == counted {
            true => Ok(()),
            false => Err(format!("devices wrote {written} bytes, the engine counts {counted}")),
        }
    }

    /// Entries of page tables know the node of their page.
    fn check_nodes(&self) -> Result<(), String> {
        if self.tiering.is_none() {
            return Ok(());
        }
        let node_of = |page: PageId| self.kernel.engine.page_node(page);
        let wrong = |&(page, node): &(PageId, usize)| node_of(page).is_none_or(|n| n.index() != node);
        match self.kernel.hw.tables.entries().find(wrong) {
            None => Ok(()),
            Some((PageId(n), node)) => {
                let engine = node_of(PageId(n));
                Err(format!("page {n} is mapped on node {node}, the engine says {engine:?}"))
            }
        }
    }

    /// No lock is held by two CPUs at once.
    fn check_contention(&self) -> Result<(), String> {
        self.kernel.contention.as_ref().map_or(Ok(()), |contention| contention.validate())
    }

    /// Nobody had CPU time that there was not.
    fn check_cpu_time(&self) -> Result<(), String> {
        let (now_ns, cpus) = (self.clock.now_ns(), self.spec.machine.cpus);
        let busy_ns: u64 = (0..self.threads.iter().len()).map(|t| self.threads.ran_ns(t, now_ns)).sum();
        match busy_ns <= now_ns * u64::from(cpus) {
            true => Ok(()),
            false => Err(format!("{cpus} CPUs were busy for {busy_ns} ns")),
        }
    }

    /// Nobody is fully stalled for longer than someone is.
    fn check_pressure(&mut self) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        for g in 0..self.threads.pressure.len() {
            let [some, full] =
                [PsiKind::Some, PsiKind::Full].map(|k| self.threads.pressure.read(g, now_ns, Resource::Memory, k));
            if full.total_us > some.total_us {
                return Err(format!("pressure of group {g}: full {full:?}, some {some:?}"));
            }
        }
        Ok(())
    }
}
