//! `refault doctor`: what this machine allows the pager and the recorder to do.

use crate::{Failure, print};
use clap::Args;
use refault::words::printable;
use refault_pager::doctor::{Probe, Report, Verdict, watches_new_memory};
use refault_pager::store::swap_directory;
use refault_record::{EventSupport, Feature, Tracefs, probes_possible, survey, touches_possible};
use refault_trace::TouchMethod;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Flags of `refault doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object; the schema is in docs/reference/doctor.md
    #[arg(long)]
    json: bool,

    /// Where swap files would be made [default: TMPDIR, /var/tmp or /tmp, the first that is on a
    /// disk]
    #[arg(long, value_name = "DIR")]
    swap_file: Option<PathBuf>,

    /// Where tracefs is mounted [default: /sys/kernel/tracing or /sys/kernel/debug/tracing]
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
}

/// True: regions can be made here.
pub fn run(args: &DoctorArgs) -> Result<bool, Failure> {
    let directory = match &args.swap_file {
        Some(dir) if !dir.is_dir() => return Err(format!("--swap-file {}: is no directory", dir.display()).into()),
        Some(dir) => dir.clone(),
        None => swap_directory().unwrap_or_else(|| "/tmp".into()),
    };
    let report = Report::new(&directory);
    let new_memory = watches_new_memory();
    let tracefs = Tracefs::find(args.tracefs.as_deref());
    let touches = TouchMethod::ALL.map(|method| (method, touches_possible(method)));
    let events = Events {
        touches,
        all: tracefs.clone().and_then(|tracefs| survey(&tracefs)),
        probes: tracefs.and_then(|tracefs| probes_possible(&tracefs)),
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&Json::of(&report, &new_memory, &events))? + "\n",
        false => table(&report, &new_memory) + &recording(&events),
    };
    print(&text)?;
    Ok(report.verdict() != Verdict::Nothing)
}

/// Object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    refault: &'a str,
    verdict: &'a str,
    why: Option<String>,
    improvement: Option<String>,
    kernel: &'a str,
    page_bytes: u64,
    userfaultfd: JsonProbe<'a>,
    userfaultfd_user_mode: JsonProbe<'a>,
    userfaultfd_device: JsonProbe<'a>,
    unprivileged_userfaultfd: Option<&'a str>,
    features: BTreeMap<&'a str, bool>,
    moves: JsonProbe<'a>,
    new_memory: JsonProbe<'a>,
    io_uring: JsonProbe<'a>,
    swap_io: &'a str,
    stays_awake: JsonProbe<'a>,
    capabilities: BTreeMap<&'a str, bool>,
    seccomp: Option<u32>,
    cgroup_memory_max_bytes: Option<u64>,
    limits: BTreeMap<&'a str, Option<u64>>,
    max_map_count: Option<u64>,
    cpus: u64,
    memory_bytes: Option<u64>,
    kernel_swap_bytes: Option<u64>,
    swap_directory: JsonDirectory<'a>,
    recording: JsonProbe<'a>,
    recording_probes: JsonProbe<'a>,
    recording_events: BTreeMap<&'a str, bool>,
    recording_touches: BTreeMap<&'a str, JsonProbe<'a>>,
}

/// Event sources of the kernel for recording, as far as they can be asked for.
struct Events {
    all: Result<Vec<EventSupport>, String>,
    /// Whether probes can stand for what it lacks.
    probes: Result<(), String>,
    /// Methods that see touches of memory in place; an error says why one does not work here.
    touches: [(TouchMethod, Result<(), String>); 3],
}

impl Events {
    fn is_covered(&self, known: &EventSupport) -> bool {
        known.is_there || known.has_probe && self.probes.is_ok()
    }

    /// Whether there is what nothing is recorded without.
    fn suffice(&self) -> bool {
        self.all
            .as_ref()
            .is_ok_and(|all| all.iter().all(|known| self.is_covered(known) || known.feature != Feature::Cache))
    }
}

#[derive(Serialize)]
struct JsonProbe<'a> {
    works: bool,
    error: Option<&'a str>,
}

impl<'a> From<&'a Result<(), String>> for JsonProbe<'a> {
    fn from(works: &'a Result<(), String>) -> Self {
        JsonProbe { works: works.is_ok(), error: works.as_ref().err().map(String::as_str) }
    }
}

impl<'a> From<&'a Probe> for JsonProbe<'a> {
    fn from(p: &'a Probe) -> Self {
        JsonProbe { works: p.works, error: p.error.as_deref() }
    }
}

#[derive(Serialize)]
struct JsonDirectory<'a> {
    path: String,
    nameless: JsonProbe<'a>,
    direct: JsonProbe<'a>,
    free_bytes: Option<u64>,
}

impl<'a> Json<'a> {
    fn of(r: &'a Report, new_memory: &'a Probe, events: &'a Events) -> Json<'a> {
        let d = &r.swap_directory;
        Json {
            refault: env!("CARGO_PKG_VERSION"),
            verdict: r.verdict().name(),
            why: r.why(),
            improvement: r.improvement(),
            kernel: &r.kernel,
            page_bytes: r.page_bytes,
            userfaultfd: (&r.userfaultfd).into(),
            userfaultfd_user_mode: (&r.userfaultfd_user_mode).into(),
            userfaultfd_device: (&r.userfaultfd_device).into(),
            unprivileged_userfaultfd: r.unprivileged_userfaultfd.as_deref(),
            features: r.features.iter().copied().collect(),
            moves: (&r.moves).into(),
            new_memory: new_memory.into(),
            io_uring: (&r.io_uring).into(),
            swap_io: r.swap_io(),
            stays_awake: (&r.stays_awake).into(),
            capabilities: r.capabilities.iter().copied().collect(),
            seccomp: r.seccomp,
            cgroup_memory_max_bytes: r.cgroup_memory_max,
            limits: r.limits.iter().copied().collect(),
            max_map_count: r.max_map_count,
            cpus: r.cpus,
            memory_bytes: r.memory_bytes,
            kernel_swap_bytes: r.kernel_swap_bytes,
            swap_directory: JsonDirectory {
                path: d.path.display().to_string(),
                nameless: (&d.nameless).into(),
                direct: (&d.direct).into(),
                free_bytes: d.free_bytes,
            },
            recording: JsonProbe { works: events.suffice(), error: events.all.as_ref().err().map(String::as_str) },
            recording_probes: (&events.probes).into(),
            recording_touches: events.touches.iter().map(|(method, works)| (method.name(), works.into())).collect(),
            recording_events: events.all.iter().flatten().map(|known| (known.event, known.is_there)).collect(),
        }
    }
}

fn table(r: &Report, new_memory: &Probe) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<24}{value}");
    };
    let probe = |p: &Probe| match &p.error {
        None => "yes".to_string(),
        Some(e) => format!("no: {e}"),
    };
    let mib = |b: Option<u64>| b.map_or("none".into(), |b| format!("{} MiB", b >> 20));
    let named = |list: &[(&str, bool)], want: bool| {
        let names: Vec<_> = list.iter().filter(|(_, there)| *there == want).map(|(n, _)| *n).collect();
        if names.is_empty() { "none".into() } else { names.join(" ") }
    };
    line("kernel", &printable(&r.kernel));
    line("userfaultfd", &probe(&r.userfaultfd));
    line("  in user mode", &probe(&r.userfaultfd_user_mode));
    line("  /dev/userfaultfd", &probe(&r.userfaultfd_device));
    line("  features", &named(&r.features, true));
    line("  not there", &named(&r.features, false));
    line("  moving pages", &probe(&r.moves));
    line(
        "new memory of programs",
        &new_memory
            .error
            .as_ref()
            .map_or("watched before it is touched".into(), |e| format!("not watched before it is touched: {e}")),
    );
    line("io_uring", &probe(&r.io_uring));
    line("processors kept awake", &probe(&r.stays_awake));
    line("capabilities", &named(&r.capabilities, true));
    line("  not there", &named(&r.capabilities, false));
    line(
        "seccomp",
        match r.seccomp {
            Some(0) => "none",
            Some(1) => "strict",
            Some(_) => "a filter",
            None => "unknown",
        },
    );
    line("memory", &mib(r.memory_bytes));
    line("  limit of the cgroup", &mib(r.cgroup_memory_max));
    line("swap of the kernel", &mib(r.kernel_swap_bytes));
    let d = &r.swap_directory;
    line("swap files in", &printable(&d.path.display().to_string()));
    line("  files without a name", &probe(&d.nameless));
    line("  direct I/O", &probe(&d.direct));
    line("  regions write by", r.swap_io());
    line("  free", &mib(d.free_bytes));
    text.push('\n');
    text.push_str(match r.verdict() {
        Verdict::Everything => "The pager works here: it serves all faults.",
        Verdict::UserModeOnly => "The pager works here for faults of user mode.",
        Verdict::Nothing => "The pager does not work here.",
    });
    text.push('\n');
    if let Some(why) = r.why() {
        let _ = writeln!(text, "Why no more: {why}.");
    }
    if let Some(step) = r.improvement() {
        let _ = writeln!(text, "What would help: {step}");
    }
    text
}

/// Samples of addresses by the processor: what there is of it, which nothing uses.
fn hardware_samples() -> &'static str {
    let has = |name: &str| Path::new("/sys/bus/event_source/devices").join(name).exists();
    match (has("cpu") || has("cpu_core"), has("ibs_op")) {
        (_, true) => "hardware samples: there (IBS), and not used",
        (true, _) => "hardware samples: perhaps there (a PMU), and not used",
        _ => "hardware samples: no PMU",
    }
}

/// Findings on `refault record` on this machine, and their consequences, as text.
fn recording(events: &Events) -> String {
    let all = match &events.all {
        Ok(all) => all,
        Err(e) => return format!("\nrefault record does not work here: {}.\n", printable(e)),
    };
    let mut text = String::from("\n");
    let named = |there: bool| {
        let names: Vec<_> = all.iter().filter(|known| known.is_there == there).map(|known| known.event).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    };
    let _ = writeln!(text, "{:<24}{}", "events for recording", named(true));
    let _ = writeln!(text, "{:<24}{}", "  not there", named(false));
    for (at, (method, works)) in events.touches.iter().enumerate() {
        let sees = if method.writes_only() { "writes" } else { "reads and writes" };
        let words = works.as_ref().map_or_else(|why| format!("no: {}", printable(why)), |()| sees.to_owned());
        let what = if at == 0 { "touches of memory by" } else { "" };
        let _ = writeln!(text, "{what:<24}{}: {words}", method.name());
    }
    let _ = writeln!(text, "{:<24}{}", "", hardware_samples());
    let probed = all.iter().any(|known| !known.is_there && known.feature == Feature::Cache);
    match (events.suffice(), probed, &events.probes) {
        (true, false, _) => text.push_str("refault record works here, with the rights of root.\n"),
        (true, true, _) => text.push_str("refault record works here with probes of its own, and the rights of root.\n"),
        (false, _, Err(why)) => {
            let _ = writeln!(
                text,
                "refault record does not work here: it takes Linux 6.12 or later with tracepoints, or probes, and {}.",
                printable(why)
            );
        }
        (false, _, Ok(())) => text.push_str("refault record does not work here: it takes what is not there.\n"),
    }
    for known in all.iter().filter(|known| !events.is_covered(known)) {
        let _ = writeln!(text, "Without {}: {}.", known.event, known.feature.consequence());
    }
    text
}
