//! Regions of some tens of pages on which everything is done once: small enough that each call can fail in each way, one by one.

use std::time::Duration;

use refault_pager::store::Codec;
use refault_pager::{FaultMode, Limits, PoolConfig, RegionConfig, ThpSize};

use crate::region::{Model, PAGE, directory, made};
use crate::runner::Report;

const PAGES: usize = 48;
/// Of them, so many fit below `memory_high`.
const IN_MEMORY: usize = 44;

/// Where pages go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stores {
    Pool,
    File,
    Both,
}

fn config(stores: Stores, fault_mode: FaultMode, order: usize, swap_in: bool) -> RegionConfig {
    let pool = PoolConfig { codec: Codec::Lz4, max_bytes: 256 << 10 };
    let mut config = RegionConfig {
        pool: (stores != Stores::File).then_some(pool),
        swap_directory: (stores != Stores::Pool).then(directory),
        fault_mode,
        fault_threads: 1,
        stall_limit: Duration::from_secs(2),
        ..RegionConfig::new(PAGES * PAGE, RegionConfig::MIN_MEMORY + (1 << 20))
    };
    if order > 0 {
        config.thp.sizes[order] = ThpSize::Always;
        config.thp.swap_in = swap_in;
    }
    config
}

fn run(report: &'static Report, config: &RegionConfig) {
    let _plan = crate::plan(report, |_, _| None).enter();
    let Some(region) = made(report, config) else { return };
    let t = std::time::Instant::now();
    let mut m = Model::new(report, &region, PAGES, config.fault_mode);
    let pages = |range: std::ops::Range<usize>| range.start * PAGE..range.end * PAGE;
    let out = |m: &Model, range: std::ops::Range<usize>| {
        // Written, and then given up.
        (0..2).for_each(|_| m.told(region.page_out(pages(range.clone()))));
    };
    (0..PAGES).for_each(|p| m.put(p, 1));
    out(&m, 0..PAGES);
    (0..PAGES).for_each(|p| m.check(p));
    out(&m, 0..32);
    m.told(region.will_need(pages(4..12)));
    m.told(region.cold(pages(0..8)));
    m.dont_need(16..21);
    (0..PAGES).step_by(3).for_each(|p| m.put(p, 2));
    out(&m, 0..PAGES);
    // Whoever faults makes room from now on, and memory is less.
    let at_first = region.limits();
    let memory_high = (region.stats().overhead_pages as usize + IN_MEMORY) * PAGE;
    let lower = Limits { memory_high, memory_max: RegionConfig::MIN_MEMORY, ..at_first };
    m.told(region.set_limits(&lower));
    // Far from each other: nothing is read ahead.
    (0..PAGES).for_each(|i| m.check(i * 29 % PAGES));
    m.told(region.set_limits(&Limits { zswap_max: at_first.zswap_max / 2, ..at_first }));
    m.told(region.populate(pages(30..36)));
    (0..PAGES).for_each(|p| m.check(p));
    if std::env::var_os("LAPS").is_some() {
        eprintln!("{:?} {:?}", region.stats().counts, t.elapsed());
        std::process::abort();
    }
    m.end();
}

macro_rules! scenarios {
    ($($name:ident: $stores:ident, $mode:ident, $order:literal, $swap_in:literal;)*) => {
        $(pub fn $name(report: &'static Report) {
            run(report, &config(Stores::$stores, FaultMode::$mode, $order, $swap_in));
        })*
    };
}

// The order of folios, and whether they come back whole.
scenarios! {
    pool: Pool, Threads, 0, false;
    file: File, Threads, 0, false;
    both: Both, Threads, 0, false;
    signal_pool: Pool, Signal, 0, false;
    signal_file: File, Signal, 0, false;
    signal_both: Both, Signal, 0, false;
    folios_2: File, Threads, 2, true;
    folios_4: Both, Threads, 4, false;
    signal_folios_3: File, Signal, 3, true;
    signal_folios_4: Pool, Signal, 4, true;
}
