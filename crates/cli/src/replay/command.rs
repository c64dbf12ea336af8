//! `refault replay`, from its flags to its output.

use super::acts;
use super::args::ReplayArgs;
use super::check::check;
use super::policy::RowPolicy;
use super::recorded as recorded_rows;
use super::{groups, sample, scenario, stream, text};
use crate::flags::memory;
use crate::given::{GivenFlags, GivenSettings};
use crate::page::{create, write_html};
use crate::{Failure, is_same_file, print, say};
use refault::document::replay::ReplayDocument;
use refault::document::{Document, Source};
use refault::loaded::LoadedTrace;
use refault::replay::cell::MissBits;
use refault::replay::swap::swap_table;
use refault::replay::{CellResult, Plan, Replay, Row, rules as rule_words};
use refault::words::printable;
use refault_mm::Config;
use refault_trace::{AtomicFile, Trace, TraceError};
use serde::Serialize;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

/// Runs `refault replay ...`, of whose flags `given` were.
pub(crate) fn run(args: &ReplayArgs, given: &GivenFlags) -> Result<(), Failure> {
    recorded_rows::refuse(args, given)?;
    acts::refuse_swap(args)?;
    if !args.lab.tier.is_empty() {
        return scenario::run_tiers(args, given);
    }
    if scenario::are_scenarios(args, given)? {
        return scenario::run(args, given);
    }
    let policies = policies(args)?;
    acts::refuse_idle(args, given, &policies)?;
    if args.sample.is_asked_for() {
        return sample::run(args, given, &policies);
    }
    if args.groups.memcg_column {
        return groups::run(args, given, &policies);
    }
    if let Some(file) = &args.groups.memcg_limits {
        return Err(format!("--memcg-limits {}: of a trace wants --memcg-column", file.display()).into());
    }
    check(args)?;
    // An output that cannot be written is known before the replay, not after it; a replay that is
    // interrupted leaves nothing behind, as the files are made in earnest at the end.
    for path in
        [&args.output.output, &args.output.miss_bits, &args.output.html, &args.output.metrics].into_iter().flatten()
    {
        drop(AtomicFile::create(path)?);
    }
    let (mut rows, mut bits) = (Vec::new(), None);
    for path in &args.traces {
        for (row, of_cell) in replay(args, given, path, &policies)? {
            rows.push(row);
            bits = of_cell;
        }
    }
    let to_terminal = args.output.output.is_none() && stdout().is_terminal();
    let settings = given.settings(&OF_ROWS);
    let text = render(args, &rows, &settings, to_terminal && std::env::var_os("NO_COLOR").is_none())?;
    if let (Some(path), Some(MissBits(bits))) = (&args.output.miss_bits, bits) {
        write(path, &bits)?;
    }
    write_page(args, || Document::Replay(Box::new(ReplayDocument::of(&rows, page_notes(args, &settings)))))?;
    if let Some(path) = &args.output.metrics {
        crate::page::write_metrics(path, &refault::replay::metrics(&rows))?;
    }
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

/// Flags that each row says.
pub(super) const OF_ROWS: [&str; 2] = ["policy", "memory"];
/// Flags that the line of rules has in a table.
pub(super) const OF_RULES: [&str; 3] = ["kernel", "swappiness", "set"];

/// Remarks of a page: those on its traces, and the settings of its rows.
pub(super) fn page_notes(args: &ReplayArgs, settings: &GivenSettings) -> Vec<String> {
    let mut notes = args.input.notes();
    notes.extend(Some(settings.line(&[]).trim_end().to_owned()).filter(|line| !line.is_empty()));
    notes
}

/// Writes `--html`.
pub(super) fn write_page(args: &ReplayArgs, document: impl FnOnce() -> Document) -> Result<(), Failure> {
    let Some(path) = &args.output.html else { return Ok(()) };
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<_> = args.traces.iter().map(name).collect();
    write_html(path, &[Source::new(&names.join(", "), document())])?;
    Ok(())
}

/// The policies with their configurations.
fn policies(args: &ReplayArgs) -> Result<Vec<(RowPolicy, Option<Config>)>, Failure> {
    args.request().configs()
}

/// Replays one trace.
fn replay(
    args: &ReplayArgs,
    given: &GivenFlags,
    path: &Path,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<Vec<CellResult>, Failure> {
    let source = args.input.open(path)?;
    let recording = source.header().recording.as_ref();
    recorded_rows::refuse_page_by_page(args, recording, path)?;
    let own = recording.map(|recording| args.loaded(given).policies(Some(recording))).transpose()?;
    let policies = own.as_deref().unwrap_or(policies);
    recorded_rows::note(recording, path);
    if let Some(swap) = args.request().swap_setup()? {
        swap.check_touches(&path.display().to_string(), source.header().seen, recording)?;
    }
    if recording.is_some() && !args.page_by_page {
        return recorded_rows::replay(args, given, source);
    }
    memory::advise(!args.stream && stream::is_possible(args, given), sample::is_possible(given) && !args.stream);
    if args.stream {
        return stream::replay(args, given, source, path, policies);
    }
    // Nothing else asks for the time, and it is twice as large as all the rest of the trace.
    let options = args.load_options(args.request().wants_time(policies));
    let loaded = LoadedTrace::accesses(source, &options, &args.watch)?;
    acts::refuse_idle_of(args, given, &loaded.trace, path)?;
    note_idle(policies, &loaded.trace, path);
    let rows = args.loaded(given).cells(&loaded, policies, &[], &path.display().to_string())?;
    rows.note.iter().for_each(|note| say(&format!("note: {note}")));
    Ok(rows.cells)
}

/// Says which policies have nothing to choose among, if there are any.
pub(super) fn note_idle(policies: &[(RowPolicy, Option<Config>)], trace: &Trace, path: &Path) {
    if let Some(note) = idle(policies, trace) {
        say(&format!("note: {}: {note}", printable(&path.display().to_string())));
    }
}

fn idle(policies: &[(RowPolicy, Option<Config>)], trace: &Trace) -> Option<String> {
    let names: Vec<_> =
        policies.iter().map(|(policy, _)| *policy).filter(|policy| policy.is_plug_in()).map(RowPolicy::name).collect();
    (!names.is_empty() && !trace.has_files())
        .then(|| format!("has no pages of files for {} to choose among; their rows are those of lru", names.join(", ")))
}

/// The cells that the flags ask for.
pub(super) fn plan<'a>(
    args: &ReplayArgs,
    given: &GivenFlags,
    policies: &'a [(RowPolicy, Option<Config>)],
    loaded: &'a LoadedTrace,
) -> Result<Plan<'a>, Failure> {
    let LoadedTrace { trace, page_size, recording, .. } = loaded;
    let recorded_bytes = recording.as_ref().and_then(|recording| recording.memory_max);
    let footprint = u64::from(trace.footprint_pages());
    let sizes = sizes(args, given, &trace.name, (*page_size, footprint), recorded_bytes)?;
    let request = Replay { kernel: args.loaded(given).kernel(recording.as_ref()), ..args.request() };
    Ok(request.plan(trace, *page_size, sizes, policies, &[]))
}

/// Sizes in pages of a trace with pages of so many bytes, so many of which it touches; without any,
/// the limit that a recording had.
pub(super) fn sizes(
    args: &ReplayArgs,
    given: &GivenFlags,
    trace: &str,
    pages: (u32, u64),
    recorded_bytes: Option<u64>,
) -> Result<Vec<u64>, Failure> {
    let (sizes, note) = args.loaded(given).sizes(trace, pages, recorded_bytes)?;
    note.iter().for_each(|note| say(&format!("note: {note}")));
    Ok(sizes)
}

/// The output as it was asked for.
fn render(args: &ReplayArgs, rows: &[Row], settings: &GivenSettings, colour: bool) -> Result<String, Failure> {
    let out = &args.output;
    if out.json {
        return json_of_lines("rows", rows, settings, &args.input.notes());
    }
    if out.csv {
        return Ok(text::csv(rows, settings, out.vmstat));
    }
    let mut all = String::new();
    for (i, rows) in text::by_trace(rows).enumerate() {
        if i > 0 {
            all.push('\n');
        }
        all += &text::caption(&rows[0]);
        all += &recorded_rows::words(args, rows);
        all += &rules_of(rows, replaces_recorded(args, rows));
        all += &settings.line(&OF_RULES);
        all += &text::table(rows);
        all += &swap_table(rows);
        if out.curve {
            all += &refault::replay::draw(rows, colour);
        }
        if out.windows.is_some() {
            all += &text::windows(rows);
        }
        if out.vmstat {
            all.extend(rows.iter().map(text::vmstat));
        }
        if out.lru_gen {
            all.extend(rows.iter().map(text::lru_gen));
        }
        if out.swap_map {
            all.extend(rows.iter().map(text::swap_map));
        }
    }
    Ok(all)
}

/// Whether a kernel was chosen in the place of a recorded one.
fn replaces_recorded(args: &ReplayArgs, rows: &[Row]) -> bool {
    args.kernel.is_some() && (args.page_by_page || rows.iter().any(|row| row.reads.is_some()))
}

/// A line for rules that are not the default ones, or whose kernel is in the place of a recorded
/// one.
fn rules_of(rows: &[Row], is_other: bool) -> String {
    let inside = || rows.iter().filter_map(|row| Some((row, row.inside.as_ref()?)));
    let kernel = inside().map(|(_, inside)| inside.kernel).next().unwrap_or_default();
    let mut configs: Vec<_> = inside().map(|(row, inside)| (row.policy, inside.config.clone())).collect();
    for ((row, _), (_, config)) in inside().zip(&mut configs) {
        // A recorded group was charged for the memory that the kernel takes for itself.
        config.memcg.charge_kernel |= row.reads.is_some();
    }
    rule_words::line(
        (kernel, is_other && !configs.is_empty()),
        configs.iter().map(|(policy, config)| (*policy, config)),
    )
}

/// An object with a line for each result, so that tools for lines work, too, with the settings of
/// them all and what is to be known of their traces.
pub(crate) fn json_of_lines<R: Serialize>(
    name: &str,
    results: &[R],
    settings: &GivenSettings,
    notes: &[String],
) -> Result<String, Failure> {
    let (version, notes) = (env!("CARGO_PKG_VERSION"), serde_json::to_string(notes)?);
    let settings = serde_json::to_string(settings)?;
    let lines: Vec<_> = results.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let lines = lines.join(",\n");
    Ok(format!("{{\"refault\":\"{version}\",\"settings\":{settings},\"notes\":{notes},\"{name}\":[\n{lines}\n]}}\n"))
}

/// An output that cannot be written, or is one of the files to read, is known before the runs.
pub(crate) fn check_output<'a>(mut inputs: impl Iterator<Item = &'a Path>, output: &Path) -> Result<(), Failure> {
    if inputs.any(|input| is_same_file(input, output)) {
        return Err(format!("{}: is a file to read; give --output another name", output.display()).into());
    }
    drop(AtomicFile::create(output)?);
    Ok(())
}

/// Writes a file, whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = create(path)?;
    file.write_all(bytes).map_err(|e| TraceError::io(path.display().to_string(), "cannot be written", &e))?;
    Ok(file.commit()?)
}
