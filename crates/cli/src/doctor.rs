//! `refault doctor`: what this machine allows the recorder to do, first, and the pager, as
//! `refault-run` says if it is installed.

use crate::{Failure, installed, print};
use clap::Args;
use refault::words::printable;
use refault_record::{
    EventSupport, Feature, Tracefs, bpf_possible, group_paths, lacking_rights, probes_possible, survey,
    touches_possible,
};
use refault_trace::TouchMethod;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
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

/// True: regions can be made here; without `refault-run`, recordings can.
pub fn run(args: &DoctorArgs) -> Result<bool, Failure> {
    if let Some(dir) = args.swap_file.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(format!("--swap-file {}: is no directory", dir.display()).into());
    }
    let pager = args.ask_pager()?;
    let tracefs = Tracefs::find(args.tracefs.as_deref());
    let touches = TouchMethod::ALL.map(|method| (method, touches_possible(method)));
    let events = Events {
        touches,
        groups: group_paths().map(|_| ()),
        all: tracefs.clone().and_then(|tracefs| survey(&tracefs)),
        programs: tracefs.clone().and_then(|tracefs| bpf_possible(&tracefs)),
        probes: tracefs.and_then(|tracefs| probes_possible(&tracefs)),
    };
    let text = match (args.json, &pager) {
        (true, _) => serde_json::to_string_pretty(&Json::of(&pager, &events)?)? + "\n",
        (false, Ok(pager)) => format!("{}\n{}", recording(&events), pager.said),
        (false, Err(why)) => format!("{}\nThe pager is not installed here: {why}.\n", recording(&events)),
    };
    print(&text)?;
    Ok(pager.map_or(events.suffice(), |pager| pager.works))
}

/// Findings of `refault-run doctor`.
struct Pager {
    /// Text or JSON.
    said: String,
    works: bool,
}

impl DoctorArgs {
    /// Asks `refault-run`; the inner error says that it is not installed.
    fn ask_pager(&self) -> Result<Result<Pager, String>, Failure> {
        let mut words: Vec<OsString> = vec!["doctor".into()];
        words.extend(self.json.then(|| "--json".into()));
        words.extend(self.swap_file.iter().flat_map(|dir| ["--swap-file".into(), dir.into()]));
        let output = match installed::ask_run(&words) {
            Ok(output) => output,
            Err(why) => return Ok(Err(why.to_string())),
        };
        match output.status.code() {
            Some(code @ (0 | 1)) => Ok(Ok(Pager { said: String::from_utf8(output.stdout)?, works: code == 0 })),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let line = said.lines().last().unwrap_or("refault-run doctor: it ended without a word");
                Err(line.trim_start_matches("error: ").into())
            }
        }
    }
}

/// Object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    /// As `refault-run doctor` has it.
    #[serde(flatten)]
    pager: Map<String, Value>,
    recording: JsonProbe<'a>,
    recording_probes: JsonProbe<'a>,
    watch: JsonProbe<'a>,
    recording_sampler_bpf: JsonProbe<'a>,
    recording_events: BTreeMap<&'a str, bool>,
    recording_touches: BTreeMap<&'a str, JsonProbe<'a>>,
}

/// Event sources of the kernel for recording, as far as they can be asked for.
struct Events {
    all: Result<Vec<EventSupport>, String>,
    /// Whether probes can stand for what it lacks.
    probes: Result<(), String>,
    /// Whether BPF programs can take a sample.
    programs: Result<(), String>,
    /// Whether there are memory cgroups.
    groups: Result<(), String>,
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

impl<'a> Json<'a> {
    fn of(pager: &Result<Pager, String>, events: &'a Events) -> Result<Json<'a>, Failure> {
        let pager = match pager {
            Ok(pager) => serde_json::from_str(&pager.said)?,
            Err(why) => [("refault", env!("CARGO_PKG_VERSION")), ("verdict", "not-installed"), ("why", why)]
                .map(|(key, value)| (key.to_owned(), Value::from(value)))
                .into_iter()
                .collect(),
        };
        Ok(Json {
            pager,
            recording: JsonProbe { works: events.suffice(), error: events.all.as_ref().err().map(String::as_str) },
            recording_probes: (&events.probes).into(),
            watch: JsonProbe {
                works: events.suffice() && events.groups.is_ok(),
                error: events.all.as_ref().err().or(events.groups.as_ref().err()).map(String::as_str),
            },
            recording_sampler_bpf: (&events.programs).into(),
            recording_touches: events.touches.iter().map(|(method, works)| (method.name(), works.into())).collect(),
            recording_events: events.all.iter().flatten().map(|known| (known.event, known.is_there)).collect(),
        })
    }
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
        Err(e) => return format!("refault record does not work here: {}.\n{}", printable(e), rights()),
    };
    let mut text = conclusions(all, events);
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
    text
}

/// Conclusions in sentences: what works, and what follows from what is not there.
fn conclusions(all: &[EventSupport], events: &Events) -> String {
    let mut text = String::new();
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
    if events.suffice() {
        text.push_str(&events.groups.as_ref().map_or_else(
            |why| format!("refault watch does not work here: {}.\n", printable(why)),
            |()| "refault watch works here, too.\n".to_owned(),
        ));
        let sampler = match &events.programs {
            Ok(()) => {
                "BPF programs take samples: a cached read costs little more, and all accesses are counted.".to_owned()
            }
            Err(why) => format!("Filters of perf events take samples, not BPF programs: {}.", printable(why)),
        };
        let _ = writeln!(text, "{sampler}");
    }
    for known in all.iter().filter(|known| !events.is_covered(known)) {
        let _ = writeln!(text, "Without {}: {}.", known.event, known.feature.consequence());
    }
    text + &rights() + "\n"
}

/// Rights that lack for a watch of the whole machine, a line each.
fn rights() -> String {
    lacking_rights().iter().map(|(name, what)| format!("refault watch lacks {name}: {what}.\n")).collect()
}
