//! A store that fails: what a region gives back is right, or an explicit error. Without userfaultfd
//! the tests say that they skip.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::time::Duration;

use refault_pager::store::{Fault, Faulty};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{Policy, Region, RegionConfig};
use refault_testing::{only_long, step};

use crate::common::made_for_system_calls;

const PAGE: usize = 4096;
const PAGES: usize = 1500;

fn config() -> RegionConfig {
    RegionConfig {
        policy: Policy::Lru,
        fault_threads: 1,
        stall_limit: Duration::from_secs(5),
        ..RegionConfig::new(PAGES * PAGE, 4 << 20)
    }
}

fn region(store: Faulty) -> Option<Region> {
    region_with(store, None)
}

fn region_with(store: Faulty, plan: Option<CallPlan>) -> Option<Region> {
    made_for_system_calls(Region::with_faults(&config(), Box::new(store), plan))
}

fn word(page: usize, version: u64) -> u64 {
    (page as u64 + 1) << 32 | version
}

/// Reads and writes pages by system calls, which report a lost page as an error where a load would
/// raise a signal.
struct Pipe(std::io::PipeReader, std::io::PipeWriter);

impl Pipe {
    /// The page, or nothing if it is lost.
    fn get(&mut self, at: *const u8) -> Option<[u8; PAGE]> {
        // SAFETY: the kernel reads a page of the region, and says so if it cannot.
        let n = unsafe { libc::write(self.1.as_raw_fd(), at.cast(), PAGE) };
        if n < 0 {
            return None;
        }
        assert_eq!(n, PAGE as isize, "a pipe takes a page at once");
        let mut page = [0; PAGE];
        self.0.read_exact(&mut page).unwrap();
        Some(page)
    }

    /// Writes the page; false if it is lost.
    fn put(&mut self, at: *mut u8, page: &[u8; PAGE]) -> bool {
        std::io::Write::write_all(&mut self.1, page).unwrap();
        // SAFETY: the kernel writes a page of the region, and says so if it cannot.
        let n = unsafe { libc::read(self.0.as_raw_fd(), at.cast(), PAGE) };
        if n < 0 {
            let mut rest = [0; PAGE];
            self.0.read_exact(&mut rest).unwrap();
        }
        n == PAGE as isize
    }
}

fn content(page: usize, version: u64) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    let words = bytes.as_chunks_mut::<8>().0;
    words.iter_mut().enumerate().for_each(|(i, w)| *w = (word(page, version) ^ (i as u64) << 20).to_ne_bytes());
    bytes
}

/// Writes all pages, reads them back, writes every third again, reads again. Returns the pages that
/// were lost.
fn run(region: &Region) -> usize {
    let (r, w) = std::io::pipe().unwrap();
    let mut pipe = Pipe(r, w);
    let mut lost = vec![false; PAGES];
    let mut version = vec![0; PAGES];
    let at = |page: usize| region.as_ptr().wrapping_add(page * PAGE);
    for round in 1..=2 {
        for page in (0..PAGES).filter(|p| round == 1 || p % 3 == 0) {
            if pipe.put(at(page), &content(page, round)) {
                assert!(!lost[page], "page {page} was lost and is back");
                version[page] = round;
            } else {
                lost[page] = true;
            }
        }
        for page in 0..PAGES {
            match pipe.get(at(page)) {
                Some(found) => {
                    assert!(!lost[page], "page {page} was lost and is back");
                    assert!(found == content(page, version[page]), "page {page} in round {round}");
                }
                None => lost[page] = true,
            }
        }
    }
    let lost = lost.iter().filter(|&&l| l).count();
    let s = region.stats();
    // A page may be lost after it was looked at for the last time.
    assert!(s.counts.poisoned >= lost as u64, "{s:?}");
    region.validate().unwrap();
    lost
}

#[test]
fn without_a_fault_nothing_is_lost() {
    let Some(region) = region(Faulty::new(|_, _| None)) else { return };
    assert_eq!(run(&region), 0);
    assert!(region.stats().counts.swapped_out > PAGES as u64);
}

/// One operation fails, each in turn and in each way: at most the page that it was about is lost,
/// and only if its content is nowhere any more. A read that fails is tried again.
#[test]
fn one_fault_at_a_time() {
    if !only_long("one_fault_at_a_time") {
        return;
    }
    use Fault::*;
    for (fault, most) in [
        (ReadFails, 0),
        (ReadFlipsABit, 0),
        (ReadIsStale, 0),
        (WriteFails, 0),
        (WriteIsFull, 0),
        (WriteIsTorn, 1),
        (WriteIsLost, 1),
        (Stalls(20), 0),
    ] {
        let mut seen = 0;
        let places = [0u64, 1, 2, 31, 32, 63, 64, 500, 900, 1400, 1700, 2100, 2600, 3000];
        for &at in places.iter().step_by(step(3, 3)) {
            let Some(region) = region(Faulty::new(move |n, _| (n == at).then_some(fault))) else { return };
            let lost = run(&region);
            assert!(lost <= most, "{fault:?} at operation {at}: {lost} pages lost");
            seen += lost;
        }
        eprintln!("{fault:?}: {seen} faults lost a page");
        assert!(most == 0 || seen > 0, "{fault:?}: no fault was met");
    }
}

#[test]
fn reads_that_fail_for_a_while() {
    let Some(region) = region(Faulty::new(|n, _| (n % 64 < 8).then_some(Fault::ReadFails))) else { return };
    let lost = run(&region);
    // A page that was only read ahead is read once more when it is asked for.
    assert!(lost > 10, "{lost} lost");
}

#[test]
fn writes_that_fail_now_and_then_lose_nothing() {
    let Some(region) = region(Faulty::new(|n, _| n.is_multiple_of(3).then_some(Fault::WriteFails))) else { return };
    assert_eq!(run(&region), 0);
    assert!(region.stats().counts.write_errors > 100);
}

/// A store that takes nothing from some moment on: what is in memory and in the store stays; what
/// has no room is an error, soon.
#[test]
fn a_store_that_takes_nothing_more() {
    let full = Faulty::new(|n, write| (n > 300 && write).then_some(Fault::WriteIsFull));
    let Some(region) = region(full) else { return };
    let begin = std::time::Instant::now();
    let lost = run(&region);
    assert!(lost > 100, "{lost} lost");
    assert!(region.stats().counts.oom > 0, "there was no room");
    assert!(begin.elapsed() < Duration::from_secs(120), "it took {:?}", begin.elapsed());
}

fn region_of_calls(plan: impl Fn(Call, u64) -> Option<CallFault> + Send + Sync + 'static) -> Option<Region> {
    region_with(Faulty::new(|_, _| None), Some(CallPlan::new(plan)))
}

/// Calls that the kernel asks to repeat, or refuses because someone holds the page, cost nothing
/// but time.
#[test]
fn calls_that_fail_for_the_moment() {
    let plan = |call, n: u64| match call {
        Call::Copy => (n % 5 < 3).then_some(CallFault::Fails(libc::EAGAIN)),
        Call::Zero => (n % 4 < 2).then_some(CallFault::Fails(libc::ENOMEM)),
        Call::Move if n % 7 == 1 => Some(CallFault::Fails(libc::EBUSY)),
        Call::Move => (n % 7 > 3).then_some(CallFault::Fails(libc::EAGAIN)),
        _ => None,
    };
    let Some(region) = region_of_calls(plan) else { return };
    assert_eq!(run(&region), 0);
    assert!(region.stats().counts.busy > 0 && region.stats().counts.poisoned == 0);
}

/// A move whose report is wrong, either way: what is where decides.
#[test]
fn moves_whose_report_is_not_true() {
    let plan = |call, n: u64| match (call, n % 5) {
        (Call::Move, 1) => Some(CallFault::Fails(libc::EEXIST)),
        (Call::Move, 3) => Some(CallFault::DoneButFails([libc::EEXIST, libc::ENOENT, libc::EIO][n as usize / 5 % 3])),
        _ => None,
    };
    let Some(region) = region_of_calls(plan) else { return };
    assert_eq!(run(&region), 0);
    let counts = region.stats().counts;
    assert!(counts.misreported_moves > 10 && counts.busy > 10, "{counts:?}");
}

/// Pages that vanish in a move are errors and not zeros.
#[test]
fn moves_that_lose_pages() {
    let plan = |call, n| (call == Call::Move && n % 16 == 7).then_some(CallFault::Loses(libc::EIO));
    let Some(region) = region_of_calls(plan) else { return };
    assert!(run(&region) > 0);
}

/// A page that the kernel cannot put in place is an error, and all others are as they were.
#[test]
fn memory_that_the_kernel_has_not() {
    let plan = |call, n: u64| (call == Call::Copy && (400..420).contains(&n)).then_some(CallFault::Fails(libc::ENOMEM));
    let Some(region) = region_of_calls(plan) else { return };
    let lost = run(&region);
    assert!((1..=3).contains(&lost), "{lost} lost");
}

/// Found by injection: a read that failed made the count of pages that came in smaller than it was
/// before, and the thread that asked panicked.
#[test]
fn pages_that_are_needed_soon_and_cannot_be_read() {
    let failing = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let fails = failing.clone();
    let store = Faulty::new(move |_, write| {
        (!write && fails.load(std::sync::atomic::Ordering::Relaxed)).then_some(Fault::ReadFails)
    });
    let Some(region) = region(store) else { return };
    let (r, w) = std::io::pipe().unwrap();
    let mut pipe = Pipe(r, w);
    let at = |page: usize| region.as_ptr().wrapping_add(page * PAGE);
    (0..PAGES).for_each(|p| assert!(pipe.put(at(p), &content(p, 1))));
    // In order, so that reading ahead begins.
    (0..PAGES).for_each(|p| assert!(pipe.get(at(p)).is_some()));
    failing.store(true, std::sync::atomic::Ordering::Relaxed);
    _ = region.will_need(0..PAGES * PAGE).unwrap();
    region.validate().unwrap();
}

/// Found by injection: a mark that could not be set, or a thread that could not be woken, left
/// the thread that touched the page waiting for ever. Refused for the moment, it is tried again.
#[test]
fn marks_that_are_refused_for_the_moment() {
    let plan = CallPlan::new(|call, n: u64| match call {
        Call::Poison => (n % 4 < 3).then_some(CallFault::Fails(libc::EAGAIN)),
        _ => None,
    });
    let store = Faulty::new(|n, write| (!write && n % 64 < 8).then_some(Fault::ReadFails));
    let Some(region) = region_with(store, Some(plan)) else { return };
    assert!(run(&region) > 10);
}

/// Found by injection: a page that could not be put back from a staging place was lost, but still
/// counted as staged, so the evictor went round for ever, with the lock.
#[test]
fn pages_that_are_lost_in_a_staging_place_are_staged_no_more() {
    let plan =
        CallPlan::new(|call, n: u64| (call == Call::Copy && n % 50 == 7).then_some(CallFault::Fails(libc::EINVAL)));
    let config = RegionConfig { standby_percent: 20, ..config() };
    let store = Box::new(Faulty::new(|_, _| None));
    let Some(region) = made_for_system_calls(Region::with_faults(&config, store, Some(plan))) else { return };
    assert!(run(&region) > 0 && region.stats().counts.rescued > 0);
    region.validate().unwrap();
}
