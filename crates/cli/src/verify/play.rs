//! `refault verify --play`: a trace on the kernel of this machine, several times, beside the lab.

use super::args::VerifyArgs;
use super::shown;
use crate::Failure;
use crate::bars::watch;
use crate::flags::recorded;
use crate::flags::size::human;
use crate::given::GivenSettings;
use crate::replay::clocked::Clocked;
use crate::table::Table;
use crate::trace_cmd::note;
use refault::verify::{Play, Played, PlayedSize, Repeat};
use refault::words::{counted, printable, times};
use refault_record::{self as record, lru_gen, play, release, swappiness, with_one_descriptor};
use refault_syscalls::without_bound;
use refault_trace::{LoadOptions, RecordSource, Recording, Trace};
use std::fmt::Write as _;

/// Text to print, and whether the lab is within its bounds.
pub(super) fn run(args: &VerifyArgs, settings: &GivenSettings) -> Result<(String, bool), Failure> {
    let Some(path) = &args.play else { return Err("no trace to play".into()) };
    let source = refault_trace::open(path, &refault_trace::OpenOptions::default())?;
    let mut source = Clocked::new(source, args.max_accesses, &watch());
    let options = LoadOptions { max_accesses: args.max_accesses, ..LoadOptions::default() };
    let trace = Trace::load(&mut source, &options)?;
    note(source.header(), path);
    let sizes = sizes(args, &trace)?;
    let folder = args.folder.clone().unwrap_or_else(|| ".".into());
    let this = Recording { kernel: release(), lru_gen: lru_gen(), swappiness: swappiness(), ..Recording::default() };
    let policy = args.policy()?.unwrap_or_else(|| recorded::policy(&this));
    let accesses = with_one_descriptor(&trace);
    let kernel = |pages: u64| {
        // A play has a group and a file that it removes.
        let once = |_| without_bound(|| play(&trace, &accesses, pages * 4096, &folder)).map(repeat);
        Ok((0..args.repeats).map(once).collect::<Result<Vec<_>, _>>()?)
    };
    let report = Play::new(&trace, &accesses, &this, policy).run(&sizes, &kernel)?;
    Ok((shown(args, settings, &report, text)?, report.is_within))
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

fn repeat(record::KernelReplay { missed, duration_ns }: record::KernelReplay) -> Repeat {
    Repeat { missed, duration_ns }
}

fn verdict(row: &PlayedSize) -> &'static str {
    if row.is_within { "within" } else { "outside" }
}

fn text(report: &Played) -> String {
    let repeats = report.rows.first().map_or(0, |row| row.kernel_hit_rates.len());
    let name = printable(&report.trace);
    let (release, policy) = (printable(&report.kernel), report.policy);
    let mut text = format!(
        "{name}: {} to {} ({}), {}\nplayed {} on Linux {release} ({policy})\n\n",
        counted(report.accesses, "access", "accesses"),
        counted(report.footprint_pages, "page", "pages"),
        human(report.footprint_pages * 4096),
        report.via,
        times(repeats as u64),
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
            percent(row.kernel_hit_rate()),
            format!("{:.2}", row.spread_points),
            percent(row.lab_hit_rate),
            percent(row.agreement),
            row.kernel_agreement.map_or("-".to_owned(), percent),
            verdict(row).to_owned(),
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
            percent(row.kernel_hit_rate()),
            row.spread_points,
            percent(row.lab_hit_rate),
            percent(row.agreement),
            verdict(row),
        );
    }
    text
}
