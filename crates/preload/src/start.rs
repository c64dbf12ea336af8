//! Where it begins: when the program is loaded, and in every child of `fork`.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use crate::abi::{self, PAGE};
use crate::agent::{self, ARENA_BYTES, AgentStart, Name};
use crate::new_memory;
#[cfg(preload)]
use crate::sys::raw;
use crate::sys::{self, call, call3};

unsafe extern "C" {
    /// Function that `pthread_atfork` is made of; the C library exports it under this name.
    fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        object: *mut c_void,
    ) -> c_int;
    #[cfg(preload)]
    fn __errno_location() -> *mut c_int;
}

/// The manager's socket, and the bell. A copy: programs may write over their environment.
static NAME: [AtomicU8; 108] = [const { AtomicU8::new(0) }; 108];
static BELL: AtomicUsize = AtomicUsize::new(0);

#[cfg(preload)]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Runs before the program's `main`: glibc hands the environment to functions of `.init_array`.
#[cfg_attr(not(preload), expect(dead_code, reason = "the entry of the shared object"))]
extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    let Some(name) = find_variable(environment) else { return };
    let bell = map(abi::BELL_BYTES);
    if bell == 0 {
        return;
    }
    new_memory::set_up(bell + PAGE);
    NAME.iter().zip(name).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
    sys::plan(&name);
    BELL.store(bell, Ordering::Relaxed);
    new_memory::catch_all();
    if !start_agent(abi::NEW) {
        return;
    }
    // SAFETY: the handler is a function of this object, which is never unloaded.
    unsafe { __register_atfork(None, None, Some(in_child), core::ptr::null_mut()) };
}

/// Runs in every child of `fork`, before `fork` returns there.
extern "C" fn in_child() {
    start_agent(abi::FORKED);
}

/// Whether this process is served.
fn start_agent(kind: u32) -> bool {
    let arena = map(ARENA_BYTES);
    if arena == 0 {
        return false;
    }
    // A child has an agent of its own, or none.
    // SAFETY: the arena was just made.
    unsafe { call3(sys::MADVISE, arena, ARENA_BYTES, 10) };
    let at = agent::brief_at(arena);
    let name = NAME.each_ref().map(|byte| byte.load(Ordering::Relaxed));
    let brief = AgentStart { name, kind, bell: BELL.load(Ordering::Relaxed), arena, ready: AtomicU32::new(0) };
    let all = u64::MAX;
    let mut before = 0u64;
    // SAFETY: the brief fits its page; the stack is below it; the agent takes no signal, and the
    // mask of this thread is what it was at the end; the memory that is waited on is the brief's.
    unsafe {
        (at as *mut AgentStart).write(brief);
        let brief = &*(at as *const AgentStart);
        call(sys::SIGPROCMASK, [2, &raw const all as usize, &raw mut before as usize, 8, 0, 0]);
        let started = sys::thread(at, agent::run, at);
        call(sys::SIGPROCMASK, [2, &raw const before as usize, 0, 8, 0, 0]);
        // FUTEX_WAIT.
        while started > 0 && brief.ready.load(Ordering::Acquire) == 0 {
            call(sys::FUTEX, [&raw const brief.ready as usize, 0, 0, 0, 0, 0]);
        }
        brief.ready.load(Ordering::Acquire) == agent::READY
    }
}

/// New anonymous memory of the process; 0: there is none.
fn map(bytes: usize) -> usize {
    // PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS.
    // SAFETY: a new mapping, where the kernel chooses.
    let at = unsafe { call(sys::MMAP, [0, bytes, 3, 0x22, usize::MAX, 0]) };
    if at < 0 { 0 } else { at as usize }
}

/// The value of [`abi::VARIABLE`].
fn find_variable(environment: *const *const c_char) -> Option<Name> {
    let wanted = abi::VARIABLE.as_bytes();
    let mut at = environment;
    // SAFETY: the environment is an array of strings that end in a zero byte, with a null pointer
    // behind the last. A string is read no further than it equals what is wanted, so not beyond its
    // end.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let entry = (*at).cast::<u8>();
            let same = (0..wanted.len()).all(|i| *entry.add(i) == wanted[i]);
            if same && *entry.add(wanted.len()) == b'=' {
                let value = entry.add(wanted.len() + 1);
                let mut name = [0; 108];
                let mut len = 0;
                while len < name.len() && *value.add(len) != 0 {
                    name[len] = *value.add(len);
                    len += 1;
                }
                return Some(name);
            }
            at = at.add(1);
        }
    }
    None
}

/// `madvise` of the program. `MADV_FREE` becomes `MADV_DONTNEED`, which it may act like at any
/// time: the kernel reports both in the same way, and after the second the pages are certainly
/// gone. `MADV_GUARD_INSTALL` discards what is there, and the kernel does not report it: a
/// `MADV_DONTNEED` after it does.
///
/// # Safety
/// As `madvise`.
#[cfg(preload)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    const FREE: c_int = 8;
    const DONTNEED: c_int = 4;
    const GUARD_INSTALL: c_int = 102;
    let advice = if advice == FREE { DONTNEED } else { advice };
    // SAFETY: the caller's contract; `errno` is the calling thread's.
    unsafe {
        let done = raw(sys::MADVISE, [address as usize, len, advice as usize, 0, 0, 0]);
        if done < 0 {
            *__errno_location() = -done as c_int;
            return -1;
        }
        if advice == GUARD_INSTALL {
            // Guards stay. Where it could be installed, this cannot fail, but for a range that is
            // changed meanwhile.
            _ = raw(sys::MADVISE, [address as usize, len, DONTNEED as usize, 0, 0, 0]);
        }
    }
    0
}
