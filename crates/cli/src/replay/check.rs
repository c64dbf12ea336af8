//! Checks of flags that make no sense together, before anything is read.

use super::args::ReplayArgs;
use super::stream;
use crate::{Failure, is_same_file};
use std::path::PathBuf;

/// Fails on flags that make no sense together, before anything is read.
pub(super) fn check(args: &ReplayArgs) -> Result<(), Failure> {
    if args.traces.is_empty() {
        return Err("no trace given; name at least one file, or - for standard input".into());
    }
    if args.traces.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err("-: standard input can be read once; name it once".into());
    }
    let (traces, policies, sizes) = (args.traces.len(), args.policy.0.len(), args.memory.len());
    if args.output.miss_bits.is_some() && (traces, policies, sizes) != (1, 1, 1) {
        return Err(format!(
            "--miss-bits: wants one trace, one --policy and one --memory, but there are {traces}, {policies} and \
             {sizes}{}; give one of each",
            if sizes == 0 { " (the default is three)" } else { "" }
        )
        .into());
    }
    stream::check(args)?;
    check_paths(args)
}

/// No output is an input or another output; of several traces, each can be opened.
fn check_paths(args: &ReplayArgs) -> Result<(), Failure> {
    let outputs = [
        ("--output", &args.output.output),
        ("--miss-bits", &args.output.miss_bits),
        ("--html", &args.output.html),
        ("--metrics", &args.output.metrics),
    ];
    for (flag, path) in outputs {
        let Some(path) = path else { continue };
        if args.traces.iter().any(|trace| is_same_file(trace, path)) {
            return Err(format!("{}: is a trace to read; give {flag} another name", path.display()).into());
        }
    }
    check_different(&outputs)?;
    if args.traces.len() > 1 {
        // The last of many files should not fail after minutes. An input that can be read only once
        // is left alone.
        for path in args.traces.iter().filter(|path| path.is_file() || !path.exists()) {
            if path.as_os_str() != "-" {
                args.input.open(path)?;
            }
        }
    }
    Ok(())
}

/// No file is written twice.
pub(super) fn check_different(outputs: &[(&str, &Option<PathBuf>)]) -> Result<(), Failure> {
    for (n, (a_flag, a)) in outputs.iter().enumerate() {
        for (b_flag, b) in &outputs[n + 1..] {
            if let (Some(a), Some(b)) = (a, b)
                && is_same_file(a, b)
            {
                return Err(format!("{}: is named by {a_flag} and {b_flag}; give them two names", a.display()).into());
            }
        }
    }
    Ok(())
}
