//! What the engine cannot see: page tables, block devices, and what it asked the machine to do.
//!
//! Effects that do I/O are collected while the engine runs and sent to the devices after it, pages next to each other as one
//! request, as Linux plugs its block layer. A synchronous device is served on the spot, by the CPU that asks.

use refault_mm::tiering::Range;
use refault_mm::{Ack, Content, Effect, MemcgId, NodeId, PageId, SwapSlot, ThrottleReason, World};

use super::hottest::Hottest;
use super::memory::Memory;
use crate::device::{Device, Preset, Request, Zram};
use crate::scenario::ContentSpec;

/// The page is mapped here.
pub(crate) const MAPPED: u8 = 1;
/// The accessed bit.
pub(crate) const YOUNG: u8 = 2;
/// The dirty bit.
pub(crate) const DIRTY: u8 = 4;
/// A write need not be announced.
pub(crate) const WRITABLE: u8 = 8;
/// The next touch is a hint fault (PROT_NONE).
pub(crate) const HINT: u8 = 16;
/// From this bit on: the node of the page's frame.
const NODE_SHIFT: u32 = 5;

/// An entry of a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u8);

impl Entry {
    /// The node of its frame.
    #[inline]
    pub(crate) fn node(self) -> usize {
        usize::from(self.0 >> NODE_SHIFT)
    }
}

/// Where the pages of an object are.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// What its pages hold; none: nothing is said.
    pub(crate) content: Option<ContentSpec>,
    /// Its first page.
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// Of a file: its device, and the place of its first page there.
    pub(crate) device: Option<usize>,
    pub(crate) base: u64,
    /// The page tables that map it: indices of spaces.
    spaces: Vec<usize>,
}

/// The page table of one task for one object.
#[derive(Clone, Debug)]
struct Space {
    first: PageId,
    bits: Vec<u8>,
}

/// A swap device.
#[derive(Clone, Debug)]
pub(crate) struct SwapArea {
    pub(crate) device: usize,
    pub(crate) base: u64,
    /// What it holds, if it is in the memory of this machine.
    pub(crate) zram: Option<Zram>,
    changed: bool,
    /// The machine has no memory left for it.
    pub(crate) refused: bool,
}

/// A folio on its way to or from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) page: PageId,
    pub(crate) pages: u32,
    pub(crate) write: bool,
    pub(crate) device: usize,
    pub(crate) at: u64,
}

impl Io {
    /// Whether both may be one request.
    fn follows(&self, last: &Io) -> bool {
        (self.device, self.write, self.at) == (last.device, last.write, last.at + u64::from(last.pages))
    }
}

/// Requests that belong together: what one I/O carries.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) device: usize,
    pub(crate) request: Request,
    /// Folios, by first page and length.
    pub(crate) folios: Vec<(PageId, u32)>,
}

/// Page tables, devices, and notes for the machine.
pub(crate) struct Hardware {
    pub(crate) extents: Vec<Extent>,
    spaces: Vec<Space>,
    /// The page table of whoever runs, for new mappings.
    pub(crate) current: Option<usize>,
    pub(crate) devices: Vec<Device>,
    /// By the number in the slots.
    pub(crate) swap: Vec<SwapArea>,
    /// Clusters that are to be discarded.
    pub(crate) discards: Vec<SwapSlot>,
    plug: Vec<Io>,
    /// Requests that are not done, by device: those sent, and those that the plug will be.
    sent: Vec<u64>,
    plugged: Vec<u64>,
    /// Where a page was swapped out to last.
    last_swap_out: Option<usize>,
    /// CPU time of synchronous reads, and of synchronous writes, since they were last taken.
    pub(crate) read_cpu_ns: u64,
    pub(crate) write_cpu_ns: u64,
    unmapped: u64,
    /// Pages that were mapped since the last call.
    pub(crate) mapped: u64,
    pub(crate) throttle: Option<(ThrottleReason, u64)>,
    pub(crate) unthrottle: Vec<ThrottleReason>,
    /// Nodes whose kswapd is to be woken.
    pub(crate) wake_kswapd: Vec<NodeId>,
    pub(crate) wake_flusher: bool,
    pub(crate) wake_zswap: bool,
    pub(crate) oom: Option<MemcgId>,
    /// Of the contents of pages.
    pub(crate) seed: u64,
    /// Nodes with latency and bandwidth, if there are several.
    pub(crate) memory: Memory,
    /// When the call of the engine happens, for migrations.
    pub(crate) now_ns: u64,
    /// By node: whether it is of the top tier.
    pub(crate) top: Vec<bool>,
    /// CPU time that copying took since it was last taken: upwards, and downwards.
    copied_ns: [u64; 2],
    /// Pages that went up and down.
    pub(crate) moved: [u64; 2],
    /// Pages that were mapped since the last call, whose entries have no node yet.
    placed: Vec<PageId>,
    pub(crate) hottest: Hottest,
    /// What a page costs that is moved, beside unmapping and copying.
    pub(crate) migrate_page_ns: u64,
    next_request: u64,
}

impl Hardware {
    pub(crate) fn new(devices: Vec<Device>, swap: Vec<(usize, u64)>) -> Hardware {
        let area = |(device, base): (usize, u64)| {
            let spec = devices[device].spec();
            let zram = || Zram::new(spec.compression_ratio, spec.mem_limit_pages);
            SwapArea { device, base, zram: (spec.preset == Preset::Zram).then(zram), changed: false, refused: false }
        };
        Hardware {
            swap: swap.into_iter().map(area).collect(),
            discards: Vec::new(),
            extents: Vec::new(),
            spaces: Vec::new(),
            current: None,
            sent: vec![0; devices.len()],
            plugged: vec![0; devices.len()],
            last_swap_out: None,
            devices,
            plug: Vec::new(),
            read_cpu_ns: 0,
            write_cpu_ns: 0,
            unmapped: 0,
            mapped: 0,
            throttle: None,
            unthrottle: Vec::new(),
            wake_kswapd: Vec::new(),
            wake_flusher: false,
            wake_zswap: false,
            oom: None,
            seed: 0,
            memory: Memory::new([], 1),
            now_ns: 0,
            top: Vec::new(),
            copied_ns: [0; 2],
            moved: [0; 2],
            placed: Vec::new(),
            hottest: Hottest::default(),
            migrate_page_ns: 0,
            next_request: 0,
        }
    }

    pub(crate) fn add_extent(&mut self, first: PageId, pages: u32, device: Option<usize>, base: u64) {
        self.extents.push(Extent { content: None, first, pages, device, base, spaces: Vec::new() });
    }

    /// A page table for an object; its number.
    pub(crate) fn add_space(&mut self, extent: usize) -> usize {
        let e = &mut self.extents[extent];
        self.spaces.push(Space { first: e.first, bits: vec![0; e.pages as usize] });
        e.spaces.push(self.spaces.len() - 1);
        self.spaces.len() - 1
    }

    /// A touch of a page through a page table: its entry, if it needs no fault. Sets the bits that hardware sets.
    #[inline]
    pub(crate) fn touch(&mut self, space: usize, page: PageId, write: bool) -> Option<Entry> {
        let s = &mut self.spaces[space];
        let bits = &mut s.bits[(page.0 - s.first.0) as usize];
        let (needed, set) = if write { (MAPPED | WRITABLE, YOUNG | DIRTY) } else { (MAPPED, YOUNG) };
        let hit = *bits & (needed | HINT) == needed;
        if hit {
            *bits |= set;
        }
        hit.then_some(Entry(*bits))
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

    /// Marks pages of a range of a page table for which `wanted` says so, by page and node. How many.
    pub(crate) fn mark(&mut self, space: usize, range: Range, mut wanted: impl FnMut(PageId, usize) -> bool) -> u64 {
        let s = &mut self.spaces[space];
        let mut marked = 0;
        for (bits, at) in s.bits[range.first as usize..(range.first + range.pages) as usize].iter_mut().zip(0..) {
            let page = PageId(s.first.0 + range.first as u32 + at);
            if *bits & (MAPPED | HINT) == MAPPED && wanted(page, Entry(*bits).node()) {
                *bits |= HINT;
                marked += 1;
            }
        }
        marked
    }

    /// Every entry that maps a page: its page and its node.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (PageId, usize)> + '_ {
        let of_space = |s: &'_ Space| {
            let first = s.first.0;
            let mapped = s.bits.iter().zip(first..).filter(|(bits, _)| **bits & MAPPED != 0);
            mapped.map(|(&bits, page)| (PageId(page), Entry(bits).node())).collect::<Vec<_>>()
        };
        self.spaces.iter().flat_map(of_space)
    }

    /// Pages that a page table maps.
    pub(crate) fn mapped_in(&self, space: usize) -> u64 {
        self.spaces[space].bits.iter().filter(|&&bits| bits & MAPPED != 0).count() as u64
    }

    /// Pages that were mapped since the last call: their entries are to be told the node.
    pub(crate) fn take_placed(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.placed)
    }

    /// The node of a page, for its entries.
    pub(crate) fn place(&mut self, page: PageId, node: NodeId) {
        self.each_pte(page, |bits| *bits = *bits & ((1 << NODE_SHIFT) - 1) | node.0 << NODE_SHIFT);
    }

    /// CPU time of copies upwards and downwards since the last call.
    pub(crate) fn take_copied(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.copied_ns)
    }

    /// Copies a folio to another node.
    fn migrate(&mut self, pages: u64, from: NodeId, to: NodeId) {
        if self.memory.is_empty() {
            return;
        }
        let ns = self.memory.copy(from.index(), to.index(), pages, self.now_ns) + pages * self.migrate_page_ns;
        let down = usize::from(self.top[from.index()] || !self.top[to.index()]);
        self.copied_ns[down] += ns;
        self.moved[down] += pages;
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

    /// Whether the last call of the engine left anything to do.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.plug.is_empty()
            || self.read_cpu_ns + self.write_cpu_ns + self.unmapped > 0
            || !self.wake_kswapd.is_empty()
            || !self.placed.is_empty()
            || self.wake_flusher
            || self.wake_zswap
            || self.throttle.is_some()
            || !self.unthrottle.is_empty()
    }

    /// Pages that were unmapped since the last call.
    pub(crate) fn take_unmapped(&mut self) -> u64 {
        std::mem::take(&mut self.unmapped)
    }

    /// Whether a swap device in memory grew or shrank since the last call.
    pub(crate) fn take_memory_change(&mut self) -> bool {
        self.swap.iter_mut().fold(false, |any, s| any | std::mem::take(&mut s.changed))
    }

    /// There is no memory for more in a swap device in memory, or there is again.
    pub(crate) fn refuse_writes(&mut self, refused: bool) {
        for s in &mut self.swap {
            s.refused = refused;
        }
    }

    fn area(&self, slot: SwapSlot) -> Option<&SwapArea> {
        self.swap.get(usize::from(slot.device()))
    }

    /// How long the device of a slot takes to discard a cluster: as long as a write, of which only the command is sent.
    pub(crate) fn discard_ns(&self, slot: SwapSlot) -> u64 {
        self.area(slot).map_or(0, |s| self.devices[s.device].spec().write.latency_ns)
    }

    fn extent_of(&self, page: PageId) -> &Extent {
        &self.extents[self.extents.partition_point(|e| e.first <= page) - 1]
    }

    /// The bits of a page in every page table that maps its object.
    fn each_pte(&mut self, page: PageId, mut visit: impl FnMut(&mut u8)) {
        let extent = self.extents.partition_point(|e| e.first <= page) - 1;
        let extent = &self.extents[extent];
        let at = (page.0 - extent.first.0) as usize;
        for &s in &extent.spaces {
            visit(&mut self.spaces[s].bits[at]);
        }
    }

    fn map(&mut self, page: PageId, young: bool, writable: bool) {
        self.mapped += 1;
        let extent = self.extent_of(page);
        let current = self.current.filter(|c| extent.spaces.contains(c)).or_else(|| extent.spaces.first().copied());
        let Some(space) = current else { return };
        if !self.memory.is_empty() {
            self.placed.push(page);
        }
        let s = &mut self.spaces[space];
        s.bits[(page.0 - s.first.0) as usize] |=
            MAPPED | if young { YOUNG } else { 0 } | if writable { WRITABLE } else { 0 };
    }

    fn io(&mut self, page: PageId, order: u8, write: bool, slot: Option<SwapSlot>) -> Ack {
        let pages = 1u32 << order;
        let place = match slot {
            Some(slot) => self.area(slot).map(|s| (s.device, s.base + u64::from(slot.offset()))),
            None => {
                let e = self.extent_of(page);
                e.device.map(|d| (d, e.base + u64::from(page.0 - e.first.0)))
            }
        };
        let Some((device, at)) = place else { return Ack::Failed };
        if self.devices[device].spec().synchronous.is_none() {
            let io = Io { page, pages, write, device, at };
            self.plugged[device] += u64::from(!self.plug.last().is_some_and(|last| io.follows(last)));
            self.plug.push(io);
            if write && slot.is_some() {
                self.last_swap_out = Some(device);
            }
            return Ack::Pending;
        }
        if write && slot.is_some_and(|slot| self.area(slot).is_some_and(|s| s.refused && s.zram.is_some())) {
            return Ack::Failed;
        }
        let served = self.devices[device].serve_synchronously(write, pages);
        match write {
            true => self.write_cpu_ns += served.cpu_ns,
            false => self.read_cpu_ns += served.cpu_ns,
        }
        if !served.ok {
            return Ack::Failed;
        }
        match slot {
            Some(slot) if write => self.keep(page, pages, slot),
            _ => Ack::Done,
        }
    }

    /// Pages were written to swap: a device in memory keeps them, as far as its limit allows.
    fn keep(&mut self, page: PageId, pages: u32, slot: SwapSlot) -> Ack {
        if self.area(slot).is_none_or(|s| s.zram.is_none()) {
            return Ack::Done;
        }
        for i in 0..pages {
            let content = self.content_of(PageId(page.0 + i));
            let area = &mut self.swap[usize::from(slot.device())];
            let Some(zram) = &mut area.zram else { continue };
            if !zram.store(u64::from(slot.nth(i).offset()), content) {
                // What of the folio is stored by now stays until its slots are free, or it is written again.
                self.devices[area.device].fail_served_write(pages);
                return Ack::Failed;
            }
            area.changed = true;
        }
        Ack::Done
    }

    /// A slot holds nothing any more: a device in memory gives that memory back.
    fn forget(&mut self, slot: SwapSlot) {
        let Some(area) = self.swap.get_mut(usize::from(slot.device())) else { return };
        if let Some(zram) = &mut area.zram {
            area.changed |= zram.free(u64::from(slot.offset()));
        }
    }

    /// Pages of this machine that swap devices in memory need.
    pub(crate) fn swap_memory_pages(&self) -> u64 {
        self.swap.iter().filter_map(|s| s.zram.as_ref()).map(Zram::memory_pages).sum()
    }

    /// What was collected since the last call, as requests.
    pub(crate) fn unplug(&mut self) -> Vec<Submission> {
        let mut out: Vec<Submission> = Vec::new();
        self.plugged.fill(0);
        for io in std::mem::take(&mut self.plug) {
            if let Some(last) = out.last_mut() {
                let r = &mut last.request;
                let follows =
                    last.device == io.device && r.write == io.write && r.at_page + u64::from(r.pages) == io.at;
                if follows && r.pages + io.pages <= self.devices[io.device].spec().max_request_pages {
                    r.pages += io.pages;
                    last.folios.push((io.page, io.pages));
                    continue;
                }
            }
            // A folio stays one request: what is too long the device takes in parts.
            let request = Request { id: self.next_request, write: io.write, at_page: io.at, pages: io.pages };
            self.next_request += 1;
            self.sent[io.device] += 1;
            out.push(Submission { device: io.device, request, folios: vec![(io.page, io.pages)] });
        }
        out
    }

    /// A request is done.
    pub(crate) fn note_done(&mut self, device: usize) {
        self.sent[device] -= 1;
    }

    /// Whether anything waits to be sent.
    pub(crate) fn is_plugged(&self) -> bool {
        !self.plug.is_empty()
    }
}

impl Hardware {
    /// What a page of an object holds of which the scenario says that.
    fn content_of(&self, page: PageId) -> Option<Content> {
        let at = self.extents.partition_point(|e| e.first <= page) - 1;
        let e = &self.extents[at];
        e.content.map(|c| c.of_page(self.seed, at, page.0 - e.first.0))
    }
}

impl World for Hardware {
    fn is_write_queue_full(&self) -> bool {
        self.last_swap_out.is_some_and(|d| self.sent[d] + self.plugged[d] >= u64::from(self.devices[d].spec().queue))
    }

    fn content(&mut self, page: PageId) -> Content {
        let mean = (4096.0 / ContentSpec::RATIO) as u32;
        self.content_of(page).unwrap_or(Content::Compressed { bytes: mean })
    }

    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Read { page, order } => return self.io(page, order, false, None),
            Effect::Write { page, order } => return self.io(page, order, true, None),
            Effect::SwapIn { page, order, slot } => return self.io(page, order, false, Some(slot)),
            Effect::SwapOut { page, order, slot } => return self.io(page, order, true, Some(slot)),
            Effect::Map { page, young, writable } => self.map(page, young, writable),
            Effect::Unmap { page } => {
                self.unmapped += 1;
                self.each_pte(page, |bits| *bits &= DIRTY);
            }
            Effect::WriteProtect { page } => self.each_pte(page, |bits| *bits &= !(WRITABLE | DIRTY)),
            Effect::FreeSlot { slot } => self.forget(slot),
            // What they cost is in the engine's account of its work; the data itself is not kept here.
            Effect::Free { .. } | Effect::ZeroFill { .. } => {}
            Effect::ZswapStore { .. } | Effect::ZswapLoad { .. } | Effect::ZswapDrop { .. } => {}
            Effect::Discard { first, .. } => {
                let queues = self.area(first).is_some_and(|s| self.devices[s.device].spec().synchronous.is_none());
                if queues {
                    self.discards.push(first);
                    return Ack::Pending;
                }
            }
            Effect::WakeFlusher => {
                self.wake_flusher = true;
                return Ack::Pending;
            }
            Effect::WakeZswap => {
                self.wake_zswap = true;
                return Ack::Pending;
            }
            Effect::WakeKswapd { node } => {
                self.wake_kswapd.push(node);
                return Ack::Pending;
            }
            Effect::Migrate { order, from, to, .. } => self.migrate(1 << order, from, to),
            Effect::Throttle { reason, max_wait_ns } => {
                // The longest of several.
                if self.throttle.is_none_or(|t| t.1 < max_wait_ns) {
                    self.throttle = Some((reason, max_wait_ns));
                    return Ack::Pending;
                }
            }
            Effect::Unthrottle { reason } => self.unthrottle.push(reason),
            Effect::Oom { memcg } => self.oom = Some(memcg),
        }
        Ack::Done
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        self.hottest.contains(page)
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        let mut young = false;
        self.each_pte(page, |bits| {
            young |= *bits & YOUNG != 0;
            *bits &= !YOUNG;
        });
        young
    }

    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        let mut young = 0;
        self.each_pte(page, |bits| {
            young += u32::from(*bits & YOUNG != 0);
            *bits &= !YOUNG;
        });
        young
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        let mut dirty = false;
        self.each_pte(page, |bits| {
            dirty |= *bits & DIRTY != 0;
            *bits &= !DIRTY;
        });
        dirty
    }
}
