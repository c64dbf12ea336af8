//! A scenario: a machine in virtual time.

use super::change::{Setup, WhatIfChange};
use super::request::WhatIfRequest;
use super::subject::{Measured, Outcome, WhatIfSubject};
use crate::replay::swap::SwapKind;
use crate::runner::{Job, Runner, scaled};
use crate::size::{Metric, group_value};
use crate::{Failure, Watch};
use refault_lab::machine::{Ending, Machine, RunResult};
use refault_lab::scenario::{DeviceOverrides, DeviceSpec, EventAction, PolicySpec, Scenario};
use refault_mm::Policy;

const PAGE_SIZE: u32 = 4096;

/// Metrics, those of operations first.
const METRICS: [Metric; 5] =
    [Metric::OpsPerS, Metric::Latency(990), Metric::HitRate, Metric::Pressure(0, None), Metric::SwapInsPerS];

/// Name of the device of another kind of swap.
const DEVICE: &str = "what-if-swap";

/// A scenario, and its machine today.
pub(super) struct WhatIfScenario {
    file: String,
    scenario: Scenario,
    scale: f64,
    today: Setup,
    /// The group that is measured: an index, none is the machine.
    group: Option<usize>,
    /// The group whose limit is changed.
    limited: Option<usize>,
}

impl WhatIfScenario {
    /// Checks a scenario.
    pub(super) fn new(scenario: &Scenario, file: &str, request: &WhatIfRequest) -> Result<WhatIfScenario, Failure> {
        let scenario = scaled(scenario, file, request.scale)?;
        let of_trace = [
            ("from-swap", request.from_swap.is_some()),
            ("compression", request.compression.is_some()),
            ("page-by-page", request.page_by_page),
        ];
        if let Some((flag, _)) = of_trace.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("--{flag}: is for a trace, and {file} is a scenario, which says it itself").into());
        }
        if request.memory.is_some() {
            return Err(format!("--memory: {file} is a scenario, which says it itself").into());
        }
        let paths: Vec<&str> = scenario.memcgs.iter().map(|memcg| memcg.path.as_str()).collect();
        let find = |path: &String| {
            let place = paths.iter().position(|known| known == path);
            let known = if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
            place.ok_or_else(|| format!("{file}: --group {path:?} is not a group of the scenario, which has {known}"))
        };
        let group = request.group.as_ref().map(find).transpose()?;
        let has_limit = |memcg: &usize| scenario.memcgs[*memcg].limits.max != u64::MAX;
        let mut with_limit = (0..scenario.memcgs.len()).filter(has_limit);
        let only = with_limit.next().filter(|_| with_limit.next().is_none());
        let limited = if group.is_some() { group.filter(|memcg| has_limit(memcg)) } else { only };
        let policy = &scenario.policy;
        let today = Setup {
            kernel: request.from_kernel.unwrap_or(policy.kernel),
            policy: request.from_policy.unwrap_or(policy.policy),
            memory_pages: limited.map_or(u64::MAX, |memcg| scenario.memcgs[memcg].limits.max),
            page_size: PAGE_SIZE,
            swappiness: scenario.machine.swappiness,
            read_ahead: None,
            swap: None,
            advice: None,
            min_ttl_ns: None,
            set: Vec::new(),
            seed: request.seed.unwrap_or(scenario.seed),
            mapped_in_use: false,
        };
        Ok(WhatIfScenario { file: file.to_owned(), scale: request.scale, scenario, today, group, limited })
    }

    /// A time of the scenario at full size.
    fn scaled_ns(&self, ns: u64) -> u64 {
        (ns as f64 / self.scale) as u64
    }

    /// The scenario of a machine, and its policy.
    fn machine(&self, machine: &Setup) -> (Scenario, PolicySpec) {
        let mut scenario = self.scenario.clone();
        let mut policy = PolicySpec { policy: machine.policy, kernel: machine.kernel, ..scenario.policy.clone() };
        for set in &machine.set {
            set.choose_in(&mut policy.settings);
        }
        scenario.seed = machine.seed;
        scenario.machine.swappiness = machine.swappiness;
        scenario.machine.read_ahead_pages = machine.read_ahead.unwrap_or(scenario.machine.read_ahead_pages);
        if let Some(memcg) = self.limited {
            scenario.memcgs[memcg].limits.max = machine.memory_pages;
        }
        scenario.machine.min_ttl_ns = machine.min_ttl_ns.map_or(scenario.machine.min_ttl_ns, |ns| self.scaled_ns(ns));
        if let Some(swap) = &machine.swap {
            change_swap(&mut scenario, swap.kind);
        }
        (scenario, policy)
    }

    fn outcome(&self, result: &RunResult) -> Outcome {
        let group = self.group.map_or(0, |memcg| memcg + 1);
        let Some(group) = result.memcgs.get(group) else { return Outcome::default() };
        let seconds = group.lived_seconds(result.seconds);
        // The machine itself lives as long as the run.
        let seconds = if self.group.is_none() { result.seconds } else { seconds };
        let value = |&metric: &Metric| match metric {
            Metric::OpsPerS | Metric::Latency(_) if group.tasks.ops == 0 => None,
            metric => group_value(metric, group, seconds).map(Measured::exact),
        };
        let kills = result.oom_kills;
        Outcome {
            values: METRICS.iter().map(value).collect(),
            failed: (result.ending == Ending::Stuck).then_some("stuck"),
            remark: (kills > 0).then(|| crate::words::counted(kills, "OOM kill", "OOM kills")),
        }
    }
}

/// Another kind of swap, of the size that there is.
fn change_swap(scenario: &mut Scenario, kind: SwapKind) {
    scenario.zswap = (kind == SwapKind::Zswap).then(|| scenario.zswap.take().unwrap_or_default());
    if kind == SwapKind::None {
        scenario.swap.clear();
        return;
    }
    let is_zram = |scenario: &Scenario, device: usize| scenario.devices[device].preset == "zram";
    for at in 0..scenario.swap.len() {
        let device = scenario.swap[at].device;
        let is_kept = match kind {
            SwapKind::Zram => is_zram(scenario, device),
            _ => !is_zram(scenario, device),
        };
        if is_kept {
            continue;
        }
        let preset = if kind == SwapKind::Zram { "zram" } else { "sata-ssd" };
        scenario.devices.push(DeviceSpec {
            name: format!("{DEVICE}{at}"),
            preset: preset.to_owned(),
            overrides: DeviceOverrides::default(),
        });
        let swap = &mut scenario.swap[at];
        (swap.device, swap.rotational, swap.file) = (scenario.devices.len() - 1, false, false);
    }
}

impl WhatIfSubject for WhatIfScenario {
    fn name(&self) -> &str {
        &self.scenario.name
    }

    fn about(&self) -> String {
        let scale = if self.scale == 1.0 { String::new() } else { format!(", scale {}", self.scale) };
        let of = self.group.map_or_else(|| "the machine".to_owned(), |memcg| self.scenario.memcgs[memcg].path.clone());
        format!("a scenario, figures of {of}{scale}")
    }

    fn today(&self) -> &Setup {
        &self.today
    }

    fn limit_is(&self) -> &'static str {
        if self.limited.is_some() { "its memory.max" } else { "as written" }
    }

    fn metrics(&self) -> &[Metric] {
        &METRICS
    }

    fn spoken(&self) -> usize {
        2
    }

    fn usual_starts(&self) -> u16 {
        3
    }

    fn refuses(&self, change: &WhatIfChange) -> Option<String> {
        match change {
            WhatIfChange::Limit(limit) => match (self.limited, limit.pages(PAGE_SIZE, self.today.memory_pages)) {
                (None, _) => Some(match self.group {
                    Some(memcg) => format!("{} has no memory.max", self.scenario.memcgs[memcg].path),
                    None => "name the group whose memory.max is meant by --group".to_owned(),
                }),
                (_, 0) => Some("is less than a page".to_owned()),
                (Some(memcg), _) if self.scenario.events.iter().any(|event| sets_max(&event.action, memcg)) => {
                    Some("an event of the scenario sets that memory.max".to_owned())
                }
                _ => None,
            },
            WhatIfChange::Swappiness(_) | WhatIfChange::Swap(_) if self.scenario.swap.is_empty() => {
                Some("the scenario has no swap".to_owned())
            }
            WhatIfChange::Advice(_) => Some("is said by phases of a scenario: advice = \"random\"".to_owned()),
            WhatIfChange::MinTtl(age) => {
                let is_same = self.scaled_ns(age.as_nanos() as u64) == self.scenario.machine.min_ttl_ns;
                let idle = self.today.policy != Policy::Mglru;
                match (is_same, idle) {
                    (_, true) => Some(format!("does nothing under {}; it acts on mglru", self.today.policy)),
                    (true, _) => Some("is what it has".to_owned()),
                    _ => None,
                }
            }
            WhatIfChange::Swap(swap) if swap.size.is_some() => {
                Some(format!("{swap}: a scenario has the size of its own swap; write {}", swap.kind.name()))
            }
            WhatIfChange::Swap(swap) => {
                let kind = &swap.kind;
                let mut other = self.scenario.clone();
                change_swap(&mut other, *kind);
                let is_same = (&other.swap, &other.zswap) == (&self.scenario.swap, &self.scenario.zswap);
                if is_same {
                    return Some(format!("{} is what it has", kind.name()));
                }
                let is_told = |key: &String| key.contains("zswap") || key.contains("swapo");
                let told = self.scenario.lines.iter().find(|(key, _)| key.starts_with("event") && is_told(key));
                told.map(|(key, _)| format!("{key} of the scenario is of its own swap"))
            }
            _ => None,
        }
    }

    fn check(&self, machine: &Setup) -> Result<(), Failure> {
        let (scenario, policy) = self.machine(machine);
        policy.config().check().map_err(|e| format!("{}: {e}", self.file))?;
        scenario.check_acts(&self.file, std::slice::from_ref(&policy))?;
        Machine::new(&scenario, &policy).map_err(|e| format!("{}: {e}", self.file))?;
        Ok(())
    }

    /// The same with another seed: in virtual time a limit changes when everything happens.
    fn start(&self, machine: &Setup, n: u16) -> Setup {
        Setup { seed: machine.seed.wrapping_add(u64::from(n)), ..machine.clone() }
    }

    fn run(&self, machines: &[Setup], threads: Option<u16>, watch: &Watch) -> Result<Vec<Outcome>, Failure> {
        let job = |machine: &Setup| {
            let (scenario, policy) = self.machine(machine);
            Job { name: format!("{}, {}", self.file, machine.in_words()), scenario, policy }
        };
        let jobs: Vec<_> = machines.iter().map(job).collect();
        let done = Runner::new(threads, false, watch).run("running", &jobs)?;
        Ok(done.iter().map(|done| self.outcome(&done.result)).collect())
    }

    fn least(&self, metric: Metric) -> f64 {
        match metric {
            // Tenths of a percent of the time, and a page a second.
            Metric::Pressure(..) => 0.1,
            Metric::SwapInsPerS => 1.0,
            Metric::HitRate => 0.0005,
            _ => 0.0,
        }
    }

    fn distance(&self, _metric: Metric, _today: &Setup, _other: &Setup) -> f64 {
        0.0
    }

    fn unknown(&self) -> Vec<String> {
        vec![
            "how near each figure is to a kernel: bounds are the spread over seeds; stalls and swap of guests are \
             within 10 to 25 % (docs/measurements/README.md)"
                .to_owned(),
        ]
    }
}

/// Whether an event sets memory.max of a group.
fn sets_max(action: &EventAction, memcg: usize) -> bool {
    matches!(action, EventAction::Set { memcg: of, limits } if *of == memcg && limits.max.is_some())
}
