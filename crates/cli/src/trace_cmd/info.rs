//! `refault trace info`.

use super::InputArgs;
use crate::flags::size::human;
use crate::{Failure, print};
use clap::Args;
use refault::words::{counted, grouped, printable};
use refault_trace::{ObjectKind, Recording, Summary};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Objects listed without `--all`.
const LISTED: usize = 20;

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The trace; `-` is standard input
    trace: PathBuf,

    /// Print one JSON object; the schema is in docs/reference/formats.md
    #[arg(long)]
    json: bool,

    /// List every object and every group, not the 20 with most accesses of each
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let mut source = args.input.open(&args.trace)?;
    let summary = Summary::of(&mut source)?;
    let text = if args.json {
        let mut text = serde_json::to_string_pretty(&summary)?;
        text.push('\n');
        text
    } else {
        table(&summary, args.all)
    };
    print(&text)
}

/// Pages that the counts of a sample are of.
fn of_sample(recording: &Recording) -> String {
    let whole = recording.counted.map(|all| format!(", of {} for reading", counted(all, "touch", "touches")));
    format!("counts are of these pages{}", whole.unwrap_or_default())
}

fn table(summary: &Summary, all: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    let footprint = summary.footprint_bytes as f64 / f64::from(1 << 20);
    line("trace", summary.trace.clone());
    line("format", summary.format.clone());
    if !summary.checksums {
        line("checksums", "none: damage is not seen; refault trace convert writes them".to_owned());
    }
    line("accesses", grouped(summary.accesses));
    line("records", grouped(summary.records));
    line("distinct pages", grouped(summary.distinct_pages));
    line("footprint", format!("{footprint:.1} MiB in pages of {} bytes", summary.page_size));
    line("reads", grouped(summary.reads));
    line("writes", grouped(summary.writes));
    for (name, count) in
        [("by descriptor", summary.via.fd), ("by mapping", summary.via.map), ("via not said", summary.via.unspecified)]
    {
        if count > 0 {
            line(name, grouped(count));
        }
    }
    let span = summary.time_span_ns.map_or_else(|| "not said".to_owned(), |ns| format!("{:.3} s", ns as f64 / 1e9));
    line("time span", span);
    line("tasks", grouped(summary.tasks));
    line("memcgs", grouped(summary.memcgs));
    if let Some(collapse) = summary.collapse {
        let dropped = counted(collapse.dropped, "access", "accesses");
        let window = collapse.window;
        line("collapsed", format!("{dropped} dropped, to what is among the {window} pages touched last"));
    }
    if let Some(kernel) = summary.kernel {
        let rate = 100.0 * kernel.hits as f64 / (kernel.hits + kernel.misses).max(1) as f64;
        line("kernel", format!("{}, {rate:.2} % hits", counted(kernel.misses, "miss", "misses")));
        let added = counted(kernel.added, "page", "pages");
        let [evicted, dropped] = [kernel.evicted, kernel.dropped].map(grouped);
        line("page cache", format!("{added} added, {evicted} evicted, {dropped} dropped otherwise"));
    }
    if let Some(touches) = summary.recording.as_ref().and_then(|recording| recording.touches) {
        let sampled = summary.kernel.map_or(0, |kernel| kernel.sampled);
        line("sampled", format!("{} of memory in place: {touches}", counted(sampled, "touch", "touches")));
    }
    if let Some(recording) = &summary.recording {
        let lost = if recording.lost == 0 { "none" } else { &grouped(recording.lost) };
        line(
            "recording",
            format!("{}, {lost} lost: {}", counted(recording.events, "event", "events"), recording.sees.join(", ")),
        );
        recording.sample.iter().for_each(|sample| line("sample", format!("{sample}: {}", of_sample(recording))));
        if let Some(bytes) = recording.memory_max {
            line("limit", human(bytes));
        }
        if recording.oom_kills > 0 {
            line("oom kills", format!("{} of the group", counted(recording.oom_kills, "process", "processes")));
        }
        if recording.cut {
            line("", "cut: its recorder was ended, or the file is not whole; this is what is there".to_owned());
        }
    }
    for (name, value) in [("source", &summary.source), ("recorded on", &summary.recorded_on)] {
        if let Some(value) = value {
            line(name, printable(value));
        }
    }
    groups(&mut text, summary, all);
    objects(&mut text, summary, all);
    text
}

/// Memory cgroups, if the trace has any.
fn groups(text: &mut String, summary: &Summary, all: bool) {
    if summary.groups.is_empty() {
        return;
    }
    let mut groups: Vec<_> = summary.groups.iter().collect();
    let hidden = if all { 0 } else { groups.len().saturating_sub(LISTED) };
    if hidden > 0 {
        groups.sort_by_key(|group| std::cmp::Reverse(group.accesses));
        groups.truncate(LISTED);
    }
    let _ = writeln!(text, "\n{:<30} {:>13} {:>15}", "group", "pages", "accesses");
    // A recording of one group says no groups: all of it is of that one.
    let one = summary.recording.as_ref().and_then(|recording| recording.group.as_deref());
    let one = one.filter(|_| summary.groups.len() == 1);
    for group in groups {
        let (pages, accesses) = (grouped(group.pages), grouped(group.accesses));
        let _ = writeln!(text, "{:<30} {pages:>13} {accesses:>15}", printable(one.unwrap_or(&group.path)));
    }
    if hidden > 0 {
        let _ = writeln!(text, "and {hidden} more; --all lists them");
    }
}

fn objects(text: &mut String, summary: &Summary, all: bool) {
    let mut objects: Vec<_> = summary.objects.iter().collect();
    let mut hidden = 0;
    if !all && objects.len() > LISTED {
        objects.sort_by_key(|object| std::cmp::Reverse(object.accesses));
        hidden = objects.len() - LISTED;
        objects.truncate(LISTED);
    }
    let _ = writeln!(text, "\n{:<24} {:<5} {:>13} {:>15}", "object", "kind", "pages", "accesses");
    for object in objects {
        let kind = match object.kind {
            ObjectKind::File => "file",
            ObjectKind::Anon => "anon",
        };
        let (pages, accesses) = (grouped(object.pages), grouped(object.accesses));
        let name = printable(&object.name);
        let _ = writeln!(text, "{name:<24} {kind:<5} {pages:>13} {accesses:>15}");
    }
    if hidden > 0 {
        let _ = writeln!(text, "and {hidden} more; --all lists them");
    }
}
