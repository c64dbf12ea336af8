//! The world of a replay: devices that answer at once, and one page-table byte a page.

use refault_mm::{Ack, Effect, MemcgId, PageId, ThrottleReason, World};

/// The page is mapped.
pub(crate) const MAPPED: u8 = 1;
/// The accessed bit.
pub(crate) const YOUNG: u8 = 2;
/// The dirty bit.
pub(crate) const DIRTY: u8 = 4;
/// A write need not be announced.
pub(crate) const WRITABLE: u8 = 8;
/// Whoever maps the page maps it executable: stays when it is unmapped.
pub(crate) const EXECUTABLE: u8 = 16;

/// Who watches a replay from the side of the driver: a report does, a plain replay has nobody.
pub(crate) trait Observer {
    /// The frames of a folio are free.
    fn freed(&mut self, page: PageId, order: u8);
    /// An access missed: the page is in memory from now on, unless memory ran out.
    fn missed(&mut self, page: PageId);
}

impl Observer for () {
    #[inline(always)]
    fn freed(&mut self, _: PageId, _: u8) {}
    #[inline(always)]
    fn missed(&mut self, _: PageId) {}
}

/// Page tables, and what went wrong.
#[derive(Debug)]
pub(crate) struct Machine<O = ()> {
    /// A byte a page.
    pub(crate) pte: Vec<u8>,
    /// The memcg that ran out of memory.
    pub(crate) oom: Option<MemcgId>,
    /// How long tasks would have slept beyond their `memory.high`, if there were time.
    pub(crate) high_ns: u64,
    /// Who watches.
    pub(crate) observer: O,
}

impl<O> Machine<O> {
    pub(crate) fn new(pages: usize, observer: O) -> Machine<O> {
        Machine { pte: vec![0; pages], oom: None, high_ns: 0, observer }
    }
}

impl<O: Observer> World for Machine<O> {
    #[inline]
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Map { page, young, writable } => {
                let pte = &mut self.pte[page.index()];
                *pte |= MAPPED | if young { YOUNG } else { 0 } | if writable { WRITABLE } else { 0 };
            }
            Effect::Unmap { page } => self.pte[page.index()] &= DIRTY | EXECUTABLE,
            Effect::WriteProtect { page } => self.pte[page.index()] &= !(WRITABLE | DIRTY),
            Effect::Free { page, order } => self.observer.freed(page, order),
            Effect::Oom { memcg } => self.oom = Some(memcg),
            Effect::Throttle { reason: ThrottleReason::High, max_wait_ns } => self.high_ns += max_wait_ns,
            _ => {}
        }
        Ack::Done
    }

    #[inline]
    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        let pte = &mut self.pte[page.index()];
        let young = *pte & YOUNG != 0;
        *pte &= !YOUNG;
        young
    }

    #[inline]
    fn may_be_young(&self, page: PageId) -> bool {
        self.pte[page.index()] & YOUNG != 0
    }

    #[inline]
    fn is_executable(&self, page: PageId) -> bool {
        self.pte[page.index()] & EXECUTABLE != 0
    }

    #[inline]
    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        let pte = &mut self.pte[page.index()];
        let dirty = *pte & DIRTY != 0;
        *pte &= !DIRTY;
        dirty
    }
}
