//! Page tables: what maps a page, and the bits that the hardware keeps in each entry.

use refault_mm::NodeId;
use refault_mm::PageId;
use refault_mm::tiering::PteRange;

use crate::scenario::ContentSpec;

/// The page is mapped here.
pub(crate) const MAPPED: u8 = 1;
/// The accessed bit.
pub(crate) const YOUNG: u8 = 2;
/// The dirty bit.
pub(crate) const DIRTY: u8 = 4;
/// The page is writable: a write need not be announced to the engine.
pub(crate) const WRITABLE: u8 = 8;
/// The next touch is a hint fault (PROT_NONE).
pub(crate) const HINT: u8 = 16;
/// From this bit on: the node of the page's frame.
const NODE_SHIFT: u32 = 5;

/// An entry of a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pte(u8);

impl Pte {
    /// The node of its frame.
    #[inline]
    pub(crate) fn node(self) -> usize {
        usize::from(self.0 >> NODE_SHIFT)
    }
}

/// Where the pages of an object are.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// Content of its pages; `None`: nothing is said.
    pub(crate) content: Option<ContentSpec>,
    /// Its first page.
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// Device of a file, and the place of its first page there.
    pub(crate) device: Option<usize>,
    pub(crate) base: u64,
    /// Group on whose lists the pages are: 0 is the root, then the groups of the scenario.
    pub(crate) group: u32,
    /// Page tables that map the extent: indices of spaces.
    spaces: Vec<usize>,
}

/// The page table of one task for one object.
#[derive(Clone, Debug)]
struct Space {
    first: PageId,
    bits: Vec<u8>,
    /// Program of the page table; none: it is of no program, such as a file in memory.
    program: Option<u32>,
}

/// A page table that is looked up.
#[derive(Debug)]
pub(crate) struct PageTable<'a> {
    first: PageId,
    bits: &'a mut [u8],
}

impl PageTable<'_> {
    /// See [`PageTables::touch`].
    #[inline(always)]
    pub(crate) fn touch(&mut self, page: PageId, write: bool) -> Option<Pte> {
        let bits = &mut self.bits[(page.0 - self.first.0) as usize];
        let (needed, set) = if write { (MAPPED | WRITABLE, YOUNG | DIRTY) } else { (MAPPED, YOUNG) };
        let hit = *bits & (needed | HINT) == needed;
        if hit {
            *bits |= set;
        }
        hit.then_some(Pte(*bits))
    }
}

/// The page tables of all tasks, and where the objects are that they map.
#[derive(Debug, Default)]
pub(crate) struct PageTables {
    pub(crate) extents: Vec<Extent>,
    spaces: Vec<Space>,
    /// The page table of the task that runs, for new mappings.
    pub(crate) current: Option<usize>,
    /// Pages mapped since the last access, and pages unmapped since their number was last taken.
    pub(crate) mapped: u64,
    unmapped: u64,
    /// Pages mapped since this list was last taken, whose entries have no node yet. None: nobody
    /// asks for nodes.
    placed: Option<Vec<PageId>>,
}

impl PageTables {
    /// `has_nodes`: entries say on which node their page is.
    pub(super) fn new(has_nodes: bool) -> PageTables {
        PageTables { placed: has_nodes.then(Vec::new), ..PageTables::default() }
    }

    pub(crate) fn add_extent(&mut self, first: PageId, pages: u32, device: Option<usize>, base: u64) {
        self.extents.push(Extent { content: None, first, pages, device, base, group: 0, spaces: Vec::new() });
    }

    /// A page table for an object; its number.
    pub(crate) fn add_space(&mut self, extent: usize) -> usize {
        let e = &mut self.extents[extent];
        self.spaces.push(Space { first: e.first, bits: vec![0; e.pages as usize], program: None });
        e.spaces.push(self.spaces.len() - 1);
        self.spaces.len() - 1
    }

    /// A page table is one of this program.
    pub(crate) fn set_program(&mut self, space: usize, program: u32) {
        self.spaces[space].program = Some(program);
    }

    /// The programs that have a page mapped, and whether they wrote through their entry.
    pub(super) fn each_mapper(&self, page: PageId, mut visit: impl FnMut(u32, bool)) {
        let extent = &self.extents[self.extent_of(page)];
        let at = (page.0 - extent.first.0) as usize;
        for space in extent.spaces.iter().map(|&s| &self.spaces[s]) {
            if let (Some(program), true) = (space.program, space.bits[at] & MAPPED != 0) {
                visit(program, space.bits[at] & DIRTY != 0);
            }
        }
    }

    /// A touch of a page through a page table: its entry, if it needs no fault. Sets the bits that
    /// hardware sets.
    #[inline]
    pub(crate) fn touch(&mut self, space: usize, page: PageId, write: bool) -> Option<Pte> {
        self.table(space).touch(page, write)
    }

    /// One page table, for touches in a row.
    #[inline]
    pub(crate) fn table(&mut self, space: usize) -> PageTable<'_> {
        let s = &mut self.spaces[space];
        PageTable { first: s.first, bits: &mut s.bits }
    }

    /// Loads the entry of a page into the processor's caches; the value only keeps the load from
    /// being optimised away.
    #[inline]
    pub(crate) fn prefetch(&self, space: usize, page: PageId) -> u64 {
        let s = &self.spaces[space];
        u64::from(s.bits[(page.0 - s.first.0) as usize])
    }

    /// Whether a touch of this page is a hint fault; it is none any more then.
    #[inline]
    pub(crate) fn take_hint(&mut self, space: usize, page: PageId) -> bool {
        let s = &mut self.spaces[space];
        let bits = &mut s.bits[(page.0 - s.first.0) as usize];
        let marked = *bits & HINT != 0;
        *bits &= !HINT;
        marked
    }

    /// Marks pages of a range of a page table for which `wanted` says yes, by page and node.
    /// Returns how many pages it marked, and how many entries of the range map a page.
    pub(crate) fn mark(
        &mut self,
        space: usize,
        range: PteRange,
        mut wanted: impl FnMut(PageId, usize) -> bool,
    ) -> [u64; 2] {
        let s = &mut self.spaces[space];
        let (mut marked, mut mapped) = (0, 0);
        for (bits, at) in s.bits[range.first as usize..(range.first + range.pages) as usize].iter_mut().zip(0..) {
            let page = PageId(s.first.0 + range.first as u32 + at);
            mapped += u64::from(*bits & MAPPED != 0);
            if *bits & (MAPPED | HINT) == MAPPED && wanted(page, Pte(*bits).node()) {
                *bits |= HINT;
                marked += 1;
            }
        }
        [marked, mapped]
    }

    /// Every entry that maps a page: its page and its node.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (PageId, usize)> + '_ {
        let of_space = |s: &'_ Space| {
            let first = s.first.0;
            let mapped = s.bits.iter().zip(first..).filter(|(bits, _)| **bits & MAPPED != 0);
            mapped.map(|(&bits, page)| (PageId(page), Pte(bits).node())).collect::<Vec<_>>()
        };
        self.spaces.iter().flat_map(of_space)
    }

    /// Pages that a page table maps.
    pub(crate) fn mapped_in(&self, space: usize) -> u64 {
        self.spaces[space].bits.iter().filter(|&&bits| bits & MAPPED != 0).count() as u64
    }

    /// Pages that were mapped since the last call: their entries are to be told the node.
    pub(crate) fn take_placed(&mut self) -> Vec<PageId> {
        self.placed.as_mut().map_or_else(Vec::new, std::mem::take)
    }

    /// The node of a page, for its entries.
    pub(crate) fn place(&mut self, page: PageId, node: NodeId) {
        self.each_pte(page, |bits| *bits = *bits & ((1 << NODE_SHIFT) - 1) | node.0 << NODE_SHIFT);
    }

    /// After a write fault.
    pub(crate) fn set_dirty(&mut self, space: usize, page: PageId) {
        let s = &mut self.spaces[space];
        s.bits[(page.0 - s.first.0) as usize] |= DIRTY;
    }

    /// The page table of anonymous memory.
    pub(crate) fn first_space(&self, extent: usize) -> usize {
        self.extents[extent].spaces[0]
    }

    /// Pages that were unmapped since they were last taken.
    pub(super) fn unmapped(&self) -> u64 {
        self.unmapped
    }

    /// Pages that were unmapped since the last call.
    pub(crate) fn take_unmapped(&mut self) -> u64 {
        std::mem::take(&mut self.unmapped)
    }

    /// Whether pages were mapped or unmapped since that was last asked for.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.unmapped > 0 || self.placed.as_ref().is_some_and(|placed| !placed.is_empty())
    }

    /// The object of a page, by its place in the list.
    pub(super) fn extent_of(&self, page: PageId) -> usize {
        self.extents.partition_point(|e| e.first <= page) - 1
    }

    /// The place of a page of a file on its device.
    pub(super) fn file_place(&self, page: PageId) -> Option<(usize, u64)> {
        let e = &self.extents[self.extent_of(page)];
        e.device.map(|d| (d, e.base + u64::from(page.0 - e.first.0)))
    }

    /// The bits of a page in every page table that maps its object.
    fn each_pte(&mut self, page: PageId, mut visit: impl FnMut(&mut u8)) {
        let extent = &self.extents[self.extent_of(page)];
        let at = (page.0 - extent.first.0) as usize;
        for &s in &extent.spaces {
            visit(&mut self.spaces[s].bits[at]);
        }
    }

    pub(super) fn map(&mut self, page: PageId, young: bool, writable: bool) {
        self.mapped += 1;
        let extent = &self.extents[self.extent_of(page)];
        let current = self.current.filter(|c| extent.spaces.contains(c)).or_else(|| extent.spaces.first().copied());
        let Some(space) = current else { return };
        if let Some(placed) = &mut self.placed {
            placed.push(page);
        }
        let s = &mut self.spaces[space];
        s.bits[(page.0 - s.first.0) as usize] |=
            MAPPED | if young { YOUNG } else { 0 } | if writable { WRITABLE } else { 0 };
    }

    /// Unmaps a page everywhere; whether it was written stays.
    pub(super) fn unmap(&mut self, page: PageId) {
        self.unmapped += 1;
        self.each_pte(page, |bits| *bits &= DIRTY);
    }

    pub(super) fn write_protect(&mut self, page: PageId) {
        self.each_pte(page, |bits| *bits &= !(WRITABLE | DIRTY));
    }

    /// In how many page tables the accessed bit was set.
    pub(super) fn test_and_clear_young(&mut self, page: PageId) -> u32 {
        let mut young = 0;
        self.each_pte(page, |bits| {
            young += u32::from(*bits & YOUNG != 0);
            *bits &= !YOUNG;
        });
        young
    }

    pub(super) fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        let mut dirty = false;
        self.each_pte(page, |bits| {
            dirty |= *bits & DIRTY != 0;
            *bits &= !DIRTY;
        });
        dirty
    }
}
