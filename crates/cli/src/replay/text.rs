//! The result for people, and for spreadsheets.

use crate::flags::size::human;
use crate::given::GivenSettings;
use crate::table::Table;
use refault::replay::Row;
use refault::replay::recorder::Windows;
use refault::replay::swap::SwapFigures;
use refault::words::{counted, grouped, printable, times};
use std::fmt::Write as _;

/// Columns of cells in one block of windows, so that a line fits a terminal.
const BLOCK: usize = 8;

/// Rows of one trace after the other.
pub fn by_trace(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a.trace == b.trace && a.footprint_pages == b.footprint_pages)
}

/// One line that says what the rows below are of.
pub fn caption(row: &Row) -> String {
    trace_caption(&row.trace, row.trace_accesses, row.footprint_pages, row.page_size)
}

/// One line for a trace.
pub(super) fn trace_caption(name: &str, accesses: u64, footprint_pages: u64, page_size: u64) -> String {
    let (name, accesses) = (printable(name), counted(accesses, "access", "accesses"));
    let pages = counted(footprint_pages, "page", "pages");
    format!("{name}: {accesses} to {pages} ({})\n", human(footprint_pages * page_size))
}

/// Heads of the columns of reclaim's work: those of `shown` of a row, or of a group.
pub(super) const WORK_HEADS: [&str; 7] =
    ["refaults", "activa-\ntions", "restores", "evicted\nanon", "evicted\nfile", "swap\nins", "swap\nouts"];

/// The table of one trace.
pub fn table(rows: &[Row]) -> String {
    let heads = ["policy", "memory", "pages", "accesses", "hit\nrate", "misses"];
    let has_reads = rows.iter().any(|row| row.reads.is_some());
    let of_reads = has_reads.then_some(["read", "reads"]);
    let heads = heads.into_iter().chain(of_reads.into_iter().flatten()).chain(WORK_HEADS).chain(["M acc\nper s"]);
    // From activations on to what went to swap.
    let rare = if has_reads { 9..15 } else { 7..13 };
    // The line above has the accesses, `memory` the pages.
    let spare = [3, 2, rare.end];
    let mut table = Table::new(heads, 1).sparse(rare).spare(spare);
    let several = rows.iter().any(|row| row.policy != rows[0].policy);
    for (i, row) in rows.iter().enumerate() {
        if several && i > 0 && rows[i - 1].memory_pages != row.memory_pages {
            table.gap();
        }
        let mut cells = vec![
            row.policy.name().to_owned(),
            human(row.memory_bytes),
            grouped(row.memory_pages),
            grouped(row.accesses),
            format!("{:.2}%{}", 100.0 * row.hit_rate(), bar(row.sampling_error)),
            grouped(row.misses),
        ];
        if has_reads {
            let reads = row.reads.map(|reads| [human(reads.bytes()), grouped(reads.reads)]);
            cells.extend(reads.unwrap_or(["-".to_owned(), "-".to_owned()]));
        }
        cells.extend(row.shown().map(|(_, value)| value.map_or("-".into(), grouped)));
        cells.push(format!("{:.1}", row.maccesses_per_s()));
        if let (Some(at), Some(_)) = (row.oom_at, &row.reads) {
            // A part of a recording has no figures.
            cells[3..].iter_mut().for_each(|cell| "-".clone_into(cell));
            cells.push(if at == 0 { "out of memory".to_owned() } else { out_of_memory(at, 0) });
        } else {
            cells.extend(row.oom_at.map(|at| out_of_memory(at, row.swap_failures())));
        }
        table.row(cells);
    }
    table.render()
}

/// Two standard errors, in points; nothing where all was replayed.
fn bar(error: Option<f64>) -> String {
    error.map_or(String::new(), |error| format!(" ±{:.2}", 200.0 * error))
}

/// Where memory ran out, and whether swap had.
fn out_of_memory(at: u64, swap_failures: u64) -> String {
    let swap = match swap_failures {
        0 => String::new(),
        n => format!(", no room in swap {}", times(n)),
    };
    format!("OOM at access {}{swap}", grouped(at))
}

/// Hit rate in equal windows of one trace: a line a window, a column a cell. Windows that look the
/// same share a line.
pub fn windows(rows: &[Row]) -> String {
    let mut text = String::new();
    for block in rows.chunks(BLOCK) {
        let heads = block.iter().map(|r| format!("{}\n{}", r.policy, human(r.memory_bytes)));
        let mut table = Table::new(["window".to_owned(), "from\naccess".to_owned()].into_iter().chain(heads), 0);
        let total = block[0].trace_accesses;
        let count = block[0].window_misses.as_ref().map_or(0, Vec::len);
        let rates = |window: usize| -> Vec<String> {
            let (from, to) = (Windows::begin(window, count, total), Windows::begin(window + 1, count, total));
            block.iter().map(|row| window_rate(row, window, from, to)).collect()
        };
        let all: Vec<_> = (0..count).map(rates).collect();
        let mut window = 0;
        for same in all.chunk_by(|a, b| a == b) {
            let last = window + same.len();
            let numbers = if same.len() > 1 { format!("{}-{last}", window + 1) } else { last.to_string() };
            let mut cells = vec![numbers, grouped(Windows::begin(window, count, total))];
            cells.extend(same[0].iter().cloned());
            table.row(cells);
            window = last;
        }
        let _ = write!(text, "\nhit rate by window\n{}", table.render());
    }
    text
}

fn window_rate(row: &Row, window: usize, from: u64, to: u64) -> String {
    let accesses = row.accesses.min(to).saturating_sub(from);
    match row.window_misses.as_ref().and_then(|w| w.get(window)) {
        Some(&misses) if accesses > 0 => format!("{:.2}%", 100.0 * (accesses - misses) as f64 / accesses as f64),
        _ => "-".to_owned(),
    }
}

/// All counters and sizes of a row, as `/proc/vmstat` has them.
pub fn vmstat(row: &Row) -> String {
    let Some(inside) = &row.inside else { return String::new() };
    let mut text = format!("\n# {} {} {}p: counters\n", printable(&row.trace), row.policy, row.memory_pages);
    for (name, value) in inside.counters.iter() {
        let _ = writeln!(text, "{name} {value}");
    }
    let _ =
        writeln!(text, "# {} {} {}p: sizes at the end, in pages", printable(&row.trace), row.policy, row.memory_pages);
    for gauge in &inside.gauges {
        let _ = writeln!(text, "{} {}", gauge.name, gauge.value);
    }
    for (name, value) in &inside.events {
        let _ = writeln!(text, "memory.events.{name} {value}");
    }
    for (name, value) in &inside.swap_events {
        let _ = writeln!(text, "memory.swap.events.{name} {value}");
    }
    for (name, value) in inside.size_counters() {
        let _ = writeln!(text, "mthp.{name} {value}");
    }
    text
}

/// The generations of a row.
pub fn lru_gen(row: &Row) -> String {
    match row.inside.as_ref().and_then(|i| i.lru_gen.as_ref()) {
        Some(text) => {
            format!("\n# {} {} {}p: lru_gen\n{text}", printable(&row.trace), row.policy, row.memory_pages)
        }
        None => String::new(),
    }
}

/// The swap devices of a row at the end.
pub fn swap_map(row: &Row) -> String {
    let Some(inside) = &row.inside else { return String::new() };
    let head = format!("\n# {} {} {}p: swap\n", printable(&row.trace), row.policy, row.memory_pages);
    if inside.swap.is_empty() {
        return head + super::swap_map::NONE;
    }
    inside.swap.iter().fold(head, |text, map| text + &super::swap_map::text(map, None))
}

/// Comma-separated values with a heading; `all` adds a column for every counter and size.
pub fn csv(rows: &[Row], settings: &GivenSettings, all: bool) -> String {
    let mut text = String::from("trace,policy,memory_pages,memory_bytes,footprint_pages,accesses,hits,misses,hit_rate");
    let Some(first) = rows.first() else { return text };
    for (name, _) in first.shown() {
        let _ = write!(text, ",{name}");
    }
    text.push_str(",oom_at,maccesses_per_s");
    let has_reads = rows.iter().any(|row| row.reads.is_some());
    text.push_str(if has_reads { ",read_pages,reads" } else { "" });
    let has_swap = rows.iter().any(|row| row.swap.is_some());
    SwapFigures::COLUMNS.iter().filter(|_| has_swap).for_each(|name| text.extend([",", name]));
    text.push_str(",kernel,settings");
    let settings = quoted(&settings.to_string());
    let names = match all {
        true => rows.iter().map(counters).find(|c| !c.is_empty()).unwrap_or_default(),
        false => Vec::new(),
    };
    names.iter().for_each(|(name, _)| text.extend([",", name]));
    text.push('\n');
    for row in rows {
        csv_row(&mut text, row);
        if has_reads {
            let [pages, reads] = [row.reads.map(|reads| reads.read_pages), row.reads.map(|reads| reads.reads)];
            let _ = write!(text, ",{},{}", optional(pages), optional(reads));
        }
        for at in (0..SwapFigures::COLUMNS.len()).filter(|_| has_swap) {
            let _ = write!(text, ",{}", optional(row.swap.as_ref().map(|swap| swap.columns()[at])));
        }
        let kernel = row.inside.as_ref().map_or("", |inside| inside.kernel.name());
        let _ = write!(text, ",{kernel},{settings}");
        let values = counters(row);
        for at in 0..names.len() {
            text.push(',');
            text.push_str(&optional(values.get(at).map(|(_, value)| *value)));
        }
        text.push('\n');
    }
    text
}

fn csv_row(text: &mut String, row: &Row) {
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{:.6}",
        quoted(&row.trace),
        row.policy,
        row.memory_pages,
        row.memory_bytes,
        row.footprint_pages,
        row.accesses,
        row.hits(),
        row.misses,
        row.hit_rate()
    );
    for (_, value) in row.shown() {
        text.extend([",", &optional(value)]);
    }
    let _ = write!(text, ",{},{}", optional(row.oom_at), row.maccesses_per_s());
}

/// Counters and sizes of a row, events, and counters of folios by size; none for OPT.
fn counters(row: &Row) -> Vec<(String, u64)> {
    let Some(inside) = &row.inside else { return Vec::new() };
    let gauges = inside.gauges.iter().map(|g| (apart(g.name), g.value));
    let plain = inside.counters.iter().map(|(name, n)| (name.to_owned(), n)).chain(gauges);
    let events = inside.events.iter().map(|(name, n)| (format!("memory.events.{name}"), *n));
    let swap_events = inside.swap_events.iter().map(|(name, n)| (format!("memory.swap.events.{name}"), *n));
    plain.chain(events).chain(swap_events).chain(inside.all_size_counters()).collect()
}

/// The column of a size: memory of the `kernel` is no name of a kernel.
pub(super) fn apart(gauge: &str) -> String {
    if gauge == "kernel" { format!("memory.stat.{gauge}") } else { gauge.to_owned() }
}

fn optional(value: Option<u64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

/// A name as a field.
pub(super) fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}
