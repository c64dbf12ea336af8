//! Costs of CPUs to each other on this machine: the constants of `contention` in the lab.
//!
//! `cargo bench -p refault-lab --bench contention`: a cache line and a spin lock that go from one
//! CPU to another, a flush of the TLB that interrupts another CPU (for the one that asks, and for
//! the one that is interrupted), page faults of two threads of one program beside those of one, and
//! a sleeper that is woken. `-- --zram /dev/zramN` adds stores of one and of two threads to a zram
//! device that has a size and no user (what is on it is lost).
//!
//! Two threads need two CPUs that nothing else uses. A window in which the other thread did not run
//! all the time does not count; of the others the median is printed, and the quartiles.

use std::fs::{File, OpenOptions};
use std::hint::{black_box, spin_loop};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memmap2::MmapMut;

/// Windows of each measurement.
const WINDOWS: usize = 200;
const PAGE: usize = 4096;
/// `O_DIRECT` on x86.
const DIRECT: i32 = 0x4000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cpus} CPUs; ns, median and quartiles of {WINDOWS} windows");
    if cpus < 2 {
        println!("one CPU cannot wait for another: nothing to measure");
        return;
    }
    line();
    spin_lock();
    interrupt();
    faults();
    wake_up();
    if let Some(at) = args.iter().position(|a| a == "--zram") {
        match args.get(at + 1).map(Path::new) {
            Some(device) => zram(device),
            None => println!("--zram needs the path of a device"),
        }
    }
}

/// Prints the median and the quartiles of what was measured.
fn say(what: &str, mut ns: Vec<f64>) -> f64 {
    ns.sort_by(f64::total_cmp);
    let Some(&median) = ns.get(ns.len() / 2) else {
        println!("{what:<64} no window counts");
        return f64::NAN;
    };
    println!("{what:<64} {median:9.0}   {:.0}..{:.0}   {} windows", ns[ns.len() / 4], ns[ns.len() * 3 / 4], ns.len());
    median
}

/// Runs `other` on a thread of its own, again and again, while `body` measures; `other` says how
/// much it has done.
fn beside<T>(other: impl Fn(&AtomicU64) + Sync, body: impl FnOnce(&AtomicU64) -> T) -> T {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other(&done);
            }
        });
        while done.load(Ordering::Relaxed) == 0 {
            spin_loop();
        }
        let result = body(&done);
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Windows of `times` calls each: nanoseconds a call, and what the other thread did a nanosecond.
fn windows(times: u64, done: &AtomicU64, mut call: impl FnMut()) -> Vec<(f64, f64)> {
    let window = |_| {
        let (before, start) = (done.load(Ordering::Relaxed), Instant::now());
        (0..times).for_each(|_| call());
        let ns = start.elapsed().as_nanos() as f64;
        (ns / times as f64, (done.load(Ordering::Relaxed) - before) as f64 / ns)
    };
    (0..WINDOWS).map(window).collect()
}

fn alone(times: u64, call: impl FnMut()) -> Vec<f64> {
    windows(times, &AtomicU64::new(0), call).into_iter().map(|w| w.0).collect()
}

/// A cache line goes from one CPU to the other and back.
fn line() {
    let turn = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let ns = std::thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = turn.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        });
        let ns = alone(2000, || {
            turn.store(1, Ordering::Release);
            while turn.load(Ordering::Acquire) != 0 {
                spin_loop();
            }
        });
        stop.store(true, Ordering::Relaxed);
        ns
    });
    say("a cache line to another CPU, one way", ns.into_iter().map(|n| n / 2.0).collect());
}

/// A lock that is handed over in the order of asking, as those of the kernel are.
#[derive(Default)]
struct Ticket {
    next: AtomicU64,
    serving: AtomicU64,
}

impl Ticket {
    fn with(&self, body: impl FnOnce()) {
        let mine = self.next.fetch_add(1, Ordering::AcqRel);
        while self.serving.load(Ordering::Acquire) != mine {
            spin_loop();
        }
        body();
        self.serving.store(mine + 1, Ordering::Release);
    }
}

/// Some work of a known length, without memory that is shared.
fn work(rounds: u64) {
    let mut x = rounds | 1;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ x >> 7);
    }
}

/// Two threads that ask for a lock all the time: what is between the end of one hold and the
/// beginning of the next.
fn spin_lock() {
    const ROUNDS: u64 = 200;
    let lock = Ticket::default();
    let hold = say("a lock that nobody else wants, held for some work", alone(1000, || lock.with(|| work(ROUNDS))));
    let other = |done: &AtomicU64| {
        lock.with(|| work(ROUNDS));
        done.fetch_add(1, Ordering::Relaxed);
    };
    // Each of the two threads has every other turn.
    let windows = beside(other, |done| windows(1000, done, || lock.with(|| work(ROUNDS))));
    let fair = windows.into_iter().filter(|&(ns, rate)| (0.9..1.1).contains(&(ns * rate)));
    say("the same lock, handed from CPU to CPU: beside the hold", fair.map(|(ns, _)| ns / 2.0 - hold).collect());
}

/// A page of memory that was touched.
fn page() -> MmapMut {
    let mut map = MmapMut::map_anon(PAGE).expect("a page of memory");
    map[0] = 1;
    map
}

/// Taking write permission from a page that is mapped flushes the TLB: of this CPU alone, or of the
/// other one too, which runs a thread of the same program.
fn interrupt() {
    let protect = |map: &mut Option<MmapMut>| {
        let read_only = map.take().expect("a page").make_read_only().expect("mprotect");
        let mut writable = read_only.make_mut().expect("mprotect");
        writable[0] = writable[0].wrapping_add(1);
        *map = Some(writable);
    };
    let spin = |done: &AtomicU64| {
        work(20);
        done.fetch_add(1, Ordering::Relaxed);
    };
    let mut map = Some(page());
    let local = say("mprotect there and back, and a touch: this CPU alone", alone(1000, || protect(&mut map)));
    // Work of the other thread in a nanosecond while nobody interrupts it.
    let idle = beside(spin, |done| windows(1000, done, || work(400)));
    let mut rates: Vec<f64> = idle.iter().map(|w| w.1).collect();
    rates.sort_by(f64::total_cmp);
    let free = rates[rates.len() * 3 / 4];
    let both = beside(spin, |done| windows(1000, done, || protect(&mut map)));
    let ran: Vec<_> = both.into_iter().filter(|&(ns, rate)| rate > free * 0.3 && ns > local).collect();
    say("the same, and another CPU is interrupted: more", ran.iter().map(|&(ns, _)| ns - local).collect());
    say("what that CPU loses", ran.iter().map(|&(ns, rate)| ns * (1.0 - rate / free)).collect());
    let mut unmap = || drop(page());
    let local = say("mmap, touch, munmap: this CPU alone", alone(500, &mut unmap));
    let both = beside(spin, |done| windows(500, done, unmap));
    let ran: Vec<_> = both.into_iter().filter(|&(ns, rate)| rate > free * 0.3 && ns > local).collect();
    say("the same, and another CPU is interrupted: more", ran.iter().map(|&(ns, _)| ns - local).collect());
}

/// Page faults of one thread, and of two of one program: what the counters in its locks cost that
/// go from CPU to CPU, and a writer.
fn faults() {
    const PAGES: usize = 256;
    let fault = || {
        let mut map = MmapMut::map_anon(PAGES * PAGE).expect("memory");
        (0..PAGES).for_each(|p| map[p * PAGE] = 1);
    };
    let per_page = |ns: Vec<f64>| ns.into_iter().map(|n| n / PAGES as f64).collect();
    let one = say("an anonymous fault, its page freed too: one thread", per_page(alone(4, fault)));
    let other = |done: &AtomicU64| {
        fault();
        done.fetch_add(1, Ordering::Relaxed);
    };
    let two = beside(other, |done| windows(4, done, fault));
    let fair = two.into_iter().filter(|&(ns, rate)| ns * rate > 0.7);
    say("two threads of one program: more", fair.map(|(ns, _)| ns / PAGES as f64 - one).collect());
    let writer = |done: &AtomicU64| {
        drop(MmapMut::map_anon(PAGE).expect("a page of memory"));
        done.fetch_add(1, Ordering::Relaxed);
    };
    let held = say("mmap and munmap of a page that nobody touched", alone(1000, || writer(&AtomicU64::new(0))));
    let two = beside(writer, |done| windows(4, done, fault));
    let ran = two.into_iter().filter(|&(_, rate)| rate * held > 0.3);
    say("a fault while another thread does that: more", ran.map(|(ns, _)| ns / PAGES as f64 - one).collect());
}

/// A thread that sleeps is woken by another one.
fn wake_up() {
    let me = std::thread::current();
    let (turn, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let ns = std::thread::scope(|s| {
        let partner = s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(100));
                if turn.swap(0, Ordering::AcqRel) == 1 {
                    me.unpark();
                }
            }
        });
        let ns = alone(100, || {
            turn.store(1, Ordering::Release);
            partner.thread().unpark();
            while turn.load(Ordering::Acquire) == 1 {
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        stop.store(true, Ordering::Relaxed);
        partner.thread().unpark();
        ns
    });
    say("a sleeper is woken (futex), one way", ns.into_iter().map(|n| n / 2.0).collect());
}

/// Pages of which half is random, so that they are compressed to about a half.
fn compressible() -> MmapMut {
    const PAGES: usize = 64;
    let mut pages = MmapMut::map_anon(PAGES * PAGE).expect("memory");
    let mut rng = refault_testing::Rng(7);
    for (at, byte) in pages.iter_mut().enumerate() {
        *byte = if at % PAGE < PAGE * 4 / 10 { rng.below(256) as u8 } else { 0 };
    }
    pages
}

/// Stores of pages on a zram device.
fn zram(path: &Path) {
    const PAGES: u64 = 4096;
    let open = |_| OpenOptions::new().read(true).write(true).custom_flags(DIRECT).open(path);
    let devices: Vec<File> = match (0..2).map(open).collect() {
        Ok(devices) => devices,
        Err(e) => return println!("{}: {e}", path.display()),
    };
    let pages = compressible();
    let next = [AtomicU64::new(0), AtomicU64::new(PAGES)];
    let store = |thread: usize| {
        let at = thread as u64 * PAGES + next[thread].fetch_add(1, Ordering::Relaxed) % PAGES;
        let from = (at as usize % 64) * PAGE;
        devices[thread].write_all_at(&pages[from..from + PAGE], at * PAGE as u64).expect("a store");
    };
    let one = say("zram: a store, one thread", alone(200, || store(0)));
    let other = |done: &AtomicU64| {
        store(1);
        done.fetch_add(1, Ordering::Relaxed);
    };
    let two = beside(other, |done| windows(200, done, || store(0)));
    let fair = two.into_iter().filter(|&(ns, rate)| ns * rate > 0.7);
    say("zram: two threads: more", fair.map(|(ns, _)| ns - one).collect());
}
