//! The page that compares policies.

use super::share;
use crate::model::{Body, Cell, Colour, Figure, Page, Point, RangeRow, Ranges, Table, Verdict};
use crate::words;
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::document::verify::VerifyDocument;
use refault::units::{Unit, bytes};

const DOC: &str = "how-to/read-a-report.md#choice-of-a-policy";

/// The page.
pub(super) fn page(d: &TraceDocument) -> Page {
    Page::new("policy", "Which policy?", answer(d))
        .with(beside(d))
        .with(at_sizes(d))
        .with_all(by_object(d))
        .with(counters(d))
}

fn ratio(detail: &TraceDetail) -> f64 {
    share(detail.misses, detail.accesses)
}

/// The span of misses with a little less and more memory.
fn spread(detail: &TraceDetail) -> Option<(f64, f64)> {
    if detail.near.is_empty() {
        return None;
    }
    let all = detail.near.iter().map(|&(_, misses)| share(misses, detail.accesses)).chain([ratio(detail)]);
    let (low, high) = all.fold((f64::INFINITY, 0f64), |(low, high), n| (low.min(n), high.max(n)));
    Some((low, high))
}

fn answer(d: &TraceDocument) -> String {
    let memory = bytes(d.bytes(d.detail_pages as f64));
    let linux = d.details.iter().filter(|x| x.policy != "opt" && x.oom_at.is_none());
    let mut by_misses: Vec<_> = linux.collect();
    by_misses.sort_by_key(|x| x.misses);
    let Some(best) = by_misses.first() else { return format!("With {memory} no policy gets through.") };
    // With one policy there is nothing to be best of.
    let begin = match by_misses[..] {
        [only] => format!("Under {} with {memory}", only.policy),
        _ => format!("With {memory} {} is best:", best.policy),
    };
    let mut out = format!("{begin} {} of the accesses {}", words::share(ratio(best)), words::miss());
    let others: Vec<_> = by_misses[1..].iter().map(|x| format!("{} {}", x.policy, words::share(ratio(x)))).collect();
    if !others.is_empty() {
        out += &format!("; {}", others.join(", "));
    }
    out += match d.detail("opt") {
        Some(opt) => format!("; {} is the best possible (OPT).", words::share(ratio(opt))),
        None => ".".to_owned(),
    }
    .as_str();
    if let [best, second, ..] = by_misses[..] {
        let (a, b) = (spread(best), spread(second));
        if let (Some((_, high)), Some((low, _))) = (a, b)
            && high >= low
        {
            out += " With a little less or more memory their spans overlap: take them for equal.";
        }
    }
    if let Some(why) = d.verify.as_ref().and_then(VerifyDocument::hit_rate_doubt) {
        out += &format!(" Hit rates are not to be trusted: {why}.");
    }
    out
}

/// The policies at the size that is told in detail.
fn beside(d: &TraceDocument) -> Figure {
    let row = |x: &TraceDetail| RangeRow {
        label: x.policy.clone(),
        band: None,
        points: vec![Point {
            name: words::misses(),
            colour: Colour::of_policy(&x.policy),
            shape: "dot",
            value: ratio(x),
            spread: spread(x),
        }],
        verdict: x.oom_at.map(|_| (false, "OOM")),
    };
    let rows = d.details.iter().map(row).collect();
    let legend = vec![(
        Colour::Ink,
        "dot",
        format!("{}, % of accesses; the bar is the span from 2 % less to 2 % more memory", words::misses()),
    )];
    let ranges = Ranges { unit: Unit::Percent, share: true, log: false, rows, legend };
    let title = format!("{} with {}", words::either("Misses", "Hits"), bytes(d.bytes(d.detail_pages as f64)));
    let meaning = format!(
        "{} A long bar says that the policy is unstable there: what it makes of the trace depends on chance, and a \
         difference of that size says nothing.",
        why(d)
    );
    Figure::new(title, meaning, DOC, Body::Ranges(ranges))
}

/// Why details are of that size.
pub(super) fn why(d: &TraceDocument) -> &'static str {
    match d.detail_why.as_str() {
        "limit" => "The size is today's limit.",
        "given" => "The size was asked for.",
        _ => "The size is the knee of the curve.",
    }
}

/// The policies at some sizes of the curve.
fn at_sizes(d: &TraceDocument) -> Figure {
    let mut rows = Vec::new();
    for want in [0.1, 0.25, 0.5] {
        let near = |pages: u64| (pages as f64 / d.trace.footprint_pages.max(1) as f64 - want).abs();
        for curve in &d.curves {
            let Some(at) =
                (0..curve.pages.len()).min_by(|&a, &b| near(curve.pages[a]).total_cmp(&near(curve.pages[b])))
            else {
                continue;
            };
            let Some(misses) = curve.miss_ratio[at] else { continue };
            rows.push(RangeRow {
                label: format!("{}, {}", bytes(d.bytes(curve.pages[at] as f64)), curve.policy),
                band: None,
                points: vec![Point {
                    name: words::misses(),
                    colour: Colour::of_policy(&curve.policy),
                    shape: "dot",
                    value: 100.0 * misses,
                    spread: None,
                }],
                verdict: None,
            });
        }
    }
    let legend = vec![(Colour::Ink, "dot", format!("{}, % of accesses", words::misses()))];
    let meaning =
        "About a tenth, a quarter and half of the footprint: which policy is best may change with the memory.";
    let ranges = Ranges { unit: Unit::Percent, share: true, log: false, rows, legend };
    Figure::new("At other sizes", meaning, DOC, Body::Ranges(ranges))
}

/// Table of the misses of each object under this policy and another.
fn by_object(d: &TraceDocument) -> Option<Figure> {
    let main = d.main()?;
    let other = d.details.iter().find(|x| x.policy != main.policy && x.policy != "opt")?;
    let heads = vec![
        "object".to_owned(),
        "accesses".into(),
        format!("{}, {}", words::misses(), main.policy),
        format!("{}, {}", words::misses(), other.policy),
        format!("{} instead of {}", other.policy, main.policy),
    ];
    let rows = d.objects.iter().enumerate().map(|(n, object)| {
        let of = |x: &TraceDetail| x.object_misses.get(n).copied().unwrap_or(0) as f64;
        let change = of(other) - of(main);
        let verdict = match change {
            c if c < 0.0 => Verdict::Better,
            c if c > 0.0 => Verdict::Worse,
            _ => Verdict::Neither,
        };
        vec![
            Cell::Text(object.name.clone()),
            Cell::Number(object.accesses as f64, Unit::Count),
            Cell::misses(of(main) as u64, object.accesses),
            Cell::misses(of(other) as u64, object.accesses),
            Cell::EitherDifference(change, Unit::Count, verdict),
        ]
    });
    let table = Table { heads, rows: rows.collect(), searchable: true };
    let meaning =
        "What another policy would change for each object: a policy that is better for all may be worse for one.";
    Some(Figure::new("What would change for which object", meaning, DOC, Body::Table(table)))
}

fn counters(d: &TraceDocument) -> Figure {
    const SUMS: [(&str, [&str; 2]); 6] = [
        ("refaults", ["workingset_refault_anon", "workingset_refault_file"]),
        ("activations", ["workingset_activate_anon", "workingset_activate_file"]),
        ("scanned", ["pgscan_anon", "pgscan_file"]),
        ("evicted", ["pgsteal_anon", "pgsteal_file"]),
        ("swapped in", ["pswpin", ""]),
        ("swapped out", ["pswpout", ""]),
    ];
    let mut heads = vec!["policy".to_owned(), words::misses()];
    heads.extend(SUMS.iter().map(|(name, _)| (*name).to_owned()));
    let rows = d.details.iter().map(|x| {
        let mut cells = vec![Cell::Text(x.policy.clone()), Cell::misses(x.misses, x.accesses)];
        cells.extend(SUMS.iter().map(|(_, names)| {
            let sum: u64 = names.iter().filter_map(|name| x.counters.get(*name)).sum();
            if x.counters.is_empty() { Cell::None } else { Cell::Number(sum as f64, Unit::Count) }
        }));
        cells
    });
    let meaning = "Refaults are pages that came back and were remembered; an activation is a refault that the policy's \
                   test accepted. Pages that are scanned and not evicted cost processor time. OPT has no lists.";
    let table = Table { heads, rows: rows.collect(), searchable: false };
    Figure::new("What reclaim did", meaning, "reference/replay.md#columns", Body::Table(table))
}
