//! A trace: page by page, without devices.

use super::change::{Setup, SwapKind, WhatIfChange};
use super::request::WhatIfRequest;
use super::subject::{Measured, Outcome, WhatIfSubject};
use crate::memory_size::human;
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::{Plan, Replay, Row};
use crate::settings::check_acts;
use crate::size::Metric;
use crate::words::grouped;
use crate::{Failure, Watch, on_threads, threads};
use refault_mm::{Counter, Policy};
use refault_trace::{LoadOptions, ObjectKind, RecordSource, Trace};

/// Today's limit where none is known, as a part of what is touched.
const HALF: u64 = 2;

/// Distance of the lab from kernels in hits of all accesses (docs/measurements/real-kernels.md): by
/// descriptor and of anonymous memory, and of multi-gen LRU over mapped files.
const POINTS: f64 = 0.002;
/// The second of these.
const POINTS_MAPPED: f64 = 0.02;

/// Part of the accesses, one in this many, from which mapped files decide.
const MANY_MAPPED: u64 = 20;

/// Differences of no more misses than this are none, nor below a thousandth of the accesses.
const FEW: u64 = 100;

/// A trace, and its machine today.
pub(super) struct WhatIfTrace {
    file: String,
    trace: Trace,
    page_size: u32,
    today: Setup,
    is_chosen: bool,
    metrics: Vec<Metric>,
    is_mapped: bool,
}

impl WhatIfTrace {
    /// Reads a trace.
    pub(super) fn read(
        source: Box<dyn RecordSource>,
        request: &WhatIfRequest,
        watch: &Watch,
    ) -> Result<WhatIfTrace, Failure> {
        let (file, page_size) = (source.name().to_owned(), source.header().page_size);
        let options = LoadOptions { default_via: request.via, ..LoadOptions::default() };
        let trace = Trace::load(&mut Clocked::new(source, None, watch), &options)?;
        let footprint = u64::from(trace.footprint_pages());
        let memory_pages = request.memory.as_ref().map_or(footprint / HALF, |size| size.pages(page_size, footprint));
        if memory_pages == 0 || memory_pages >= u64::MAX / 2 {
            let given = request.memory.as_ref().map_or(String::new(), ToString::to_string);
            return Err(format!("--memory {given}: is no limit that a trace can have; write 512M or 50%").into());
        }
        let today = Setup {
            kernel: request.from_kernel.unwrap_or_default(),
            policy: request.from_policy.unwrap_or(Policy::Mglru),
            memory_pages,
            page_size,
            swappiness: 60,
            read_ahead: None,
            swap: None,
            set: Vec::new(),
            seed: request.seed.unwrap_or(0),
        };
        let has_anon = trace.objects.iter().any(|of| of.kind == ObjectKind::Anon && !of.indices.is_empty());
        let mut metrics = vec![Metric::Misses, Metric::HitRate];
        metrics.extend(has_anon.then_some(Metric::SwapInsPerAccess));
        let accesses = trace.accesses.len() as u64;
        let mapped = if trace.has_files() { trace.accesses.iter().filter(|access| access.is_map()).count() } else { 0 };
        let is_mapped = mapped as u64 * MANY_MAPPED >= accesses && mapped > 0;
        Ok(WhatIfTrace { file, trace, page_size, today, is_chosen: request.memory.is_some(), metrics, is_mapped })
    }

    fn has_anon(&self) -> bool {
        self.metrics.contains(&Metric::SwapInsPerAccess)
    }

    fn replay(&self, machine: &Setup) -> Replay {
        Replay {
            policies: vec![RowPolicy::Linux(machine.policy)],
            kernel: Some(machine.kernel),
            swappiness: machine.swappiness,
            set: machine.set.clone(),
            seed: machine.seed,
            ..Replay::default()
        }
    }

    fn run_one(&self, machine: &Setup, watch: &Watch) -> Result<Outcome, String> {
        let replay = self.replay(machine);
        let config = replay.config(machine.policy).map_err(|e| e.to_string())?;
        let policies = [(RowPolicy::Linux(machine.policy), Some(config))];
        let plan: Plan<'_> = replay.plan(&self.trace, self.page_size, vec![machine.memory_pages], &policies, &[]);
        let swap_max_pages = if machine.swap == Some(SwapKind::None) { 0 } else { u64::MAX };
        let rows = Plan { swap_max_pages, threads: 1, watch: watch.quiet(), ..plan }.run()?;
        let Some((row, _)) = rows.first() else { return Ok(Outcome::default()) };
        Ok(self.outcome(row))
    }

    fn outcome(&self, row: &Row) -> Outcome {
        let accesses = row.accesses.max(1) as f64;
        let swap_ins = row.count(&[Counter::Pswpin]).unwrap_or(0) as f64;
        let value = |metric: &Metric| {
            Some(Measured::exact(match metric {
                Metric::Misses => row.misses as f64,
                Metric::HitRate => row.hit_rate(),
                Metric::SwapInsPerAccess => swap_ins / accesses,
                _ => return None,
            }))
        };
        let failed = row.oom_at.map(|_| "out of memory");
        Outcome { values: self.metrics.iter().map(value).collect(), failed, remark: None }
    }
}

impl WhatIfSubject for WhatIfTrace {
    fn name(&self) -> &str {
        &self.trace.name
    }

    fn about(&self) -> String {
        let pages = u64::from(self.trace.footprint_pages());
        format!(
            "a trace of {} accesses to {} pages ({})",
            grouped(self.trace.accesses.len() as u64),
            grouped(pages),
            human(pages * u64::from(self.page_size))
        )
    }

    fn today(&self) -> &Setup {
        &self.today
    }

    fn limit_is(&self) -> &'static str {
        if self.is_chosen { "as given" } else { "half of what it touches; --memory says another" }
    }

    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn refuses(&self, change: &WhatIfChange) -> Option<String> {
        match change {
            WhatIfChange::ReadAhead(_) => Some(
                "a trace is replayed page by page, without readahead; a recording of refault record has it".to_owned(),
            ),
            WhatIfChange::Swappiness(_) | WhatIfChange::Swap(_) if !self.has_anon() => {
                Some("does nothing of a trace without anonymous memory".to_owned())
            }
            WhatIfChange::Swap(kind) if *kind != SwapKind::None => Some(format!(
                "{}: devices of a replay answer at once, so that hits are the same with every kind of swap; of a \
                 trace only none is another, and a scenario can have them all",
                kind.name()
            )),
            WhatIfChange::Limit(limit) if limit.pages(self.page_size, self.today.memory_pages) == 0 => {
                Some("is less than a page".to_owned())
            }
            WhatIfChange::Limit(limit) if limit.pages(self.page_size, self.today.memory_pages) == u64::MAX => {
                Some("max: with no limit nothing is reclaimed; write 512M or 150%".to_owned())
            }
            _ => None,
        }
    }

    fn check(&self, machine: &Setup) -> Result<(), Failure> {
        let config = self.replay(machine).config(machine.policy)?;
        Ok(check_acts(&machine.set, [(machine.policy.name(), Some(&config))].into_iter())?)
    }

    fn run(&self, machines: &[Setup], of_threads: Option<u16>, watch: &Watch) -> Result<Vec<Outcome>, Failure> {
        let accesses = self.trace.accesses.len() as u64;
        let progress = watch.accesses(format!("replaying {}", self.trace.name), Some(accesses * machines.len() as u64));
        let machines: Vec<&Setup> = machines.iter().collect();
        let done = on_threads(threads(of_threads), &machines, &|machine| {
            watch.check()?;
            let outcome = self.run_one(machine, watch)?;
            progress.add(accesses);
            Ok(outcome)
        });
        watch.check()?;
        Ok(done.map_err(|e| format!("{}: {e}", self.file))?)
    }

    fn least(&self, metric: Metric) -> f64 {
        let accesses = self.trace.accesses.len() as u64;
        match metric {
            Metric::Misses => FEW.min(accesses / 1000) as f64,
            _ => 0.0,
        }
    }

    fn distance(&self, metric: Metric, today: &Setup, other: &Setup) -> f64 {
        let has_generations = [today, other].iter().any(|of| of.policy == Policy::Mglru);
        let points = if self.is_mapped && has_generations { POINTS_MAPPED } else { POINTS };
        match metric {
            Metric::Misses => points * self.trace.accesses.len() as f64,
            _ => points,
        }
    }

    fn unknown(&self) -> Vec<String> {
        let mut all =
            vec!["readahead and time: a trace is replayed page by page, and devices answer at once".to_owned()];
        if !self.has_anon() {
            all.push("swap, swappiness: the trace has no anonymous memory".to_owned());
        }
        all
    }
}
