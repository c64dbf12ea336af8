//! Estimates for people, for spreadsheets and for programs.

use crate::Failure;
use crate::flags::size::human;
use crate::given::GivenSettings;
use crate::replay::command::json_of_lines;
use crate::replay::policy::RowPolicy;
use crate::replay::text::{quoted, trace_caption};
use crate::table::Table;
use refault::replay::Row;
use refault::replay::sample::{OneIn, SampledEstimate};
use refault::words::{counted, grouped};
use serde_json::json;
use std::fmt::Write as _;

fn samples(n: usize) -> String {
    counted(n as u64, "sample", "samples")
}

/// The estimates of one trace, and the lines of its rules and settings.
pub(super) fn table(estimates: &[SampledEstimate], one_in: OneIn, rules: &str) -> String {
    let Some(first) = estimates.first() else { return String::new() };
    let mut text = trace_caption(&first.trace, first.accesses, first.footprint_pages, first.page_size);
    text += rules;
    let pages: u64 = first.samples.iter().map(|sample| sample.pages).sum();
    let mean = pages / first.samples.len() as u64;
    let _ = writeln!(
        text,
        "{}, {one_in}: {} each on average",
        samples(first.samples.len()),
        counted(mean, "page", "pages")
    );
    let heads =
        ["policy", "memory", "pages", "hit\nrate", "standard\nerror", "lowest", "highest", "misses", "M acc\nper s"];
    let mut table = Table::new(heads, 1);
    let several = estimates.iter().any(|e| e.policy != first.policy);
    let percent = |rate: f64| format!("{:.2}%", 100.0 * rate);
    for (i, e) in estimates.iter().enumerate() {
        if several && i > 0 && estimates[i - 1].memory_pages != e.memory_pages {
            table.gap();
        }
        let (low, high) = e.range();
        let mut cells = vec![
            e.policy.name().to_owned(),
            human(e.memory_pages.saturating_mul(e.page_size)),
            grouped(e.memory_pages),
            percent(e.hit_rate()),
            e.error().map_or("-".into(), percent),
            percent(low),
            percent(high),
            grouped(e.misses()),
            format!("{:.1}", e.maccesses_per_s()),
        ];
        if e.out_of_memory() > 0 {
            cells.push(format!("OOM in {} of {}", e.out_of_memory(), samples(e.samples.len())));
        }
        table.row(cells);
    }
    text + &table.render()
}

/// The means as a curve.
pub(super) fn curve(estimates: &[SampledEstimate], colour: bool) -> String {
    let rows: Vec<_> = estimates.iter().map(row).collect();
    refault::replay::draw(&rows, colour)
}

fn row(e: &SampledEstimate) -> Row {
    Row {
        trace: e.trace.clone(),
        policy: e.policy,
        plug_in: None,
        memory_pages: e.memory_pages,
        memory_bytes: e.memory_pages.saturating_mul(e.page_size),
        page_size: e.page_size,
        footprint_pages: e.footprint_pages,
        trace_accesses: e.accesses,
        seed: 0,
        accesses: e.accesses,
        misses: e.misses(),
        sampling_error: None,
        reads: None,
        oom_at: None,
        seconds: e.samples.iter().map(|sample| sample.seconds).sum(),
        window_misses: None,
        swap: None,
        inside: None,
    }
}

/// A line for each.
pub(super) fn csv(estimates: &[SampledEstimate], settings: &GivenSettings) -> String {
    let mut text = String::from(
        "trace,policy,memory_pages,memory_bytes,footprint_pages,accesses,hit_rate,standard_error,lowest,highest,\
         misses,out_of_memory,maccesses_per_s,kernel,settings\n",
    );
    let settings = quoted(&settings.to_string());
    for e in estimates {
        let (low, high) = e.range();
        let kernel = if e.policy == RowPolicy::Opt { "" } else { e.kernel.name() };
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{:.6},{},{low:.6},{high:.6},{},{},{:.3},{kernel},{settings}",
            quoted(&e.trace),
            e.policy,
            e.memory_pages,
            e.memory_pages.saturating_mul(e.page_size),
            e.footprint_pages,
            e.accesses,
            e.hit_rate(),
            e.error().map_or(String::new(), |error| format!("{error:.6}")),
            e.misses(),
            e.out_of_memory(),
            e.maccesses_per_s(),
        );
    }
    text
}

/// One object; a line a row.
pub(super) fn json(
    estimates: &[SampledEstimate],
    one_in: OneIn,
    settings: &GivenSettings,
    notes: &[String],
) -> Result<String, Failure> {
    let line = |e: &SampledEstimate| {
        let (low, high) = e.range();
        let samples = e.samples.iter().map(|sample| {
            json!({
                "pages": sample.pages,
                "memory_pages": sample.memory_pages,
                "accesses": sample.accesses,
                "misses": sample.misses,
                "out_of_memory": sample.out_of_memory,
                "hit_rate": e.hit_rate_of(sample),
            })
        });
        let mut row = json!({
            "trace": e.trace,
            "policy": e.policy.name(),
            "memory_pages": e.memory_pages,
            "memory_bytes": e.memory_pages.saturating_mul(e.page_size),
            "page_size": e.page_size,
            "footprint_pages": e.footprint_pages,
            "accesses": e.accesses,
            "one_in": one_in.0,
            "hit_rate": e.hit_rate(),
            "standard_error": e.error(),
            "lowest": low,
            "highest": high,
            "misses": e.misses(),
            "maccesses_per_s": (e.maccesses_per_s() * 1000.0).round() / 1000.0,
            "samples": samples.collect::<Vec<_>>(),
        });
        if e.policy != RowPolicy::Opt {
            row["kernel"] = e.kernel.name().into();
        }
        row
    };
    let rows: Vec<_> = estimates.iter().map(line).collect();
    json_of_lines("estimates", &rows, settings, notes)
}
