//! Scenarios: machines and workloads as TOML files, read into plain validated data.
//!
//! The format is described in `docs/reference/scenario-keys.md`. Every error is one line that names
//! file, line and key.
//!
//! ```
//! use refault_lab::scenario::Scenario;
//!
//! let scenario = Scenario::parse("loop.toml", r#"
//!     name = "loop"
//!     machine = { memory = "512M" }
//!     device.disk = { preset = "hdd" }
//!     object.file = { kind = "file", size = "768M", device = "disk" }
//!     [[task]]
//!     name = "reader"
//!     phase = [{ read = "file", passes = 4 }]
//! "#)?;
//! assert_eq!(scenario.machine.memory_pages, 131_072);
//! # Ok::<(), refault_lab::scenario::ScenarioError>(())
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `acts`, `needs` | settings that do nothing under the policies of a run, and keys without what they act on |
//! | `types/` | [`Scenario`] and its parts, as plain data |
//! | `read`, `error`, `units` | fields of TOML with their place in the file; sizes and times with units |
//! | `machine`, `machine_keys`, `nodes`, `swap`, `device` | reading the machine: CPUs, memory, devices |
//! | `policy` | reading the policy, its kernel, and settings from the table of the engine |
//! | `objects`, `tasks`, `streams` | reading what is accessed, by whom, in which order |
//! | `limits`, `events`, `conditions` | reading memory cgroups, their limits, what an administrator does, and when |
//! | `published`, `metric` | reading what was published, and which names of numbers there are |
//! | `columns` | the columns of a time series |
//! | `bands`, `parameters` | where our numbers must be, from what was published; where values come from |
//! | `check`, `scale` | what must hold of a whole scenario; the same scenario, smaller |
//!
//! It calls `device` for presets and `results` for names of numbers. Every room of the lab reads
//! it; the command loads it.

mod acts;
mod bands;
mod check;
mod columns;
mod conditions;
#[cfg(test)]
pub(crate) mod declared;
mod device;
mod error;
mod events;
mod limits;
mod machine;
mod machine_keys;
mod metric;
pub(crate) mod needs;
mod nodes;
mod objects;
mod parameters;
mod policy;
mod published;
mod read;
mod scale;
mod streams;
mod swap;
mod tasks;
mod types;
mod units;

pub use columns::{
    COLUMNS, GROUP_PRESSURE, TASK_COLUMNS, TIER_COLUMNS, counts_events, group_column, is_size, series_columns,
    task_column,
};
pub(crate) use columns::{group_columns, series_counters, size_counter_kinds, size_counter_name};
pub(crate) use device::preset_with_overrides;
pub use error::ScenarioError;
pub use limits::GroupLimits;
pub use machine_keys::{MACHINE_KEYS, MachineKey};
pub use published::MAX_SEEDS;
pub use scale::{MIN_SCALED_PAGES, MIN_SCALED_SWAP_PAGES};
pub use types::*;

use error::Source;
use read::{Field, Result, Section};
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use toml::de::DeTable;

/// Bytes of the longest scenario file.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Most tasks, each copy counted.
pub const MAX_TASKS: u32 = 4096;
/// Most iterations of a recorded loop.
pub const MAX_RECORDED: u64 = 10_000;
/// Most objects.
pub const MAX_OBJECTS: usize = 1024;
/// Most pages of memory, of a limit, of an object. All objects together, private copies counted,
/// have fewer.
pub const MAX_PAGES: u64 = 1 << 29;

const KEYS: [&str; 17] = [
    "name",
    "about",
    "source",
    "seed",
    "end",
    "sample",
    "machine",
    "node",
    "policy",
    "device",
    "swap",
    "zswap",
    "memcg",
    "object",
    "task",
    "event",
    "published",
];
const MAX_SAMPLES: u64 = 1_000_000;

/// The name of a file, for errors, and its text.
fn read_text(path: &Path) -> Result<(String, String)> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(|e| ScenarioError::whole(&file, format!("cannot be opened: {e}")))?;
    // One byte more than may be, so that parsing sees that there is more.
    let read = opened.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| ScenarioError::whole(&file, format!("cannot be read: {e}")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((file, text)),
        Err(_) => Err(ScenarioError::whole(&file, "is not text in UTF-8")),
    }
}

impl Scenario {
    /// Reads a scenario from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Scenario> {
        let path = path.as_ref();
        let (file, text) = read_text(path)?;
        let mut scenario = Scenario::parse(&file, &text)?;
        // Traces are named from where the scenario is.
        for trace in scenario.tasks.iter_mut().filter_map(|t| t.trace.as_mut()).filter(|t| t.path.as_os_str() != "-") {
            trace.path = path.parent().unwrap_or(Path::new("")).join(&trace.path);
        }
        Ok(scenario)
    }

    /// Reads a scenario from a text; `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Scenario> {
        if text.len() > MAX_FILE_BYTES {
            return Err(ScenarioError::whole(file, "is longer than 1 MiB, the most for a scenario"));
        }
        let src = Source { file, text };
        let table = DeTable::parse(text).map_err(|e| not_toml(src, &e))?;
        let scenario = scenario(&Section::root(src, table.get_ref(), &KEYS)?)?;
        Ok(Scenario { settings: parameters::settings(text), lines: parameters::lines(text), ..scenario })
    }

    /// The values that a benchmark has chosen, by key, and where in its text they stand. A table
    /// that is chosen is chosen with all in it, but for what a longer key says. Names, and who
    /// works on what, are no values.
    pub fn chosen_values(text: &str, parameters: &Parameters) -> Vec<(String, Range<usize>)> {
        let Parameters { published, derived, calibrated, chosen } = parameters;
        let longest = |keys: &mut dyn Iterator<Item = &String>, value: &str| {
            keys.filter(|key| parameters::is_within(value, key)).map(String::len).max()
        };
        let is_chosen = |value: &str| {
            let by = longest(&mut chosen.keys(), value);
            by.is_some() && by > longest(&mut published.iter().chain(derived.keys()).chain(calibrated.keys()), value)
        };
        parameters::values(text).into_iter().filter(|(key, _)| is_chosen(key)).collect()
    }

    /// Keys of machine and workload whose origin a benchmark does not name: published, derived,
    /// calibrated or chosen.
    pub fn values_without_origin(text: &str, parameters: &Parameters) -> Vec<String> {
        let Parameters { published, derived, calibrated, chosen } = parameters;
        let said = published.iter().chain(derived.keys()).chain(calibrated.keys()).chain(chosen.keys());
        let said: Vec<_> = said.collect();
        let values = parameters::values(text).into_iter().map(|(key, _)| key);
        values.filter(|value| !said.iter().any(|key| parameters::is_within(value, key))).collect()
    }
}

fn not_toml(src: Source<'_>, error: &toml::de::Error) -> ScenarioError {
    let span = error.span().unwrap_or(0..0);
    let what = error.message().trim().replace('\n', "; ");
    let which = if what == "duplicate key" { format!(" {}", src.shown(&span)) } else { String::new() };
    src.error(&span, "", format!("not TOML: {what}{which}"))
}

fn scenario(root: &Section<'_>) -> Result<Scenario> {
    let devices = root.opt("device", machine::devices)?.unwrap_or_default();
    let swap = root.opt("swap", |swap| swap::devices(swap, &devices))?.unwrap_or_default();
    let event_sections = root.or("event", Vec::new(), events::sections)?;
    let memcgs = objects::memcgs(root.get("memcg"), &events::created(&event_sections)?)?;
    let swap_devices: Vec<usize> = swap.iter().map(|s| s.device).collect();
    root.opt("device", |d| machine::swap_only(d, &swap_devices))?;
    let objects = root.opt("object", |o| objects::objects(o, &devices, &swap_devices, &memcgs))?.unwrap_or_default();
    let tasks = tasks::tasks(&root.need("task", "[[task]]")?, &objects, &memcgs, &devices)?;
    let policy = policy::policy(root.get("policy"))?;
    let nodes = root.or("node", Vec::new(), nodes::nodes)?;
    let mut scenario = Scenario {
        name: root.need("name", "name = \"...\"")?.name()?,
        about: root.or("about", String::new(), Field::line)?,
        source: root.opt("source", Field::line)?,
        seed: root.or("seed", 1, |f| f.int(0..=i64::MAX as u64))?,
        end_ns: root.opt("end", |f| f.time(1..=units::MAX_TIME_NS))?,
        sample_ns: root.or("sample", 1_000_000_000, |f| f.time(1000..=units::MAX_TIME_NS))?,
        machine: machine::machine(root, nodes)?,
        policy,
        devices,
        swap,
        zswap: root.opt("zswap", machine::zswap)?.flatten(),
        memcgs,
        objects: objects.iter().map(|o| o.spec.clone()).collect(),
        tasks: tasks.iter().map(|(task, _)| task.clone()).collect(),
        events: Vec::new(),
        published: None,
        settings: Vec::new(),
        lines: Vec::new(),
    };
    if scenario.end_ns.is_some_and(|end| end / scenario.sample_ns > MAX_SAMPLES) {
        let field = root.get("sample").or(root.get("end"));
        let what = format!("is more than {MAX_SAMPLES} samples up to the end; write a longer sample");
        return Err(field.map_or_else(|| root.error(&what), |f| f.bad(&what)));
    }
    check::check(&mut scenario, root, &objects, &tasks)?;
    scenario.events = events::events(&event_sections, &scenario)?;
    events::check(&scenario, &event_sections, &tasks.into_iter().map(|(_, s)| s).collect::<Vec<_>>())?;
    scenario.published = root.opt("published", |p| published::published(p, &scenario, root))?;
    needs::check(root, &scenario)?;
    Ok(scenario)
}
