//! The facade: the only type a driver holds.

mod access;
mod groups;
mod lru_gen;
mod memcg_files;
mod memory;
mod reclaim;
mod swap;

use crate::alloc::Alloc;
use crate::cgroupfs::Cgroupfs;
use crate::charged::Charged;
use crate::config::Config;
use crate::config::thp::HugeAdvice;
use crate::fault::Fault;
use crate::folio::mapping::{MappingKind, Owner};
use crate::folio::table::FolioTable;
use crate::ids::{MappingId, MemcgId, NodeId, PageId};
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;
use crate::swap_cache::SwapCache;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::{Writeback, Writeout};

/// Linux's memory management as a deterministic state machine.
///
/// Time comes in by [`Engine::set_now_ns`], accesses by [`Engine::access`]; what must happen goes
/// out through [`crate::World::effect`]. The same configuration and the same calls give the same
/// state.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) cfg: Config,
    pub(crate) clock: Timekeeping,
    pub(crate) pages: Pages,
    pub(crate) groups: Groups,
    pub(crate) frames: Frames,
    pub(crate) swap: SwapStack,
    pub(crate) writeback: Writeback,
}

/// The time, as the driver told it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timekeeping {
    pub(crate) now_ns: u64,
    /// When the statistics of groups are added up next.
    pub(crate) next_flush_ns: u64,
}

impl Engine {
    /// An engine with nothing in it but the root memcg. An impossible configuration is an error.
    pub fn new(cfg: Config) -> Result<Engine, String> {
        cfg.check()?;
        let frames = Frames::new(&cfg)?;
        Ok(Engine {
            clock: Timekeeping::default(),
            pages: Pages::new(&cfg, frames.nodes.all.len(), frames.nodes.zone_lists()),
            groups: Groups::new(&cfg, frames.nodes.all.len()),
            swap: SwapStack::new(&cfg),
            writeback: Writeback::default(),
            frames,
            cfg,
        })
    }

    /// Registers a mapping whose pages have these indices, strictly ascending. Their ids are
    /// consecutive, from the returned first one on.
    pub fn add_mapping(
        &mut self,
        kind: MappingKind,
        memcg: MemcgId,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<(MappingId, PageId), String> {
        self.groups.online_memcg(memcg)?;
        let first = PageId(self.pages.folios.len() as u32);
        let owner = Owner { kind, memcg, lruvec: self.groups.memcgs.get(memcg).lruvec };
        let id = self.pages.space.register(&mut self.pages.folios, owner, indices.into_iter())?;
        self.advise_huge(id, HugeAdvice::None);
        Ok((id, first))
    }

    /// The time, in nanoseconds from any start. It must not go back.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.clock.now_ns = self.clock.now_ns.max(now_ns);
        if self.clock.now_ns >= self.clock.next_flush_ns {
            self.flush_stats();
        }
        if self.clock.now_ns >= self.frames.nodes.next_decay_ns {
            self.frames.nodes.decay_pcp(self.clock.now_ns);
        }
    }

    /// Time went on: adds up what groups counted, if it is time to.
    #[cold]
    fn flush_stats(&mut self) {
        let interval_ns = self.cfg.lru.stat_flush_interval_ns;
        self.clock.next_flush_ns = u64::MAX;
        if self.cfg.lru.adds_up_stats() {
            self.clock.next_flush_ns = (self.clock.now_ns / interval_ns + 1).saturating_mul(interval_ns);
            self.pages.flush_stats(&self.groups);
        }
    }

    /// The CPU on which the following calls happen: batches are per CPU. Out of range: the last
    /// one.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.pages.cpu = cpu.min(self.pages.batches.len() - 1);
        self.frames.nid = self.frames.nodes.of_cpu(self.pages.cpu);
        self.frames.nodes.cpu = self.pages.cpu;
        self.swap.slots.set_cpu(self.pages.cpu);
    }

    /// Pages registered.
    pub fn registered_pages(&self) -> usize {
        self.pages.folios.len()
    }

    /// Loads what faults on these pages will need into the processor's caches, so that the misses
    /// overlap instead of following one another. It changes nothing; the sum only keeps the loads
    /// from being optimised away.
    #[inline]
    pub fn prefetch(&self, pages: impl Iterator<Item = PageId> + Clone) -> u64 {
        pages.map(|p| self.pages.folios.prefetch(p)).sum()
    }

    /// Slots of swap in use.
    pub fn swap_used_pages(&self) -> u64 {
        self.swap.slots.used_pages()
    }

    /// The swap devices, by number.
    pub fn swap_devices(&self) -> Vec<crate::SwapDeviceInfo> {
        self.swap.slots.infos()
    }

    /// The clusters of the swap devices: how fragmented they are.
    pub fn swap_maps(&self) -> Vec<crate::SwapMap> {
        self.swap.slots.maps()
    }

    /// What the swap allocator did so far.
    pub fn swap_work(&self) -> crate::SwapWork {
        self.swap.slots.work()
    }

    /// The oldest generation of file pages and the youngest of all, of one memcg.
    pub fn lru_gen_seqs(&self, memcg: MemcgId) -> (u64, u64) {
        let g = &self.pages.lruvecs[self.groups.memcgs.get(memcg).lruvec.index()].r#gen;
        (g.min_seq[crate::lru::lruvec::FILE], g.max_seq)
    }

    /// Nodes of the machine.
    pub fn node_count(&self) -> usize {
        self.frames.nodes.all.len()
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: usize) -> NodeId {
        self.frames.nodes.of_cpu(cpu)
    }

    /// The node on which the frame of a page lies that is in memory (in the swap cache counts).
    #[inline]
    pub fn page_node(&self, page: PageId) -> Option<NodeId> {
        self.swap.folio_of(&self.pages, page).map(|f| self.pages.folios.nid(f))
    }

    /// Whether a page is in memory (in the swap cache counts).
    pub fn is_resident(&self, page: PageId) -> bool {
        self.swap.folio_of(&self.pages, page).is_some()
    }

    /// Bytes that the engine holds: (for slots, folios and lists, for nodes and tables, for swap).
    pub fn memory_bytes(&self) -> (usize, usize, usize) {
        (self.pages.folios.memory_bytes(), self.pages.space.memory_bytes(), self.swap.slots.memory_bytes())
    }

    /// Bytes that a resident page of order 0 takes: its slot, which holds its folio, its place on a
    /// list, and its byte of flags. The rings of lists and the vectors keep some room in reserve;
    /// [`Engine::memory_bytes`] counts that, too.
    pub const BYTES_PER_RESIDENT_PAGE: usize = 4 + Self::BYTES_PER_SHADOW;

    /// Bytes that a shadow takes: its slot, its place, and the byte of flags.
    pub const BYTES_PER_SHADOW: usize = FolioTable::ENTRY_BYTES + 1;

    /// Bytes that a swap slot takes, of a cluster of which one at least is in use. Those of other
    /// clusters take next to nothing.
    pub const BYTES_PER_SWAP_SLOT: usize = crate::swap::BYTES_PER_SLOT;
}

/// What calls with a world may change, room by room.
impl Engine {
    #[inline(always)]
    fn charged(&mut self) -> Charged<'_> {
        Charged { cfg: &self.cfg, pages: &mut self.pages, groups: &mut self.groups, frames: &mut self.frames }
    }

    #[inline(always)]
    fn writeout<'a, W>(&'a mut self, world: &'a mut W) -> Writeout<'a, W> {
        Writeout {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            writeback: &mut self.writeback,
            now_ns: self.clock.now_ns,
            world,
        }
    }

    #[inline(always)]
    fn swap_cache<'a, W>(&'a mut self, world: &'a mut W) -> SwapCache<'a, W> {
        SwapCache {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            swap: &mut self.swap,
            world,
        }
    }

    #[inline(always)]
    fn alloc<'a, W>(&'a mut self, world: &'a mut W) -> Alloc<'a, W> {
        Alloc {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            swap: &mut self.swap,
            writeback: &mut self.writeback,
            now_ns: self.clock.now_ns,
            world,
        }
    }

    #[inline(always)]
    fn cgroupfs<'a, W>(&'a mut self, world: &'a mut W) -> Cgroupfs<'a, W> {
        Cgroupfs {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            swap: &mut self.swap,
            writeback: &mut self.writeback,
            now_ns: self.clock.now_ns,
            world,
        }
    }

    #[inline(always)]
    fn fault<'a, W>(&'a mut self, world: &'a mut W) -> Fault<'a, W> {
        Fault {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            swap: &mut self.swap,
            writeback: &mut self.writeback,
            now_ns: self.clock.now_ns,
            world,
        }
    }

    #[inline(always)]
    pub(crate) fn reclaim_with<'a, W>(&'a mut self, world: &'a mut W, sc: ScanControl) -> Reclaim<'a, W> {
        Reclaim {
            cfg: &self.cfg,
            pages: &mut self.pages,
            groups: &mut self.groups,
            frames: &mut self.frames,
            swap: &mut self.swap,
            writeback: &mut self.writeback,
            now_ns: self.clock.now_ns,
            world,
            sc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Policy;
    use crate::touch::Touch;
    use crate::world_at_once::AtOnce;

    /// Between two sums reclaim knows the old ones, however often the time is set.
    #[test]
    fn statistics_of_groups_are_added_up_once_an_interval() {
        let mut cfg = Config::new(Policy::Lru);
        (cfg.lru.stat_flush_interval_ns, cfg.lru.batch_folios) = (1000, 0);
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 100, 0).unwrap();
        let (_, first) = e.add_mapping(MappingKind::File, group, 0..20).unwrap();
        let known = |e: &Engine| e.pages.known_sizes(&e.groups, group, NodeId::default()).iter().sum::<u64>();
        e.set_now_ns(1);
        (0..10).for_each(|i| _ = e.access(&mut AtOnce::default(), PageId(first.0 + i), Touch::Read));
        e.set_now_ns(2);
        e.set_now_ns(999);
        assert_eq!(known(&e), 0, "it is not time to add up");
        e.set_now_ns(1000);
        assert_eq!(known(&e), 10);
    }

    /// What reclaim costs a group is added up above it as well, and forgotten there at the pace of
    /// all that is below, not of the pages of the root's own tasks.
    #[test]
    fn costs_of_a_group_stay_with_the_root_as_long_as_its_pages_warrant() {
        let mut cfg = Config::new(Policy::Lru);
        cfg.lru.batch_folios = 0;
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 1000, 0).unwrap();
        let (_, first) = e.add_mapping(MappingKind::File, group, 0..800).unwrap();
        (0..800).for_each(|i| _ = e.access(&mut AtOnce::default(), PageId(first.0 + i), Touch::Read));
        let of = |e: &Engine, m| e.pages.lruvecs[e.pages.lruvec_of(m, NodeId::default()).index()].cost;
        let v = e.pages.lruvec_of(group, NodeId::default());
        (0..3).for_each(|_| e.pages.note_cost(&e.groups, v, 1, 0, 50));
        assert_eq!((of(&e, group), of(&e, MemcgId::ROOT)), ([0, 150], [0, 150]));
        e.pages.note_cost(&e.groups, v, 1, 0, 51);
        assert_eq!((of(&e, group), of(&e, MemcgId::ROOT)), ([0, 100], [0, 100]));
    }
}
