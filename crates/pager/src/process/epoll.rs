//! Waiting for whatever comes of any process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::calls::{self, Call};
use crate::threads::fatal;

/// Work that is ready in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    /// Faults or changes of mappings of a process: its number.
    Faults(usize),
    /// The agent of a process is gone: its number, and which process of that number it was.
    Gone(usize, u32),
    /// It has answered, later than it should; likewise.
    Answered(usize, u32),
    /// It is over.
    Stop,
}

/// A set of descriptors.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    stop: OwnedFd,
}

const FAULTS: u64 = 1 << 62;
const GONE: u64 = 2 << 62;
const SERIAL_BITS: u32 = 30;
/// Events that tell that an agent is gone.
const END: libc::c_int = libc::EPOLLRDHUP | libc::EPOLLHUP;

/// Data of epoll for an agent: its number and serial.
fn of_agent(index: usize, serial: u32) -> u64 {
    GONE | u64::from(serial & ((1 << SERIAL_BITS) - 1)) << 32 | index as u64
}

impl Epoll {
    pub(super) fn new() -> io::Result<Epoll> {
        // SAFETY: the call makes a new descriptor.
        let epoll = calls::number(Call::EpollCreate, || unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: it is new, and ours.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        // SAFETY: the call makes a new descriptor.
        let stop = calls::number(Call::EventFd, || unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: it is new, and ours.
        let poll = Epoll { epoll, stop: unsafe { OwnedFd::from_raw_fd(stop) } };
        poll.add(poll.stop.as_raw_fd(), libc::EPOLLIN, 0)?;
        Ok(poll)
    }

    fn add(&self, fd: RawFd, events: libc::c_int, data: u64) -> io::Result<()> {
        calls::number(Call::EpollAdd, || self.control(libc::EPOLL_CTL_ADD, fd, events, data)).map(drop)
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, events: libc::c_int, data: u64) -> libc::c_int {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event lives until the call is done.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut event) }
    }

    /// Waits for a process's faults, until its descriptor is closed. Each is told to one thread,
    /// which must read all there is: told until it is read, all threads would come for it, and all
    /// but one in vain.
    pub(super) fn add_faults(&self, fd: RawFd, index: usize) -> io::Result<()> {
        self.add(fd, libc::EPOLLIN | libc::EPOLLET, FAULTS | index as u64)
    }

    /// No longer. If that is refused, more is told than need be.
    pub(super) fn remove(&self, fd: RawFd) {
        _ = calls::number(Call::EpollChange, || self.control(libc::EPOLL_CTL_DEL, fd, 0, 0));
    }

    /// Waits for the end of an agent.
    pub(super) fn add_agent(&self, fd: RawFd, index: usize, serial: u32) -> io::Result<()> {
        self.add(fd, END, of_agent(index, serial))
    }

    /// Waits for its answer, too, or no longer.
    pub(super) fn watch_answer(&self, fd: RawFd, index: usize, serial: u32, waits: bool) -> io::Result<()> {
        let events = if waits { END | libc::EPOLLIN } else { END };
        let change = || self.control(libc::EPOLL_CTL_MOD, fd, events, of_agent(index, serial));
        calls::number(Call::EpollChange, change).map(drop)
    }

    /// Waits for one thing.
    pub(super) fn wait(&self) -> io::Result<Option<Ready>> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event.
        let wait = || unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, -1) };
        match calls::number(Call::EpollWait, wait) {
            Ok(1) => {}
            Ok(_) => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(e) => return Err(e),
        }
        let (data, index) = (event.u64, event.u64 as u32 as usize);
        Ok(Some(match data & (FAULTS | GONE) {
            FAULTS => Ready::Faults(index),
            GONE => {
                let (events, serial) = (event.events, (data >> 32) as u32 & ((1 << SERIAL_BITS) - 1));
                let is_gone = events & (END | libc::EPOLLERR) as u32 != 0;
                if is_gone { Ready::Gone(index, serial) } else { Ready::Answered(index, serial) }
            }
            _ => Ready::Stop,
        }))
    }

    /// Everyone who waits, now or later, is told to stop.
    pub(super) fn stop(&self) {
        let one = 1u64;
        loop {
            // SAFETY: eight bytes of this frame.
            let write = || unsafe { libc::write(self.stop.as_raw_fd(), (&raw const one).cast(), 8) };
            match calls::number(Call::EventWrite, write) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The threads would be waited for, which wait for this.
                Err(e) => fatal(&format!("ending the threads of the pager: {e}")),
                Ok(_) => return,
            }
        }
    }
}
