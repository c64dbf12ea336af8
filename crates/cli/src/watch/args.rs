//! The flags of `refault watch`.

use crate::flags::sampler::SamplerArg;
use crate::flags::size::Size;
use crate::flags::time::time;
use clap::{Args, ValueEnum};
use refault_trace::SpaceSample;
use refault_watch::{Budget, Emit, HostOptions, Select, State};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  One table of all groups, after a minute:
    refault watch --once
  The services of systemd, all the time, for Prometheus:
    refault watch --cgroup '/system.slice/*.service' --listen 127.0.0.1:9187
  Settings to review:
    refault watch --cgroup /system.slice/nginx.service --for 1h --emit systemd

It needs the rights of refault record; docs/reference/watch.md says how far to trust it.";

/// Time of --once without --for.
const ONCE: Duration = Duration::from_secs(60);

/// Flags of `refault watch`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct WatchArgs {
    /// Watch these memory cgroups, each with all below it: a path as in /proc/PID/cgroup, where *
    /// stands for a part of a name and ** for any; repeat [default: --all]
    #[arg(long, value_name = "GLOB")]
    cgroup: Vec<String>,

    /// Every memory cgroup that uses files
    #[arg(long, conflicts_with = "cgroup")]
    all: bool,

    /// The sample of pages whose events the kernel reports; auto begins with 1/64 or the rate of
    /// --state, and keeps to the budgets (1/16 to 1/256); 1/64:3 is another of the 64 samples
    #[arg(long, value_name = "auto|1/N", default_value = "auto")]
    rate: String,

    /// Processor time that the watcher may take, in percent of one CPU: --rate auto keeps to it
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = growth)]
    pub(super) cpu_budget: f64,

    /// Memory that the watcher may take, its engines among it, about
    #[arg(long, visible_alias = "budget", value_name = "SIZE", default_value = "64M", value_parser = Size::absolute)]
    memory_budget: Size,

    /// By what the kernel takes the sample: bpf programs, which cost least and count all accesses,
    /// filters of perf events, or auto: programs where these are possible
    #[arg(long, value_name = "SAMPLER", default_value = "auto")]
    sampler: SamplerArg,

    /// The time that curves are of
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    window: Duration,

    /// From one table to the next
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(super) every: Duration,

    /// One table, and end
    #[arg(long)]
    once: bool,

    /// End after this time [default: at Ctrl-C; with --once 60s]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    longest: Option<Duration>,

    /// Share by which misses may grow in the smallest limit, in percent
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = growth)]
    pub(super) growth: f64,

    /// Answer Prometheus at this address, which must be one of this machine alone
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    pub(super) listen: Option<SocketAddr>,

    /// Keep the curves in this file, for the next watcher to begin with
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,

    /// Append a line of JSON for each group to this file, as often as a table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Append such lines to a file an hour in this folder; an hour that is over becomes Parquet
    #[arg(long, value_name = "DIR")]
    pub(super) history: Option<PathBuf>,

    /// Remove files of --history that are older
    #[arg(long, value_name = "TIME", default_value = "168h", value_parser = time, requires = "history")]
    pub(super) keep: Duration,

    /// Write a page of HTML with the curves and the time since the start, as often as a table
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,

    /// At the end print settings to review, with the table as a comment; lasts --for, or a minute
    #[arg(long, value_name = "SYSTEM")]
    pub(super) emit: Option<EmitArg>,

    /// The most groups that are watched at a time
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u16).range(1..=1000))]
    groups: u16,

    /// Memory of the ring of each CPU, a power of two
    #[arg(long, value_name = "SIZE", default_value = "512K", value_parser = Size::absolute)]
    ring: Size,

    /// Where tracefs is mounted [default: /sys/kernel/tracing or /sys/kernel/debug/tracing]
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
}

/// System of `--emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum EmitArg {
    /// Resources of a container of Kubernetes
    K8s,
    /// A drop-in of a unit of systemd
    Systemd,
}

impl From<EmitArg> for Emit {
    fn from(arg: EmitArg) -> Emit {
        match arg {
            EmitArg::K8s => Emit::K8s,
            EmitArg::Systemd => Emit::Systemd,
        }
    }
}

impl WatchArgs {
    /// Whether there is one result, at the end.
    pub(super) fn is_once(&self) -> bool {
        self.once || self.emit.is_some()
    }

    /// When it ends, if it does by itself.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.longest.or(self.is_once().then_some(ONCE))
    }

    pub(super) fn options(&self) -> Result<HostOptions, String> {
        let ring_bytes = self.ring.pages(1, 0);
        if !(65536..=1 << 30).contains(&ring_bytes) || !ring_bytes.is_power_of_two() {
            return Err(format!("--ring {}: must be a power of two from 64K to 1G", self.ring));
        }
        if self.every < Duration::from_millis(100) {
            return Err("--every: 100ms is the shortest time".to_owned());
        }
        let is_auto = self.rate == "auto";
        let state = self.state.as_deref().map(State::read).transpose()?.flatten();
        let before = state.as_ref().and_then(State::sample);
        let sample = if is_auto { before.map_or(SpaceSample::new(64, 0), Ok) } else { self.rate.parse() };
        let sample = sample.map_err(|e| format!("--rate {}: {e}, or auto", self.rate))?;
        Ok(HostOptions {
            select: if self.cgroup.is_empty() { Select::All } else { Select::Patterns(self.cgroup.clone()) },
            sample,
            sampler: self.sampler.into(),
            window: self.window,
            budget: Budget {
                cpu: is_auto.then_some(self.cpu_budget / 100.0),
                memory_bytes: self.memory_budget.pages(1, 0),
            },
            most_groups: self.groups.into(),
            growth: self.growth / 100.0,
            ring_bytes: ring_bytes as usize,
            tracefs: self.tracefs.clone(),
            state,
        })
    }
}

fn growth(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|n| (0.0..=1000.0).contains(n));
    percent.ok_or_else(|| format!("{text:?} is no share; write 10 for 10 %"))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| format!("{text:?} is no address; write 127.0.0.1:9187"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!("{text} is not of this machine alone; write 127.0.0.1:{}", address.port())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_answered() {
        assert!(loopback("127.0.0.1:9187").is_ok() && loopback("[::1]:80").is_ok());
        assert!(loopback("0.0.0.0:80").is_err_and(|e| e.contains("127.0.0.1:80")) && loopback("x").is_err());
        assert_eq!(growth("10"), Ok(10.0));
        assert_eq!(growth("5%"), Ok(5.0));
        assert!(growth("-1").is_err() && growth("x").is_err() && growth("nan").is_err());
    }
}
