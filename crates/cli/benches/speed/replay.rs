//! Accesses a second of every policy, beside the limits: what it costs to look at the trace at all.
//!
//! zipf(1.0), one thread, memory of 10 % and 50 %. The limit loops run before and after the
//! policies in the same process, so that a noisy machine shows.

use refault_cli::replay::cell::Cell;
use refault_mm::{Config, Policy, opt};
use refault_trace::generate::{Pattern, Stream, Workload};
use refault_trace::{LoadOptions, PackedAccess, Trace, Via};
use std::io::Write;

use crate::rows::{Rows, flag, has, is_wanted, number};

const UNIT: &str = "M accesses/s";

/// How pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Pages of a file, read by descriptor.
    Fd,
    /// Those, read through a mapping.
    Map,
    /// Anonymous memory; every access is a write.
    Anon,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Fd, Way::Map, Way::Anon];

    /// zipf(1.0) so.
    pub fn trace(self, accesses: u64, pages: u32) -> Trace {
        match self {
            Way::Fd => zipf(Via::Fd, accesses, pages),
            Way::Map => zipf(Via::Map, accesses, pages),
            Way::Anon => {
                let phases = [format!("{accesses}: N:zipf:{pages}:kind=anon,op=w,permute=yes")];
                let mut source = Workload::parse(&phases, 1).and_then(|w| w.generator("anon")).expect("a workload");
                Trace::load(&mut source, &LoadOptions::default()).expect("a trace")
            }
        }
    }
}

/// The trace of files.
pub fn zipf(via: Via, accesses: u64, pages: u32) -> Trace {
    let stream = Stream::new("set", Pattern::Zipf { skew: 1.0, permute: true }, pages);
    let mut source = Workload::single(stream, accesses, 1).generator("zipf").expect("a workload");
    Trace::load(&mut source, &LoadOptions { default_via: via, ..LoadOptions::default() }).expect("a trace")
}

/// Replays a trace in so many pages; the misses.
pub fn cell(trace: &Trace, policy: Policy, memory: u64) -> u64 {
    let mut cell = Cell::new(trace, Config::new(policy), memory, u64::MAX).expect("a cell");
    cell.count(&trace.accesses);
    cell.misses
}

/// Replays a trace under OPT; the misses.
pub fn opt(trace: &Trace, memory: u64) -> u64 {
    let pages = trace.footprint_pages() as usize;
    let next = opt::next_uses(trace.accesses.iter().map(|a| a.page()), pages).expect("numbers");
    let mut opt = opt::Opt::new(memory, next.len());
    next.iter().map(|&next| u64::from(!opt.access(next))).sum()
}

fn stream_only(accesses: &[PackedAccess]) -> u32 {
    accesses.iter().fold(0, |sum, a| sum ^ a.page())
}

pub fn byte_each(accesses: &[PackedAccess], bytes: &mut [u8]) -> u64 {
    let mut first = 0;
    for a in accesses {
        let b = &mut bytes[a.page() as usize];
        first += u64::from(*b == 0);
        *b = 1;
    }
    first
}

pub fn descriptor_each(accesses: &[PackedAccess], table: &mut [[u32; 4]]) -> u64 {
    let mut first = 0;
    for (i, a) in accesses.iter().enumerate() {
        let d = &mut table[a.page() as usize];
        first += u64::from(d[0] == 0);
        *d = [d[0] + 1, i as u32, d[1], d[2]];
    }
    first
}

fn limits(rows: &mut Rows, trace: &Trace, way: Way, when: &str) {
    let (amount, pages) = (trace.accesses.len() as f64 / 1e6, trace.footprint_pages() as usize);
    let runs = number("--runs", 3);
    let mut add = |what: &str, run: &mut dyn FnMut() -> u64| {
        let row = rows.add(format!("{way:?} limit {when}: {what}"), UNIT, amount, runs, run);
        println!("  limit: {what:28} {:8.0} {:8.0}", row.best(), row.median());
    };
    add("stream only", &mut || stream_only(&trace.accesses).into());
    let mut bytes = vec![0u8; pages];
    add("test and set a byte each", &mut || byte_each(&trace.accesses, &mut bytes));
    let mut table = vec![[0u32; 4]; pages];
    add("a 16-byte descriptor each", &mut || descriptor_each(&trace.accesses, &mut table));
}

fn policies(rows: &mut Rows, trace: &Trace, way: Way) {
    let (n, pages) = (trace.accesses.len() as f64, u64::from(trace.footprint_pages()));
    let runs = number("--runs", 3);
    for percent in [10, 50].into_iter().filter(|&percent| number("--percent", percent) == percent) {
        let memory = pages * percent / 100;
        let mut add = |policy: &str, run: &dyn Fn() -> u64| {
            if !is_wanted(&format!("{percent} % {policy}")) {
                return;
            }
            let mut misses = 0;
            let row = rows.add(format!("{way:?} {percent} % {policy}"), UNIT, n / 1e6, runs, || misses = run());
            let hit = 1.0 - misses as f64 / n;
            println!("  {percent:2} % {policy:30} {:8.1} {:8.1}   hit rate {hit:.4}", row.best(), row.median());
        };
        Policy::ALL.into_iter().for_each(|policy| add(policy.name(), &|| cell(trace, policy, memory)));
        add("opt", &|| opt(trace, memory));
    }
}

/// Writes the accesses as oracleGeneral, for other simulators: time, page, a size of 1, next use
/// unknown.
fn dump(trace: &Trace, path: &str) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for (i, a) in trace.accesses.iter().enumerate() {
        out.write_all(&(i as u32).to_le_bytes())?;
        // Some take 0 for no object.
        out.write_all(&(u64::from(a.page()) + 1).to_le_bytes())?;
        out.write_all(&1u32.to_le_bytes())?;
        out.write_all(&(-1i64).to_le_bytes())?;
    }
    out.flush()
}

/// Every row of each way.
pub fn run(rows: &mut Rows) -> Result<(), String> {
    let is_way = |way: &Way| flag("--via").is_none_or(|v| v.split(',').any(|v| v == format!("{way:?}").to_lowercase()));
    for way in Way::ALL.into_iter().filter(is_way) {
        let trace = way.trace(number("--accesses", 20_000_000), number("--pages", 1_000_000) as u32);
        if let Some(path) = flag("--dump") {
            return dump(&trace, &path).map_err(|e| format!("{path}: {e}"));
        }
        let (n, pages, runs) = (trace.accesses.len(), trace.footprint_pages(), number("--runs", 3));
        println!(
            "zipf(1.0), {n} accesses over {pages} pages, {way:?}; million accesses a second, best and median of {runs}"
        );
        let limited = is_wanted("limits") && !has("--no-limits");
        if limited {
            limits(rows, &trace, way, "before");
        }
        policies(rows, &trace, way);
        if limited {
            limits(rows, &trace, way, "after");
        }
    }
    println!(
        "bytes: {} a resident page, {} a shadow",
        refault_mm::Engine::BYTES_PER_RESIDENT_PAGE,
        refault_mm::Engine::BYTES_PER_SHADOW
    );
    Ok(())
}
