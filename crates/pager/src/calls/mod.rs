//! The system calls of the pager, and how tests have them fail.
//!
//! Every call whose failure could matter goes through here under a name ([`Call`]). A test gives
//! its thread a [`CallPlan`]; the threads that the pager starts from that thread have it, too. The
//! plan is asked before each call, and says what becomes of it. Without any plan in the process,
//! which is how programs run, a call costs one load of a flag more.

mod plan;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use plan::{AgentFault, Call, CallFault, CallPlan, EnteredPlan};

/// There is a plan in this process.
static ARMED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The plan of this thread, and whether it is a thread of the pager.
    static MINE: Cell<(Option<&'static CallPlan>, bool)> = const { Cell::new((None, false)) };
}

/// Decides the fate of a call: the fault that it meets, if it meets one.
#[inline]
pub(crate) fn next(call: Call) -> Option<CallFault> {
    if ARMED.load(Ordering::Relaxed) { next_planned(call) } else { None }
}

#[cold]
fn next_planned(call: Call) -> Option<CallFault> {
    let (plan, is_ours) = MINE.get();
    match plan?.next(call)? {
        CallFault::Stalls(ms) => {
            std::thread::sleep(Duration::from_millis(ms));
            None
        }
        CallFault::Dies if is_ours => panic!("a test ends this thread at {}", call.name()),
        CallFault::Dies => None,
        other => Some(other),
    }
}

/// End of the name of the manager's socket, to tell agents of a call that is to fail: nothing
/// without a plan.
pub(crate) fn for_agents() -> String {
    let plan = if ARMED.load(Ordering::Relaxed) { MINE.get().0 } else { None };
    let fault = plan.and_then(CallPlan::of_agents);
    fault.map_or(String::new(), |f| format!("!{:04x}{:02x}{:06x}{:02x}", f.call, f.request, f.n, f.errno))
}

fn error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

/// A call that succeeds or not.
#[inline]
pub(crate) fn made<T>(call: Call, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match next(call) {
        Some(CallFault::Fails(errno) | CallFault::Loses(errno)) => Err(error(errno)),
        Some(CallFault::DoneButFails(errno)) => make().and(Err(error(errno))),
        _ => make(),
    }
}

/// As [`made`], of what returns a negative number and sets `errno`.
#[inline]
pub(crate) fn number<T: Copy + Default + PartialOrd>(call: Call, make: impl FnOnce() -> T) -> io::Result<T> {
    made(call, || {
        let result = make();
        if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
    })
}

/// Moves up to `len` bytes; how many.
pub(crate) fn moved(call: Call, len: usize, make: impl FnOnce(usize) -> io::Result<usize>) -> io::Result<usize> {
    match next(call) {
        Some(CallFault::Fails(errno)) => Err(error(errno)),
        Some(CallFault::DoneButFails(errno)) => make(len).and(Err(error(errno))),
        Some(CallFault::Loses(_)) => Ok(len),
        Some(CallFault::Short(most)) if most.min(len) == 0 => Ok(0),
        Some(CallFault::Short(most)) => make(most.min(len)),
        _ => make(len),
    }
}

/// Reads into a buffer.
pub(crate) fn read(call: Call, to: &mut [u8], make: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
    match next(call) {
        Some(CallFault::Fails(errno) | CallFault::Loses(errno)) => Err(error(errno)),
        Some(CallFault::DoneButFails(errno)) => make(to).and(Err(error(errno))),
        Some(CallFault::Short(most)) if most.min(to.len()) == 0 => Ok(0),
        Some(CallFault::Short(most)) => {
            let len = most.min(to.len());
            make(&mut to[..len])
        }
        Some(CallFault::Flips) => {
            let n = make(to)?;
            if n > 0 {
                to[n / 2] ^= 16;
            }
            Ok(n)
        }
        _ => make(to),
    }
}

/// Fills a buffer by reads, as `read_exact_at` does: what is interrupted is tried again.
pub(crate) fn read_exact(
    call: Call,
    to: &mut [u8],
    mut make: impl FnMut(&mut [u8], usize) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < to.len() {
        match read(call, &mut to[done..], |part| make(part, done)) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Starts a thread of the pager.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let (plan, _) = MINE.get();
    let body = move || {
        MINE.set((plan, true));
        body();
    };
    made(Call::Spawn, || std::thread::Builder::new().name(name.into()).spawn(body))
}

/// Drops the pages of a range: they are missing afterwards. A call that the kernel refuses for the
/// moment is tried again.
///
/// # Safety
/// The range is of memory of the pager, and nobody refers to it, or the thread that does is served
/// when it faults.
pub(crate) unsafe fn discard(start: usize, len: usize) -> io::Result<()> {
    for attempt in 0.. {
        // SAFETY: the caller's contract.
        let make = || unsafe { refault_syscalls::memory::advise(start, len, libc::MADV_DONTNEED) };
        match made(Call::Discard, make) {
            Err(e) if attempt < 8 && matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOMEM)) => {
                std::thread::sleep(Duration::from_millis(1 << attempt));
            }
            other => return other,
        }
    }
    Ok(())
}
