//! A child of `fork` has neither the memory of its parent's regions and mapped files nor the
//! threads that serve it. If it drops one, nothing happens: not to what it has at that address
//! itself, and not to the file.
//!
//! Without userfaultfd the tests say that they skip.

use std::time::{Duration, Instant};

use refault_pager::{FaultMode, MappedFile, Policy, Region, RegionConfig};
use refault_testing::{is_alone, test_name};

use crate::common::files::{MIB, PAGE, Temp, bytes, bytes_mut, config};
use crate::common::made;

const BYTES: usize = 4 << 20;

/// Forks. The child puts memory of its own where that of `held` was, drops `held`, and ends well if
/// its own memory is what it was; the parent goes on with `held`.
fn drop_in_a_child<T>(held: T, at: usize) -> T {
    // SAFETY: the child calls nothing but what is below: system calls, and what the drop calls.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: nothing is there, or the call fails; it is the child's own, and as long.
        unsafe {
            let own = libc::mmap(at as *mut _, BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if own as usize != at {
                libc::_exit(1);
            }
            std::ptr::write_bytes(own.cast::<u8>(), b'C', BYTES);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(held))).is_err() {
                libc::_exit(4);
            }
            let mut resident = vec![0u8; BYTES / PAGE];
            if libc::mincore(own, BYTES, resident.as_mut_ptr()) != 0 {
                libc::_exit(2);
            }
            let changed = std::slice::from_raw_parts(own.cast::<u8>(), BYTES).iter().any(|&b| b != b'C');
            libc::_exit(if changed { 3 } else { 0 });
        }
    }
    let (begun, mut status) = (Instant::now(), 0);
    // SAFETY: the child is ours; the status is a number of this frame.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            // SAFETY: the child is ours and was not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0, "status of the child");
    held
}

#[test]
fn a_mapped_file_dropped_in_a_child_leaves_the_file_alone() {
    if !is_alone(test_name!(a_mapped_file_dropped_in_a_child_leaves_the_file_alone)) {
        return;
    }
    let temp = Temp::new(&vec![b'a'; BYTES]);
    let Some(mut file) = made(MappedFile::open(&temp.0, &config(Policy::Mglru))) else { return };
    // Dirty, so that a drop has something to write.
    bytes_mut(&mut file).fill(b'P');
    let at = file.as_ptr().addr();
    let file = drop_in_a_child(file, at);
    file.flush().unwrap();
    assert!(bytes(&file).iter().all(|&b| b == b'P'), "the parent finds other bytes");
    file.close().unwrap();
    temp.check(&vec![b'P'; BYTES]);
}

#[test]
fn a_region_dropped_in_a_child_leaves_what_is_there_alone() {
    if !is_alone(test_name!(a_region_dropped_in_a_child_leaves_what_is_there_alone)) {
        return;
    }
    for fault_mode in [FaultMode::Threads, FaultMode::Signal] {
        let config = RegionConfig { fault_mode, ..RegionConfig::new(BYTES, MIB * 4) };
        let Some(mut region) = made(Region::new(&config)) else { return };
        region.as_mut_slice().fill(b'P');
        let at = region.as_ptr().addr();
        let region = drop_in_a_child(region, at);
        assert!(region.as_slice().iter().all(|&b| b == b'P'), "{fault_mode:?}: the parent finds other bytes");
        region.validate().unwrap();
    }
}
