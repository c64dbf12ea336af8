//! Messages while it records, and at the end.

use super::RecordArgs;
use crate::flags::size::human;
use crate::{Failure, print, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use refault::words::{counted, grouped};
use refault_record::{DirectShare, End, RecordProgress, RecordReport};
use refault_trace::{DirectIo, SpaceSample, TouchMethod};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Time between two messages: rates are of that long.
const EVERY: Duration = Duration::from_millis(500);

/// The line that says how far it is, on a terminal.
pub(super) struct RecordLine {
    bar: ProgressBar,
    shown: Option<Instant>,
    before: RecordProgress,
}

impl RecordLine {
    pub(super) fn new() -> RecordLine {
        // Draws nothing unless standard error is a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // The template is a constant: a mistake in it would show in every run.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        RecordLine { bar, shown: None, before: RecordProgress::default() }
    }

    pub(super) fn show(&mut self, now: &RecordProgress) {
        if self.bar.is_hidden() || self.shown.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        let seconds = (now.seconds - self.before.seconds).max(1e-9);
        let rate = (now.events - self.before.events) as f64 / seconds;
        let text = format!(
            "{:.0} s, {} events/s, {} to {}, {} hits, {}{}",
            now.seconds,
            grouped(rate as u64),
            counted(now.accesses, "access", "accesses"),
            counted(u64::from(now.objects), "file", "files"),
            percent(now),
            human(now.bytes),
            lost(now.lost)
        );
        self.bar.set_message(text);
        (self.shown, self.before) = (Some(Instant::now()), *now);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn hit_rate(progress: &RecordProgress) -> Option<f64> {
    (progress.accesses > 0).then(|| 1.0 - progress.misses as f64 / progress.accesses as f64)
}

fn percent(progress: &RecordProgress) -> String {
    hit_rate(progress).map_or("no".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn lost(lost: u64) -> String {
    if lost == 0 { String::new() } else { format!(", {} LOST", counted(lost, "event", "events")) }
}

/// Object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    output: String,
    seconds: f64,
    events: u64,
    lost: u64,
    sample: Option<SpaceSample>,
    counted: Option<u64>,
    exact: bool,
    accesses: u64,
    misses: u64,
    hit_rate: Option<f64>,
    touches: u64,
    touches_by: Option<TouchMethod>,
    touches_interval_ns: Option<u64>,
    objects: u32,
    bytes: u64,
    ended_by: &'static str,
    memory_max: Option<u64>,
    group: Option<&'a str>,
    oom_kills: u64,
    direct: Option<Direct>,
}

/// Reads and writes that bypassed the page cache.
#[derive(Serialize)]
struct Direct {
    #[serde(flatten)]
    io: DirectIo,
    /// Share of the bytes that were read and written by descriptor, 0 to 1.
    share: f64,
}

/// The share of bytes from which on it is said that they bypass the page cache.
const CONSIDERABLE: f64 = 0.1;

/// In words, where it is a considerable share.
fn bypass_in_words(bypass: &DirectShare, name: &str) -> Option<String> {
    let DirectShare { all, share, most: (_, own) } = bypass;
    let what = match (all.reads, all.writes) {
        _ if *share < CONSIDERABLE => return None,
        (reads, 0) => counted(reads, "read", "reads"),
        (0, writes) => counted(writes, "write", "writes"),
        (reads, writes) => {
            format!("{} and {}", counted(reads, "read", "reads"), counted(writes, "write", "writes"))
        }
    };
    Some(format!(
        "{what} ({:.0} % of all bytes, {:.0} % of those of {name}) bypass the page cache: memory.max does not matter \
         for them; the program's own buffer pool does",
        100.0 * share,
        100.0 * own
    ))
}

fn ended_by(end: End) -> &'static str {
    match end {
        End::Gone(_) => "end of the program",
        End::Time => "time",
        End::Size => "size",
        End::Signal => "signal",
    }
}

/// Says which sample it is, and who took it.
fn say_sample(report: &RecordReport) {
    let Some(sample) = report.recording.sample else { return };
    let whole = report.recording.counted.map(|all| format!(", of {} for reading", counted(all, "touch", "touches")));
    say(&format!("refault: a sample: {sample}{}", whole.unwrap_or_default()));
    if let Some(why) = &report.why_filters {
        say(&format!("refault: filters of perf events took the sample, and nobody counted all accesses: {why}"));
    }
}

/// Says what came of it: on standard error, so that the program's own output stays by itself.
pub(super) fn give(args: &RecordArgs, report: &RecordReport) -> Result<(), Failure> {
    let p = &report.progress;
    if args.json {
        let json = Json {
            output: args.output().display().to_string(),
            seconds: p.seconds,
            events: p.events,
            lost: p.lost,
            sample: report.recording.sample,
            counted: report.recording.counted,
            exact: p.lost == 0,
            accesses: p.accesses,
            misses: p.misses,
            hit_rate: hit_rate(p),
            touches: p.touches,
            touches_by: report.recording.touches.map(|touches| touches.by),
            touches_interval_ns: report.recording.touches.map(|touches| touches.interval_ns),
            objects: p.objects,
            bytes: p.bytes,
            ended_by: ended_by(report.end),
            memory_max: report.recording.memory_max,
            group: report.recording.group.as_deref(),
            oom_kills: report.recording.oom_kills,
            direct: report.bypass.as_ref().map(|(bypass, _)| Direct { io: bypass.all, share: bypass.share }),
        };
        return print(&(serde_json::to_string_pretty(&json)? + "\n"));
    }
    let limit = report.recording.memory_max.map_or(String::new(), |bytes| format!(", limit {}", human(bytes)));
    say(&format!(
        "refault: recorded {} to {} in {:.1} s, {} of them hits of the kernel{limit}; {}: {}",
        counted(p.accesses, "access", "accesses"),
        counted(u64::from(p.objects), "file", "files"),
        p.seconds,
        percent(p),
        args.output().display(),
        human(p.bytes),
    ));
    say_sample(report);
    if let Some(touches) = report.recording.touches {
        say(&format!(
            "refault: and {} of memory in place and faults on anonymous memory ({touches})",
            counted(p.touches, "touch", "touches")
        ));
    }
    if let Some(words) = report.bypass.as_ref().and_then(|(bypass, name)| bypass_in_words(bypass, name)) {
        say(&format!("refault: {words}"));
    }
    if let Some(complaint) = &report.complaint {
        say(&format!("refault: not all memory could be looked at: {complaint}"));
    }
    if report.recording.oom_kills > 0 {
        say(&format!(
            "refault: the kernel killed {} of the group for want of memory{limit}; the program did not do all \
             of its work: give it more memory",
            counted(report.recording.oom_kills, "process", "processes")
        ));
    }
    if p.lost > 0 {
        say(&format!(
            "refault: {} of {} were lost, so that the recording is not exact; give more to --ring",
            grouped(p.lost),
            counted(p.events + p.lost, "event", "events")
        ));
    }
    Ok(())
}
