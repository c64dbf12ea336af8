//! The input of a search, checked and loaded before any size is tried.

use super::request::SizeRequest;
use super::sizing::Sizing;
use super::{recording, sample, scenario, trace};
use crate::{Failure, Watch};
use refault_lab::scenario::Scenario;
use refault_trace::{RecordSource, Trace};

/// Input whose memory is sized.
pub enum Subject<'a> {
    /// A trace that is read now: a file that was opened, or a generator. A recording of a kernel is
    /// replayed as the machine that was recorded.
    Source(&'a mut dyn RecordSource),
    /// A trace in memory.
    Trace {
        /// Its accesses; with times, if the target is something a second.
        trace: &'a Trace,
        /// Bytes a page.
        page_size: u32,
    },
    /// A machine in virtual time.
    Scenario {
        /// The scenario at full size, with its own seed.
        scenario: &'a Scenario,
        /// Its name in errors.
        file: &'a str,
    },
}

/// How sizes of an input are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeKind {
    /// By runs in virtual time.
    Scenario,
    /// By replays of the recorded machine.
    Recording,
    /// By replays of samples.
    Samples,
    /// By replays of the trace.
    Trace,
}

impl Subject<'_> {
    /// Its name in errors.
    pub fn name(&self) -> &str {
        match self {
            Subject::Source(source) => source.name(),
            Subject::Trace { trace, .. } => &trace.name,
            Subject::Scenario { file, .. } => file,
        }
    }

    /// How a request tries sizes of it. Groups of a recording, and limits that protect them, are a
    /// matter of its trace.
    pub fn kind(&self, request: &SizeRequest) -> SizeKind {
        match self {
            Subject::Scenario { .. } => SizeKind::Scenario,
            Subject::Source(source) if source.header().recording.is_some() && request.is_of_all() => {
                SizeKind::Recording
            }
            _ if request.sampling.is_some() => SizeKind::Samples,
            _ => SizeKind::Trace,
        }
    }
}

/// A search that has all it needs.
#[derive(Debug)]
pub struct Prepared<'a>(Kinds<'a>);

#[derive(Debug)]
enum Kinds<'a> {
    Scenario(Box<scenario::ScenarioSubject<'a>>),
    Recording(Box<recording::RecordingSubject<'a>>),
    Samples(Box<sample::SampleSubject<'a>>),
    Trace(Box<trace::TraceSubject<'a>>),
}

impl<'a> Prepared<'a> {
    /// Checks a request, and reads its input.
    ///
    /// # Errors
    /// An input that cannot be read, or a request that it cannot answer.
    pub fn new(subject: Subject<'a>, request: &'a SizeRequest, watch: &Watch) -> Result<Prepared<'a>, Failure> {
        let kind = subject.kind(request);
        request.check_summary(subject.name(), kind == SizeKind::Scenario)?;
        if let Subject::Source(source) = &subject {
            request.check_seen(source.name(), source.header().seen)?;
        }
        Ok(Prepared(match (subject, kind) {
            (Subject::Scenario { scenario, file }, _) => {
                Kinds::Scenario(Box::new(scenario::ScenarioSubject::new(scenario, file, request, watch)?))
            }
            (Subject::Source(source), SizeKind::Recording) => {
                Kinds::Recording(Box::new(recording::RecordingSubject::read(source, request, watch)?))
            }
            (Subject::Source(source), SizeKind::Samples) => {
                Kinds::Samples(Box::new(sample::SampleSubject::read(source, request, watch)?))
            }
            (Subject::Source(source), _) => Kinds::Trace(Box::new(trace::TraceSubject::read(source, request, watch)?)),
            (Subject::Trace { trace, .. }, SizeKind::Samples) => {
                return Err(format!("--sample: {} is in memory as a whole; leave --sample out", trace.name).into());
            }
            (Subject::Trace { trace, page_size }, _) => {
                Kinds::Trace(Box::new(trace::TraceSubject::of(trace, page_size, request, watch)?))
            }
        }))
    }

    /// Tries sizes.
    ///
    /// # Errors
    /// A range that is impossible, a run that fails, or cancel.
    pub fn run(self) -> Result<Sizing, Failure> {
        match self.0 {
            Kinds::Scenario(subject) => subject.run(),
            Kinds::Recording(subject) => subject.run(),
            Kinds::Samples(subject) => subject.run(),
            Kinds::Trace(subject) => subject.run(),
        }
    }
}
