//! `refault-run doctor`: the machine as the pager finds it. `refault doctor` asks for it, too.

use clap::Parser;
use refault::words::printable;
use refault_cli::{Failure, print};
use refault_pager::doctor::{FaultSupport, Probe, Report, watches_new_memory};
use refault_pager::store::swap_directory;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Say what this machine allows the pager to do, and what would improve it
#[derive(Debug, Parser)]
#[command(name = "refault-run doctor")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object; the schema is in docs/reference/doctor.md
    #[arg(long)]
    json: bool,

    /// Where swap files would be made [default: TMPDIR, /var/tmp or /tmp, the first that is on a
    /// disk]
    #[arg(long, value_name = "DIR")]
    swap_file: Option<PathBuf>,
}

/// True: regions can be made here.
pub(crate) fn run(args: &DoctorArgs) -> Result<bool, Failure> {
    let directory = match &args.swap_file {
        Some(dir) if !dir.is_dir() => return Err(format!("--swap-file {}: is no directory", dir.display()).into()),
        Some(dir) => dir.clone(),
        None => swap_directory().unwrap_or_else(|| "/tmp".into()),
    };
    let report = Report::new(&directory);
    let new_memory = watches_new_memory();
    print(&match args.json {
        true => serde_json::to_string_pretty(&Json::of(&report, &new_memory))? + "\n",
        false => table(&report, &new_memory),
    })?;
    Ok(report.verdict() != FaultSupport::Nothing)
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
}

#[derive(Serialize)]
struct JsonProbe<'a> {
    works: bool,
    error: Option<&'a str>,
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
    fn of(r: &'a Report, new_memory: &'a Probe) -> Json<'a> {
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
        FaultSupport::Everything => "The pager works here: it serves all faults.",
        FaultSupport::UserModeOnly => "The pager works here for faults of user mode.",
        FaultSupport::Nothing => "The pager does not work here.",
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
