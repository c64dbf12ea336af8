//! Regions of some tens of pages on which everything is done once: small enough that each call can
//! fail in each way, one by one.

use std::time::Duration;

use refault_pager::store::Codec;
use refault_pager::{FaultMode, Limits, PoolConfig, RegionConfig, ThpSize};

use crate::region::{Model, PAGE, directory, made};
use crate::runner::Report;

const PAGES: usize = 48;
/// Pages that take the memory of others.
const FRESH: usize = 32;

/// Places that pages go to.
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
        ..RegionConfig::new((PAGES + 2 * FRESH) * PAGE, RegionConfig::MIN_MEMORY + (1 << 20))
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
    let mut m = Model::new(report, &region, PAGES + 2 * FRESH, config.fault_mode);
    let pages = |range: std::ops::Range<usize>| range.start * PAGE..range.end * PAGE;
    let at_first = region.limits();
    // Pages are moved out and written; then others that were never touched take their memory, for
    // `memory_high` is little more than what is in use.
    let squeeze = |m: &mut Model, fresh: usize| {
        m.told(region.page_out(pages(0..PAGES)));
        let memory_high = (region.stats().memory_pages as usize + 12) * PAGE;
        m.told(region.set_limits(&Limits { memory_high, memory_max: RegionConfig::MIN_MEMORY, ..at_first }));
        (fresh..fresh + FRESH).for_each(|p| m.put(p, 1));
        m.told(region.set_limits(&at_first));
    };
    (0..PAGES).for_each(|p| m.put(p, 1));
    squeeze(&mut m, PAGES);
    (0..PAGES).for_each(|p| m.check(p));
    m.told(region.page_out(pages(0..16)));
    m.told(region.will_need(pages(4..12)));
    m.told(region.cold(pages(0..8)));
    m.dont_need(16..21);
    (0..PAGES).step_by(3).for_each(|p| m.put(p, 2));
    squeeze(&mut m, PAGES + FRESH);
    m.told(region.set_limits(&Limits { zswap_max: at_first.zswap_max / 2, ..at_first }));
    m.told(region.populate(pages(12..18)));
    // Far from each other: nothing is read ahead.
    (0..PAGES).for_each(|i| m.check(i * 29 % PAGES));
    m.dont_need(0..PAGES);
    (0..m.pages()).for_each(|p| m.check(p));
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
