//! Which inputs are scenarios, and which flags go with them.

use crate::replay::args::ReplayArgs;
use crate::{Failure, Given};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Flags of scenarios and of traces.
const BOTH: [&str; 13] = [
    "html",
    "policy",
    "kernel",
    "seed",
    "threads",
    "json",
    "csv",
    "output",
    "vmstat",
    "lru-gen",
    "memcg-limits",
    "swap-map",
    "max-memory",
];
/// Flags of scenarios alone.
const SCENARIOS: [&str; 4] = ["scale", "check", "series", "promotion"];
/// Flags of traces, and where a scenario says the same.
const INSTEAD: [(&str, &str); 11] = [
    ("memcg-column", "memcg of a task"),
    ("memory", "machine.memory"),
    ("swap-max", "swap.size"),
    ("swappiness", "machine.swappiness"),
    ("via", "via of a phase"),
    ("max-accesses", "accesses of a phase"),
    ("set", "[policy]"),
    ("thp", "[machine.thp]"),
    ("metrics", "--json"),
    ("windows", "sample; --series writes what was sampled"),
    ("page-size", "nothing: pages are 4096 bytes"),
];

/// Whether all inputs are scenarios; an error if some are, or if the flags do not fit.
pub(in crate::replay) fn are_scenarios(args: &ReplayArgs, given: &Given) -> Result<bool, Failure> {
    let kinds: Vec<_> = args.traces.iter().map(|path| (path, is_scenario(path))).collect();
    let find = |wanted: bool| kinds.iter().find(|(_, is)| *is == wanted).map(|(path, _)| path.display());
    match (find(true), find(false)) {
        (Some(scenario), Some(_)) if args.traces.iter().any(|path| path.as_os_str() == "-") => {
            Err(format!("-: is a trace on standard input, and {scenario} is a scenario; --json prints without it")
                .into())
        }
        (Some(scenario), Some(trace)) => {
            Err(format!("{scenario}: is a scenario, {trace} is a trace; replay them one after the other").into())
        }
        (Some(scenario), None) => {
            let foreign = given.flags().find(|flag| !BOTH.contains(flag) && !SCENARIOS.contains(flag));
            let Some(flag) = foreign else { return Ok(true) };
            let instead = INSTEAD.iter().find(|(of_traces, _)| *of_traces == flag);
            let hint = instead.map_or(String::new(), |(_, key)| format!("; what it has instead is {key}"));
            Err(format!("--{flag}: is for traces, and {scenario} is a scenario{hint}").into())
        }
        (None, trace) => match given.flags().find(|flag| SCENARIOS.contains(flag)) {
            Some(flag) => {
                let trace = trace.map_or(String::new(), |trace| format!(", and {trace} is a trace"));
                Err(format!("--{flag}: is for scenarios{trace}").into())
            }
            None => Ok(false),
        },
    }
}

/// A file whose name ends in `.toml`, or that begins as one: with a key or a section.
pub(crate) fn is_scenario(path: &Path) -> bool {
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) {
        return true;
    }
    // Input that can be read only once is left alone.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    read.is_ok() && begins_as_toml(&head)
}

/// No trace format has such a first line.
fn begins_as_toml(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = line.into_iter().find(|line| !line.is_empty() && line[0] != b'#') else { return false };
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return false;
    }
    let word = |text: &[u8]| {
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.\" ".contains(byte);
        text.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'"') && text.iter().all(part)
    };
    let section = line.strip_prefix(b"[").map(|rest| rest.strip_prefix(b"[").unwrap_or(rest));
    let inside = section.and_then(|rest| rest.split(|byte| *byte == b']').next());
    let key = line.iter().position(|byte| *byte == b'=').map(|at| line[..at].trim_ascii());
    inside.or(key).is_some_and(word)
}

#[cfg(test)]
mod tests {
    use super::begins_as_toml;

    #[test]
    fn first_lines() {
        for toml in ["name = \"a\"", "\n# what\n\n[machine]\n", "[[task]] # one", "device.disk = {}", "a=1"] {
            assert!(begins_as_toml(toml.as_bytes()), "{toml}");
        }
        let traces = [
            "",
            "# nothing\n",
            "12\n13\n",
            "1 4 0 0\n",
            " L 1000,8\n",
            "==7== x\n",
            "l 0x1000 1\n",
            "1,hm,1,Read,3,4,5\n",
        ];
        for trace in traces {
            assert!(!begins_as_toml(trace.as_bytes()), "{trace}");
        }
        assert!(!begins_as_toml(&[0x50, 0x41, 0x52, 0x31, b'=', 0]));
    }
}
