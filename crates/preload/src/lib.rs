//! Agent that `refault run` loads into a program: a thread that moves pages out of the program when
//! the manager (the process of `refault run`) orders it. Everything else is done by the manager,
//! from outside: `UFFDIO_MOVE` is the one operation that works on a process's own memory only.
//!
//! The agent lives by system calls alone: no memory of the program's heap, no thread-local memory,
//! no lock, so nothing that it needs can be out of memory. Its descriptors are in a table of its
//! own, so a program that closes all of its own leaves it alone. As long as it lives it holds the
//! userfaultfd, so pages that are out of memory never become zeros because the manager is gone:
//! then the agent ends the process.
#![no_std]
#![deny(missing_docs)]

pub mod abi;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod agent;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod link;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[cfg_attr(not(preload), allow(dead_code, reason = "what the functions of the shared object use"))]
mod new_memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod start;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[cfg_attr(not(preload), allow(dead_code, reason = "what the functions of the shared object use"))]
mod sys;

/// Only in the shared object; nothing here panics, but the language wants it.
#[cfg(preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
