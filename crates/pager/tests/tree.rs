//! Whole programs under heavy eviction: this test starts itself as the program, which keeps versioned patterns in memory and checks every byte
//! against what it knows, while it forks, remaps, unmaps, advises, protects, and hands cold memory to system calls.
//!
//! Seconds by default; `REFAULT_STRESS_SECONDS` makes each case as long as one likes. Without userfaultfd the tests say that they skip.

mod common;

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refault_pager::store::Codec;
use refault_pager::tree::{Outcome, TreeConfig, TreeStats, run};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{Error, Policy, PoolConfig, RegionConfig};

use self::common::Rng;

const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;
/// Tells the program what to do; without it this is the test.
const ROLE: &str = "REFAULT_TEST_ROLE";

fn seconds() -> f64 {
    std::env::var("REFAULT_STRESS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2.0)
}

/// What a page holds at a version; version 0 is untouched memory. Some pages are noise, some compress well, some repeat one word.
fn word(version: u64, i: usize) -> u64 {
    match version {
        0 => 0,
        v if v % 4 == 0 => v,
        v if v % 4 == 1 => Rng(v << 16 | i as u64).next(),
        v => v.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(i as u64 / 16),
    }
}

fn map(address: usize, pages: usize, protection: i32, fixed: bool) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if fixed { libc::MAP_FIXED } else { 0 };
    // SAFETY: a new mapping where the kernel chooses, or in the place of one that its owner gives up.
    let at = unsafe { libc::mmap(address as *mut _, pages * PAGE, protection, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    at as usize
}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Memory with what should be in it.
struct Segment {
    at: usize,
    versions: Vec<u64>,
    /// It was mapped in one piece: only such memory can be moved by `mremap` if it is watched by a userfaultfd.
    is_one: bool,
}

impl Segment {
    fn new(pages: usize) -> Segment {
        Segment { at: map(0, pages, RW, false), versions: vec![0; pages], is_one: true }
    }

    /// The first page that holds something else than it should, without a word or an allocation.
    fn wrong(&self) -> Option<(usize, usize, u64)> {
        (0..self.versions.len()).find_map(|page| self.wrong_page(page))
    }

    fn wrong_page(&self, page: usize) -> Option<(usize, usize, u64)> {
        let base = (self.at + page * PAGE) as *const u64;
        (0..WORDS).find_map(|i| {
            // SAFETY: a page of this segment, which its thread alone reads and writes.
            let found = unsafe { std::ptr::read_volatile(base.add(i)) };
            (found != word(self.versions[page], i)).then_some((page, i, found))
        })
    }

    fn check(&self, page: usize, after: &str) {
        if let Some((page, i, found)) = self.wrong_page(page) {
            let version = self.versions[page];
            let at = self.at + page * PAGE;
            eprintln!("after {after}: {at:#x} word {i} is {found:#x} in version {version}: {:#x}", word(version, i));
            std::process::exit(1);
        }
    }

    fn write(&mut self, page: usize, version: u64) {
        self.versions[page] = version;
        let base = (self.at + page * PAGE) as *mut u64;
        // SAFETY: as above.
        (0..WORDS).for_each(|i| unsafe { std::ptr::write_volatile(base.add(i), word(version, i)) });
    }
}

/// A thread of the program.
struct Worker {
    rng: Rng,
    segments: Vec<Segment>,
    /// Pages of a segment at the start: about as many remain.
    usual: usize,
    next: u64,
    pipe: [RawFd; 2],
    last: &'static str,
    /// A tenth of all steps moves memory, changes sizes, or forks; as many fill memory.
    churns: bool,
}

impl Worker {
    fn new(seed: u64, pages: usize, churns: bool) -> Worker {
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let segments: Vec<_> = (0..8).map(|_| Segment::new(pages / 8)).collect();
        Worker { rng: Rng(seed), segments, usual: pages / 8, next: seed << 32 | 1, pipe, last: "the start", churns }
    }

    fn step(&mut self) {
        let s = self.rng.below(self.segments.len());
        let pages = self.segments[s].versions.len();
        let page = self.rng.below(pages);
        let run = 1 + self.rng.below((pages - page).min(24));
        let mut choice = self.rng.below(1000);
        if self.churns && self.rng.below(10) == 0 {
            // What the kernel tells of after it was done, so that others may have taken the addresses.
            choice = 970 + self.rng.below(30);
        }
        match choice {
            0..100 if self.churns => {
                for p in page..page + run {
                    self.next += 1;
                    self.segments[s].write(p, self.next);
                }
            }
            0..500 => {
                self.segments[s].check(page, self.last);
                self.next += 1;
                self.segments[s].write(page, self.next);
            }
            500..900 => (page..page + run).for_each(|p| self.segments[s].check(p, self.last)),
            900..930 => self.through_a_pipe(s, page),
            930..950 => self.discard(s, page, run),
            950..960 => self.map_anew(s, page, run),
            960..970 => self.protect(s, page, run),
            970..980 => self.move_elsewhere(s),
            980..985 => self.resize(s),
            985..990 => self.read_a_file(s, page),
            990 => self.fork(),
            _ => self.on_the_heap(),
        }
    }

    /// The kernel reads one page and writes another.
    fn through_a_pipe(&mut self, s: usize, page: usize) {
        self.last = "a pipe";
        let other = self.rng.below(self.segments.len());
        let to = self.rng.below(self.segments[other].versions.len());
        let (from, at) = (self.segments[s].at + page * PAGE, self.segments[other].at + to * PAGE);
        // SAFETY: pages of segments of this thread.
        unsafe {
            assert_eq!(libc::write(self.pipe[1], from as *const _, PAGE), PAGE as isize);
            assert_eq!(libc::read(self.pipe[0], at as *mut _, PAGE), PAGE as isize);
        }
        self.segments[other].versions[to] = self.segments[s].versions[page];
        self.segments[other].check(to, "a pipe");
    }

    fn discard(&mut self, s: usize, page: usize, run: usize) {
        self.last = "MADV_DONTNEED";
        let segment = &mut self.segments[s];
        // SAFETY: pages of a segment of this thread, whose content is given up.
        let done = unsafe { libc::madvise((segment.at + page * PAGE) as *mut _, run * PAGE, libc::MADV_DONTNEED) };
        assert_eq!(done, 0);
        segment.versions[page..page + run].fill(0);
        if self.rng.below(2) == 0 {
            segment.check(page, self.last);
        }
    }

    fn map_anew(&mut self, s: usize, page: usize, run: usize) {
        self.last = "mapping anew";
        let segment = &mut self.segments[s];
        segment.is_one = false;
        let at = segment.at + page * PAGE;
        if self.rng.below(2) == 0 {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::munmap(at as *mut _, run * PAGE) }, 0);
            // Another thread may take the place in between: then the kernel says so.
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: nothing is replaced.
            let got = unsafe { libc::mmap(at as *mut _, run * PAGE, RW, flags, -1, 0) };
            if got as usize != at {
                let rest = segment.versions.split_off(page);
                let after = segment.at + (page + run) * PAGE;
                let rest = Segment { at: after, versions: rest[run..].to_vec(), is_one: false };
                if page == 0 {
                    self.segments.swap_remove(s);
                }
                if !rest.versions.is_empty() {
                    self.segments.push(rest);
                }
                return;
            }
        } else {
            map(at, run, RW, true);
        }
        segment.versions[page..page + run].fill(0);
        self.next += 1;
        segment.write(page, self.next);
    }

    fn protect(&mut self, s: usize, page: usize, run: usize) {
        self.last = "mprotect";
        let segment = &mut self.segments[s];
        // The kernel may not join again what it splits.
        segment.is_one = false;
        let at = (segment.at + page * PAGE) as *mut libc::c_void;
        let protect = |protection| {
            // SAFETY: pages of a segment of this thread, which does not touch them meanwhile but as they allow.
            assert_eq!(unsafe { libc::mprotect(at, run * PAGE, protection) }, 0);
        };
        if self.rng.below(2) == 0 {
            protect(libc::PROT_READ);
            (page..page + run).for_each(|p| segment.check(p, "mprotect to read"));
        } else {
            protect(libc::PROT_NONE);
            std::thread::yield_now();
        }
        protect(RW);
        segment.check(page, self.last);
    }

    fn move_elsewhere(&mut self, s: usize) {
        self.last = "mremap";
        let segment = &mut self.segments[s];
        if !segment.is_one {
            // SAFETY: a segment of this thread is given up for a new one.
            unsafe { libc::munmap(segment.at as *mut _, segment.versions.len() * PAGE) };
            *segment = Segment::new(self.usual);
            return;
        }
        let bytes = segment.versions.len() * PAGE;
        let to = map(0, segment.versions.len(), libc::PROT_NONE, false);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: a segment of this thread goes to a place that was just made for it.
        let got = unsafe { libc::mremap(segment.at as *mut _, bytes, bytes, flags, to as *mut libc::c_void) };
        if got == libc::MAP_FAILED {
            // It grew while it was watched, so it is two mappings for a moment. What became of it is not known.
            *segment = Segment::new(segment.versions.len());
            return;
        }
        segment.at = to;
        let page = self.rng.below(segment.versions.len());
        segment.check(page, self.last);
    }

    fn resize(&mut self, s: usize) {
        self.last = "a change of size";
        let segment = &mut self.segments[s];
        if !segment.is_one {
            return;
        }
        let old = segment.versions.len();
        let new = (self.usual / 2 + self.rng.below(self.usual)).max(4);
        // SAFETY: a segment of this thread; what is cut off is given up.
        let got = unsafe { libc::mremap(segment.at as *mut _, old * PAGE, new * PAGE, libc::MREMAP_MAYMOVE) };
        if got == libc::MAP_FAILED {
            return;
        }
        segment.at = got as usize;
        segment.versions.resize(new, 0);
        segment.check(new - 1, self.last);
        segment.check(0, self.last);
    }

    /// The kernel writes into pages from a file, past the page cache if it can.
    fn read_a_file(&mut self, s: usize, page: usize) {
        use std::os::fd::AsRawFd;
        self.last = "read";
        let file = std::fs::File::open("/proc/self/exe").expect("it runs");
        let segment = &mut self.segments[s];
        let at = segment.at + page * PAGE;
        let mut expected = [0u8; PAGE];
        // SAFETY: a page of a segment of this thread, and a buffer.
        unsafe {
            assert_eq!(libc::pread(file.as_raw_fd(), at as *mut _, PAGE, PAGE as i64), PAGE as isize);
            assert_eq!(libc::pread(file.as_raw_fd(), expected.as_mut_ptr().cast(), PAGE, PAGE as i64), PAGE as isize);
            assert_eq!(std::slice::from_raw_parts(at as *const u8, PAGE), expected);
        }
        self.next += 1;
        segment.write(page, self.next);
    }

    /// A child must find what its parent had, and its parent what it had, whatever the child writes.
    fn fork(&mut self) {
        self.last = "fork";
        let (s, value) = (self.rng.below(self.segments.len()), self.next + 1);
        self.next += 2;
        // SAFETY: the child reads and writes memory, and ends without a word.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let segment = &mut self.segments[s];
            let before = segment.wrong().is_some();
            let n = segment.versions.len();
            (0..n).step_by(3).for_each(|page| segment.write(page, value));
            let after = segment.wrong().is_some();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(before) + 2 * i32::from(after)) };
        }
        let n = self.segments[s].versions.len();
        for page in (0..n).step_by(5) {
            self.segments[s].write(page, value + 1);
        }
        let mut status = 0;
        // SAFETY: the child that was just made.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        if status != 0 {
            eprintln!("a forked child found something else than its parent had: status {status:#x}");
            std::process::exit(1);
        }
        if let Some((page, i, found)) = self.segments[s].wrong() {
            eprintln!("after fork: page {page} word {i} is {found:#x}");
            std::process::exit(1);
        }
    }

    fn on_the_heap(&mut self) {
        self.last = "the heap";
        let n = 1 + self.rng.below(60_000);
        let mut list: Vec<u64> = Vec::new();
        (0..n as u64).for_each(|i| list.push(i ^ 0x5555));
        assert!(list.iter().enumerate().all(|(i, &v)| v == i as u64 ^ 0x5555), "the heap");
    }
}

/// The program: threads at work until the time is up, then everything is checked once more.
fn work(role: &str) {
    let numbers: Vec<f64> = role.split(' ').map(|n| n.parse().expect("a number")).collect();
    let (threads, pages, seconds, churns) = (numbers[0] as u64, numbers[1] as usize, numbers[2], numbers[3] > 0.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let work = |seed| {
            move || {
                let mut worker = Worker::new(seed, pages / threads as usize, churns);
                let mut steps = 0;
                while Instant::now() < end {
                    worker.step();
                    steps += 1;
                }
                for segment in &worker.segments {
                    (0..segment.versions.len()).for_each(|page| segment.check(page, "all"));
                }
                steps
            }
        };
        let handles: Vec<_> = (1..=threads).map(|seed| scope.spawn(work(seed))).collect();
        handles.into_iter().map(|h| h.join().expect("no panic")).collect()
    });
    eprintln!("{} steps", counts.iter().sum::<u64>());
}

/// Not a test of its own: what the others start as the program.
#[test]
fn the_program() {
    match std::env::var(ROLE) {
        Ok(role) if role == GROW => grow(),
        Ok(role) if role == TRACE => trace(),
        Ok(role) if role == FORKS => forks(),
        Ok(role) => work(&role),
        Err(_) => {}
    }
}

/// The role of a program whose memory grows until it has to wait.
const GROW: &str = "grow";

/// Fills somewhat more memory than `memory.high` of the test below has left for it, the last of it slowly, so that it is served by then.
fn grow() {
    const PAGES: usize = 5800;
    let mut segment = Segment::new(PAGES);
    for page in 0..PAGES {
        segment.write(page, page as u64 + 1);
        if page > 4300 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(segment.wrong(), None);
}

/// The role of a program that forks while other threads have pages come in.
const FORKS: &str = "forks";

fn forks() {
    const PAGES: usize = 10_000;
    let mut segment = Segment::new(PAGES);
    (0..PAGES).for_each(|page| segment.write(page, page as u64 + 1));
    let (segment, is_over) = (&segment, AtomicBool::new(false));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (mut rng, is_over) = (Rng(seed), &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    segment.check(rng.below(PAGES), "a fork");
                }
            });
        }
        let end = Instant::now() + Duration::from_secs_f64(seconds());
        let mut forks = 0;
        while Instant::now() < end {
            // SAFETY: the child reads memory, and ends without a word.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                let is_wrong = (forks % 16..PAGES).step_by(16).any(|page| segment.wrong_page(page).is_some());
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(is_wrong)) };
            }
            forks += 1;
            let mut status = 0;
            // SAFETY: the child that was just made.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            if status != 0 {
                eprintln!("a forked child ended with status {status:#x}");
                std::process::exit(1);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        eprintln!("{forks} forks");
    });
}

/// The role of a program that has another under its control, all of its threads, as `strace -f` has.
const TRACE: &str = "trace";

/// At each system call of the child, its agent's among them, memory is needed that may be out. The manager must not wait for the one with the other.
fn trace() {
    let mut own = Segment::new(400);
    (0..400).for_each(|page| own.write(page, page as u64 + 1));
    // SAFETY: the child reads and writes memory, and ends without a word.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let mut segment = Segment::new(12_000);
        for version in 1..3 {
            (0..12_000).for_each(|page| segment.write(page, version << 20 | page as u64));
            if segment.wrong().is_some() {
                std::process::exit(1);
            }
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    std::thread::sleep(Duration::from_millis(100));
    let threads = std::fs::read_dir(format!("/proc/{child}/task")).expect("it is there").flatten();
    for thread in threads.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
        // SAFETY: requests about a thread of the child, with numbers only.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, 0, libc::PTRACE_O_TRACESYSGOOD), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0), 0);
        }
    }
    let mut rng = Rng(3);
    let mut stops = 0;
    loop {
        let mut status = 0;
        // SAFETY: room for a number.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        assert!(thread > 0, "{}", std::io::Error::last_os_error());
        if !libc::WIFSTOPPED(status) {
            if thread != child {
                continue;
            }
            assert_eq!(status, 0, "the child's memory is as it should be");
            break;
        }
        stops += 1;
        own.check(rng.below(400), "a stop");
        let is_own = status >> 16 != 0 || libc::WSTOPSIG(status) & 0x7F == libc::SIGTRAP;
        let signal = if is_own { 0 } else { libc::WSTOPSIG(status) };
        // SAFETY: as above; it may have ended meanwhile.
        _ = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
    }
    assert_eq!(own.wrong(), None);
    assert!(stops > 500, "{stops} stops");
}

/// Runs the program of this file; `None`: it was said why not.
fn run_self(name: &str, role: &str, memory: RegionConfig) -> Option<Outcome> {
    let exe = std::env::current_exe().expect("it runs");
    let role = format!("{ROLE}={role}");
    let words = ["env", &role, exe.to_str().expect("plain text"), "--exact", "the_program", "--nocapture", "-q"];
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    match run(TreeConfig { memory, record: None }, "/usr/bin/env".as_ref(), &words) {
        Ok(outcome) => {
            let c = outcome.stats.counts;
            eprintln!("{name}: {} evictions, peak {} pages, {c:?}", c.swapped_out, outcome.stats.peak_resident_pages);
            Some(outcome)
        }
        Err(Error::Unsupported(why)) => {
            eprintln!("{name}: skipped: {why}");
            None
        }
        Err(e) => panic!("{name}: {e}"),
    }
}

fn stress(name: &str, memory: RegionConfig) {
    stress_with(name, memory, DATA, 3, false);
}

/// `None`: skipped.
fn stress_with(name: &str, memory: RegionConfig, data: usize, threads: usize, churns: bool) -> Option<TreeStats> {
    let pages = data / PAGE;
    let role = format!("{threads} {pages} {} {}", seconds(), u8::from(churns));
    let o = run_self(name, &role, memory)?;
    let c = o.stats.counts;
    assert!(o.status.success(), "{name}: {}", o.status);
    // On a busy machine two seconds may not be enough for memory to be tight.
    assert!(c.swapped_out > 1000 || seconds() < 10.0, "{name}: there was eviction");
    let s = &o.stats;
    assert_eq!((s.undecided, s.strays), (0, 0), "{name}: order of changes not known, content without a place");
    assert_eq!((c.poisoned, c.inconsistent, o.stats.area.corrupt), (0, 0, 0), "{name}");
    Some(o.stats)
}

/// What the programs have, twice to three times the memory.
const DATA: usize = 60 << 20;

fn config(policy: Policy) -> RegionConfig {
    RegionConfig { policy, swap_max: 256 << 20, ..RegionConfig::new(256 << 20, 24 << 20) }
}

fn directory() -> Option<std::path::PathBuf> {
    Some(env!("CARGO_MANIFEST_DIR").into())
}

#[test]
fn stress_pool_of_lz4() {
    // A quarter of the pages is noise, which takes all its size, and the tables take 8 MiB: with less memory there would be no room at times.
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 18 << 20 });
    stress("pool of lz4", RegionConfig { pool, memory_max: 26 << 20, ..config(Policy::Mglru) });
}

#[test]
fn stress_file_alone() {
    stress("file", RegionConfig { pool: None, swap_directory: directory(), ..config(Policy::Mglru) });
}

#[test]
fn stress_pool_before_file_and_two_lists() {
    let pool = Some(PoolConfig { codec: Codec::Zstd, max_bytes: 4 << 20 });
    stress("both", RegionConfig { pool, swap_directory: directory(), ..config(Policy::Lru) });
}

/// Threads take the addresses that others give up, and fork meanwhile: the kernel tells of it in any order.
#[test]
fn stress_of_changing_mappings() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 4 << 20 });
    // With five forked processes at a time, tables come to 27 MiB; with less memory there would be no room at times.
    let memory = RegionConfig { pool, swap_directory: directory(), memory_max: 52 << 20, ..config(Policy::Mglru) };
    stress_with("changes", memory, 100 << 20, 5, true);
}

/// What cannot leave memory goes beyond `memory.high`, and whoever makes it grow has to wait.
#[test]
fn beyond_memory_high_whoever_faults_waits() {
    let memory = RegionConfig { memory_high: 24 << 20, memory_max: 64 << 20, swap_max: 0, ..config(Policy::Mglru) };
    let Some(o) = run_self("high", GROW, memory) else { return };
    let c = o.stats.counts;
    assert!(o.status.success(), "{}", o.status);
    assert!(c.throttled > 0 && c.throttled_ns > 0 && c.swapped_out == 0, "{c:?}");
}

/// Below it everyone goes on, also while pages leave memory and come back.
#[test]
fn memory_high_changes_no_byte() {
    let memory = RegionConfig {
        memory_high: 22 << 20,
        memory_max: 28 << 20,
        swap_directory: directory(),
        ..config(Policy::Mglru)
    };
    stress("high, both", memory);
}

/// Every other answer of an agent does not come in time: faults, reads, writes and changes of mappings wait for it, and no byte is lost.
#[test]
fn stress_of_late_answers() {
    let plan =
        |call, n: u64| (call == Call::ReadAnswer && n.is_multiple_of(2)).then_some(CallFault::Fails(libc::EAGAIN));
    let _plan = CallPlan::new(plan).enter();
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 4 << 20 });
    let memory = RegionConfig { pool, swap_directory: directory(), memory_max: 52 << 20, ..config(Policy::Mglru) };
    let outcome = stress_with("late answers", memory, 100 << 20, 5, true);
    assert!(outcome.is_none_or(|s| s.unanswered > 100), "they are late");
}

/// Processes are stopped at any time, also while they move pages, and go on.
#[test]
fn stress_of_stopped_processes() {
    let is_over = AtomicBool::new(false);
    let memory = RegionConfig { swap_directory: directory(), memory_max: 32 << 20, ..config(Policy::Mglru) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng(7);
            while !is_over.load(Ordering::Relaxed) {
                let ours = descendants();
                if !ours.is_empty() {
                    let pid = ours[rng.below(ours.len())];
                    // SAFETY: processes of this test, which are told to go on again.
                    unsafe {
                        libc::kill(pid, libc::SIGSTOP);
                        std::thread::sleep(Duration::from_millis(rng.below(40) as u64));
                        libc::kill(pid, libc::SIGCONT);
                    }
                }
                std::thread::sleep(Duration::from_millis(rng.below(20) as u64));
            }
        });
        let result = std::panic::catch_unwind(|| stress_with("stopped", memory, DATA, 3, false));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|why| std::panic::resume_unwind(why));
    });
}

/// What runs below this process: the program's name is that of this file.
fn descendants() -> Vec<i32> {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let own = std::process::id() as i32;
    let entries = std::fs::read_dir("/proc").expect("it is there").flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_below = |pid: &i32| std::iter::successors(parent(*pid), |&p| parent(p)).take(8).any(|p| p == own);
    pids.filter(is_below).collect()
}

/// Who stops the threads of another process, its agent among them, is served meanwhile.
#[test]
fn a_debugger_inside_of_the_run_goes_on() {
    let memory = RegionConfig { swap_directory: directory(), ..config(Policy::Mglru) };
    let Some(o) = run_self("trace", TRACE, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    assert!(o.stats.unanswered > 0, "{:?}", o.stats);
    assert_eq!((o.stats.undecided, o.stats.strays, o.stats.counts.poisoned, o.stats.killed), (0, 0, 0, 0));
}

/// It is not known for long that a fork is over: it is read of, and dealt with later. What comes in meanwhile was not there for the child.
#[test]
fn a_child_has_what_came_in_while_it_was_forked() {
    let plan = |call, n: u64| (call == Call::Probe && n % 50 < 45).then_some(CallFault::Fails(libc::EAGAIN));
    let _plan = CallPlan::new(plan).enter();
    let memory = RegionConfig { swap_directory: directory(), memory_max: 32 << 20, ..config(Policy::Mglru) };
    let Some(o) = run_self("forks", FORKS, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    assert_eq!((o.stats.undecided, o.stats.strays, o.stats.counts.poisoned), (0, 0, 0));
}
