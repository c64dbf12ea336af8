//! Samples of a trace beside the whole: the same where all pages are taken, near it otherwise.

use crate::common::command::{Sandbox, error, ok};
use refault_cli::Watch;
use refault_cli::replay::cell::{Cell, CountOnly};
use refault_cli::replay::policy::RowPolicy;
use refault_cli::replay::sample::{OneIn, Question, SampledEstimate, estimate};
use refault_mm::{Config, Kernel, Policy};
use refault_testing::{one_in, step};
use refault_trace::generate::Workload;
use refault_trace::{LoadOptions, Sample, SampleUnit, Samples, Trace, Via};
use serde_json::Value;

const PHASES: [&str; 2] = [
    "400000: A:zipf:100000:permute=yes; S:loop:40000:start=7",
    "200000: A:zipf:100000:permute=yes,op=w; N:zipf:30000:kind=anon,op=w",
];

fn policies() -> Vec<(RowPolicy, Option<Config>)> {
    Policy::every().map(|policy| (RowPolicy::Linux(policy), Some(Config::new(policy)))).collect()
}

fn options(via: Via) -> LoadOptions {
    LoadOptions { default_via: via, ..LoadOptions::default() }
}

fn source() -> impl refault_trace::RecordSource {
    Workload::parse(&PHASES, 1).and_then(|w| w.generator("t")).expect("a workload")
}

fn estimates(
    via: Via,
    one_in: u64,
    unit: SampleUnit,
    sizes: &[u64],
    policies: &[(RowPolicy, Option<Config>)],
) -> Vec<SampledEstimate> {
    let kinds: Vec<_> = (0..if one_in == 1 { 1 } else { 4 }).map(|salt| Sample::new(one_in, unit, salt)).collect();
    let samples = Samples::load(&mut source(), &options(via), &kinds).expect("samples");
    let question = Question {
        one_in: OneIn(one_in),
        page_size: 4096,
        sizes,
        kernel: Kernel::default(),
        policies,
        swap_max_pages: u64::MAX,
        threads: 2,
        watch: Watch::default(),
    };
    estimate(&samples, &question).expect("estimates")
}

fn misses(trace: &Trace, cfg: &Config, pages: u64) -> u64 {
    let mut cell = Cell::new(trace, cfg.clone(), pages, u64::MAX).expect("a cell");
    cell.run(&trace.accesses, None, &mut CountOnly);
    cell.engine.validate().expect("a consistent engine");
    cell.misses
}

#[test]
fn all_pages_are_the_whole_replay() {
    for via in [Via::Fd, Via::Map].into_iter().step_by(one_in(2)) {
        let trace = Trace::load(&mut source(), &options(via)).expect("a trace");
        let size = u64::from(trace.footprint_pages()) / 4;
        let policies: Vec<_> = policies().into_iter().step_by(step(5, 2)).collect();
        let estimates = estimates(via, 1, SampleUnit::Page, &[size], &policies);
        assert_eq!(estimates.len(), policies.len());
        for (e, (policy, cfg)) in estimates.iter().zip(&policies) {
            let want = misses(&trace, cfg.as_ref().expect("not OPT"), size);
            assert_eq!((e.policy, e.misses(), e.samples[0].misses), (*policy, want, want), "{via:?}");
        }
    }
}

#[test]
fn a_tenth_is_near_the_whole() {
    let trace = Trace::load(&mut source(), &options(Via::Fd)).expect("a trace");
    let (size, policies) = (u64::from(trace.footprint_pages()) / 4, policies());
    for e in estimates(Via::Fd, 10, SampleUnit::Page, &[size], &policies[..Policy::ALL.len()]) {
        let cfg = policies.iter().find(|(policy, _)| *policy == e.policy).and_then(|(_, cfg)| cfg.clone());
        let truth = 1.0 - misses(&trace, &cfg.expect("not OPT"), size) as f64 / e.accesses as f64;
        let points = 100.0 * (e.hit_rate() - truth);
        println!("{:12} {:6.2} {points:+.2} ± {:.2}", e.policy.name(), 100.0 * truth, 100.0 * e.error().unwrap_or(0.0));
        assert!(points.abs() < 1.0, "{}: {points:+.2} points", e.policy.name());
    }
}

#[test]
fn the_command_prints_means_with_their_errors() {
    let s = Sandbox::new();
    let trace = s.generate("t.parquet", &["60000: A:zipf:20000:permute=yes"]);
    let text = ok(&s.replay(&trace, &["--sample", "10%", "--memory", "25%", "--curve"]));
    assert!(
        text.contains("5 samples, 1 in 10") && text.contains("standard") && text.contains("hit rate against"),
        "{text}"
    );
    assert!(!text.contains("note:"), "{text}");
    let json: Value =
        serde_json::from_str(&ok(&s.replay(&trace, &["--sample", "10%", "--salts", "3", "--json"]))).expect("JSON");
    let row = &json["estimates"][0];
    let rates: Vec<f64> =
        row["samples"].as_array().expect("samples").iter().filter_map(|sample| sample["hit_rate"].as_f64()).collect();
    assert_eq!((rates.len(), row["one_in"].as_u64(), row["accesses"].as_u64()), (3, Some(10), Some(60_000)));
    let mean = rates.iter().sum::<f64>() / 3.0;
    assert!((row["hit_rate"].as_f64().expect("a rate") - mean).abs() < 1e-9);
    let error = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 6.0).sqrt();
    assert!((row["standard_error"].as_f64().expect("an error") - error).abs() < 1e-9);
    let csv = ok(&s.replay(&trace, &["--sample", "10%", "--csv", "--memory", "25%"]));
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == 15), "{csv}");
}

#[test]
fn what_a_sample_cannot_tell_is_said() {
    let s = Sandbox::new();
    let trace = s.generate("t.parquet", &["60000: A:zipf:20000:permute=yes,via=map"]);
    let text = ok(&s.replay(&trace, &["--sample", "1%", "--memory", "10%"]));
    assert!(text.contains("note: 100% of the accesses are to files by mapping"), "{text}");
    assert!(text.contains("pages of a sample, in which single pages show"), "{text}");
    let text = ok(&s.replay(&trace, &["--sample", "10%", "--sample-unit", "node", "--memory", "25%"]));
    assert!(!text.contains("by mapping"), "{text}");
    for (flags, want) in [
        (vec!["--sample", "3%"], "write 1/33"),
        (vec!["--sample", "1%", "--windows", "3"], "--windows: is not for --sample"),
        (vec!["--sample", "1%", "--thp", "64k=always"], "add --sample-unit table"),
        (vec!["--sample", "0.1%", "--memory", "20p"], "is less than a page of a sample"),
        (vec!["--sample", "1/1000000"], "a sample has none of the"),
    ] {
        let complaint = error(&s.replay(&trace, &flags));
        assert!(complaint.contains(want), "{flags:?}: {complaint}");
    }
}
