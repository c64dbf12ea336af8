//! `refault whatif`: a machine beside the same machine with something changed, by the library.
//!
//! `args` has the flags, as a request. It calls `refault::whatif`. `main` calls `run`.

mod args;

use crate::given::{GivenFlags, GivenSettings};
use crate::replay::{check_output, write};
use crate::{Failure, print, say};
pub use args::WhatIfArgs;
use refault::whatif::{FailIf, WhatIf};
use serde::Serialize;
use std::iter;

/// Runs `refault whatif ...`, of whose flags `given` were; false: a condition of `--fail-if` holds.
pub fn run(args: &WhatIfArgs, given: &GivenFlags) -> Result<bool, Failure> {
    if let Some(path) = &args.output {
        check_output(iter::once(args.subject.as_path()), path)?;
    }
    let result = args.result(given)?;
    args.fail_if.iter().try_for_each(|condition| condition.applies(&result))?;
    // The table says why nothing is known.
    let held = held(&args.fail_if, &result);
    let text = match args.json {
        true => json(&result, args, given)?,
        false => result.text(&given.settings(&[]).line(&[])),
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    let (lines, is_free) = held?;
    lines.iter().for_each(|line| say(line));
    Ok(is_free)
}

/// The result for programs, with its settings and notes on the trace that was read.
fn json(result: &WhatIf, args: &WhatIfArgs, given: &GivenFlags) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct All<'a> {
        #[serde(flatten)]
        result: &'a WhatIf,
        notes: Vec<String>,
        settings: GivenSettings,
    }
    let all = All { result, notes: args.input.notes(), settings: given.settings(&[]) };
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// A line for each condition, and whether none holds.
fn held(conditions: &[FailIf], result: &WhatIf) -> Result<(Vec<String>, bool), Failure> {
    let (mut lines, mut is_free) = (Vec::new(), true);
    for condition in conditions {
        let held = condition.check(result)?;
        is_free &= held.holds.is_empty();
        let rest = [("within doubt", &held.within_doubt), ("not known", &held.unknown)];
        let rest = rest.iter().filter(|(_, names)| !names.is_empty());
        let rest: String = rest.map(|(lead, names)| format!("; {lead}: {}", names.join(", "))).collect();
        lines.push(match held.holds.as_slice() {
            [] => format!("ok: {condition} holds for no change{rest}"),
            names => format!("failed: {condition} ({}) holds: {}{rest}", condition.unit(), names.join(", ")),
        });
    }
    Ok((lines, is_free))
}
