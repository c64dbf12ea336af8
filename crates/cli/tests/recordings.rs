//! Recordings of real programs: how near the lab is to the kernel in each number.

use crate::common::command::{Sandbox, ok};
use refault_testing::recordings;
use serde_json::Value;

fn verified(name: &str) -> Option<Value> {
    let path = recordings()?.join(format!("{name}.parquet"));
    let text = ok(&Sandbox::new().run(&["verify", path.to_str().expect("text"), "--json"]));
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// Shadows were lost where DAMON had reclaimed among them, which recordings had taken for
/// truncation, and with a bound of nodes that left out what a group has besides files.
#[test]
fn regression_refaults_of_real_programs_are_those_of_the_kernel() {
    for (name, most_percent) in [("rocksdb-320M", 10), ("nginx-128M", 10), ("postgres-zipf-704M-from-start", 5)] {
        let Some(json) = verified(name) else { return };
        let of = |side: &str| json["refaults"][side].as_u64().expect("a count");
        let (kernel, lab) = (of("kernel"), of("lab"));
        assert!(kernel.abs_diff(lab) * 100 <= kernel * most_percent, "{name}: {lab}, in the kernel {kernel}");
        let trusted = json["verdict"]["trust_for"].as_array().expect("names");
        assert!(trusted.contains(&"refaults".into()) && trusted.contains(&"misses".into()), "{name}: {trusted:?}");
    }
}
