//! Results as a page of HTML: inputs looked into by the library, and rendered.

use crate::settings::{Reading, THREADS, Text, count, list, max_accesses, number, one, swap_max, via};
use crate::trace::Trace;
use crate::work;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use refault::document::{Document, InputKind, Source, read_text};
use refault::replay::policy::PolicyList;
use refault::report::{ReportRequest, check_flags, of_json, of_scenario, of_trace};
use refault::runner::parse_scale;
use refault::scenario::{ScenarioRequest, ScenarioRun};
use refault::{Failure, Watch};
use refault_cli::api;
use refault_report::{Made, html, read_back};
use refault_trace::{AtomicFile, OpenOptions, RecordSource, TraceError, open, read_header};
use std::fs::canonicalize;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The author of a page.
const COMMAND: &str = "refault.report of Python";

/// A file, or a trace in memory with the name that its pages have.
#[derive(FromPyObject)]
pub(crate) enum Input {
    Memory(Py<Trace>, String),
    File(PathBuf),
}

/// Settings of a report.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReportSettings {
    limit: Text,
    at: Text,
    memory: Text,
    policy: Text,
    swap_max: Text,
    via: Text,
    seed: Text,
    max_accesses: Text,
    scale: Text,
    threads: Text,
    /// The flags that were given.
    given: Vec<String>,
}

impl ReportSettings {
    /// Request of a report on traces.
    fn of_traces(&self, watch: Watch) -> Result<ReportRequest, Failure> {
        let plain = ReportRequest::default();
        Ok(ReportRequest {
            policies: one::<PolicyList>("policy <LIST>", &self.policy)?.map_or(plain.policies, |list| list.0),
            memory: list("memory <LIST>", &self.memory)?,
            limit: one("limit <SIZE>", &self.limit)?,
            at: one("at <SIZE>", &self.at)?,
            swap_max: swap_max(&self.swap_max)?,
            via: via(&self.via)?,
            seed: count("seed <N>", &self.seed)?.unwrap_or(plain.seed),
            max_accesses: max_accesses(&self.max_accesses)?,
            threads: number("threads <N>", &self.threads, &THREADS)?,
            watch,
            ..ReportRequest::default()
        })
    }

    /// Request of a report on scenarios.
    fn of_scenarios(&self) -> Result<ScenarioRequest, Failure> {
        let scale = self.scale.as_deref().map(parse_scale).transpose();
        Ok(ScenarioRequest {
            scale: scale.map_err(|e| format!("scale: {e}"))?.unwrap_or(1.0),
            policies: one::<PolicyList>("policy <LIST>", &self.policy)?.map(|list| list.0),
            seed: count("seed <N>", &self.seed)?,
            threads: number("threads <N>", &self.threads, &THREADS)?,
            ..ScenarioRequest::default()
        })
    }
}

/// Settings that requests and ways to read share.
struct Reader {
    traces: ReportRequest,
    scenarios: ScenarioRequest,
    options: OpenOptions,
}

impl Reader {
    /// The results of an input; of an old page as many as it has.
    fn sources(&self, input: &Input) -> Result<Vec<Source>, Failure> {
        let path = match input {
            Input::Memory(trace, name) => {
                let again = || trace.get().source();
                return Ok(vec![Source::new(name, self.trace(name, &again)?)]);
            }
            Input::File(path) => path.as_path(),
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let document = match InputKind::of(path) {
            InputKind::Trace => self.trace(&path.display().to_string(), &|| Ok(open(path, &self.options)?))?,
            InputKind::Scenario => {
                let document = of_scenario(&self.scenarios, path, &self.traces.watch, notes_of_traces)?;
                Document::Scenario(Box::new(document))
            }
            InputKind::Json => of_json(path)?,
            InputKind::Page => {
                let file = path.display();
                let back = read_back(&read_text(path)?)
                    .ok_or_else(|| format!("{file}: is HTML, but no page of refault report"))?;
                return Ok(back.map_err(|e| format!("{file}: {e}"))?);
            }
        };
        Ok(vec![Source::new(&name, document)])
    }

    fn trace(
        &self,
        name: &str,
        open: &dyn Fn() -> Result<Box<dyn RecordSource>, Failure>,
    ) -> Result<Document, Failure> {
        let mut document = of_trace(&self.traces, name, &open)?;
        document.notes = open()?.header().notes().into_iter().map(|note| format!("{name}: {note}")).collect();
        COMMAND.clone_into(&mut document.command);
        Ok(Document::Trace(Box::new(document)))
    }
}

/// Settings of the traces that scenarios play.
fn notes_of_traces(runs: &[ScenarioRun]) -> Vec<String> {
    let tasks = runs.iter().flat_map(|run| &run.scenario.tasks);
    let of = |path: &PathBuf| {
        let notes = read_header(path, &OpenOptions::default()).map(|header| header.notes()).unwrap_or_default();
        notes.into_iter().map(move |note| format!("{}: {note}", path.display())).collect::<Vec<_>>()
    };
    tasks.filter_map(|task| Some(of(&task.trace.as_ref()?.path))).flatten().collect()
}

/// Writes the page, whole or not at all.
fn write(path: &Path, sources: &[Source]) -> Result<(), Failure> {
    let made = Made { command: COMMAND.into(), version: env!("CARGO_PKG_VERSION").into() };
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(html(sources, &made).as_bytes());
    written.map_err(|e| TraceError::io(path.display().to_string(), "cannot be written", &e))?;
    Ok(file.commit()?)
}

/// Writes a page on inputs.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    inputs: Vec<Input>,
    output: PathBuf,
    settings: ReportSettings,
    reading: Reading,
) -> PyResult<()> {
    let files = inputs.iter().filter_map(|input| match input {
        Input::File(path) => Some(path),
        Input::Memory(..) => None,
    });
    let is_output =
        |path: &PathBuf| canonicalize(path).is_ok_and(|path| canonicalize(&output).is_ok_and(|o| o == path));
    if files.clone().any(is_output) {
        let what = "is an input; give output another name";
        return Err(PyValueError::new_err(format!("{}: {what}", output.display())));
    }
    let kinds: Vec<InputKind> = inputs
        .iter()
        .map(|input| match input {
            Input::File(path) => InputKind::of(path),
            Input::Memory(..) => InputKind::Trace,
        })
        .collect();
    work::run(py, |stop| {
        check_flags(settings.given.iter().map(String::as_str), &kinds)?;
        let reader = Reader {
            traces: settings.of_traces(api::shown(stop))?,
            scenarios: settings.of_scenarios()?,
            options: reading.options()?,
        };
        // An output that cannot be written is known before the replays.
        drop(AtomicFile::create(&output)?);
        let mut sources = Vec::new();
        for input in &inputs {
            sources.extend(reader.sources(input)?);
        }
        write(&output, &sources)
    })
}
