//! A machine for tests of the engine.

use std::collections::BTreeMap;
use std::ops::Range;

use refault_mm::{Ack, Effect, PageId, ReclaimWork, SwapSlot, World};

/// A page table entry.
#[derive(Clone, Copy, Default, Debug)]
struct Pte {
    mapped: bool,
    young: bool,
    dirty: bool,
}

/// A machine that does everything at once, unless a test answers otherwise. It has page tables and
/// knows which page each swap slot holds; what is read from another slot fails the test.
///
/// Without further words no page is young and none is dirty.
pub struct AtOnce {
    /// Answer of a test to an effect, in place of the machine. Such effects are in
    /// [`AtOnce::noted`].
    pub answer: fn(&AtOnce, Effect) -> Option<Ack>,
    /// The effects that the test answered, in order.
    pub noted: Vec<Effect>,
    /// Accessed bits are kept: pages that are mapped are young when the engine says so, or when the
    /// test touches them.
    pub keeps_young: bool,
    /// Every page is dirty.
    pub all_dirty: bool,
    /// So many effects may be noted until the write queue is full.
    pub write_queue: usize,
    /// The page that is among the hottest.
    pub hottest: Option<PageId>,
    /// The page that several processes map executable.
    pub shared_executable: Option<PageId>,
    /// Pages that are mapped executable.
    pub executable: Range<u32>,
    /// Something holds every page in place.
    pub pinned: bool,
    /// kswapd gives up the processor after every batch, and reclaim for a task pauses.
    pub interrupts: bool,
    /// How often the worker of `vmpressure` was woken.
    pub vmpressure: u64,
    ptes: Vec<Pte>,
    slots: BTreeMap<SwapSlot, PageId>,
}

impl Default for AtOnce {
    fn default() -> AtOnce {
        AtOnce::answering(|_, _| None)
    }
}

impl AtOnce {
    /// One that leaves some answers to the test.
    pub fn answering(answer: fn(&AtOnce, Effect) -> Option<Ack>) -> AtOnce {
        AtOnce {
            answer,
            noted: Vec::new(),
            keeps_young: false,
            all_dirty: false,
            write_queue: usize::MAX,
            hottest: None,
            shared_executable: None,
            executable: 0..0,
            pinned: false,
            interrupts: false,
            vmpressure: 0,
            ptes: Vec::new(),
            slots: BTreeMap::new(),
        }
    }

    /// The same with every page dirty: all that is to go is to be written.
    #[must_use]
    pub fn dirty(self) -> AtOnce {
        AtOnce { all_dirty: true, ..self }
    }

    /// The same with accessed bits.
    #[must_use]
    pub fn with_accessed_bits(self) -> AtOnce {
        AtOnce { keeps_young: true, ..self }
    }

    fn pte(&mut self, page: PageId) -> &mut Pte {
        if self.ptes.len() <= page.index() {
            self.ptes.resize(page.index() + 1, Pte::default());
        }
        &mut self.ptes[page.index()]
    }

    /// Whether a page is mapped, with its accessed bit.
    pub fn mapped(&self, page: PageId) -> Option<bool> {
        self.ptes.get(page.index()).filter(|pte| pte.mapped).map(|pte| pte.young)
    }

    /// Sets the accessed bit of a page, as a processor does that finds it mapped.
    pub fn set_young(&mut self, page: PageId) {
        self.pte(page).young = true;
    }

    /// Sets the dirty bit of a page.
    pub fn set_dirty(&mut self, page: PageId) {
        self.pte(page).dirty = true;
    }

    /// The pages of the effects that were noted, which are forgotten.
    pub fn take_pages(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.noted).into_iter().filter_map(page_of).collect()
    }

    /// The page of the first effect that was noted, which is forgotten.
    pub fn take_page(&mut self) -> Option<PageId> {
        let first = (!self.noted.is_empty()).then(|| self.noted.remove(0));
        first.and_then(page_of)
    }
}

/// The first page that an effect is about.
fn page_of(effect: Effect) -> Option<PageId> {
    match effect {
        Effect::Read { page, .. }
        | Effect::SwapIn { page, .. }
        | Effect::Write { page, .. }
        | Effect::SwapOut { page, .. }
        | Effect::Migrate { page, .. } => Some(page),
        _ => None,
    }
}

/// The pages of a folio with their slots.
fn each(page: PageId, slot: SwapSlot, order: u8) -> impl Iterator<Item = (SwapSlot, PageId)> {
    (0..1u32 << order).map(move |i| (SwapSlot(slot.0 + i), PageId(page.0 + i)))
}

impl World for AtOnce {
    fn effect(&mut self, effect: Effect) -> Ack {
        let answer = (self.answer)(self, effect);
        if answer.is_some() {
            self.noted.push(effect);
        }
        match effect {
            _ if answer == Some(Ack::Failed) => {}
            Effect::Map { page, young, .. } => {
                let pte = self.pte(page);
                (pte.mapped, pte.young) = (true, young);
            }
            Effect::Unmap { page } => {
                let pte = self.pte(page);
                (pte.mapped, pte.young) = (false, false);
            }
            Effect::SwapOut { page, order, slot } => self.slots.extend(each(page, slot, order)),
            Effect::SwapIn { page, order, slot } => {
                for (slot, page) in each(page, slot, order) {
                    assert_eq!(self.slots.get(&slot), Some(&page), "{slot:?} is read for another page");
                }
            }
            Effect::FreeSlot { slot } => _ = self.slots.remove(&slot),
            _ => {}
        }
        answer.unwrap_or(Ack::Done)
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        self.keeps_young && std::mem::take(&mut self.pte(page).young)
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        self.all_dirty || std::mem::take(&mut self.pte(page).dirty)
    }

    fn is_write_queue_full(&self) -> bool {
        self.noted.len() >= self.write_queue
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        self.hottest == Some(page)
    }

    fn is_executable(&self, page: PageId) -> bool {
        self.executable.contains(&page.0)
    }

    fn is_shared_executable(&self, page: PageId) -> bool {
        self.shared_executable == Some(page)
    }

    fn wake_vmpressure(&mut self) {
        self.vmpressure += 1;
    }

    fn kswapd_yields(&mut self, _: &ReclaimWork) -> bool {
        self.interrupts
    }

    fn reclaim_pauses(&mut self, _: &ReclaimWork) -> bool {
        self.interrupts
    }

    fn is_pinned(&self, _: PageId) -> bool {
        self.pinned
    }
}
