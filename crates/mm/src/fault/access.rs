//! Accesses and faults: a hit marks the folio, a miss makes one.
//!
//! Mechanism: `docs/mechanisms.md#access-by-descriptor`, `docs/mechanisms.md#access-by-mapping`,
//! `docs/mechanisms.md#the-swap-cache`.

use crate::config::recency::AccessAdvice;
use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::{Fill, MappingKind};
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::stat::Counter;
use crate::touch::{Outcome, Touch};
use crate::world::{Ack, Effect, World};

impl<W: World> FaultContext<'_, W> {
    #[inline(never)]
    pub(crate) fn access_slow(&mut self, page: PageId, touch: Touch) -> Outcome {
        if self.mem.writeback.flush_due {
            self.mem.writeout(self.world).flush();
        }
        if self.mem.swap.zswap.is_due() {
            self.alloc().run_zswap();
        }
        let up_to_date = |f: &FolioId| self.mem.pages.folios.st(*f).has(FolioFlags::UPTODATE);
        if let (Some(f), false) = (self.mem.pages.folios.slot(page).folio().filter(up_to_date), touch.is_mapped()) {
            match touch {
                Touch::Read => self.mem.pages.mark_accessed(f),
                // A write now would be missing in the copy on the other node.
                Touch::Write if self.mem.pages.folios.st(f).has(FolioFlags::MIGRATING) => return Outcome::Waiting,
                Touch::Write => self.mem.writeout(self.world).set_dirty(f),
                _ => {}
            }
            return Outcome::Hit;
        }
        self.fault(page, touch)
    }

    /// A read by descriptor that is more than a plain hit on a page that is there: with two lists,
    /// the second access to it.
    #[inline(never)]
    pub(crate) fn read_again(&mut self, page: PageId) -> Outcome {
        let f = FolioId(page.0);
        if self.mem.writeback.flush_due || !self.mem.pages.folios.is_attached(f) {
            return self.access_slow(page, Touch::Read);
        }
        self.mem.pages.mark_accessed(f);
        Outcome::Hit
    }

    /// A read by descriptor of a page that is not in the cache: `fault` for the common
    /// case.
    #[inline(never)]
    pub(crate) fn read_absent(&mut self, page: PageId) -> Outcome {
        let due = self.mem.writeback.flush_due || self.mem.swap.zswap.is_due();
        let node = self
            .mem
            .pages
            .folios
            .vacant_node(page)
            .filter(|n| !due && self.mem.pages.space.fill[n.index()] != Fill::ANON);
        let Some(node) = node else { return self.access_slow(page, Touch::Read) };
        let owner = self.mem.pages.folios.links.owners[node.index()];
        let memcg = self.mem.pages.lruvecs[owner.index()].memcg;
        let f = match self.add_file_folio_at(page, (node, owner), Touch::Read, memcg) {
            Err(over) => return self.no_room(over),
            Ok(f) => f,
        };
        let ack = self.world.effect(Effect::Read { page, order: 0 });
        if ack == Ack::Done {
            // Nothing has marked a new folio: this is the first access, under any policy.
            self.mem.pages.folios.hot[page.index()] |= (FolioFlags::UPTODATE | FolioFlags::REFERENCED) as u8;
            if self.mem.pages.ext.is_some() {
                self.mem.pages.cache_ext_read(f);
            }
            return Outcome::Major;
        }
        self.mem.pages.note_read(f, ack);
        if ack == Ack::Pending { Outcome::Waiting } else { Outcome::Failed }
    }

    /// A read by mapping of a page that no page table has: `fault` for the common case, a file page
    /// that is not in the cache.
    #[inline(never)]
    pub(crate) fn map_absent(&mut self, page: PageId) -> Outcome {
        let due = self.mem.writeback.flush_due || self.mem.swap.zswap.is_due();
        let node = self.mem.pages.folios.vacant_node(page).filter(|&n| {
            let space = &self.mem.pages.space;
            !due && space.fill[n.index()] != Fill::ANON && space.tables[space.table_of(n)].present
        });
        let Some(node) = node else { return self.access_slow(page, Touch::MapRead) };
        let owner = self.mem.pages.folios.links.owners[node.index()];
        let memcg = self.mem.pages.lruvecs[owner.index()].memcg;
        self.mem.pages.fault_around(&self.mem.cfg, self.world, page);
        let outcome = match self.add_file_folio_at(page, (node, owner), Touch::MapRead, memcg) {
            Err(over) => self.no_room(over),
            Ok(f) => {
                self.mem.pages.count(f, Counter::Pgmajfault, 1);
                let ack = self.world.effect(Effect::Read { page, order: 0 });
                self.mem.pages.note_read(f, ack);
                match ack {
                    Ack::Done => {
                        self.mem.pages.map_page(self.world, f, page, true, false);
                        Outcome::Major
                    }
                    Ack::Failed => Outcome::Failed,
                    Ack::Pending => {
                        self.read_ahead_of_fault(page, memcg);
                        Outcome::Waiting
                    }
                }
            }
        };
        if !matches!(outcome, Outcome::Waiting | Outcome::Throttled) {
            self.mem.pages.count_memcg(memcg, Counter::Pgfault, 1);
        }
        outcome
    }

    /// Reads the pages behind one that a fault by mapping has begun to read.
    fn read_ahead_of_fault(&mut self, page: PageId, memcg: MemcgId) {
        if self.mem.cfg.readahead.file_map_ahead && self.mem.pages.advice(page) != AccessAdvice::Random {
            self.file_map_ahead(page, memcg);
        }
    }

    /// An access that is not a plain hit by descriptor.
    pub(crate) fn fault(&mut self, page: PageId, touch: Touch) -> Outcome {
        let mapping = &self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()];
        let (kind, memcg, orders) = (mapping.kind, mapping.memcg, mapping.orders);
        let result = match kind {
            MappingKind::File => self.fault_file(page, touch, memcg),
            MappingKind::Anon => self.fault_anon(page, touch, memcg, orders),
        };
        let outcome = result.unwrap_or_else(|over| self.no_room(over));
        // A touch that has to wait is counted when it is tried again.
        if touch.is_mapped() && !matches!(outcome, Outcome::Waiting | Outcome::Throttled) {
            self.mem.pages.count_memcg(memcg, Counter::Pgfault, 1);
        }
        outcome
    }

    fn no_room(&mut self, over: MemcgId) -> Outcome {
        let exhausted = over == MemcgId::ROOT && self.mem.frames.is_kswapd_first();
        let yielded = std::mem::take(&mut self.mem.frames.yielded);
        match exhausted || yielded || self.alloc().is_io_pending(over) {
            true => Outcome::Throttled,
            false => Outcome::Oom(over),
        }
    }

    fn fault_file(&mut self, page: PageId, touch: Touch, memcg: MemcgId) -> Result<Outcome, MemcgId> {
        if touch.is_mapped() {
            let table = self.mem.pages.table_of(page);
            self.alloc().charge_table(table, memcg)?;
            if touch == Touch::MapRead {
                self.mem.pages.fault_around(&self.mem.cfg, self.world, page);
            }
        }
        let mut outcome = Outcome::Minor;
        let mut f = match self.mem.pages.folios.slot(page).folio() {
            Some(f) if self.mem.pages.folios.st(f).has(FolioFlags::LOCKED) => return Ok(Outcome::Waiting),
            Some(f) => f,
            None => {
                outcome = Outcome::Major;
                self.add_file_folio(page, touch, memcg)?
            }
        };
        if !self.mem.pages.folios.st(f).has(FolioFlags::UPTODATE) {
            if touch == Touch::Write {
                // The other pages of a large folio that could not be read are still to come.
                if self.mem.pages.folios.st(f).has(FolioFlags::LARGE) && self.mem.split_unless_busy(f) {
                    f = FolioId(page.0);
                }
                self.mem.pages.folios.set(f, FolioFlags::UPTODATE);
                outcome = Outcome::Fresh;
            } else {
                outcome = Outcome::Major;
                if touch.is_mapped() {
                    self.mem.pages.count(f, Counter::Pgmajfault, 1);
                }
                let ack = self.read_folio(f);
                if touch.is_mapped() && ack == Ack::Pending {
                    self.read_ahead_of_fault(page, memcg);
                }
                match ack {
                    Ack::Done => {}
                    Ack::Pending => return Ok(Outcome::Waiting),
                    Ack::Failed => return Ok(Outcome::Failed),
                }
            }
        }
        if touch.is_mapped() {
            self.map_file_page(f, page, touch);
        } else if touch == Touch::Read {
            self.mem.pages.mark_accessed(f);
        } else if touch == Touch::Write {
            self.mem.writeout(self.world).set_dirty(f);
        }
        Ok(outcome)
    }

    /// Maps the touched page; a write to a file page dirties it at once.
    fn map_file_page(&mut self, f: FolioId, page: PageId, touch: Touch) {
        self.mem.pages.map_page(self.world, f, page, true, touch == Touch::MapWrite);
        if touch == Touch::MapWrite {
            self.mem.writeout(self.world).set_dirty(f);
        }
    }

    fn fault_anon(&mut self, page: PageId, touch: Touch, memcg: MemcgId, orders: u16) -> Result<Outcome, MemcgId> {
        if !self.mem.pages.zapping.is_empty() && self.mem.pages.zapping.contains(&page) {
            return Ok(Outcome::Waiting);
        }
        let table = self.mem.pages.table_of(page);
        self.alloc().charge_table(table, memcg)?;
        let there = self.mem.pages.folios.slot(page);
        if let Some(f) = there.folio() {
            if self.mem.pages.folios.st(f).has(FolioFlags::LOCKED) {
                return Ok(Outcome::Waiting);
            }
            self.mem.pages.map_page(self.world, f, page, true, true);
            return Ok(Outcome::Minor);
        }
        if let Some(entry) = there.as_value() {
            return self.swap_in(page, SwapSlot(entry as u32), touch, memcg, orders);
        }
        if orders != 0
            && let Some(f) = self.add_large_folio(page, memcg, orders)
        {
            if touch.is_write() {
                // The entries of all its pages start dirty.
                self.mem.pages.folios.set(f, FolioFlags::DIRTY);
            }
            self.mem.pages.map_folio_with(self.world, f, true, true);
            return Ok(Outcome::Fresh);
        }
        let zone = self.alloc().charge(memcg, 1)?;
        self.mem.pages.count_memcg(memcg, Counter::Pgalloc, 1);
        let mut st = FolioFlags::new(0);
        st.set(FolioFlags::UPTODATE | FolioFlags::SWAPBACKED | FolioFlags::ANON);
        self.mem.pages.folios.note_frames(page, 1, zone);
        let f = self.mem.pages.add_folio(page, st, self.mem.pages.is_fault_a_use(page));
        self.mem.pages.map_folio_with(self.world, f, true, true);
        Ok(Outcome::Fresh)
    }
}
