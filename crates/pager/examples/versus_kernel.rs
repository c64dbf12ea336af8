//! The same accesses to a region of the pager, and to ordinary memory in a cgroup of the same size with zram swap.
//!
//! ```text
//! cargo run --release -p refault-pager --example versus_kernel -- [REGION_MIB MEMORY_MIB SECONDS THREADS]
//! ```
//!
//! Needs userfaultfd with UFFDIO_MOVE. The kernel's rows need root, cgroup v1 or v2 with the memory controller, and an active swap
//! device (zram, set up by you: this program changes nothing of the system but makes a cgroup and removes it). If something is
//! missing it says so, and prints the pager's rows alone. Figures compare only within one run, on a machine that is otherwise idle.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refault_pager::mem::Mapping;
use refault_pager::store::Codec;
use refault_pager::{Policy, PoolConfig, Region, RegionConfig};

const PAGE: usize = 4096;
const WORKLOADS: [&str; 4] = ["uniform", "zipf", "scan", "phases"];

struct Setting {
    region: usize,
    memory: usize,
    seconds: f64,
    threads: usize,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<f64> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let get = |i: usize, default: f64| numbers.get(i).copied().unwrap_or(default);
    let s = Setting {
        region: (get(0, 256.0) as usize) << 20,
        memory: (get(1, 128.0) as usize) << 20,
        seconds: get(2, 2.0),
        threads: get(3, 1.0) as usize,
    };
    if let Ok(workload) = std::env::var("REFAULT_BENCH_CHILD") {
        // In the cgroup: ordinary memory.
        let memory = Mapping::new(s.region).expect("memory can be mapped");
        println!("{}", run(&workload, &s, memory.start() as *mut u8, faults_of_process));
        return;
    }
    println!(
        "region {} MiB, memory {} MiB, {} thread(s), {} s of warming up and as many counted, a row",
        s.region >> 20,
        s.memory >> 20,
        s.threads,
        s.seconds
    );
    println!(
        "{:10} {:22} {:>12} {:>8} {:>10} {:>9} {:>9} {:>9}",
        "workload", "", "accesses/s", "misses", "cpu/miss", "p50", "p99", "in place"
    );
    let group = Group::new(s.memory);
    let only = std::env::var("REFAULT_BENCH_ONLY").ok();
    for workload in WORKLOADS.into_iter().filter(|w| only.as_ref().is_none_or(|o| o == w)) {
        let policies: Vec<(Policy, u32)> = match std::env::var("REFAULT_BENCH_STANDBY") {
            Ok(list) => list
                .split(',')
                .filter_map(|p| p.parse().ok())
                .flat_map(|p| [(Policy::Lru, p), (Policy::Mglru, p)])
                .collect(),
            Err(_) => vec![(Policy::Lru, 0), (Policy::Mglru, 0)],
        };
        for (policy, standby) in policies {
            let name = format!("pager {policy} {standby} %");
            // The kernel does not count zram against the limit; so that both have the same memory for pages in place, the region
            // gets what its pool and its tables will take on top (the last column says what it came to).
            let pool = (s.region - s.memory) / 100 * 65;
            let mut config = RegionConfig::new(s.region, s.memory + (s.region - s.memory) / 100 * 57 + (s.region / 32));
            (config.policy, config.standby_percent) = (policy, standby);
            config.pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: pool.min(config.memory_max / 4 * 3) });
            match Region::new(&config) {
                Ok(region) => {
                    let misses = || {
                        let c = region.stats().counts;
                        c.swapped_in
                    };
                    let line = run(workload, &s, region.as_ptr(), misses);
                    let stats = region.stats();
                    println!(
                        "{workload:10} {name:22} {line} {:>5} MiB",
                        (stats.memory_pages - stats.overhead_pages) >> 8
                    );
                    if std::env::var_os("REFAULT_BENCH_STATS").is_some() {
                        println!("{:?}", region.stats());
                    }
                }
                Err(e) => return println!("no region: {e}"),
            }
        }
        match &group {
            Ok(group) => println!("{workload:10} {:22} {}", "kernel", group.run(workload, &args)),
            Err(why) => println!("{workload:10} {:22} not run: {why}", "kernel"),
        }
    }
}

/// Major faults of this process.
fn faults_of_process() -> u64 {
    usage().ru_majflt as u64
}

fn usage() -> libc::rusage {
    // SAFETY: plain data, filled by the call.
    unsafe {
        let mut u = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u
    }
}

fn cpu() -> Duration {
    let u = usage();
    let of = |t: libc::timeval| Duration::from_micros(t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64);
    of(u.ru_utime) + of(u.ru_stime)
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zipf with exponent 1 by inversion of the continuous distribution; ranks are scattered over the pages.
fn zipf(rng: &mut Rng, pages: u64) -> u64 {
    let rank = ((pages as f64 + 1.0).ln() * rng.unit()).exp() as u64 - 1;
    rank.min(pages - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % pages
}

#[derive(Clone, Copy)]
struct Base(*mut u8);
// SAFETY: threads write single bytes whose values nobody depends on.
unsafe impl Send for Base {}

/// Fills the memory (half of each page is noise), then accesses it; one line of figures.
fn run(workload: &str, s: &Setting, base: *mut u8, misses: impl Fn() -> u64) -> String {
    let pages = (s.region / PAGE) as u64;
    let mut rng = Rng(88_172_645_463_325_252);
    for page in 0..pages {
        for i in 0..PAGE / 16 {
            // SAFETY: inside the memory.
            unsafe { base.add(page as usize * PAGE).cast::<u64>().add(i).write_volatile(rng.next()) };
        }
    }
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut latencies: Vec<u32> = Vec::new();
    let (mut misses_before, mut cpu_before, mut begin, mut warm) = (misses(), cpu(), Instant::now(), 0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..s.threads as u64)
            .map(|t| {
                let (stop, total, base) = (&stop, &total, Base(base));
                scope.spawn(move || accesses(workload, { base }.0, pages, t, stop, total, begin))
            })
            .collect();
        // Until the policy has seen enough, nothing is counted.
        std::thread::sleep(Duration::from_secs_f64(s.seconds));
        (misses_before, cpu_before, begin) = (misses(), cpu(), Instant::now());
        let before = total.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs_f64(s.seconds));
        warm = before;
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|t| latencies.extend(t.join().expect("a thread ends")));
    });
    let (elapsed, cpu) = (begin.elapsed().as_secs_f64(), cpu() - cpu_before);
    let (total, misses) = (total.load(Ordering::Relaxed) - warm, misses() - misses_before);
    latencies.sort_unstable();
    let at = |q: f64| f64::from(latencies[((latencies.len() - 1) as f64 * q) as usize]) / 1000.0;
    let mut line = String::new();
    _ = write!(
        line,
        "{:>12.0} {:>7.2}% {:>7.1} µs {:>6.1} µs {:>6.1} µs",
        total as f64 / elapsed,
        100.0 * misses as f64 / total as f64,
        cpu.as_secs_f64() * 1e6 / misses.max(1) as f64,
        at(0.5),
        at(0.99),
    );
    line
}

fn accesses(
    workload: &str,
    base: *mut u8,
    pages: u64,
    thread: u64,
    stop: &AtomicBool,
    total: &AtomicU64,
    begin: Instant,
) -> Vec<u32> {
    let mut rng = Rng(0x1234_5678_9ABC_DEF1 ^ thread << 40);
    let mut latencies = Vec::new();
    let mut n = thread * pages / 2;
    while !stop.load(Ordering::Relaxed) {
        for i in 0..64 {
            let page = match workload {
                "uniform" => rng.next() % pages,
                "zipf" => zipf(&mut rng, pages),
                "scan" => n % pages,
                // A tenth of the memory is hot, another tenth every half second.
                _ if rng.next().is_multiple_of(16) => rng.next() % pages,
                _ => (begin.elapsed().as_millis() as u64 / 500 * (pages / 10) + rng.next() % (pages / 10)) % pages,
            };
            n += 1;
            let timed = (i == 0).then(Instant::now);
            // SAFETY: inside the memory; the byte belongs to nobody.
            unsafe {
                let at = base.add(page as usize * PAGE + (n as usize * 64) % PAGE);
                at.write_volatile(at.read_volatile().wrapping_add(1));
            }
            latencies.extend(timed.map(|t| t.elapsed().as_nanos() as u32));
        }
        total.fetch_add(64, Ordering::Relaxed);
    }
    latencies
}

/// A cgroup with a limit.
struct Group(PathBuf);

impl Group {
    fn new(bytes: usize) -> Result<Group, String> {
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        if swaps.lines().count() < 2 {
            return Err("no swap device is active".into());
        }
        let (root, limit) = match Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            true => (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let path = root.join(format!("refault-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let group = Group(path);
        fs::write(group.0.join(limit), bytes.to_string()).map_err(|e| format!("setting {limit}: {e}"))?;
        Ok(group)
    }

    fn run(&self, workload: &str, args: &[String]) -> String {
        let me = std::env::current_exe().expect("a program knows where it is");
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        let output =
            Command::new("sh").args(["-c", &script]).arg(me).args(args).env("REFAULT_BENCH_CHILD", workload).output();
        match output {
            Ok(o) if o.status.success() => String::from_utf8_lossy(&o.stdout).trim_end().into(),
            Ok(o) => format!("failed: {} {}", o.status, String::from_utf8_lossy(&o.stderr).trim_end()),
            Err(e) => format!("failed: {e}"),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        _ = fs::remove_dir(&self.0);
    }
}
