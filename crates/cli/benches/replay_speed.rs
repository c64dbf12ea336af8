//! Accesses a second of every policy, beside the limits: what it costs to look at the trace at all.
//!
//! `cargo bench -p refault-cli --bench replay_speed`: zipf(1.0), 20 million accesses over 1 million
//! pages, one thread, memory of 10 % and 50 %. The limit loops run before and after every policy in
//! the same process, so that a noisy machine shows. `-- --accesses N --pages N --via map` change
//! the workload; `--only "10 % mglru"` is one row, `--runs N` how often each is run.

use std::hint::black_box;
use std::time::Instant;

use refault_cli::replay::cell::{Cell, CountOnly};
use refault_mm::{Config, Policy, opt};
use refault_trace::generate::{Pattern, Stream, Workload};
use refault_trace::{LoadOptions, PackedAccess, Trace, Via};

fn flag(name: &str) -> Option<String> {
    let args: Vec<String> = std::env::args().collect();
    args.iter().position(|a| a == name).and_then(|i| args.get(i + 1).cloned())
}

fn number(name: &str, default: u64) -> u64 {
    flag(name).map_or(default, |v| v.parse().expect("a number"))
}

fn workload(via: Via) -> Trace {
    let pages = number("--pages", 1_000_000) as u32;
    let stream = Stream::new("set", Pattern::Zipf { skew: 1.0, permute: true }, pages);
    let mut source =
        Workload::single(stream, number("--accesses", 20_000_000), 1).generator("zipf").expect("a workload");
    Trace::load(&mut source, &LoadOptions { default_via: via, ..LoadOptions::default() }).expect("a trace")
}

/// Whether `--only ROW` asks for this row, or there is no such flag.
fn is_wanted(row: &str) -> bool {
    flag("--only").is_none_or(|only| only == row)
}

/// One run. A function of its own, so that a profiler can be told to look at nothing else.
#[inline(never)]
fn seconds<T>(run: &mut impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

/// Best of `n` runs, in million accesses a second.
fn best_of<T>(n: usize, accesses: usize, mut run: impl FnMut() -> T) -> f64 {
    let best = (0..n).map(|_| seconds(&mut run)).fold(f64::MAX, f64::min);
    accesses as f64 / best / 1e6
}

fn stream_only(accesses: &[PackedAccess]) -> u32 {
    accesses.iter().fold(0, |sum, a| sum ^ a.page())
}

fn byte_each(accesses: &[PackedAccess], bytes: &mut [u8]) -> u64 {
    let mut first = 0;
    for a in accesses {
        let b = &mut bytes[a.page() as usize];
        first += u64::from(*b == 0);
        *b = 1;
    }
    first
}

fn descriptor_each(accesses: &[PackedAccess], table: &mut [[u32; 4]]) -> u64 {
    let mut first = 0;
    for (i, a) in accesses.iter().enumerate() {
        let d = &mut table[a.page() as usize];
        first += u64::from(d[0] == 0);
        *d = [d[0] + 1, i as u32, d[1], d[2]];
    }
    first
}

fn limits(trace: &Trace) {
    let (n, pages) = (trace.accesses.len(), trace.footprint_pages() as usize);
    println!("  limit: stream only                  {:8.0}", best_of(3, n, || stream_only(&trace.accesses)));
    let mut bytes = vec![0u8; pages];
    println!("  limit: test and set a byte each     {:8.0}", best_of(3, n, || byte_each(&trace.accesses, &mut bytes)));
    let mut table = vec![[0u32; 4]; pages];
    println!(
        "  limit: a 16-byte descriptor each    {:8.0}",
        best_of(3, n, || descriptor_each(&trace.accesses, &mut table))
    );
}

fn main() {
    let runs = number("--runs", 3) as usize;
    for via in [Via::Fd, Via::Map] {
        if flag("--via").is_some_and(|v| (v == "map") != (via == Via::Map)) {
            continue;
        }
        let trace = workload(via);
        let (n, pages) = (trace.accesses.len(), u64::from(trace.footprint_pages()));
        println!("zipf(1.0), {n} accesses over {pages} pages, {via:?}; million accesses a second, best of {runs}");
        if is_wanted("limits") {
            limits(&trace);
        }
        for percent in [10, 50] {
            let memory = pages * percent / 100;
            for policy in Policy::ALL {
                if !is_wanted(&format!("{percent} % {}", policy.name())) {
                    continue;
                }
                let mut last = None;
                let speed = best_of(runs, n, || {
                    let mut cell = Cell::new(&trace, Config::new(policy), memory, u64::MAX).expect("a cell");
                    cell.run(&trace.accesses, None, &mut CountOnly);
                    last = Some(cell.misses);
                });
                let hit = 1.0 - last.unwrap_or(0) as f64 / n as f64;
                println!("  {percent:2} % {:32} {speed:8.1}   hit rate {hit:.4}", policy.name());
            }
            if !is_wanted(&format!("{percent} % opt")) {
                continue;
            }
            let mut hits = 0u64;
            let speed = best_of(runs, n, || {
                let next = opt::next_uses(trace.accesses.iter().map(|a| a.page()), pages as usize).expect("numbers");
                let mut opt = opt::Opt::new(memory, n);
                hits = next.iter().map(|&next| u64::from(opt.access(next))).sum();
            });
            println!("  {percent:2} % {:32} {speed:8.1}   hit rate {:.4}", "opt", hits as f64 / n as f64);
        }
        if is_wanted("limits") {
            limits(&trace);
        }
    }
    println!(
        "bytes: {} a resident page, {} a shadow",
        refault_mm::Engine::BYTES_PER_RESIDENT_PAGE,
        refault_mm::Engine::BYTES_PER_SHADOW
    );
}
