//! Recordings of real programs: how near the lab is to the kernel in each number.

use crate::common::command::{Sandbox, ok};
use refault_testing::{one_in, recordings};
use serde_json::Value;

fn verified(name: &str) -> Option<Value> {
    let path = recordings()?.join(format!("{name}.parquet"));
    let text = ok(&Sandbox::new().run(&["verify", path.to_str().expect("text"), "--json"]));
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// Every page that was first touched counted as a miss at every size, and the lab began empty:
/// 75.45 % were promised in 384M, and no more than 78.08 % in 704M.
#[test]
fn regression_a_warm_service_in_a_tight_limit_is_promised_bounds_that_hold() {
    let Some(folder) = recordings() else { return };
    let path = folder.join("postgres-zipf-256M-attached.parquet");
    let path = path.to_str().expect("text");
    // By MiB: the kernel's hit rate in percent, where it was recorded there.
    let truth = [(192, 60.03), (384, 78.44), (432, 80.17), (704, 89.11)];
    let sandbox = Sandbox::new();
    for (range, step) in [("192M..432M", "240M"), ("384M..704M", "320M")].into_iter().step_by(one_in(2)) {
        let words = ["size", path, "-t", "hit_rate>80%", "--range", range, "--resolution", step, "--json"];
        let json: Value = serde_json::from_slice(&sandbox.run(&words).stdout).expect("JSON");
        assert_eq!(json["baseline"]["trust"], "whole");
        for point in json["points"].as_array().expect("points") {
            let mib = point["bytes"].as_u64().expect("bytes") >> 20;
            let Some((_, kernel)) = truth.iter().find(|(at, _)| *at == mib) else { continue };
            let of = |key: &str| 100.0 * point[key].as_f64().expect("a rate");
            let is_inside = (of("low")..=of("high")).contains(kernel);
            assert!(is_inside || (of("value") - kernel).abs() < 1.0, "{mib}M: {point}, in the kernel {kernel} %");
        }
    }
}

/// Code of RocksDB that is mapped may be in use: 13M were said to do, where it would be evicted.
#[test]
fn regression_a_limit_holds_whether_or_not_mapped_files_are_in_use() {
    let path = format!("{}/tests/data/lists/rocksdb-24M-mglru.parquet", env!("CARGO_MANIFEST_DIR"));
    let words = ["size", &path, "-t", "hit_rate>60%", "--json"];
    let json: Value = serde_json::from_str(&ok(&Sandbox::new().run(&words))).expect("JSON");
    assert_eq!(json["answer_bytes"], 24 << 20, "{json}");
    for point in json["points"].as_array().expect("points").iter().filter(|point| point["met"] == true) {
        assert!(point["low"].as_f64().expect("a rate") >= 0.6, "{point}");
    }
    assert!(json["notes"].to_string().contains("of files are mapped"), "{json}");
}

/// The hit rate that a recording promises of another limit, in percent.
fn promised(name: &str, mib: u64) -> Option<f64> {
    let path = recordings()?.join(format!("{name}.parquet"));
    let limit = format!("{mib}M");
    let words = ["verify", "-m", &limit, path.to_str().expect("text"), "--json"];
    let json: Value = serde_json::from_str(&ok(&Sandbox::new().run(&words))).expect("JSON");
    Some(100.0 * json["lab_hit_rate"].as_f64().expect("a rate"))
}

/// A row ends where the recorded kernel lacked the next page of a call. In less memory both lack,
/// and the call waits once: RocksDB was promised 57.5 % of 128M.
#[test]
fn regression_batches_of_one_call_wait_once() {
    for name in ["rocksdb-320M", "rocksdb-384M"].into_iter().step_by(one_in(2)) {
        let Some(lab) = promised(name, 128) else { return };
        assert!((lab - 60.70).abs() < 0.5, "{name}: {lab} %, in the kernel 60.70 %");
    }
}

/// In a smaller limit the pages of a warm service were those that it is about to touch: 79.8 % were
/// promised of 384M, and 61.4 % of 192M.
#[test]
fn regression_a_smaller_limit_does_not_know_what_is_touched_next() {
    for (name, mib, kernel) in [("704M", 384, 78.44), ("384M", 192, 60.03)].into_iter().step_by(one_in(2)) {
        let Some(lab) = promised(&format!("postgres-zipf-{name}"), mib) else { return };
        assert!((lab - kernel).abs() < 0.6, "{mib}M: {lab} %, in the kernel {kernel} %");
    }
}

/// Shared memory was a file that is evicted, and again a part of what the group is charged for.
#[test]
fn regression_shared_memory_counts_once() {
    let Some(json) = verified("postgres-tpcb-256M") else { return };
    let trusted = json["verdict"]["trust_for"].as_array().expect("names");
    assert!(trusted.contains(&"hit_rate".into()) && trusted.contains(&"misses".into()), "{trusted:?}");
    assert!(json["agreement"].as_f64().expect("a share") > 0.985, "{}", json["agreement"]);
}

#[test]
fn regression_fsync_of_a_file_that_nobody_wrote_is_nothing() {
    let Some(json) = verified("fsync-only") else { return };
    assert_eq!(json["accesses"], 4630);
}

/// Shadows were lost where DAMON had reclaimed among them, which recordings had taken for
/// truncation, and with a bound of nodes that left out what a group has besides files.
#[test]
fn regression_refaults_of_real_programs_are_those_of_the_kernel() {
    let recordings = [("nginx-128M", 10), ("rocksdb-320M", 10), ("postgres-zipf-704M-from-start", 5)];
    for (name, most_percent) in recordings.into_iter().step_by(one_in(3)) {
        let Some(json) = verified(name) else { return };
        let of = |side: &str| json["refaults"][side].as_u64().expect("a count");
        let (kernel, lab) = (of("kernel"), of("lab"));
        assert!(kernel.abs_diff(lab) * 100 <= kernel * most_percent, "{name}: {lab}, in the kernel {kernel}");
        let trusted = json["verdict"]["trust_for"].as_array().expect("names");
        assert!(trusted.contains(&"refaults".into()) && trusted.contains(&"misses".into()), "{name}: {trusted:?}");
    }
}
