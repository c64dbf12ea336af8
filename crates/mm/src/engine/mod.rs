//! The facade: the only type a driver holds.

mod access;
mod groups;
mod lru_gen_debugfs;
mod memcg_files;
mod memory;
pub(crate) mod reclaim;
mod swap;
mod sysctl;

use crate::alloc::Alloc;
use crate::cache_ext::ops::CacheExtOps;
use crate::cgroupfs::Cgroupfs;
use crate::config::Config;
use crate::config::lru::Lru;
use crate::config::thp::HugeAdvice;
use crate::fault::FaultContext;
use crate::folio::mapping::{MappingKind, Owner};
use crate::folio::table::FolioTable;
use crate::ids::{FolioId, MappingId, MemcgId, NodeId, PageId};
use crate::memory::Memory;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;

/// Linux's memory management as a deterministic state machine.
///
/// Time comes in by [`Engine::set_now_ns`], accesses by [`Engine::access`]; what must happen goes
/// out through [`crate::World::effect`]. The same configuration and the same calls give the same
/// state.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) mem: Memory,
    /// When the statistics of groups are added up next.
    next_flush_ns: u64,
}

impl Engine {
    /// An engine with nothing in it but the root memcg. An impossible configuration is an error.
    pub fn new(cfg: Config) -> Result<Engine, String> {
        Ok(Engine { mem: Memory::new(cfg)?, next_flush_ns: 0 })
    }

    /// Registers a mapping by the indices of its pages, which ascend strictly. The ids of the pages
    /// are consecutive, from the returned first one on.
    pub fn add_mapping(
        &mut self,
        kind: MappingKind,
        memcg: MemcgId,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<(MappingId, PageId), String> {
        self.mem.groups.online_memcg(memcg)?;
        let first = PageId(self.mem.pages.folios.len() as u32);
        let owner = Owner { kind, memcg, lruvec: self.mem.groups.memcgs.get(memcg).lruvec };
        let id = self.mem.pages.space.register(&mut self.mem.pages.folios, owner, indices.into_iter())?;
        self.advise_huge(id, HugeAdvice::None);
        if kind == MappingKind::File {
            self.set_file_order(id, self.mem.cfg.readahead.file_order);
            self.advise_access(id, self.mem.cfg.lru.file_advice);
        }
        Ok((id, first))
    }

    /// The time, in nanoseconds from any start. It must not go back.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.mem.now_ns = self.mem.now_ns.max(now_ns);
        if self.mem.now_ns >= self.next_flush_ns {
            self.flush_stats();
        }
        if self.mem.now_ns >= self.mem.frames.nodes.next_decay_ns {
            self.mem.frames.nodes.decay_pcp(self.mem.now_ns);
        }
    }

    /// Adds up the counts of groups, if the time for it has come.
    #[cold]
    fn flush_stats(&mut self) {
        let interval_ns = self.mem.cfg.lru.stat_flush_interval_ns;
        self.next_flush_ns = u64::MAX;
        if self.mem.cfg.lru.adds_up_stats() {
            self.next_flush_ns = (self.mem.now_ns / interval_ns + 1).saturating_mul(interval_ns);
            self.mem.pages.flush_stats(&self.mem.groups, MemcgId::ROOT);
        }
    }

    /// The CPU on which the following calls happen: batches are per CPU. Out of range: the last
    /// one.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.mem.pages.cpu = cpu.min(self.mem.pages.batches.len() - 1);
        self.mem.frames.nid = self.mem.frames.nodes.of_cpu(self.mem.pages.cpu);
        self.mem.frames.nodes.cpu = self.mem.pages.cpu;
        self.mem.swap.slots.set_cpu(self.mem.pages.cpu);
    }

    /// Pages registered.
    pub fn registered_pages(&self) -> usize {
        self.mem.pages.folios.len()
    }

    /// Loads what faults on these pages will need into the processor's caches, so that the misses
    /// overlap instead of following one another. It changes nothing; the sum only keeps the loads
    /// from being optimised away.
    #[inline]
    pub fn prefetch(&self, pages: impl Iterator<Item = PageId> + Clone) -> u64 {
        pages.map(|p| self.mem.pages.folios.prefetch(p)).sum()
    }

    /// As [`Engine::prefetch`], for one access that may be a hit.
    #[inline]
    pub fn prefetch_access(&self, page: PageId) -> u64 {
        let folios = &self.mem.pages.folios;
        folios.prefetch(page) + u64::from(folios.hot[page.index()])
    }

    /// Slots of swap in use.
    pub fn swap_used_pages(&self) -> u64 {
        self.mem.swap.slots.used_pages()
    }

    /// The swap devices, by number.
    pub fn swap_devices(&self) -> Vec<crate::SwapDeviceInfo> {
        self.mem.swap.slots.infos()
    }

    /// The clusters of the swap devices: how fragmented they are.
    pub fn swap_maps(&self) -> Vec<crate::SwapMap> {
        self.mem.swap.slots.maps()
    }

    /// Work of the swap allocator so far.
    pub fn swap_work(&self) -> crate::SwapWork {
        self.mem.swap.slots.work()
    }

    /// The oldest generation of file pages and the youngest of all, of one memcg.
    pub fn lru_gen_seqs(&self, memcg: MemcgId) -> (u64, u64) {
        let g = &self.mem.pages.lruvecs[self.mem.groups.memcgs.get(memcg).lruvec.index()].r#gen;
        (g.min_seq[crate::lru::lru_list::FILE], g.max_seq)
    }

    /// Nodes of the machine.
    pub fn node_count(&self) -> usize {
        self.mem.frames.nodes.all.len()
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: usize) -> NodeId {
        self.mem.frames.nodes.of_cpu(cpu)
    }

    /// The node of the frame of a page that is in memory (in the swap cache counts).
    #[inline]
    pub fn page_node(&self, page: PageId) -> Option<NodeId> {
        self.mem.swap.folio_of(&self.mem.pages, page).map(|f| self.mem.pages.folios.nid(f))
    }

    /// Whether a page is in memory (in the swap cache counts).
    pub fn is_resident(&self, page: PageId) -> bool {
        self.mem.swap.folio_of(&self.mem.pages, page).is_some()
    }

    /// Bytes that the engine holds: (for slots, folios and lists, for nodes and tables, for swap).
    pub fn memory_bytes(&self) -> (usize, usize, usize) {
        let ext = self.mem.pages.ext.as_ref().map_or(0, |ext| ext.memory_bytes());
        (
            self.mem.pages.folios.memory_bytes() + ext,
            self.mem.pages.space.memory_bytes(),
            self.mem.swap.slots.memory_bytes(),
        )
    }

    /// Gives a group another policy for its page cache, beside its two lists and in the place of
    /// the one of the configuration ([`Config::cache_ext`]), if any. The group's folios in memory
    /// are added to the policy.
    pub fn attach_cache_ext(&mut self, memcg: MemcgId, ops: &dyn CacheExtOps) -> Result<(), String> {
        self.mem.groups.online_memcg(memcg)?;
        if self.mem.cfg.lru.kind != Lru::TwoList {
            return Err("cache_ext is beside two lists, not generations".into());
        }
        for v in self.mem.pages.lruvecs_of(memcg) {
            let folios = &self.mem.pages.folios;
            let is_own = |&f: &FolioId| folios.is_attached(f) && folios.lruvec(f) == v && folios.st(f).is_file();
            let resident: Vec<_> = folios.in_use().filter(is_own).collect();
            self.mem.pages.start_ext(None).attach(v, ops.clone_ops(), &resident);
        }
        Ok(())
    }

    /// Tells policies beside the lists the kind of task that accesses from now on
    /// ([`crate::Cache::hint`]).
    pub fn set_cache_ext_hint(&mut self, hint: u8) {
        if let Some(ext) = &mut self.mem.pages.ext {
            ext.set_hint(hint);
        }
    }

    /// Bytes that a resident page of order 0 takes: its slot, which holds its folio, its place on a
    /// list, and its byte of flags. The rings of lists and the vectors keep some room in reserve;
    /// [`Engine::memory_bytes`] counts that, too.
    pub const BYTES_PER_RESIDENT_PAGE: usize = 4 + Self::BYTES_PER_SHADOW;

    /// Bytes that a shadow takes: its slot, its place, and the byte of flags.
    pub const BYTES_PER_SHADOW: usize = FolioTable::ENTRY_BYTES + 1;

    /// Bytes that a swap slot takes in a cluster that has a slot in use. Slots of other clusters
    /// take next to nothing.
    pub const BYTES_PER_SWAP_SLOT: usize = crate::swap::BYTES_PER_SLOT;
}

/// Parts of the engine that calls with a world may change, room by room.
impl Engine {
    #[inline(always)]
    fn alloc<'a, W>(&'a mut self, world: &'a mut W) -> Alloc<'a, W> {
        Alloc { mem: &mut self.mem, world }
    }

    #[inline(always)]
    fn cgroupfs<'a, W>(&'a mut self, world: &'a mut W) -> Cgroupfs<'a, W> {
        Cgroupfs { mem: &mut self.mem, world }
    }

    #[inline(always)]
    fn fault<'a, W>(&'a mut self, world: &'a mut W) -> FaultContext<'a, W> {
        FaultContext { mem: &mut self.mem, world }
    }

    #[inline(always)]
    pub(crate) fn reclaim_with<'a, W>(&'a mut self, world: &'a mut W, sc: ScanControl) -> Reclaim<'a, W> {
        Reclaim { mem: &mut self.mem, world, sc }
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
        let known = |e: &Engine| e.mem.pages.known_sizes(&e.mem.groups, group, NodeId::default()).iter().sum::<u64>();
        e.set_now_ns(1);
        (0..10).for_each(|i| _ = e.access(&mut AtOnce::default(), PageId(first.0 + i), Touch::Read));
        e.set_now_ns(2);
        e.set_now_ns(999);
        assert_eq!(known(&e), 0, "it is not time to add up");
        e.set_now_ns(1000);
        assert_eq!(known(&e), 10);
        (10..20).for_each(|i| _ = e.access(&mut AtOnce::default(), PageId(first.0 + i), Touch::Read));
        e.set_now_ns(1001);
        assert_eq!(known(&e), 10);
        e.flush_memcg_stats(group);
        assert_eq!(known(&e), 20, "somebody read memory.stat");
        let of_root = e.mem.pages.known_sizes(&e.mem.groups, MemcgId::ROOT, NodeId::default());
        assert_eq!(of_root.iter().sum::<u64>(), 10, "of that group alone");
    }

    /// A cost that reclaim notes of a group is added up above it as well, and forgotten there at
    /// the pace of all that is below, not of the pages of the root's own tasks.
    #[test]
    fn costs_of_a_group_stay_with_the_root_as_long_as_its_pages_warrant() {
        let mut cfg = Config::new(Policy::Lru);
        cfg.lru.batch_folios = 0;
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 1000, 0).unwrap();
        let (_, first) = e.add_mapping(MappingKind::File, group, 0..800).unwrap();
        (0..800).for_each(|i| _ = e.access(&mut AtOnce::default(), PageId(first.0 + i), Touch::Read));
        let of = |e: &Engine, m| e.mem.pages.lruvecs[e.mem.pages.lruvec_of(m, NodeId::default()).index()].cost;
        let v = e.mem.pages.lruvec_of(group, NodeId::default());
        (0..3).for_each(|_| e.mem.pages.note_cost(&e.mem.groups, v, 1, 0, 50));
        assert_eq!((of(&e, group), of(&e, MemcgId::ROOT)), ([0, 150], [0, 150]));
        e.mem.pages.note_cost(&e.mem.groups, v, 1, 0, 51);
        assert_eq!((of(&e, group), of(&e, MemcgId::ROOT)), ([0, 100], [0, 100]));
    }
}
