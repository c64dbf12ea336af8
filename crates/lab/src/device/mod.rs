//! Block devices as queues.
//!
//! A request waits until one of the device's `channels` is free. There it spends the latency (on a
//! disk also the seek and the rotation), at the same time as the requests in the other channels.
//! Then its data crosses the link, which all channels share and one transfer has at a time, so the
//! device never moves more than its bytes a second. A channel is free again when the transfer has
//! ended.
//!
//! Time only comes in as a number. Results do not depend on how often [`Device::advance`] is
//! called.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod` | [`Device`]: requests in channels, over a link |
//! | `queue` | requests that wait, and in which order they go on: the elevator of disks |
//! | `spec`, `preset` | what a device can do; devices as they were measured |
//! | `zram` | a device in the memory of the machine: what it stores, and how much that takes |
//!
//! It calls nothing of the lab. `hardware` sends it requests, `machine` lets its time pass,
//! `scenario` says which device it is.

mod preset;
mod queue;
mod spec;
#[cfg(test)]
mod tests;
mod zram;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use refault_trace::generate::Rng;

use queue::{Elevator, Run, Waiting};
pub use spec::{CodecCost, DeviceModel, Faults, Preset, Rate, Seek};
pub use zram::{Zram, ZramStats};

/// The bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number of the request; the device does not look at it.
    pub id: u64,
    /// Whether the request writes; else it reads.
    pub write: bool,
    /// The first page.
    pub at_page: u64,
    /// Number of pages.
    pub pages: u32,
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request as it was submitted.
    pub request: Request,
    /// Whether all of it went well.
    pub ok: bool,
    /// Time at which the request was submitted.
    pub issued_ns: u64,
    /// Time of its end.
    pub done_ns: u64,
}

/// Outcome of a request to a synchronous device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncCompletion {
    /// Whether it went well.
    pub ok: bool,
    /// CPU time that the request took.
    pub cpu_ns: u64,
}

/// Counters of a device, from the start of the run. Whole requests count, not the parts that they
/// are served in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Requests that came in: the ended ones, and the `depth` open ones.
    pub submitted: u64,
    /// Reads that ended, well or not.
    pub reads: u64,
    /// Writes that ended, well or not.
    pub writes: u64,
    /// Bytes of the reads that went well.
    pub read_bytes: u64,
    /// Bytes of the writes that went well.
    pub write_bytes: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Requests, or parts of requests, that met a latency spike.
    pub spikes: u64,
    /// Nanoseconds from submission to end, summed over the reads that ended.
    pub read_ns: u64,
    /// Nanoseconds from submission to end, summed over the writes that ended.
    pub write_ns: u64,
    /// Nanoseconds with something to do, up to the last call; of a synchronous device the CPU's
    /// time.
    pub busy_ns: u64,
    /// Requests that have not ended.
    pub depth: u64,
    /// Highest value of `depth` so far.
    pub max_depth: u64,
    /// Parts in service, at most one a channel.
    pub in_flight: u32,
}

/// A request that has not ended.
struct Open {
    request: Request,
    issued_ns: u64,
    parts_left: u64,
    ok: bool,
}

/// Where a part in service is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ServiceStep {
    /// The latency is over; the data may cross the link.
    Ready,
    /// The data has crossed.
    Transferred,
}

/// Event of a part of a request, and its time. Events at the same time happen in the order in which
/// they became known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    number: u64,
    step: ServiceStep,
    owner: u64,
    write: bool,
    pages: u32,
    ok: bool,
}

/// A time that never comes: of events of a device that is stuck for ever.
const NEVER: u64 = u64::MAX;

/// A block device in virtual time.
pub struct Device {
    spec: DeviceModel,
    rng: Rng,
    now_ns: u64,
    open: BTreeMap<u64, Open>,
    waiting: Waiting,
    events: BinaryHeap<Reverse<Event>>,
    event_number: u64,
    /// Time at which the last known transfer ends.
    link_free_ns: u64,
    /// Page at which the last request ended, where the arm of a disk is.
    head: Option<u64>,
    /// Ended before the caller asked.
    finished: Vec<Completion>,
    stats: DeviceStats,
}

impl Device {
    /// A device with nothing to do. The spec must have passed [`DeviceModel::check`]; the seed is
    /// that of its faults.
    pub fn new(spec: DeviceModel, seed: u64) -> Device {
        let waiting = match spec.seek {
            Some(_) => Waiting::Elevator(Elevator::default()),
            None => Waiting::Fifo(VecDeque::new()),
        };
        Device {
            spec,
            // Other purposes of the same seed are named by other numbers.
            rng: Rng::new(seed, &[0x0000_6465_7669_6365]),
            now_ns: 0,
            open: BTreeMap::new(),
            waiting,
            events: BinaryHeap::new(),
            event_number: 0,
            link_free_ns: 0,
            head: None,
            finished: Vec::new(),
            stats: DeviceStats::default(),
        }
    }

    /// Configuration of the device.
    pub fn spec(&self) -> &DeviceModel {
        &self.spec
    }

    /// Counters of the device, from the start of the run.
    pub fn stats(&self) -> &DeviceStats {
        &self.stats
    }

    /// Takes a request. A time before one that was given already counts as that one.
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        self.run(now_ns);
        let now_ns = self.now_ns;
        let owner = self.stats.submitted;
        self.stats.submitted += 1;
        self.stats.depth += 1;
        self.stats.max_depth = self.stats.max_depth.max(self.stats.depth);
        let Request { write, at_page, pages, .. } = request;
        let run = Run { owner, write, at_page, pages, issued_ns: now_ns };
        let parts_left = run.parts(self.spec.max_request_pages);
        self.open.insert(owner, Open { request, issued_ns: now_ns, parts_left, ok: true });
        self.waiting.push(run);
        self.dispatch();
    }

    /// When [`Device::advance`] has something to do; `None` if that takes another request, or the
    /// device is stuck for ever.
    pub fn next_event_ns(&self) -> Option<u64> {
        if let Some(first) = self.finished.first() {
            return Some(first.done_ns);
        }
        self.events.peek().map(|event| event.0.at_ns).filter(|&at| at != NEVER)
    }

    /// Lets time pass. Requests that end by then are appended to `done`, in the order of their end;
    /// what waits is served.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        self.run(now_ns);
        done.append(&mut self.finished);
    }

    /// Has the CPU do the work at once.
    ///
    /// # Panics
    /// If the device is not synchronous.
    pub fn serve_synchronously(&mut self, write: bool, pages: u32) -> SyncCompletion {
        let codec = self.spec.synchronous.expect("only a synchronous device serves synchronously");
        let (request_ns, page_ns) = match write {
            true => (codec.write_ns, codec.write_page_ns),
            false => (codec.read_ns, codec.read_page_ns),
        };
        let work = request_ns.saturating_add(page_ns.saturating_mul(u64::from(pages)));
        let (spike, ok) = self.draw(write);
        let cpu_ns = work.saturating_add(spike);
        self.stats.submitted += 1;
        self.stats.busy_ns = self.stats.busy_ns.saturating_add(cpu_ns);
        self.count(write, pages, ok, cpu_ns);
        SyncCompletion { ok, cpu_ns }
    }

    /// Takes back a write that was just served synchronously and failed in the end: its data has no
    /// place.
    pub fn fail_served_write(&mut self, pages: u32) {
        self.stats.write_bytes -= u64::from(pages) * PAGE_BYTES;
        self.stats.write_errors += 1;
    }

    /// Whether requests are neither lost nor invented.
    pub fn validate(&self) -> Result<(), String> {
        let stats = &self.stats;
        if stats.submitted != stats.reads + stats.writes + stats.depth {
            return Err(format!("requests that came in are not those that ended and those open: {stats:?}"));
        }
        if self.open.len() as u64 != stats.depth || self.events.len() != stats.in_flight as usize {
            return Err(format!("{} open, {} in service, but {stats:?}", self.open.len(), self.events.len()));
        }
        if stats.in_flight > self.spec.channels {
            return Err(format!("{} in service on {} channels", stats.in_flight, self.spec.channels));
        }
        if stats.in_flight < self.spec.channels && !self.waiting.is_empty() {
            return Err("requests wait though a channel is free".into());
        }
        let parts: u64 = self.open.values().map(|open| open.parts_left).sum();
        let known = self.waiting.parts(self.spec.max_request_pages)? + u64::from(stats.in_flight);
        if parts != known {
            return Err(format!("open requests have {parts} parts left, but {known} wait or are in service"));
        }
        if let Some(Reverse(event)) = self.events.peek()
            && event.at_ns < self.now_ns
        {
            return Err(format!("an event of {} ns is left at {} ns", event.at_ns, self.now_ns));
        }
        Ok(())
    }

    /// Everything that happens by then, each at its own time.
    fn run(&mut self, until_ns: u64) {
        while let Some(&Reverse(event)) = self.events.peek()
            && event.at_ns <= until_ns
            && event.at_ns != NEVER
        {
            self.events.pop();
            self.pass(event.at_ns);
            match event.step {
                ServiceStep::Ready => self.transfer(event),
                ServiceStep::Transferred => self.transferred(event),
            }
        }
        self.pass(until_ns);
    }

    fn pass(&mut self, to_ns: u64) {
        let to_ns = to_ns.max(self.now_ns);
        if self.stats.depth > 0 {
            self.stats.busy_ns = self.stats.busy_ns.saturating_add(to_ns - self.now_ns);
        }
        self.now_ns = to_ns;
    }

    /// Fills the free channels with what waits.
    fn dispatch(&mut self) {
        while self.stats.in_flight < self.spec.channels {
            let head = self.head.unwrap_or(0);
            let Some(part) = self.waiting.take(self.now_ns, head, self.spec.max_request_pages) else { return };
            self.stats.in_flight += 1;
            let (spike, ok) = self.draw(part.write);
            let latency = self.rate(part.write).latency_ns.saturating_add(self.position(&part)).saturating_add(spike);
            let at_ns = self.spec.faults.end_ns(self.now_ns, latency);
            let Run { owner, write, pages, .. } = part;
            self.expect(Event { at_ns, number: 0, step: ServiceStep::Ready, owner, write, pages, ok });
        }
    }

    /// The link serves parts in the order in which they are ready, one at a time.
    fn transfer(&mut self, event: Event) {
        let takes = self.rate(event.write).transfer_ns(u64::from(event.pages) * PAGE_BYTES);
        let at_ns = self.spec.faults.end_ns(self.link_free_ns.max(event.at_ns), takes);
        self.link_free_ns = at_ns;
        self.expect(Event { at_ns, step: ServiceStep::Transferred, ..event });
    }

    fn transferred(&mut self, event: Event) {
        self.stats.in_flight -= 1;
        if let Some(open) = self.open.get_mut(&event.owner) {
            open.parts_left -= 1;
            open.ok &= event.ok;
            if open.parts_left == 0 {
                self.complete(event.owner);
            }
        }
        self.dispatch();
    }

    fn complete(&mut self, owner: u64) {
        let Some(Open { request, issued_ns, ok, .. }) = self.open.remove(&owner) else { return };
        self.stats.depth -= 1;
        self.count(request.write, request.pages, ok, self.now_ns - issued_ns);
        self.finished.push(Completion { request, ok, issued_ns, done_ns: self.now_ns });
    }

    fn count(&mut self, write: bool, pages: u32, ok: bool, took_ns: u64) {
        let stats = &mut self.stats;
        let (requests, bytes, errors, ns) = if write {
            (&mut stats.writes, &mut stats.write_bytes, &mut stats.write_errors, &mut stats.write_ns)
        } else {
            (&mut stats.reads, &mut stats.read_bytes, &mut stats.read_errors, &mut stats.read_ns)
        };
        *requests += 1;
        *ns = ns.saturating_add(took_ns);
        if ok {
            *bytes += u64::from(pages) * PAGE_BYTES;
        } else {
            *errors += 1;
        }
    }

    /// Moves the arm of a disk; says how long that takes.
    fn position(&mut self, part: &Run) -> u64 {
        let Some(seek) = &self.spec.seek else { return 0 };
        let from = self.head.replace(part.at_page.saturating_add(u64::from(part.pages)));
        match from {
            Some(head) if head == part.at_page => 0,
            Some(head) => seek.positioning_ns(head, part.at_page),
            None => seek.random_ns(),
        }
    }

    /// The lot of a part: the length of its spike, and whether it goes well.
    fn draw(&mut self, write: bool) -> (u64, bool) {
        let faults = self.spec.faults;
        let errors = if write { faults.write_error_per_million } else { faults.read_error_per_million };
        let mut hit = |per_million: u32| per_million > 0 && self.rng.below(1_000_000) < u64::from(per_million);
        let spike = hit(faults.spike_per_million);
        let ok = !hit(errors);
        self.stats.spikes += u64::from(spike);
        (if spike { faults.spike_ns } else { 0 }, ok)
    }

    fn rate(&self, write: bool) -> Rate {
        if write { self.spec.write } else { self.spec.read }
    }

    fn expect(&mut self, event: Event) {
        self.event_number += 1;
        self.events.push(Reverse(Event { number: self.event_number, ..event }));
    }
}
