//! Lists of policies: doubly linked, of pages of files by their ids.
//!
//! A page is on one list at most. Its id outlives its stay in memory, so that a list may as well
//! hold pages that are gone: what policies call ghosts.

use crate::ids::{FolioId, LruvecId};

/// No page, and no list.
const NONE: u32 = u32::MAX;

/// A list of a policy; the default is none, until `init` has made some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListId(u32);

impl Default for ListId {
    fn default() -> ListId {
        ListId(NONE)
    }
}

/// Where a page stands, and whether it is in memory.
#[derive(Clone, Copy, Debug)]
struct Node {
    prev: u32,
    next: u32,
    list: u32,
    /// The lruvec whose policy owns the page, while the page is in memory.
    owner: u32,
    /// The page was not read since it was added.
    new: bool,
}

impl Node {
    const FREE: Node = Node { prev: NONE, next: NONE, list: NONE, owner: NONE, new: false };
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: u64,
}

/// Fate of a folio that an iteration has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iter {
    /// Proposes the folio for eviction, and moves it to the tail: if it cannot be evicted it waits
    /// there for its next turn.
    Evict,
    /// Moves the folio to the tail of its list.
    Rotate,
    /// Leaves the folio where it is.
    Skip,
    /// Moves the folio to the tail of another list.
    Move(ListId),
    /// Ends the iteration in front of the folio.
    Stop,
}

/// All lists of all policies of an engine.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    nodes: Vec<Node>,
    lists: Vec<Ends>,
}

impl Lists {
    /// A new, empty list.
    pub fn new_list(&mut self) -> ListId {
        self.lists.push(Ends { head: NONE, tail: NONE, len: 0 });
        ListId(self.lists.len() as u32 - 1)
    }

    /// Number of folios on a list.
    pub fn len(&self, list: ListId) -> u64 {
        self.lists[list.0 as usize].len
    }

    /// Whether a list has no folios.
    pub fn is_empty(&self, list: ListId) -> bool {
        self.len(list) == 0
    }

    /// First folio of a list, at its head.
    pub fn head(&self, list: ListId) -> Option<FolioId> {
        some(self.lists[list.0 as usize].head)
    }

    /// The folio behind another one, towards the tail.
    pub fn next(&self, f: FolioId) -> Option<FolioId> {
        some(self.node(f).next)
    }

    /// The list of a folio.
    pub fn list_of(&self, f: FolioId) -> Option<ListId> {
        some(self.node(f).list).map(|list| ListId(list.0))
    }

    /// Whether a folio is on that list.
    pub fn is_on(&self, list: ListId, f: FolioId) -> bool {
        self.node(f).list == list.0
    }

    /// Puts a folio at the head of a list. It leaves the list that it is on, as a ghost of another
    /// group may be on one.
    pub fn add(&mut self, list: ListId, f: FolioId) {
        self.del(f);
        let head = self.lists[list.0 as usize].head;
        self.link(list, f, NONE, head);
    }

    /// Puts a folio at the tail of a list; it leaves the list that it is on.
    pub fn add_tail(&mut self, list: ListId, f: FolioId) {
        self.del(f);
        let tail = self.lists[list.0 as usize].tail;
        self.link(list, f, tail, NONE);
    }

    /// Takes a folio off its list, if it is on one.
    pub fn del(&mut self, f: FolioId) {
        let node = self.node(f);
        if node.list == NONE {
            return;
        }
        match node.prev {
            NONE => self.lists[node.list as usize].head = node.next,
            prev => self.nodes[prev as usize].next = node.next,
        }
        match node.next {
            NONE => self.lists[node.list as usize].tail = node.prev,
            next => self.nodes[next as usize].prev = node.prev,
        }
        self.lists[node.list as usize].len -= 1;
        self.nodes[f.index()] = Node { prev: NONE, next: NONE, list: NONE, ..node };
    }

    /// Moves a folio to the tail of a list, from any list.
    pub fn move_tail(&mut self, list: ListId, f: FolioId) {
        self.add_tail(list, f);
    }

    /// Moves a folio to the head of a list, from any list.
    pub fn move_head(&mut self, list: ListId, f: FolioId) {
        self.add(list, f);
    }

    /// Goes through a list from its head on, each folio once, until enough folios are proposed.
    pub fn iterate(
        &mut self,
        list: ListId,
        eviction: &mut Eviction,
        mut judge: impl FnMut(&mut Lists, FolioId) -> Iter,
    ) {
        let mut left = self.len(list);
        let mut at = self.head(list);
        while let Some(f) = at.filter(|_| left > 0 && !eviction.is_full()) {
            left -= 1;
            at = self.next(f);
            match judge(self, f) {
                Iter::Evict => {
                    eviction.propose(f);
                    self.move_tail(list, f);
                }
                Iter::Rotate => self.move_tail(list, f),
                Iter::Skip => {}
                Iter::Move(to) => self.move_tail(to, f),
                Iter::Stop => return,
            }
            if at.is_none() {
                at = self.head(list);
            }
        }
    }

    /// Proposes folios with the lowest scores: of each `nr_sample` folios from the head on, the one
    /// with the lowest score. All of the sample go to the tail.
    pub fn sample(
        &mut self,
        list: ListId,
        eviction: &mut Eviction,
        nr_sample: u64,
        mut score: impl FnMut(FolioId) -> u64,
    ) {
        let mut left = self.len(list);
        while !eviction.is_full() && left > 0 {
            let mut lowest = None;
            for _ in 0..nr_sample.clamp(1, left) {
                let Some(f) = self.head(list) else { break };
                left -= 1;
                self.move_tail(list, f);
                let of = score(f);
                if lowest.is_none_or(|(least, _)| of < least) {
                    lowest = Some((of, f));
                }
            }
            if let Some((_, f)) = lowest {
                eviction.propose(f);
            }
        }
    }

    fn node(&self, f: FolioId) -> Node {
        self.nodes.get(f.index()).copied().unwrap_or(Node::FREE)
    }

    fn link(&mut self, list: ListId, f: FolioId, prev: u32, next: u32) {
        let node = self.node_mut(f);
        debug_assert!(node.list == NONE, "{f:?} is on a list already");
        *node = Node { prev, next, list: list.0, ..*node };
        match prev {
            NONE => self.lists[list.0 as usize].head = f.0,
            prev => self.nodes[prev as usize].next = f.0,
        }
        match next {
            NONE => self.lists[list.0 as usize].tail = f.0,
            next => self.nodes[next as usize].prev = f.0,
        }
        self.lists[list.0 as usize].len += 1;
    }

    fn node_mut(&mut self, f: FolioId) -> &mut Node {
        if self.nodes.len() <= f.index() {
            self.nodes.resize(f.index() + 1, Node::FREE);
        }
        &mut self.nodes[f.index()]
    }

    /// The memcg whose policy got a folio when it was added to memory; none: no policy has it.
    pub(crate) fn owner(&self, f: FolioId) -> Option<LruvecId> {
        some(self.node(f).owner).map(|owner| LruvecId(owner.0))
    }

    /// Notes the memcg whose policy got a folio; none: the folio has left memory.
    pub(crate) fn set_owner(&mut self, f: FolioId, owner: Option<LruvecId>) {
        self.node_mut(f).owner = owner.map_or(NONE, |v| v.0);
    }

    /// Whether a folio is in memory and nobody has read it by descriptor since it was added: the
    /// device is not done, or the folio was read ahead.
    pub fn is_unread(&self, f: FolioId) -> bool {
        self.node(f).new
    }

    /// Notes that a folio was added and not read yet.
    pub(crate) fn set_new(&mut self, f: FolioId) {
        self.node_mut(f).new = true;
    }

    /// Notes a read of a folio. True: the first one since the folio was added.
    pub(crate) fn take_new(&mut self, f: FolioId) -> bool {
        self.nodes.get_mut(f.index()).is_some_and(|node| std::mem::take(&mut node.new))
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.lists.capacity() * size_of::<Ends>()
    }

    /// Every list is whole, and counts what is on it.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut linked = 0;
        for (l, ends) in self.lists.iter().enumerate() {
            let (mut at, mut prev, mut len) = (ends.head, NONE, 0);
            while at != NONE {
                let node = self.nodes[at as usize];
                if node.prev != prev || node.list as usize != l || len > ends.len {
                    return Err(format!("cache_ext: list {l} is broken at page {at}"));
                }
                (prev, at, len) = (at, node.next, len + 1);
            }
            if (prev, len) != (ends.tail, ends.len) {
                return Err(format!("cache_ext: list {l} counts {}, and has {len}", ends.len));
            }
            linked += len;
        }
        let listed = self.nodes.iter().filter(|node| node.list != NONE).count() as u64;
        (linked == listed)
            .then_some(())
            .ok_or(format!("cache_ext: {listed} pages say that they are on lists, {linked} are"))
    }
}

fn some(id: u32) -> Option<FolioId> {
    (id != NONE).then_some(FolioId(id))
}

/// A request to a policy for folios to evict.
#[derive(Clone, Debug)]
pub struct Eviction {
    wanted: usize,
    /// Folios chosen so far, in the order of their eviction.
    chosen: Vec<FolioId>,
}

impl Eviction {
    /// A request for `wanted` folios. `chosen`: an empty vector, for its capacity.
    pub(crate) fn new(wanted: usize, chosen: Vec<FolioId>) -> Eviction {
        Eviction { wanted, chosen }
    }

    /// How many folios are still wanted.
    pub fn wanted(&self) -> usize {
        self.wanted - self.chosen.len()
    }

    /// Whether enough folios are chosen.
    pub fn is_full(&self) -> bool {
        self.wanted() == 0
    }

    /// Proposes a folio. One that is not in memory, or that cannot be evicted now, is passed over.
    pub fn propose(&mut self, f: FolioId) {
        if !self.is_full() {
            self.chosen.push(f);
        }
    }

    /// The folios that are proposed.
    pub(crate) fn into_chosen(self) -> Vec<FolioId> {
        self.chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(lists: &Lists, list: ListId) -> Vec<u32> {
        std::iter::successors(lists.head(list), |&f| lists.next(f)).map(|f| f.0).collect()
    }

    #[test]
    fn folios_move_between_lists() {
        let mut lists = Lists::default();
        let (a, b) = (lists.new_list(), lists.new_list());
        (0..4).for_each(|f| lists.add_tail(a, FolioId(f)));
        lists.add(a, FolioId(9));
        lists.move_tail(b, FolioId(1));
        lists.move_head(b, FolioId(3));
        lists.del(FolioId(0));
        assert_eq!((ids(&lists, a), ids(&lists, b)), (vec![9, 2], vec![3, 1]));
        assert_eq!((lists.list_of(FolioId(0)), lists.list_of(FolioId(1))), (None, Some(b)));
        lists.validate().expect("whole");
    }

    #[test]
    fn an_iteration_sees_each_folio_once() {
        let mut lists = Lists::default();
        let (a, b) = (lists.new_list(), lists.new_list());
        (0..6).for_each(|f| lists.add_tail(a, FolioId(f)));
        let mut eviction = Eviction::new(2, Vec::new());
        let mut seen = Vec::new();
        lists.iterate(a, &mut eviction, |_, f| {
            seen.push(f.0);
            match f.0 {
                0 => Iter::Rotate,
                1 => Iter::Skip,
                2 => Iter::Move(b),
                _ => Iter::Evict,
            }
        });
        assert_eq!((seen, eviction.into_chosen()), (vec![0, 1, 2, 3, 4], vec![FolioId(3), FolioId(4)]));
        assert_eq!((ids(&lists, a), ids(&lists, b)), (vec![1, 5, 0, 3, 4], vec![2]));
        let mut eviction = Eviction::new(9, Vec::new());
        let mut calls = 0;
        lists.iterate(a, &mut eviction, |_, _| {
            calls += 1;
            Iter::Rotate
        });
        assert_eq!(calls, 5);
        lists.validate().expect("whole");
    }

    #[test]
    fn a_sample_gives_the_lowest_of_each_part() {
        let mut lists = Lists::default();
        let a = lists.new_list();
        (0..6).for_each(|f| lists.add_tail(a, FolioId(f)));
        let mut eviction = Eviction::new(2, Vec::new());
        lists.sample(a, &mut eviction, 3, |f| u64::from(10 - f.0));
        assert_eq!(eviction.into_chosen(), [FolioId(2), FolioId(5)]);
    }
}
