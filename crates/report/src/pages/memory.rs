//! How much memory is enough?

use crate::document::trace::{TraceDocument, main_of};
use crate::model::{Axis, Body, Cell, Chart, Figure, Mark, Page, Series, Shape, Table, Verdict};
use crate::units::{Unit, bytes};
use refault::knee_by_price;

const QUESTION: &str = "How much memory is enough?";
const DOC: &str = "reference/replay.md#sizes";

const OF_TRACE: &str = "Each point is a replay of the whole trace with that memory.max. Lower is better. OPT knows the \
    future: no policy that loads single pages can miss less, so what lies between a policy and OPT is the policy's, and \
    what lies below OPT is not to be had with that memory.";

const OF_RECORDING: &str = "Each point is the recorded machine with that memory.max, with its readahead. A miss is a wait \
    for a page that was not in memory: pages that are missing one after the other in one read are one. Lower is better.";

/// Miss ratios by memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    pub(crate) page_size: f64,
    pub(crate) footprint_bytes: f64,
    pub(crate) limit_bytes: Option<f64>,
    pub(crate) recorded_policy: Option<String>,
    /// Replays a tenth below and above the knee and the limit.
    pub(crate) tenths: Option<Line>,
    pub(crate) all: Vec<Line>,
}

/// The curve of one policy: bytes and misses in percent, by bytes.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) policy: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Bytes read from disks, by bytes of memory.
    pub(crate) reads: Vec<(f64, f64)>,
}

impl Line {
    /// At a size that was replayed.
    fn exactly(&self, bytes: f64) -> Option<f64> {
        self.points.iter().find(|&&(b, _)| b == bytes).map(|&(_, misses)| misses)
    }

    /// In percent; between two sizes in proportion.
    pub(crate) fn at(&self, bytes: f64) -> Option<f64> {
        let after = self.points.partition_point(|&(b, _)| b < bytes);
        let &(b1, m1) = self.points.get(after)?;
        if b1 == bytes || after == 0 {
            return (b1 == bytes).then_some(m1);
        }
        let (b0, m0) = self.points[after - 1];
        Some(m0 + (m1 - m0) * (bytes - b0) / (b1 - b0))
    }

    /// The size beyond which memory is not worth its price.
    pub(crate) fn knee(&self) -> Option<(f64, f64)> {
        self.points.get(knee_by_price(&self.points)?).copied()
    }
}

impl Curves {
    pub(crate) fn of_trace(d: &TraceDocument) -> Curves {
        let line = |c: &crate::document::trace::Curve| Line {
            policy: c.policy.clone(),
            points: c
                .pages
                .iter()
                .zip(&c.miss_ratio)
                .filter_map(|(&p, m)| Some((d.bytes(p as f64), 100.0 * (*m)?)))
                .collect(),
            reads: c
                .pages
                .iter()
                .zip(&c.read_pages)
                .filter_map(|(&p, read)| Some((d.bytes(p as f64), d.bytes((*read)? as f64))))
                .collect(),
        };
        Curves {
            page_size: d.trace.page_size as f64,
            footprint_bytes: d.bytes(d.trace.footprint_pages as f64),
            limit_bytes: d.limit_pages.map(|p| d.bytes(p as f64)),
            recorded_policy: d.recorded_policy.clone(),
            tenths: d.tenths.as_ref().map(line),
            all: d.curves.iter().map(line).collect(),
        }
    }

    pub(crate) fn main(&self) -> Option<&Line> {
        main_of(&self.all, |line| &line.policy, self.recorded_policy.as_deref())
    }

    /// The curves as a chart; `suffix` tells them from those of another input.
    pub(crate) fn series(&self, xs: &[f64], suffix: &str) -> Vec<Series> {
        let line = |line: &Line| Series {
            name: format!("{}{suffix}", line.policy),
            values: xs.iter().map(|&x| line.at(x)).collect(),
            ..Series::of_policy(&line.policy, [])
        };
        self.all.iter().map(line).collect()
    }

    pub(crate) fn sizes(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.all.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}

/// The page; none: there are no two sizes to compare.
pub(crate) fn page(curves: &Curves) -> Option<Page> {
    let xs = curves.sizes();
    if xs.len() < 2 {
        return None;
    }
    let mut chart = Chart::new(
        Shape::Lines,
        Axis::new("memory", Unit::Bytes),
        Axis::new("misses, % of accesses", Unit::Percent),
        xs.clone(),
        curves.series(&xs, ""),
    );
    let knee = curves.main().and_then(Line::knee);
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
    let figure = Figure::new("Misses against memory", meaning, DOC, Body::Chart(chart));
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
    Some(Figure::new("Disk reads against memory", meaning, "reference/record.md#what-verify-does", Body::Chart(chart)))
}

fn answer(curves: &Curves, knee: Option<(f64, f64)>) -> String {
    let Some(line) = curves.main() else { return String::new() };
    let share = |b: f64| {
        format!("{:.0} % of the {} that it touches", 100.0 * b / curves.footprint_bytes, bytes(curves.footprint_bytes))
    };
    let mut out = match knee {
        Some((at, misses)) => format!(
            "The knee is at {} ({}): with {} there {} miss.{}",
            bytes(at),
            share(at),
            line.policy,
            format_args!("{} of the accesses", Unit::Percent.text(misses)),
            next(curves, line, at)
        ),
        None => format!("There is no knee: with {} more memory brings about as much at every size.", line.policy),
    };
    if let Some(limit) = curves.limit_bytes {
        let misses = line.at(limit).map_or(String::new(), |m| format!(": {} miss there", Unit::Percent.text(m)));
        out += &format!(" Today's limit is {}{misses}.{}", bytes(limit), next(curves, line, limit));
    }
    // With less than all of it there is more to miss.
    if let Some(&(at, least)) = line.points.last().filter(|p| p.0 >= curves.footprint_bytes) {
        out += &format!(
            " Even with {} {} miss: these are first touches, and what the kernel's own tables take.",
            bytes(at),
            Unit::Percent.text(least)
        );
    }
    out
}

/// Effect of a tenth more or less memory: replayed, or said to be an estimate.
fn next(curves: &Curves, line: &Line, at: f64) -> String {
    let Some(here) = line.at(at) else { return String::new() };
    let page = curves.page_size.max(1.0);
    let step = (at / page / 10.0).floor() * page;
    let replayed = |b: f64| curves.tenths.as_ref().and_then(|tenths| tenths.exactly(b)).or(line.exactly(b));
    let one = |word: &str, b: f64| {
        let (misses, is_replayed) = replayed(b).map(|m| (m, true)).or_else(|| Some((line.at(b)?, false)))?;
        let about = if is_replayed { "" } else { ", estimated between the sizes that were replayed" };
        Some((format!("tenth {word} ({}{about})", bytes(b)), Unit::Percent.difference(misses - here)))
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
    heads.extend(curves.all.iter().map(|l| format!("{} misses", l.policy)));
    heads.push(format!("each MiB more, {}", line.policy));
    let mut last: Option<(f64, f64)> = None;
    let rows = curves.sizes().into_iter().map(|b| {
        let mut cells = vec![Cell::Text(bytes(b)), Cell::Number(100.0 * b / curves.footprint_bytes, Unit::Percent)];
        cells.extend(curves.all.iter().map(|l| l.at(b).map_or(Cell::None, |m| Cell::Number(m, Unit::Percent))));
        let here = line.at(b);
        let saves = last.zip(here).map(|((b0, m0), m)| (m0 - m) / ((b - b0) / 1_048_576.0));
        cells.push(saves.map_or(Cell::None, |s| Cell::Difference(-s, Unit::Percent, Verdict::Neither)));
        last = here.map(|m| (b, m)).or(last);
        cells
    });
    let table = Table { heads, rows: rows.collect(), searchable: false };
    let meaning = "What memory is worth: by how much each MiB beyond the row above changes the misses, in points.";
    Some(Figure::new("Step by step", meaning, DOC, Body::Table(table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        let points = vec![(1.0, 90.0), (2.0, 50.0), (3.0, 10.0), (4.0, 9.0), (10.0, 8.0)];
        let line = Line { policy: "lru".into(), points, reads: Vec::new() };
        assert_eq!(line.knee(), Some((3.0, 10.0)));
        assert_eq!(line.at(2.5), Some(30.0));
        assert_eq!(line.at(0.5), None);
        assert_eq!(line.at(11.0), None);
        let points = vec![(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)];
        let flat = Line { policy: "lru".into(), points, reads: Vec::new() };
        assert_eq!(flat.knee(), None);
    }
}
