//! The line that a page begins with, which answers, and what it rests on.
//!
//! It has the figures of the pages below; the library says what a result rests on.

use crate::compare;
use crate::names::escaped;
use crate::pages;
use crate::words::{self, either, share};
use refault::curve::{CurveLine, Curves};
use refault::document::scenario::{Run, ScenarioDocument};
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::document::whatif::WhatIfDocument;
use refault::document::{Document, Source};
use refault::units::{Unit, bytes, counted};
use std::fmt::Write as _;

/// Misses in percent that most services are content with.
const TARGET: f64 = 5.0;
/// Misses in points that more memory must save to be said to help.
const POINT: f64 = 1.0;

/// The lines: of several results the comparison first, then each by its name.
pub(crate) fn html(sources: &[Source]) -> String {
    let mut out = String::new();
    let mut line = |class: &str, name: Option<&str>, text: &str| {
        let name = name.map_or(String::new(), |name| format!("<b>{}</b>: ", escaped(name)));
        let _ = writeln!(out, "<p class=\"{class}\">{name}{}</p>", words::html(text));
    };
    if sources.len() > 1 {
        let differs = compare::difference(sources);
        line(
            "differs",
            None,
            &differs.map_or("No setting that is known differs.".into(), |d| format!("Differs in {d}.")),
        );
        line("lead", None, &compare::in_a_line(sources).unwrap_or_default());
    }
    for source in sources {
        let name = (sources.len() > 1).then_some(source.name.as_str());
        line(if name.is_some() { "of-input" } else { "lead" }, name, &answer(&source.document));
        let trust = trust(&source.document);
        line("trust", None, &format!("Rests on: {trust}."));
    }
    out
}

/// The answer in a line.
fn answer(document: &Document) -> String {
    match document {
        Document::Trace(d) => of_curves(&Curves::of_trace(d), other_policy(d)),
        Document::Replay(d) => match d.traces()[..] {
            [trace] => {
                let curves = Curves::of_replay(d, trace);
                if curves.sizes().len() > 1 { of_curves(&curves, String::new()) } else { first(document) }
            }
            ref all => format!("{}: {}", counted(all.len() as u64, "trace"), first(document)),
        },
        Document::Scenario(d) => of_scenario(d),
        Document::Bench(d) => {
            let of = d.benchmarks.iter().flat_map(|b| &b.rows).flat_map(|r| r.numbers.iter().chain(&r.ratios));
            let verdicts: Vec<bool> = of.filter_map(|f| f.within).collect();
            let met = verdicts.iter().filter(|met| **met).count();
            format!("{met} of {} are met.", counted(verdicts.len() as u64, "band"))
        }
        Document::WhatIf(d) => of_whatif(d),
        Document::Size(_) | Document::Run(_) | Document::Verify(_) | Document::Sweep(_) => first(document),
    }
}

/// The sentences of the answer, and what a pool of swap costs and brings.
fn of_whatif(d: &WhatIfDocument) -> String {
    let swap = d.alternatives.iter().filter(|of| of.name.starts_with("swap "));
    let pools = swap.filter_map(|of| Some(format!("{}: {}", of.name, of.remark.as_ref()?)));
    d.answer.iter().take(3).cloned().chain(pools.take(2)).map(|line| sentence(&line)).collect::<Vec<_>>().join(" ")
}

/// The answer of the first page.
fn first(document: &Document) -> String {
    pages::of(document).into_iter().next().map_or(String::new(), |page| page.answer)
}

/// How much is enough, what there is today, whether more of it helps; `policy` says whether another
/// policy does.
fn of_curves(curves: &Curves, policy: String) -> String {
    let Some(line) = curves.main() else { return String::new() };
    let mut out = enough(line);
    let knee = line.knee();
    let here = match (curves.limit_bytes, knee) {
        (Some(limit), _) => {
            let misses = line.at(limit).map_or(String::new(), |m| format!(" ({} {})", share(m), words::misses()));
            out += &format!("; today {}{misses}", bytes(limit));
            Some(limit)
        }
        (None, Some((at, misses))) => {
            out += &format!("; most is won by {} ({} {})", bytes(at), share(misses), words::misses());
            Some(at)
        }
        (None, None) => None,
    };
    if let Some(here) = here {
        out += &format!("; {}", more(line, here));
    }
    format!("{out}{policy}.")
}

/// The smallest size from which on the target is met, or the best that there is.
fn enough(line: &CurveLine) -> String {
    let at_most = |most: f64| {
        let from = line.points.iter().rposition(|&(_, misses)| misses > most).map_or(0, |at| at + 1);
        Some((from, line.points.get(from)?.0))
    };
    let target = either(&format!("{TARGET} % misses"), &format!("{} % hits", 100.0 - TARGET));
    if let Some((from, size)) = at_most(TARGET) {
        let less = if from == 0 { " or less" } else { "" };
        return format!("For {target} {}{less}", bytes(size));
    }
    let best = line.points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let within =
        at_most(best + POINT).map_or(String::new(), |(_, size)| format!(", within a point from {} on", bytes(size)));
    format!("No size has {target}: {} is the best{within}", share(best))
}

/// Whether more memory than that helps.
fn more(line: &CurveLine, here: f64) -> String {
    let Some(now) = line.at(here) else { return "more memory was not tried".into() };
    let above: Vec<_> = line.points.iter().filter(|&&(size, _)| size > here).collect();
    let best = above.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    match above.is_empty() {
        true => "more memory was not tried".into(),
        false if now - best > POINT && best < 0.9 * now => {
            let to = above.iter().find(|p| p.1 <= best + 0.1 * (now - best)).map_or(here, |p| p.0);
            format!("more memory helps (up to {}: {})", bytes(to), share(line.at(to).unwrap_or(best)))
        }
        false => "more memory does not help".into(),
    }
}

/// Whether a policy of Linux is better by more than both spread.
fn other_policy(d: &TraceDocument) -> String {
    let Some(main) = d.main().filter(|x| x.oom_at.is_none()) else { return String::new() };
    let percent = |misses: u64, x: &TraceDetail| 100.0 * misses as f64 / x.accesses.max(1) as f64;
    let span = |x: &TraceDetail| {
        let all = x.near.iter().map(|&(_, misses)| percent(misses, x)).chain([percent(x.misses, x)]);
        all.fold((f64::INFINITY, 0f64), |(low, high), n| (low.min(n), high.max(n)))
    };
    let others = d.details.iter().filter(|x| x.policy != "opt" && x.policy != main.policy && x.oom_at.is_none());
    let Some(best) = others.min_by_key(|x| x.misses) else { return String::new() };
    match span(best).1 < span(main).0 {
        true => format!(
            ", and so does {} in the place of {} ({} with {})",
            best.policy,
            main.policy,
            share(percent(best.misses, best)),
            bytes(d.bytes(d.detail_pages as f64))
        ),
        false => format!(", another policy than {} does not", main.policy),
    }
}

/// The group or task that suffers most, of the runs of a scenario.
fn of_scenario(d: &ScenarioDocument) -> String {
    let many = d.runs.len() > 1;
    let one = |run: &Run| {
        let head = if many { format!("{}: ", run.policy) } else { String::new() };
        let waited = |us: u64| 100.0 * us as f64 / 1e6 / run.virtual_seconds.max(1e-9);
        let below = run.groups.iter().filter(|g| g.path != "/").max_by_key(|g| g.pressure.some.total_us);
        let who = match below.or(run.groups.first()) {
            Some(g) if g.pressure.some.total_us == 0 => "nobody waits for memory".to_owned(),
            Some(g) if g.path == "/" => {
                format!(
                    "some task waits for memory {} of the time",
                    Unit::Percent.text(waited(g.pressure.some.total_us))
                )
            }
            Some(g) => {
                format!(
                    "{} suffers most: some task of it waits for memory {} of the time",
                    g.path,
                    Unit::Percent.text(waited(g.pressure.some.total_us))
                )
            }
            None => String::new(),
        };
        let slowest = run.tasks.iter().filter(|t| t.latency_ns.p99 > 0).max_by_key(|t| t.latency_ns.p99);
        let slowest = slowest.map_or(String::new(), |t| {
            format!("; slowest is {}, p99 {}", t.name, Unit::Nanoseconds.text(t.latency_ns.p99 as f64))
        });
        let killed = match (run.oom_kills, run.killed_first()) {
            (0, _) => String::new(),
            (n, None) => format!("; {}", counted(n, "OOM kill")),
            (n, Some(first)) => format!(
                "; {}, first {} at {}",
                counted(n, "OOM kill"),
                first.task,
                Unit::Seconds.text(first.at_seconds)
            ),
        };
        format!("{head}{who}{slowest}{killed}")
    };
    let all: Vec<_> = d.runs.iter().take(4).map(one).collect();
    let more = if d.runs.len() > 4 { " (and others)" } else { "" };
    let text = all.join(". ");
    sentence(&format!("{text}{more}"))
}

/// Text with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map_or(String::new(), |c| c.to_uppercase().collect());
    format!("{first}{}.", letters.as_str())
}

/// Evidence of a result, in words.
fn trust(document: &Document) -> String {
    match document {
        Document::Trace(d) => {
            let mut all = d.rests_on.clone();
            if all.is_empty() {
                all.push(format!("{} as they are in the trace", counted(d.trace.accesses, "access")));
            }
            match &d.verify {
                Some(v) => all.push(format!("the recorded machine; {}", v.verdict.text.trim_end_matches('.'))),
                None => all.push("a replay page by page, with no kernel beside it".into()),
            }
            all.join("; ")
        }
        Document::Replay(d) => {
            let mut accesses: Vec<u64> = d.rows.iter().map(|r| r.accesses).collect();
            accesses.dedup();
            let of = match accesses[..] {
                [n] => counted(n, "access"),
                _ => counted(d.traces().len() as u64, "trace"),
            };
            format!("a replay of {of}; how far other sizes near by are apart was not tried")
        }
        Document::Scenario(d) => {
            let mut seeds: Vec<u64> = d.runs.iter().map(|run| run.seed).collect();
            seeds.sort_unstable();
            seeds.dedup();
            match seeds[..] {
                [seed] => format!("a machine in virtual time, with seed {seed} alone: other seeds were not tried"),
                _ => format!("a machine in virtual time, with {}", counted(seeds.len() as u64, "seed")),
            }
        }
        Document::Bench(d) => {
            let seeds = d.benchmarks.iter().map(|b| b.seeds.len()).min().unwrap_or(0).max(1);
            format!(
                "a machine in virtual time, with {} of each, beside what was published",
                counted(seeds as u64, "seed")
            )
        }
        Document::Size(d) => match &d.warnings[..] {
            [] => format!("{} that were tried with policy {}", counted(d.points.len() as u64, "size"), d.policy),
            all => format!(
                "{} that were tried; {}",
                counted(d.points.len() as u64, "size"),
                all.join("; ").trim_end_matches('.')
            ),
        },
        Document::WhatIf(d) => d.trust_in_words(),
        Document::Sweep(d) => {
            let traces = d.summary.iter().map(|row| row.traces).max().unwrap_or(0);
            format!("replays of {}, with {} without figures", counted(traces, "trace"), counted(d.failed, "cell"))
        }
        Document::Run(_) => "one run of the program on this machine".into(),
        Document::Verify(d) => format!(
            "{} of the recording, single ones alike in {}{}",
            counted(d.accesses, "access"),
            Unit::Percent.text(100.0 * d.agreement),
            if d.lost > 0 { format!("; {} were lost", counted(d.lost, "event")) } else { String::new() }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(points: &[(f64, f64)], limit: Option<f64>) -> Curves {
        let line = CurveLine { policy: "lru".into(), points: points.to_vec(), reads: Vec::new() };
        Curves { all: vec![line], limit_bytes: limit, page_size: 4096.0, footprint_bytes: 4096.0, ..Curves::default() }
    }

    #[test]
    fn a_line_answers_how_much_what_there_is_and_whether_more_helps() {
        const M: f64 = 1_048_576.0;
        let falls = [(M, 60.0), (2.0 * M, 30.0), (4.0 * M, 12.0), (8.0 * M, 4.0), (16.0 * M, 3.9)];
        let said = words::plain(&of_curves(&curves(&falls, Some(4.0 * M)), String::new()));
        assert_eq!(said, "For 5 % misses 8 MiB; today 4 MiB (12.0 % misses); more memory helps (up to 8 MiB: 4.00 %).");
        let said = words::plain(&of_curves(&curves(&falls, Some(8.0 * M)), String::new()));
        assert!(said.ends_with("more memory does not help."), "{said}");
        let flat = [(M, 60.0), (2.0 * M, 59.5)];
        let said = words::plain(&of_curves(&curves(&flat, None), String::new()));
        assert_eq!(said, "No size has 5 % misses: 59.5 % is the best, within a point from 1 MiB on.");
    }

    #[test]
    fn another_policy_helps_only_beyond_the_spread() {
        let detail = |policy: &str, misses: u64, near: u64| TraceDetail {
            policy: policy.into(),
            accesses: 1000,
            misses,
            near: vec![(9, near)],
            ..TraceDetail::default()
        };
        let d = |other: TraceDetail| TraceDocument {
            details: vec![detail("mglru", 200, 190), other],
            ..TraceDocument::default()
        };
        assert!(other_policy(&d(detail("lru", 180, 195))).ends_with("another policy than mglru does not"));
        assert!(
            words::plain(&other_policy(&d(detail("lru", 150, 160))))
                .contains("so does lru in the place of mglru (15.0 %")
        );
    }
}
