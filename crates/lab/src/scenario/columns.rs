//! The columns of the time series of a run.

use refault_mm::{Counter, SizeCounter, ThpConfig};

/// The columns of the time series of a run that every run has, before its counters.
pub const COLUMNS: [&str; 16] = [
    "ops",
    "accesses",
    "hits",
    "free_pages",
    "anon_pages",
    "file_pages",
    "swap_pages",
    "refaults",
    "pswpout",
    "dirty_pages",
    "min_seq_file",
    "max_seq",
    "some_avg10",
    "full_avg10",
    "kswapd_us",
    "direct_reclaim_us",
];

/// The columns that a machine with nodes has beside: the threshold of the first node that pages are
/// promoted to, and pages since the start.
pub const TIER_COLUMNS: [&str; 5] =
    ["hot_threshold_ms", "pgpromote_candidate", "pgpromote_success", "pgdemote", "numa_hint_faults"];

/// Columns of both lists that count events of the machine: the others are work of tasks, or states.
const EVENTS: [&str; 8] = [
    "refaults",
    "pswpout",
    "kswapd_us",
    "direct_reclaim_us",
    "pgpromote_candidate",
    "pgpromote_success",
    "pgdemote",
    "numa_hint_faults",
];

/// Whether a column of the time series counts events of the machine.
pub fn counts_events(column: &str) -> bool {
    EVENTS.contains(&column) || !(COLUMNS.contains(&column) || TIER_COLUMNS.contains(&column))
}

/// All columns of the time series of a run: [`COLUMNS`], those of nodes if there are any, and every
/// counter that is not among them, of folios of each size, too.
pub fn series_columns(has_nodes: bool) -> Vec<String> {
    let own = COLUMNS.iter().chain(TIER_COLUMNS.iter().filter(|_| has_nodes)).map(|&name| name.to_owned());
    let counters = series_counters(has_nodes).map(|c| c.name().to_owned());
    own.chain(counters).chain(size_counter_kinds().map(|(o, c)| size_counter_name(o, c))).collect()
}

/// The counters that have a column beside those of a run's own.
pub(crate) fn series_counters(has_nodes: bool) -> impl Iterator<Item = Counter> {
    let is_own = move |name: &str| COLUMNS.contains(&name) || (has_nodes && TIER_COLUMNS.contains(&name));
    Counter::ALL.iter().copied().filter(move |c| !is_own(c.name()))
}

/// Every counter of every size of folios.
pub(crate) fn size_counter_kinds() -> impl Iterator<Item = (u8, SizeCounter)> {
    let orders = ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER;
    orders.flat_map(|order| SizeCounter::ALL.iter().map(move |&c| (order, c)))
}

/// Its name, as `mthp.64kB.swpout`.
pub(crate) fn size_counter_name(order: u8, counter: SizeCounter) -> String {
    format!("mthp.{}kB.{}", 4u32 << order, counter.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_events_are_columns() {
        assert!(EVENTS.iter().all(|name| COLUMNS.contains(name) || TIER_COLUMNS.contains(name)));
        assert!(!counts_events("free_pages") && !counts_events("hot_threshold_ms"));
        assert!(Counter::ALL.iter().all(|counter| counts_events(counter.name())));
    }
}
