//! The agent's thread.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::abi::{self, AgentHello, CALLS, Control, PAGE, WINDOW};
use crate::link::Link;
use crate::new_memory;
use crate::sys::{self, call, call3};

/// The agent's own memory: its stack, what it was told, the pages that others are moved to, and
/// those that are touched to ask something.
pub const ARENA_BYTES: usize = CALLS_AT + CALLS * PAGE;
const SCRATCH_AT: usize = STACK_BYTES + PAGE;
const CALLS_AT: usize = SCRATCH_AT + WINDOW * PAGE;
const STACK_BYTES: usize = 16 * PAGE;

/// Message of the thread that starts the agent to it, behind the stack.
#[repr(C)]
pub struct AgentStart {
    /// The name of the manager's socket, with zeros behind it.
    pub name: Name,
    /// [`abi::NEW`] or [`abi::FORKED`].
    pub kind: u32,
    /// The watched page that is never touched.
    pub bell: usize,
    /// The arena.
    pub arena: usize,
    /// 0 until the agent is [`READY`] or has given up.
    pub ready: AtomicU32,
}

/// The agent is at work.
pub const READY: u32 = 1;
/// This process is not served.
const GIVEN_UP: u32 = 2;

/// The name of a socket: as long as one may be.
pub type Name = [u8; 108];

/// Where the brief of an arena is.
pub fn brief_at(arena: usize) -> usize {
    arena + STACK_BYTES
}

const EBUSY: u32 = 16;
const MADV_POPULATE_WRITE: usize = 23;
const UFFDIO_API: usize = 0xC018_AA3F;
const UFFDIO_REGISTER: usize = 0xC020_AA00;
const UFFDIO_UNREGISTER: usize = 0x8010_AA01;
const UFFDIO_MOVE: usize = 0xC028_AA05;
const UFFDIO_WRITEPROTECT: usize = 0xC018_AA06;
const USERFAULTFD_IOC_NEW: usize = 0xAA00;
/// PAGEFAULT_FLAG_WP, EVENT_FORK, EVENT_REMAP, EVENT_REMOVE, EVENT_UNMAP, THREAD_ID,
/// WP_UNPOPULATED, POISON, WP_ASYNC, MOVE.
const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 8 | 1 << 13 | 1 << 14 | 1 << 15 | 1 << 16;
const AT_FDCWD: usize = -100_isize as usize;
const CLOEXEC: usize = 0x80000;
const NONBLOCK: usize = 0x800;

/// The thread: `at` is the address of its [`AgentStart`].
pub extern "C" fn run(at: usize) -> ! {
    // SAFETY: the brief was filled before the thread began, and its memory is never unmapped.
    let brief = unsafe { &*(at as *const AgentStart) };
    let agent = Agent::set_up(brief);
    if agent.is_none() && brief.kind == abi::FORKED {
        // The manager alone knows which pages its parent had out of memory.
        die();
    }
    brief.ready.store(if agent.is_some() { READY } else { GIVEN_UP }, Ordering::Release);
    // FUTEX_WAKE.
    // SAFETY: the word lives as long as the process.
    unsafe { call3(sys::FUTEX, &raw const brief.ready as usize, 1, 1) };
    let status = agent.map_or(0, |agent| agent.serve());
    loop {
        // SAFETY: ends this thread.
        unsafe { call3(sys::EXIT, status, 0, 0) };
    }
}

struct Agent {
    link: Link,
    uffd: usize,
    shared: usize,
    scratch: usize,
}

impl Agent {
    fn set_up(brief: &AgentStart) -> Option<Agent> {
        // Descriptors of its own from here on: what the program opens and closes is no business of
        // the agent's, and the other way round. Standard error stays, for the last message. SAFETY:
        // this thread alone gets another table, and all in it but standard error is closed; a file
        // is opened.
        unsafe {
            if call3(sys::UNSHARE, 0x400, 0, 0) < 0 {
                return None;
            }
            call3(sys::CLOSE, 0, 0, 0);
            call3(sys::CLOSE, 1, 0, 0);
            call3(sys::CLOSE_RANGE, 3, u32::MAX as usize, 0);
            // Where the program has no standard error, its number is not to be that of the link:
            // that message would go there.
            if call3(sys::FCNTL, 2, 1, 0) < 0 {
                const NULL: &[u8] = b"/dev/null\0";
                const WRITE_ONLY: usize = 1;
                let null = call3(sys::OPENAT, AT_FDCWD, NULL.as_ptr() as usize, WRITE_ONLY);
                call3(sys::DUP2, null as usize, 2, 0);
            }
        }
        let (scratch, calls) = (brief.arena + SCRATCH_AT, brief.arena + CALLS_AT);
        let mut hello = AgentHello {
            magic: abi::HELLO_MAGIC,
            kind: brief.kind,
            arena: brief.arena as u64,
            arena_bytes: ARENA_BYTES as u64,
            scratch: scratch as u64,
            bell: brief.bell as u64,
            calls: calls as u64,
            caught: new_memory::caught(),
            ..AgentHello::default()
        };
        let mut uffd = -1;
        if brief.kind == abi::NEW {
            match open_uffd() {
                Ok(fd) => uffd = fd as i32,
                Err((at, error)) => (hello.at, hello.error) = (at, error),
            }
        }
        let Ok(link) = Link::connect(&brief.name) else {
            const ALONE: &[u8] =
                b"refault: this program runs without a limit: who would serve its memory cannot be reached from here\n";
            // SAFETY: a message on standard error.
            unsafe { sys::raw(sys::WRITE, [2, ALONE.as_ptr() as usize, ALONE.len(), 0, 0, 0]) };
            return None;
        };
        if !link.greet(&hello, uffd) {
            return None;
        }
        loop {
            let received = link.receive()?;
            match received.order.kind {
                abi::RING => {
                    // The kernel tells the manager, which knows by that which memory this is.
                    // SAFETY: nothing is in the bell, ever.
                    unsafe { call3(sys::MADVISE, brief.bell, PAGE, 4) };
                }
                abi::GO => {
                    if received.fds[1] >= 0 {
                        uffd = received.fds[1];
                    }
                    // PROT_READ | PROT_WRITE, MAP_SHARED.
                    let args = [0, abi::SHARED_BYTES, 3, 1, received.fds[0] as usize, 0];
                    // SAFETY: a new mapping, where the kernel chooses.
                    let shared = unsafe { call(sys::MMAP, args) };
                    // Children would have no use for it, and the manager's pages are not theirs.
                    // MADV_DONTFORK. SAFETY: the mapping that was just made.
                    unsafe { call3(sys::MADVISE, shared as usize, abi::SHARED_BYTES, 10) };
                    if shared > 0 {
                        new_memory::open(shared as usize + abi::NEW_MEMORY_AT, calls);
                    }
                    return (shared > 0).then_some(Agent {
                        link,
                        uffd: uffd as usize,
                        shared: shared as usize,
                        scratch,
                    });
                }
                _ => return None,
            }
        }
    }

    /// Until all other threads have ended: their status.
    fn serve(&self) -> usize {
        while let Some(received) = self.link.receive() {
            let count = (received.order.count as usize).min(WINDOW);
            match received.order.kind {
                abi::MOVE => self.move_out(count),
                // For the kernel, the status of the last thread is that of the process.
                abi::END => return received.order.count as usize,
                _ => {}
            }
            if !self.link.answer() {
                break;
            }
        }
        die();
        0
    }

    /// The control page.
    fn control(&self) -> *mut Control {
        self.shared as *mut Control
    }

    /// Moves pages to the scratch pages, copies them to the window, and empties the scratch pages.
    fn move_out(&self, count: usize) {
        // SAFETY: the manager does not touch the shared memory until it is answered, and the agent
        // has it mapped for ever.
        let control = unsafe { &mut *self.control() };
        let mut at = 0;
        control.unshared = 0;
        while at < count {
            let follows = |i: usize| control.address[i] == control.address[i - 1] + PAGE as u64;
            let mut run = 1;
            while at + run < count && follows(at + run) {
                run += 1;
            }
            let (mut moved, mut error) = self.move_run(control.address[at] as usize, at, run);
            if moved == 0 && error == EBUSY {
                // Shared with another process since a fork: it becomes this one's own. The manager
                // gives no address where nothing is, so nobody waits here for a page. SAFETY: the
                // advice changes no content.
                unsafe { call3(sys::MADVISE, control.address[at] as usize, PAGE, MADV_POPULATE_WRITE) };
                (moved, error) = self.move_run(control.address[at] as usize, at, 1);
                control.unshared |= u64::from(moved > 0) << at;
            }
            let done = if moved == 0 || self.mark(control.address[at], moved) { 0 } else { abi::UNMARKED };
            (at..at + moved).for_each(|i| control.outcome[i] = done);
            at += moved;
            if moved == 0 && error != 0 {
                // The contents of both places decide, not what the call said.
                let gone = !is_filled(control.address[at] as usize);
                control.outcome[at] = if gone && is_filled(self.scratch + at * PAGE) { abi::UNMARKED } else { error };
                at += 1;
            }
        }
        for i in (0..count).filter(|&i| matches!(control.outcome[i], 0 | abi::UNMARKED)) {
            let (from, to) = (self.scratch + i * PAGE, self.shared + (1 + i) * PAGE);
            // SAFETY: the page was moved to that place; both are pages that nobody else uses now.
            unsafe { sys::refault_copy(to as *mut u8, from as *const u8, PAGE) };
        }
        self.empty_scratch();
    }

    /// Moves a run of pages to the scratch pages from `place` on. How many were moved, and the
    /// error that stopped it.
    fn move_run(&self, from: usize, place: usize, run: usize) -> (usize, u32) {
        // Where to, from where, how much, DONTWAKE, how much was done.
        let mut arg = [(self.scratch + place * PAGE) as u64, from as u64, (run * PAGE) as u64, 1, 0];
        // SAFETY: the scratch pages are empty, and who refers to the source is served when it
        // faults.
        let result = unsafe { call3(sys::IOCTL, self.uffd, UFFDIO_MOVE, arg.as_mut_ptr() as usize) };
        match (result, arg[4] as i64) {
            (0, _) => (run, 0),
            (_, done) if done > 0 => (done as usize / PAGE, 0),
            (error, _) => (0, -error as u32),
        }
    }

    /// Marks where pages were: write protection of pages that are not there. The kernel moves and
    /// drops such marks with the mappings, and copies them for a forked process.
    fn mark(&self, from: u64, pages: usize) -> bool {
        // The range, and that it is to be protected.
        let mut arg = [from, (pages * PAGE) as u64, 1];
        // SAFETY: nothing is there, so nothing is protected.
        unsafe { call3(sys::IOCTL, self.uffd, UFFDIO_WRITEPROTECT, arg.as_mut_ptr() as usize) == 0 }
    }

    /// Empties the scratch pages. They are not watched meanwhile: the kernel would tell the manager
    /// of it and wait for it.
    fn empty_scratch(&self) {
        let bytes = (WINDOW * PAGE) as u64;
        let range = [self.scratch as u64, bytes];
        const LOCKED: &[u8] =
            b"refault: this program has locked all of its memory (mlockall), so none of it can leave; the program ends\n";
        // The range, MISSING, and what can be done with it.
        let mut register = [self.scratch as u64, bytes, 1, 0];
        // SAFETY: the scratch pages are the agent's, and what was in them is in the window.
        unsafe {
            // Discarded while it is watched, it would wait for the manager, which waits for the
            // answer to this order.
            insist(|| call3(sys::IOCTL, self.uffd, UFFDIO_UNREGISTER, range.as_ptr() as usize));
            // Refused for good if the program locked all of its memory, and these pages with it.
            insist_or(|| call3(sys::MADVISE, self.scratch, bytes as usize, 4), LOCKED);
            insist(|| call3(sys::IOCTL, self.uffd, UFFDIO_REGISTER, register.as_mut_ptr() as usize));
        }
    }
}

/// Makes a call that the kernel has no reason to refuse but for the moment; if it goes on refusing,
/// the program ends.
fn insist(make: impl FnMut() -> isize) {
    insist_or(make, b"refault: the kernel refuses what this program's memory takes to be served; the program ends\n");
}

/// The same, with what is said in the end.
fn insist_or(mut make: impl FnMut() -> isize, last: &[u8]) {
    const ATTEMPTS: u32 = 1000;
    if !(0..ATTEMPTS).any(|_| make() >= 0) {
        end(last);
    }
}

/// The manager that serves this memory is gone. Nothing of it can be trusted to come back.
fn die() {
    const LAST: &[u8] = b"refault: the process that serves this program's memory is gone; the program ends\n";
    end(LAST);
}

fn end(last: &[u8]) {
    // SAFETY: a message, and the end.
    unsafe {
        sys::raw(sys::WRITE, [2, last.as_ptr() as usize, last.len(), 0, 0, 0]);
        let pid = call3(sys::GETPID, 0, 0, 0);
        call3(sys::KILL, pid as usize, 9, 0);
    }
}

/// Whether something is in a page.
fn is_filled(at: usize) -> bool {
    let mut there = 0u8;
    // SAFETY: one byte for one page.
    unsafe { call3(sys::MINCORE, at, PAGE, &raw mut there as usize) };
    there & 1 != 0
}

/// A userfaultfd with all features, or what failed and why.
fn open_uffd() -> Result<usize, (u32, u32)> {
    // SAFETY: the calls make new descriptors.
    let mut fd = unsafe { call3(sys::USERFAULTFD, CLOEXEC | NONBLOCK, 0, 0) };
    if fd == -1 {
        // Not permitted: but who may open the device may have one.
        const DEVICE: &[u8] = b"/dev/userfaultfd\0";
        // SAFETY: the path ends in a zero byte.
        unsafe {
            let device = call(sys::OPENAT, [AT_FDCWD, DEVICE.as_ptr() as usize, 2 | CLOEXEC, 0, 0, 0]);
            if device >= 0 {
                fd = call3(sys::IOCTL, device as usize, USERFAULTFD_IOC_NEW, CLOEXEC | NONBLOCK);
                call3(sys::CLOSE, device as usize, 0, 0);
            }
        }
    }
    if fd < 0 {
        return Err((abi::AT_OPEN, -fd as u32));
    }
    let mut api = [0xAA, FEATURES, 0];
    // SAFETY: the structure of the request: version, features, operations.
    let done = unsafe { call3(sys::IOCTL, fd as usize, UFFDIO_API, api.as_mut_ptr() as usize) };
    if done < 0 { Err((abi::AT_FEATURES, -done as u32)) } else { Ok(fd as usize) }
}
