//! Mappings: files and anonymous regions, their tree nodes and page tables.
//!
//! The slots of pages are laid out densely in the order of page ids (see `folio`); the 64-slot
//! nodes that Linux would allocate are kept beside them, because their number decides what is
//! charged and which shadows the shrinker takes, and the 512-page tables because aging and
//! look-around work on them. Pages of one mapping have ascending ids, so a node and a table are
//! ranges of ids.

use crate::config::recency::AccessAdvice;
use crate::config::thp::HugeAdvice;
use crate::folio::inode::Inode;
use crate::folio::readahead::{Streams, SwapReadahead};
use crate::folio::slot::{Location, MAX_NODES};
use crate::folio::table::FolioTable;
use crate::ids::{LruvecId, MappingId, MemcgId, NodeId, PageId, XaNodeId};

/// Kind of memory in a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MappingKind {
    /// Pages of a file: evicted clean, leaving a shadow.
    File,
    /// Anonymous memory: evicted to swap.
    Anon,
}

/// Counts of a tree node: entries (above the leaves, children), and shadows among them. Kept apart
/// from the rest of the node, since every eviction and refault changes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) count: u8,
    pub(crate) nr_values: u8,
}

impl Fill {
    /// A node of anonymous memory: page tables take its place, it stays empty and free of charge.
    pub(crate) const ANON: Fill = Fill { count: u8::MAX, nr_values: 0 };

    /// Whether a node has entries, and all are shadows: then it is on the list of such nodes.
    #[inline(always)]
    pub(crate) fn is_shadows_only(self) -> bool {
        self.count > 0 && self.count == self.nr_values
    }
}

/// No node, no table.
pub(crate) const NONE: u32 = u32::MAX;

/// A 64-slot tree node, but for its [`Fill`].
#[derive(Clone, Debug)]
pub(crate) struct XaNode {
    pub(crate) first: PageId,
    pub(crate) parent: u32,
    /// Neighbours on the list of shadow nodes.
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// Index in the mapping, in units of 64 pages.
    base: u64,
    /// Registered pages of the node.
    pub(crate) len: u8,
    /// The only entry, of the first page of a file, lies in the mapping itself: the node does not
    /// exist.
    pub(crate) is_head: bool,
    /// The memcg that is charged for the node while it exists.
    pub(crate) memcg: MemcgId,
    /// The memory node on which the tree node lies.
    pub(crate) nid: NodeId,
}

/// A page table: 512 consecutive pages of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) first: PageId,
    /// Registered pages of the table.
    pub(crate) len: u16,
    /// Pages of the table that are mapped now.
    pub(crate) mapped: u16,
    /// Entries between the ends of the mapping that fall into the table.
    pub(crate) span: u16,
    /// The table was needed once and is charged.
    pub(crate) present: bool,
}

/// One file or anonymous region.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) kind: MappingKind,
    pub(crate) memcg: MemcgId,
    pub(crate) first: PageId,
    pub(crate) tables: std::ops::Range<u32>,
    pub(crate) min_index: u64,
    pub(crate) max_index: u64,
    pub(crate) swap_readahead: SwapReadahead,
    pub(crate) streams: Streams,
    pub(crate) huge: HugeAdvice,
    pub(crate) advice: AccessAdvice,
    /// Orders above 0 that faults may make, one bit each.
    pub(crate) orders: u16,
    /// The largest order of a file's folios.
    pub(crate) max_order: u8,
    /// The page behind the last one of a file at present (`i_size`).
    pub(crate) i_size: u32,
    /// State of a file that the kernel keeps beside its pages.
    pub(crate) inode: Inode,
}

/// Owner of the pages of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) kind: MappingKind,
    pub(crate) memcg: MemcgId,
    pub(crate) lruvec: LruvecId,
}

/// All mappings, with their nodes and tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSpace {
    pub(crate) nodes: Vec<XaNode>,
    pub(crate) fill: Vec<Fill>,
    /// By leaf node: the page table that covers it.
    leaf_table: Vec<u32>,
    /// One bit a page: whether it is mapped. The neighbours of a page are looked up here, without a
    /// visit to their folios.
    mapped: Vec<u64>,
    pub(crate) tables: Vec<Table>,
    pub(crate) mappings: Vec<Mapping>,
    /// Some mapping has been advised how it will be accessed.
    pub(crate) advised: bool,
}

impl PageSpace {
    /// Registers a mapping by the indices of its pages, strictly ascending. The pages enter the
    /// folio table.
    pub(crate) fn register(
        &mut self,
        folios: &mut FolioTable,
        owner: Owner,
        indices: impl Iterator<Item = u64>,
    ) -> Result<MappingId, String> {
        let first = PageId(folios.len() as u32);
        let (first_node, first_table) = (self.nodes.len(), self.tables.len() as u32);
        folios.reserve(indices.size_hint().0);
        let mut last = None;
        for index in indices {
            if last.is_some_and(|l| l >= index) {
                return Err(format!("mapping: page index {index} does not ascend"));
            }
            last = Some(index);
            self.register_page(folios, index, owner, folios.len() == first.index())?;
        }
        let Some(max_index) = last else {
            return Err("mapping: holds no page".into());
        };
        let min_index = self.index(folios.location(first));
        let tables = first_table..self.tables.len() as u32;
        self.mapped.resize(folios.len().div_ceil(64), 0);
        self.link_upper_levels(first_node, owner)?;
        folios.links.owners.resize(self.nodes.len(), owner.lruvec);
        self.set_spans(folios, &tables, min_index, max_index);
        self.mappings.push(Mapping {
            kind: owner.kind,
            memcg: owner.memcg,
            first,
            tables,
            min_index,
            max_index,
            swap_readahead: SwapReadahead::default(),
            streams: Streams::default(),
            huge: HugeAdvice::None,
            advice: AccessAdvice::Normal,
            orders: 0,
            max_order: 0,
            i_size: u32::MAX,
            inode: Inode::default(),
        });
        Ok(MappingId(self.mappings.len() as u32 - 1))
    }

    fn register_page(&mut self, folios: &mut FolioTable, index: u64, owner: Owner, start: bool) -> Result<(), String> {
        let id = folios.len();
        if id >= (1 << 30) {
            return Err("more than 2^30 pages".into());
        }
        let same_node = |n: &XaNode| n.base == index >> 6;
        if start || !self.nodes.last().is_some_and(same_node) {
            let new_table = start || self.nodes.last().is_none_or(|n| n.base >> 3 != index >> 9);
            if new_table {
                self.tables.push(Table { first: PageId(id as u32), len: 0, mapped: 0, span: 512, present: false });
            }
            self.push_node(PageId(id as u32), index >> 6, self.tables.len() as u32 - 1, owner)?;
        }
        let node = self.nodes.len() - 1;
        self.nodes[node].len += 1;
        self.tables.last_mut().expect("a table was pushed with the node").len += 1;
        folios.push_page(Location::new(node, index));
        Ok(())
    }

    fn push_node(&mut self, first: PageId, base: u64, table: u32, owner: Owner) -> Result<(), String> {
        if self.nodes.len() >= MAX_NODES {
            return Err("more than 2^26 tree nodes: the pages are spread too thinly".into());
        }
        let (memcg, nid) = (owner.memcg, NodeId::default());
        self.nodes.push(XaNode {
            first,
            parent: NONE,
            prev: NONE,
            next: NONE,
            base,
            len: 0,
            is_head: false,
            memcg,
            nid,
        });
        self.leaf_table.push(table);
        self.fill.push(if owner.kind == MappingKind::File { Fill::default() } else { Fill::ANON });
        Ok(())
    }

    /// Adds the levels above the leaves `from..`, up to one root.
    fn link_upper_levels(&mut self, from: usize, owner: Owner) -> Result<(), String> {
        let mut level = from..self.nodes.len();
        while level.len() > 1 {
            let next = self.nodes.len();
            for child in level.clone() {
                let base = self.nodes[child].base >> 6;
                if self.nodes.len() == next || self.nodes.last().is_some_and(|n| n.base != base) {
                    let first = self.nodes[child].first;
                    self.push_node(first, base, NONE, owner)?;
                }
                self.nodes[child].parent = self.nodes.len() as u32 - 1;
            }
            level = next..self.nodes.len();
        }
        Ok(())
    }

    /// Entries of the first and the last table that lie outside the mapping do not exist.
    fn set_spans(&mut self, folios: &FolioTable, tables: &std::ops::Range<u32>, min_index: u64, max_index: u64) {
        for t in tables.clone() {
            let start = self.index(folios.location(self.tables[t as usize].first)) & !511;
            // Inclusive: the table may be the last of all.
            let last = (start + 511).min(max_index);
            self.tables[t as usize].span = (last - start.max(min_index) + 1) as u16;
        }
    }

    /// The index in its mapping of a page that is there.
    #[inline]
    pub(crate) fn index(&self, at: Location) -> u64 {
        self.nodes[at.node().index()].base << 6 | at.offset()
    }

    /// Whether the tree of a leaf may consist of its first entry alone, without a node: it covers
    /// the first page of the file, and it is all of the tree.
    pub(crate) fn may_be_head(&self, folios: &FolioTable, leaf: XaNodeId) -> bool {
        let node = &self.nodes[leaf.index()];
        node.parent == NONE && self.index(folios.location(node.first)) == 0
    }

    /// Whether a node exists.
    pub(crate) fn has_node(&self, n: XaNodeId) -> bool {
        self.fill[n.index()].count > 0 && !self.nodes[n.index()].is_head
    }

    /// The table of the pages of a leaf node.
    #[inline]
    pub(crate) fn table_of(&self, leaf: XaNodeId) -> usize {
        self.leaf_table[leaf.index()] as usize
    }

    /// The mapping of a page.
    pub(crate) fn mapping_of(&self, page: PageId) -> MappingId {
        MappingId(self.mappings.partition_point(|m| m.first <= page) as u32 - 1)
    }

    /// Whether a page is mapped.
    #[inline]
    pub(crate) fn is_mapped(&self, page: PageId) -> bool {
        self.mapped[page.index() / 64] >> (page.0 % 64) & 1 == 1
    }

    /// Notes that a page of the leaf node `leaf` is mapped from now on, or no longer.
    #[inline]
    pub(crate) fn set_mapped(&mut self, page: PageId, leaf: XaNodeId, mapped: bool) {
        if self.is_mapped(page) != mapped {
            self.mapped[page.index() / 64] ^= 1 << (page.0 % 64);
            let t = self.table_of(leaf);
            let count = &mut self.tables[t].mapped;
            *count = if mapped { *count + 1 } else { *count - 1 };
        }
    }

    /// The pages of a table.
    pub(crate) fn table_pages(&self, t: u32) -> std::ops::Range<u32> {
        let table = &self.tables[t as usize];
        table.first.0..table.first.0 + u32::from(table.len)
    }

    /// Ids that can have an index less than `reach` away from that of `page`, within its table.
    pub(crate) fn around(&self, page: PageId, leaf: XaNodeId, reach: u32) -> std::ops::Range<u32> {
        let all = self.table_pages(self.table_of(leaf) as u32);
        page.0.saturating_sub(reach - 1).max(all.start)..(page.0 + reach).min(all.end)
    }

    /// Ids of the pages in the aligned window of `around` indices, 64 at most, around `page`.
    #[inline]
    pub(crate) fn around_in_node(&self, folios: &FolioTable, page: PageId, around: u64) -> std::ops::Range<u32> {
        let at = folios.location(page);
        let node = &self.nodes[at.node().index()];
        let (first, end) = (node.first.0, node.first.0 + u32::from(node.len));
        let from = at.offset() & !(around - 1);
        if node.len == 64 {
            return first + from as u32..first + (from + around) as u32;
        }
        // Some indices have no page: the ids are nearer than the indices.
        let offset = |id: u32| folios.location(PageId(id)).offset();
        let (mut low, mut high) = (page.0, page.0 + 1);
        while low > first && offset(low - 1) >= from {
            low -= 1;
        }
        while high < end && offset(high) < from + around {
            high += 1;
        }
        low..high
    }

    /// A bit for each of at most 64 ids: whether it is mapped.
    #[inline]
    pub(crate) fn mapped_bits(&self, ids: std::ops::Range<u32>) -> u64 {
        let (word, shift) = ((ids.start / 64) as usize, ids.start % 64);
        let low = self.mapped[word] >> shift;
        let high = match shift {
            0 => 0,
            _ => self.mapped.get(word + 1).map_or(0, |w| w << (64 - shift)),
        };
        let all = u64::MAX >> (64 - (ids.end - ids.start).clamp(1, 64));
        (low | high) & all
    }

    /// The mapped pages of a range of ids.
    pub(crate) fn mapped_in(&self, ids: std::ops::Range<u32>) -> impl Iterator<Item = PageId> + use<> {
        // At most a table: nine words, kept here so that the caller may change what is mapped
        // meanwhile.
        let first = ids.start / 64;
        let words: [u64; 9] = std::array::from_fn(|i| {
            let w = first + i as u32;
            let word = self.mapped.get(w as usize).copied().unwrap_or(0);
            let (from, to) = (w * 64, w * 64 + 64);
            let low = if ids.start > from { u64::MAX.checked_shl(ids.start - from).unwrap_or(0) } else { u64::MAX };
            let high =
                if ids.end < to { !u64::MAX.checked_shl(ids.end.saturating_sub(from)).unwrap_or(0) } else { u64::MAX };
            if ids.end <= from { 0 } else { word & low & high }
        });
        let bits = move |(i, mut word): (usize, u64)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(PageId((first + i as u32) * 64 + bit))
            })
        };
        words.into_iter().enumerate().filter(|w| w.1 != 0).flat_map(bits)
    }

    /// Bytes held for nodes and tables.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * (size_of::<XaNode>() + size_of::<Fill>() + 4)
            + self.tables.capacity() * size_of::<Table>()
            + self.mapped.capacity() * 8
    }

    /// Counts of nodes agree with their slots and children, counts of tables are in range.
    pub(crate) fn validate(&self, folios: &FolioTable) -> Result<(), String> {
        let mut children = vec![0u32; self.nodes.len()];
        let exists = |i: usize| self.fill[i] != Fill::ANON && self.fill[i].count > 0;
        for (_, n) in self.nodes.iter().enumerate().filter(|&(i, n)| n.parent != NONE && exists(i)) {
            children[n.parent as usize] += 1;
        }
        for (i, n) in self.nodes.iter().enumerate().filter(|&(i, _)| self.fill[i] != Fill::ANON) {
            let range = n.first.index()..n.first.index() + usize::from(n.len);
            let slots = || range.clone().map(|p| folios.slot(PageId(p as u32)));
            let (mut used, mut values) = (children[i], 0);
            if self.leaf_table[i] != NONE {
                used = slots().filter(|s| !s.is_empty()).count() as u32;
                values = slots().filter(|s| s.as_value().is_some()).count() as u32;
            }
            if used != u32::from(self.fill[i].count) || values != u32::from(self.fill[i].nr_values) {
                return Err(format!("node {i}: {:?}, found {used} and {values}", self.fill[i]));
            }
            let leaf = XaNodeId(i as u32);
            let is_lone = used == 1 && self.may_be_head(folios, leaf) && !folios.slot(n.first).is_empty();
            if n.is_head != (is_lone && self.leaf_table[i] != NONE) {
                return Err(format!("node {i}: {used} entries, in the mapping itself: {}", n.is_head));
            }
        }
        let count = |t: u32| self.table_pages(t).filter(|&p| self.is_mapped(PageId(p))).count();
        let wrong = |(i, t): (usize, &Table)| count(i as u32) != usize::from(t.mapped) || (t.mapped > 0 && !t.present);
        match self.tables.iter().enumerate().position(wrong) {
            Some(t) => Err(format!("table {t}: {:?}", self.tables[t])),
            None => Ok(()),
        }
    }
}
