//! Faults that are served in a handler of `SIGBUS`: what a program has to know of it, and its own
//! handlers. Without userfaultfd the tests say that they skip.

mod common;

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use refault_pager::mem::AnonymousMapping;
use refault_pager::store::{Codec, Fault, Faulty};
use refault_pager::uffd::{Call, CallFault, CallPlan, FaultScope};
use refault_pager::{FaultMode, Policy, PoolConfig, Region, RegionConfig};
use refault_testing::{Need, Program, absent, only_long, role, short_or_long, test_name};

use self::common::made;

const PAGE: usize = 4096;
const PAGES: usize = 1500;

fn config() -> RegionConfig {
    RegionConfig {
        policy: Policy::Lru,
        fault_mode: FaultMode::Signal,
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: 3 << 20 }),
        overhead_beside: true,
        ..RegionConfig::new(PAGES * PAGE, 4 << 20)
    }
}

/// The program's own handler puts a page of this where it was called for.
const MARK: u64 = 0xEEEE_EEEE_EEEE_EEEE;
static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn own_handler(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's; the page is that of the fault, and the code that expects it knows of
    // this handler.
    unsafe {
        let at = (*info).si_addr() as usize & !(PAGE - 1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let new = libc::mmap(at as *mut _, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if new == libc::MAP_FAILED {
            libc::abort();
        }
        (0..PAGE / 8).for_each(|i| (at as *mut u64).add(i).write_volatile(MARK));
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// The program had a handler before there was any region: every test says so first, since they
/// share a process.
fn install_own() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: plain data, and a handler of the signature that the flag asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = own_handler as extern "C" fn(_, _, _) as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
        }
    });
}

fn word(page: usize, version: u64) -> u64 {
    (page as u64 + 1) << 32 | version
}

/// Word of a page.
fn pattern(page: usize, version: u64, i: usize) -> u64 {
    word(page, version) ^ (i as u64 / 8)
}

fn read(region: &Region, page: usize, word: usize) -> u64 {
    // SAFETY: inside the region.
    unsafe { region.as_ptr().cast::<u64>().add(page * PAGE / 8 + word).read_volatile() }
}

fn write(region: &Region, page: usize, version: u64) {
    // SAFETY: inside the region, which only this thread knows.
    (0..PAGE / 8).for_each(|i| unsafe {
        region.as_ptr().cast::<u64>().add(page * PAGE / 8 + i).write_volatile(pattern(page, version, i));
    });
}

/// Whether the page is lost; else it has to be right.
fn is_lost(region: &Region, page: usize, version: u64) -> bool {
    if read(region, page, 0) == MARK {
        return true;
    }
    (0..PAGE / 8).for_each(|i| assert_eq!(read(region, page, i), pattern(page, version, i), "page {page}"));
    false
}

/// Writes all pages, and reads them twice; how many were lost.
fn lost_of(region: &Region) -> usize {
    (0..PAGES).for_each(|page| write(region, page, 1));
    let lost: Vec<bool> = (0..PAGES).map(|page| is_lost(region, page, 1)).collect();
    (0..PAGES).filter(|&page| is_lost(region, page, 1) || lost[page]).count()
}

#[test]
fn a_page_that_is_lost_is_the_programs_signal_and_all_others_are_right() {
    install_own();
    for (fault, most) in
        [(Fault::ReadFails, 0), (Fault::WriteFails, 0), (Fault::WriteIsLost, 1), (Fault::WriteIsTorn, 1)]
    {
        let mut seen = 0;
        for at in [0, 1, 63, 64, 500, 1700, 2600] {
            let store = Faulty::new(move |n, _| (n == at).then_some(fault));
            let Some(region) = made(Region::with_store(&config(), Box::new(store))) else { return };
            let lost = lost_of(&region);
            assert!(lost <= most, "{fault:?} at operation {at}: {lost} pages lost");
            region.validate().unwrap();
            seen += lost;
        }
        assert!(most == 0 || seen > 0, "{fault:?}: no fault was met");
    }
}

#[test]
fn what_is_no_regions_goes_to_the_handler_that_was_there_before() {
    install_own();
    let Some(region) = made(Region::new(&config())) else { return };
    write(&region, 3, 1);
    // A file that ends before its mapping does.
    let path = std::env::temp_dir().join(format!("refault-signal-{}", std::process::id()));
    let file = std::fs::File::create_new(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) as usize
    };
    assert_ne!(at as *mut libc::c_void, libc::MAP_FAILED);
    let before = CALLS.load(Ordering::Relaxed);
    // SAFETY: the handler puts memory there.
    assert_eq!(unsafe { (at as *const u64).read_volatile() }, MARK);
    assert!(CALLS.load(Ordering::Relaxed) > before);
    assert!(!is_lost(&region, 3, 1));
    // SAFETY: the page that the handler put there.
    unsafe { libc::munmap(at as *mut _, PAGE) };
}

#[test]
fn system_calls_on_what_is_not_in_place_fail_until_it_is_populated() {
    install_own();
    let Some(region) = made(Region::new(&config())) else { return };
    assert_eq!(region.scope(), FaultScope::UserMode);
    (0..PAGES).for_each(|page| write(&region, page, 2));
    let (mut from, to) = std::io::pipe().unwrap();
    // SAFETY: the kernel reads a page of the region, and says so if it cannot.
    let give = |page: usize| unsafe { libc::write(to.as_raw_fd(), region.as_ptr().add(page * PAGE).cast(), PAGE) };
    region.page_out(0..8 * PAGE).unwrap();
    assert_eq!(give(5), -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT));
    assert_eq!(region.populate(5 * PAGE..6 * PAGE).unwrap(), 1);
    assert_eq!(give(5), PAGE as isize);
    let mut page = [0; PAGE];
    from.read_exact(&mut page).unwrap();
    assert_eq!(u64::from_ne_bytes(page[..8].try_into().unwrap()), word(5, 2));
}

#[test]
fn several_regions_and_errno_stay_apart() {
    install_own();
    let regions: Vec<Region> = (0..5).map_while(|_| made(Region::new(&config()))).collect();
    std::thread::scope(|s| {
        for (n, region) in regions.iter().enumerate() {
            s.spawn(move || {
                for round in 0..4 {
                    for page in 0..PAGES {
                        // SAFETY: errno is this thread's.
                        unsafe { *libc::__errno_location() = 77 };
                        write(region, page, (n + round) as u64);
                        // SAFETY: as above.
                        assert_eq!(unsafe { *libc::__errno_location() }, 77);
                    }
                    assert!((0..PAGES).all(|page| !is_lost(region, page, (n + round) as u64)));
                }
            });
        }
    });
    for r in &regions {
        let counts = r.stats().counts;
        assert!(counts.swapped_in > 1000 && counts.poisoned == 0 && counts.inconsistent == 0, "{counts:?}");
        r.validate().unwrap();
    }
}

#[test]
fn who_faults_alone_reads_into_frames_of_pages_that_have_left() {
    install_own();
    // Room for a few frames.
    let config = RegionConfig { bytes: 3000 * PAGE, ..RegionConfig { memory_max: 8 << 20, ..config() } };
    let Some(region) = made(Region::new(&config)) else { return };
    for round in 0..4 {
        // Neighbours would be read ahead of their faults, several at a time.
        let pages = || (0..3000).map(|n| n * 1009 % 3000);
        pages().for_each(|page| assert!(round == 0 || !is_lost(&region, page, round - 1)));
        pages().for_each(|page| write(&region, page, round));
        region.validate().unwrap();
    }
    let alone = region.stats().counts;
    assert!(alone.frames_reused > 0 && alone.frames_reused <= alone.swapped_in, "{alone:?}");
    // Two that take turns: neither is alone. The pages are left as they are.
    let turn = AtomicU64::new(0);
    let touch = |mine: u64| {
        for n in (mine..2000).step_by(2) {
            while turn.load(Ordering::Acquire) != n {
                std::hint::spin_loop();
            }
            assert!(!is_lost(&region, n as usize * 1009 % 3000, 3));
            turn.store(n + 1, Ordering::Release);
        }
    };
    std::thread::scope(|s| {
        s.spawn(|| touch(0));
        touch(1);
    });
    let both = region.stats().counts;
    assert!(both.swapped_in > alone.swapped_in + 200, "{both:?}");
    assert!(both.frames_reused < alone.frames_reused + 64, "{alone:?} {both:?}");
    region.validate().unwrap();
}

/// Moves out and moves in fail by turns, and are where they are whatever the call said.
#[test]
fn pages_that_could_not_be_moved_into_the_region_are_right() {
    install_own();
    use CallFault::{DoneButFails, Fails, Loses, Short};
    let (busy, again, other) = (libc::EBUSY, libc::EAGAIN, libc::EINVAL);
    for fault in [Fails(busy), Fails(again), Fails(other), DoneButFails(other), Short(0), Loses(libc::EIO)] {
        let plan = CallPlan::new(move |call, n| (call == Call::Move && n % 7 == 3 && n > 3000).then_some(fault));
        let config = RegionConfig { bytes: 3000 * PAGE, memory_max: 8 << 20, ..config() };
        let store = Box::new(Faulty::new(|_, _| None));
        let Some(region) = made(Region::with_faults(&config, store, Some(plan))) else { return };
        let pages = || (0..3000).map(|n| n * 1009 % 3000);
        let (mut lost, mut moved) = (0, 0);
        for round in 0..4 {
            pages().for_each(|page| write(&region, page, round));
            lost += pages().filter(|&page| is_lost(&region, page, round)).count();
            let counts = region.stats().counts;
            assert!(round == 0 || counts.frames_reused > moved, "{fault:?}: {counts:?}");
            moved = counts.frames_reused;
            region.validate().unwrap();
        }
        assert!(lost == 0 || matches!(fault, Loses(_)), "{fault:?}: {lost} pages were lost");
    }
}

/// Slow writes, so that reclaim gives slots to more pages than need leave before any of them is
/// free. When all slots are used, those pages are found when they have been written: they were
/// left, and all that was touched from then on was lost for want of room.
#[test]
fn regression_pages_that_were_written_are_found_where_swap_is_full() {
    if !only_long("regression_pages_that_were_written_are_found_where_swap_is_full") {
        return;
    }
    install_own();
    for &policy in short_or_long(&[Policy::Mglru][..], &[Policy::Lru, Policy::Mglru]) {
        let config = RegionConfig { bytes: 3000 * PAGE, memory_max: 8 << 20, policy, ..config() };
        let store = Faulty::new(|n, _| (n < 4000 && n.is_multiple_of(8)).then_some(Fault::Stalls(20)));
        let Some(region) = made(Region::with_store(&config, Box::new(store))) else { return };
        for round in 0..2 {
            (0..3000).for_each(|page| write(&region, page, round));
            let lost = (0..3000).filter(|&page| is_lost(&region, page, round)).count();
            assert_eq!(lost, 0, "{policy:?}: {:?} {:?}", region.stats().counts, region.stats().events);
            region.validate().unwrap();
        }
    }
}

#[test]
fn the_places_of_regions_that_are_gone_are_used_again() {
    install_own();
    for n in 0..600 {
        let Some(region) = made(Region::new(&RegionConfig { bytes: 8 * PAGE, ..config() })) else { return };
        write(&region, n % 8, n as u64);
        assert!(!is_lost(&region, n % 8, n as u64));
    }
}

/// Limits that lie in the region itself: nothing of it is read under its lock.
#[test]
fn limits_may_be_kept_in_a_region() {
    install_own();
    let Some(region) = made(Region::new(&config())) else { return };
    let at = region.as_ptr().cast::<refault_pager::Limits>();
    // SAFETY: inside the region and aligned.
    unsafe { at.write(region.limits()) };
    (1..PAGES).for_each(|page| write(&region, page, 1));
    region.page_out(0..PAGE).unwrap();
    // SAFETY: written above, and not changed any more.
    region.set_limits(unsafe { &*at }).unwrap();
    region.page_out(0..PAGE).unwrap();
    // SAFETY: as above.
    assert_eq!(region.limits(), unsafe { *at });
}

/// Runs a role of [`the_roles`] in a process of its own.
fn in_role(role: &str) -> Output {
    Program::new(test_name!(the_roles), role).command().output().unwrap()
}

fn says_that_it_skips(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let skips = said.contains("skipped:");
    if skips {
        absent(Need::Uffd, said.trim());
    }
    skips
}

/// Not a test of its own: programs that end by a signal.
#[test]
fn the_roles() {
    let Some(role) = role() else { return };
    let lost = role == "lost";
    let store = Faulty::new(move |n, _| (lost && n < 64).then_some(Fault::WriteIsLost));
    let Some(region) = made(Region::with_store(&config(), Box::new(store))) else { return };
    (0..PAGES).for_each(|page| write(&region, page, 1));
    match role.as_str() {
        "lost" => {}
        "blocks" => {
            region.page_out(0..64 * PAGE).unwrap();
            // SAFETY: plain data, filled before it is used.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGBUS);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            }
        }
        "elsewhere" => {
            // SAFETY: ends this process.
            unsafe { libc::raise(libc::SIGBUS) };
        }
        "child" => {
            // SAFETY: the child reads memory, and ends.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                read(&region, 0, 0);
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            let mut status = 0;
            // SAFETY: the child.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
            assert!((0..PAGES).all(|page| !is_lost(&region, page, 1)));
            println!("the child was told apart");
            return;
        }
        other => panic!("{other}"),
    }
    (0..PAGES).for_each(|page| _ = read(&region, page, 0));
    println!("nothing happened");
}

#[test]
fn without_a_handler_of_the_programs_a_lost_page_ends_it_with_a_line() {
    let output = in_role("lost");
    if says_that_it_skips(&output) {
        return;
    }
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is lost"), "{output:?}");
}

#[test]
fn a_signal_that_was_sent_ends_the_program_as_ever() {
    let output = in_role("elsewhere");
    assert!(says_that_it_skips(&output) || output.status.signal() == Some(libc::SIGBUS), "{output:?}");
}

/// As documented: the kernel does not wait for who blocks a signal of its own fault.
#[test]
fn a_thread_that_blocks_the_signal_ends_the_process() {
    let output = in_role("blocks");
    assert!(says_that_it_skips(&output) || output.status.signal() == Some(libc::SIGBUS), "{output:?}");
}

#[test]
fn a_child_has_no_region() {
    let output = in_role("child");
    let told = String::from_utf8_lossy(&output.stdout).contains("the child was told apart");
    assert!(says_that_it_skips(&output) || told, "{output:?}");
}

/// Nothing of a mapping that is gone is taken for a region's.
#[test]
fn a_region_that_is_gone_leaves_its_addresses_to_others() {
    install_own();
    let Some(region) = made(Region::new(&config())) else { return };
    drop(region);
    let mapping = AnonymousMapping::new(PAGES * PAGE).unwrap();
    // SAFETY: a mapping that only this test knows.
    unsafe { (mapping.start() as *mut u64).write_volatile(1) };
}

/// Reads a region when its thread ends, and evicts for it: what the pager keeps for the thread is
/// gone by then.
struct AtEnd(usize);

impl Drop for AtEnd {
    fn drop(&mut self) {
        for page in 0..PAGES {
            // SAFETY: inside a region that outlives the thread.
            let found = unsafe { ((self.0 + page * PAGE) as *const u64).read_volatile() };
            assert_eq!(found, pattern(page, 1, 0));
        }
    }
}

#[test]
fn a_thread_that_ends_still_faults() {
    install_own();
    thread_local!(static AT_END: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) });
    let pool = Some(PoolConfig { codec: Codec::Zstd, max_bytes: 3 << 20 });
    let Some(region) = made(Region::new(&RegionConfig { pool, ..config() })) else { return };
    std::thread::scope(|s| {
        // Made before what the pager keeps, so it goes after it.
        let ends = s.spawn(|| {
            AT_END.with_borrow_mut(|at_end| *at_end = Some(AtEnd(region.as_ptr() as usize)));
            (0..PAGES).for_each(|page| write(&region, page, 1));
        });
        ends.join().unwrap();
    });
    let counts = region.stats().counts;
    assert!(counts.swapped_in > 500 && counts.poisoned == 0, "{counts:?}");
}
