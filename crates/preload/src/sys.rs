//! System calls, without the C library: its wrappers write `errno`, which belongs to the thread
//! that the agent shares its thread-local memory with.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const STAT: usize = 4;
pub const MMAP: usize = 9;
pub const MPROTECT: usize = 10;
pub const MUNMAP: usize = 11;
pub const BRK: usize = 12;
pub const SIGPROCMASK: usize = 14;
pub const IOCTL: usize = 16;
pub const SCHED_YIELD: usize = 24;
pub const MREMAP: usize = 25;
pub const MINCORE: usize = 27;
pub const MADVISE: usize = 28;
pub const DUP2: usize = 33;
pub const GETPID: usize = 39;
pub const SOCKET: usize = 41;
pub const CONNECT: usize = 42;
pub const SENDMSG: usize = 46;
pub const RECVMSG: usize = 47;
pub const CLONE: usize = 56;
pub const EXIT: usize = 60;
pub const KILL: usize = 62;
pub const FCNTL: usize = 72;
pub const MLOCK: usize = 149;
pub const FUTEX: usize = 202;
pub const OPENAT: usize = 257;
pub const UNSHARE: usize = 272;
pub const USERFAULTFD: usize = 323;
pub const CLOSE_RANGE: usize = 436;

pub const EINTR: isize = -4;

/// A call of the agent that is to fail, for tests: its number and request, which one, and the
/// error. 0: none.
static FAULT: AtomicU64 = AtomicU64::new(0);
static MADE: AtomicU32 = AtomicU32::new(0);

/// Takes the fault from the name of the manager's socket, which ends in `!` and fourteen
/// hexadecimal digits if a test wants one.
pub fn plan(name: &[u8]) {
    let Some(at) = name.iter().position(|&b| b == b'!') else { return };
    let mut fault = 0;
    for &digit in name[at + 1..].iter().take(14) {
        let value = if digit <= b'9' { digit.wrapping_sub(b'0') } else { digit.wrapping_sub(b'a' - 10) };
        fault = fault << 4 | u64::from(value & 15);
    }
    FAULT.store(fault, Ordering::Relaxed);
}

/// The error that a call is to have, negated.
#[cold]
fn planned(fault: u64, number: usize, args: &[usize; 6]) -> Option<isize> {
    const IOCTL_REQUEST: usize = 0xFF;
    const SAID: &[u8] = b"refault: a test has a call of the agent fail\n";
    let request = if number == IOCTL { args[1] & IOCTL_REQUEST } else { 0 };
    if fault >> 40 != number as u64 || fault >> 32 & 0xFF != request as u64 {
        return None;
    }
    if u64::from(MADE.fetch_add(1, Ordering::Relaxed)) != fault >> 8 & 0xFF_FFFF {
        return None;
    }
    // SAFETY: a message on standard error.
    unsafe { raw(WRITE, [2, SAID.as_ptr() as usize, SAID.len(), 0, 0, 0]) };
    Some(-((fault & 0xFF) as isize))
}

/// A system call of the agent; a negative result is an errno, negated.
///
/// # Safety
/// As the system call says.
pub unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let fault = FAULT.load(Ordering::Relaxed);
    if fault != 0
        && let Some(error) = planned(fault, number, &args)
    {
        return error;
    }
    // SAFETY: the caller's contract.
    unsafe { raw(number, args) }
}

/// A system call, of the agent or of the program.
///
/// # Safety
/// As the system call says.
pub unsafe fn raw(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes rcx, r11, rax, and memory as the call says, which is the caller's
    // contract.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As [`call`], with up to three arguments.
///
/// # Safety
/// As the system call says.
pub unsafe fn call3(number: usize, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller's contract.
    unsafe { call(number, [a, b, c, 0, 0, 0]) }
}

/// Starts a thread of this process on a stack of its own. It shares the thread-local memory of the
/// caller, so it must not use any.
///
/// # Safety
/// `stack_end` must be the end of unused memory, aligned to 16 bytes; `entry` must live by system
/// calls alone.
pub unsafe fn thread(stack_end: usize, entry: extern "C" fn(usize) -> !, arg: usize) -> isize {
    // VM, FS, FILES, SIGHAND, THREAD, SYSVSEM.
    const FLAGS: usize = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;
    let result: isize;
    // SAFETY: the new thread begins behind `syscall` with the same registers but for the stack and
    // rax, and never comes back.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") CLONE => result,
            in("rdi") FLAGS, in("rsi") stack_end, in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") arg, in("r13") entry,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Copies memory. The C library's `memcpy` reads variables of that library, which may be out of
/// memory: the agent would wait for itself. Copies that the compiler makes are linked to this one
/// (the build script of refault-pager says so).
///
/// # Safety
/// As `memcpy`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn refault_copy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's contract; the direction flag is clear, as the calling convention has it.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") len => _,
            options(nostack, preserves_flags));
    }
    to
}

/// Fills memory, likewise.
///
/// # Safety
/// As `memset`.
#[cfg_attr(preload, unsafe(no_mangle))]
#[cfg_attr(not(preload), expect(dead_code, reason = "only what the compiler makes of code refers to it"))]
pub unsafe extern "C" fn refault_fill(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe {
        asm!("rep stosb", inout("rdi") to => _, in("al") byte as u8, inout("rcx") len => _,
            options(nostack, preserves_flags));
    }
    to
}
