//! A trace: page by page, without devices.

use super::change::{Setup, WhatIfChange};
use super::request::WhatIfRequest;
use super::subject::{FEW, MIN_TTL_IDLE, Measured, Outcome, POINTS, WhatIfSubject};
use crate::memory_size::human;
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::swap::{Compression, ReplaySwap, SwapFigures, SwapKind, SwapSetup};
use crate::replay::{Plan, Replay, Row};
use crate::settings::{check_acts, kernel_of, policy_of, swappiness_of};
use crate::size::Metric;
use crate::words::grouped;
use crate::{Failure, Watch, on_threads, threads};
use refault_mm::{Counter, Policy};
use refault_trace::{LoadOptions, ObjectKind, RecordSource, Recording, Seen, Trace};

/// Today's limit where none is known, as a part of what is touched.
const HALF: u64 = 2;

/// Distance of the lab from kernels in hits of all accesses where multi-gen LRU has mapped files
/// (docs/measurements/real-kernels.md).
const POINTS_MAPPED: f64 = 0.02;

/// Reason why swap does nothing.
const NO_ANON: &str = "does nothing of a trace without anonymous memory";

/// Part of the accesses, one in this many, from which mapped files decide.
const MANY_MAPPED: u64 = 20;

/// A trace, and its machine today.
pub(super) struct WhatIfTrace {
    file: String,
    trace: Trace,
    page_size: u32,
    today: Setup,
    limit_is: &'static str,
    /// Accesses that it has, and the recording that it is.
    seen: Option<Seen>,
    recording: Option<Recording>,
    compression: Option<Compression>,
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
        let (file, header) = (source.name().to_owned(), source.header());
        let (page_size, seen, recording) = (header.page_size, header.seen, header.recording.clone());
        let options = LoadOptions { default_via: request.via, ..LoadOptions::default() };
        let trace = Trace::load(&mut Clocked::new(source, None, watch), &options)?;
        let footprint = u64::from(trace.footprint_pages());
        let recorded = recording.as_ref().and_then(|of| of.memory_max).map(|bytes| bytes / u64::from(page_size));
        let (memory_pages, limit_is) = match (&request.memory, recorded.filter(|pages| (1..=footprint).contains(pages)))
        {
            (Some(size), _) => (size.pages(page_size, footprint), "as given"),
            (None, Some(pages)) => (pages, "as recorded"),
            (None, None) => (footprint / HALF, "half of what it touches; --memory says another"),
        };
        if memory_pages == 0 || memory_pages >= u64::MAX / 2 {
            let given = request.memory.as_ref().map_or(String::new(), ToString::to_string);
            return Err(format!("--memory {given}: is no limit that a trace can have; write 512M or 50%").into());
        }
        let has_anon = trace.objects.iter().any(|of| of.kind == ObjectKind::Anon && !of.indices.is_empty());
        let recorded = recording.as_ref();
        let today = Setup {
            kernel: request.from_kernel.or(recorded.map(kernel_of)).unwrap_or_default(),
            policy: request.from_policy.or(recorded.map(policy_of)).unwrap_or(Policy::Mglru),
            memory_pages,
            page_size,
            swappiness: recorded.and_then(swappiness_of).unwrap_or(60),
            read_ahead: None,
            swap: None,
            advice: None,
            min_ttl_ns: None,
            set: Vec::new(),
            seed: request.seed.unwrap_or(0),
            mapped_in_use: false,
        };
        let mut metrics = vec![Metric::Misses, Metric::HitRate];
        metrics.extend(has_anon.then_some(Metric::SwapInsPerAccess));
        let accesses = trace.accesses.len() as u64;
        let mapped = if trace.has_files() { trace.accesses.iter().filter(|access| access.is_map()).count() } else { 0 };
        let is_mapped = mapped as u64 * MANY_MAPPED >= accesses && mapped > 0;
        let compression = request.compression.clone();
        let mut read =
            WhatIfTrace { file, trace, page_size, today, limit_is, seen, recording, compression, metrics, is_mapped };
        read.today.swap = read.todays_swap(request)?;
        let today = read.today.swap.iter();
        let compresses = !request.has_changes() || today.chain(&request.swap).any(|swap| swap.kind.compresses());
        if request.compression.is_some() && !(compresses && has_anon) {
            return Err("--compression: does nothing without zram or zswap; name one in --swap or --from-swap".into());
        }
        Ok(read)
    }

    /// Today's swap: zram of any size, where nothing else is said and it is known.
    fn todays_swap(&self, request: &WhatIfRequest) -> Result<Option<ReplaySwap>, Failure> {
        if let Some(swap) = &request.from_swap {
            let why = self.refuses_swap(swap);
            return why.map_or(Ok(Some(swap.clone())), |why| Err(format!("--from-swap: {why}").into()));
        }
        let zram = ReplaySwap::from(SwapKind::Zram);
        let is_said = SwapSetup::of(Some(&zram), None, &request.set).is_err();
        Ok(Some(zram).filter(|zram| !is_said && self.refuses_swap(zram).is_none()))
    }

    /// The reason why a kind of swap is not known; none: it is.
    fn refuses_swap(&self, swap: &ReplaySwap) -> Option<String> {
        if !self.has_anon() {
            return Some(NO_ANON.to_owned());
        }
        let setup = SwapSetup { swap: swap.clone(), compression: self.compression.clone().unwrap_or_default() };
        let known = setup.check_touches(&self.file, self.seen, self.recording.as_ref());
        known.and_then(|()| setup.check_page_size(self.page_size)).err()
    }

    fn has_anon(&self) -> bool {
        self.metrics.contains(&Metric::SwapInsPerAccess)
    }

    fn replay(&self, machine: &Setup) -> Replay {
        let compresses = machine.swap.as_ref().is_some_and(|swap| swap.kind.compresses());
        Replay {
            policies: vec![RowPolicy::Linux(machine.policy)],
            kernel: Some(machine.kernel),
            swappiness: machine.swappiness,
            swap: machine.swap.clone(),
            compression: self.compression.clone().filter(|_| compresses),
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
        let rows = Plan { threads: 1, watch: watch.quiet(), ..plan }.run()?;
        let Some((row, _)) = rows.first() else { return Ok(Outcome::default()) };
        Ok(self.outcome(row))
    }

    fn outcome(&self, row: &Row) -> Outcome {
        let accesses = row.accesses.max(1) as f64;
        let counted = || row.count(&[Counter::Pswpin]).unwrap_or(0);
        let swap_ins = row.swap.as_ref().map_or_else(counted, SwapFigures::swap_ins) as f64;
        let value = |metric: &Metric| {
            Some(Measured::exact(match metric {
                Metric::Misses => row.misses as f64,
                Metric::HitRate => row.hit_rate(),
                Metric::SwapInsPerAccess => swap_ins / accesses,
                _ => return None,
            }))
        };
        let failed = row.oom_at.map(|_| "out of memory");
        let words = row.swap.as_ref().map(SwapFigures::in_words);
        let remark = words.filter(|words| !words.is_empty() && failed.is_none());
        Outcome { values: self.metrics.iter().map(value).collect(), failed, remark }
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
        self.limit_is
    }

    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn refuses(&self, change: &WhatIfChange) -> Option<String> {
        match change {
            WhatIfChange::ReadAhead(_) => Some(
                "a trace is replayed page by page, without readahead; a recording of refault record has it".to_owned(),
            ),
            WhatIfChange::Advice(_) => Some(
                "a trace is replayed page by page, without readahead; a recording of refault record has it, and --set \
                 advice=random is the rest"
                    .to_owned(),
            ),
            WhatIfChange::MinTtl(_) => Some(MIN_TTL_IDLE.to_owned()),
            WhatIfChange::Swappiness(_) if !self.has_anon() => Some(NO_ANON.to_owned()),
            WhatIfChange::Swap(swap) if self.today.swap.as_ref() == Some(swap) => {
                Some(format!("{swap} is what it has; --from-swap says another"))
            }
            WhatIfChange::Swap(swap) => self.refuses_swap(swap),
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
        } else if self.compression.is_none() && self.today.swap.is_some() {
            all.push("what pages shrink to: 1/2.2 is taken for it; --compression says another".to_owned());
        }
        all
    }
}
