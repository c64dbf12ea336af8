//! The result for people, and for spreadsheets.

use crate::flags::size::human;
use crate::given::GivenSettings;
use crate::replay::text::{WORK_HEADS, apart, quoted, trace_caption};
use crate::table::Table;
use refault::replay::groups::{GroupRow, GroupedRow, limits_text};
use refault::words::{duration, grouped, printable};
use std::fmt::Write as _;

/// Heads of `memory.events`, and the names of what is below them.
pub(crate) const EVENT_HEADS: [&str; 5] = ["events\nlow", "\nhigh", "\nmax", "\noom", "\noom_kill"];
pub(crate) const EVENTS: [&str; 5] = ["low", "high", "max", "oom", "oom_kill"];

/// The table of one trace, and the line of its rules.
pub(super) fn table(rows: &[GroupedRow], rules: &str) -> String {
    let first = &rows[0];
    let mut text = trace_caption(&first.trace, first.trace_accesses, first.footprint_pages, first.page_size);
    text += rules;
    let heads = ["policy", "memory", "group", "accesses", "hit\nrate", "misses"];
    let heads = heads.into_iter().chain(WORK_HEADS).chain(["memory\npeak", "at the\nend"]).chain(EVENT_HEADS);
    let mut table = Table::new(heads, 3).sparse(7..13).sparse(15..20).folded(3);
    for (n, row) in rows.iter().enumerate() {
        if n > 0 {
            table.gap();
        }
        for (m, group) in row.groups.iter().enumerate() {
            let mut cells = match m {
                0 => vec![row.policy.name().to_owned(), memory(row)],
                _ => vec![String::new(); 2],
            };
            cells.extend(cells_of(row, group));
            if let (0, Some(at)) = (m, row.oom_at) {
                cells.push(format!("OOM at access {}", grouped(at)));
            }
            table.row(cells);
        }
    }
    text += &table.render();
    text
}

fn memory(row: &GroupedRow) -> String {
    if row.memory_pages == u64::MAX { "max".to_owned() } else { human(row.memory_pages * row.page_size) }
}

fn cells_of(row: &GroupedRow, group: &GroupRow) -> Vec<String> {
    let size = |name: &str| human(group.gauge(name) * row.page_size);
    let mut cells = vec![
        printable(&group.path),
        grouped(group.count.accesses),
        group.hit_rate().map_or("-".to_owned(), |rate| format!("{:.2}%", 100.0 * rate)),
        grouped(group.count.misses),
    ];
    cells.extend(group.shown().map(|(_, n)| grouped(n)));
    cells.extend(["memory.peak", "memory.current"].map(size));
    cells.extend(EVENTS.map(|name| grouped(group.event(name))));
    let mut remarks = Vec::new();
    remarks.extend(Some(limits_text(&group.limits, row.page_size)).filter(|text| !text.is_empty()));
    if group.count.slept_ns > 0 {
        remarks.push(format!("slept {}", duration(group.count.slept_ns)));
    }
    if let Some(at) = group.count.killed_at {
        remarks.push(format!("KILLED at access {}, {} left out", grouped(at), grouped(group.count.skipped)));
    }
    if !remarks.is_empty() {
        cells.push(remarks.join("; "));
    }
    cells
}

/// All counters and sizes of every group, as `memory.stat` has them.
pub(super) fn vmstat(row: &GroupedRow) -> String {
    let mut text = String::new();
    for group in &row.groups {
        let of = format!("{} {} {} {}", printable(&row.trace), row.policy, memory(row), printable(&group.path));
        let _ = writeln!(text, "\n# {of}: counters");
        for (name, value) in group.counters.iter() {
            let _ = writeln!(text, "{name} {value}");
        }
        let _ = writeln!(text, "# {of}: memory.events");
        for (name, value) in group.events.iter() {
            let _ = writeln!(text, "{name} {value}");
        }
        let _ = writeln!(text, "# {of}: memory.swap.events");
        for (name, value) in group.swap_events.iter() {
            let _ = writeln!(text, "{name} {value}");
        }
        let _ = writeln!(text, "# {of}: sizes at the end, in pages");
        for gauge in group.gauges.iter() {
            let _ = writeln!(text, "{} {}", gauge.name, gauge.value);
        }
    }
    text
}

/// Comma-separated values, a line a group; `all` adds a column for every counter and size.
pub(super) fn csv(rows: &[GroupedRow], settings: &GivenSettings, all: bool) -> String {
    let mut text = String::from(
        "trace,policy,memory_pages,memory_bytes,footprint_pages,group,accesses,hits,misses,hit_rate,refaults,activations,\
         restores,evicted_anon,evicted_file,swap_ins,swap_outs,peak_pages,current_pages",
    );
    if let Some(group) = rows.first().and_then(|row| row.groups.first()) {
        group.events.iter().for_each(|(name, _)| text.extend([",events_", name]));
        group.swap_events.iter().for_each(|(name, _)| text.extend([",swap_events_", name]));
    }
    text.push_str(",high_sleep_ns,skipped,killed_at,oom_at,maccesses_per_s,kernel,settings");
    if let (true, Some(group)) = (all, rows.first().and_then(|row| row.groups.first())) {
        let names = group.counters.iter().map(|(name, _)| name.to_owned());
        names.chain(group.gauges.iter().map(|g| apart(g.name))).for_each(|name| text.extend([",", &name]));
    }
    text.push('\n');
    let settings = quoted(&settings.to_string());
    for row in rows {
        row.groups.iter().for_each(|group| csv_line(&mut text, row, group, (&settings, all)));
    }
    text
}

fn csv_line(text: &mut String, row: &GroupedRow, group: &GroupRow, (settings, all): (&str, bool)) {
    let optional = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    let memory = Some(row.memory_pages).filter(|&pages| pages != u64::MAX);
    let count = &group.count;
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{}",
        quoted(&row.trace),
        row.policy,
        optional(memory),
        optional(memory.map(|pages| pages * row.page_size)),
        row.footprint_pages,
        quoted(&group.path),
        count.accesses,
        group.hits(),
        count.misses,
        group.hit_rate().map_or(String::new(), |rate| format!("{rate:.6}")),
    );
    for (_, n) in group.shown().iter() {
        let _ = write!(text, ",{n}");
    }
    let _ = write!(text, ",{},{}", group.gauge("memory.peak"), group.gauge("memory.current"));
    for (_, n) in group.events.iter().chain(&group.swap_events) {
        let _ = write!(text, ",{n}");
    }
    let (killed, oom) = (optional(count.killed_at), optional(row.oom_at));
    let _ = write!(text, ",{},{},{killed},{oom},{}", count.slept_ns, count.skipped, row.maccesses_per_s());
    let _ = write!(text, ",{},{settings}", row.kernel.name());
    if all {
        let values = group.counters.iter().map(|(_, n)| n).chain(group.gauges.iter().map(|g| g.value));
        for n in values {
            let _ = write!(text, ",{n}");
        }
    }
    text.push('\n');
}
