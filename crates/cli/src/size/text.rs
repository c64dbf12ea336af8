//! The result for people.

use super::picture;
use super::report::{Baseline, Change, Figure, Point, Recorded, Report, Trust};
use super::search::Verdict;
use crate::flags::size::{Apart, human};
use crate::table::Table;
use refault::words::{counted, duration, grouped, number, printable};
use std::fmt::Write as _;

/// The curve as a table and a picture, and what it says.
pub(super) fn text(report: &Report) -> String {
    let mut text = caption(report);
    text += &baseline(report);
    text += &table(report);
    text += &picture::draw(report);
    text.push('\n');
    text += &answer(report);
    text += &recorded(report);
    for note in &report.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    for warning in warnings(report) {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn caption(report: &Report) -> String {
    let grid = &report.grid;
    let scale = if report.scale == 1.0 { String::new() } else { format!(", scale {}", report.scale) };
    let sampled = report.sampled.map_or(String::new(), |of| {
        let samples = counted(u64::from(of.samples), "sample", "samples");
        format!(", estimated by {samples} of {} of the pages", of.one_in)
    });
    format!(
        "{}: the smallest {} of {} with {} ({})\n{}, seed {}{scale}{sampled}; {} to {} in steps of {}\n\n",
        printable(&report.name),
        report.limit,
        printable(&report.group),
        report.target,
        report.target.metric().about(),
        report.policy,
        report.seed,
        size(report, grid.low),
        size(report, grid.high),
        size(report, grid.step),
    )
}

/// How near the lab is to the kernel that was recorded: it comes before what the lab says.
pub(super) fn baseline(report: &Report) -> String {
    let Some(Baseline { pages, kernel, lab, trust }) = report.baseline else { return String::new() };
    let metric = report.target.metric();
    let name = metric.name().replace('_', " ");
    let limit = if pages == u64::MAX { "without a limit".to_owned() } else { format!("with {}", size(report, pages)) };
    let verdict = match trust {
        Trust::Whole => format!("trust it for {name}"),
        Trust::Widened => "the bounds below are as far apart as these two".to_owned(),
        Trust::Refused => format!("do not trust it for {name}"),
    };
    let (lab, kernel) = (metric.show(lab), metric.show(kernel));
    format!("as recorded, {limit}: {name} {lab} in the lab, {kernel} in the kernel: {verdict}\n\n")
}

fn table(report: &Report) -> String {
    table_of(report, &(0..report.points.len()).collect::<Vec<_>>(), true)
}

/// Some of the sizes that were tried, by their places; whether they meet a target, if there is one.
pub(super) fn table_of(report: &Report, places: &[usize], has_target: bool) -> String {
    let metric = report.target.metric();
    let beside: Vec<_> = report.points.iter().flat_map(|p| &p.beside).map(|(name, _)| *name).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in beside {
        // The metric that is asked for has a column already.
        if !names.contains(&name) && name != metric.name() {
            names.push(name);
        }
    }
    let has_bounds = report.points.iter().any(|point| point.bounds.is_some());
    let bounds = ["at least", "at most"].into_iter().filter(|_| has_bounds);
    let heads = [report.limit, metric.name()]
        .into_iter()
        .chain(bounds)
        .chain(["target"].into_iter().filter(|_| has_target))
        .map(str::to_owned);
    let mut table = Table::new(heads.chain(names.iter().map(|name| head(name) + mark(report, name))), 0);
    for point in places.iter().filter_map(|&at| report.points.get(at)) {
        let met = if point.met { "met" } else { "-" };
        let mut cells = vec![size(report, point.pages), value(report, point)];
        if has_bounds {
            let (least, most) = point
                .bounds
                .map_or(("-".to_owned(), "-".to_owned()), |(least, most)| (metric.show(least), metric.show(most)));
            cells.extend([least, most]);
        }
        cells.extend(Some(met.to_owned()).filter(|_| has_target));
        for name in &names {
            let found = point.beside.iter().find(|(known, _)| known == name);
            cells.push(found.map_or_else(|| "-".to_owned(), |(_, beside)| shown(*beside)));
        }
        cells.extend(point.failed.map(str::to_owned));
        table.row(cells);
    }
    table.render()
}

/// The name of a column in two lines.
fn head(name: &str) -> String {
    name.replacen('_', "\n", 1).replace('_', " ")
}

/// The mark of a column that a note speaks of.
fn mark(report: &Report, name: &str) -> &'static str {
    if report.doubted.contains(&name) { "*" } else { "" }
}

fn shown(beside: Figure) -> String {
    match beside {
        Figure::Count(n) => grouped(n),
        Figure::Number(n) => number((n * 1000.0).round() / 1000.0),
        Figure::Share(n) => format!("{:.2}%", 100.0 * n),
        Figure::Percent(n) => format!("{n:.2}%"),
        Figure::Nanoseconds(ns) => duration(ns),
        Figure::Bytes(bytes) => human(bytes),
    }
}

fn value(report: &Report, point: &Point) -> String {
    point.value.map_or_else(|| "-".to_owned(), |value| report.target.metric().show(value))
}

pub(super) fn size(report: &Report, pages: u64) -> String {
    let of_points = report.points.iter().map(|point| point.pages * report.page_size);
    Apart::of(&of_points.collect::<Vec<_>>()).human(pages.saturating_mul(report.page_size))
}

/// The answer in a sentence.
fn answer(report: &Report) -> String {
    let (limit, group, target) = (report.limit, printable(&report.group), &report.target);
    let at = |pages: u64| report.points.iter().find(|p| p.pages == pages);
    let why = |point: &Point| match point.failed {
        Some(failed) => failed.to_owned(),
        None => between(report, point),
    };
    match report.verdict {
        Verdict::NotTrusted => {
            let metric = report.target.metric().name();
            format!(
                "no answer: the lab is too far from the kernel that was recorded to say the {metric} of other sizes\n"
            )
        }
        Verdict::Found(pages) => {
            let below = report.points.iter().rfind(|p| p.pages < pages);
            let too_little =
                below.map_or(String::new(), |p| format!("; {} is too little ({})", size(report, p.pages), why(p)));
            let value = at(pages).map_or(String::new(), |p| format!(" ({})", why(p)));
            format!(
                "answer: {limit} = {} ({} bytes) of {group} meets {target}{value}{too_little}\n{}",
                size(report, pages),
                grouped(pages * report.page_size),
                certainty(report, pages),
            )
        }
        Verdict::MetAtSmallest(pages) => {
            let value = at(pages).map_or(String::new(), |p| format!(" ({})", why(p)));
            let less = if pages == 0 { "" } else { "; a smaller one may do, --range says where to look" };
            format!(
                "answer: {limit} = {} ({} bytes) of {group}, the smallest that was tried, meets {target}{value}{less}\n",
                size(report, pages),
                grouped(pages * report.page_size),
            )
        }
        Verdict::NotMet => {
            let largest = report.points.last();
            let high = size(report, report.grid.high);
            match largest.filter(|_| report.hopeful().is_some()) {
                Some(point) => format!(
                    "no certain answer for {target}: with {limit} = {high}, the largest that was tried, {group} has {}\n{}",
                    why(point),
                    hope(report),
                ),
                None => format!(
                    "no answer: not even {limit} = {high}, the largest that was tried, of {group} meets {target}{}\n",
                    largest.map_or(String::new(), |p| format!(" ({})", why(p))),
                ),
            }
        }
    }
}

/// A value with its bounds.
fn between(report: &Report, point: &Point) -> String {
    let metric = report.target.metric();
    match point.bounds {
        Some((least, most)) => {
            format!("{}, between {} and {}", value(report, point), metric.show(least), metric.show(most))
        }
        None => value(report, point),
    }
}

/// The size that is certain to do, where the answer is not.
fn certainty(report: &Report, answer: u64) -> String {
    match report.certain() {
        Some(pages) if pages <= answer => String::new(),
        Some(pages) => format!("certain: {} meets it also at its worse bound\n", size(report, pages)),
        None if report.rests_on_others => "certain: no size, since others bring in pages (below)\n".to_owned(),
        None => "certain: none of the sizes that were tried meets it at its worse bound\n".to_owned(),
    }
}

/// The size that may do, where none is certain to.
fn hope(report: &Report) -> String {
    match report.hopeful() {
        Some(pages) => format!("possible: from {} on the better bound meets it\n", size(report, pages)),
        None => String::new(),
    }
}

/// The recorded limit beside others, a line each.
pub(super) fn recorded(report: &Report) -> String {
    let Some(recorded) = &report.recorded else { return String::new() };
    let mut text = format!(
        "\nas recorded, with {}: {} misses, {} read\n",
        size(report, recorded.pages),
        grouped(recorded.misses),
        human(recorded.read_bytes)
    );
    for change in &recorded.changes {
        let _ = writeln!(text, "with {} ({}) {}", change.words, size(report, change.pages), effect(recorded, change));
    }
    text
}

fn effect(recorded: &Recorded, change: &Change) -> String {
    if change.is_out_of_memory {
        return "out of memory: what is not of files does not fit".to_owned();
    }
    let difference = change.misses as i64 - recorded.misses as i64;
    let word = if difference < 0 { "fewer" } else { "more" };
    let much = match change.more(recorded) {
        _ if difference == 0 => return format!("as many misses, {} read", human(change.read_bytes)),
        // As many digits as can be told apart.
        Some(more) if more.abs() < 0.1 => format!("{:.1} %", 100.0 * more.abs()),
        Some(more) => format!("{:.0} %", 100.0 * more.abs()),
        None => grouped(difference.unsigned_abs()),
    };
    let of = change.object.as_ref().filter(|object| object.share >= 0.01).map_or(String::new(), |object| {
        format!(", of these {:.0} % of {}", 100.0 * object.share, printable(&object.name))
    });
    format!("{much} {word} misses{of}; {} read", human(change.read_bytes))
}

/// Reasons why the answer is less than certain.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let at = |p: &Point| {
        format!("{} at {}", p.failed.map_or_else(|| value(report, p), str::to_owned), size(report, p.pages))
    };
    let mut all = Vec::new();
    if let Some((smaller, larger)) = report.contradiction() {
        all.push(format!(
            "the curve is not monotone: the target is met with {} and not with {}; other sizes below the answer may meet it",
            at(smaller),
            at(larger)
        ));
    } else if let Some((smaller, larger)) = report.reversal() {
        all.push(format!("the curve is not monotone: {}, but {}", at(smaller), at(larger)));
    }
    if let Some(point) = report.uncertain() {
        all.push(format!(
            "{} is within two standard errors of the target; larger samples (--sample), or more of them (--salts), tell",
            at(point)
        ));
    }
    if report.scale != 1.0 && report.target.metric().needs_machine() && report.target.metric().name().contains(".avg") {
        all.push(format!(
            "times are divided by {}, but the averages of pressure are not; the figure is that of a shorter run",
            report.scale
        ));
    }
    all
}
