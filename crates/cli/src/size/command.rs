//! `refault size`, from its flags to its output.

use super::args::SizeArgs;
use super::text;
use crate::flags::{memory, recorded};
use crate::given::{Given, GivenSettings};
use crate::replay::{check_output, is_scenario, write};
use crate::{Failure, print};
use refault::size;
use refault::size::{Prepared, SizeKind, SizeRequest, Sizing, Subject};
use refault_lab::scenario::Scenario;
use refault_trace::{RecordSource, Trace};
use serde::Serialize;
use std::iter;

/// Flags that only traces have.
const OF_TRACES: [&str; 15] = [
    "memory",
    "swap-max",
    "swappiness",
    "via",
    "set",
    "sample",
    "sample-unit",
    "salts",
    "format",
    "raw-ids",
    "block-bytes",
    "tick-ns",
    "page-size",
    "instructions",
    "strict",
];

/// Flags that only recordings have.
const OF_RECORDINGS: [&str; 1] = ["warm-up"];

/// Flags that a result says itself.
const OF_SIZING: [&str; 7] = ["policy", "seed", "group", "target", "limit", "range", "resolution"];

/// Flags that a caption says.
const OF_CAPTION: [&str; 4] = ["kernel", "scale", "sample", "salts"];

/// Flags that say how a file is read.
const OF_FILES: [&str; 7] = ["format", "raw-ids", "block-bytes", "tick-ns", "page-size", "instructions", "strict"];

/// Flags of traces that a recording answers itself.
const ANSWERED: [&str; 3] = ["via", "memory", "swap-max"];

/// Runs `refault size ...`, of whose flags `given` were; false: no size meets the target.
pub fn run(args: &SizeArgs, given: &Given) -> Result<bool, Failure> {
    if let Some(path) = &args.output {
        check_output(iter::once(args.subject.as_path()), path)?;
    }
    let sizing = sizing(args, given)?;
    let text = match args.json {
        true => json(sizing.clone(), args, given)?,
        false => {
            // The caption of a scenario names no kernel that is the default one.
            let said = if is_scenario(&args.subject) { &OF_CAPTION[1..] } else { &OF_CAPTION };
            text::text(&sizing, &given.settings(&OF_SIZING).line(said))
        }
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(sizing.summary.is_some() || sizing.answer().is_some())
}

/// Text that `--json` prints.
pub(crate) fn result(args: &SizeArgs, given: &Given) -> Result<String, Failure> {
    json(sizing(args, given)?, args, given)
}

/// The same of a trace in memory, or of its records again, where the flags ask for what it does not
/// keep.
pub(crate) fn result_of(
    args: &SizeArgs,
    given: &Given,
    (trace, page_size): (&Trace, u32),
    again: &dyn Fn() -> Result<Box<dyn RecordSource>, Failure>,
) -> Result<String, Failure> {
    args.refuse_foreign(given, &["scale"], "a scenario", "a trace")?;
    args.refuse_foreign(given, &OF_RECORDINGS, "a recording", "a trace")?;
    args.refuse_foreign(given, &OF_FILES, "a file", "in memory")?;
    let request = args.request(given);
    if given.has("via") || request.needs_records() {
        return json(size(Subject::Source(&mut again()?), &request, &args.watch)?, args, given);
    }
    json(size(Subject::Trace { trace, page_size }, &request, &args.watch)?, args, given)
}

/// The result for programs, with its settings and notes on the traces that were read.
fn json(mut sizing: Sizing, args: &SizeArgs, given: &Given) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct All {
        #[serde(flatten)]
        sizing: Sizing,
        settings: GivenSettings,
    }
    sizing.notes.extend(args.trace.input.notes());
    let all = All { sizing, settings: given.settings(&OF_SIZING) };
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn sizing(args: &SizeArgs, given: &Given) -> Result<Sizing, Failure> {
    let request = args.request(given);
    let is_scenario = is_scenario(&args.subject);
    request.check_summary(&args.subject.display().to_string(), is_scenario)?;
    if is_scenario {
        return of_scenario(args, given, &request);
    }
    args.refuse_foreign(given, &["scale"], "a scenario", "a trace")?;
    let mut source = args.trace.input.open(&args.subject)?;
    of_source(args, given, &request, &mut source)
}

fn of_scenario(args: &SizeArgs, given: &Given, request: &SizeRequest) -> Result<Sizing, Failure> {
    args.refuse_foreign(given, &OF_TRACES, "a trace", "a scenario")?;
    args.refuse_foreign(given, &OF_RECORDINGS, "a recording", "a scenario")?;
    memory::advise_scenario(given.has("scale"));
    let (scenario, file) = (Scenario::load(&args.subject)?, args.subject.display().to_string());
    let prepared = Prepared::new(Subject::Scenario { scenario: &scenario, file: &file }, request, &args.watch)?;
    args.trace.input.note_traces(&scenario);
    prepared.run()
}

fn of_source(
    args: &SizeArgs,
    given: &Given,
    request: &SizeRequest,
    source: &mut dyn RecordSource,
) -> Result<Sizing, Failure> {
    let (recording, name) = (source.header().recording.clone(), source.name().to_owned());
    let subject = Subject::Source(source);
    let kind = subject.kind(request);
    let as_trace = match recording {
        Some(_) => "replayed as a trace here",
        None => "a trace",
    };
    match kind {
        SizeKind::Recording if request.sampling.is_none() => {
            args.refuse_foreign(given, &ANSWERED, "a trace", "a recording, which says it itself")?;
        }
        SizeKind::Samples => {
            args.refuse_foreign(given, &OF_RECORDINGS, "a recording", as_trace)?;
            refault_syscalls::advise_when_full("take a smaller --sample");
        }
        SizeKind::Trace => {
            args.refuse_foreign(given, &OF_RECORDINGS, "a recording", as_trace)?;
            memory::advise(false, request.target.is_some() && request.check_samples().is_ok());
        }
        SizeKind::Recording | SizeKind::Scenario => {}
    }
    let prepared = Prepared::new(subject, request, &args.watch)?;
    if let Some(recording) = recording.filter(|_| kind == SizeKind::Recording) {
        recorded::note_cut(Some(&recording), name.as_ref());
        recorded::note_touches(Some(&recording), name.as_ref());
        recorded::note_files_only(&recording, name.as_ref());
    }
    prepared.run()
}
