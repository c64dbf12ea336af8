//! One (policy, size) cell of a replay: an engine, and the loop that feeds it.

use refault_mm::{Config, Engine, MappingId, MappingKind, MemcgId, MemcgLimits, Outcome, PageId, Touch};
use refault_trace::{ObjectKind, PackedAccess, Trace};

use super::groups::Tree;
use super::machine::{DIRTY, MAPPED, Observer, ReplayWorld, WRITABLE, YOUNG};

/// Accesses in a block whose slots are prefetched together, so that their cache misses overlap.
pub(super) const PREFETCH_BLOCK: usize = 256;

/// Accesses between two looks at the clock.
pub(super) const TICK: usize = 64;

/// Receiver of every miss of a cell.
pub trait MissSink {
    /// Access number `at` was a miss.
    fn miss(&mut self, at: u64);
}

/// Misses are only counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountOnly;

impl MissSink for CountOnly {
    #[inline(always)]
    fn miss(&mut self, _: u64) {}
}

/// One bit an access, least significant first, 1 = miss.
#[derive(Clone, Debug)]
pub struct MissBits(pub Vec<u8>);

impl MissBits {
    /// Room for that many accesses.
    pub fn new(accesses: usize) -> MissBits {
        MissBits(vec![0; accesses.div_ceil(8)])
    }
}

impl MissSink for MissBits {
    fn miss(&mut self, at: u64) {
        self.0[(at / 8) as usize] |= 1 << (at % 8);
    }
}

/// A trace being replayed under one policy at one size.
#[derive(Clone, Debug)]
#[allow(private_bounds, private_interfaces, reason = "who watches is a matter of this crate")]
pub struct Cell<O = ()> {
    /// The engine, for its counters.
    pub engine: Engine,
    /// Group that everything is charged to, or the parent of all other groups.
    pub group: MemcgId,
    /// All groups, beginning with `group`.
    pub groups: Vec<MemcgId>,
    /// The objects of the trace that are touched.
    pub(super) mappings: Vec<MappingId>,
    /// Page tables, and what went wrong.
    pub machine: ReplayWorld<O>,
    /// Accesses replayed.
    pub accesses: u64,
    /// Misses among them.
    pub misses: u64,
    /// Number of the access at which nothing was left to reclaim; the replay ends there.
    pub oom_at: Option<u64>,
}

/// Bits that a touch of a mapped page needs in its entry, and bits that it sets there.
#[inline(always)]
fn hardware_bits(write: bool) -> (u8, u8) {
    match write {
        true => (MAPPED | WRITABLE, YOUNG | DIRTY),
        false => (MAPPED, YOUNG),
    }
}

/// Nanoseconds that an access takes where the trace has no times.
pub(super) const NS_PER_ACCESS: u64 = 1000;

impl Cell {
    /// An engine with one group of `memory_pages` and the objects of the trace.
    pub fn new(trace: &Trace, cfg: Config, memory_pages: u64, swap_max_pages: u64) -> Result<Cell, String> {
        Cell::watched(trace, cfg, memory_pages, swap_max_pages, ())
    }

    /// Replays accesses and counts misses. It is compiled with this crate, at its level: who calls
    /// [`Cell::run`] has a copy of the engine of its own.
    pub fn count(&mut self, accesses: &[PackedAccess]) {
        self.run(accesses, None, &mut CountOnly);
    }

    /// An engine with a group of `memory_pages`, the tree's groups in it, and the objects of the
    /// trace, each charged to its own group.
    pub(super) fn of_tree(
        trace: &Trace,
        tree: &Tree,
        cfg: Config,
        memory_pages: u64,
        swap_max_pages: u64,
    ) -> Result<Cell, String> {
        let mut cell = Cell::empty(cfg, memory_pages, swap_max_pages, ())?;
        for group in tree.groups.iter().skip(1) {
            let above = cell.groups[group.parent.unwrap_or(0)];
            let id = cell.engine.add_memcg(above, &group.path, group.limits.max, group.limits.swap_max)?;
            cell.engine.set_memcg_limits(&mut cell.machine, id, &group.limits)?;
            cell.groups.push(id);
        }
        cell.add_objects(trace, |group| tree.of_trace[usize::from(group)])?;
        Ok(cell)
    }
}

#[allow(private_bounds, reason = "who watches is a matter of this crate")]
impl<O: Observer> Cell<O> {
    /// As [`Cell::new`], with an observer.
    pub fn watched(
        trace: &Trace,
        cfg: Config,
        memory_pages: u64,
        swap_max_pages: u64,
        observer: O,
    ) -> Result<Cell<O>, String> {
        let mut cell = Cell::empty(cfg, memory_pages, swap_max_pages, observer)?;
        cell.add_objects(trace, |_| 0)?;
        Ok(cell)
    }

    /// An engine with one group of `memory_pages`, and nothing in it.
    pub fn empty(cfg: Config, memory_pages: u64, swap_max_pages: u64, observer: O) -> Result<Cell<O>, String> {
        let mut engine = Engine::new(cfg)?;
        let group = engine.add_memcg(MemcgId::ROOT, "/replay", memory_pages, swap_max_pages)?;
        let machine = ReplayWorld::new(0, observer);
        let (groups, mappings) = (vec![group], Vec::new());
        Ok(Cell { engine, group, groups, mappings, machine, accesses: 0, misses: 0, oom_at: None })
    }

    /// Registers a file by the ascending indices of its pages, with folios up to an order; returns
    /// the id behind its last one.
    pub fn add_file(&mut self, indices: impl Iterator<Item = u64>, order: u8) -> Result<u32, String> {
        let (mapping, _) = self.engine.add_mapping(MappingKind::File, self.group, indices)?;
        self.engine.set_file_order(mapping, order);
        self.mappings.push(mapping);
        Ok(self.engine.registered_pages() as u32)
    }

    /// The object that was registered last.
    pub fn last_mapping(&self) -> Option<MappingId> {
        self.mappings.last().copied()
    }

    /// Every object is there: page tables for them.
    pub fn end_of_objects(&mut self) {
        self.machine.pte = vec![0; self.engine.registered_pages()];
    }

    /// Registers the objects; `place` gives the index among the groups here of a group of the
    /// trace.
    fn add_objects(&mut self, trace: &Trace, place: impl Fn(u16) -> usize) -> Result<(), String> {
        for o in &trace.objects {
            if o.indices.is_empty() {
                continue;
            }
            let kind = match o.kind {
                ObjectKind::File => MappingKind::File,
                ObjectKind::Anon => MappingKind::Anon,
            };
            let group = self.groups[place(o.group)];
            let (mapping, first) = self.engine.add_mapping(kind, group, o.indices.iter().copied())?;
            debug_assert_eq!(first.0, o.first_page);
            self.mappings.push(mapping);
        }
        self.end_of_objects();
        Ok(())
    }

    /// The same with a lower limit, under which it would be in this state as well.
    pub(super) fn with_memory(&self, pages: u64) -> Result<Cell<O>, String>
    where
        O: Clone,
    {
        let mut cell = self.clone();
        let limits = MemcgLimits { max: pages, ..cell.engine.memcg_limits(cell.group) };
        cell.engine.set_memcg_limits(&mut cell.machine, cell.group, &limits)?;
        Ok(cell)
    }

    /// As [`Cell::run`], with `drops`: pages that leave memory, and before which access of the
    /// trace. Drops before the first of `accesses` are left out.
    pub fn run_with_drops<S: MissSink>(
        &mut self,
        mut accesses: &[PackedAccess],
        mut time_ns: Option<&[u64]>,
        drops: &[(u64, u32)],
        sink: &mut S,
    ) {
        let from = self.accesses;
        let first = drops.partition_point(|&(at, _)| at < from);
        for &(at, page) in &drops[first..] {
            let Some((before, after)) = at
                .checked_sub(self.accesses)
                .and_then(|n| accesses.split_at_checked(n as usize))
                .filter(|(_, after)| !after.is_empty() && self.oom_at.is_none())
            else {
                break;
            };
            self.run(before, time_ns, sink);
            time_ns = time_ns.map(|t| &t[before.len()..]);
            accesses = after;
            self.engine.truncate_range(&mut self.machine, PageId(page), 1);
        }
        self.run(accesses, time_ns, sink);
    }

    /// Replays the next accesses of the trace. `time_ns`, if given, has one entry an access;
    /// otherwise an access takes a microsecond.
    pub fn run<S: MissSink>(&mut self, accesses: &[PackedAccess], time_ns: Option<&[u64]>, sink: &mut S) {
        for (i, block) in accesses.chunks(PREFETCH_BLOCK).enumerate() {
            self.prefetch(block);
            for (j, part) in block.chunks(TICK).enumerate() {
                if self.oom_at.is_some() {
                    return;
                }
                let now = time_ns.map_or(self.accesses * NS_PER_ACCESS, |t| t[i * PREFETCH_BLOCK + j * TICK]);
                self.engine.set_now_ns(now);
                if let Some(swap) = &mut self.machine.swap {
                    swap.tick(self.accesses, &self.engine);
                }
                self.run_part(part, sink);
            }
        }
    }

    fn run_part<S: MissSink>(&mut self, part: &[PackedAccess], sink: &mut S) {
        let first = self.accesses;
        self.accesses += part.len() as u64;
        let mut at = 0;
        loop {
            at += self.engine.read_hits(part[at..].iter().map(|a| a.is_plain().then_some(PageId(a.page()))));
            let Some(&(mut a)) = part.get(at) else { return };
            let hit = if a.is_plain() {
                // There it ended because this is no plain hit.
                self.engine.read_beyond_hit(&mut self.machine, PageId(a.page())).is_hit()
            } else {
                at += self.mapped_hits(&part[at..]);
                match part.get(at) {
                    None => return,
                    Some(next) if next.is_plain() => continue,
                    Some(&next) => a = next,
                }
                self.step_other(a, PageId(a.page()))
            };
            if !hit {
                self.misses += 1;
                self.machine.observer.missed(PageId(a.page()));
                sink.miss(first + at as u64);
                if self.machine.oom.is_some() {
                    self.oom_at = Some(first + at as u64);
                    self.accesses = first + at as u64 + 1;
                    return;
                }
            }
            at += 1;
        }
    }

    /// Touches of mapped pages in a row, which cost the engine nothing: the hardware sets their
    /// bits. How many they were.
    #[inline(always)]
    fn mapped_hits(&mut self, part: &[PackedAccess]) -> usize {
        let pte = &mut self.machine.pte[..];
        for (i, a) in part.iter().enumerate() {
            let entry = &mut pte[a.page() as usize];
            let (needed, set) = hardware_bits(a.is_write());
            if !a.is_map() || *entry & needed != needed {
                return i;
            }
            *entry |= set;
        }
        part.len()
    }

    /// Loads into the cache what accesses need that will be more than a plain hit.
    #[inline]
    pub(super) fn prefetch(&self, block: &[PackedAccess]) {
        let mut work = [PageId(0); PREFETCH_BLOCK];
        let n = self.engine.collect_non_hits(block.iter().map(|a| PageId(a.page())), &mut work);
        std::hint::black_box(self.engine.prefetch(work[..n].iter().copied()));
    }

    /// One access; returns false if it missed.
    #[inline]
    pub fn step(&mut self, a: PackedAccess) -> bool {
        let page = PageId(a.page());
        if a.is_plain() {
            return self.engine.access(&mut self.machine, page, Touch::Read).is_hit();
        }
        self.step_other(a, page)
    }

    /// One access that is not a plain read by descriptor.
    fn step_other(&mut self, a: PackedAccess, page: PageId) -> bool {
        let touch = if a.is_map() {
            // A mapped, resident page costs no call: the hardware sets its bits.
            let pte = &mut self.machine.pte[page.index()];
            let (needed, set) = hardware_bits(a.is_write());
            if *pte & needed == needed {
                *pte |= set;
                return true;
            }
            if a.is_write() { Touch::MapWrite } else { Touch::MapRead }
        } else if a.is_write() {
            Touch::Write
        } else if a.continues() {
            Touch::ReadContinued
        } else {
            Touch::Read
        };
        let outcome = self.engine.access(&mut self.machine, page, touch);
        if a.is_write() && a.is_map() && matches!(outcome, Outcome::Minor | Outcome::Major | Outcome::Fresh) {
            self.machine.pte[page.index()] |= DIRTY;
        }
        outcome.is_hit()
    }
}
