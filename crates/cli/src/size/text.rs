//! The result for people.

use super::{picture, summary};
use crate::flags::size::human;
use crate::table::Table;
use refault::size::{Baseline, Change, Confidence, Figure, Point, Recorded, SizeVerdict, Sizing};
use refault::words::{counted, duration, grouped, number, printable};
use std::fmt::Write as _;

/// The curve as a table and a picture, and what it says; `settings` is a line of flags.
pub(super) fn text(sizing: &Sizing, settings: &str) -> String {
    if let Some(of_sizes) = &sizing.summary {
        return summary::text(sizing, of_sizes, settings);
    }
    let mut text = caption(sizing, settings);
    text += &baseline(sizing);
    text += &table(sizing);
    text += &picture::draw(sizing);
    text.push('\n');
    text += &answer(sizing);
    text += &recorded(sizing);
    for note in &sizing.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    for warning in sizing.warnings() {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn caption(sizing: &Sizing, settings: &str) -> String {
    let grid = &sizing.grid;
    let scale = if sizing.scale == 1.0 { String::new() } else { format!(", scale {}", sizing.scale) };
    let sampled = sizing.sampled.map_or(String::new(), |of| {
        let samples = counted(u64::from(of.samples), "sample", "samples");
        format!(", estimated by {samples} of {} of the pages", of.one_in)
    });
    format!(
        "{}: the smallest {} of {} with {} ({})\n{}, seed {}{scale}{sampled}; {} to {} in steps of {}\n{settings}\n",
        printable(&sizing.name),
        sizing.limit.file(),
        group(sizing),
        sizing.target,
        sizing.target.metric().about(),
        sizing.policy,
        sizing.seed,
        sizing.size_in_words(grid.low),
        sizing.size_in_words(grid.high),
        sizing.size_in_words(grid.step),
    )
}

/// The group in words.
fn group(sizing: &Sizing) -> String {
    if sizing.group == "/" { "the trace".to_owned() } else { printable(&sizing.group) }
}

/// How near the lab is to the kernel that was recorded: it comes before what the lab says.
pub(super) fn baseline(sizing: &Sizing) -> String {
    let Some(Baseline { pages, kernel, lab, trust }) = sizing.baseline else { return String::new() };
    let metric = sizing.target.metric();
    let name = metric.name().replace('_', " ");
    let limit =
        if pages == u64::MAX { "without a limit".to_owned() } else { format!("with {}", sizing.size_in_words(pages)) };
    let verdict = match trust {
        Confidence::Whole => format!("trust it for {name}"),
        Confidence::Widened => "the bounds below are as far apart as these two".to_owned(),
        Confidence::Refused => format!("do not trust it for {name}"),
    };
    let (lab, kernel) = (metric.show(lab), metric.show(kernel));
    format!("as recorded, {limit}: {name} {lab} in the lab, {kernel} in the kernel: {verdict}\n\n")
}

fn table(sizing: &Sizing) -> String {
    table_of(sizing, &(0..sizing.points.len()).collect::<Vec<_>>(), true)
}

/// Some of the sizes that were tried, by their places; whether they meet a target, if there is one.
pub(super) fn table_of(sizing: &Sizing, places: &[usize], has_target: bool) -> String {
    let metric = sizing.target.metric();
    let beside: Vec<_> = sizing.points.iter().flat_map(|p| &p.beside).map(|(name, _)| *name).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in beside {
        // The metric that is asked for has a column already.
        if !names.contains(&name) && name != metric.name() {
            names.push(name);
        }
    }
    let has_bounds = sizing.points.iter().any(|point| point.bounds.is_some());
    let bounds = ["at least", "at most"].into_iter().filter(|_| has_bounds);
    let heads = [sizing.limit.file(), metric.name()]
        .into_iter()
        .chain(bounds)
        .chain(["target"].into_iter().filter(|_| has_target))
        .map(str::to_owned);
    let mut table = Table::new(heads.chain(names.iter().map(|name| head(name) + mark(sizing, name))), 0);
    for point in places.iter().filter_map(|&at| sizing.points.get(at)) {
        let met = if point.met { "met" } else { "-" };
        let mut cells = vec![sizing.size_in_words(point.pages), sizing.value_in_words(point)];
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
fn mark(sizing: &Sizing, name: &str) -> &'static str {
    if sizing.doubted.contains(&name) { "*" } else { "" }
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

/// The answer in a sentence.
fn answer(sizing: &Sizing) -> String {
    let (limit, group, target) = (sizing.limit.file(), group(sizing), &sizing.target);
    let at = |pages: u64| sizing.points.iter().find(|p| p.pages == pages);
    let why = |point: &Point| match point.failed {
        Some(failed) => failed.to_owned(),
        None => between(sizing, point),
    };
    match sizing.verdict {
        SizeVerdict::NotTrusted => {
            let metric = sizing.target.metric().name();
            format!(
                "no answer: the lab is too far from the kernel that was recorded to say the {metric} of other sizes\n"
            )
        }
        SizeVerdict::Found(pages) => {
            let below = sizing.points.iter().rfind(|p| p.pages < pages);
            let too_little = below
                .map_or(String::new(), |p| format!("; {} is too little ({})", sizing.size_in_words(p.pages), why(p)));
            let value = at(pages).map_or(String::new(), |p| format!(" ({})", why(p)));
            format!(
                "answer: {limit} = {} ({} bytes) of {group} meets {target}{value}{too_little}\n{}",
                sizing.size_in_words(pages),
                grouped(pages * sizing.page_size),
                certainty(sizing, pages),
            )
        }
        SizeVerdict::MetAtSmallest(pages) => {
            let value = at(pages).map_or(String::new(), |p| format!(" ({})", why(p)));
            let less = if pages == 0 { "" } else { "; a smaller one may do, --range says where to look" };
            format!(
                "answer: {limit} = {} ({} bytes) of {group}, the smallest that was tried, meets {target}{value}{less}\n",
                sizing.size_in_words(pages),
                grouped(pages * sizing.page_size),
            )
        }
        SizeVerdict::NotMet => {
            let largest = sizing.points.last();
            let high = sizing.size_in_words(sizing.grid.high);
            match largest.filter(|_| sizing.hopeful().is_some()) {
                Some(point) => format!(
                    "no certain answer for {target}: with {limit} = {high}, the largest that was tried, {group} has {}\n{}",
                    why(point),
                    hope(sizing),
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
fn between(sizing: &Sizing, point: &Point) -> String {
    let metric = sizing.target.metric();
    match point.bounds {
        Some((least, most)) => {
            format!("{}, between {} and {}", sizing.value_in_words(point), metric.show(least), metric.show(most))
        }
        None => sizing.value_in_words(point),
    }
}

/// The size that is certain to do, where the answer is not.
fn certainty(sizing: &Sizing, answer: u64) -> String {
    match sizing.certain() {
        Some(pages) if pages <= answer => String::new(),
        Some(pages) => format!("certain: {} meets it also at its worse bound\n", sizing.size_in_words(pages)),
        None if sizing.rests_on_others => "certain: no size, since others bring in pages (below)\n".to_owned(),
        None => "certain: none of the sizes that were tried meets it at its worse bound\n".to_owned(),
    }
}

/// The size that may do, where none is certain to.
fn hope(sizing: &Sizing) -> String {
    match sizing.hopeful() {
        Some(pages) => format!("possible: from {} on the better bound meets it\n", sizing.size_in_words(pages)),
        None => String::new(),
    }
}

/// The recorded limit beside others, a line each.
pub(super) fn recorded(sizing: &Sizing) -> String {
    let Some(recorded) = &sizing.recorded else { return String::new() };
    let mut text = format!(
        "\nas recorded, with {}: {} misses, {} read\n",
        sizing.size_in_words(recorded.pages),
        grouped(recorded.misses),
        human(recorded.read_bytes)
    );
    for change in &recorded.changes {
        let _ = writeln!(
            text,
            "with {} ({}) {}",
            change.words,
            sizing.size_in_words(change.pages),
            effect(recorded, change)
        );
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
