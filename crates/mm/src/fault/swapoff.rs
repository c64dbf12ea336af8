//! Adding swap devices and taking them away while they are in use.
//!
//! Taking one away reads back everything that is on it. Nothing new goes there meanwhile. If there
//! is no room, or a read fails, the device is as it was before; pages that were read are in memory,
//! and nothing is lost.
//!
//! Mechanism: `docs/mechanisms.md#swap-devices`.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::memory::Memory;
use crate::world::{Ack, Content, Effect, World};

/// Calls in a row without progress before swapoff gives up (`MAX_RECLAIM_RETRIES` of Linux).
const MAX_FRUITLESS_CALLS: u32 = 16;

/// How far taking a swap device away is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Swapoff {
    /// The device is gone.
    Done,
    /// I/O is under way, or kswapd has to make room: call again when some of that is done.
    Waiting,
    /// The device goes on as it was.
    Failed(SwapoffError),
}

/// Why a swap device could not be taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapoffError {
    /// There is no such device.
    NoDevice,
    /// There is no room for the pages on the device: the memcg whose limit is met, or the root.
    NoMemory(MemcgId),
    /// A page on the device could not be read.
    Read(PageId),
}

/// Why a page is not back yet.
enum Held {
    Io,
    /// There is no room now; writes under way, or kswapd, may make some.
    Room(MemcgId),
    For(SwapoffError),
}

/// A world in which want of room kills nobody: the device stays instead. Not generic: the engine is
/// compiled for it once, here, and not beside each driver.
struct Patient<'a>(&'a mut dyn World);

impl World for Patient<'_> {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Oom { .. } => Ack::Done,
            other => self.0.effect(other),
        }
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        self.0.test_and_clear_young(page)
    }

    fn before_walk(&mut self) {
        self.0.before_walk();
    }

    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        self.0.test_and_clear_young_count(page)
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        self.0.test_and_clear_dirty(page)
    }

    fn content(&mut self, page: PageId) -> Content {
        self.0.content(page)
    }

    fn is_write_queue_full(&self) -> bool {
        self.0.is_write_queue_full()
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        self.0.is_hottest(page)
    }

    fn is_shared_executable(&self, page: PageId) -> bool {
        self.0.is_shared_executable(page)
    }

    fn is_pinned(&self, page: PageId) -> bool {
        self.0.is_pinned(page)
    }
}

fn unuse_device(mem: &mut Memory, world: &mut dyn World, device: u8) -> Result<(), Held> {
    FaultContext { mem, world: &mut Patient(world) }.unuse_device(device)
}

impl<W: World> FaultContext<'_, W> {
    /// Takes a swap device away, and brings everything on it back to memory. To be called again as
    /// long as the result is `Waiting`.
    pub(crate) fn swapoff(&mut self, device: u8) -> Swapoff {
        if !self.mem.swap.slots.start_removal(device) {
            return Swapoff::Failed(SwapoffError::NoDevice);
        }
        self.mem.swap_cache(self.world).settle_swap();
        let result = unuse_device(self.mem, self.world, device);
        self.mem.swap_cache(self.world).settle_swap();
        match result {
            Err(Held::For(error)) => {
                self.mem.swap.slots.cancel_removal(device);
                Swapoff::Failed(error)
            }
            Err(Held::Room(over)) if self.mem.swap.slots.note_fruitless_removal(device) > MAX_FRUITLESS_CALLS => {
                self.mem.swap.slots.cancel_removal(device);
                Swapoff::Failed(SwapoffError::NoMemory(over))
            }
            Ok(()) if self.mem.swap.slots.finish_removal(device) => Swapoff::Done,
            Ok(()) | Err(Held::Io | Held::Room(_)) => Swapoff::Waiting,
        }
    }

    fn unuse_device(&mut self, device: u8) -> Result<(), Held> {
        let mut waiting = false;
        // Folios in the swap cache lose their slots first: else reclaim could drop such a folio
        // again while another page is read.
        for f in self.mem.swap.slots.cached_on(device) {
            if self.mem.pages.folios.st(f).has(FolioFlags::LOCKED | FolioFlags::WRITEBACK) {
                waiting = true;
            } else {
                self.mem.swap_cache(self.world).release_swap_cache(f);
            }
        }
        let anon: Vec<_> = (0..self.mem.pages.space.mappings.len())
            .filter(|&m| self.mem.pages.space.mappings[m].kind == MappingKind::Anon)
            .map(|m| {
                (
                    self.mem.pages.space.mappings[m].first.0,
                    self.mem.pages.mapping_end(self.mem.pages.space.mappings[m].first),
                )
            })
            .collect();
        for page in anon.into_iter().flat_map(|(first, end)| first..end).map(PageId) {
            let Some(slot) = self.mem.pages.swap_entry(page).filter(|s| s.device() == device) else { continue };
            match self.unuse_page(page, slot) {
                Ok(()) => {}
                Err(Held::Io) => waiting = true,
                // I/O under way is waited for first: it makes room, or brings the end nearer.
                Err(Held::Room(_)) if waiting => return Err(Held::Io),
                Err(held) => return Err(held),
            }
        }
        if waiting { Err(Held::Io) } else { Ok(()) }
    }

    /// Reads one page back and maps it, as if nobody had touched it for a while.
    fn unuse_page(&mut self, page: PageId, slot: SwapSlot) -> Result<(), Held> {
        if self.mem.pages.zapping.contains(&page) {
            return Err(Held::Io);
        }
        let memcg = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].memcg;
        // The table is charged first: making room for it later could evict the page again.
        let table = self.mem.pages.table_of(page);
        self.alloc().charge_table(table, memcg).map_err(|over| self.no_room_for_swapoff(over))?;
        let f = match self.mem.swap.slots.cached(slot) {
            Some(f) => f,
            None => self.add_swap_folio(page, slot, memcg).map_err(|over| self.no_room_for_swapoff(over))?,
        };
        if self.mem.pages.folios.st(f).has(FolioFlags::LOCKED) {
            return Err(Held::Io);
        }
        if !self.mem.pages.folios.st(f).has(FolioFlags::UPTODATE) {
            match self.read_folio(f) {
                Ack::Done => {}
                Ack::Pending => return Err(Held::Io),
                Ack::Failed => return Err(Held::For(SwapoffError::Read(page))),
            }
        }
        self.attach_swapped(f);
        if self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK) {
            return Err(Held::Io);
        }
        self.mem.swap_cache(self.world).release_swap_cache(f);
        Ok(())
    }

    /// The slots of all pages of a folio in the swap cache hold it again, and it is mapped.
    fn attach_swapped(&mut self, f: FolioId) {
        for page in self.mem.pages.pages_of(f).map(PageId) {
            if let Some(slot) = self.mem.pages.swap_entry(page).filter(|_| !self.mem.pages.zapping.contains(&page)) {
                self.mem.pages.folios.store(page, Slot::resident(f));
                self.mem.swap.slots.put(slot);
                self.mem.pages.map_page(self.world, f, page, false, true);
            }
        }
        self.mem.swap_cache(self.world).settle_swap();
    }

    fn no_room_for_swapoff(&mut self, over: MemcgId) -> Held {
        let exhausted = over == MemcgId::ROOT && self.mem.frames.is_kswapd_first();
        match exhausted || self.alloc().is_io_pending(over) {
            true => Held::Room(over),
            false => Held::For(SwapoffError::NoMemory(over)),
        }
    }
}
