//! `refault verify --play`: a trace on the kernel of this machine, several times, beside the lab.

use super::args::VerifyArgs;
use crate::Failure;
use crate::flags::size::human;
use crate::flags::{kernel, recorded};
use crate::replay::cell::Cell;
use crate::table::Table;
use crate::trace_cmd::note;
use refault::recording::POINTS;
use refault::words::{grouped, printable};
use refault_mm::{Config, Kernel, Policy};
use refault_pager::without_bound;
use refault_record::{KernelReplay, lru_gen, play, release, swappiness, with_one_descriptor};
use refault_trace::{LoadOptions, PackedAccess, Recording, Trace};
use serde::Serialize;
use std::fmt::Write as _;

/// Starts of the lab where the statistics of groups lag.
const STARTS: u64 = 5;

/// One size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    memory_pages: u64,
    /// Hit rates of the kernel's repeats, 0 to 1.
    kernel_hit_rates: Vec<f64>,
    /// The mean of all starts of the lab.
    lab_hit_rate: f64,
    /// Hit rates of the lab's starts, 0 to 1.
    lab_hit_rates: Vec<f64>,
    /// Points between the best and the worst repeat.
    spread_points: f64,
    /// Accesses in which the lab does as the kernel, the mean of all repeats.
    agreement: f64,
    /// The same of two repeats with each other; null: there is one.
    kernel_agreement: Option<f64>,
    is_within: bool,
}

/// Result of the comparison.
#[derive(Debug, Serialize)]
struct Report {
    trace: String,
    kernel: String,
    policy: &'static str,
    via: &'static str,
    accesses: u64,
    footprint_pages: u64,
    rows: Vec<Row>,
    is_within: bool,
}

/// Text to print, and whether the lab is within its bounds.
pub(super) fn run(args: &VerifyArgs) -> Result<(String, bool), Failure> {
    let Some(path) = &args.play else { return Err("no trace to play".into()) };
    let mut source = refault_trace::open(path, &refault_trace::OpenOptions::default())?;
    let options = LoadOptions { max_accesses: args.max_accesses, ..LoadOptions::default() };
    let trace = Trace::load(&mut source, &options)?;
    note(source.header(), path);
    let sizes = sizes(args, &trace)?;
    let folder = args.folder.clone().unwrap_or_else(|| ".".into());
    let this = Recording { kernel: release(), lru_gen: lru_gen(), swappiness: swappiness(), ..Recording::default() };
    let policy = args.policy()?.unwrap_or_else(|| recorded::policy(&this));
    let config = config(&this, policy);
    let accesses = with_one_descriptor(&trace);
    let mut rows = Vec::new();
    for pages in sizes {
        // A play has a group and a file that it removes.
        let repeats: Result<Vec<_>, _> =
            (0..args.repeats).map(|_| without_bound(|| play(&trace, &accesses, pages * 4096, &folder))).collect();
        let repeats = repeats?;
        let ns = repeats.iter().map(|played| played.duration_ns).sum::<u64>() / repeats.len().max(1) as u64;
        rows.push(row(pages, &repeats, &labs(&trace, &accesses, &config, pages, ns)?));
    }
    let report = Report {
        trace: trace.name.clone(),
        kernel: this.kernel,
        policy: policy.name(),
        via: via(&accesses),
        accesses: accesses.len() as u64,
        footprint_pages: u64::from(trace.footprint_pages()),
        is_within: rows.iter().all(|row| row.is_within),
        rows,
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text(&report),
    };
    Ok((text, report.is_within))
}

fn config(this: &Recording, policy: Policy) -> Config {
    let profile: Kernel = recorded::kernel(this);
    let mut config = kernel::config(Some(profile), policy);
    config.swappiness = recorded::swappiness(this).unwrap_or(config.swappiness);
    config.lru.stat_flush_interval_ns = recorded::stat_flush_interval_ns(profile);
    config
}

/// The sizes in pages, each once.
fn sizes(args: &VerifyArgs, trace: &Trace) -> Result<Vec<u64>, String> {
    if args.memory.is_empty() {
        return Err("--play: wants --memory LIST, the limits of the group: 64M,128M or 25%,50%".to_owned());
    }
    let mut all: Vec<u64> = Vec::new();
    for size in &args.memory {
        let pages = size.pages(4096, u64::from(trace.footprint_pages()));
        if pages < 256 || size.is_max() {
            return Err(format!("--memory {size}: a group takes 1M at least to play in, and a limit"));
        }
        if !all.contains(&pages) {
            all.push(pages);
        }
    }
    Ok(all)
}

/// Misses of the lab, at the speed of the kernel. When the kernel adds up the statistics of groups
/// is chance, so the lab starts at several times after that, evenly apart.
fn labs(
    trace: &Trace,
    accesses: &[PackedAccess],
    config: &Config,
    pages: u64,
    ns: u64,
) -> Result<Vec<KernelReplay>, String> {
    let starts = if config.lru.stat_flush_interval_ns == 0 { 1 } else { STARTS };
    let start_ns = |start| config.lru.stat_flush_interval_ns / STARTS * start;
    (0..starts).map(|start| lab(trace, accesses, config, pages, (start_ns(start), ns))).collect()
}

/// One start of the lab, in so many nanoseconds.
fn lab(
    trace: &Trace,
    accesses: &[PackedAccess],
    config: &Config,
    pages: u64,
    (start_ns, duration_ns): (u64, u64),
) -> Result<KernelReplay, String> {
    let mut cell = Cell::new(trace, config.clone(), pages, u64::MAX)?;
    // The statistics were added up before the group was made.
    cell.engine.set_now_ns(1);
    let mut missed = Vec::with_capacity(accesses.len());
    for (i, access) in accesses.iter().enumerate() {
        let passed = u128::from(duration_ns) * i as u128 / accesses.len() as u128;
        cell.engine.set_now_ns(start_ns + passed as u64);
        missed.push(!cell.step(*access));
    }
    Ok(KernelReplay { missed, duration_ns })
}

fn via(accesses: &[PackedAccess]) -> &'static str {
    let by_mapping = accesses.iter().filter(|access| access.is_map()).count();
    match by_mapping {
        0 => "by descriptor",
        n if n == accesses.len() => "by mapping",
        _ => "both",
    }
}

fn agreement(a: &KernelReplay, b: &KernelReplay) -> f64 {
    let same = a.missed.iter().zip(&b.missed).filter(|(a, b)| a == b).count();
    same as f64 / a.missed.len().max(1) as f64
}

/// The mean of some.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

fn row(memory_pages: u64, repeats: &[KernelReplay], labs: &[KernelReplay]) -> Row {
    let rates: Vec<_> = repeats.iter().map(KernelReplay::hit_rate).collect();
    let (low, high) = rates.iter().fold((1.0f64, 0.0f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    let pairs = repeats.iter().zip(repeats.iter().skip(1)).map(|(a, b)| agreement(a, b));
    let lab_hit_rates: Vec<_> = labs.iter().map(KernelReplay::hit_rate).collect();
    let lab_hit_rate = mean(lab_hit_rates.iter().copied());
    let alike: Vec<_> = repeats.iter().flat_map(|repeat| labs.iter().map(|lab| agreement(repeat, lab))).collect();
    let slack = POINTS / 100.0;
    Row {
        memory_pages,
        lab_hit_rate,
        lab_hit_rates,
        spread_points: 100.0 * (high - low),
        agreement: mean(alike.into_iter()),
        kernel_agreement: pairs.reduce(f64::min),
        is_within: (low - slack..=high + slack).contains(&lab_hit_rate),
        kernel_hit_rates: rates,
    }
}

impl Row {
    fn mean(&self) -> f64 {
        mean(self.kernel_hit_rates.iter().copied())
    }

    fn verdict(&self) -> &'static str {
        if self.is_within { "within" } else { "outside" }
    }
}

fn text(report: &Report) -> String {
    let repeats = report.rows.first().map_or(0, |row| row.kernel_hit_rates.len());
    let name = printable(&report.trace);
    let (release, policy) = (printable(&report.kernel), report.policy);
    let mut text = format!(
        "{name}: {} accesses to {} pages ({}), {}\nplayed {repeats} times on Linux {release} ({policy})\n\n",
        grouped(report.accesses),
        grouped(report.footprint_pages),
        human(report.footprint_pages * 4096),
        report.via,
    );
    let heads = [
        "memory",
        "kernel\nhit rate",
        "spread\npoints",
        "lab\nhit rate",
        "same as\nkernel",
        "kernel as\nitself",
        "verdict",
    ];
    let mut table = Table::new(heads, 0);
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    for row in &report.rows {
        table.row(vec![
            human(row.memory_pages * 4096),
            percent(row.mean()),
            format!("{:.2}", row.spread_points),
            percent(row.lab_hit_rate),
            percent(row.agreement),
            row.kernel_agreement.map_or("-".to_owned(), percent),
            row.verdict().to_owned(),
        ]);
    }
    text += &table.render();
    text += match report.is_within {
        true => "\nthe lab is inside of the kernel's own spread + 0.5 points\n",
        false => "\nthe lab is outside of the kernel's own spread + 0.5 points\n",
    };
    text += "\nfor an issue:\n| trace | kernel | policy | via | memory | accesses | kernel | spread | lab | same | verdict |\n";
    for row in &report.rows {
        let _ = writeln!(
            text,
            "| {name} | {release} | {policy} | {} | {} | {} | {} | {:.2} | {} | {} | {} |",
            report.via,
            human(row.memory_pages * 4096),
            report.accesses,
            percent(row.mean()),
            row.spread_points,
            percent(row.lab_hit_rate),
            percent(row.agreement),
            row.verdict(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(misses: &[u8]) -> KernelReplay {
        KernelReplay { missed: misses.iter().map(|&miss| miss == 1).collect(), duration_ns: 1 }
    }

    #[test]
    fn the_kernel_has_a_spread_of_its_own() {
        let repeats = [played(&[1, 1, 0, 0]), played(&[1, 0, 0, 0])];
        let within = row(9, &repeats, &[played(&[1, 0, 1, 0])]);
        assert_eq!((within.spread_points, within.kernel_agreement), (25.0, Some(0.75)));
        assert_eq!((within.agreement, within.is_within, within.mean()), (0.625, true, 0.625));
        let outside = row(9, &repeats, &[played(&[0, 0, 0, 0])]);
        let starts = row(9, &repeats, &[played(&[0, 0, 0, 0]), played(&[1, 1, 0, 0])]);
        assert_eq!((starts.lab_hit_rate, starts.lab_hit_rates, starts.is_within), (0.75, vec![1.0, 0.5], true));
        assert!(!outside.is_within && outside.verdict() == "outside");
        assert_eq!(row(9, &repeats[..1], &[played(&[1, 1, 0, 0])]).kernel_agreement, None);
    }
}
