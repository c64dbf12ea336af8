//! `refault record --sample`: by programs in the kernel, and by filters of perf events.

use crate::common::command::{error, ok};
use crate::record::recordable;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Pages of the file that is read, twice, a page at a time: a whole number of units.
const PAGES: u64 = 640;

fn sampled(dir: &Path, sampler: &str) -> std::process::Output {
    let reads = format!("for i in 1 2; do dd if=large of=/dev/null bs=4k count={PAGES} 2>/dev/null; done");
    Command::new(env!("CARGO_BIN_EXE_refault"))
        .args(["record", "--json", "--sample", "1/2", "--sampler", sampler, "-o", "t.parquet"])
        .args(["--", "sh", "-c", &reads])
        .current_dir(dir)
        .output()
        .expect("it runs")
}

#[test]
fn programs_and_filters_take_the_same_sample() {
    let Some((dir, _)) = recordable() else { return };
    std::fs::write(dir.path().join("large"), vec![1; PAGES as usize * 4096]).expect("writable");
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let filters = json(&ok(&sampled(dir.path(), "filter")));
    assert_eq!(filters["counted"], Value::Null, "filters count nothing else");
    let programs = sampled(dir.path(), "bpf");
    if !programs.status.success() {
        let why = error(&programs);
        assert!(why.contains("--sampler bpf: ") && why.lines().count() == 1, "{why}");
        let auto = json(&ok(&sampled(dir.path(), "auto")));
        assert_eq!(auto["counted"], Value::Null, "{why}");
        eprintln!("no programs here: {why}");
        return;
    }
    let programs = json(&ok(&programs));
    let number = |json: &Value, key: &str| json[key].as_u64().expect("a number");
    let both = [&filters, &programs].map(|json| number(json, "accesses"));
    // Half of the units, and a part of what the shell and dd have mapped.
    assert!(both.iter().all(|accesses| (PAGES..PAGES + 400).contains(accesses)), "{both:?}");
    assert!(both[0].abs_diff(both[1]) < 60, "{both:?}");
    let counted = number(&programs, "counted");
    assert!((2 * PAGES..2 * PAGES + 800).contains(&counted), "{counted}");
    assert_eq!(number(&programs, "lost"), 0);
}
