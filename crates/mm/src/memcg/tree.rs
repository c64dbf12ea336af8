//! The tree of memory cgroups: its links, the order in which reclaim walks it, and where a walk
//! goes on.
//!
//! Mechanism: `docs/mechanisms.md#the-walk-over-the-memcg-tree`.

use crate::ids::{MAX_NUMNODES, MemcgId, NodeId};
use crate::memcg::group::Memcgs;

/// The place of a group among its kin, and where walks of its subtree are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemcgLinks {
    first_child: Option<MemcgId>,
    last_child: Option<MemcgId>,
    prev: Option<MemcgId>,
    next: Option<MemcgId>,
    /// By node: the group at which the last partial walk from this group ended; none: it came to
    /// the end of the tree.
    cursors: [Option<MemcgId>; MAX_NUMNODES],
}

impl Memcgs {
    pub(crate) fn has_children(&self, id: MemcgId) -> bool {
        self.get(id).links.first_child.is_some()
    }

    /// The children of a group, in the order in which they were made.
    pub(crate) fn children(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        std::iter::successors(self.get(id).links.first_child, |&m| self.get(m).links.next)
    }

    /// The group after `at` in a pre-order walk of the subtree of `root`.
    pub(crate) fn next_in(&self, root: MemcgId, at: MemcgId) -> Option<MemcgId> {
        if let Some(child) = self.get(at).links.first_child {
            return Some(child);
        }
        let mut at = at;
        while at != root {
            let m = self.get(at);
            match m.links.next {
                Some(next) => return Some(next),
                None => at = m.parent?,
            }
        }
        None
    }

    /// `root` and its descendants, parents first.
    pub(crate) fn subtree(&self, root: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        std::iter::successors(Some(root), move |&m| self.next_in(root, m))
    }

    /// Whether `id` is `above` or below it.
    pub(crate) fn is_within(&self, id: MemcgId, above: MemcgId) -> bool {
        self.chain(id).any(|m| m == above)
    }

    /// Makes `id` the last child of `parent`.
    pub(crate) fn link(&mut self, id: MemcgId, parent: MemcgId) {
        let last = self.get_mut(parent).links.last_child.replace(id);
        match last {
            Some(last) => self.get_mut(last).links.next = Some(id),
            None => self.get_mut(parent).links.first_child = Some(id),
        }
        let m = self.get_mut(id);
        m.parent = Some(parent);
        m.links = MemcgLinks { prev: last, ..MemcgLinks::default() };
    }

    /// Takes a group without children out of the tree. Walks that ended with it start over.
    pub(crate) fn unlink(&mut self, id: MemcgId) {
        let m = self.get(id);
        let (Some(parent), MemcgLinks { prev, next, .. }) = (m.parent, m.links) else { return };
        match prev {
            Some(p) => self.get_mut(p).links.next = next,
            None => self.get_mut(parent).links.first_child = next,
        }
        match next {
            Some(n) => self.get_mut(n).links.prev = prev,
            None => self.get_mut(parent).links.last_child = prev,
        }
        let mut at = Some(parent);
        while let Some(m) = at {
            let m = self.get_mut(m);
            m.links.cursors.iter_mut().for_each(|c| *c = c.filter(|&c| c != id));
            at = m.parent;
        }
        self.get_mut(id).links = MemcgLinks::default();
    }

    /// Where the next partial walk of the subtree of `root` for a node starts: after where the last
    /// one stopped. One that would start at the end starts over.
    pub(crate) fn resume(&self, root: MemcgId, nid: NodeId) -> MemcgId {
        self.get(root).links.cursors[nid.index()].and_then(|c| self.next_in(root, c)).unwrap_or(root)
    }

    /// A partial walk for a node stopped here; none: it came to the end.
    pub(crate) fn set_cursor(&mut self, root: MemcgId, nid: NodeId, at: Option<MemcgId>) {
        self.get_mut(root).links.cursors[nid.index()] = at;
    }

    /// Links go both ways, and every group that is there is below the root once.
    pub(crate) fn validate_tree(&self) -> Result<(), String> {
        use crate::memcg::group::MemcgState;
        let mut met = vec![0u32; self.all.len()];
        for id in self.subtree(MemcgId::ROOT) {
            met[id.index()] += 1;
            let m = self.get(id);
            let children: Vec<_> = self.children(id).collect();
            let back = children.windows(2).all(|w| self.get(w[1]).links.prev == Some(w[0]));
            if !back || children.last() != m.links.last_child.as_ref() {
                return Err(format!("{}: its children are not linked both ways", m.name));
            }
            if children.iter().any(|&c| self.get(c).parent != Some(id)) {
                return Err(format!("{}: a child has another parent", m.name));
            }
            let astray = |&c: &MemcgId| !self.is_within(c, id) || self.get(c).state == MemcgState::Gone;
            if let Some(c) = m.links.cursors.into_iter().flatten().find(astray) {
                return Err(format!("{}: a walk stopped at {c:?}, which is not below it", m.name));
            }
        }
        let wrong = self.all.iter().zip(&met).find(|(m, met)| **met != u32::from(m.state != MemcgState::Gone));
        match wrong {
            Some((m, met)) => Err(format!("{} ({:?}) is {met} times in the tree", m.name, m.state)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LruvecId;
    use crate::memcg::group::Memcg;

    fn tree(parents: &[u16]) -> Memcgs {
        let mut t = Memcgs::new(64, true);
        for (i, &parent) in parents.iter().enumerate() {
            t.all.push(Memcg::new(None, "", LruvecId(0), u64::MAX, u64::MAX));
            t.link(MemcgId(i as u16 + 1), MemcgId(parent));
        }
        t
    }

    fn walk(t: &Memcgs, root: u16) -> Vec<u16> {
        t.subtree(MemcgId(root)).map(|m| m.0).collect()
    }

    #[test]
    fn a_walk_is_in_pre_order_and_stays_below_its_root() {
        // 1 and 2 below the root, 3 and 4 below 1, 5 below 3, 6 below 2.
        let t = tree(&[0, 0, 1, 1, 3, 2]);
        assert_eq!(walk(&t, 0), [0, 1, 3, 5, 4, 2, 6]);
        assert_eq!(walk(&t, 1), [1, 3, 5, 4]);
        assert_eq!(walk(&t, 6), [6]);
        t.validate_tree().unwrap();
    }

    #[test]
    fn a_partial_walk_goes_on_where_the_last_stopped() {
        let mut t = tree(&[0, 0, 0]);
        assert_eq!(t.resume(MemcgId::ROOT, NodeId(0)).0, 0);
        t.set_cursor(MemcgId::ROOT, NodeId(0), Some(MemcgId(1)));
        assert_eq!(t.resume(MemcgId::ROOT, NodeId(0)).0, 2);
        t.set_cursor(MemcgId::ROOT, NodeId(0), Some(MemcgId(3)));
        assert_eq!(t.resume(MemcgId::ROOT, NodeId(0)).0, 0, "from the end it starts over");
        t.unlink(MemcgId(3));
        assert_eq!(t.resume(MemcgId::ROOT, NodeId(0)).0, 0, "the group is gone");
        assert_eq!(walk(&t, 0), [0, 1, 2]);
    }

    #[test]
    fn unlinking_closes_the_gap_wherever_it_is() {
        for gone in [1u16, 2, 3] {
            let mut t = tree(&[0, 0, 0]);
            t.unlink(MemcgId(gone));
            t.get_mut(MemcgId(gone)).state = crate::memcg::group::MemcgState::Gone;
            t.validate_tree().unwrap();
            let rest: Vec<u16> = (0..4).filter(|&i| i != gone).collect();
            assert_eq!(walk(&t, 0), rest);
        }
    }
}
