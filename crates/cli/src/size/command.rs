//! `refault size`, from its flags to its output.

use super::args::SizeArgs;
use super::text;
use crate::flags::{memory, recorded};
use crate::given::{GivenFlags, GivenSettings};
use crate::replay::{check_output, is_scenario, write};
use crate::{Failure, print};
use refault::size::{FlagsOf, Prepared, SAID_BY_RESULT, SizeKind, SizeRequest, Sizing, Subject};
use refault_lab::scenario::Scenario;
use refault_trace::RecordSource;
use serde::Serialize;
use std::iter;

/// Flags that a caption says.
const OF_CAPTION: [&str; 4] = ["kernel", "scale", "sample", "salts"];

/// Runs `refault size ...`, of whose flags `given` were; false: no size meets the target.
pub fn run(args: &SizeArgs, given: &GivenFlags) -> Result<bool, Failure> {
    if let Some(path) = &args.output {
        check_output(iter::once(args.subject.as_path()), path)?;
    }
    let sizing = sizing(args, given)?;
    let text = match args.json {
        true => json(sizing.clone(), args, given)?,
        false => {
            // The caption of a scenario names no kernel that is the default one.
            let said = if is_scenario(&args.subject) { &OF_CAPTION[1..] } else { &OF_CAPTION };
            text::text(&sizing, &given.settings(&SAID_BY_RESULT).line(said))
        }
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(sizing.summary.is_some() || sizing.answer().is_some())
}

/// The result for programs, with its settings and notes on the traces that were read.
fn json(mut sizing: Sizing, args: &SizeArgs, given: &GivenFlags) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct All {
        #[serde(flatten)]
        sizing: Sizing,
        settings: GivenSettings,
    }
    sizing.notes.extend(args.trace.input.notes());
    let all = All { sizing, settings: given.settings(&SAID_BY_RESULT) };
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn sizing(args: &SizeArgs, given: &GivenFlags) -> Result<Sizing, Failure> {
    let request = args.request(given);
    let is_scenario = is_scenario(&args.subject);
    request.check_summary(&args.subject.display().to_string(), is_scenario)?;
    if is_scenario {
        return of_scenario(args, given, &request);
    }
    let mut source = args.trace.input.open(&args.subject)?;
    of_source(args, given, &request, &mut source)
}

fn of_scenario(args: &SizeArgs, given: &GivenFlags, request: &SizeRequest) -> Result<Sizing, Failure> {
    args.check_flags(given, FlagsOf::Scenario)?;
    memory::advise_scenario(given.has("scale"));
    let (scenario, file) = (Scenario::load(&args.subject)?, args.subject.display().to_string());
    let prepared = Prepared::new(Subject::Scenario { scenario: &scenario, file: &file }, request, &args.watch)?;
    args.trace.input.note_traces(&scenario);
    prepared.run()
}

fn of_source(
    args: &SizeArgs,
    given: &GivenFlags,
    request: &SizeRequest,
    source: &mut dyn RecordSource,
) -> Result<Sizing, Failure> {
    let (recording, name) = (source.header().recording.clone(), source.name().to_owned());
    let subject = Subject::Source(source);
    let kind = subject.kind(request);
    args.check_flags(given, FlagsOf::new(kind, recording.is_some()))?;
    match kind {
        SizeKind::Samples => refault_syscalls::advise_when_full("take a smaller --sample"),
        SizeKind::Trace => {
            memory::advise(false, request.target.is_some() && request.check_samples().is_ok());
        }
        SizeKind::Recording | SizeKind::Scenario => {}
    }
    let prepared = Prepared::new(subject, request, &args.watch)?;
    if let Some(recording) = recording.filter(|_| kind == SizeKind::Recording) {
        recorded::note_sized(&recording, name.as_ref());
    }
    prepared.run()
}
