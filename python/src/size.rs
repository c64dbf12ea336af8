//! The smallest limit that is enough.

use crate::settings::{Reading, Set, THREADS, Text, count, kernel, number, one, read, sets, swap_max, via};
use crate::trace::Trace;
use crate::work;
use pyo3::prelude::*;
use refault::document::InputKind;
use refault::runner::parse_scale;
use refault::settings::partial_flags;
use refault::size::{
    FlagsOf, Limit, MetricTarget, SAID_BY_RESULT, SizeKind, SizeRange, SizeRequest, Sizing, Subject, check_flags,
    policy_of_groups, size as find,
};
use refault::{Failure, Watch};
use refault_cli::{api, say};
use refault_lab::scenario::Scenario;
use refault_trace::{RecordSource, open};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Input of a search: a file, or a trace in memory.
#[derive(FromPyObject)]
pub(crate) enum Input {
    Memory(Py<Trace>),
    File(PathBuf),
}

/// Settings of a search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SizeSettings {
    target: Text,
    group: Text,
    limit: Text,
    range: Text,
    resolution: Text,
    memcg_limits: Option<PathBuf>,
    policy: Text,
    kernel: Text,
    seed: Text,
    scale: Text,
    threads: Text,
    memory: Text,
    swap_max: Text,
    swap: Text,
    compression: Text,
    swappiness: Text,
    via: Text,
    warm_up: Text,
    as_page_cache: bool,
    /// Keys of `--set`.
    set: Vec<Set>,
    /// Names of the flags that were given, and their values; none: one that is on.
    given: Vec<(String, Text)>,
}

impl SizeSettings {
    fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|(given, _)| given == flag)
    }

    /// The request of the library.
    fn request(&self) -> Result<SizeRequest, Failure> {
        let plain = SizeRequest::default();
        Ok(SizeRequest {
            target: one::<MetricTarget>("target <TARGET>", &self.target)?,
            group: self.group.clone(),
            limit: one::<Limit>("limit <LIMIT>", &self.limit)?.unwrap_or(plain.limit),
            range: one::<SizeRange>("range <LOW..HIGH>", &self.range)?,
            resolution: read("resolution <SIZE>", &self.resolution, SizeRange::size)?,
            memcg_limits: self.memcg_limits.clone(),
            policy: read("policy <POLICY>", &self.policy, policy_of_groups)?,
            kernel: kernel(&self.kernel)?,
            seed: count("seed <N>", &self.seed)?,
            scale: read("scale <K>", &self.scale, parse_scale)?.unwrap_or(plain.scale),
            threads: number("threads <N>", &self.threads, &THREADS)?,
            memory: one("memory <SIZE>", &self.memory)?,
            swap_max: swap_max(&self.swap_max)?,
            swap: one("swap <KIND[:SIZE]>", &self.swap)?,
            compression: one("compression <LIST>", &self.compression)?,
            swappiness: number("swappiness <N>", &self.swappiness, &(0..=200))?,
            via: via(&self.via)?,
            warm_up: one("warm-up <TIME|PERCENT|auto>", &self.warm_up)?.unwrap_or(plain.warm_up),
            as_page_cache: self.as_page_cache,
            set: sets(&self.set)?,
            sampling: None,
            flags: partial_flags(|flag| self.has(flag)),
        })
    }

    fn check(&self, name: &str, of: FlagsOf) -> Result<(), Failure> {
        Ok(check_flags(|flag| self.has(flag), name, of)?)
    }

    /// The result as the command prints it, with its settings.
    fn json(&self, sizing: Sizing) -> Result<String, Failure> {
        let of = |(flag, text): &(String, Text)| (flag.clone(), text.clone().map_or(true.into(), Value::from));
        let changes = |(flag, _): &&(String, Text)| !SAID_BY_RESULT.contains(&flag.as_str()) && flag != "threads";
        let mut settings: Map<String, Value> = self.given.iter().filter(changes).map(of).collect();
        let mut set: Vec<Value> = self.set.iter().map(|(key, value)| format!("{key}={value}").into()).collect();
        if !set.is_empty() {
            settings.insert("set".into(), if set.len() == 1 { set.remove(0) } else { set.into() });
        }
        let mut result = serde_json::to_value(sizing)?;
        result["settings"] = settings.into();
        Ok(serde_json::to_string(&result)?)
    }

    /// Sizes of a trace or a recording that is read now.
    fn of_source(
        &self,
        source: &mut dyn RecordSource,
        request: &SizeRequest,
        watch: &Watch,
    ) -> Result<Sizing, Failure> {
        let (recording, name) = (source.header().recording.clone(), source.name().to_owned());
        let subject = Subject::Source(source);
        let kind = subject.kind(request);
        self.check(&name, FlagsOf::new(kind, recording.is_some()))?;
        let sizing = find(subject, request, watch)?;
        if let Some(recording) = recording.filter(|_| kind == SizeKind::Recording) {
            api::note_sized(&recording, Path::new(&name));
        }
        Ok(sizing)
    }

    /// Sizes of a file.
    fn of_file(&self, path: &Path, reading: &Reading, request: &SizeRequest, watch: &Watch) -> Result<Sizing, Failure> {
        let file = path.display().to_string();
        let is_scenario = InputKind::of(path) == InputKind::Scenario;
        request.check_summary(&file, is_scenario)?;
        if is_scenario {
            self.check(&file, FlagsOf::Scenario)?;
            let scenario = Scenario::load(path)?;
            let sizing = find(Subject::Scenario { scenario: &scenario, file: &file }, request, watch)?;
            api::note_traces(&scenario);
            return Ok(sizing);
        }
        let mut source = open(path, &reading.options()?)?;
        let mut sizing = self.of_source(&mut source, request, watch)?;
        for note in source.header().notes() {
            let note = format!("{file}: {note}");
            say(&format!("note: {note}"));
            sizing.notes.push(note);
        }
        Ok(sizing)
    }

    /// Sizes of a trace in memory, or of its records again, where the request asks for what it does
    /// not keep.
    fn of_trace(&self, trace: &Trace, request: &SizeRequest, watch: &Watch) -> Result<Sizing, Failure> {
        let in_memory = trace.trace();
        if trace.is_of_file() || self.has("via") || request.needs_records() {
            return self.of_source(&mut trace.source()?, request, watch);
        }
        self.check(&in_memory.name, FlagsOf::Memory)?;
        find(Subject::Trace { trace: in_memory, page_size: trace.page_bytes() }, request, watch)
    }
}

/// Finds the smallest limit; the result is the JSON of `refault size --json`.
#[pyfunction]
pub(crate) fn size(py: Python<'_>, input: Input, settings: SizeSettings, reading: Reading) -> PyResult<String> {
    work::run(py, |stop| {
        let (request, watch) = (settings.request()?, api::shown(stop));
        let sizing = match &input {
            Input::Memory(trace) => settings.of_trace(trace.get(), &request, &watch)?,
            Input::File(path) => settings.of_file(path, &reading, &request, &watch)?,
        };
        settings.json(sizing)
    })
}
