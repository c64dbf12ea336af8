//! Requests under way between the machine and its devices.

use std::collections::HashMap;

use refault_mm::PageId;

use crate::device::{Completion, Device};
use crate::hardware::Submission;
use crate::sched::{Clock, Event};

/// Load of a request: folios, or pages past the page cache for a thread.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    pub(super) folios: Vec<(PageId, u32)>,
    pub(super) waiter: Option<usize>,
}

/// Requests to devices, and the times at which devices are to call back.
#[derive(Debug)]
pub(super) struct Requests {
    /// Requests under way, by their number: folios by first page and length, or who waits.
    in_flight: HashMap<u64, InFlight>,
    /// When each device was last announced to have something to do.
    announced: Vec<Option<u64>>,
    /// To be used again.
    completions: Vec<Completion>,
    completed: u64,
}

impl Requests {
    /// No requests under way, on `devices` devices.
    pub(super) fn new(devices: usize) -> Requests {
        let (in_flight, completions) = (HashMap::new(), Vec::new());
        Requests { in_flight, announced: vec![None; devices], completions, completed: 0 }
    }

    /// Requests under way, and requests that have ended.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.in_flight.len() as u64, self.completed)
    }

    /// A request reaches its device.
    pub(super) fn submit(&mut self, s: Submission, devices: &mut [Device], clock: &mut Clock) {
        devices[s.device].submit(clock.now_ns(), s.request);
        let before = self.in_flight.insert(s.request.id, InFlight { folios: s.folios, waiter: s.waiter });
        debug_assert!(before.is_none(), "request {} is under way already", s.request.id);
        self.announce(s.device, devices, clock);
    }

    /// Has the device called when it has something to do.
    pub(super) fn announce(&mut self, device: usize, devices: &[Device], clock: &mut Clock) {
        let next = devices[device].next_event_ns();
        if next.is_some_and(|at| self.announced[device].is_none_or(|a| at < a)) {
            self.announced[device] = next;
            clock.push(next.unwrap_or(clock.now_ns()).max(clock.now_ns()), Event::Device(device));
        }
    }

    /// Advances a device to the present; returns its completions. None: this call is stale, since
    /// the device was announced for another time.
    pub(super) fn advance(&mut self, device: usize, devices: &mut [Device], now_ns: u64) -> Option<Vec<Completion>> {
        if self.announced[device].is_none_or(|a| a > now_ns) {
            return None;
        }
        self.announced[device] = None;
        let mut done = std::mem::take(&mut self.completions);
        devices[device].advance(now_ns, &mut done);
        Some(done)
    }

    /// A request has ended: what it carried.
    pub(super) fn end(&mut self, id: u64) -> InFlight {
        self.completed += 1;
        let carried = self.in_flight.remove(&id);
        debug_assert!(carried.is_some(), "request {id} is not under way");
        carried.unwrap_or_default()
    }

    /// The list of what was done is free again.
    pub(super) fn recycle(&mut self, mut done: Vec<Completion>) {
        done.clear();
        self.completions = done;
    }
}
