//! Mapped files of which calls fail: every page is right or an error. Without userfaultfd the tests
//! say that they skip.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refault_pager::file::{FileIo, RealFile};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{MappedFile, MappedFileConfig, Policy};
use refault_testing::{only_long, step};

use crate::common::files::{MIB, PAGE, Pipe, Temp, bytes, bytes_mut, config, noise};
use crate::common::{made, serves_system_calls};

/// A file of 1,500 pages in memory for about 900.
const PAGES: usize = 1500;

struct Run {
    lost: usize,
    failed_flushes: usize,
}

/// Reads all pages, writes every second, flushes, reads, writes every third, flushes until that
/// goes well, and compares with what it should be. A page is right, or an error.
fn run(temp: &Temp, io: Box<dyn FileIo>, plan: Option<CallPlan>) -> Option<Run> {
    let mut expected = noise(PAGES * PAGE - 500, 7);
    File::options().write(true).open(&temp.0).unwrap().write_all_at(&expected, 0).unwrap();
    let config = MappedFileConfig {
        policy: Policy::Lru,
        fault_threads: 1,
        stall_limit: Duration::from_secs(5),
        ..MappedFileConfig::new(4 * MIB)
    };
    let file = made(MappedFile::with_io(io, &config, plan))?;
    if !serves_system_calls(file.scope()) {
        return None;
    }
    let mut pipe = Pipe::new();
    let mut lost = vec![false; PAGES];
    let mut failed_flushes = 0;
    for round in 1..=3 {
        for (page, lost) in lost.iter_mut().enumerate() {
            let (from, to) = (page * PAGE, expected.len().min((page + 1) * PAGE));
            let at = file.as_ptr().wrapping_add(from);
            match pipe.get(at, to - from) {
                Some(found) => {
                    assert!(!*lost, "page {page} was lost and is back");
                    assert!(found == expected[from..to], "page {page} in round {round}");
                }
                None => *lost = true,
            }
            if round < 3 && page % (round + 1) == 0 {
                let new = noise(to - from, (page * 10 + round) as u64);
                if pipe.put(at, &new) {
                    assert!(!*lost, "page {page} was lost and is back");
                    expected[from..to].copy_from_slice(&new);
                } else {
                    *lost = true;
                }
            }
        }
        file.validate().unwrap();
        while let Err(e) = file.flush() {
            failed_flushes += 1;
            assert!(failed_flushes < 50, "{e}");
        }
        // After a flush that went well, the file has all of it.
        temp.check(&expected);
    }
    let s = file.stats();
    assert!(s.peak_pages <= s.max_pages && s.counts.writes > 1000, "{s:?}");
    let lost = lost.iter().filter(|&&l| l).count();
    assert_eq!(s.counts.lost, lost as u64, "{s:?}");
    file.close().unwrap();
    temp.check(&expected);
    Some(Run { lost, failed_flushes })
}

/// With calls of this thread that fail, too: those of flushes.
fn run_faulty(temp: &Temp, plan: impl Fn(Call, u64) -> Option<CallFault> + Send + Sync + 'static) -> Option<Run> {
    let _plan = CallPlan::new(plan).enter();
    run(temp, Box::new(RealFile::open(&temp.0, true).unwrap()), None)
}

/// Every kind of call fails once, each in turn, in every way. The first call of all is the one that
/// asks for the length.
#[test]
fn one_fault_at_a_time() {
    if !only_long("one_fault_at_a_time") {
        return;
    }
    use CallFault::*;
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    for (call, fault) in [
        (Call::FileRead, Fails(libc::EIO)),
        (Call::FileRead, Fails(libc::EINTR)),
        (Call::FileRead, Short(0)),
        (Call::FileRead, Short(512)),
        (Call::FileRead, Stalls(50)),
        (Call::FileWrite, Fails(libc::EIO)),
        (Call::FileWrite, Fails(libc::ENOSPC)),
        (Call::FileWrite, Fails(libc::EINTR)),
        (Call::FileWrite, Short(0)),
        (Call::FileWrite, Short(512)),
        (Call::FileWrite, Stalls(50)),
        (Call::FileLength, Fails(libc::EIO)),
        (Call::FileLength, Short(0)),
    ] {
        let places: &[u64] = match call {
            Call::FileRead => &[0, 1, 2, 20, 100],
            _ => &[1, 2, 5, 20],
        };
        let places: Vec<u64> = places.iter().copied().step_by(step(2, 2)).collect();
        let met = Arc::new(AtomicU64::new(0));
        let (mut failed, mut lost) = (0, 0);
        for &n in &places {
            let met = met.clone();
            let plan =
                move |c, m| (c == call && m == n).then(|| _ = met.fetch_add(1, Ordering::Relaxed)).map(|()| fault);
            let Some(r) = run_faulty(&temp, plan) else { return };
            (failed, lost) = (failed + r.failed_flushes, lost + r.lost);
        }
        eprintln!(
            "{call:?} {fault:?}: {} faults, {lost} pages lost, {failed} flushes failed",
            met.load(Ordering::Relaxed)
        );
        assert_eq!(met.load(Ordering::Relaxed), places.len() as u64, "{call:?} {fault:?}: all were met");
        assert_eq!(lost, 0, "{call:?} {fault:?}: a read is tried again, a page that was not written stays");
        let harmless = matches!(fault, Stalls(_) | Fails(libc::EINTR) | Short(512)) || call == Call::FileRead;
        assert_eq!(failed, if harmless { 0 } else { places.len() }, "{call:?} {fault:?}: told once each");
    }
}

#[test]
fn reads_that_fail_again_and_again_are_errors_and_no_zeros() {
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    let plan = |call, n: u64| (call == Call::FileRead && n % 30 < 3).then_some(CallFault::Fails(libc::EIO));
    let Some(r) = run_faulty(&temp, plan) else { return };
    assert!(r.lost > 5 && r.failed_flushes == 0, "{} lost", r.lost);
}

/// No room on the medium for a long time: nothing is lost, each flush says so, and when there is
/// room all is written.
#[test]
fn writes_that_fail_for_a_while_lose_nothing() {
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    let plan = |call, n: u64| (call == Call::FileWrite && n < 40).then_some(CallFault::Fails(libc::ENOSPC));
    let Some(r) = run_faulty(&temp, plan) else { return };
    assert!(r.failed_flushes > 0 && r.lost == 0, "{} flushes failed, {} lost", r.failed_flushes, r.lost);
}

#[test]
fn an_error_of_writing_in_the_background_is_told_once() {
    if !only_long("an_error_of_writing_in_the_background_is_told_once") {
        return;
    }
    let temp = Temp::new(&noise(16 * MIB, 8));
    let failing = Arc::new(AtomicBool::new(true));
    let plan = {
        let failing = failing.clone();
        move |call, _| {
            (call == Call::FileWrite && failing.load(Ordering::Relaxed)).then_some(CallFault::Fails(libc::ENOSPC))
        }
    };
    // Flushes are calls of this thread.
    let _plan = CallPlan::new(plan).enter();
    let io = RealFile::open(&temp.0, true).unwrap();
    let Some(mut file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Lru), None)) else { return };
    // So much that the flusher begins.
    for page in 0..400 {
        bytes_mut(&mut file)[page * PAGE] = 1;
    }
    let begin = Instant::now();
    while file.stats().counts.write_errors == 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", file.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    failing.store(false, Ordering::Relaxed);
    let error = file.flush().unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    file.flush().unwrap();
    assert!((0..400).all(|page| temp.content()[page * PAGE] == 1));
}

/// Calls of the kernel that fail for the moment, and a protection that cannot be had: nothing is
/// lost.
#[test]
fn calls_of_the_kernel_that_fail() {
    if !only_long("calls_of_the_kernel_that_fail") {
        return;
    }
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    for (call, errno, every) in [
        (Call::Copy, libc::EAGAIN, 3),
        (Call::Copy, libc::ENOMEM, 50),
        (Call::Protect, libc::EAGAIN, 3),
        (Call::Protect, libc::ENOMEM, 50),
    ] {
        let plan = CallPlan::new(move |c, n| (c == call && n % every == 1).then_some(CallFault::Fails(errno)));
        let io = RealFile::open(&temp.0, true).unwrap();
        let Some(r) = run(&temp, Box::new(io), Some(plan)) else { return };
        assert_eq!((r.lost, r.failed_flushes), (0, 0), "{call:?} {errno}");
    }
    for n in [0, 1, 10, 100, 1000] {
        let plan = CallPlan::new(move |c, m| {
            (c == Call::Copy && (n..n + 8).contains(&m)).then_some(CallFault::Fails(libc::ENOMEM))
        });
        let Some(r) = run(&temp, Box::new(RealFile::open(&temp.0, true).unwrap()), Some(plan)) else { return };
        assert_eq!(r.lost, 1, "a page that the kernel cannot put in its place is an error");
    }
}

#[test]
fn a_page_that_was_lost_can_be_read_again() {
    let content = noise(2 * MIB, 10);
    let temp = Temp::new(&content);
    let plan = |call, n: u64| (call == Call::FileRead && n < 3).then_some(CallFault::Fails(libc::EIO));
    // Flushes are calls of this thread.
    let _plan = CallPlan::new(plan).enter();
    let io = RealFile::open(&temp.0, true).unwrap();
    let Some(file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Lru), None)) else { return };
    if !serves_system_calls(file.scope()) {
        return;
    }
    let mut pipe = Pipe::new();
    for _ in 0..2 {
        assert!(pipe.get(file.as_ptr(), PAGE).is_none());
    }
    assert_eq!((file.read_again(0..2 * MIB).unwrap(), file.read_again(0..2 * MIB).unwrap()), (1, 0));
    assert!(pipe.get(file.as_ptr(), PAGE).unwrap() == content[..PAGE]);
    assert!(bytes(&file) == content);
    file.validate().unwrap();
}

/// For the engine such a page is in memory, read and mapped; touched again it was lost again, and
/// an order came for a page that was nowhere.
#[test]
fn a_page_that_was_not_put_in_its_place_can_be_read_again() {
    let content = noise(2 * MIB, 11);
    let temp = Temp::new(&content);
    for write in [false, true] {
        let plan = CallPlan::new(|call, n| (call == Call::Copy && n < 1).then_some(CallFault::Fails(libc::EFAULT)));
        let io = RealFile::open(&temp.0, true).unwrap();
        let Some(file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Mglru), Some(plan))) else { return };
        if !serves_system_calls(file.scope()) {
            return;
        }
        let mut pipe = Pipe::new();
        match write {
            true => assert!(!pipe.put(file.as_ptr(), &content[..PAGE])),
            false => assert!(pipe.get(file.as_ptr(), PAGE).is_none()),
        }
        assert_eq!(file.read_again(0..2 * MIB).unwrap(), 1);
        assert!(pipe.get(file.as_ptr(), PAGE).unwrap() == content[..PAGE]);
        assert!(bytes(&file) == content);
        file.validate().unwrap();
        file.flush().unwrap();
    }
    temp.check(&content);
}
