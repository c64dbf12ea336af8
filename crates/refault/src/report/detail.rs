//! One policy at one size, window by window.

use crate::document::trace::TraceDetail;
use crate::replay::cell::{Cell, CountOnly};
use crate::replay::machine::Observer;
use crate::watch::Progress;
use refault_mm::opt::Opt;
use refault_mm::{Config, Engine, Lru, MemcgId, PageId};
use refault_trace::Trace;
use std::collections::BTreeMap;

/// Counters that are told window by window.
const COUNTERS: [&str; 10] = [
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "pswpin",
    "pswpout",
];

/// Sizes that are told window by window.
const GAUGES: [&str; 7] =
    ["inactive_anon", "active_anon", "inactive_file", "active_file", "memory.current", "swap.current", "kernel"];

/// Steps of the bins of distances in a power of two.
const STEPS: u32 = 2;

/// Sees pages come and go.
struct Watch<'a> {
    object_of: &'a [u16],
    /// A bit a page.
    in_memory: Vec<u64>,
    /// Number of evictions up to and with the page's last one; 0: it was never evicted.
    evicted_at: Vec<u32>,
    evictions: u32,
    resident: Vec<u64>,
    misses: Vec<u64>,
    distances: BTreeMap<u32, u64>,
}

impl<'a> Watch<'a> {
    fn new(object_of: &'a [u16], objects: usize) -> Watch<'a> {
        Watch {
            object_of,
            in_memory: vec![0; object_of.len().div_ceil(64)],
            evicted_at: vec![0; object_of.len()],
            evictions: 0,
            resident: vec![0; objects],
            misses: vec![0; objects],
            distances: BTreeMap::new(),
        }
    }
}

impl Observer for Watch<'_> {
    fn freed(&mut self, page: PageId, order: u8) {
        for page in page.index()..page.index() + (1usize << order) {
            let (word, bit) = (&mut self.in_memory[page / 64], 1 << (page % 64));
            if *word & bit == 0 {
                continue;
            }
            *word &= !bit;
            self.resident[usize::from(self.object_of[page])] -= 1;
            self.evictions = self.evictions.wrapping_add(1).max(1);
            self.evicted_at[page] = self.evictions;
        }
    }

    fn missed(&mut self, page: PageId) {
        let page = page.index();
        let object = usize::from(self.object_of[page]);
        self.misses[object] += 1;
        let (word, bit) = (&mut self.in_memory[page / 64], 1 << (page % 64));
        if *word & bit != 0 {
            return;
        }
        *word |= bit;
        self.resident[object] += 1;
        let at = self.evicted_at[page];
        if at > 0 {
            *self.distances.entry(bin(self.evictions.wrapping_sub(at))).or_default() += 1;
        }
    }
}

/// The number of the bin of a distance: equal steps within each power of two.
fn bin(distance: u32) -> u32 {
    let n = distance + 1;
    let power = n.ilog2();
    let step = if power == 0 { 0 } else { ((u64::from(n - (1 << power)) * u64::from(STEPS)) >> power) as u32 };
    power * STEPS + step
}

/// The distance that a bin ends below.
fn end(bin: u32) -> u64 {
    let (power, step) = (bin / STEPS, bin % STEPS);
    (1u64 << power) + (u64::from(step + 1) << power).div_ceil(u64::from(STEPS)) - 1
}

/// Samples taken at the end of each window.
pub(super) struct Samples {
    detail: TraceDetail,
    counters: [u64; COUNTERS.len()],
    has_generations: bool,
}

impl Samples {
    /// Samples of a policy with that configuration, none yet.
    pub(super) fn new(objects: usize, cfg: &Config) -> Samples {
        let detail = TraceDetail { object_resident: vec![Vec::new(); objects], ..TraceDetail::default() };
        Samples { detail, counters: [0; COUNTERS.len()], has_generations: cfg.lru.kind == Lru::MultiGen }
    }

    /// Samples a group; `resident`: pages in memory, by object.
    pub(super) fn take(&mut self, engine: &Engine, group: MemcgId, resident: &[u64]) {
        let detail = &mut self.detail;
        let now = counted(engine);
        for ((name, now), before) in COUNTERS.iter().zip(now).zip(&mut self.counters) {
            detail.window_counters.entry((*name).into()).or_default().push(now - *before);
            *before = now;
        }
        let gauges = engine.memcg_gauges(group);
        for name in GAUGES {
            let value = gauges.iter().find(|gauge| gauge.name == name).map_or(0, |gauge| gauge.value);
            detail.window_gauges.entry(name.into()).or_default().push(value);
        }
        if self.has_generations {
            detail.window_generations.push(generations(engine, group));
        }
        detail.object_resident.iter_mut().zip(resident).for_each(|(all, &now)| all.push(now));
    }

    /// Samples that were taken.
    pub(super) fn into_detail(mut self) -> TraceDetail {
        self.detail.window_counters.retain(|_, all| all.iter().any(|&n| n > 0));
        self.detail.window_gauges.retain(|_, all| all.iter().any(|&n| n > 0));
        self.detail
    }
}

/// Replays under a policy of Linux.
pub(super) fn linux(
    trace: &Trace,
    windows: &[u64],
    (object_of, objects): (&[u16], usize),
    cfg: &Config,
    (pages, swap_max_pages): (u64, u64),
    progress: &Progress,
) -> Result<TraceDetail, String> {
    let watch = Watch::new(object_of, objects);
    let mut cell = Cell::watched(trace, cfg.clone(), pages, swap_max_pages, watch)?;
    let (mut samples, mut misses, mut window_misses) = (Samples::new(objects, cfg), 0, Vec::new());
    for window in windows.windows(2) {
        let part = &trace.accesses[window[0] as usize..window[1] as usize];
        cell.run_with_drops(part, None, &trace.drops, &mut CountOnly);
        progress.add(part.len() as u64);
        window_misses.push(cell.misses - misses);
        misses = cell.misses;
        samples.take(&cell.engine, cell.group, &cell.machine.observer.resident);
    }
    let mut detail = TraceDetail { window_misses, ..samples.into_detail() };
    (detail.accesses, detail.misses, detail.oom_at) = (cell.accesses, cell.misses, cell.oom_at);
    detail.counters = cell.engine.vmstat().iter().filter(|&(_, n)| n > 0).map(|(name, n)| (name.into(), n)).collect();
    let watch = &cell.machine.observer;
    detail.object_misses.clone_from(&watch.misses);
    detail.distance_bins = bins(&watch.distances);
    Ok(detail)
}

/// All bins from the first that has something to the last.
fn bins(found: &BTreeMap<u32, u64>) -> Vec<(u64, u64)> {
    let (Some((&first, _)), Some((&last, _))) = (found.first_key_value(), found.last_key_value()) else {
        return Vec::new();
    };
    // Small numbers are whole: a bin without any is left out.
    let is_bin = |bin: u32| bin == 0 || end(bin) > end(bin - 1);
    (first..=last).filter(|&b| is_bin(b)).map(|b| (end(b), found.get(&b).copied().unwrap_or(0))).collect()
}

fn counted(engine: &Engine) -> [u64; COUNTERS.len()] {
    let all = engine.vmstat();
    COUNTERS.map(|name| all.iter().find(|(known, _)| *known == name).map_or(0, |(_, n)| n))
}

/// Pages of each generation of a group, the oldest first, from the file that Linux has for it:
/// lines of a number, an age, and pages of anonymous memory and of files.
fn generations(engine: &Engine, group: MemcgId) -> Vec<u64> {
    let text = engine.lru_gen_text();
    let head = format!("memcg {:5} ", group.0);
    let lines = text.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    let of_group = lines.take_while(|line| !line.starts_with("memcg"));
    let pages = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        (numbers.len() == 4).then(|| numbers[2] + numbers[3])
    };
    of_group.filter_map(pages).collect()
}

/// Replays under OPT; `next` are the next uses.
pub(super) fn opt(
    trace: &Trace,
    windows: &[u64],
    (object_of, objects): (&[u16], usize),
    (next, pages): (&[u32], u64),
    progress: &Progress,
) -> TraceDetail {
    let mut opt = Opt::new(pages, next.len());
    let mut detail = TraceDetail { policy: "opt".into(), object_misses: vec![0; objects], ..TraceDetail::default() };
    for window in windows.windows(2) {
        let mut misses = 0;
        let part = window[0] as usize..window[1] as usize;
        for (&next, a) in next[part.clone()].iter().zip(&trace.accesses[part]) {
            if !opt.access(next) {
                misses += 1;
                detail.object_misses[usize::from(object_of[a.page() as usize])] += 1;
            }
        }
        progress.add(window[1] - window[0]);
        detail.window_misses.push(misses);
        detail.misses += misses;
    }
    detail.accesses = next.len() as u64;
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_in_a_bin_that_ends_beyond_it() {
        for distance in (0..5000).chain([1 << 20, u32::MAX / 2]) {
            let b = bin(distance);
            assert!(u64::from(distance) < end(b), "{distance}: bin {b} ends at {}", end(b));
            assert!(b == 0 || u64::from(distance) >= end(b - 1), "{distance}: bin {b} begins at {}", end(b - 1));
        }
    }
}
