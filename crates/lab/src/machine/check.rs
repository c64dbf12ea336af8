//! Samples of the time series, the end of a run, and what must hold at both.

use refault_mm::PsiKind;

use super::event::Event;
use super::{Machine, RunResult, Work};

impl Machine {
    /// A row of the time series, and the next one announced.
    pub(super) fn take_sample(&mut self) -> Result<(), String> {
        let [ops, accesses, hits] = self.totals();
        let gauges = self.engine.node_gauges();
        let get = |name: &str| gauges.iter().find(|g| g.name == name).map_or(0.0, |g| g.value as f64);
        let vmstat = self.engine.vmstat();
        let refaults = vmstat.get(refault_mm::Counter::WorkingsetRefaultFile)
            + vmstat.get(refault_mm::Counter::WorkingsetRefaultAnon);
        let seqs = self.engine.lru_gen_seqs(refault_mm::MemcgId::ROOT);
        let psi = [PsiKind::Some, PsiKind::Full].map(|k| self.pressure.read(0, self.now_ns, k).avg10);
        let row = [
            ops as f64,
            accesses as f64,
            hits as f64,
            self.engine.free_pages() as f64,
            get("inactive_anon") + get("active_anon"),
            get("inactive_file") + get("active_file"),
            self.engine.swap_used_pages() as f64,
            refaults as f64,
            vmstat.get(refault_mm::Counter::Pswpout) as f64,
            get("file_dirty"),
            seqs.0 as f64,
            seqs.1 as f64,
            psi[0],
            psi[1],
        ];
        match self.tiering {
            None => self.series.push(self.now_ns, &row),
            Some(_) => self.series.push(self.now_ns, &[&row[..], &self.tier_columns()].concat()),
        }
        if self.check {
            self.conserves()?;
        }
        // Samples alone do not keep a machine going in which nothing else happens.
        if self.events.is_empty() {
            return Ok(());
        }
        self.events.push(self.now_ns + self.spec.sample_ns.max(1), Event::Sample);
        Ok(())
    }

    /// Operations, accesses and hits of all tasks.
    fn totals(&self) -> [u64; 3] {
        let of = |t: &super::Thread| match &t.work {
            Some(Work::Task(task)) => {
                task.all_done().fold([0; 3], |sum, d| [sum[0] + d.ops, sum[1] + d.accesses, sum[2] + d.hits])
            }
            _ => [0; 3],
        };
        self.threads.iter().map(of).fold([0; 3], |sum, n| std::array::from_fn(|i| sum[i] + n[i]))
    }

    /// The end: checks, and the result.
    pub(super) fn finish(mut self) -> Result<RunResult, String> {
        self.take_sample()?;
        if self.check {
            self.engine.validate()?;
        }
        Ok(self.result())
    }

    /// What must hold at any time: frames, requests, bytes, pressure.
    fn conserves(&mut self) -> Result<(), String> {
        let at = |what: String| format!("at {} ns: {what}", self.now_ns);
        self.engine.validate_node().map_err(at)?;
        let (mut submitted, mut depth, mut ended) = (0, 0, 0);
        for d in self.hw.devices.iter().filter(|d| d.spec().synchronous.is_none()) {
            d.validate().map_err(|e| format!("{}: {e}", d.spec().name))?;
            submitted += d.stats().submitted;
            depth += d.stats().depth;
            ended += d.stats().reads + d.stats().writes;
        }
        if submitted != depth + ended || ended != self.completed || depth != self.in_flight.len() as u64 {
            return Err(format!(
                "at {} ns: {submitted} requests, {ended} ended, {depth} under way; {} seen to end, {} remembered",
                self.now_ns,
                self.completed,
                self.in_flight.len()
            ));
        }
        self.check_bytes()?;
        self.check_nodes()?;
        for zram in self.hw.swap.iter().filter_map(|s| s.zram.as_ref()) {
            zram.validate().map_err(|e| format!("at {} ns: {e}", self.now_ns))?;
        }
        for g in 0..self.pressure.len() {
            let [some, full] = [PsiKind::Some, PsiKind::Full].map(|k| self.pressure.read(g, self.now_ns, k));
            if full.total_us > some.total_us {
                return Err(format!("at {} ns: pressure of group {g}: full {full:?}, some {some:?}", self.now_ns));
            }
        }
        Ok(())
    }

    /// Entries of page tables know the node of their page.
    fn check_nodes(&self) -> Result<(), String> {
        if self.tiering.is_none() {
            return Ok(());
        }
        let wrong =
            |&(page, node): &(refault_mm::PageId, usize)| self.engine.page_node(page).is_none_or(|n| n.index() != node);
        match self.hw.entries().find(wrong) {
            None => Ok(()),
            Some((page, node)) => Err(format!(
                "at {} ns: page {} is mapped on node {node}, the engine says {:?}",
                self.now_ns,
                page.0,
                self.engine.page_node(page)
            )),
        }
    }

    /// Bytes of devices are the pages that the engine counts.
    fn check_bytes(&self) -> Result<(), String> {
        let stats = self.engine.vmstat();
        let get = |c| stats.get(c) * crate::device::PAGE_BYTES;
        let written: u64 = self.hw.devices.iter().map(|d| d.stats().write_bytes).sum();
        let counted = get(refault_mm::Counter::NrWritten);
        // What a device has written and not reported yet is in no counter, and only that.
        if written != counted {
            return Err(format!("at {} ns: devices wrote {written} bytes, the engine counts {counted}", self.now_ns));
        }
        Ok(())
    }
}
