//! Instructions of ten hot paths, counted by callgrind: times of a virtual machine vary by a factor
//! of two, these by a thousandth.
//!
//! Counts are of one compiler, so that the file of what they were names it. With another one the
//! counts are shown, and nothing is compared.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use refault_lab::scenario::Scenario;
use refault_mm::{CacheExtPolicy, Policy};
use refault_trace::generate::Workload;
use refault_trace::{LoadOptions, NativeWriter, OpenOptions, RecordSource, Trace, Via, open};
use serde::{Deserialize, Serialize};

use crate::rows::{flag, has};
use crate::{lab, replay};

/// Growth over the count before that fails.
const BOUND: f64 = 0.03;

const ACCESSES: u64 = 300_000;
const PAGES: u32 = 20_000;

/// Runs what is counted.
type Counted = Box<dyn FnMut() -> u64>;

/// A path: what prepares it, and returns what is counted.
type Prepare = fn() -> Result<Counted, String>;

const PATHS: [(&str, Prepare); 10] = [
    ("lru, by descriptor, 10 %", || cell(Via::Fd, Policy::Lru, 10)),
    ("mglru, by descriptor, 10 %", || cell(Via::Fd, Policy::Mglru, 10)),
    ("mglru, by descriptor, 50 %", || cell(Via::Fd, Policy::Mglru, 50)),
    ("lru, mapped, 10 %", || cell(Via::Map, Policy::Lru, 10)),
    ("mglru, mapped, 10 %", || cell(Via::Map, Policy::Mglru, 10)),
    ("mglru, anonymous, 25 %", anonymous),
    ("s3fifo, by descriptor, 10 %", || cell(Via::Fd, Policy::Ext(CacheExtPolicy::S3Fifo), 10)),
    ("opt, 10 %", opt),
    ("a native trace, decoded", decode),
    ("a machine, db-switch", machine),
];

fn share(trace: &Trace, percent: u64) -> u64 {
    u64::from(trace.footprint_pages()) * percent / 100
}

fn cell(via: Via, policy: Policy, percent: u64) -> Result<Counted, String> {
    let trace = replay::zipf(via, ACCESSES, PAGES);
    let memory = share(&trace, percent);
    Ok(Box::new(move || replay::cell(&trace, policy, memory)))
}

fn anonymous() -> Result<Counted, String> {
    let phases = [format!("{}: N:zipf:{PAGES}:kind=anon,op=w,permute=yes", ACCESSES / 2)];
    let mut source = Workload::parse(&phases, 1).and_then(|w| w.generator("anon")).map_err(|e| e.to_string())?;
    let trace = Trace::load(&mut source, &LoadOptions::default()).map_err(|e| e.to_string())?;
    let memory = share(&trace, 25);
    Ok(Box::new(move || replay::cell(&trace, Policy::Mglru, memory)))
}

fn opt() -> Result<Counted, String> {
    let trace = replay::zipf(Via::Fd, ACCESSES, PAGES);
    let memory = share(&trace, 10);
    Ok(Box::new(move || replay::opt(&trace, memory)))
}

fn decode() -> Result<Counted, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = dir.path().join("t.parquet");
    let phases = [format!("{ACCESSES}: A:zipf:{PAGES}:permute=yes")];
    let write = || {
        let (mut source, mut chunk) = (Workload::parse(&phases, 1)?.generator("t")?, Vec::new());
        let mut writer = NativeWriter::create(&path)?;
        while source.next_chunk(&mut chunk)? {
            writer.write(&chunk)?;
        }
        writer.finish(source.header())
    };
    write().map_err(|e| e.to_string())?;
    Ok(Box::new(move || {
        // The directory is there as long as this.
        let path = dir.path().join("t.parquet");
        let mut source = open(&path, &OpenOptions::default()).expect("a trace");
        Trace::load(source.as_mut(), &LoadOptions::default()).expect("a trace").accesses.len() as u64
    }))
}

fn machine() -> Result<Counted, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/db-switch.toml");
    let scenario = Scenario::load(path).map_err(|e| e.to_string())?.scale(512.0)?;
    Ok(Box::new(move || lab::machine(&scenario).expect("a machine") as u64))
}

/// Function that callgrind is told to look at, and nothing else.
#[inline(never)]
fn counted(run: &mut Counted) -> u64 {
    black_box(run())
}

/// `--path NAME`: one path, in the process that callgrind looks at.
pub fn run_path() -> Result<ExitCode, String> {
    let name = flag("--path").unwrap_or_default();
    let (_, prepare) = PATHS.iter().find(|(path, _)| *path == name).ok_or(format!("--path {name}: is none of them"))?;
    let mut run = prepare()?;
    println!("{}", counted(&mut run));
    Ok(ExitCode::SUCCESS)
}

/// The file of what counts were.
#[derive(Serialize, Deserialize)]
struct Baseline {
    rustc: String,
    arch: String,
    instructions: BTreeMap<String, u64>,
}

impl Baseline {
    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/speed/instructions.json")
    }

    fn read() -> Result<Baseline, String> {
        let path = Baseline::path();
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}; --write makes it", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn write(&self) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        std::fs::write(Baseline::path(), text + "\n").map_err(|e| format!("{}: {e}", Baseline::path().display()))
    }
}

fn rustc() -> Result<String, String> {
    let command = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(&command).arg("--version").output().map_err(|e| format!("{command}: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Output of callgrind on this program with these arguments, collecting in one function alone.
pub fn callgrind(function: &str, flags: &[&str], arguments: &[&str]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &format!("--toggle-collect=*{function}*")])
        .args(flags)
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("valgrind: {e}; install it"))?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Instructions that callgrind collects of a path.
fn count(name: &str) -> Result<u64, String> {
    let text = callgrind("instructions::counted", &[], &["--path", name])?;
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok());
    collected.filter(|&n| n > 0).ok_or_else(|| format!("{name}: callgrind counted nothing: {text}"))
}

/// Instructions of all paths, in their order. Counts are of the program alone, so that several are
/// counted at a time.
fn count_all() -> Result<Vec<u64>, String> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = || -> Result<Vec<(usize, u64)>, String> {
        let mut counts = Vec::new();
        loop {
            let path = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, _)) = PATHS.get(path) else { return Ok(counts) };
            counts.push((path, count(name)?));
        }
    };
    let counts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<Result<Vec<_>, String>>()
    })?;
    let counts: BTreeMap<usize, u64> = counts.into_iter().flatten().collect();
    Ok(counts.into_values().collect())
}

/// `--instructions`.
pub fn run() -> Result<ExitCode, String> {
    let (rustc, arch) = (rustc()?, std::env::consts::ARCH.to_owned());
    let mut now = Baseline { rustc, arch, instructions: BTreeMap::new() };
    let before = if has("--write") { None } else { Some(Baseline::read()?) };
    let same = before.as_ref().is_some_and(|b| (&b.rustc, &b.arch) == (&now.rustc, &now.arch));
    println!("{:32} {:>14} {:>14} {:>8}", "instructions", "before", "now", "now/old");
    let mut more = Vec::new();
    for ((name, _), count) in PATHS.into_iter().zip(count_all()?) {
        now.instructions.insert(name.into(), count);
        let was = before.as_ref().and_then(|b| b.instructions.get(name)).copied();
        let ratio = was.map(|was| count as f64 / was as f64);
        let shown = |n: Option<String>| n.unwrap_or_else(|| "-".into());
        let ratio_text = shown(ratio.map(|r| format!("{r:.4}")));
        println!("{name:32} {:>14} {count:>14} {ratio_text:>8}", shown(was.map(|n| n.to_string())));
        if before.is_some() && ratio.is_none_or(|r| r > 1.0 + BOUND) {
            more.push(name);
        }
    }
    if has("--write") {
        now.write()?;
    } else if !same {
        println!("counted with {} on {}: another compiler than before, so nothing is compared", now.rustc, now.arch);
    } else if !more.is_empty() {
        eprintln!("error: over 3 % more, or not counted before: {}; --write takes it as it is", more.join("; "));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
