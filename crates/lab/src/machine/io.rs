//! Requests to devices, and their completions.

use refault_mm::PageId;

use super::requests::InFlight;
use super::state::Machine;
use crate::device::Completion;
use crate::sched::Event;

impl Machine {
    /// Requests reach their devices.
    pub(super) fn submit(&mut self, place: usize) {
        for s in self.clock.take_submission(place) {
            self.requests.submit(s, &mut self.kernel.hw.storage.devices, &mut self.clock);
        }
    }

    /// A device has something to do, or has done it.
    pub(super) fn advance_device(&mut self, device: usize) {
        let devices = &mut self.kernel.hw.storage.devices;
        let Some(mut done) = self.requests.advance(device, devices, self.clock.now_ns()) else { return };
        for c in done.drain(..) {
            self.end_request(device, &c);
        }
        self.requests.recycle(done);
        self.settle();
        self.requests.announce(device, &self.kernel.hw.storage.devices, &mut self.clock);
    }

    fn end_request(&mut self, device: usize, c: &Completion) {
        let InFlight { folios, waiter } = self.requests.end(c.request.id);
        self.kernel.hw.storage.note_done(device);
        // There is room for a request: a thread that waits to swap out goes on.
        if let Some((t, wait)) = self.threads.next_room_waiter() {
            self.clock.push(self.clock.now_ns(), Event::Wake(t, wait));
        }
        if let Some(t) = waiter {
            self.threads[t].read_failed = !c.ok;
            if c.ok && c.request.write {
                self.kernel.hw.storage.note_direct_write(c.request.pages);
            }
            self.wake(t, self.threads[t].wait);
        }
        for (page, nr) in folios {
            let (engine, hw) = (&mut self.kernel.engine, &mut self.kernel.hw);
            match c.request.write {
                true => engine.write_done(hw, page, c.ok),
                false => engine.read_done(hw, page, c.ok),
            }
            for page in (page.0..page.0 + nr).map(PageId) {
                self.wake_waiters(page, !c.ok && !c.request.write);
            }
        }
    }

    /// I/O that brought or held a page is over.
    fn wake_waiters(&mut self, page: PageId, read_failed: bool) {
        for t in self.threads.take_page_waiters(page) {
            self.threads[t].read_failed = read_failed;
            self.wake(t, self.threads[t].wait);
        }
    }
}
