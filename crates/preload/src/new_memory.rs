//! Memory that the program makes is watched before the program touches it: the functions of the C
//! library that make memory come here.
//!
//! The manager could find new memory in `/proc` only after it was there, when a program may have
//! filled it. So `mmap`, `brk`, `mremap` and `mprotect` of the C library begin with a jump to
//! functions of this file, which do the same, and then see to it that the manager knows
//! ([`abi::NewMemory`]). A jump is needed because the library's own calls (`malloc`, stacks of
//! threads) name no symbol that could be replaced. It is put there before `main`, while the process
//! has one thread, and only into code that makes the expected system call.
//!
//! These functions are run by threads of the program, so they may touch memory that is not in
//! place.

use core::ffi::c_int;
#[cfg(preload)]
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::abi::{self, CALLS, NewMemory, PAGE};
use crate::sys::{self, raw};

/// Half of the pages of calls: one half is emptied while the other is used.
const HALF: u64 = CALLS as u64 / 2;

/// The page that is empty in every child of `fork`: where [`NewMemory`] and the pages of calls are,
/// if there are any.
static PLACE: AtomicUsize = AtomicUsize::new(0);
/// Functions that come here: bits of [`abi::CAUGHT_ALL`].
static CAUGHT: AtomicU32 = AtomicU32::new(0);

/// Contents of that page.
#[repr(C)]
struct Place {
    new_memory: AtomicUsize,
    calls: AtomicUsize,
}

/// Functions that were caught.
pub fn caught() -> u32 {
    CAUGHT.load(Ordering::Relaxed)
}

/// Tells where the page is, which a forked process finds empty: what it refers to is not mapped
/// there.
pub fn set_up(page: usize) {
    const WIPE_ON_FORK: usize = 18;
    // SAFETY: a page of the library's own.
    if unsafe { raw(sys::MADVISE, [page, PAGE, WIPE_ON_FORK, 0, 0, 0]) } == 0 {
        PLACE.store(page, Ordering::Relaxed);
    }
}

/// From now on a thread that makes memory looks at [`NewMemory`].
pub fn open(new_memory: usize, calls: usize) {
    let page = PLACE.load(Ordering::Relaxed) as *const Place;
    if !page.is_null() {
        // SAFETY: the page is mapped for ever, and these are words.
        let place = unsafe { &*page };
        place.calls.store(calls, Ordering::Relaxed);
        place.new_memory.store(new_memory, Ordering::Release);
    }
}

/// [`NewMemory`] and the pages of calls.
fn new_memory() -> Option<(&'static NewMemory, usize)> {
    let page = PLACE.load(Ordering::Relaxed) as *const Place;
    if page.is_null() {
        return None;
    }
    // SAFETY: as above. Memory that is named there is mapped as long as this memory is that of its
    // process.
    unsafe {
        let new_memory = (*page).new_memory.load(Ordering::Acquire) as *const NewMemory;
        new_memory.as_ref().map(|new_memory| (new_memory, (*page).calls.load(Ordering::Relaxed)))
    }
}

/// Whether all that is made is watched.
fn is_watched() -> bool {
    new_memory().is_some_and(|(new_memory, _)| new_memory.allowance.load(Ordering::Acquire) < abi::WATCHED)
}

fn pages(bytes: usize) -> usize {
    bytes.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

/// Memory was made and nobody has it yet. `counts`: it can be filled as it is.
fn made(start: usize, bytes: usize, counts: bool) {
    let Some((new_memory, calls)) = new_memory() else { return };
    if bytes == 0 {
        return;
    }
    if new_memory.allowance.load(Ordering::Acquire) >= abi::WATCHED {
        let bytes = bytes as i64;
        if !counts || new_memory.allowance.fetch_sub(bytes, Ordering::AcqRel) >= bytes {
            return;
        }
    }
    ask(new_memory, calls, start, bytes);
}

/// Memory that could not be filled before can be now. If everything is watched, so is this.
fn opened(start: usize, bytes: usize) {
    if !is_watched() {
        made(start, bytes, true);
    }
}

/// Memory was moved. The kernel does not say in which order threads did so: the manager has to find
/// out, and can among few changes. So a thread makes no second one before the first is dealt with.
#[cfg(preload)]
fn moved() {
    if let Some((new_memory, calls)) = new_memory().filter(|_| is_watched()) {
        ask(new_memory, calls, 0, 0);
    }
}

/// Returns when the manager has seen to a range, which may be empty, and to all changes before.
fn ask(new_memory: &NewMemory, calls: usize, start: usize, bytes: usize) {
    const ATTEMPTS: u32 = 10 * CALLS as u32;
    const PATIENCE: u32 = 10_000;
    for _ in 0..ATTEMPTS {
        let n = new_memory.next.fetch_add(1, Ordering::AcqRel);
        let (turn, entry) = (n / HALF, (n % CALLS as u64) as usize);
        if n.is_multiple_of(HALF) {
            // The other half, so that it is empty when its turn comes. A thread that still waits in
            // it asks again.
            let other = calls + (turn + 1) as usize % 2 * HALF as usize * PAGE;
            // SAFETY: pages of the arena, in which nothing is but zeros.
            unsafe { raw(sys::MADVISE, [other, HALF as usize * PAGE, 4, 0, 0, 0]) };
            new_memory.emptied.store(turn + 1, Ordering::Release);
        }
        for _ in 0..PATIENCE {
            if new_memory.emptied.load(Ordering::Acquire) >= turn {
                break;
            }
            // SAFETY: the call takes nothing.
            unsafe { raw(sys::SCHED_YIELD, [0, 0, 0, 0, 0, 0]) };
        }
        if new_memory.busy[entry].swap(1, Ordering::AcqRel) != 0 {
            continue;
        }
        new_memory.range[entry][0].store(start as u64, Ordering::Release);
        new_memory.range[entry][1].store(bytes as u64, Ordering::Release);
        // SAFETY: a page of the arena. Nothing is in it, so the manager is told, and puts zeros
        // there when it is done.
        unsafe { ((calls + entry * PAGE) as *const u8).read_volatile() };
        new_memory.busy[entry].store(0, Ordering::Release);
        return;
    }
}

#[cfg(preload)]
unsafe extern "C" {
    fn mmap(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn brk(to: *mut c_void) -> c_int;
    fn mremap(at: *mut c_void, len: usize, new_len: usize, flags: c_int, ...) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int;
    fn __errno_location() -> *mut c_int;
    /// Where the C library believes that the heap ends.
    static mut __curbrk: usize;
}

const PROT_WRITE: c_int = 2;
const EPERM: c_int = 1;
const EAGAIN: c_int = 11;
const ENOMEM: c_int = 12;

/// The result of a system call as the C library gives it.
#[cfg(preload)]
fn result(of: isize) -> isize {
    if (-4095..0).contains(&of) {
        // SAFETY: the calling thread's.
        unsafe { *__errno_location() = -of as c_int };
        return -1;
    }
    of
}

#[cfg(preload)]
extern "C" fn gated_mmap(at: usize, len: usize, protection: c_int, flags: c_int, fd: c_int, offset: usize) -> isize {
    const KIND: c_int = 0xF;
    const PRIVATE: c_int = 2;
    const ANONYMOUS: c_int = 0x20;
    const POPULATE: c_int = 0x8000;
    const LOCKED: c_int = 0x2000;
    // It grows by itself, or is of huge pages.
    const OTHERS: c_int = 0x100 | 0x40000;
    let is_ours = flags & KIND == PRIVATE && flags & ANONYMOUS != 0 && flags & OTHERS == 0;
    // It would be filled before anyone is asked.
    let later = if is_ours { flags & (POPULATE | LOCKED) } else { 0 };
    let flags = flags & !later;
    // SAFETY: the caller's contract with `mmap`.
    let got = unsafe { raw(sys::MMAP, [at, len, protection as usize, flags as usize, fd as usize, offset]) };
    if is_ours && !(-4095..0).contains(&got) {
        made(got as usize, pages(len), protection & PROT_WRITE != 0);
        if later != 0 {
            return result(fill(got as usize, pages(len), protection, later & LOCKED != 0));
        }
    }
    result(got)
}

/// Fills new memory, of which the manager knows now, as `MAP_POPULATE` would have done, and locks
/// it. Where that is, or why it cannot be.
#[cfg(preload)]
fn fill(start: usize, bytes: usize, protection: c_int, is_locked: bool) -> isize {
    const POPULATE_READ: usize = 22;
    const POPULATE_WRITE: usize = 23;
    // SAFETY: memory that was just made, and that nobody else has.
    unsafe {
        if is_locked {
            let done = raw(sys::MLOCK, [start, bytes, 0, 0, 0, 0]);
            // Locked as far as it may be, as by `mmap`: only the limit is an error.
            let is_refused = [EPERM, EAGAIN, ENOMEM].iter().any(|&e| done == -(e as isize));
            if protection != 0 && is_refused {
                raw(sys::MUNMAP, [start, bytes, 0, 0, 0, 0]);
                return -(EAGAIN as isize);
            }
        } else if !is_watched() {
            // Watched memory is put in place when it is touched.
            let advice = if protection & PROT_WRITE != 0 { POPULATE_WRITE } else { POPULATE_READ };
            raw(sys::MADVISE, [start, bytes, advice, 0, 0, 0]);
        }
    }
    start as isize
}

#[cfg(preload)]
extern "C" fn gated_brk(to: usize) -> c_int {
    // SAFETY: the caller's contract with `brk`; the variable is a word that the C library itself
    // changes without a lock.
    unsafe {
        let known = (&raw const __curbrk).read_volatile();
        let before = if known == 0 { raw(sys::BRK, [0; 6]) as usize } else { known };
        let now = raw(sys::BRK, [to, 0, 0, 0, 0, 0]) as usize;
        (&raw mut __curbrk).write_volatile(now);
        if now < to {
            *__errno_location() = ENOMEM;
            return -1;
        }
        if now > before {
            made(pages(before), pages(now) - pages(before), true);
        }
    }
    0
}

#[cfg(preload)]
extern "C" fn gated_mremap(at: usize, len: usize, new_len: usize, flags: c_int, to: usize) -> isize {
    // SAFETY: the caller's contract with `mremap`.
    let got = unsafe { raw(sys::MREMAP, [at, len, new_len, flags as usize, to, 0]) };
    if !(-4095..0).contains(&got) {
        if new_len > len && len > 0 {
            opened(got as usize + pages(len), pages(new_len) - pages(len));
        }
        if got as usize != at {
            moved();
        }
    }
    result(got)
}

#[cfg(preload)]
extern "C" fn gated_mprotect(at: usize, len: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's contract with `mprotect`.
    let got = unsafe { raw(sys::MPROTECT, [at, len, protection as usize, 0, 0, 0]) };
    if got == 0 && protection & PROT_WRITE != 0 {
        opened(at, pages(len));
    }
    result(got) as c_int
}

/// Has the functions come here, those that can be.
#[cfg(preload)]
pub fn catch_all() {
    if PLACE.load(Ordering::Relaxed) == 0 || !is_alone() {
        return;
    }
    let functions: [(usize, usize, usize); 4] = [
        (mmap as *const () as usize, sys::MMAP, gated_mmap as *const () as usize),
        (brk as *const () as usize, sys::BRK, gated_brk as *const () as usize),
        (mremap as *const () as usize, sys::MREMAP, gated_mremap as *const () as usize),
        (mprotect as *const () as usize, sys::MPROTECT, gated_mprotect as *const () as usize),
    ];
    for (i, (function, number, by)) in functions.into_iter().enumerate() {
        if catch(function, number, by) {
            CAUGHT.fetch_or(1 << i, Ordering::Relaxed);
        }
    }
}

#[cfg(not(preload))]
pub fn catch_all() {}

/// Whether the process has one thread: two entries of its directory of threads are names of
/// directories.
#[cfg(preload)]
fn is_alone() -> bool {
    const TASKS: &[u8] = b"/proc/self/task\0";
    const LINKS_AT: usize = 2;
    let mut found = [0u64; 18];
    // SAFETY: the path ends in a zero byte; the structure of the call has 144 bytes.
    let done = unsafe { raw(sys::STAT, [TASKS.as_ptr() as usize, found.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    done == 0 && found[LINKS_AT] == 3
}

/// Puts a jump to `by` at the beginning of a function that makes the system call of that number
/// near its beginning. Whether it did.
#[cfg(preload)]
fn catch(function: usize, number: usize, by: usize) -> bool {
    const LOOK: usize = 64;
    const JUMP: u8 = 0xE9;
    const JUMP_BYTES: usize = 5;
    const LANDING: [u8; 4] = [0xF3, 0x0F, 0x1E, 0xFA];
    // SAFETY: code can be read. It may end before, but the mapping of a library's code does not end
    // with these functions.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, LOOK) };
    // mov eax, number; syscall
    let wanted = [0xB8, number as u8, 0, 0, 0, 0x0F, 0x05];
    if !code.windows(wanted.len()).any(|w| w == wanted) {
        return false;
    }
    let at = if code[..4] == LANDING { function + LANDING.len() } else { function };
    let distance = by.wrapping_sub(at + JUMP_BYTES) as isize;
    let Ok(distance) = i32::try_from(distance) else { return false };
    let first = at & !(PAGE - 1);
    let bytes = pages(at + JUMP_BYTES) - first;
    let mut jump = [JUMP; JUMP_BYTES];
    jump[1..].copy_from_slice(&distance.to_le_bytes());
    // SAFETY: the process has one thread, which is here; the function is whole before and after,
    // and does what it did; its code can be executed all the time.
    unsafe {
        if raw(sys::MPROTECT, [first, bytes, 7, 0, 0, 0]) != 0 {
            return false;
        }
        sys::refault_copy(at as *mut u8, jump.as_ptr(), JUMP_BYTES);
        raw(sys::MPROTECT, [first, bytes, 5, 0, 0, 0]);
    }
    true
}
