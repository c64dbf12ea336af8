//! Budget of memory: the limit, and the use by content, by the store, and by the pager itself.

use refault_mm::{Engine, KswapdStep, MemcgId, World};

use crate::uffd::PAGE;

/// The limits of a region, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// `memory.max`: what its pages, the pool and the pager itself may take together.
    pub memory_max: usize,
    /// `memory.high`: beyond it, counted likewise, the thread that faults makes room, and waits the
    /// longer the further beyond. `usize::MAX`: never. A region is not made with less than 4 MiB;
    /// later any number will do, and slows down the thread that faults.
    pub memory_high: usize,
    /// `memory.swap.max`: what may be out of memory, before compression.
    pub swap_max: usize,
    /// `memory.zswap.max`: what the pool may take of the memory. 0 if there is no pool.
    pub zswap_max: usize,
}

/// The memory of a driver, in pages, and what the pager itself takes of it.
pub(crate) struct Budget {
    /// `memory.max`, in pages.
    pub(crate) max_pages: u64,
    /// Sum of the min marks, in pages: free pages up to it are left to reclaim.
    pub(crate) min_mark: u64,
    /// Most pages that were in use at one time.
    pub(crate) peak_pages: u64,
    /// Bytes that the pager takes beyond what it can ask for.
    pub(crate) fixed_bytes: usize,
    /// The store and the pager are not taken from the memory.
    pub(crate) overhead_beside: bool,
}

impl Budget {
    pub(crate) fn new(engine: &Engine, fixed_bytes: usize) -> Budget {
        let mut budget = Budget { max_pages: 0, min_mark: 0, peak_pages: 0, fixed_bytes, overhead_beside: false };
        budget.set_max(engine, engine.managed_pages());
        budget
    }

    /// The machine has another size from now on.
    pub(crate) fn set_max(&mut self, engine: &Engine, pages: u64) {
        self.max_pages = pages;
        self.min_mark = engine.zones().map(|(.., marks)| marks.min).sum();
    }

    /// Reclaim is at work, and what is left is for it.
    pub(crate) fn is_short(&self, engine: &Engine, kswapd_awake: bool) -> bool {
        kswapd_awake && engine.free_pages() <= self.min_mark
    }

    pub(crate) fn note_peak(&mut self, engine: &Engine) {
        self.peak_pages = self.peak_pages.max(used_pages(engine));
    }

    /// Sets the bytes that the store and the pager use. They are taken even if they are not free;
    /// reclaim makes up for it. `group`: they count against its `memory.high`.
    pub(crate) fn charge(&mut self, engine: &mut Engine, group: Option<MemcgId>, bytes: usize) {
        if self.overhead_beside {
            return;
        }
        let pages = bytes.div_ceil(PAGE) as u64;
        engine.set_external_pages(pages);
        // The group is there, so this does not fail.
        _ = group.map(|group| engine.set_memcg_external_pages(group, pages));
        self.note_peak(engine);
    }
}

/// Pages of memory in use: for content, the store and the pager.
pub(crate) fn used_pages(engine: &Engine) -> u64 {
    engine.managed_pages() - engine.free_pages()
}

/// Bytes of the engine's tables.
pub(crate) fn engine_bytes(engine: &Engine) -> usize {
    let (folios, nodes, swap) = engine.memory_bytes();
    folios + nodes + swap
}

/// A step of background reclaim. Whether it stays awake.
pub(crate) fn kswapd_step(engine: &mut Engine, world: &mut impl World) -> bool {
    engine.kswapd_step(world) != KswapdStep::Sleep
}
