//! Requests to devices: swap and files, what is collected while the engine runs, and what is under
//! way.

use refault_mm::{Ack, Content, PageId, SwapSlot};

use crate::device::{Device, Preset, Request, Zram};

/// A swap device.
#[derive(Clone, Debug)]
pub(crate) struct SwapArea {
    pub(crate) device: usize,
    pub(crate) base: u64,
    /// Content of zram: a device in the memory of this machine.
    pub(crate) zram: Option<Zram>,
    changed: bool,
    /// The kernel swaps to it.
    on: bool,
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
    /// The thread that waits for the request, if it bypasses the page cache.
    pub(crate) waiter: Option<usize>,
}

impl Io {
    /// Whether both may be one request.
    fn follows(&self, last: &Io) -> bool {
        let alone = self.waiter.is_some() || last.waiter.is_some();
        !alone && (self.device, self.write, self.at) == (last.device, last.write, last.at + u64::from(last.pages))
    }
}

/// Requests that belong together: what one I/O carries.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) device: usize,
    pub(crate) request: Request,
    /// Folios, by first page and length.
    pub(crate) folios: Vec<(PageId, u32)>,
    /// The thread that waits for the request, which then carries no folios.
    pub(crate) waiter: Option<usize>,
}

/// The devices, the swap on them, and the requests that were not sent yet.
pub(crate) struct Storage {
    pub(crate) devices: Vec<Device>,
    /// Swap devices, by the device number in slots.
    pub(crate) swap: Vec<SwapArea>,
    plug: Vec<Io>,
    /// By device: requests sent and not done, and requests that the plug will become.
    sent: Vec<u64>,
    plugged: Vec<u64>,
    /// Where a page was swapped out to last.
    last_swap_out: Option<usize>,
    /// CPU time of synchronous reads, and of synchronous writes, since they were last taken.
    read_cpu_ns: u64,
    write_cpu_ns: u64,
    next_request: u64,
    /// Pages that were written past the page cache.
    direct_writes: u64,
}

fn area(devices: &[Device], device: usize, base: u64) -> SwapArea {
    let spec = devices[device].spec();
    let zram = || Zram::new(spec.compression_ratio, spec.mem_limit_pages);
    let zram = (spec.preset == Preset::Zram).then(zram);
    SwapArea { device, base, zram, changed: false, on: true, refused: false }
}

impl Storage {
    /// `swap`: the device of each swap area, and the place of its first page there.
    pub(super) fn new(devices: Vec<Device>, swap: Vec<(usize, u64)>) -> Storage {
        Storage {
            swap: swap.into_iter().map(|(device, base)| area(&devices, device, base)).collect(),
            plug: Vec::new(),
            sent: vec![0; devices.len()],
            plugged: vec![0; devices.len()],
            last_swap_out: None,
            read_cpu_ns: 0,
            write_cpu_ns: 0,
            next_request: 0,
            direct_writes: 0,
            devices,
        }
    }

    /// The number of the swap on a device, if the kernel swaps to it.
    pub(crate) fn swap_number(&self, device: usize) -> Option<u8> {
        self.swap.iter().position(|s| s.device == device && s.on).map(|n| n as u8)
    }

    /// The kernel swaps to a device from now on, under that number.
    pub(crate) fn swapon(&mut self, number: u8, device: usize, base: u64) {
        let area = area(&self.devices, device, base);
        match self.swap.get_mut(usize::from(number)) {
            Some(old) => *old = area,
            None => self.swap.push(area),
        }
    }

    /// The kernel does not swap to it any more.
    pub(crate) fn swapoff(&mut self, number: u8) {
        self.swap[usize::from(number)].on = false;
    }

    /// Whether anything waits to be sent, or to be paid for.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        !self.plug.is_empty() || self.read_cpu_ns + self.write_cpu_ns > 0
    }

    /// CPU time of synchronous reads and writes since the last call.
    pub(crate) fn take_cpu_ns(&mut self) -> [u64; 2] {
        [std::mem::take(&mut self.read_cpu_ns), std::mem::take(&mut self.write_cpu_ns)]
    }

    /// Nanoseconds of CPU time of writes since they were last taken.
    pub(super) fn write_cpu_ns(&self) -> u64 {
        self.write_cpu_ns
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

    /// Nanoseconds that the device of a slot takes to discard a cluster: the latency of a write,
    /// without the transfer.
    pub(crate) fn discard_ns(&self, slot: SwapSlot) -> u64 {
        self.area(slot).map_or(0, |s| self.devices[s.device].spec().write.latency_ns)
    }

    /// Whether the device of a slot takes requests, and answers later.
    pub(super) fn is_queued(&self, slot: SwapSlot) -> bool {
        self.area(slot).is_some_and(|s| self.devices[s.device].spec().synchronous.is_none())
    }

    /// Whether the device of a slot keeps what it is given in the memory of this machine.
    pub(super) fn is_in_memory(&self, slot: SwapSlot) -> bool {
        self.area(slot).is_some_and(|s| s.zram.is_some())
    }

    pub(super) fn swap_place(&self, slot: SwapSlot) -> Option<(usize, u64)> {
        self.area(slot).map(|s| (s.device, s.base + u64::from(slot.offset())))
    }

    /// Whether a write to swap would have to wait for room in the queue of the device that was
    /// written to last.
    pub(super) fn is_write_queue_full(&self) -> bool {
        self.last_swap_out.is_some_and(|d| self.is_queue_full(d))
    }

    /// Whether the device that was swapped out to last is to be sent requests, or has some and does
    /// something by then.
    pub(super) fn swaps_out_until(&self, until_ns: u64) -> bool {
        self.last_swap_out.is_some_and(|d| {
            let sent = self.sent[d] > 0 && self.devices[d].next_event_ns().is_some_and(|at_ns| at_ns <= until_ns);
            self.plugged[d] > 0 || sent
        })
    }

    /// Whether a device has all the requests that it takes.
    pub(super) fn is_queue_full(&self, device: usize) -> bool {
        self.sent[device] + self.plugged[device] >= u64::from(self.devices[device].spec().queue)
    }

    /// Reads or writes a folio on the device of `io`; `slot` if the device is swap. `content` gives
    /// the content of each page, for a device in memory.
    pub(super) fn transfer(
        &mut self,
        io: Io,
        slot: Option<SwapSlot>,
        content: impl FnMut(PageId) -> Option<Content>,
    ) -> Ack {
        let Io { page, pages, write, device, .. } = io;
        if self.devices[device].spec().synchronous.is_none() {
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
            Some(slot) if write => self.keep(page, pages, slot, content),
            _ => Ack::Done,
        }
    }

    /// Pages were written to swap: a device in memory keeps them, as far as its limit allows.
    fn keep(
        &mut self,
        page: PageId,
        pages: u32,
        slot: SwapSlot,
        mut content: impl FnMut(PageId) -> Option<Content>,
    ) -> Ack {
        if self.area(slot).is_none_or(|s| s.zram.is_none()) {
            return Ack::Done;
        }
        for i in 0..pages {
            let content = content(PageId(page.0 + i));
            let area = &mut self.swap[usize::from(slot.device())];
            let Some(zram) = &mut area.zram else { continue };
            if !zram.store(u64::from(slot.nth(i).offset()), content) {
                // Pages of the folio that are stored by now stay until their slots are free, or
                // they are written again.
                self.devices[area.device].fail_served_write(pages);
                return Ack::Failed;
            }
            area.changed = true;
        }
        Ack::Done
    }

    /// A slot holds nothing any more: a device in memory gives that memory back.
    pub(super) fn forget(&mut self, slot: SwapSlot) {
        let Some(area) = self.swap.get_mut(usize::from(slot.device())) else { return };
        if let Some(zram) = &mut area.zram {
            area.changed |= zram.free(u64::from(slot.offset()));
        }
    }

    /// Pages of this machine that swap devices in memory need.
    pub(crate) fn swap_memory_pages(&self) -> u64 {
        self.swap.iter().filter_map(|s| s.zram.as_ref()).map(Zram::memory_pages).sum()
    }

    /// Takes what was collected since the last call, as requests.
    pub(crate) fn unplug(&mut self) -> Vec<Submission> {
        let mut out: Vec<Submission> = Vec::new();
        self.plugged.fill(0);
        for io in std::mem::take(&mut self.plug) {
            if let Some(last) = out.last_mut() {
                let r = &mut last.request;
                let alone = last.waiter.is_some() || io.waiter.is_some();
                let follows = !alone
                    && last.device == io.device
                    && r.write == io.write
                    && r.at_page + u64::from(r.pages) == io.at;
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
            let folios = if io.waiter.is_some() { Vec::new() } else { vec![(io.page, io.pages)] };
            out.push(Submission { device: io.device, request, folios, waiter: io.waiter });
        }
        out
    }

    /// So many pages were written past the page cache.
    pub(crate) fn note_direct_write(&mut self, pages: u32) {
        self.direct_writes += u64::from(pages);
    }

    /// Pages that were written past the page cache so far.
    pub(crate) fn direct_writes(&self) -> u64 {
        self.direct_writes
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
