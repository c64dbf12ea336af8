//! The columns of the time series of a run.

use refault_mm::{Counter, Gauge, SizeCounter, ThpConfig};

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

/// Pressure of a group in percent, beside its counters and sizes.
pub const GROUP_PRESSURE: [&str; 2] = ["some_avg10", "full_avg10"];

/// Work of a task, beside the machine's: operations, accesses and hits since the start, and the
/// latency of the operations since the sample before, to an eighth (0: there was none).
pub const TASK_COLUMNS: [&str; 5] = ["ops", "accesses", "hits", "p50_ns", "p99_ns"];

/// The task of a column such as `task.web.p99_ns`, and its name within the task; none: a column of
/// the machine or of a group.
pub fn task_column(column: &str) -> Option<(&str, &str)> {
    let (task, name) = column.strip_prefix("task.")?.rsplit_once('.')?;
    TASK_COLUMNS.contains(&name).then_some((task, name))
}

/// Whether a column of the time series counts events, of the machine or of a group.
pub fn counts_events(column: &str) -> bool {
    match group_column(column) {
        None if task_column(column).is_some() => false,
        Some((_, name)) => !is_size(column) && !GROUP_PRESSURE.contains(&name),
        None => {
            EVENTS.contains(&column)
                || !(COLUMNS.contains(&column) || TIER_COLUMNS.contains(&column) || is_size(column))
        }
    }
}

/// Whether a column of the time series is a size at that time, of the machine or of a group, under
/// its kernel name.
pub fn is_size(column: &str) -> bool {
    match group_column(column) {
        Some((_, name)) => Gauge::OF_MEMCG.contains(&name),
        None => Gauge::OF_MACHINE.contains(&column),
    }
}

/// The group of a column such as `memcg./db.inactive_file`, and its name within the group; none: a
/// column of the machine.
pub fn group_column(column: &str) -> Option<(&str, &str)> {
    let rest = column.strip_prefix("memcg.")?;
    // A path may have dots, as names have.
    let is_name = |name: &str| {
        Gauge::OF_MEMCG.contains(&name)
            || GROUP_PRESSURE.contains(&name)
            || Counter::ALL.iter().any(|c| c.name() == name)
    };
    rest.match_indices('.').map(|(at, _)| (&rest[..at], &rest[at + 1..])).find(|(_, name)| is_name(name))
}

/// All columns of the time series of a run: [`COLUMNS`]; columns of nodes if there are any; sizes
/// under their kernel names; all other counters, also those of each folio size; work of the tasks;
/// and counters, sizes and pressure of the groups.
pub fn series_columns<'a>(
    has_nodes: bool,
    tasks: impl IntoIterator<Item = &'a str>,
    groups: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let of_tasks = tasks.into_iter().flat_map(|task| TASK_COLUMNS.map(|name| format!("task.{task}.{name}")));
    let own = COLUMNS.iter().chain(TIER_COLUMNS.iter().filter(|_| has_nodes)).copied();
    let counters = series_counters(has_nodes).map(Counter::name);
    let of_machine = own.chain(Gauge::OF_MACHINE).chain(counters).map(str::to_owned);
    let of_groups = groups.into_iter().flat_map(|path| {
        let names = Counter::ALL.iter().map(|c| c.name()).chain(Gauge::OF_MEMCG).chain(GROUP_PRESSURE);
        names.map(move |name| format!("memcg.{path}.{name}"))
    });
    let of_sizes = size_counter_kinds().map(|(o, c)| size_counter_name(o, c));
    of_machine.chain(of_sizes).chain(of_tasks).chain(of_groups).collect()
}

/// Number of columns of a group.
pub(crate) fn group_columns() -> usize {
    Counter::ALL.len() + Gauge::OF_MEMCG.len() + GROUP_PRESSURE.len()
}

/// Counters with a column in the series that are not among the run's own columns.
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
        assert!(!counts_events("inactive_file") && !counts_events("memcg./a.swap.current"));
        assert!(!counts_events("memcg./a.some_avg10") && counts_events("memcg./a.pgfault"));
        assert!(!counts_events("task.a.b.ops") && task_column("task.a.b.p99_ns") == Some(("a.b", "p99_ns")));
        assert!(is_size("memcg./a-b/c.memory.current") && !is_size("memcg./a.pgfault") && !is_size("ops"));
    }
}
