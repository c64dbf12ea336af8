//! Faults that are served by the threads that make them, in a handler of `SIGBUS`.
//!
//! The handler takes the lock of the region, that of keeping processors awake, and memory from the
//! allocator. A fault is made by an instruction, not by the clock, so this is a deadlock only if
//! that instruction runs under one of these locks. Under the first two, nothing is read or written
//! that the program may have put into a region: arguments are copied before. The allocator touches
//! its own memory only, which may therefore not be in a region. All other signals are blocked
//! meanwhile, so no other handler of the program runs on top of this one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use super::Shared;
use super::registry;
use crate::core::State;
use crate::error::Error;
use crate::threads::fatal;
use crate::uffd::PAGE;

/// Handler of the signal before this one.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// Whether the handler before wanted to be called once, and was.
static BEFORE_IS_SPENT: AtomicBool = AtomicBool::new(false);

/// Makes the handler that of the process, once.
pub(super) fn install() -> Result<(), Error> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if *installed {
        return Ok(());
    }
    let error = Error::io("installing a handler of SIGBUS");
    // SAFETY: plain data, filled by the call.
    let before = unsafe {
        let mut before = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 {
            return Err(error(std::io::Error::last_os_error()));
        }
        before
    };
    // The handler may run as soon as it is installed, so it has to be known before.
    let before = BEFORE.get_or_init(|| before);
    // SAFETY: plain data, filled before it is used; the handler has the signature that its flags
    // ask for. The one for children touches nothing but atomics.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as extern "C" fn(_, _, _) as usize;
        // On the stack of the thread: alternative stacks are often too small for it.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        let mut replaced: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, &action, &mut replaced) != 0 {
            return Err(error(std::io::Error::last_os_error()));
        }
        if replaced.sa_sigaction != before.sa_sigaction {
            libc::sigaction(libc::SIGBUS, &replaced, std::ptr::null_mut());
            return Err(Error::Config("another handler of SIGBUS was installed at the same time; try again".into()));
        }
        libc::pthread_atfork(None, None, Some(registry::forget_all));
    }
    *installed = true;
    Ok(())
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands both to a handler that is installed with SA_SIGINFO; errno is this
    // thread's.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        // Other codes are of broken memory, or of signals that were sent.
        let region = match (*info).si_code {
            libc::BUS_ADRERR => registry::find(address),
            _ => None,
        };
        // SAFETY: a region is in the table as long as its memory may be touched, and lives as long.
        if !region.is_some_and(|region| (*region).fault_by_signal(address, is_write(context))) {
            hand_on(signal, info, context);
        }
        *libc::__errno_location() = errno;
    }
}

/// Whether the access was a write, where the processor tells. It is a hint: a page of zeros may be
/// shared until it is written.
///
/// # Safety
/// The context is that of a signal handler, of a page fault.
#[cfg(target_arch = "x86_64")]
unsafe fn is_write(context: *const libc::c_void) -> bool {
    const WRITE: i64 = 1 << 1;
    // SAFETY: the caller's contract.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0 }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn is_write(_: *const libc::c_void) -> bool {
    false
}

/// Signals of no region go to the handler before, as if this one were not there.
///
/// # Safety
/// Called with the arguments of a signal handler.
unsafe fn hand_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    let by_instruction = {
        // SAFETY: the caller's contract.
        unsafe { (*info).si_code > 0 }
    };
    let spent = before.sa_flags & libc::SA_RESETHAND != 0 && BEFORE_IS_SPENT.swap(true, Ordering::Relaxed);
    match before.sa_sigaction {
        libc::SIG_IGN if !by_instruction => {}
        // SAFETY: from here on the kernel does with the signal what it does by default. The
        // instruction is run again, or the signal is sent again and arrives when this handler
        // returns.
        libc::SIG_DFL | libc::SIG_IGN => unsafe { by_default(signal, by_instruction) },
        // SAFETY: as above.
        _ if spent => unsafe { by_default(signal, by_instruction) },
        // SAFETY: it was installed with these flags, and so it has the signature that goes with
        // them. The mask is what the kernel would have set; that of the interrupted code comes back
        // when this handler returns.
        handler => unsafe {
            let mut mask = (*context.cast::<libc::ucontext_t>()).uc_sigmask;
            for other in 1..=libc::SIGRTMAX() {
                if libc::sigismember(&before.sa_mask, other) == 1 {
                    libc::sigaddset(&mut mask, other);
                }
            }
            if before.sa_flags & libc::SA_NODEFER == 0 {
                libc::sigaddset(&mut mask, signal);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
            }
        },
    }
}

/// Gives a signal its default action, which ends the process.
///
/// # Safety
/// The signal is one of this process, which ends by it.
unsafe fn by_default(signal: libc::c_int, by_instruction: bool) {
    // SAFETY: plain data; SIG_DFL is no function. The rest is the caller's contract.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &action, std::ptr::null_mut());
        if !by_instruction {
            libc::raise(signal);
        }
    }
}

impl Shared {
    /// A fault of this thread. If it is true, the access is to be tried again: then the page is in
    /// place, or lost, or it faults once more. False: the page is lost, which is the program's
    /// affair.
    fn fault_by_signal(&self, address: usize, write: bool) -> bool {
        let page = ((address - self.memory.start) / PAGE) as u32;
        let served = catch_unwind(AssertUnwindSafe(|| self.serve_here(page, write)));
        served.unwrap_or_else(|_| fatal("serving a fault failed"))
    }

    fn serve_here(&self, page: u32, write: bool) -> bool {
        let mut core = self.lock();
        if core.memory.state(page) == State::Poisoned {
            return false;
        }
        self.tick(&mut core);
        // SAFETY: takes nothing, cannot fail.
        core.fault_of(unsafe { libc::pthread_self() });
        let alone = core.frames.is_alone();
        self.fault(&mut core, self.memory.address(page), write);
        core = self.finish(core);
        if core.is_waiting_for_frame() {
            // A thread that waits for room makes some.
            core = self.evict_round(core);
            core.retry();
            core = self.finish(core);
        }
        core = self.evict_here(core);
        if let Some(waiters) = &self.memory.waiters {
            core = waiters.wait_while(core, |core| core.is_awaited(page, write));
        }
        drop(core);
        if !alone {
            // A thread that serves a fault by itself wakes nobody, but several wait for each other:
            // one moves pages out, and others for the lock.
            self.latency.woke(1);
        }
        true
    }
}
