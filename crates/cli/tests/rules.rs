//! Rules of a result: said where they are not the default ones, and all of them on
//! request.

use crate::common::command::{Sandbox, error, ok, rows};
use serde_json::Value;

/// The line of the rules in a text, if there is one, and how many there are.
fn rules(text: &str) -> (Option<&str>, usize) {
    let mut lines = text.lines().filter(|line| line.starts_with("rules: "));
    (lines.next(), lines.count())
}

#[test]
fn a_table_says_once_which_rules_it_is_of() {
    let s = Sandbox::new();
    let trace = s.generate("t.parquet", &["20000: A:zipf:2000:memcg=/a; B:loop:700:memcg=/b,kind=anon"]);
    let forms: [&[&str]; 3] = [&[], &["--sample", "50%"], &["--memcg-column"]];
    let cases: [(&[&str], Option<&str>); 5] = [
        (&[], None),
        (&["--kernel", "6.12", "--set", "batch_folios=31"], None),
        (&["--kernel", "6.1"], Some("rules: kernel 6.1")),
        (
            &["--set", "batch_folios=15", "--swappiness", "10"],
            Some("rules: kernel 6.12, swappiness=10, batch_folios=15"),
        ),
        // Rules that 6.1 has itself are not said again.
        (
            &["--kernel", "6.1", "--set", "batch_folios=15", "--set", "inactive_ratio=3"],
            Some("rules: kernel 6.1, inactive_ratio=3"),
        ),
    ];
    for form in forms {
        for (flags, want) in cases {
            let text =
                ok(&s
                    .replay(&trace, &[&["--policy", "lru,mglru-shadow", "--memory", "25%,50%"], form, flags].concat()));
            assert_eq!(rules(&text), (want, 0), "{form:?} {flags:?}: {text}");
        }
    }
    // OPT follows none.
    assert_eq!(rules(&ok(&s.replay(&trace, &["--policy", "opt"]))), (None, 0));
    let target = ["size", "t.parquet", "--target", "hit_rate>50%"];
    assert!(ok(&s.run(&target)).contains("\nmglru, seed 0"));
    for sampled in [&[][..], &["--sample", "50%"]] {
        let text =
            ok(&s.run(&[&target[..], &["--kernel", "6.1", "--set", "faulted_pages=accessed"], sampled].concat()));
        assert!(text.contains("\nmglru (kernel 6.1, faulted_pages=accessed), seed 0"), "{text}");
    }
}

#[test]
fn json_names_the_kernel_of_every_row() {
    let s = Sandbox::new();
    let trace = s.generate("t.parquet", &["20000: A:zipf:2000:memcg=/a; B:loop:700:memcg=/b,kind=anon"]);
    let flags = |kernel: &'static str| ["--policy", "mglru,opt", "--memory", "25%", "--json", "--kernel", kernel];
    let kernels = |rows: &[Value]| rows.iter().map(|row| row.get("kernel").cloned()).collect::<Vec<_>>();
    for kernel in ["6.12", "6.18"] {
        let all = rows(&ok(&s.replay(&trace, &flags(kernel))));
        assert_eq!(kernels(&all), [Some(Value::from(kernel)), None]);
        let sampled = ok(&s.replay(&trace, &[&flags(kernel)[..], &["--sample", "50%"]].concat()));
        let sampled: Value = serde_json::from_str(&sampled).expect("JSON");
        assert_eq!(kernels(sampled["estimates"].as_array().expect("estimates")), [Some(Value::from(kernel)), None]);
        let groups = ["--policy", "mglru", "--memory", "25%", "--json", "--kernel", kernel, "--memcg-column"];
        assert_eq!(kernels(&rows(&ok(&s.replay(&trace, &groups)))), [Some(Value::from(kernel))]);
    }
}

/// Nothing else has to be given to see what there is.
#[test]
fn every_command_with_a_kernel_lists_what_there_is() {
    let s = Sandbox::new();
    let list = ok(&s.run(&["replay", "--kernel", "list"]));
    assert!(list.contains("\n  6.18: Linux 6.18\n") && list.contains("memcgs=first"), "{list}");
    for command in ["size", "report"] {
        assert_eq!(ok(&s.run(&[command, "--kernel", "list"])), list, "{command}");
    }
    assert_eq!(ok(&s.run(&["size", "t.parquet", "--kernel=list", "--target", "hit_rate>9%"])), list);
    let help = ok(&s.run(&["replay", "--set", "help"]));
    assert!(help.contains("\n  batch_folios="), "{help}");
    assert_eq!(ok(&s.run(&["size", "--set", "help"])), help);
}

#[test]
fn an_unknown_kernel_is_answered_with_the_nearest() {
    let s = Sandbox::new();
    for command in ["replay", "size", "report"] {
        let line = error(&s.run(&[command, "--kernel", "6.13"]));
        let want = "'--kernel <NAME>': unknown kernel \"6.13\"; nearest to it is 6.12; known are 2022-v14, 6.1,";
        assert!(line.contains("invalid value '6.13' for") && line.contains(want), "{command}: {line}");
        assert!(line.contains("7.2; list prints what each is"), "{line}");
    }
}
