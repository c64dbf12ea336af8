//! Cost of reclaim of the whole machine with 1 to 10,000 memory cgroups on the same memory.
//!
//! `cargo bench -p refault-mm --bench memcgs`: 4 million pages (16 GiB), files of the same size in
//! every group, read once, one page of each group after the other, so that kswapd runs again and
//! again. Only its time counts, the median of its runs. Then `memory.reclaim` of the root asks for
//! 32 pages at a time, for 1,024, and for a tenth of memory (processor time). `-- --pages N`
//! changes the memory, `--groups 100,10000` how many there are, `--only mglru,memcg-lru` which of
//! the ways to choose among them, and `--best-of N` how often each is measured.

use std::time::{Duration, Instant};

use refault_mm::{
    Ack, Config, Counter, Effect, Engine, MappingKind, MemcgId, MemcgSelection, NodeConfig, PageId, Policy, Touch,
    World,
};
use refault_mm::{MemcgConfig, ReadaheadConfig};

/// Reads and writes are done at once. kswapd is only noted, so that its time is known.
#[derive(Default)]
struct Machine {
    woken: bool,
}

impl World for Machine {
    fn effect(&mut self, effect: Effect) -> Ack {
        if matches!(effect, Effect::WakeKswapd { .. }) {
            self.woken = true;
            return Ack::Pending;
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, _: PageId) -> bool {
        false
    }

    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        false
    }
}

struct Measured {
    /// Costs of kswapd: a page, and a run.
    page_ns: f64,
    run_us: f64,
    /// Pages that a run reclaims.
    run_pages: f64,
    /// Cost of a page of `memory.reclaim`, where 32, 1,024, and a tenth of memory are asked for.
    asked_page_ns: [f64; 3],
    /// Groups that a request for 32 pages visits.
    visits: f64,
}

fn arg(name: &str) -> Option<String> {
    let args: Vec<String> = std::env::args().collect();
    args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned()
}

/// Processor time of this thread, to a tick; where the system does not say it, any time.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = text.and_then(|text| text.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn number_arg(name: &str, default: u64) -> u64 {
    arg(name).map_or(default, |v| v.parse().expect("a number"))
}

fn measure(policy: Policy, memcgs: MemcgSelection, groups: u64, pages: u64) -> Measured {
    let cfg = Config {
        node: Some(NodeConfig::new(pages)),
        total_pages: pages,
        memcg: MemcgConfig { selection: memcgs, ..MemcgConfig::default() },
        readahead: ReadaheadConfig { file_pages: 0, ..ReadaheadConfig::default() },
        ..Config::new(policy)
    };
    let mut e = Engine::new(cfg).expect("a possible configuration");
    let mut w = Machine::default();
    // Half as much again as memory: the rest is what kswapd makes room for.
    let each = pages * 3 / 2 / groups;
    let files: Vec<PageId> = (0..groups)
        .map(|i| {
            let id = e.add_memcg(MemcgId::ROOT, &format!("/{i}"), u64::MAX, u64::MAX).expect("a group");
            e.add_mapping(MappingKind::File, id, 0..each).expect("a file").1
        })
        .collect();
    let mut runs: Vec<Duration> = Vec::new();
    for i in 0..each as u32 {
        for file in &files {
            e.access(&mut w, PageId(file.0 + i), Touch::Read);
            if std::mem::take(&mut w.woken) {
                let start = Instant::now();
                e.run_kswapd(&mut w, usize::MAX);
                runs.push(start.elapsed());
            }
        }
    }
    let stolen = e.vmstat().get(Counter::PgstealKswapd);
    e.take_work();
    let mut visits = 0.0;
    let asked_page_ns = [(32, u64::MAX), (1_024, u64::MAX), (pages / 10, 1)].map(|(asked, most_calls)| {
        let (start, mut freed, mut calls, mut over) = (cpu_time(), 0, 0, false);
        // A call that frees far more than was asked for must leave something for the next.
        while calls < most_calls && freed < pages / 64 && !over {
            // One that gives up has freed something, too.
            freed += e.reclaim(&mut w, MemcgId::ROOT, asked, None).unwrap_or_else(|again| again.reclaimed);
            calls += 1;
            // Looking takes as long as a small request.
            over = calls % 32 == 0 && cpu_time() - start > Duration::from_millis(500);
        }
        let ns = (cpu_time() - start).as_nanos() as f64;
        let visited = e.take_work().memcgs;
        if asked == 32 {
            visits = visited as f64 / calls as f64;
        }
        ns / freed.max(1) as f64
    });
    runs.sort_unstable();
    // Others may have had the processor during some of them.
    let run_us = runs.get(runs.len() / 2).map_or(0.0, |time| time.as_nanos() as f64 / 1e3);
    let run_pages = stolen as f64 / runs.len().max(1) as f64;
    Measured { page_ns: run_us * 1e3 / run_pages.max(1.0), run_us, run_pages, asked_page_ns, visits }
}

fn main() {
    let (pages, best_of) = (number_arg("--pages", 4 << 20), number_arg("--best-of", 2));
    let groups = arg("--groups").unwrap_or("1,100,1000,10000".into());
    let groups: Vec<u64> = groups.split(',').map(|n| n.parse().expect("numbers")).collect();
    let only = arg("--only").map(|text| text.replace(',', ", "));
    println!("{pages} pages; the best of {best_of}");
    println!(
        "{:24} {:>7} {:>9} {:>10} {:>10} {:>13} {:>9} {:>12} {:>12}",
        "", "groups", "ns/page", "us/run", "pages/run", "ns/page of 32", "visits", "of 1,024", "of a tenth"
    );
    let kinds = [
        ("mglru, memcg-lru", Policy::Mglru, MemcgSelection::MemcgLru),
        ("mglru, first", Policy::Mglru, MemcgSelection::First),
        ("mglru, iterate", Policy::Mglru, MemcgSelection::Iterate),
        ("lru", Policy::Lru, MemcgSelection::MemcgLru),
    ];
    for (name, policy, memcgs) in kinds.into_iter().filter(|kind| only.as_ref().is_none_or(|only| only == kind.0)) {
        for &groups in &groups {
            let runs = (0..best_of).map(|_| measure(policy, memcgs, groups, pages));
            let best = |a: Measured, b: Measured| Measured {
                page_ns: a.page_ns.min(b.page_ns),
                run_us: a.run_us.min(b.run_us),
                run_pages: a.run_pages,
                visits: a.visits,
                asked_page_ns: std::array::from_fn(|i| a.asked_page_ns[i].min(b.asked_page_ns[i])),
            };
            let m = runs.reduce(best).expect("a run");
            let [small, large, tenth] = m.asked_page_ns;
            println!(
                "{name:24} {groups:>7} {:>9.1} {:>10.0} {:>10.0} {small:>13.0} {:>9.0} {large:>12.0} {tenth:>12.0}",
                m.page_ns, m.run_us, m.run_pages, m.visits
            );
        }
    }
}
