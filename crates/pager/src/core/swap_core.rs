//! State of the core: the engine, and the anonymous memory it decides about.

use std::sync::Arc;

use refault_mm::{Engine, MemcgId};

use super::budget::{Budget, Limits, engine_bytes, kswapd_step};
use super::faults::{Waiting, WaitingForFrame};
use super::memory::Memory;
use super::operations::Operations;
use crate::uffd::PAGE;

/// The engine with the anonymous memory it decides about.
pub(crate) struct Core<O> {
    pub(crate) engine: Engine,
    pub(crate) memory: Memory<O>,
    /// The memcg of its pages.
    pub(crate) group: MemcgId,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    /// When time last went on, in nanoseconds since it began.
    pub(crate) now_ns: u64,
    /// Nanoseconds without room after which a fault ends in an error.
    pub(crate) stall_limit_ns: u64,
    /// Faults on pages that are between two states.
    pub(crate) waiting: Waiting,
    pub(super) waiting_for_frame: WaitingForFrame,
    /// Steps without result while faults waited for a frame, and the number of pages moved out and
    /// in before them.
    pub(super) fruitless: (u32, u64),
    /// Pages that stay in staging places without being written: always, and together with the
    /// samples.
    pub(crate) standby_pages: u64,
    pub(crate) pages_to_keep: u64,
    /// Staging places kept because their frames are wanted, and their largest number. The largest
    /// number counts as the pager's own, whether the places are there or not.
    pub(crate) frames_to_keep: usize,
    pub(crate) most_frames: usize,
    /// Pages that came back from staging places since the driver looked.
    pub(crate) rescued: u64,
    /// The evictor sleeps until it is told of work.
    pub(crate) evictor_sleeps: bool,
    /// Someone is at work on background reclaim.
    pub(crate) evictor_core: bool,
}

impl<O: Operations> Core<O> {
    pub(crate) fn new(
        engine: Engine,
        memory: Memory<O>,
        group: MemcgId,
        limits: Limits,
        fixed_bytes: usize,
    ) -> Core<O> {
        Core {
            budget: Budget::new(&engine, fixed_bytes),
            engine,
            memory,
            group,
            limits,
            now_ns: 0,
            stall_limit_ns: u64::MAX,
            waiting: Waiting::default(),
            waiting_for_frame: WaitingForFrame::default(),
            fruitless: (0, 0),
            standby_pages: 0,
            pages_to_keep: 0,
            frames_to_keep: 0,
            most_frames: 0,
            rescued: 0,
            evictor_sleeps: false,
            evictor_core: false,
        }
    }

    /// Time goes on.
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time goes on, from {} to {now_ns}", self.now_ns);
        self.now_ns = now_ns;
        self.engine.set_now_ns(now_ns);
    }

    /// One step of background reclaim.
    pub(crate) fn kswapd_step(&mut self) {
        if self.memory.kswapd_awake {
            self.memory.kswapd_awake = kswapd_step(&mut self.engine, &mut self.memory);
        }
    }

    /// Pages that the next steps of background reclaim may ask the kernel about.
    pub(crate) fn pages_to_ask_about(&mut self) -> Vec<u32> {
        let Core { engine, memory, group, now_ns, .. } = self;
        if memory.kswapd_awake { memory.pages_to_ask_about(engine, *group, *now_ns) } else { Vec::new() }
    }

    /// Stores the answers: whether each page was written.
    pub(crate) fn fill_written_cache(&mut self, answers: Vec<(u32, bool)>) {
        self.memory.fill_written_cache(answers, self.now_ns);
    }

    /// Charges the memory that the pool and the pager take.
    pub(crate) fn charge_overhead(&mut self) {
        let bytes = self.own_bytes() + self.store_bytes() as usize;
        self.budget.charge(&mut self.engine, Some(self.group), bytes);
    }

    /// Bytes of memory that the store takes.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.memory.area.stats().usage.memory_bytes
    }

    /// Bytes that the pager itself takes.
    pub(crate) fn own_bytes(&self) -> usize {
        let frames = self.most_frames * PAGE;
        let tables = self.memory.table_bytes() + self.memory.high.bytes();
        self.budget.fixed_bytes + engine_bytes(&self.engine) + tables + frames
    }

    /// Operations below the core.
    pub(crate) fn ops(&self) -> Arc<O> {
        self.memory.ops.clone()
    }
}
