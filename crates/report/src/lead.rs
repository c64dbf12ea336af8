//! The line that a page begins with, which answers, and what it rests on.
//!
//! It has the figures of the pages below; the library says what a result rests on.

use crate::compare;
use crate::names::escaped;
use crate::pages;
use crate::words::{self, either, share};
use refault::curve::{CurveAnswer, Curves, EnoughMemory, MoreMemory, OtherPolicy, TARGET_MISSES_PERCENT};
use refault::document::bench::Benchmark;
use refault::document::scenario::{Run, ScenarioDocument};
use refault::document::trace::TraceDocument;
use refault::document::verify::VerifyDocument;
use refault::document::whatif::WhatIfDocument;
use refault::document::{Document, Source};
use refault::units::{Unit, bytes, counted};
use std::fmt::Write as _;

/// The lines: of several results the comparison first, then each by its name.
pub(crate) fn html(sources: &[Source]) -> String {
    let mut out = String::new();
    let mut line = |class: &str, name: Option<&str>, text: &str| {
        let name = name.map_or(String::new(), |name| format!("<b>{}</b>: ", escaped(name)));
        let _ = writeln!(out, "<p class=\"{class}\">{name}{}</p>", words::html(text));
    };
    if sources.len() > 1 {
        if let Some(differs) = compare::difference(sources) {
            line("differs", None, &differs);
        }
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
        Document::Trace(d) => doubted(d.verify.as_ref(), of_curves(&Curves::of_trace(d), other_policy(d))),
        Document::Replay(d) => match d.traces()[..] {
            [trace] => {
                let curves = Curves::of_replay(d, trace);
                if curves.sizes().len() > 1 { of_curves(&curves, String::new()) } else { first(document) }
            }
            ref all => format!("{}: {}", counted(all.len() as u64, "trace"), first(document)),
        },
        Document::Scenario(d) => of_scenario(d),
        Document::Bench(d) => {
            let (met, all) =
                d.benchmarks.iter().map(Benchmark::bands_met).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
            format!("{met} of {} are met.", counted(all as u64, "band"))
        }
        Document::WhatIf(d) => of_whatif(d),
        Document::Size(_) | Document::Run(_) | Document::Verify(_) | Document::Sweep(_) => first(document),
    }
}

/// The answer after the doubt of a recording whose hit rates the lab does not have.
fn doubted(verify: Option<&VerifyDocument>, answer: String) -> String {
    match verify.and_then(VerifyDocument::hit_rate_doubt) {
        Some(why) => format!("Not to be trusted for hit rates: {why}. In the lab: {answer}"),
        None => answer,
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
    let Some(CurveAnswer { enough, limit, knee, more }) = curves.answer() else { return String::new() };
    let mut out = enough_in_words(enough);
    let in_brackets = |misses: f64| format!(" ({} {})", share(misses), words::misses());
    match (limit, knee) {
        (Some((limit, misses)), _) => {
            out += &format!("; today {}{}", bytes(limit), misses.map_or(String::new(), in_brackets));
        }
        (None, Some((at, misses))) => out += &format!("; most is won by {}{}", bytes(at), in_brackets(misses)),
        (None, None) => {}
    }
    match more {
        Some(MoreMemory::Untried) => out += "; more memory was not tried",
        Some(MoreMemory::SavesLittle) => out += "; more memory does not help",
        Some(MoreMemory::Helps { bytes: to, misses_percent }) => {
            out += &format!("; more memory helps (up to {}: {})", bytes(to), share(misses_percent));
        }
        None => {}
    }
    format!("{out}{policy}.")
}

fn enough_in_words(enough: EnoughMemory) -> String {
    const TARGET: f64 = TARGET_MISSES_PERCENT;
    let target = either(&format!("{TARGET} % misses"), &format!("{} % hits", 100.0 - TARGET));
    match enough {
        EnoughMemory::From { bytes: from, is_smallest } => {
            let of = if is_smallest { ", the smallest size tried" } else { " of the sizes tried" };
            format!("For {target} at most {}{of} (refault size finds the least)", bytes(from))
        }
        EnoughMemory::Never { misses_percent, near_from_bytes } => {
            let near = near_from_bytes.map_or(String::new(), |b| format!(", within a point from {} on", bytes(b)));
            format!("No size has {target}: {} is the best{near}", share(misses_percent))
        }
    }
}

/// Whether another policy of Linux is better.
fn other_policy(d: &TraceDocument) -> String {
    match d.best_other_policy() {
        None => String::new(),
        Some(OtherPolicy { policy, than, misses_percent, is_better: true }) => format!(
            ", and so does {policy} in the place of {than} ({} with {})",
            share(misses_percent),
            bytes(d.bytes(d.detail_pages as f64))
        ),
        Some(OtherPolicy { than, .. }) => format!(", another policy than {than} does not"),
    }
}

/// The group or task that suffers most, of the runs of a scenario.
fn of_scenario(d: &ScenarioDocument) -> String {
    let many = d.runs.len() > 1;
    let one = |run: &Run| {
        let head = if many { format!("{}: ", run.policy) } else { String::new() };
        let who = match run.most_stalled_group() {
            Some(g) if g.pressure.some.total_us == 0 => "nobody waits for memory".to_owned(),
            Some(g) => {
                let waits = Unit::Percent.text(run.percent_of_time(g.pressure.some.total_us));
                match &*g.path {
                    "/" => format!("some task waits for memory {waits} of the time"),
                    path => {
                        format!("{path} suffers most: some task of it waits for memory {waits} of the time")
                    }
                }
            }
            None => String::new(),
        };
        let slowest = run.slowest_task().map_or(String::new(), |t| {
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
    use refault::curve::CurveLine;

    #[test]
    fn a_line_answers_how_much_what_there_is_and_whether_more_helps() {
        const M: f64 = 1_048_576.0;
        let said = |points: &[(f64, f64)], limit_bytes: Option<f64>| {
            let line = CurveLine { policy: "lru".into(), points: points.to_vec(), reads: Vec::new() };
            let curves = Curves { all: vec![line], limit_bytes, ..Curves::default() };
            words::plain(&of_curves(&curves, String::new()))
        };
        let falls = [(M, 60.0), (2.0 * M, 30.0), (4.0 * M, 12.0), (8.0 * M, 4.0), (16.0 * M, 3.9)];
        assert_eq!(
            said(&falls, Some(4.0 * M)),
            "For 5 % misses at most 8 MiB of the sizes tried (refault size finds the least); today 4 MiB (12.0 % misses); \
             more memory helps (up to 8 MiB: 4.00 %)."
        );
        assert!(said(&falls, Some(8.0 * M)).ends_with("more memory does not help."));
        let smallest = said(&falls[3..], None);
        assert!(smallest.starts_with("For 5 % misses at most 8 MiB, the smallest size tried ("), "{smallest}");
        let flat = [(M, 60.0), (2.0 * M, 59.5)];
        assert_eq!(said(&flat, None), "No size has 5 % misses: 59.5 % is the best, within a point from 1 MiB on.");
    }

    #[test]
    fn regression_a_recording_that_is_not_to_be_trusted_for_hit_rates_says_so_first() {
        let json = serde_json::json!({"verdict": {"text": "", "not_for": [
            {"metric": "disk_reads", "why": "many"},
            {"metric": "hit_rate", "why": "the lab hits 3.37 points more than this kernel"},
        ]}});
        let mut verify = VerifyDocument::from_value(json).expect("a result of verify");
        assert_eq!(
            doubted(Some(&verify), "For 5 % misses 1 MiB.".into()),
            "Not to be trusted for hit rates: the lab hits 3.37 points more than this kernel. In the lab: For 5 % misses 1 MiB."
        );
        verify.verdict.not_for.pop();
        assert_eq!(doubted(Some(&verify), "For".into()), "For");
        assert_eq!(doubted(None, "For".into()), "For");
    }
}
