//! refault for Python: the same library as the command's, behind the classes of the package
//! `refault`.
//!
//! | file | what is in it |
//! |---|---|
//! | `command` | the command, in this process |
//! | `work` | long work without the interpreter's lock, which Ctrl-C ends |
//! | `error` | errors as exceptions |
//! | `trace` | traces in memory, and where they are from |
//! | `policy` | policies that are classes of Python |
//! | `settings` | settings as texts, as types of the library |
//! | `machines` | scenarios and published benchmarks |
//! | `size` | the smallest limit that is enough |
//! | `report` | results as a page of HTML |
//! | `source`, `numpy_source`, `arrow_source`, `dense` | traces that are no files: columns as records |
//! | `table` | rows as columns of Arrow |
//!
//! It calls `refault`; progress and notes are shown by `refault_cli`. The Python code beside it
//! makes classes of what comes back.

mod arrow_source;
mod command;
mod dense;
mod error;
mod machines;
mod numpy_source;
mod policy;
mod report;
mod settings;
mod size;
mod source;
mod table;
mod trace;
mod work;

use pyo3::prelude::*;

/// As that of the command: replays go to large tables at random.
#[global_allocator]
static HEAP: refault_syscalls::HugeHeap = refault_syscalls::HugeHeap;

#[pymodule]
mod _refault {
    use super::settings::ReplaySettings;
    use super::{policy, table, trace};
    use pyo3::prelude::*;
    use refault::replay::policy::RowPolicy;

    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::machines::{bench, check_scenario, scenario};
    #[pymodule_export]
    use super::policy::Room;
    #[pymodule_export]
    use super::report::report;
    #[pymodule_export]
    use super::size::size;
    #[pymodule_export]
    use super::trace::Trace;

    /// Constants.
    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// A replay: the rows as JSON, a text each, and the miss bits of each if asked for; at
    /// the end of each size those of policies that are classes.
    #[pyfunction]
    fn replay<'py>(
        py: Python<'py>,
        trace: &trace::Trace,
        settings: ReplaySettings,
        classes: Vec<policy::Named>,
    ) -> PyResult<trace::Rows<'py>> {
        trace.replay(py, &settings, classes)
    }

    /// Rows, each a JSON object, as a table of Arrow; and its columns as JSON.
    #[pyfunction]
    fn table_of_rows(rows: Vec<String>) -> PyResult<table::Both> {
        table::of_rows(&rows)
    }

    /// The same of numbers as comma-separated values with a heading.
    #[pyfunction]
    fn table_of_csv(text: &str) -> PyResult<table::Both> {
        table::of_csv(text)
    }

    /// The policies of `--policy` that are plug-ins.
    #[pyfunction]
    fn plug_ins() -> Vec<&'static str> {
        RowPolicy::every().filter(|policy| policy.is_plug_in()).map(RowPolicy::name).collect()
    }

    /// The keys of `--set`, with their values and what they are.
    #[pyfunction]
    fn settings() -> Vec<(&'static str, String, &'static str)> {
        refault::settings::described().collect()
    }
}
