//! Work of the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::seconds;
use super::segment::Segment;
use super::worker::Worker;
use refault_testing::Rng;

/// The program: threads at work until the time is up, then everything is checked once more.
pub fn work(role: &str) {
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

/// The role of a program whose memory grows until it has to wait.
pub const GROW: &str = "grow";

/// Fills somewhat more memory than `memory.high` of the test below has left for it, the last of it
/// slowly, so that it is served by then.
pub fn grow() {
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
pub const FORKS: &str = "forks";

pub fn forks() {
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

/// The role of a program that has another under its control, all of its threads, as `strace -f`
/// has.
pub const TRACE: &str = "trace";

/// At each system call of the child, its agent's among them, memory is needed that may be out. The
/// manager must not wait for the one with the other.
pub fn trace() {
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

/// The role of a program with a child that is stopped and has much of the memory.
pub const HOLD: &str = "hold";

/// Memory of the stopped child cannot leave. Others make do with what is left, as well as with that
/// much memory alone.
pub fn hold() {
    // SAFETY: the child writes memory and reads it, and ends without a word.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let mut segment = Segment::new(3000);
        (0..3000).for_each(|page| segment.write(page, page as u64 + 1));
        // SAFETY: stops this process, until it is told to go on.
        unsafe { libc::raise(libc::SIGSTOP) };
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(segment.wrong().is_some())) };
    }
    let mut status = 0;
    // SAFETY: the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, libc::WUNTRACED) }, child);
    assert!(libc::WIFSTOPPED(status), "{status:#x}");
    let began = Instant::now();
    let mut own = Segment::new(8000);
    (0..8000).for_each(|page| own.write(page, page as u64 + 7));
    assert_eq!(own.wrong(), None);
    // A second or less; with a wait for each page, minutes.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    // SAFETY: as above.
    unsafe {
        libc::kill(child, libc::SIGCONT);
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    assert_eq!(status, 0, "the child's memory is as it should be");
}

/// The role of two processes that write pages by turns.
pub const TURNS: &str = "turns";

/// Not in the order of addresses, so that each page is a fault of its own.
pub fn turns() {
    const PAGES: usize = 5003;
    const STRIDE: usize = 67;
    let (mine, theirs) = (pipe(), pipe());
    // SAFETY: the child writes memory and reads it, and ends without a word.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    let (waits, tells) = if child == 0 { (theirs.0, mine.1) } else { (mine.0, theirs.1) };
    let mut segment = Segment::new(PAGES);
    let mut turn = 0u8;
    for page in (0..PAGES).map(|i| i * STRIDE % PAGES) {
        if child == 0 || page > 0 {
            // SAFETY: a byte of this frame.
            assert_eq!(unsafe { libc::read(waits, (&raw mut turn).cast(), 1) }, 1);
        }
        segment.write(page, page as u64 + 1);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::write(tells, (&raw const turn).cast(), 1) }, 1);
    }
    assert_eq!(segment.wrong(), None);
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's memory is as it should be");
}

/// The ends to read from and to write to.
fn pipe() -> (i32, i32) {
    let mut fds = [0; 2];
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { libc::pipe(fds.as_mut_ptr()) }, 0);
    (fds[0], fds[1])
}
