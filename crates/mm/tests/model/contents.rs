//! Frames, files, swap and page tables, each with the version of what it holds.

use std::collections::{BTreeMap, BTreeSet};

use refault_mm::{Ack, Content, Effect, NodeId, PageId, ReclaimWork, SwapSlot, World};

/// I/O that is under way.
#[derive(Clone, Debug)]
pub(super) enum Io {
    /// So many pages.
    Read(PageId, u32),
    /// So many pages, from consecutive slots.
    SwapIn(PageId, SwapSlot, u32),
    /// The contents of consecutive pages.
    Write(PageId, Vec<u64>),
    /// Likewise.
    SwapOut(PageId, SwapSlot, Vec<u64>),
    Discard(SwapSlot, u32),
    /// So many pages to another node.
    Migrate(PageId, u32),
}

/// The pages of a folio.
pub(super) fn pages(first: PageId, order: u8) -> impl Iterator<Item = PageId> {
    (first.0..first.0 + (1 << order)).map(PageId)
}

/// How devices answer, by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// At once.
    Instant,
    /// Later.
    Slow,
    /// At once, later, or with an error.
    Flaky,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pte {
    pub(super) mapped: bool,
    pub(super) writable: bool,
    pub(super) young: bool,
    pub(super) dirty: bool,
    /// The next touch is a hint fault.
    pub(super) marked: bool,
}

/// Frames, files, swap and page tables.
#[derive(Debug)]
pub struct Contents {
    pub(super) device: Device,
    pub(super) turn: u64,
    pub(super) first_anon: u32,
    pub(super) frame: BTreeMap<PageId, u64>,
    pub(super) file: Vec<u64>,
    pub(super) swap: BTreeMap<SwapSlot, u64>,
    /// Compressed pages in memory.
    pub(super) zswap: BTreeMap<SwapSlot, u64>,
    /// Pages of zeros that were swapped out, with their version.
    pub(super) zeros: BTreeMap<PageId, u64>,
    /// Content of a version of a page; none: nothing can be compressed.
    pub kind: Option<fn(PageId, u64) -> Content>,
    /// Pages in the order in which zswap took them, and in which they were written to swap.
    pub stored: Vec<PageId>,
    pub swapped_out: Vec<PageId>,
    /// The worker of zswap runs when the test says so, even where the device answers at once.
    pub zswap_by_hand: bool,
    /// A slot in use may hold nothing: its page is zeros, or zswap had it or must not write it.
    pub may_be_empty: bool,
    /// Every write to swap fails.
    pub swap_fails: bool,
    /// Copies in some slots are worth keeping, on devices that answer at once.
    pub keeps_copies: bool,
    /// Writes to swap that were tried.
    pub swap_tries: u64,
    /// The slot that last took the content of an anonymous page.
    pub(super) slot_of: BTreeMap<PageId, SwapSlot>,
    pub(super) pte: Vec<Pte>,
    pub(super) pending: Vec<Io>,
    /// By node: whether it is of the top tier. Pages that go to others are demoted; so many were.
    pub(super) top_tier: Vec<bool>,
    pub(super) demoted: u64,
    pub(super) may_drop: BTreeSet<PageId>,
    pub(super) dropped: BTreeSet<PageId>,
    pub violations: Vec<String>,
    pub flusher_woken: bool,
    /// Questions for the processor: every second and every third one is answered with yes.
    asked: [u32; 2],
    /// A task gave it up before it reclaimed.
    pub(super) yielded: bool,
}

impl Contents {
    pub(super) fn new(device: Device, files: u32, pages: usize) -> Contents {
        Contents {
            device,
            turn: 0,
            first_anon: files,
            frame: BTreeMap::new(),
            file: vec![0; pages],
            swap: BTreeMap::new(),
            zswap: BTreeMap::new(),
            zeros: BTreeMap::new(),
            kind: None,
            stored: Vec::new(),
            swapped_out: Vec::new(),
            zswap_by_hand: false,
            may_be_empty: false,
            swap_fails: false,
            keeps_copies: false,
            swap_tries: 0,
            slot_of: BTreeMap::new(),
            pte: vec![Pte::default(); pages],
            pending: Vec::new(),
            top_tier: Vec::new(),
            demoted: 0,
            may_drop: BTreeSet::new(),
            dropped: BTreeSet::new(),
            violations: Vec::new(),
            flusher_woken: false,
            asked: [0; 2],
            yielded: false,
        }
    }

    /// Zeros, pages of one word, and pages that are more or less compressible.
    pub fn mixed(page: PageId, version: u64) -> Content {
        if version == 0 {
            return Content::Zero;
        }
        let h = (u64::from(page.0) << 32 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match h % 10 {
            0 | 1 => Content::Zero,
            2 => Content::SameFilled,
            3 => Content::Compressed { bytes: 4096 + (h / 10 % 64) as u32 },
            _ => Content::Compressed { bytes: (h / 10 % 4000) as u32 + 30 },
        }
    }

    pub(super) fn zswap_store(&mut self, page: PageId, slot: SwapSlot) -> Ack {
        self.turn += 1;
        if self.device == Device::Flaky && self.turn.is_multiple_of(5) {
            return Ack::Failed;
        }
        if self.zswap.insert(slot, self.frame[&page]).is_some() {
            self.violations.push(format!("{slot:?} is stored over another page"));
        }
        self.zeros.remove(&page);
        self.slot_of.insert(page, slot);
        self.stored.push(page);
        Ack::Done
    }

    pub(super) fn swap_out(&mut self, page: PageId, slot: SwapSlot, order: u8) -> Ack {
        let mut contents = Vec::new();
        for p in pages(page, order) {
            self.swapped_out.push(p);
            // Zeros that are written are on the device.
            self.zeros.remove(&p);
            contents.push(self.frame[&p]);
        }
        self.start(Io::SwapOut(page, slot, contents))
    }

    /// Fills a page with what was kept.
    pub(super) fn fill(&mut self, page: PageId, version: Option<u64>) {
        match version {
            Some(v) => _ = self.frame.insert(page, v),
            None => self.violations.push(format!("{page:?} is filled with what was not kept")),
        }
    }

    pub(super) fn is_anon(&self, page: PageId) -> bool {
        page.0 >= self.first_anon
    }

    pub(super) fn start(&mut self, io: Io) -> Ack {
        self.turn += 1;
        let ack = match (self.device, self.turn % 7) {
            (Device::Instant, _) | (Device::Flaky, 1 | 2) => Ack::Done,
            (Device::Flaky, 3) => Ack::Failed,
            _ => Ack::Pending,
        };
        match ack {
            Ack::Done => self.finish(io),
            Ack::Pending => self.pending.push(io),
            Ack::Failed => {}
        }
        ack
    }

    pub(super) fn finish(&mut self, io: Io) {
        match io {
            Io::Read(page, nr) => {
                for page in (page.0..page.0 + nr).map(PageId) {
                    self.frame.insert(page, self.file[page.0 as usize]);
                }
            }
            Io::SwapIn(page, slot, nr) => {
                for (page, slot) in (page.0..page.0 + nr).map(PageId).zip((slot.0..).map(SwapSlot)) {
                    match self.swap.get(&slot) {
                        Some(&v) => _ = self.frame.insert(page, v),
                        None => self.violations.push(format!("{page:?}: {slot:?} holds nothing")),
                    }
                }
            }
            Io::Write(page, versions) => {
                let first = page.0 as usize;
                self.file[first..first + versions.len()].copy_from_slice(&versions);
            }
            Io::SwapOut(page, slot, versions) => {
                for (i, version) in (0..).zip(versions) {
                    self.swap.insert(SwapSlot(slot.0 + i), version);
                    self.slot_of.insert(PageId(page.0 + i), SwapSlot(slot.0 + i));
                }
            }
            Io::Migrate(..) => {}
            Io::Discard(first, pages) => {
                if let Some((slot, _)) = self.swap.range(first..first.nth(pages)).next() {
                    self.violations.push(format!("{slot:?} is discarded and holds a page"));
                }
            }
        }
    }

    pub(super) fn migrate(&mut self, page: PageId, order: u8, to: NodeId) -> Ack {
        for p in pages(page, order) {
            if self.pte[p.0 as usize].mapped {
                self.violations.push(format!("{p:?} is mapped and moves"));
            }
        }
        let ack = self.start(Io::Migrate(page, 1 << order));
        let top_tier = self.top_tier.get(to.index()).copied().unwrap_or(true);
        self.demoted += if ack == Ack::Failed || top_tier { 0 } else { 1 << order };
        ack
    }

    pub(super) fn is_migrating(&self, page: PageId) -> bool {
        let has = |io: &Io| matches!(io, Io::Migrate(first, nr) if (first.0..first.0 + nr).contains(&page.0));
        self.pending.iter().any(has)
    }

    /// A frame may go only if its content is somewhere else.
    pub(super) fn free(&mut self, page: PageId) {
        if self.is_migrating(page) {
            self.violations.push(format!("{page:?} is freed on its way to another node"));
        }
        let Some(version) = self.frame.remove(&page) else { return };
        let kept = if self.is_anon(page) {
            let slot = self.slot_of.get(&page);
            let stored = || slot.and_then(|s| self.zswap.get(s).or_else(|| self.swap.get(s)));
            self.zeros.get(&page).or_else(stored).copied()
        } else {
            Some(self.file[page.0 as usize])
        };
        if kept == Some(version) {
            return;
        }
        if self.is_anon(page) && self.may_drop.contains(&page) {
            self.dropped.insert(page);
        } else {
            self.violations.push(format!("{page:?}: version {version} freed, kept is {kept:?}"));
        }
    }
}

impl World for Contents {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Read { page, order } => return self.start(Io::Read(page, 1 << order)),
            Effect::SwapIn { page, slot, order } => return self.start(Io::SwapIn(page, slot, 1 << order)),
            Effect::Write { page, order } => {
                let contents = pages(page, order).map(|p| self.frame[&p]).collect();
                return self.start(Io::Write(page, contents));
            }
            Effect::SwapOut { .. } if self.swap_fails => {
                self.swap_tries += 1;
                assert!(self.swap_tries < 1_000_000, "it tries to write for ever");
                return Ack::Failed;
            }
            Effect::SwapOut { page, slot, order } => return self.swap_out(page, slot, order),
            Effect::Migrate { page, order, to, .. } => return self.migrate(page, order, to),
            Effect::Map { page, young, writable } => {
                if self.is_migrating(page) {
                    self.violations.push(format!("{page:?} is mapped on its way to another node"));
                }
                // A fault hands out zeroed frames, for every page of a large folio.
                if self.is_anon(page) && !self.frame.contains_key(&page) {
                    self.frame.insert(page, 0);
                    // Zeros in swap are known by page only, so that a page may have been dropped
                    // whose slot was given up before.
                    if self.may_drop.contains(&page) {
                        self.dropped.insert(page);
                    }
                }
                let dirty = self.pte[page.0 as usize].dirty;
                self.pte[page.0 as usize] = Pte { mapped: true, writable, young, dirty, marked: false };
            }
            Effect::Unmap { page } => {
                let dirty = self.pte[page.0 as usize].dirty;
                self.pte[page.0 as usize] = Pte { dirty, ..Pte::default() };
            }
            Effect::WriteProtect { page } => {
                let pte = &mut self.pte[page.0 as usize];
                (pte.writable, pte.dirty) = (false, false);
            }
            Effect::Free { page, order } => pages(page, order).for_each(|p| self.free(p)),
            Effect::FreeSlot { slot } => {
                // The next owner is not to be taken for this page.
                self.slot_of.retain(|_, s| *s != slot);
                if self.zswap.contains_key(&slot) {
                    self.violations.push(format!("{slot:?} is free and still in zswap"));
                }
                if self.swap.remove(&slot).is_none() && self.device == Device::Instant && !self.may_be_empty {
                    self.violations.push(format!("{slot:?} freed and empty"));
                }
            }
            Effect::WakeFlusher => {
                self.flusher_woken = true;
                return if self.device == Device::Instant { Ack::Done } else { Ack::Pending };
            }
            Effect::ZeroFill { page, order } => {
                pages(page, order).for_each(|p| self.fill(p, self.zeros.get(&p).copied()));
            }
            Effect::ZswapStore { page, slot } => return self.zswap_store(page, slot),
            Effect::ZswapLoad { page, slot } => self.fill(page, self.zswap.get(&slot).copied()),
            Effect::ZswapDrop { slot } => {
                if self.zswap.remove(&slot).is_none() {
                    self.violations.push(format!("{slot:?} is dropped and not in zswap"));
                }
            }
            Effect::WakeZswap => {
                let by_itself = self.device == Device::Instant && !self.zswap_by_hand;
                return if by_itself { Ack::Done } else { Ack::Pending };
            }
            // As if there were someone who waits, and a kswapd that gets the processor now and
            // then.
            Effect::Throttle { .. } | Effect::WakeKswapd { .. } if self.device != Device::Instant => {
                return Ack::Pending;
            }
            Effect::Discard { first, pages } => return self.start(Io::Discard(first, pages)),
            Effect::WakeKswapd { .. } | Effect::Throttle { .. } | Effect::Unthrottle { .. } | Effect::Oom { .. } => {}
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.pte[page.0 as usize].young)
    }

    fn kswapd_yields(&mut self, _: &ReclaimWork) -> bool {
        self.asked[0] += 1;
        self.device != Device::Instant && self.asked[0].is_multiple_of(2)
    }

    fn task_yields(&mut self) -> bool {
        self.asked[1] += 1;
        let yields = self.device != Device::Instant && self.asked[1].is_multiple_of(3);
        self.yielded |= yields;
        yields
    }

    fn keeps_swap_copy(&self, slot: SwapSlot) -> bool {
        self.keeps_copies && slot.0.is_multiple_of(3)
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.pte[page.0 as usize].dirty)
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        page.0.is_multiple_of(3)
    }

    fn is_shared_executable(&self, page: PageId) -> bool {
        page.0.is_multiple_of(11)
    }

    fn content(&mut self, page: PageId) -> Content {
        let Some(kind) = self.kind else { return Content::Compressed { bytes: 4096 } };
        let content = kind(page, self.frame[&page]);
        if content == Content::Zero {
            self.zeros.insert(page, self.frame[&page]);
        }
        content
    }
}
