//! The machine of an input beside the same machine with something changed: another kernel, the
//! other kind of lists, more or less memory.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | [`WhatIfRequest`]: which changes, and those that are tried where none is named |
//! | `change` | a change, and a machine with and without it |
//! | `subject` | what every kind of input has: its machine, its metrics, a run |
//! | `trace`, `recording`, `scenario` | the kinds of input |
//! | `in_use` | mapped pages that may be in use |
//! | `effect` | the difference that a change makes, and whether it is more than its uncertainty |
//! | `answer`, `text` | [`WhatIf`]: the result, and the sentence; a table for people |
//! | `condition` | `--fail-if`: a difference that must not be |
//!
//! It calls `replay`, `recording` and the `runner`, and has the metrics and the trust of `size`.

mod answer;
mod change;
mod condition;
mod effect;
mod in_use;
mod recording;
mod request;
mod scenario;
mod subject;
mod text;
mod trace;

pub use crate::replay::swap::{ReplaySwap, SwapKind};
pub use answer::{Alternative, MetricTrust, WhatIf};
pub use change::{FileAdvice, LimitChange, WhatIfChange};
pub use condition::{ConditionResult, FailIf};
pub use effect::{EffectVerdict, WhatIfEffect};
pub use request::WhatIfRequest;

use crate::{Failure, Watch};
use change::Setup;
use refault_lab::scenario::Scenario;
use refault_trace::RecordSource;
use std::collections::BTreeMap;
use subject::{Outcome, WhatIfSubject};

/// Input whose machine is changed.
pub enum WhatIfInput<'a> {
    /// A trace, or a recording of a kernel.
    Source(Box<dyn RecordSource>),
    /// A machine in virtual time.
    Scenario {
        /// The scenario at full size, with its own seed.
        scenario: &'a Scenario,
        /// Its name in errors.
        file: &'a str,
    },
}

/// Runs the machine of an input as it is, and with each change.
///
/// # Errors
/// An input that cannot be read, a change that it cannot have, or cancel.
pub fn whatif(input: WhatIfInput<'_>, request: &WhatIfRequest, watch: &Watch) -> Result<WhatIf, Failure> {
    let subject: Box<dyn WhatIfSubject> = match input {
        WhatIfInput::Scenario { scenario, file } => Box::new(scenario::WhatIfScenario::new(scenario, file, request)?),
        WhatIfInput::Source(source) if request.group.is_some() => {
            return Err(format!("--group: is for a scenario, and {} is none", source.name()).into());
        }
        WhatIfInput::Source(source) if request.page_by_page && source.header().recording.is_none() => {
            let name = source.name();
            return Err(format!("--page-by-page: {name} is no recording, and is so anyway; leave it out").into());
        }
        WhatIfInput::Source(source) if source.header().recording.is_some() && !request.page_by_page => {
            Box::new(recording::WhatIfRecording::read(source, request, watch)?)
        }
        WhatIfInput::Source(source) => Box::new(trace::WhatIfTrace::read(source, request, watch)?),
    };
    of_subject(&*subject, request, watch)
}

fn of_subject(subject: &dyn WhatIfSubject, request: &WhatIfRequest, watch: &Watch) -> Result<WhatIf, Failure> {
    let changes = request.changes(subject)?;
    let mut machines = vec![subject.today().clone()];
    for changed in &changes {
        machines.push(changed.iter().fold(subject.today().clone(), |machine, change| machine.with(change)));
    }
    for machine in &machines {
        subject.check(machine)?;
    }
    if let [today, others @ ..] = machines.as_slice()
        && !others.is_empty()
        && others.iter().all(|other| other.is_same(today))
    {
        let names: Vec<String> = changes.iter().flatten().map(ToString::to_string).collect();
        return Err(
            format!("{}: is as today's machine, so that nothing changes; name another", names.join(", ")).into()
        );
    }
    let starts = request.starts.unwrap_or(subject.usual_starts()).max(1);
    // Machines that are the same run once.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut runs: Vec<Setup> = Vec::new();
    let mut place = |setup: Setup| {
        *places.entry(format!("{setup:?}")).or_insert_with(|| {
            runs.push(setup);
            runs.len() - 1
        })
    };
    let runs_of = |of: &Setup| {
        let starts = (0..starts).map(|n| subject.start(of, n));
        starts.chain(subject.other_reading(of)).map(&mut place).collect()
    };
    let all: Vec<Vec<usize>> = machines.iter().map(runs_of).collect();
    let outcomes = subject.run(&runs, request.threads, watch)?;
    watch.check()?;
    let of = |at: usize| all[at].iter().map(|&run| &outcomes[run]).collect::<Vec<&Outcome>>();
    let today = of(0);
    let trust = subject.trust(&outcomes[all[0][0]]);
    let rows = changes.iter().enumerate().map(|(at, changed)| {
        let (machine, outcomes) = (&machines[at + 1], of(at + 1));
        Alternative::new(subject, changed, machine, (&today, &outcomes), &trust)
    });
    let rows = rows.collect();
    Ok(WhatIf::new(subject, (&today, trust), rows, starts))
}
