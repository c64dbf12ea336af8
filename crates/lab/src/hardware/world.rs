//! Effects that the engine asks of the machine, and the orders for threads and devices that follow.
//!
//! Effects that do I/O are collected while the engine runs and sent to the devices after it, pages
//! next to each other as one request, as Linux plugs its block layer. A synchronous device is
//! served on the spot, by the CPU that asks.

use refault_mm::{Ack, Content, Effect, MemcgId, NodeId, PageId, ReclaimWork, SwapSlot, ThrottleReason, World};

use super::demand::CollectedDemand;
use super::hottest::Hottest;
use super::nodes::Nodes;
use super::page_table::PageTables;
use super::slice::Slice;
use super::storage::{Io, Storage};
use crate::contention::Demand;
use crate::cost::Costs;
use crate::device::Device;
use crate::scenario::ContentSpec;

/// Orders of the engine's calls to threads and to the machine since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct PendingEffects {
    pub(crate) throttle: Option<(ThrottleReason, u64)>,
    pub(crate) unthrottle: Vec<ThrottleReason>,
    /// Nodes whose kswapd is to be woken.
    pub(crate) wake_kswapd: Vec<NodeId>,
    pub(crate) wake_flusher: bool,
    pub(crate) wake_zswap: bool,
    /// The worker of `vmpressure` takes the CPU for a moment.
    pub(crate) wake_vmpressure: bool,
    /// Clusters that are to be discarded.
    pub(crate) discards: Vec<SwapSlot>,
    pub(crate) oom: Option<MemcgId>,
}

/// Page tables, devices, nodes of memory, and orders for the machine.
pub(crate) struct Hardware {
    pub(crate) tables: PageTables,
    pub(crate) storage: Storage,
    pub(crate) nodes: Nodes,
    pub(crate) pending: PendingEffects,
    pub(crate) hottest: Hottest,
    pub(crate) slice: Slice,
    /// Demand for locks and other CPUs; `None`: nobody waits for any.
    collected: Option<CollectedDemand>,
    /// Seed of the contents of pages.
    seed: u64,
    /// When the call of the engine happens, for migrations.
    now_ns: u64,
    /// An effect that is not carried out, to see that it would be missed.
    #[cfg(test)]
    pub(crate) deaf_to: Option<&'static str>,
}

impl Hardware {
    pub(crate) fn new(
        devices: Vec<Device>,
        swap: Vec<(usize, u64)>,
        nodes: Nodes,
        costs: Costs,
        seed: u64,
    ) -> Hardware {
        Hardware {
            tables: PageTables::new(!nodes.is_empty()),
            storage: Storage::new(devices, swap),
            nodes,
            pending: PendingEffects::default(),
            hottest: Hottest::default(),
            slice: Slice::new(costs),
            collected: None,
            seed,
            now_ns: 0,
            #[cfg(test)]
            deaf_to: None,
        }
    }

    /// Collects from now on what is needed of locks and of other CPUs.
    pub(crate) fn collect_demand(&mut self) {
        self.collected = Some(CollectedDemand::default());
    }

    /// A program gives memory back in the next call of the engine.
    pub(crate) fn gather(&mut self) {
        if let Some(collected) = &mut self.collected {
            collected.gather();
        }
    }

    /// Takes the demand for locks and other CPUs of the effects since the last call.
    pub(crate) fn take_demand(&mut self) -> Demand {
        self.collected.as_mut().map_or_else(Demand::default, CollectedDemand::take)
    }

    /// An effect is about to be carried out: what it needs of locks and of other CPUs.
    fn collect(&mut self, effect: &Effect) {
        let Some(collected) = &mut self.collected else { return };
        match *effect {
            Effect::Unmap { page } => {
                self.tables.each_mapper(page, |program, dirty| collected.unmapped(program, dirty))
            }
            Effect::WriteProtect { page } => self.tables.each_mapper(page, |program, _| collected.protected(program)),
            Effect::Write { .. } => collected.before_write(),
            Effect::SwapOut { order, slot, .. } => {
                collected.before_write();
                collected.took_slots(slot);
                if self.storage.is_in_memory(slot) {
                    collected.stored(slot, 1 << order);
                }
            }
            Effect::FreeSlot { slot } => collected.freed_slot(slot),
            Effect::Free { page, order } => {
                let group = self.tables.extents[self.tables.extent_of(page)].group;
                collected.freed(group, 1 << order);
            }
            _ => {}
        }
    }

    /// Sets the time at which orders of the engine happen from now on.
    #[inline]
    pub(crate) fn set_now_ns(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Whether the last call of the engine left anything to do.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.storage.has_news() || self.tables.has_news() || self.pending.has_news()
    }

    /// Reads or writes pages of a file past the page cache (`O_DIRECT`). `Pending`: the thread
    /// waits for the device.
    pub(crate) fn direct(&mut self, page: PageId, pages: u32, write: bool, t: usize) -> Ack {
        let Some((device, at)) = self.tables.file_place(page) else { return Ack::Failed };
        let io = Io { page, pages, write, device, at, waiter: Some(t) };
        let ack = self.storage.transfer(io, None, |_| None);
        if write && ack == Ack::Done {
            self.storage.note_direct_write(pages);
        }
        ack
    }

    fn transfer(&mut self, page: PageId, order: u8, write: bool, slot: Option<SwapSlot>) -> Ack {
        let place = match slot {
            Some(slot) => self.storage.swap_place(slot),
            None => self.tables.file_place(page),
        };
        let Some((device, at)) = place else { return Ack::Failed };
        let (tables, seed) = (&self.tables, self.seed);
        let io = Io { page, pages: 1 << order, write, device, at, waiter: None };
        self.storage.transfer(io, slot, |page| content_of(tables, seed, page))
    }
}

impl PendingEffects {
    /// Whether threads of the kernel are to be woken.
    pub(crate) fn wakes(&self) -> bool {
        !self.wake_kswapd.is_empty() || self.wake_flusher || self.wake_zswap
    }

    /// Checks that between two events of the machine no order of an engine call is left: an order
    /// that is not taken by then would be lost, or be taken by a wrong thread. Done in debug builds
    /// and where the machine is checked.
    pub(crate) fn check_taken(&self, is_checked: bool) -> Result<(), String> {
        if !(is_checked || cfg!(debug_assertions)) {
            return Ok(());
        }
        let left = match self {
            PendingEffects { throttle: Some(_), .. } => "throttle",
            PendingEffects { oom: Some(_), .. } => "oom",
            PendingEffects { wake_vmpressure: true, .. } => "wake_vmpressure",
            PendingEffects { wake_flusher: true, .. } => "wake_flusher",
            PendingEffects { wake_zswap: true, .. } => "wake_zswap",
            // All of them are named, so that a new one is looked at, too.
            PendingEffects {
                throttle: None,
                oom: None,
                wake_vmpressure: false,
                wake_flusher: false,
                wake_zswap: false,
                unthrottle,
                wake_kswapd,
                discards,
            } => match (unthrottle.is_empty(), wake_kswapd.is_empty(), discards.is_empty()) {
                (false, ..) => "unthrottle",
                (_, false, _) => "wake_kswapd",
                (.., false) => "discards",
                _ => return Ok(()),
            },
        };
        Err(format!("the engine asked for {left}, and nobody took it"))
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.wakes() || self.throttle.is_some() || !self.unthrottle.is_empty()
    }
}

/// Content of a page, where the scenario says it of the object.
fn content_of(tables: &PageTables, seed: u64, page: PageId) -> Option<Content> {
    let at = tables.extent_of(page);
    let e = &tables.extents[at];
    e.content.map(|c| c.of_page(seed, at, page.0 - e.first.0))
}

impl World for Hardware {
    fn is_write_queue_full(&self) -> bool {
        self.storage.is_write_queue_full()
    }

    fn is_file_queue_full(&self, page: PageId) -> bool {
        self.tables.file_place(page).is_some_and(|(device, _)| self.storage.is_queue_full(device))
    }

    fn content(&mut self, page: PageId) -> Content {
        let mean = (4096.0 / ContentSpec::RATIO) as u32;
        content_of(&self.tables, self.seed, page).unwrap_or(Content::Compressed { bytes: mean })
    }

    fn effect(&mut self, effect: Effect) -> Ack {
        #[cfg(test)]
        if self.deaf_to == Some(effect.name()) {
            return Ack::Done;
        }
        self.collect(&effect);
        match effect {
            Effect::Read { page, order } => return self.transfer(page, order, false, None),
            Effect::Write { page, order } => return self.transfer(page, order, true, None),
            Effect::SwapIn { page, order, slot } => return self.transfer(page, order, false, Some(slot)),
            Effect::SwapOut { page, order, slot } => return self.transfer(page, order, true, Some(slot)),
            Effect::Map { page, young, writable } => self.tables.map(page, young, writable),
            Effect::Unmap { page } => self.tables.unmap(page),
            Effect::WriteProtect { page } => self.tables.write_protect(page),
            Effect::FreeSlot { slot } => self.storage.forget(slot),
            // Their cost is in the engine's account of its work; the data itself is not kept here.
            Effect::Free { .. } | Effect::ZeroFill { .. } => {}
            Effect::ZswapStore { .. } | Effect::ZswapLoad { .. } | Effect::ZswapDrop { .. } => {}
            Effect::Discard { first, .. } => {
                if self.storage.is_queued(first) {
                    self.pending.discards.push(first);
                    return Ack::Pending;
                }
            }
            Effect::WakeFlusher => {
                self.pending.wake_flusher = true;
                return Ack::Pending;
            }
            Effect::WakeZswap => {
                self.pending.wake_zswap = true;
                return Ack::Pending;
            }
            Effect::WakeKswapd { node } => {
                self.pending.wake_kswapd.push(node);
                return Ack::Pending;
            }
            Effect::Migrate { order, from, to, .. } => self.nodes.migrate(1 << order, from, to, self.now_ns),
            Effect::Throttle { reason, max_wait_ns } => {
                // The longest of several.
                if self.pending.throttle.is_none_or(|t| t.1 < max_wait_ns) {
                    self.pending.throttle = Some((reason, max_wait_ns));
                    return Ack::Pending;
                }
            }
            Effect::Unthrottle { reason } => self.pending.unthrottle.push(reason),
            Effect::Oom { memcg } => self.pending.oom = Some(memcg),
        }
        Ack::Done
    }

    fn kswapd_yields(&mut self, work: &ReclaimWork) -> bool {
        let other_ns = self.storage.write_cpu_ns() + self.tables.unmapped() * self.slice.unmap_ns();
        self.slice.is_over(work, other_ns)
    }

    fn task_yields(&mut self) -> bool {
        self.slice.yielded |= !self.pending.wake_kswapd.is_empty() && self.slice.left_ns.is_some();
        self.slice.yielded
    }

    fn reclaim_pauses(&mut self, work: &ReclaimWork) -> bool {
        if !self.slice.may_pause {
            return false;
        }
        let other_ns = self.storage.write_cpu_ns() + self.tables.unmapped() * self.slice.unmap_ns();
        self.storage.swaps_out_until(self.now_ns + self.slice.work_ns(work) + other_ns)
    }

    fn wake_vmpressure(&mut self) {
        self.pending.wake_vmpressure = true;
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        self.hottest.contains(page)
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        self.tables.test_and_clear_young(page) > 0
    }

    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        self.tables.test_and_clear_young(page)
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        self.tables.test_and_clear_dirty(page)
    }
}
