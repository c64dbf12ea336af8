//! The recorder: from rings to a trace file, until the program ends or somebody says so.

mod begin;
mod counted;
mod header;
mod warm;

use crate::assemble::{Assembler, DirectShare};
use crate::bpf::Programs;
use crate::event::{Event, EventKind, release};
use crate::group::{self, Cgroup};
use crate::machine::{self, STEP};
use crate::members::{self, Members};
use crate::names::Names;
use crate::opened::{Opened, SamplerChoice, WantedEvents};
use crate::probes::Probes;
use crate::program;
use crate::ring::{Rings, now_ns};
use crate::scan::Scan;
use crate::snapshot::Columns;
use crate::tasks::Tasks;
use crate::touches::{Sampler, Sampling};
use crate::tracefs::Tracefs;
use crate::unfinished::Unfinished;
use begin::{StartedTarget, group_of_target, is_there, start};
use counted::Counted;
use header::{sees, words};
use refault_trace::{NativeWriter, PartFile, Record, Recording, Series, Snapshot, SpaceSample};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use warm::WarmFiles;

/// Programs that are recorded.
#[derive(Clone, Debug)]
pub enum RecordTarget {
    /// A program that the recorder starts, with all that descends from it.
    Command(Vec<OsString>),
    /// Processes that run, with what they start from now on.
    Pids(Vec<u32>),
    /// Processes in the group.
    Group,
    /// Everything but the recorder.
    All,
}

/// Settings of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// Target of the recording.
    pub target: RecordTarget,
    /// The memory cgroup whose limit and sizes are noted; a program is started in it.
    pub group: Option<PathBuf>,
    /// A group of its own with that limit in bytes, for a program.
    pub memory_bytes: Option<u64>,
    /// No longer than this.
    pub longest: Option<Duration>,
    /// Size in bytes at which the file ends.
    pub max_bytes: Option<u64>,
    /// Touches of memory in place.
    pub touches: Sampling,
    /// Pages of files whose events the kernel is to report; none: all.
    pub sample: Option<SpaceSample>,
    /// Part of the kernel that takes the sample.
    pub sampler: SamplerChoice,
    /// Bytes of each ring.
    pub ring_bytes: usize,
    /// Objects get numbers for names.
    pub anonymized: bool,
    /// The arguments of the program are in the file, too, and not its name alone.
    pub command_line: bool,
    /// Where tracefs is mounted, if not where it is by custom.
    pub tracefs: Option<PathBuf>,
    /// The file.
    pub output: PathBuf,
}

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordProgress {
    /// Seconds since the start.
    pub seconds: f64,
    /// Events read, and lost.
    pub events: u64,
    /// See `events`.
    pub lost: u64,
    /// Accesses, and how many of these missed in the kernel.
    pub accesses: u64,
    /// See `accesses`.
    pub misses: u64,
    /// Pages touched by what was sampled, and by faults on anonymous memory.
    pub touches: u64,
    /// Files.
    pub objects: u32,
    /// Bytes written.
    pub bytes: u64,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program, every process, or the group is gone.
    Gone(Option<ExitStatus>),
    /// The time is over.
    Time,
    /// The file is as large as it may be.
    Size,
    /// Somebody ended it.
    Signal,
}

/// Result of a recording.
#[derive(Clone, Debug)]
pub struct RecordReport {
    /// At the end.
    pub progress: RecordProgress,
    /// Header of the file.
    pub recording: Recording,
    /// Why it ended.
    pub end: End,
    /// Reads and writes that bypassed the page cache, and the name of the file with most of their
    /// bytes; none: no call did.
    pub bypass: Option<(DirectShare, String)>,
    /// Why the memory of a process could not be looked at, if it was to be: the last one.
    pub complaint: Option<String>,
    /// Why filters took the sample and nobody counted all accesses, if programs were wanted, too.
    pub why_filters: Option<String>,
}

/// When the first one is written.
const FIRST_CHECKPOINT: Duration = Duration::from_secs(1);

/// Time from one footer to the next, at least: a killed recorder loses what came after the last.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Time for what is still to be looked at, at the end.
const LAST_LOOKS: Duration = Duration::from_secs(1);

/// A recorder at work.
struct Recorder {
    rings: Rings,
    /// Removed after the events on them have ended.
    _probes: Option<Probes>,
    writer: NativeWriter<PartFile>,
    assembler: Assembler,
    names: Names,
    members: Members,
    tasks: Tasks,
    recording: Recording,
    group: Option<Cgroup>,
    columns: Columns,
    start_ns: u64,
    anonymized: bool,
    events: Vec<Event>,
    records: Vec<Record>,
    snapshot_every: Duration,
    /// Sampler that looks at memory in place; `None`: nobody does.
    sampler: Option<Sampler>,
    /// Looks whose events come next, in their order.
    scans: VecDeque<Scan>,
    /// Footers written so far.
    checkpoints: u64,
    /// Processes of the group that were killed for want of memory before the program ran.
    killed_before: u64,
    /// Files whose pages in memory are still to be looked at.
    warm: WarmFiles,
    /// Accesses of all pages, beside a sample.
    counted: Counted,
    why_filters: Option<String>,
}

/// Group in which the programs run: a new one with that memory, or one that exists.
fn group_of(options: &Options) -> Result<Option<Cgroup>, String> {
    Ok(match (options.memory_bytes, &options.group) {
        (Some(bytes), _) => Some(Cgroup::create(&format!("refault-record-{}", std::process::id()), bytes)?),
        (None, Some(path)) => Some(Cgroup::open(path)?),
        (None, None) => None,
    })
}

/// Events that are wanted. Accesses are counted by group where the group is the target.
fn wanted(options: &Options, group: Option<&Cgroup>) -> WantedEvents {
    let is_group = matches!(options.target, RecordTarget::Group);
    WantedEvents {
        sample: options.sample,
        sampler: options.sampler,
        of_pages: false,
        groups: is_group && group.is_some_and(|group| group.ids().is_some()),
        by_process: !is_group,
        ring_bytes: options.ring_bytes,
    }
}

/// Names of files, which are looked for below the current folder.
fn names_here() -> Names {
    let mut names = Names::new();
    if let Ok(folder) = std::env::current_dir() {
        names.look_below(folder);
    }
    names
}

/// Facts about the recording, as they are known when it begins.
fn about(options: &Options, sees: Vec<String>, group: Option<&Cgroup>, columns: Vec<String>) -> Recording {
    Recording {
        target: words(options),
        kernel: release(),
        sees,
        group: group.map(|g| g.path().to_owned()),
        cgroup_version: group.map(Cgroup::version),
        memory_max: group.and_then(Cgroup::limit_bytes),
        swappiness: group.and_then(Cgroup::swappiness).or_else(machine::swappiness),
        swap_max: machine::swap_bytes().map(|all| group.and_then(Cgroup::swap_bytes).map_or(all, |own| own.min(all))),
        attached: Some(!matches!(options.target, RecordTarget::Command(_))),
        lru_gen: machine::lru_gen(),
        anonymized: options.anonymized,
        sample: options.sample,
        series: Series { names: columns, snapshots: Vec::new() },
        ..Recording::default()
    }
}

/// Records. `tell` is called several times a second.
///
/// # Errors
/// One line that says what is missing, or what could not be written.
pub fn record(options: &Options, mut tell: impl FnMut(&RecordProgress)) -> Result<RecordReport, String> {
    let tracefs = Tracefs::find(options.tracefs.as_deref())?;
    let sampler = Sampler::new(if options.sample.is_some() { Sampling::Off } else { options.touches })?;
    let group = group_of(options)?;
    let writer = NativeWriter::create_part(&options.output).map_err(|e| e.to_string())?;
    // A recorder that does not get as far as the first event leaves nothing.
    let mut unfinished = Unfinished::new(&options.output)?;
    let ids = group.as_ref().filter(|_| matches!(options.target, RecordTarget::Group)).and_then(Cgroup::ids);
    let mut opened = Opened::open(&tracefs, wanted(options, group.as_ref()), None)?;
    let sees = sees(&opened.decoder);
    program::catch_end();
    let start_ns = now_ns();
    let names = names_here();
    let killed_before = group.as_ref().map(Cgroup::oom_kills);
    // Nothing before the program counts.
    _ = opened.rings.programs().map(Programs::accesses);
    let StartedTarget { mut child, mut members, pid } = start(options, group.as_ref())?;
    // Not so if events tell the groups of another hierarchy.
    if let Some(ids) = ids.filter(|_| opened.has_groups) {
        members.by_id(ids);
    }
    let group = group.or_else(|| group_of_target(pid));
    let columns = Columns::of(group.as_ref());
    let killed_before = killed_before.unwrap_or_else(|| group.as_ref().map_or(0, Cgroup::oom_kills));
    let mut recorder = Recorder {
        rings: opened.rings,
        _probes: opened.probes,
        writer,
        assembler: Assembler::new(start_ns, machine::reclaimers())
            .with_pagers_out(machine::pagers_out())
            .with_sample(options.sample),
        names,
        members,
        tasks: Tasks::default(),
        recording: about(options, sees, group.as_ref(), columns.names()),
        counted: Counted::of(&options.target, group.as_ref()),
        group,
        columns,
        start_ns,
        anonymized: options.anonymized,
        events: Vec::new(),
        records: Vec::new(),
        snapshot_every: Duration::from_secs(1),
        sampler,
        scans: VecDeque::new(),
        checkpoints: 0,
        killed_before,
        warm: WarmFiles::default(),
        why_filters: opened.why_filters,
    };
    if recorder.sampler.is_some() {
        recorder.assembler.record_memory();
    }
    recorder.find_what_is_in_use();
    let done = recorder.run(options, &mut child, &mut tell);
    // Without a footer nothing can be read, also if it is the last that does not fit.
    if recorder.checkpoints > 0 {
        unfinished.keep();
    }
    let done = done.and_then(|end| {
        let finished = recorder.finish(options, end, &mut tell)?;
        unfinished.keep();
        Ok(finished)
    });
    done.map_err(|e| {
        // The program is not ended by what happens to its recorder.
        let _ = child.as_mut().map(Child::wait);
        unfinished.with_hint(e)
    })
}

impl Recorder {
    fn run(
        &mut self,
        options: &Options,
        child: &mut Option<Child>,
        tell: &mut impl FnMut(&RecordProgress),
    ) -> Result<End, String> {
        let started = Instant::now();
        let (mut next_snapshot, mut next_checkpoint) = (Duration::ZERO, FIRST_CHECKPOINT);
        let (mut next_look, mut next_touches) = (Duration::ZERO, STEP);
        loop {
            let age = started.elapsed();
            if age >= next_snapshot {
                self.snapshot();
                if age >= next_look {
                    self.members.look_again();
                    next_look = age + Duration::from_secs(1);
                }
                next_snapshot = age + self.until_next_snapshot(age);
            }
            if age >= next_touches && self.sampler.is_some() {
                self.look_at_memory();
                let wait = self.sampler.as_ref().map_or(Duration::MAX, Sampler::until_next);
                next_touches = started.elapsed().saturating_add(wait);
            }
            self.step(false)?;
            self.look_on(STEP / 2);
            tell(&self.progress());
            if age >= next_checkpoint {
                let begun = Instant::now();
                self.checkpoint()?;
                self.checkpoints += 1;
                // Footers grow with the number of files: they take a twentieth of the time at most.
                next_checkpoint = age + CHECKPOINT.max(begun.elapsed() * 20);
            }
            let gone = match (&mut *child, &options.target) {
                (Some(child), _) => child.try_wait().ok().flatten().map(Some),
                (None, RecordTarget::Pids(pids)) if !pids.iter().any(|pid| is_there(*pid)) => Some(None),
                (None, RecordTarget::Group) if self.group.as_ref().is_some_and(|group| !group.is_there()) => Some(None),
                _ => None,
            };
            if let Some(status) = gone {
                return Ok(End::Gone(status));
            }
            if program::is_ended() {
                return Ok(End::Signal);
            }
            if options.longest.is_some_and(|longest| age >= longest) {
                return Ok(End::Time);
            }
            if options.max_bytes.is_some_and(|most| self.writer.bytes_written() >= most) {
                return Ok(End::Size);
            }
            std::thread::sleep(STEP);
        }
    }

    /// Reads the rings, and writes what is known; `last`: all.
    fn step(&mut self, last: bool) -> Result<(), String> {
        self.events.clear();
        let passed_ns = self.rings.take(&mut self.events, last);
        for event in &self.events {
            let watched = self.members.contain(event, group::of_process);
            if watched {
                self.tasks.see(event, &mut self.assembler, self.group.is_none());
            }
            match event.kind {
                EventKind::Look => {
                    if let Some(scan) = self.scans.pop_front() {
                        self.assembler.look(event, &scan, &mut self.names);
                    }
                }
                _ if event.time_ns >= self.start_ns => self.assembler.take(event, watched, &mut self.names),
                _ => {}
            }
            if let Some(sampler) = self.sampler.as_mut().filter(|_| ends_memory(event.kind)) {
                sampler.forget(event.pid);
            }
        }
        debug_assert_eq!(self.assembler.validate(), Ok(()));
        self.assembler.passed(passed_ns);
        self.assembler.emit(&mut self.records, last);
        self.writer.write(&self.records).map_err(|e| e.to_string())?;
        self.records.clear();
        Ok(())
    }

    /// Looks at the memory of all programs that are recorded. Touches that it found have their
    /// place among the events by the time of the look.
    fn look_at_memory(&mut self) {
        let Some(sampler) = &mut self.sampler else { return };
        let pids = self.members.pids().chain(members::more(self.members.rule(), self.group.as_ref())).collect();
        for (pid, scan) in sampler.look(&pids) {
            // Each with a time of its own, in the order of the list.
            self.rings.add(Event { time_ns: now_ns(), pid, tid: pid, cgroup: 0, kind: EventKind::Look });
            self.scans.push_back(scan);
        }
    }

    fn snapshot(&mut self) {
        self.take_counted();
        let time_ns = now_ns().saturating_sub(self.start_ns);
        let values = self.columns.values(self.group.as_ref());
        if self.recording.series.push(Snapshot { time_ns, values }) {
            self.snapshot_every *= 2;
        }
    }

    /// A program takes most of its memory besides files as it starts: with looks that are far
    /// apart, a short one would seem to have had none.
    fn until_next_snapshot(&self, age: Duration) -> Duration {
        match age.as_secs() {
            0 => STEP,
            1..10 => self.snapshot_every / 5,
            _ => self.snapshot_every,
        }
    }

    fn progress(&self) -> RecordProgress {
        RecordProgress {
            seconds: now_ns().saturating_sub(self.start_ns) as f64 / 1e9,
            events: self.rings.read,
            lost: self.rings.all_lost(),
            accesses: self.assembler.accesses,
            misses: self.assembler.misses,
            touches: self.assembler.touches,
            objects: self.assembler.used(),
            bytes: self.writer.bytes_written(),
        }
    }

    fn finish(
        mut self,
        options: &Options,
        end: End,
        tell: &mut impl FnMut(&RecordProgress),
    ) -> Result<RecordReport, String> {
        // An event that is being written into a ring is there after a moment.
        std::thread::sleep(STEP);
        self.snapshot();
        self.look_at_memory();
        self.look_on(LAST_LOOKS);
        self.step(true)?;
        let progress = self.progress();
        tell(&progress);
        self.recording.duration_ns = now_ns().saturating_sub(self.start_ns);
        self.names.search();
        let header = self.header();
        if progress.accesses == 0 {
            drop(Unfinished::new(&options.output));
            return Err(nothing(options, self.assembler.bypass().is_some()));
        }
        self.writer.finish(&header).map_err(|e| e.to_string())?;
        let bytes = fs::metadata(&options.output).map_or(progress.bytes, |m| m.len());
        let name = |object: u32| header.objects.get(object as usize).map_or_else(String::new, |o| o.name.clone());
        let bypass = self.assembler.bypass().map(|bypass| (bypass, name(bypass.most.0)));
        let complaint = self.sampler.and_then(|sampler| sampler.complaint);
        Ok(RecordReport {
            progress: RecordProgress { bytes, ..progress },
            recording: self.recording,
            end,
            bypass,
            complaint,
            why_filters: self.why_filters,
        })
    }
}

/// The memory of the process is another one after it, or none.
fn ends_memory(kind: EventKind) -> bool {
    matches!(kind, EventKind::Exit | EventKind::Comm { exec: true, .. })
}

fn nothing(options: &Options, is_direct: bool) -> String {
    let what = words(options);
    if is_direct {
        return format!(
            "{what}: all that was read and written bypasses the page cache (O_DIRECT), and nothing is written; \
             memory.max does not matter for it: give the memory to the program's own buffer pool"
        );
    }
    format!(
        "{what}: no access to a file was seen, and nothing is written; was the program busy, and on a file system with a \
         page cache? Of --pid only children that start later are recorded, too; memory that is not of a file is not"
    )
}
