//! How much memory is enough?

use crate::model::{Axis, Body, Cell, Chart, Figure, Mark, Page, Series, Shape, Table, Verdict};
use crate::words;
use refault::curve::{CurveLine, Curves};
use refault::units::{Unit, bytes};

const QUESTION: &str = "How much memory is enough?";
const DOC: &str = "reference/replay.md#sizes";

const OF_TRACE: &str = "Each point is a replay of the whole trace with that memory.max. OPT knows the \
    future: no policy that loads single pages can do better, so what lies between a policy and OPT is the policy's, and \
    what lies beyond OPT is not to be had with that memory.";

const OF_RECORDING: &str = "Each point is the recorded machine with that memory.max, with its readahead. A miss is a wait \
    for a page that was not in memory: pages that are missing one after the other in one read are one.";

/// Curves as lines of a chart; `suffix` tells them from those of another input.
pub(crate) fn series(curves: &Curves, xs: &[f64], suffix: &str) -> Vec<Series> {
    let line = |line: &CurveLine| Series {
        name: format!("{}{suffix}", line.policy),
        values: xs.iter().map(|&x| line.at(x)).collect(),
        ..Series::of_policy(&line.policy, [])
    };
    curves.all.iter().map(line).collect()
}

/// Title of the curves.
pub(crate) fn title() -> String {
    words::either("Misses against memory", "Hits against memory")
}

/// The page; none: there are no two sizes to compare.
pub(crate) fn page(curves: &Curves) -> Option<Page> {
    let xs = curves.sizes();
    if xs.len() < 2 {
        return None;
    }
    let series = series(curves, &xs, "");
    let mut chart = Chart::of_misses(Shape::Lines, Axis::new("memory", Unit::Bytes), xs.clone(), series);
    let knee = curves.main().and_then(CurveLine::knee);
    if let Some((at, _)) = knee {
        chart.marks.push(Mark { at, label: "knee".into() });
    }
    if let Some(at) = curves.limit_bytes {
        chart.marks.push(Mark { at, label: "limit today".into() });
    }
    let meaning = match curves.all.iter().any(|line| !line.reads.is_empty()) {
        true => OF_RECORDING,
        false => OF_TRACE,
    };
    let figure = Figure::new(title(), meaning, DOC, Body::Chart(chart));
    let page = Page::new("memory", QUESTION, answer(curves, knee)).with(figure);
    Some(page.with_all(reads(curves, &xs)).with_all(steps(curves)))
}

/// Figure of reads from disks, for a recording.
fn reads(curves: &Curves, xs: &[f64]) -> Option<Figure> {
    let lines = curves.all.iter().filter(|line| !line.reads.is_empty()).map(|line| Series {
        name: line.policy.clone(),
        values: xs.iter().map(|&x| line.reads.iter().find(|&&(b, _)| b == x).map(|&(_, read)| read)).collect(),
        ..Series::of_policy(&line.policy, [])
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    let mut chart = Chart::new(
        Shape::Lines,
        Axis::new("memory", Unit::Bytes),
        Axis::new("read from disks", Unit::Bytes),
        xs.to_vec(),
        lines,
    );
    if let Some(at) = curves.limit_bytes {
        chart.marks.push(Mark { at, label: "limit today".into() });
    }
    let meaning = "What the recorded machine reads with that memory, in the whole recording: pages that programs wait for, \
                   and those that readahead brings in beside them, which no hit rate shows. Lower is better.";
    Some(Figure::new(
        "Disk reads against memory",
        meaning,
        "reference/record.md#the-method-of-verify",
        Body::Chart(chart),
    ))
}

fn answer(curves: &Curves, knee: Option<(f64, f64)>) -> String {
    let Some(line) = curves.main() else { return String::new() };
    let share = |b: f64| {
        format!("{:.0} % of the {} that it touches", 100.0 * b / curves.footprint_bytes, bytes(curves.footprint_bytes))
    };
    let mut out = match knee {
        Some((at, misses)) => format!(
            "The knee is at {} ({}): with {} there {} of the accesses {}.{}",
            bytes(at),
            share(at),
            line.policy,
            words::share(misses),
            words::miss(),
            next(curves, line, at)
        ),
        None => format!("There is no knee: with {} more memory brings about as much at every size.", line.policy),
    };
    if let Some(limit) = curves.limit_bytes {
        let misses = line.at(limit).map_or(String::new(), |m| format!(": {} {} there", words::share(m), words::miss()));
        out += &format!(" Today's limit is {}{misses}.{}", bytes(limit), next(curves, line, limit));
    }
    // With less than all of it there is more to miss.
    if let Some(&(at, least)) = line.points.last().filter(|p| p.0 >= curves.footprint_bytes) {
        out += &format!(
            " Even with {} {} {}: misses there are first touches, and what the kernel's own tables take.",
            bytes(at),
            words::share(least),
            words::miss()
        );
    }
    out
}

/// Effect of a tenth more or less memory: replayed, or said to be an estimate.
fn next(curves: &Curves, line: &CurveLine, at: f64) -> String {
    let Some(here) = line.at(at) else { return String::new() };
    let page = curves.page_size.max(1.0);
    let step = (at / page / 10.0).floor() * page;
    let replayed = |b: f64| curves.tenths.as_ref().and_then(|tenths| tenths.exactly(b)).or(line.exactly(b));
    let one = |word: &str, b: f64| {
        let (misses, is_replayed) = replayed(b).map(|m| (m, true)).or_else(|| Some((line.at(b)?, false)))?;
        let about = if is_replayed { "" } else { ", estimated between the sizes that were replayed" };
        Some((format!("tenth {word} ({}{about})", bytes(b)), words::change(misses - here)))
    };
    match (one("more", at + step), one("less", at - step)) {
        _ if step == 0.0 => String::new(),
        (Some((more, change)), Some((less, other))) => {
            format!(" A {more} changes that by {change}, a {less} by {other}.")
        }
        (Some((size, change)), None) | (None, Some((size, change))) => format!(" A {size} changes that by {change}."),
        (None, None) => String::new(),
    }
}

/// Table of the effect of each step of memory.
fn steps(curves: &Curves) -> Option<Figure> {
    let line = curves.main()?;
    let mut heads = vec!["memory".to_owned(), "of the footprint".into()];
    heads.extend(curves.all.iter().map(|l| format!("{} {}", l.policy, words::misses())));
    heads.push(format!("each MiB more, {}", line.policy));
    let mut last: Option<(f64, f64)> = None;
    let rows = curves.sizes().into_iter().map(|b| {
        let mut cells = vec![Cell::Text(bytes(b)), Cell::Number(100.0 * b / curves.footprint_bytes, Unit::Percent)];
        cells.extend(curves.all.iter().map(|l| l.at(b).map_or(Cell::None, Cell::share)));
        let here = line.at(b);
        let saves = last.zip(here).map(|((b0, m0), m)| (m0 - m) / ((b - b0) / 1_048_576.0));
        cells.push(saves.map_or(Cell::None, |s| Cell::EitherDifference(-s, Unit::Percent, Verdict::Neither)));
        last = here.map(|m| (b, m)).or(last);
        cells
    });
    let table = Table { heads, rows: rows.collect(), searchable: false };
    let meaning = "What memory is worth: by how much each MiB beyond the row above changes the share, in points.";
    Some(Figure::new("Step by step", meaning, DOC, Body::Table(table)))
}
