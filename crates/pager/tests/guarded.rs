//! A program that guards memory (`MADV_GUARD_INSTALL`), which the kernel does not report: it finds
//! what it finds without a pager.
//!
//! This test starts itself as the program. Without userfaultfd it says that it skips.

use refault_pager::store::Codec;
use refault_pager::{PoolConfig, RegionConfig};
use refault_testing::{Need, Program, absent, role, test_name};

use crate::common::run_to_a_good_end;

const PAGE: usize = 4096;
/// Twice the memory that there is.
const PAGES: usize = 4096;

/// Memory that is filled, the first half of it guarded and free again: zeros.
fn guarded() {
    const GUARD_INSTALL: libc::c_int = 102;
    const GUARD_REMOVE: libc::c_int = 103;
    let (rw, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel chooses, of which this thread alone refers to words.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), PAGES * PAGE, rw, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let word = |page: usize| at.cast::<u64>().add(page * PAGE / 8);
        (0..PAGES).for_each(|p| word(p).write_volatile(p as u64 + 1));
        if libc::madvise(at, PAGES / 2 * PAGE, GUARD_INSTALL) != 0 {
            return absent(Need::Guards, std::io::Error::last_os_error());
        }
        assert_eq!(libc::madvise(at, PAGES / 2 * PAGE, GUARD_REMOVE), 0);
        let expected = |p: usize| if p < PAGES / 2 { 0 } else { p as u64 + 1 };
        let wrong = (0..PAGES).filter(|&p| word(p).read_volatile() != expected(p)).count();
        assert_eq!(wrong, 0, "pages with other bytes");
    }
}

/// Not a test of its own: the program.
#[test]
fn the_program() {
    if role().is_some() {
        guarded();
    }
}

#[test]
fn what_was_guarded_is_zeros() {
    let memory = RegionConfig {
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 }),
        swap_max: 64 << 20,
        ..RegionConfig::new(64 << 20, PAGES / 2 * PAGE)
    };
    run_to_a_good_end(Program::new(test_name!(the_program), "program"), memory);
}
