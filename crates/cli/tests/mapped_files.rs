//! Mapped files beside the kernel: recordings of a program that touches pages of a mapping.

use crate::common::command::{Sandbox, ok};
use refault_testing::recordings;
use serde_json::Value;

/// The lab evicted nothing, for it read nothing around a fault after the first hundred that missed.
///
/// Hit rates are further apart than evictions are. These were recorded when the recorder wrote the
/// hits that fault-around finds over with the fault behind them; and touches of pages in place are
/// in no recording of this machine: the lab does not know of them, and the kernel is not asked
/// about them.
#[test]
fn regression_faults_at_random_are_read_around() {
    let Some(folder) = recordings() else { return };
    let sandbox = Sandbox::new();
    for (name, points) in [("mapped-uniform-128M", 3.5), ("mapped-skewed-128M", 5.5)] {
        let file = folder.join(format!("{name}.parquet"));
        let file = file.to_str().expect("text");
        let json: Value = serde_json::from_str(&ok(&sandbox.run(&["verify", "--json", file]))).expect("JSON");
        let number = |value: &Value| value.as_f64().expect("a number");
        let evicted = number(&json["lab_counters"]["pgsteal_file"]) / number(&json["kernel_pages"]["evicted"]);
        assert!((0.9..1.1).contains(&evicted), "{name}: {evicted} of the pages that the kernel evicted");
        let apart = 100.0 * (number(&json["lab_hit_rate"]) - number(&json["kernel_hit_rate"]));
        assert!(apart.abs() < points, "{name}: {apart} points apart");
    }
}
