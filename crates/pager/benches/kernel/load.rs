//! The accesses, and what is measured of them.

use std::fs;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use refault_testing::Rng;

use super::options::Options;

const PAGE: usize = 4096;
pub const WORKLOADS: [&str; 4] = ["uniform", "zipf", "scan", "phases"];
/// One access of so many is timed.
const SAMPLE: u64 = 64;

/// Figures of a row.
#[derive(Clone, Copy, Default)]
pub struct Figures {
    pub per_second: f64,
    /// Accesses that waited for a page to be read, of all.
    pub miss_share: f64,
    /// Pages read, of all accesses.
    pub read_share: f64,
    /// CPU time of all threads of the process and of kswapd, in user and kernel mode, by pages
    /// read.
    pub cpu_us_per_read: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub in_place_bytes: u64,
    pub overhead_bytes: u64,
}

impl Figures {
    pub fn line(&self) -> String {
        let f = self;
        format!(
            "{} {} {} {} {} {} {} {}",
            f.per_second,
            f.miss_share,
            f.read_share,
            f.cpu_us_per_read,
            f.p50_us,
            f.p99_us,
            f.in_place_bytes,
            f.overhead_bytes
        )
    }

    pub fn parse(line: &str) -> Option<Figures> {
        let n: Vec<f64> = line.split_whitespace().map(|w| w.parse().ok()).collect::<Option<_>>()?;
        let [per_second, miss_share, read_share, cpu_us_per_read, p50_us, p99_us, in_place, overhead] = n[..] else {
            return None;
        };
        let (in_place_bytes, overhead_bytes) = (in_place as u64, overhead as u64);
        Some(Figures {
            per_second,
            miss_share,
            read_share,
            cpu_us_per_read,
            p50_us,
            p99_us,
            in_place_bytes,
            overhead_bytes,
        })
    }
}

fn usage() -> libc::rusage {
    // SAFETY: plain data, filled by the call.
    unsafe {
        let mut u = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u
    }
}

/// Major faults of this process, and pages that the system read from swap.
pub fn kernel_misses() -> (u64, u64) {
    (usage().ru_majflt as u64, vmstat("pswpin"))
}

/// Major faults of this process, and pages that the system read from files.
pub fn kernel_file_misses() -> (u64, u64) {
    // In KiB, whatever its name says.
    (usage().ru_majflt as u64, vmstat("pgpgin") / 4)
}

fn vmstat(name: &str) -> u64 {
    let all = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    all.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or(0)
}

/// CPU time of this process, and of kswapd.
fn cpu() -> Duration {
    let u = usage();
    let of = |t: libc::timeval| Duration::from_micros(t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64);
    of(u.ru_utime) + of(u.ru_stime) + kswapd()
}

fn kswapd() -> Duration {
    thread_local! {
        static PIDS: Vec<String> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|p| fs::read_to_string(format!("/proc/{p}/comm")).is_ok_and(|c| c.starts_with("kswapd")))
            .collect();
    }
    let ticks = |pid: &String| -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name: state is field 3, utime 14, stime 15.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    };
    let ticks: u64 = PIDS.with(|pids| pids.iter().filter_map(ticks).sum());
    Duration::from_millis(ticks * 10)
}

/// Zipf with exponent 1 by inversion of the continuous distribution; ranks are scattered over the
/// pages.
fn zipf(rng: &mut Rng, pages: u64) -> u64 {
    let rank = ((pages as f64 + 1.0).ln() * rng.unit()).exp() as u64 - 1;
    rank.min(pages - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % pages
}

#[derive(Clone, Copy)]
struct Base(*mut u8);
// SAFETY: threads write single bytes whose values nobody depends on.
unsafe impl Send for Base {}

/// Records of 64 bytes, 24 of them noise: LZ4 makes a page 2.2 times smaller.
fn fill(base: *mut u8, pages: u64) {
    const TEMPLATE: [u64; 8] = [0, 0, 0, 0x6E61_6D65_3A20_0000, 0x7265_6661_756C_7420, 0x6167_653A, 0x3C2F_723E, 0x0A];
    let mut rng = Rng(88_172_645_463_325_252);
    for word in 0..pages as usize * PAGE / 8 {
        let value = match word % 8 {
            0..3 => rng.next(),
            i => TEMPLATE[i],
        };
        // SAFETY: inside the memory.
        unsafe { base.cast::<u64>().add(word).write_volatile(value) };
    }
}

/// Accesses to a page of the region, counted: to warm up half as many more. Workloads of few misses
/// have more of them, for their accesses are fast.
fn accesses_per_page(workload: &str) -> u64 {
    match workload {
        "uniform" | "scan" => 4,
        _ => 32,
    }
}

/// Fills the memory, accesses it to warm up, and then to measure.
pub fn run(o: &Options, workload: &str, threads: usize, base: *mut u8, misses: impl Fn() -> (u64, u64)) -> Figures {
    let pages = (o.region / PAGE) as u64;
    fill(base, pages);
    let each = (pages as f64 * accesses_per_page(workload) as f64 * o.scale / threads as f64) as u64 / SAMPLE * SAMPLE;
    let barrier = Barrier::new(threads + 1);
    let mut latencies: Vec<u32> = Vec::new();
    let (mut before, mut cpu_before, mut begin) = ((0, 0), Duration::ZERO, Instant::now());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads as u64)
            .map(|t| {
                let (barrier, base) = (&barrier, Base(base));
                let mut walk = Walk::new(workload, o.reads_percent, pages, t, each);
                scope.spawn(move || {
                    let base = { base }.0;
                    walk.go(base, each / 2);
                    barrier.wait();
                    barrier.wait();
                    walk.latencies.clear();
                    walk.go(base, each);
                    walk.latencies
                })
            })
            .collect();
        barrier.wait();
        (before, cpu_before, begin) = (misses(), cpu(), Instant::now());
        barrier.wait();
        threads.into_iter().for_each(|t| latencies.extend(t.join().expect("a thread ends")));
    });
    let (elapsed, cpu, after) = (begin.elapsed().as_secs_f64(), cpu() - cpu_before, misses());
    latencies.sort_unstable();
    let at = |q: f64| f64::from(latencies[((latencies.len() - 1) as f64 * q) as usize]) / 1000.0;
    let total = (each * threads as u64) as f64;
    Figures {
        per_second: total / elapsed,
        miss_share: (after.0 - before.0) as f64 / total,
        read_share: (after.1 - before.1) as f64 / total,
        cpu_us_per_read: cpu.as_secs_f64() * 1e6 / (after.1 - before.1).max(1) as f64,
        p50_us: at(0.5),
        p99_us: at(0.99),
        ..Figures::default()
    }
}

/// The accesses of a thread.
struct Walk {
    kind: &'static str,
    reads_percent: u64,
    pages: u64,
    rng: Rng,
    /// Accesses so far.
    n: u64,
    /// Where a scan begins.
    first: u64,
    /// Accesses of a phase.
    phase: u64,
    latencies: Vec<u32>,
}

impl Walk {
    fn new(workload: &str, reads_percent: u64, pages: u64, thread: u64, each: u64) -> Walk {
        let kind = WORKLOADS.into_iter().find(|w| *w == workload).expect("it was checked");
        Walk {
            kind,
            reads_percent,
            pages,
            rng: Rng(0x1234_5678_9ABC_DEF1 ^ thread << 40),
            n: 0,
            first: thread * pages / 2,
            phase: (each / 4).max(1),
            latencies: Vec::with_capacity((each / SAMPLE) as usize + 1),
        }
    }

    fn page(&mut self) -> u64 {
        let (rng, pages) = (&mut self.rng, self.pages);
        match self.kind {
            "uniform" => rng.next() % pages,
            "zipf" => zipf(rng, pages),
            "scan" => (self.first + self.n) % pages,
            // A tenth of the memory is hot, and another tenth in each phase.
            _ if rng.next().is_multiple_of(16) => rng.next() % pages,
            _ => (self.n / self.phase * (pages / 10) + rng.next() % (pages / 10)) % pages,
        }
    }

    fn go(&mut self, base: *mut u8, accesses: u64) {
        for i in 0..accesses {
            let page = self.page();
            let writes = self.reads_percent == 0 || self.rng.next() % 100 >= self.reads_percent;
            let timed = i.is_multiple_of(SAMPLE).then(Instant::now);
            self.n += 1;
            // SAFETY: inside the memory; the byte belongs to nobody.
            unsafe {
                let at = base.add(page as usize * PAGE + (self.n as usize * 64) % PAGE);
                let value = at.read_volatile();
                if writes {
                    at.write_volatile(value.wrapping_add(1));
                }
            }
            self.latencies.extend(timed.map(|t| t.elapsed().as_nanos() as u32));
        }
    }
}
