//! The world of a replay: devices that answer at once, and one page-table byte a page.

use super::swap::SwapPool;
use refault_mm::{Ack, Content, Effect, MemcgId, PageId, ThrottleReason, World};

/// The page is mapped.
pub const MAPPED: u8 = 1;
/// The accessed bit.
pub const YOUNG: u8 = 2;
/// The dirty bit.
pub const DIRTY: u8 = 4;
/// Writable: a write makes no call to the engine.
pub const WRITABLE: u8 = 8;
/// The page is mapped executable; stays when it is unmapped.
pub const EXECUTABLE: u8 = 16;

/// Observer of a replay from the side of the driver: a report is one, a plain replay has none.
pub trait Observer {
    /// The frames of a folio are free.
    fn freed(&mut self, page: PageId, order: u8);
    /// An access missed: the page is in memory from now on, unless memory ran out.
    fn missed(&mut self, page: PageId);
    /// A folio of a file is read from its device.
    #[inline(always)]
    fn read(&mut self, _page: PageId, _order: u8) {}
}

impl Observer for () {
    #[inline(always)]
    fn freed(&mut self, _: PageId, _: u8) {}
    #[inline(always)]
    fn missed(&mut self, _: PageId) {}
}

/// Page tables, and what went wrong.
#[derive(Clone, Debug)]
pub struct ReplayWorld<O = ()> {
    /// A byte a page.
    pub pte: Vec<u8>,
    /// The memcg that ran out of memory.
    pub oom: Option<MemcgId>,
    /// Nanoseconds that tasks would have slept above their `memory.high`, if there were time.
    pub high_ns: u64,
    /// The pool and the traffic of swap; none: nobody asked for a kind of swap.
    pub swap: Option<Box<SwapPool>>,
    /// Its observer.
    pub observer: O,
}

impl<O> ReplayWorld<O> {
    /// Page tables of `pages` pages, none mapped.
    pub fn new(pages: usize, observer: O) -> ReplayWorld<O> {
        ReplayWorld { pte: vec![0; pages], oom: None, high_ns: 0, swap: None, observer }
    }

    /// Hands an effect to the swap that was asked for, if there is one.
    #[inline(always)]
    fn of_swap(&mut self, effect: impl FnOnce(&mut SwapPool)) {
        if let Some(swap) = &mut self.swap {
            effect(swap);
        }
    }
}

/// Accessed bits of eight entries, one bit each. The product moves the lowest bit of each byte to a
/// place of its own in the highest byte.
#[inline(always)]
fn young_of_eight(ptes: [u8; 8]) -> u64 {
    let lowest = u64::from_le_bytes(ptes) >> YOUNG.trailing_zeros() & 0x0101_0101_0101_0101;
    lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl<O: Observer> World for ReplayWorld<O> {
    // The engine knows which effect it is where it has it.
    #[inline(always)]
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Map { page, young, writable } => {
                let pte = &mut self.pte[page.index()];
                *pte |= MAPPED | if young { YOUNG } else { 0 } | if writable { WRITABLE } else { 0 };
            }
            Effect::Unmap { page } => self.pte[page.index()] &= DIRTY | EXECUTABLE,
            Effect::WriteProtect { page } => self.pte[page.index()] &= !(WRITABLE | DIRTY),
            Effect::Read { page, order } => self.observer.read(page, order),
            Effect::Free { page, order } => self.observer.freed(page, order),
            Effect::Oom { memcg } => self.oom = Some(memcg),
            Effect::Throttle { reason: ThrottleReason::High, max_wait_ns } => self.high_ns += max_wait_ns,
            Effect::SwapOut { page, order, slot } => {
                return self.swap.as_mut().map_or(Ack::Done, |swap| swap.swap_out(page, order, slot));
            }
            Effect::SwapIn { page, order, .. } => self.of_swap(|swap| swap.swap_in(page, order)),
            Effect::ZswapStore { page, .. } => self.of_swap(|swap| swap.zswap_store(page)),
            Effect::ZswapLoad { page, .. } => self.of_swap(|swap| swap.zswap_load(page)),
            Effect::FreeSlot { slot } => self.of_swap(|swap| swap.free_slot(slot)),
            // Devices answer at once, and nobody waits: the engine flushes, reclaims and compresses
            // by itself. The data of pages and slots is not kept.
            Effect::ZeroFill { .. }
            | Effect::ZswapDrop { .. }
            | Effect::Write { .. }
            | Effect::Discard { .. }
            | Effect::Migrate { .. }
            | Effect::WakeFlusher
            | Effect::WakeKswapd { .. }
            | Effect::WakeZswap
            | Effect::Throttle { .. }
            | Effect::Unthrottle { .. } => {}
        }
        Ack::Done
    }

    #[inline(always)]
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
    fn young_among(&self, first: PageId, among: u64) -> u64 {
        if among == 0 {
            return 0;
        }
        let end = first.index() + 64 - among.leading_zeros() as usize;
        let (words, rest) = self.pte[first.index()..end].as_chunks::<8>();
        let mut young = words.iter().enumerate().fold(0, |bits, (i, word)| bits | young_of_eight(*word) << (8 * i));
        for (i, pte) in rest.iter().enumerate() {
            young |= u64::from(pte & YOUNG != 0) << (8 * words.len() + i);
        }
        young & among
    }

    fn content(&mut self, page: PageId) -> Content {
        self.swap.as_ref().map_or(Content::Compressed { bytes: 4096 }, |swap| swap.content(page))
    }

    #[inline]
    fn is_executable(&self, page: PageId) -> bool {
        self.pte[page.index()] & EXECUTABLE != 0
    }

    #[inline(always)]
    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        let pte = &mut self.pte[page.index()];
        let dirty = *pte & DIRTY != 0;
        *pte &= !DIRTY;
        dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked for many pages at once it says what it says of each.
    #[test]
    fn young_pages_are_the_same_by_words_and_one_by_one() {
        let mut machine = ReplayWorld::new(200, ());
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        for case in 0..2000 {
            let page = (next() % 200) as usize;
            machine.pte[page] = (next() & 15) as u8;
            let first = PageId((next() % 137) as u32);
            let among = next() << 33 ^ next() << 11 ^ next() >> (case % 40);
            let one_by_one = (0..64).filter(|&i| among >> i & 1 == 1 && machine.may_be_young(PageId(first.0 + i)));
            let expected = one_by_one.fold(0, |bits, i| bits | 1 << i);
            assert_eq!(machine.young_among(first, among), expected, "{first:?} {among:#x}");
        }
        assert_eq!(machine.young_among(PageId(199), 1), u64::from(machine.may_be_young(PageId(199))));
    }
}
