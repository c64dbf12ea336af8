//! Columns of `refault size` in which the lab is not as the recorded kernel.

use crate::common::command::{Sandbox, ok};
use crate::verify::made_up_of;
use refault_trace::{Series, Snapshot};
use serde_json::Value;

#[test]
fn regression_a_column_that_is_not_as_the_kernel_had_it_is_marked() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // All of it fits, but the kernel counts refaults.
    let look = |time_ns, refaults| Snapshot { time_ns, values: vec![refaults] };
    let series = |refaults| Series {
        names: vec!["workingset_refault_file".to_owned()],
        snapshots: vec![look(0, 0), look(1_000_000, refaults)],
    };
    let said = |flags: &[&str]| ok(&s.run(&[&["size", path.to_str().expect("text")], flags].concat()));
    let note = "refaults are not as the kernel had them: the lab has 0, the kernel 5,000";
    for (refaults, is_marked) in [(0, false), (5000, true)] {
        made_up_of(&path, 120, series(refaults), |i| i < 100);
        for flags in [&["--target", "hit_rate>80%"][..], &[]] {
            let text = said(flags);
            assert_eq!(text.contains(" refaults*"), is_marked, "{text}");
            assert_eq!(text.contains(&format!(": {note}\n")), is_marked, "{text}");
            let json: Value = serde_json::from_str(&said(&[flags, &["--json"]].concat())).expect("JSON");
            let doubted: Vec<&str> = ["refaults"].into_iter().filter(|_| is_marked).collect();
            assert_eq!(json["doubted"], Value::from(doubted), "{json}");
            let notes = json["notes"].as_array().expect("notes");
            assert_eq!(notes.contains(&note.into()), is_marked, "{json}");
        }
    }
    // A part of a recording has no count of the kernel's.
    let text = said(&["--target", "hit_rate>80%", "--warm-up", "10%"]);
    assert!(!text.contains("refaults*"), "{text}");
}
