//! A whole program that is run: it writes and checks its memory, forks, moves and discards.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use refault_pager::calls::{Call, CallFault};
use refault_pager::tree::{TreeConfig, run as run_tree};
use refault_pager::{Error, RegionConfig};

use crate::region::PAGE;
use crate::runner::{ENDED, ERROR_VALUE, RIGHT, Report, WRONG};

/// Tells this executable that it is the program.
pub const ROLE: &str = "REFAULT_INJECT_PROGRAM";
const PAGES: usize = 4000;
/// Pages of a program of which each call of the pager can fail in each way: what little there is
/// for it then, it cannot do without the pager.
const SMALL_PAGES: usize = 400;
/// The forked child was ended by a signal.
const CHILD_ENDED: i32 = 7;

fn word(page: usize, version: u64, i: usize) -> u64 {
    if version == 0 {
        0
    } else {
        ((page as u64 + 1) << 32 | version).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64 / 16)
    }
}

struct Memory {
    at: usize,
    version: Vec<u64>,
}

impl Memory {
    fn write(&mut self, page: usize, version: u64) {
        self.version[page] = version;
        let at = (self.at + page * PAGE) as *mut u64;
        // SAFETY: a page of the mapping, which this thread alone uses.
        (0..PAGE / 8).for_each(|i| unsafe { at.add(i).write_volatile(word(page, version, i)) });
    }

    fn check(&self, page: usize) {
        let at = (self.at + page * PAGE) as *const u64;
        for i in 0..PAGE / 8 {
            // SAFETY: as above.
            let found = unsafe { at.add(i).read_volatile() };
            if found != word(page, self.version[page], i) {
                eprintln!("WRONG: page {page} word {i} is {found:#x} in version {}", self.version[page]);
                // SAFETY: ends the process.
                unsafe { libc::_exit(WRONG) };
            }
        }
    }
}

/// The program.
pub fn program(pages: usize) -> ! {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new mappings, where the kernel chooses; what is moved, discarded and read is of this
    // one, which this thread alone uses. The child reads and writes memory, and ends.
    unsafe {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), pages * PAGE, rw, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let mut m = Memory { at: at as usize, version: vec![0; pages] };
        (0..pages).for_each(|p| m.write(p, 1));
        // A program that is over in no time is not served before it ends.
        if pages == SMALL_PAGES {
            std::thread::sleep(Duration::from_millis(60));
        }
        (0..pages).for_each(|p| m.check(p));
        let pid = libc::fork();
        if pid == 0 {
            (0..pages).step_by(2).for_each(|p| m.check(p));
            (0..pages).step_by(7).for_each(|p| m.write(p, 2));
            (0..pages).for_each(|p| m.check(p));
            libc::_exit(0);
        }
        assert!(pid > 0);
        (0..pages).step_by(5).for_each(|p| m.write(p, 3));
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        if status != 0 {
            eprintln!("the child that was forked: status {status:#x}");
            libc::_exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { CHILD_ENDED });
        }
        libc::madvise((m.at + 100 * PAGE) as *mut _, 64 * PAGE, libc::MADV_DONTNEED);
        m.version[100..164].fill(0);
        let to = libc::mmap(std::ptr::null_mut(), pages * PAGE, libc::PROT_NONE, flags, -1, 0);
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        if libc::mremap(m.at as *mut _, pages * PAGE, pages * PAGE, fixed, to) != libc::MAP_FAILED {
            m.at = to as usize;
        }
        (0..pages).for_each(|i| m.check(i * 461 % pages));
        libc::_exit(0);
    }
}

fn run(report: &'static Report, pages: usize, memory_max: usize, base: fn(Call, u64) -> Option<CallFault>) {
    let _plan = crate::plan(report, base).enter();
    let memory = RegionConfig {
        pool: None,
        swap_directory: Some(env!("CARGO_TARGET_TMPDIR").into()),
        fault_threads: 2,
        stall_limit: Duration::from_secs(8),
        swap_max: 64 << 20,
        ..RegionConfig::new(64 << 20, memory_max)
    };
    let exe = std::env::current_exe().expect("it runs");
    let words: Vec<OsString> = ["env".into(), format!("{ROLE}={pages}").into(), exe.into()].into();
    match run_tree(TreeConfig { memory, record: None }, "/usr/bin/env".as_ref(), &words) {
        Ok(outcome) if outcome.status.success() => report.got(RIGHT),
        Ok(outcome) if outcome.status.code() == Some(WRONG) => report.exit(WRONG),
        Ok(outcome) if outcome.status.code() == Some(CHILD_ENDED) => {
            eprintln!("the forked child was ended");
            report.got(ENDED);
        }
        Ok(outcome) if outcome.status.signal().is_some() => {
            eprintln!("the program: {}", outcome.status);
            report.got(ENDED);
        }
        Ok(outcome) => report.broken(&format!("the program ended with {}", outcome.status)),
        Err(Error::Unsupported(why)) => report.unsupported(&why),
        Err(_) => report.got(ERROR_VALUE),
    }
}

pub fn plain(report: &'static Report) {
    run(report, PAGES, 12 << 20, |_, _| None);
}

/// Pages are lost: some reads fail twice.
pub fn lossy(report: &'static Report) {
    run(report, PAGES, 12 << 20, |call, n| {
        (call == Call::SwapRead && n % 400 >= 380).then_some(CallFault::Fails(libc::EIO))
    });
}

/// With few calls.
pub fn small(report: &'static Report) {
    run(report, SMALL_PAGES, RegionConfig::MIN_MEMORY, |_, _| None);
}

/// A third of all calls that put zeros in place fail, also those for memory that a thread has just
/// made and waits for.
pub fn refused_zeros(report: &'static Report) {
    run(report, SMALL_PAGES, RegionConfig::MIN_MEMORY, |call, n| {
        let errno = if n.is_multiple_of(2) { libc::ENOMEM } else { libc::EINVAL };
        (call == Call::Zero && n.is_multiple_of(3)).then_some(CallFault::Fails(errno))
    });
}

/// A third of all writes fail, also those of what a forked child is to have.
pub fn failing_writes(report: &'static Report) {
    run(report, SMALL_PAGES, RegionConfig::MIN_MEMORY, |call, n| {
        (call == Call::SwapWrite && n.is_multiple_of(3)).then_some(CallFault::Fails(libc::EIO))
    });
}
