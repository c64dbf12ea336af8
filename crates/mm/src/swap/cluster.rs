//! Clusters of slots and the lists on which they stand.
//!
//! A list is a ring through its head; heads and clusters are both nodes of it, so a cluster leaves
//! its list without knowing which one that is. Clusters that were never used stand on no ring: they
//! come before all others of the free list, in the order of their numbers. (Linux interleaves them
//! so that CPUs do not share cache lines; nothing else depends on their order.)
//!
//! Mechanism: `docs/mechanisms.md#swap-clusters`.

use super::map::{ClusterSlots, HAS_CACHE};
use super::scan::find;
use crate::folio::slot::Slot;
use crate::ids::MemcgId;

/// Slots of a cluster, at most.
pub(super) const MAX_CLUSTER_PAGES: usize = 512;
/// Orders 0 to 9.
pub(super) const NR_ORDERS: usize = 10;

/// State of a cluster, and so the list on which it stands. `None`: it waits to be discarded or is
/// being discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flag {
    None,
    Free,
    Nonfull,
    Frag,
    Full,
}

/// A node of a ring.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// Link of a cluster that is on no list: following it panics.
const POISON: u32 = u32::MAX - 1000;
const UNLINKED: Link = Link { prev: POISON, next: POISON };

/// One of the lists of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClusterListId(u32);

impl ClusterListId {
    pub(super) const FREE: ClusterListId = ClusterListId(0);
    pub(super) const FULL: ClusterListId = ClusterListId(1);
    pub(super) const DISCARD: ClusterListId = ClusterListId(2);

    pub(super) const fn nonfull(order: usize) -> ClusterListId {
        ClusterListId(3 + order as u32)
    }

    pub(super) const fn frag(order: usize) -> ClusterListId {
        ClusterListId((3 + NR_ORDERS + order) as u32)
    }

    /// The list that a flag names. The id of `None` names the discard list, on which a cluster is
    /// or was.
    pub(super) fn of(flag: Flag, order: usize) -> ClusterListId {
        match flag {
            Flag::None => ClusterListId::DISCARD,
            Flag::Free => ClusterListId::FREE,
            Flag::Nonfull => ClusterListId::nonfull(order),
            Flag::Frag => ClusterListId::frag(order),
            Flag::Full => ClusterListId::FULL,
        }
    }

    fn node(self) -> u32 {
        FIRST_HEAD + self.0
    }
}

const NR_LISTS: usize = 3 + 2 * NR_ORDERS;
const FIRST_HEAD: u32 = u32::MAX - NR_LISTS as u32;

/// `slots` consecutive, aligned slots.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// None while all slots of the cluster are free.
    pub(super) slots: Option<Box<ClusterSlots>>,
    link: Link,
    /// Slots that are not free, unusable ones included.
    pub(super) count: u16,
    pub(super) order: u8,
    pub(super) flag: Flag,
}

impl Cluster {
    /// Bytes of memory for a cluster with slots in use.
    pub(super) const BYTES: usize = size_of::<Cluster>() + ClusterSlots::BYTES;
    const UNUSED: Cluster = Cluster { slots: None, link: UNLINKED, count: 0, order: 0, flag: Flag::Free };
}

/// A wrong rule, to show that its regression test finds it (discard).
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum InjectedFault {
    #[default]
    None,
    /// Full clusters have no flag.
    FullFlagZero,
    /// A freed cluster is moved to the free list, even when it is on none.
    AlwaysMove,
}

/// The clusters of one device.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    /// Up to the highest that was ever used.
    all: Vec<Cluster>,
    heads: [Link; NR_LISTS],
    frag_nr: [u32; NR_ORDERS],
    /// Clusters of the device.
    nr: u32,
    /// First cluster from which on none was ever used, except those with unusable slots.
    virgin: u32,
    /// log2 of the slots of a cluster.
    shift: u32,
    pool: Vec<Box<ClusterSlots>>,
    #[cfg(test)]
    pub(super) fault: InjectedFault,
}

/// Emptied slots that are kept for the next cluster.
const POOL: usize = 64;

impl Clusters {
    pub(super) fn new(nr: u32, cluster_pages: u32) -> Clusters {
        let heads = std::array::from_fn(|i| Link { prev: FIRST_HEAD + i as u32, next: FIRST_HEAD + i as u32 });
        Clusters {
            all: Vec::new(),
            heads,
            frag_nr: [0; NR_ORDERS],
            nr,
            virgin: 0,
            shift: cluster_pages.ilog2(),
            pool: Vec::new(),
            #[cfg(test)]
            fault: InjectedFault::None,
        }
    }

    /// Number of clusters.
    pub(super) fn len(&self) -> u32 {
        self.nr
    }

    /// Slots of each.
    pub(super) fn pages(&self) -> u32 {
        1 << self.shift
    }

    /// log2 of that: the highest order.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    pub(super) fn frag_nr(&self, order: usize) -> u32 {
        self.frag_nr[order]
    }

    #[inline]
    pub(super) fn get(&self, c: u32) -> &Cluster {
        self.all.get(c as usize).unwrap_or(const { &Cluster::UNUSED })
    }

    /// For writing.
    #[inline]
    pub(super) fn get_mut(&mut self, c: u32) -> &mut Cluster {
        if self.all.len() <= c as usize {
            self.all.resize(c as usize + 1, Cluster::UNUSED);
        }
        &mut self.all[c as usize]
    }

    /// The slots of a cluster; makes them if all slots were free, because one is about to be used.
    #[inline]
    pub(super) fn slots_mut(&mut self, c: u32) -> &mut ClusterSlots {
        if self.all.get(c as usize).is_none_or(|c| c.slots.is_none()) {
            self.take_slots(c);
        }
        self.all[c as usize].slots.as_mut().expect("it was put there")
    }

    /// Allocates the first free slot at or after `from`, charged to `memcg`, if the cluster stays
    /// on its list, partly used. `is_scanned`: that is the list of fragmented ones. Returns the
    /// distance from `from`.
    #[inline]
    pub(super) fn take_free_slot(&mut self, c: u32, from: usize, memcg: MemcgId, is_scanned: bool) -> Option<usize> {
        let pages = self.pages() as usize;
        let cluster = self.all.get_mut(c as usize)?;
        let stays = cluster.flag == Flag::Frag || (cluster.flag == Flag::Nonfull && !is_scanned);
        if !stays || usize::from(cluster.count) + 1 >= pages {
            return None;
        }
        let slots = cluster.slots.as_mut()?;
        let map = &slots.map[from..pages];
        let n = if map[0] == 0 { 0 } else { find(map, |b| b == 0)? };
        (slots.map[from + n], slots.memcg[from + n]) = (HAS_CACHE, memcg);
        cluster.count += 1;
        Some(n)
    }

    /// Frees a slot of a cluster that stays partly used, and on its list; returns the memcg that
    /// was charged for it.
    #[inline]
    pub(super) fn free_slot(&mut self, c: u32, at: usize) -> Option<MemcgId> {
        let cluster = self.all.get_mut(c as usize)?;
        if cluster.flag != Flag::Nonfull || cluster.count < 2 {
            return None;
        }
        let slots = cluster.slots.as_mut()?;
        (slots.map[at], slots.cache[at]) = (0, Slot::EMPTY);
        cluster.count -= 1;
        Some(slots.memcg[at])
    }

    #[cold]
    fn take_slots(&mut self, c: u32) {
        let fresh = self.pool.pop().unwrap_or_else(ClusterSlots::new);
        self.get_mut(c).slots = Some(fresh);
    }

    /// Takes back the slots of a cluster that is free. Their map is zero, and they hold nothing.
    pub(super) fn drop_slots(&mut self, c: u32) {
        let slots = self.get_mut(c).slots.take();
        if self.pool.len() < POOL {
            self.pool.extend(slots);
        }
    }

    fn link_of(&mut self, node: u32) -> &mut Link {
        match node >= FIRST_HEAD {
            true => &mut self.heads[(node - FIRST_HEAD) as usize],
            false => &mut self.all[node as usize].link,
        }
    }

    fn unlink(&mut self, c: u32) {
        let Link { prev, next } = self.all[c as usize].link;
        self.link_of(prev).next = next;
        self.link_of(next).prev = prev;
        self.all[c as usize].link = UNLINKED;
    }

    fn add_tail(&mut self, c: u32, list: ClusterListId) {
        let head = list.node();
        let last = std::mem::replace(&mut self.link_of(head).prev, c);
        self.link_of(last).next = c;
        self.all[c as usize].link = Link { prev: last, next: head };
    }

    /// The first cluster of a list. `FREE`: the first that was used before, see
    /// [`Clusters::first_free`].
    pub(super) fn first(&self, list: ClusterListId) -> Option<u32> {
        let first = self.heads[list.0 as usize].next;
        (first < FIRST_HEAD).then_some(first)
    }

    /// The next free cluster.
    pub(super) fn first_free(&mut self) -> Option<u32> {
        // Clusters with unusable slots are not free from the start.
        while self.virgin < self.nr && self.get(self.virgin).flag != Flag::Free {
            self.virgin += 1;
        }
        if self.virgin < self.nr { Some(self.virgin) } else { self.first(ClusterListId::FREE) }
    }

    /// Whether a cluster was never used.
    fn is_virgin(&self, c: u32) -> bool {
        c >= self.virgin && self.get(c).flag == Flag::Free
    }

    /// From the list on which it is to the tail of another one. A cluster that is on none must not
    /// come here.
    pub(super) fn move_tail(&mut self, c: u32, flag: Flag) {
        let was_virgin = self.is_virgin(c);
        let cluster = self.get_mut(c);
        let (was, order) = (std::mem::replace(&mut cluster.flag, flag), usize::from(cluster.order));
        self.frag_nr[order] -= u32::from(was == Flag::Frag);
        self.frag_nr[order] += u32::from(flag == Flag::Frag);
        match was_virgin {
            true => self.virgin = c + 1,
            false => self.unlink(c),
        }
        self.add_tail(c, ClusterListId::of(flag, order));
        #[cfg(test)]
        if self.fault == InjectedFault::FullFlagZero && flag == Flag::Full {
            self.all[c as usize].flag = Flag::None;
        }
    }

    /// The first of a list goes to its tail.
    pub(super) fn rotate(&mut self, c: u32, list: ClusterListId) {
        self.unlink(c);
        self.add_tail(c, list);
    }

    /// Puts a cluster that was free until now on the list of a new order, without counting slots.
    pub(super) fn set_order(&mut self, c: u32, order: u8) {
        self.get_mut(c).order = order;
    }

    /// A cluster with unusable slots, when the device is activated.
    pub(super) fn add_unusable(&mut self, c: u32) {
        let pages = self.pages();
        let cluster = self.get_mut(c);
        cluster.flag = if u32::from(cluster.count) == pages { Flag::Full } else { Flag::Nonfull };
        let list = ClusterListId::of(cluster.flag, 0);
        self.add_tail(c, list);
    }

    /// A cluster whose last slot was freed, or that was discarded, is free.
    pub(super) fn set_free(&mut self, c: u32) {
        let flag = self.all[c as usize].flag;
        #[cfg(test)]
        let flag = if self.fault == InjectedFault::AlwaysMove { Flag::Full } else { flag };
        if flag == Flag::None {
            // A discarded cluster: the worker took it off its list.
            self.get_mut(c).flag = Flag::Free;
            self.add_tail(c, ClusterListId::FREE);
        } else {
            self.move_tail(c, Flag::Free);
        }
        self.get_mut(c).order = 0;
        self.drop_slots(c);
    }

    /// The discard worker takes the next cluster; it is on no list then.
    pub(super) fn pop_discard(&mut self) -> Option<u32> {
        let c = self.first(ClusterListId::DISCARD)?;
        self.unlink(c);
        Some(c)
    }

    /// The members of a list in their order, or what is wrong with it.
    pub(super) fn members(&self, list: ClusterListId) -> Result<Vec<u32>, String> {
        let (mut at, mut before, mut found) = (self.heads[list.0 as usize].next, list.node(), Vec::new());
        while at != list.node() {
            let Some(cluster) = self.all.get(at as usize).filter(|c| c.link.prev == before) else {
                return Err(format!("{list:?}: {at} is no member, or does not follow {before}"));
            };
            if found.len() > self.all.len() {
                return Err(format!("{list:?} has no end"));
            }
            found.push(at);
            (before, at) = (at, cluster.link.next);
        }
        Ok(found)
    }

    /// Free clusters that were never used, as far as they have an entry in `all`.
    pub(super) fn virgins(&self) -> impl Iterator<Item = u32> + '_ {
        (self.virgin..self.touched()).filter(|&c| self.get(c).flag == Flag::Free)
    }

    /// Up to here clusters were ever used, or cannot be.
    pub(super) fn touched(&self) -> u32 {
        self.all.len() as u32
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        let used = self.all.iter().filter(|c| c.slots.is_some()).count() + self.pool.len();
        self.all.capacity() * size_of::<Cluster>() + used * ClusterSlots::BYTES
    }
}
