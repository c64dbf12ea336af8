//! Bytes of memory an access moves, and its instructions: what callgrind's simulated caches say,
//! for machines whose processor counts neither.
//!
//! The caches are 32 KiB, and 1 MiB that everything beyond is fetched through, in lines of 64
//! bytes. Prefetching by hardware is not simulated: it moves no other lines, but sooner.

use std::hint::black_box;
use std::process::ExitCode;

use refault_mm::Policy;
use refault_trace::Trace;

use crate::instructions::callgrind;
use crate::replay::{self, Way};
use crate::rows::{flag, number};

const LINE_BYTES: f64 = 64.0;

/// Path that is replayed: a loop that is a limit, or a policy in a share of the pages.
#[derive(Clone, Copy)]
enum Path {
    Bytes,
    Descriptors,
    Policy(Policy, u64),
}

const PATHS: [(&str, Path); 6] = [
    ("a byte each", Path::Bytes),
    ("a 16-byte descriptor each", Path::Descriptors),
    ("lru, 10 %", Path::Policy(Policy::Lru, 10)),
    ("lru, 50 %", Path::Policy(Policy::Lru, 50)),
    ("mglru, 10 %", Path::Policy(Policy::Mglru, 10)),
    ("mglru, 50 %", Path::Policy(Policy::Mglru, 50)),
];

fn trace(way: Way) -> Trace {
    way.trace(number("--accesses", 2_000_000), number("--pages", 200_000) as u32)
}

/// Function that callgrind is told to look at, and nothing else.
#[inline(never)]
fn simulated(path: Path, trace: &Trace, table: &mut [[u32; 4]], bytes: &mut [u8]) -> u64 {
    black_box(match path {
        Path::Bytes => replay::byte_each(&trace.accesses, bytes),
        Path::Descriptors => replay::descriptor_each(&trace.accesses, table),
        Path::Policy(policy, percent) => {
            replay::cell(trace, policy, u64::from(trace.footprint_pages()) * percent / 100)
        }
    })
}

/// `--bytes-of WAY PATH`: one path, in the process that callgrind looks at.
pub fn run_path() -> Result<ExitCode, String> {
    let name = flag("--bytes-of").unwrap_or_default();
    let found = |(way, (path, p)): (Way, (&str, Path))| (name == format!("{way:?} {path}")).then_some((way, p));
    let mut all = Way::ALL.into_iter().flat_map(|way| PATHS.into_iter().map(move |path| (way, path)));
    let (way, path) = all.find_map(found).ok_or(format!("--bytes-of {name}: is none of them"))?;
    let trace = trace(way);
    let pages = trace.footprint_pages() as usize;
    println!("{}", simulated(path, &trace, &mut vec![[0; 4]; pages], &mut vec![0; pages]));
    Ok(ExitCode::SUCCESS)
}

/// The number at the end of the line of valgrind's summary that begins so.
fn summed(text: &str, what: &str) -> Result<f64, String> {
    let line = text.lines().find_map(|line| line.split(what).nth(1));
    let words = line.and_then(|rest| rest.trim_start_matches([':', ' ']).split_whitespace().next());
    let number = words.and_then(|word| word.replace(',', "").parse().ok());
    number.ok_or_else(|| format!("valgrind says nothing of {what:?}: {text}"))
}

/// `--bytes`.
pub fn run() -> Result<ExitCode, String> {
    let accesses = number("--accesses", 2_000_000);
    let pages = number("--pages", 200_000);
    println!("| zipf(1.0), {accesses} accesses to {pages} pages | bytes an access | instructions an access |");
    println!("|---|---:|---:|");
    for way in Way::ALL {
        for (path, _) in PATHS {
            let name = format!("{way:?} {path}");
            let caches = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];
            let trace = ["--accesses", &accesses.to_string(), "--pages", &pages.to_string()];
            let arguments = [&["--bytes-of", &name], &trace[..]].concat();
            let text = callgrind("bytes::simulated", &caches, &arguments)?;
            let lines = summed(&text, "LLd misses")?;
            let instructions = summed(&text, "I   refs")?;
            let each = |sum: f64| sum / accesses as f64;
            println!("| {name} | {:.1} | {:.0} |", each(lines * LINE_BYTES), each(instructions));
        }
    }
    Ok(ExitCode::SUCCESS)
}
