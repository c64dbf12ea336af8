//! The kernel of the machine: the engine, the hardware below it, and what a call of it costs.
//!
//! A caller of the engine then [settles](Kernel::settle): what the call asked for is announced to
//! the clock and to threads, and its price is the caller's. Thread bodies (`on_cpu`) and the ends
//! of I/O (`machine`) do so; it calls `hardware`, `sched`, `contention` and `cost`.

use refault_mm::{Engine, MemcgId, SwapWork, ThrottleReason};

use crate::contention::Contention;
use crate::cost::Costs;
use crate::hardware::Hardware;
use crate::sched::{ANY_WAIT, Clock, Event, Threads};

/// CPU time that an engine call set off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallCost {
    /// Reclaim: a memory stall.
    pub(crate) reclaim_ns: u64,
    /// Requests, synchronous reads, and slots of swap that were given back.
    pub(crate) io_ns: u64,
    /// The slots among it: no wait for data.
    pub(crate) freed_ns: u64,
}

impl CallCost {
    /// For a thread of the kernel all of it is its work.
    pub(crate) fn worker_ns(self) -> u64 {
        (self.reclaim_ns + self.io_ns).max(1_000)
    }
}

/// The engine and what is around it.
pub(crate) struct LabKernel {
    pub(crate) engine: Engine,
    pub(crate) hw: Hardware,
    pub(crate) costs: Costs,
    /// Locks and interrupts between CPUs; none: nobody waits for any.
    pub(crate) contention: Option<Contention>,
    /// The last call woke threads, which take a CPU that they may have.
    pub(crate) woke: bool,
    /// Work of the swap allocator that calls were charged for, from the start of the run on.
    swap_paid: SwapWork,
}

impl LabKernel {
    pub(crate) fn new(engine: Engine, hw: Hardware, costs: Costs, contention: Option<Contention>) -> LabKernel {
        LabKernel { engine, hw, costs, contention, woke: false, swap_paid: SwapWork::default() }
    }

    /// Sets the time of what happens next, for the engine and for its orders.
    pub(crate) fn set_now_ns(&mut self, now_ns: u64) {
        self.engine.set_now_ns(now_ns);
        self.hw.set_now_ns(now_ns);
    }

    /// The throttling that the last call asked for: why, and for how long at most.
    pub(crate) fn take_throttle(&mut self) -> Option<(ThrottleReason, u64)> {
        self.hw.pending.throttle.take()
    }

    /// The group for which the last call wants a task killed.
    pub(crate) fn take_oom(&mut self) -> Option<MemcgId> {
        self.hw.pending.oom.take()
    }

    /// The caller does not wait for the throttling that the call asked for.
    pub(crate) fn skip_throttle(&mut self) {
        if let Some((reason, _)) = self.take_throttle() {
            self.engine.throttle_ended(reason);
        }
    }

    /// Carries out what an engine call asked for, from `at_ns` on, and says what it costs.
    pub(crate) fn settle(&mut self, at_ns: u64, clock: &mut Clock, threads: &mut Threads) -> CallCost {
        let mut bill = self.work_done(at_ns);
        self.send_requests(&mut bill, at_ns, clock);
        if self.hw.storage.take_memory_change() {
            let pages = self.hw.storage.swap_memory_pages();
            let granted = self.engine.set_external_pages(pages);
            self.hw.storage.refuse_writes(!granted);
        }
        self.woke |= self.hw.pending.wakes();
        for node in std::mem::take(&mut self.hw.pending.wake_kswapd) {
            clock.push(at_ns, Event::Wake(threads.kswapd(node), ANY_WAIT));
        }
        for page in self.hw.tables.take_placed() {
            if let Some(node) = self.engine.page_node(page) {
                self.hw.tables.place(page, node);
            }
        }
        if std::mem::take(&mut self.hw.pending.wake_flusher) {
            clock.push(at_ns, Event::Wake(threads.flusher(), ANY_WAIT));
        }
        if std::mem::take(&mut self.hw.pending.wake_zswap) {
            clock.push(at_ns, Event::Wake(threads.zswap(), ANY_WAIT));
        }
        for reason in std::mem::take(&mut self.hw.pending.unthrottle) {
            threads.release_throttled(reason, at_ns, clock);
        }
        debug_assert!(!self.hw.storage.is_plugged(), "requests that nobody sends");
        bill
    }

    /// Work of the engine and of synchronous devices since the last call.
    fn work_done(&mut self, at_ns: u64) -> CallCost {
        let (work, swap) = (self.engine.take_work(), self.engine.swap_work());
        let paid = std::mem::replace(&mut self.swap_paid, swap);
        let [read_ns, write_ns] = self.hw.storage.take_cpu_ns();
        let [up_ns, down_ns] = self.hw.nodes.take_copied();
        let unmapped = self.hw.tables.take_unmapped();
        let c = &self.costs;
        let swap_ns = swap_ns(c, swap) - swap_ns(c, paid);
        let freed_ns = (swap.freed - paid.freed) * c.free_slot_ns;
        let pages_ns = work.split * c.split_page_ns + work.compressed * c.compress_page_ns + unmapped * c.unmap_page_ns;
        let mut bill = CallCost {
            reclaim_ns: c.walk_ns(&work) + swap_ns + pages_ns + write_ns + down_ns,
            io_ns: work.decompressed * c.decompress_page_ns + read_ns + up_ns + freed_ns,
            freed_ns,
        };
        if let Some(contention) = &mut self.contention {
            let mut demand = self.hw.take_demand();
            demand.scanned = work.scanned;
            (demand.slot_calls, demand.slot_ns) = (swap.calls - paid.calls, swap_ns);
            // Spinning is CPU time of the kernel.
            bill.reclaim_ns += contention.wait(at_ns, bill.reclaim_ns + bill.io_ns, &demand);
        }
        bill
    }

    /// Requests and discards reach their devices once the CPU has made them.
    fn send_requests(&mut self, bill: &mut CallCost, at_ns: u64, clock: &mut Clock) {
        if self.hw.storage.is_plugged() {
            let submissions = self.hw.storage.unplug();
            let filled = submissions.iter().filter(|s| !s.request.write && s.waiter.is_none());
            bill.io_ns += submissions.len() as u64 * self.costs.io_submit_ns
                + filled.map(|s| u64::from(s.request.pages)).sum::<u64>() * self.costs.fill_page_ns;
            clock.push_submission(at_ns + bill.io_ns, submissions);
        }
        self.send_discards(at_ns, clock);
    }

    /// Discards reach their devices. A task that is killed gives back its slots when the call that
    /// it was killed for is settled already.
    pub(crate) fn send_discards(&mut self, at_ns: u64, clock: &mut Clock) {
        for slot in std::mem::take(&mut self.hw.pending.discards) {
            clock.push(at_ns + self.hw.storage.discard_ns(slot), Event::Discarded(slot.0));
        }
    }
}

/// Nanoseconds of the swap allocator from the start on.
fn swap_ns(c: &Costs, work: SwapWork) -> u64 {
    work.calls * c.swap_call_ns + work.clusters * c.swap_cluster_ns + work.probes * c.swap_64_places_ns / 64
}
