//! The flags of `refault record`.

use super::words;
use crate::flags::sampler::SamplerArg;
use crate::flags::size::Size;
use crate::flags::time::time;
use clap::Args;
use refault_record::{GroupOf, Options, RecordTarget, RuntimeNames, Sampling, find_group, group_paths};
use refault_trace::{SpaceSample, TouchMethod};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  A program, with all that it starts:
    refault record -o job.parquet -- ./job
  The same in a memory cgroup of its own with a limit, so that the kernel has to choose:
    refault record --memory 64M -o job.parquet -- ./job
  A container, for a minute:
    refault record --container web --for 60s -o web.parquet
  And what to do with it:
    refault verify job.parquet
    refault size job.parquet --target 'hit_rate>99%'

It needs root and Linux 6.12 or later, or an older one with probes; refault doctor says what this
machine has.
docs/reference/record.md says what is recorded, and what is not.";

/// Flags of `refault record`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct RecordArgs {
    /// Words that are not behind --: a mistake, which the error corrects.
    #[arg(hide = true, value_name = "WORDS")]
    pub(super) words: Vec<OsString>,

    /// The program that is recorded, with its arguments
    #[arg(value_name = "COMMAND", last = true, conflicts_with_all = ["pid", "all"])]
    pub(super) command: Vec<OsString>,

    /// Processes that run, with what they start from now on; repeat, or separate by commas
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) pid: Vec<u32>,

    /// Record this memory cgroup and those below it: a path as in /proc/PID/cgroup, or below
    /// /sys/fs/cgroup. With a COMMAND, that is started in it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "all"])]
    pub(super) cgroup: Option<PathBuf>,

    /// Record this container, by its name or its id, or how that begins: of Docker, Podman,
    /// containerd, CRI-O, LXC
    #[arg(long, value_name = "NAME|ID", conflicts_with_all = ["pid", "all", "cgroup", "unit", "pod", "memory"])]
    pub(super) container: Option<String>,

    /// Record this unit of systemd: a service, a scope or a slice
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "all", "cgroup", "pod", "memory"])]
    pub(super) unit: Option<String>,

    /// Record this pod of Kubernetes: its name, NAMESPACE/NAME, its UID, or how that begins
    #[arg(long, value_name = "NAME|UID", conflicts_with_all = ["pid", "all", "cgroup", "memory"])]
    pub(super) pod: Option<String>,

    /// Everything on the machine
    #[arg(long, conflicts_with = "pid")]
    pub(super) all: bool,

    /// Start the COMMAND in a memory cgroup of its own with this limit; the group is removed at the
    /// end
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute, conflicts_with = "cgroup")]
    pub(super) memory: Option<Size>,

    /// End after this time: 90s, 10m, 1h, 500ms [default: when the program ends, or at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) longest: Option<Duration>,

    /// End when the file has this size
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute)]
    pub(super) max_size: Option<Size>,

    /// How often to look which memory in place was touched: 1s, 500ms, or off [default: 1s where
    /// idle page tracking is, which changes nothing for the program, else off]
    #[arg(long, value_name = "TIME|off", value_parser = touches)]
    pub(super) touches: Option<Touches>,

    /// With --touches TIME, by what: idle (reads and writes), soft-dirty or write-protect (writes;
    /// the program takes a fault for the first write to a page after each look) [default: the first
    /// of these that is there]
    #[arg(long, value_name = "METHOD", value_parser = touches_by, requires = "touches")]
    pub(super) touches_by: Option<TouchMethod>,

    /// Record a sample of the pages of files, such as 1/64, which the kernel itself takes: the
    /// others cost next to nothing. 1/64:3 is another of the 64 samples. Touches of memory in place
    /// are not among it
    #[arg(long, value_name = "1/N", conflicts_with_all = ["touches", "touches_by"])]
    pub(super) sample: Option<SpaceSample>,

    /// By what the kernel takes the sample: bpf programs, which cost least and count all accesses,
    /// filters of perf events, or auto: programs where these are possible
    #[arg(long, value_name = "SAMPLER", default_value = "auto", requires = "sample")]
    sampler: SamplerArg,

    /// Memory of the ring of each CPU, a power of two; events beyond it are lost, and counted
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = Size::absolute)]
    pub(super) ring: Size,

    /// Objects have numbers for names, and no path is in the file
    #[arg(long)]
    pub(super) anonymize: bool,

    /// The file has the arguments of the COMMAND, too, which may be passwords, and not its name
    /// alone
    #[arg(long)]
    pub(super) command_line: bool,

    /// Where tracefs is mounted [default: /sys/kernel/tracing or /sys/kernel/debug/tracing]
    #[arg(long, value_name = "DIR")]
    pub(super) tracefs: Option<PathBuf>,

    /// The trace, in the native format
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object at the end; the schema is in docs/reference/record.md
    #[arg(long)]
    pub(super) json: bool,
}

impl RecordArgs {
    /// The file.
    pub(super) fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or("".as_ref())
    }

    /// The group that is named.
    fn group(&self) -> Result<Option<PathBuf>, String> {
        let named = [(GroupOf::Container, &self.container), (GroupOf::Unit, &self.unit), (GroupOf::Pod, &self.pod)];
        match named.into_iter().find_map(|(by, name)| Some((by, name.as_ref()?))) {
            Some((by, name)) => {
                find_group(by, name, &group_paths()?, &RuntimeNames::read()).map(PathBuf::from).map(Some)
            }
            None => Ok(self.cgroup.clone()),
        }
    }

    pub(super) fn options(&self) -> Result<Options, String> {
        if let Some(told) = words::correct(&self.words, &self.command, self.output.as_deref()) {
            return Err(told);
        }
        let group = self.group()?;
        let target = match (self.command.is_empty(), self.pid.is_empty(), self.all, &group) {
            (false, ..) => RecordTarget::Command(self.command.clone()),
            (_, false, ..) => RecordTarget::Pids(self.pid.clone()),
            (.., true, _) => RecordTarget::All,
            (.., Some(_)) => RecordTarget::Group,
            _ => {
                return Err("nothing to record; give -- COMMAND, --pid N, --container NAME, --unit NAME, --pod NAME, \
                            --cgroup PATH or --all"
                    .to_owned());
            }
        };
        let Some(output) = self.output.clone() else {
            return Err("-o FILE (--output) is missing: the trace, such as -o job.parquet".to_owned());
        };
        if self.memory.is_some() && self.command.is_empty() {
            return Err("--memory: makes a group for a program; give -- COMMAND, too".to_owned());
        }
        if self.touches_by.is_some() && self.touches == Some(Touches::Off) {
            return Err("--touches-by: goes with an interval; give --touches 1s in the place of off".to_owned());
        }
        let bytes = |size: &Size| size.pages(1, 0);
        if let Some(size) = self.memory.as_ref().filter(|size| bytes(size) < 4096) {
            return Err(format!("--memory {size}: is less than one page"));
        }
        if let Some(size) = self.max_size.as_ref().filter(|size| bytes(size) == 0) {
            return Err(format!(
                "--max-size {size}: no file is that small; give 1M or more, or leave it out for no end"
            ));
        }
        let ring_bytes = bytes(&self.ring);
        if !(65536..=1 << 30).contains(&ring_bytes) || !ring_bytes.is_power_of_two() {
            return Err(format!("--ring {}: must be a power of two from 64K to 1G", self.ring));
        }
        Ok(Options {
            target,
            group,
            memory_bytes: self.memory.as_ref().map(bytes),
            longest: self.longest,
            max_bytes: self.max_size.as_ref().map(bytes),
            touches: match self.touches {
                None => Sampling::IfFree,
                Some(Touches::Off) => Sampling::Off,
                Some(Touches::Every(interval)) => Sampling::Every(interval, self.touches_by),
            },
            sample: self.sample,
            sampler: self.sampler.into(),
            ring_bytes: ring_bytes as usize,
            anonymized: self.anonymize,
            command_line: self.command_line,
            tracefs: self.tracefs.clone(),
            output,
        })
    }
}

/// Value of `--touches`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touches {
    Off,
    Every(Duration),
}

fn touches(text: &str) -> Result<Touches, String> {
    if text == "off" {
        return Ok(Touches::Off);
    }
    if text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse() == Ok(0.0) {
        return Err("0 is no interval; give 10ms or more, or off for no touches".to_owned());
    }
    match time(text)? {
        interval if interval < Duration::from_millis(10) => Err("10ms is the shortest interval".to_owned()),
        interval => Ok(Touches::Every(interval)),
    }
}

fn touches_by(text: &str) -> Result<TouchMethod, String> {
    let found = TouchMethod::ALL.into_iter().find(|method| method.name() == text);
    found.ok_or_else(|| format!("is one of {}", TouchMethod::ALL.map(TouchMethod::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_have_an_interval_and_a_method() {
        assert_eq!(touches("off"), Ok(Touches::Off));
        assert_eq!(touches("250ms"), Ok(Touches::Every(Duration::from_millis(250))));
        for zero in ["0", "0s", "0.0ms"] {
            assert!(touches(zero).is_err_and(|e| e.contains("off for no touches")), "{zero}");
        }
        assert!(touches("9ms").is_err() && touches("on").is_err());
        assert_eq!(touches_by("soft-dirty"), Ok(TouchMethod::SoftDirty));
        assert!(touches_by("Idle").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("8760h"), Ok(Duration::from_secs(365 * 24 * 3600)));
        for wrong in ["8761h", "99999999999h", "", "x", "5x", "-1s", "0s", "1e400s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
