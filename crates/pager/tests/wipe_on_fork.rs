//! Memory that a fork wipes (`MADV_WIPEONFORK`) reads as zeros in the child of a program, also what
//! was out of memory; all else is what it was.
//!
//! This test starts itself as the program. Without userfaultfd it says that it skips.

use refault_pager::store::Codec;
use refault_pager::{PoolConfig, RegionConfig};
use refault_testing::{Program, role, test_name};

use crate::common::run_to_a_good_end;

const PAGE: usize = 4096;
/// Twice the memory that there is; the first half is wiped.
const PAGES: usize = 4096;

/// Not a test of its own: the program.
#[test]
fn the_program() {
    if role().is_none() {
        return;
    }
    let (rw, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel chooses, of which this thread alone and its child
    // refer to words; the child only reads and ends.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), PAGES * PAGE, rw, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let word = |page: usize| at.cast::<u64>().add(page * PAGE / 8);
        (0..PAGES).for_each(|p| word(p).write_volatile(p as u64 + 1));
        assert_eq!(libc::madvise(at, PAGES / 2 * PAGE, libc::MADV_WIPEONFORK), 0);
        let mut out = vec![0u8; PAGES];
        assert_eq!(libc::mincore(at, PAGES * PAGE, out.as_mut_ptr()), 0);
        let away = out[..PAGES / 2].iter().filter(|&&there| there & 1 == 0).count();
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            let expected = |p: usize| if p < PAGES / 2 { 0 } else { p as u64 + 1 };
            let wrong = (0..PAGES).filter(|&p| word(p).read_volatile() != expected(p)).count();
            libc::_exit(if wrong == 0 { 0 } else { 9 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        assert!(away > PAGES / 8, "{away} pages of what is wiped are out of memory");
        assert_eq!(status, 0, "the child found other bytes");
        let wrong = (0..PAGES).filter(|&p| word(p).read_volatile() != p as u64 + 1).count();
        assert_eq!(wrong, 0, "the parent found other bytes");
    }
}

#[test]
fn what_a_fork_wipes_is_zeros_in_the_child() {
    let memory = RegionConfig {
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 }),
        swap_max: 64 << 20,
        ..RegionConfig::new(64 << 20, PAGES / 2 * PAGE)
    };
    run_to_a_good_end(Program::new(test_name!(the_program), "program"), memory);
}
