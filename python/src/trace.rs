//! Traces in memory.

use crate::arrow_source::Batches;
use crate::dense::{DenseSource, Memory};
use crate::error::exception;
use crate::numpy_source::Arrays;
use crate::policy::{self, Named, Raised};
use crate::settings::{Loading, Reading, ReplaySettings};
use crate::source::ColumnSource;
use crate::work;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use refault::loaded::LoadedTrace;
use refault::memory_size::Size;
use refault::{Failure, Watch};
use refault_cli::{api, say};
use refault_trace::generate::Workload;
use refault_trace::{
    Header, LoadOptions, NativeWriter, ObjectInfo, ObjectKind, OpenOptions, Record, RecordSource, Summary, TraceError,
    Via, open,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Rows as JSON, and the miss bits of each.
pub(crate) type Rows<'py> = (Vec<String>, Vec<Option<Bound<'py, PyArray1<u8>>>>);

/// Where a trace is from, to be read again record by record.
enum Origin {
    File { path: PathBuf, options: OpenOptions, stamp: Stamp },
    Workload { workload: Workload, source: String },
    Memory,
}

/// Identity of a file: it changes when the file does.
#[derive(PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Stamp { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// A trace in memory, 4 bytes an access.
#[pyclass(module = "refault._refault", frozen)]
pub(crate) struct Trace {
    memory: Arc<Memory>,
    origin: Origin,
    /// Name in errors.
    file: String,
}

impl Trace {
    fn new(loaded: LoadedTrace, origin: Origin, file: String) -> Trace {
        let memory = Memory { loaded, time_ns: None, task: None, says_via: true };
        Trace { memory: Arc::new(memory), origin, file }
    }

    /// The accesses in memory.
    pub(crate) fn trace(&self) -> &refault_trace::Trace {
        &self.memory.loaded.trace
    }

    /// Bytes a page.
    pub(crate) fn page_bytes(&self) -> u32 {
        self.memory.loaded.page_size
    }

    /// Whether it was read from a file that can be read again.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(self.origin, Origin::File { .. })
    }

    /// The records again.
    pub(crate) fn source(&self) -> Result<Box<dyn RecordSource>, Failure> {
        match &self.origin {
            Origin::File { path, options, stamp } => {
                if Stamp::of(path).as_ref() != Some(stamp) {
                    return Err(format!("{}: has changed since it was read; read it again", self.file).into());
                }
                Ok(open(path, options)?)
            }
            Origin::Workload { workload, .. } => Ok(Box::new(workload.generator("workload")?)),
            Origin::Memory => Ok(Box::new(DenseSource::new(Arc::clone(&self.memory)))),
        }
    }

    /// Replays it.
    pub(crate) fn replay<'py>(
        &self,
        py: Python<'py>,
        settings: &ReplaySettings,
        classes: Vec<Named>,
    ) -> PyResult<Rows<'py>> {
        let raised = Raised::default();
        let done = work::run(py, |stop| {
            let plug_ins = policy::plug_ins(classes, self.footprint_pages(), &raised, stop);
            let request = settings.request(&plug_ins, api::shown(stop))?;
            let rows = request.run(&self.memory.loaded, &self.file)?;
            rows.note.iter().for_each(|note| say(&format!("note: {note}")));
            let json = |row: &_| serde_json::to_string(row).map_err(Failure::from);
            rows.cells.into_iter().map(|(row, bits)| Ok((json(&row)?, bits))).collect::<Result<Vec<_>, Failure>>()
        });
        let done = raised.take().map_or(done, Err)?;
        Ok(done.into_iter().map(|(row, bits)| (row, bits.map(|bits| bits.0.into_pyarray(py)))).unzip())
    }
}

/// Reads a source until it ends or is stopped.
struct Stoppable<'a> {
    source: Box<dyn RecordSource + 'a>,
    watch: &'a Watch,
}

impl RecordSource for Stoppable<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        self.source.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        if self.watch.is_stopped() {
            return Err(TraceError::usage(self.source.name(), "interrupted"));
        }
        self.source.next_chunk(out)
    }
}

/// Settings of arrays and tables beside their columns.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Given {
    name: String,
    page_size: u32,
    via: String,
    /// Names, and whether each is `file` or `anon`.
    objects: Vec<(String, String)>,
    max_accesses: Option<u64>,
}

impl Given {
    fn objects(&self) -> PyResult<Vec<ObjectInfo>> {
        let kind = |name: &str| match name {
            "file" => Ok(ObjectKind::File),
            "anon" => Ok(ObjectKind::Anon),
            _ => Err(PyValueError::new_err(format!("{name:?} is no kind of object; it is file or anon"))),
        };
        self.objects.iter().map(|(name, of)| Ok(ObjectInfo::new(&**name, kind(of)?))).collect()
    }

    /// Loads a source that is no file.
    fn load(
        &self,
        source: Box<dyn RecordSource + '_>,
        (keep_time, keep_task, says_via): (bool, bool, bool),
        watch: &Watch,
    ) -> Result<Trace, Failure> {
        let page_size = source.header().page_size;
        let options = LoadOptions {
            default_via: if self.via == "map" { Via::Map } else { Via::Fd },
            keep_time,
            keep_task,
            max_accesses: self.max_accesses,
            ..LoadOptions::default()
        };
        let mut trace = refault_trace::Trace::load(&mut Stoppable { source, watch }, &options)?;
        trace.name.clone_from(&self.name);
        // A replay would look at the times, if they were there.
        let (time_ns, task) = (trace.time_ns.take(), trace.task.take());
        let loaded = LoadedTrace { trace, page_size, recording: None, machine: None };
        let memory = Memory { loaded, time_ns, task, says_via };
        Ok(Trace { memory: Arc::new(memory), origin: Origin::Memory, file: self.name.clone() })
    }
}

#[pymethods]
impl Trace {
    /// Reads a file.
    #[staticmethod]
    fn read_file(py: Python<'_>, path: PathBuf, reading: Reading, loading: Loading) -> PyResult<Trace> {
        work::run(py, |stop| {
            let (options, load) = (reading.options()?, loading.options()?);
            let stamp = Stamp::of(&path);
            let loaded = LoadedTrace::read(open(&path, &options)?, &load, &api::shown(stop))?;
            let file = path.display().to_string();
            match stamp {
                Some(stamp) if Stamp::of(&path).as_ref() == Some(&stamp) => {
                    Ok(Trace::new(loaded, Origin::File { path, options, stamp }, file))
                }
                Some(_) => Err(format!("{file}: has changed while it was read; read it again").into()),
                // Standard input, or another thing that can be read once.
                None => Ok(Trace::new(loaded, Origin::Memory, file)),
            }
        })
    }

    /// Takes arrays of pages, writes, objects, tasks and times.
    #[staticmethod]
    fn of_arrays(py: Python<'_>, arrays: [Option<Bound<'_, PyAny>>; 5], given: Given) -> PyResult<Trace> {
        let keep = (arrays[4].is_some(), arrays[3].is_some(), false);
        let arrays = Arrays::new(arrays)?;
        let (objects, rows) = (given.objects()?, arrays.len() as u64);
        let source = ColumnSource::new(&given.name, given.page_size, objects, Some(rows), arrays);
        work::run(py, |stop| given.load(Box::new(source), keep, stop))
    }

    /// Takes a table of Arrow, or a stream of batches.
    #[staticmethod]
    fn of_arrow(py: Python<'_>, table: AnyRecordBatch, given: Given) -> PyResult<Trace> {
        let wrong = |what: String| PyValueError::new_err(format!("{}: {what}", given.name));
        let batches = Batches::new(table.into_reader()?).map_err(wrong)?;
        let keep = (batches.has("time_ns"), batches.has("task"), batches.has("op"));
        let source = ColumnSource::new(&given.name, given.page_size, given.objects()?, None, batches);
        work::run(py, |stop| given.load(Box::new(source), keep, stop))
    }

    /// Generates a workload, as `refault trace generate` does.
    #[staticmethod]
    fn of_workload(py: Python<'_>, phases: Vec<String>, seed: u64, loading: Loading) -> PyResult<Trace> {
        work::run(py, |stop| {
            let workload = Workload::parse(&phases, seed)?;
            let source = Box::new(workload.generator("workload")?);
            let loaded = LoadedTrace::read(source, &loading.options()?, &api::shown(stop))?;
            let source = format!("refault trace generate --seed {seed} --phase '{}'", phases.join("' --phase '"));
            Ok(Trace::new(loaded, Origin::Workload { workload, source }, "workload".into()))
        })
    }

    /// `refault trace info --json`.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        work::run(py, |watch| {
            let summary = Summary::of(&mut Stoppable { source: self.source()?, watch })?;
            Ok(serde_json::to_string(&Summary { trace: self.memory.loaded.trace.name.clone(), ..summary })?)
        })
    }

    /// Writes it in the native format, whole or not at all.
    fn write_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        work::run(py, |watch| {
            if let Origin::File { path: from, .. } = &self.origin
                && std::fs::canonicalize(from).ok() == std::fs::canonicalize(&path).ok()
            {
                return Err(format!("{}: is the trace to read; give the output another name", path.display()).into());
            }
            let mut source = Stoppable { source: self.source()?, watch };
            let mut writer = NativeWriter::create(&path)?;
            let mut chunk = Vec::new();
            while source.next_chunk(&mut chunk)? {
                writer.write(&chunk)?;
            }
            let mut header = source.header().clone();
            if header.source.is_none() {
                header.source = Some(match &self.origin {
                    Origin::File { path, .. } => {
                        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                        format!("{name} ({})", header.format)
                    }
                    Origin::Workload { source, .. } => source.clone(),
                    Origin::Memory => format!("{}, from Python", self.file),
                });
            }
            writer.finish(&header)?;
            Ok(())
        })
    }

    /// The file that it was read from, if it was.
    #[getter]
    fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File { path, .. } => Some(path),
            _ => None,
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.memory.loaded.trace.name
    }

    #[getter]
    fn page_size(&self) -> u32 {
        self.memory.loaded.page_size
    }

    #[getter]
    fn accesses(&self) -> usize {
        self.memory.loaded.trace.accesses.len()
    }

    #[getter]
    fn footprint_pages(&self) -> u32 {
        self.memory.loaded.trace.footprint_pages()
    }

    /// Whether a page of a file is touched.
    #[getter]
    fn has_files(&self) -> bool {
        self.memory.loaded.trace.has_files()
    }

    /// A size in pages, as a replay takes it.
    fn pages(&self, size: &str) -> PyResult<u64> {
        let size: Size = size.parse().map_err(|e: String| exception(&e.into()))?;
        Ok(size.pages(self.page_size(), u64::from(self.footprint_pages())))
    }
}
