//! A recording of a kernel: the machine that was recorded, with its readahead.

use super::answer::MetricTrust;
use super::change::{FileAdvice, Setup, WhatIfChange};
use super::in_use::between;
use super::request::WhatIfRequest;
use super::subject::{FEW, MIN_TTL_IDLE, Measured, Outcome, POINTS, WhatIfSubject};
use crate::memory_size::{Size as MemorySize, human};
use crate::recording::{Compared, Estimate, Interval, LoadedRecording, RecordedMisses, Settings, run};
use crate::settings::{check_acts, kernel_of, policy_of, swappiness_of};
use crate::size::{Confidence, Metric, counts_faults, trust};
use crate::words::{counted, grouped};
use crate::{Failure, Watch, on_threads, threads};
use refault_mm::AccessAdvice;
use refault_trace::{RecordSource, Records};
use std::sync::Mutex;

const PAGE_SIZE: u64 = 4096;

const METRICS: [Metric; 3] = [Metric::Misses, Metric::HitRate, Metric::ReadBytes];

/// Share of the pages that come in, above which pages brought in by others get a remark.
const OTHERS: f64 = 0.05;

/// A recording, and its machine today.
pub(super) struct WhatIfRecording {
    loaded: LoadedRecording,
    today: Setup,
    limit_is: &'static str,
    /// The machine of which the kernel's own figures are, whatever today's is; none: its limit is
    /// not known.
    recorded: Option<Setup>,
    read_ahead_pages: u64,
    /// Whether programs had files mapped.
    has_mapped: bool,
    /// The run of the recorded machine beside the kernel.
    compared: Mutex<Option<Compared>>,
}

impl WhatIfRecording {
    /// Reads a recording.
    pub(super) fn read(
        mut source: Box<dyn RecordSource>,
        request: &WhatIfRequest,
        watch: &Watch,
    ) -> Result<WhatIfRecording, Failure> {
        let kept = Records::read(&mut source)?;
        watch.check()?;
        let loaded = LoadedRecording::read(&mut kept.clone())?;
        let of_trace = [("from-swap", request.from_swap.is_some()), ("compression", request.compression.is_some())];
        if let Some((flag, _)) = of_trace.iter().find(|(_, is_given)| *is_given) {
            let what = "is a recording, which is run as the machine that was recorded; add --page-by-page";
            return Err(format!("--{flag}: {} {what}", loaded.name).into());
        }
        let recording = &loaded.recording;
        let footprint = loaded.footprint_pages();
        let recorded = recording.memory_max.map(|bytes| bytes / PAGE_SIZE).filter(|&pages| pages > 0);
        let besides = loaded.besides_files_pages();
        let is_of_other = request.from_kernel.is_some() || request.from_policy.is_some();
        let (memory_pages, limit_is) = match (&request.memory, recorded) {
            (Some(size), _) => (size.pages(PAGE_SIZE as u32, footprint), "as given"),
            (None, Some(pages)) if is_of_other => (pages, "its limit as recorded"),
            (None, Some(pages)) => (pages, "as recorded"),
            (None, None) => (besides + footprint / 2, "half of its files; it had none, --memory says another"),
        };
        if memory_pages == 0 || memory_pages >= u64::MAX / 2 {
            return Err("--memory: is no limit that a group can have; write 512M or 50%".into());
        }
        let today = Setup {
            kernel: request.from_kernel.unwrap_or(kernel_of(recording)),
            policy: request.from_policy.unwrap_or(policy_of(recording)),
            memory_pages,
            page_size: PAGE_SIZE as u32,
            swappiness: swappiness_of(recording).unwrap_or(60),
            read_ahead: None,
            swap: None,
            advice: None,
            min_ttl_ns: None,
            set: Vec::new(),
            seed: request.seed.unwrap_or(0),
            mapped_in_use: false,
        };
        let recorded = recorded.map(|memory_pages| Setup {
            kernel: kernel_of(recording),
            policy: policy_of(recording),
            memory_pages,
            ..today.clone()
        });
        let settings = Settings::of(recording, None, None, false);
        let read_ahead_pages = loaded.read_ahead_pages(&settings).into();
        let has_mapped = loaded.mapped_pages() > 0;
        let compared = Mutex::default();
        Ok(WhatIfRecording { loaded, today, limit_is, recorded, read_ahead_pages, has_mapped, compared })
    }

    fn settings(&self, machine: &Setup) -> Settings {
        let mut settings = Settings::of(&self.loaded.recording, Some(machine.policy), Some(machine.kernel), false);
        settings.memory_pages = Some(machine.memory_pages);
        settings.read_ahead = machine.read_ahead;
        settings.config.seed = machine.seed;
        settings.mapped_in_use = machine.mapped_in_use;
        machine.set.iter().for_each(|set| set.apply(&mut settings.config));
        if machine.advice == Some(FileAdvice::Random) {
            settings.config.lru.file_advice = AccessAdvice::Random;
        }
        settings
    }

    /// The run of the recorded machine beside the kernel.
    fn with_recorded<R>(&self, of: impl FnOnce(&Compared) -> R) -> Option<R> {
        let compared = self.compared.lock().ok()?;
        compared.as_ref().filter(|compared| !compared.is_out_of_memory).map(of)
    }

    /// Brings runs with mapped pages in use as near to those without as the recorded kernel was.
    fn weigh_in_use(&self, machines: &[Setup], recorded: Option<usize>, outcomes: &mut [Outcome]) {
        let idle_of = |machine: &Setup| place(machines, &Setup { mapped_in_use: false, ..machine.clone() });
        let in_use = machines.iter().enumerate().filter(|(_, machine)| machine.mapped_in_use);
        let pairs: Vec<_> = in_use.filter_map(|(at, machine)| Some((idle_of(machine)?, at))).collect();
        let misses = |outcome: &Outcome| Some(outcome.values.first().copied()??.value);
        let recorded = pairs.iter().find(|(idle, _)| Some(*idle) == recorded).and_then(|&(idle, in_use)| {
            let (idle, in_use) = (misses(&outcomes[idle])?, misses(&outcomes[in_use])?);
            let kernel = self.with_recorded(|compared| (compared.total.kernel_misses, compared.total.accesses))?;
            Some(RecordedMisses { idle, in_use, kernel: kernel.0 as f64, accesses: kernel.1 as f64 })
        });
        let share = recorded.map_or(1.0, RecordedMisses::most_in_use);
        for (idle, in_use) in pairs {
            outcomes[in_use] = between(&outcomes[idle], &outcomes[in_use], share);
        }
    }

    /// Whether faults on mapped files decide what misses.
    fn counts_faults(&self) -> bool {
        self.with_recorded(counts_faults).unwrap_or(false)
    }
}

/// The place of a machine among others.
fn place(machines: &[Setup], machine: &Setup) -> Option<usize> {
    machines.iter().position(|other| other.is_same(machine))
}

fn outcome(compared: &Compared) -> Outcome {
    if compared.is_out_of_memory {
        return Outcome { values: Vec::new(), failed: Some("out of memory"), remark: None };
    }
    let estimate = Estimate::of(compared);
    let (least, likely, most) = estimate.hit_rate();
    let count = |of: Interval, unit: u64| {
        let scaled = |n: u64| (n * unit) as f64;
        Some(Measured { low: scaled(of.low), value: scaled(of.best), high: scaled(of.high) })
    };
    Outcome {
        values: vec![
            count(estimate.misses, 1),
            Some(Measured { low: least, value: likely, high: most }),
            count(estimate.read_pages, PAGE_SIZE),
        ],
        failed: None,
        remark: (estimate.first_touches > 0).then(|| {
            let open = estimate.first_touches as f64 / estimate.accesses.max(1) as f64;
            format!("{:.1} % open", 100.0 * open)
        }),
    }
}

impl WhatIfSubject for WhatIfRecording {
    fn name(&self) -> &str {
        &self.loaded.name
    }

    fn about(&self) -> String {
        let recording = &self.loaded.recording;
        format!(
            "a recording of Linux {}, {} accesses of files ({} touched), readahead {}",
            recording.kernel,
            grouped(self.loaded.accesses),
            human(self.loaded.footprint_pages() * PAGE_SIZE),
            human(self.read_ahead_pages * PAGE_SIZE),
        )
    }

    fn today(&self) -> &Setup {
        &self.today
    }

    fn limit_is(&self) -> &'static str {
        self.limit_is
    }

    fn metrics(&self) -> &[Metric] {
        &METRICS
    }

    fn refuses(&self, change: &WhatIfChange) -> Option<String> {
        match change {
            WhatIfChange::Swappiness(_) | WhatIfChange::Swap(_) => Some(
                "is not known of a recording as a machine, which has touches of files. One that `refault record \
                 --touches 1s` made has those of anonymous memory: add --page-by-page to it"
                    .to_owned(),
            ),
            WhatIfChange::MinTtl(_) => Some(MIN_TTL_IDLE.to_owned()),
            WhatIfChange::Limit(limit) => match limit.pages(PAGE_SIZE as u32, self.today.memory_pages) {
                0 => Some(format!("{change} is less than a page; write 64M or 50%")),
                u64::MAX => Some("max: with no limit nothing is reclaimed; write 512M or 150%".to_owned()),
                _ => None,
            },
            _ => None,
        }
    }

    /// None, a quarter of today's, and four times as much.
    fn read_ahead(&self) -> Vec<MemorySize> {
        let sizes = [0, self.read_ahead_pages / 4, self.read_ahead_pages * 4];
        let mut all: Vec<u64> = sizes.into_iter().filter(|&pages| pages != self.read_ahead_pages).collect();
        all.dedup();
        let size = |pages: &u64| MemorySize::absolute(&human(pages * PAGE_SIZE)).ok();
        all.iter().filter_map(size).collect()
    }

    fn check(&self, machine: &Setup) -> Result<(), Failure> {
        let config = self.settings(machine).config;
        config.check().map_err(|e| format!("--set: {e}; `refault replay --set help` lists what there is"))?;
        Ok(check_acts(&machine.set, [(machine.policy.name(), Some(&config))].into_iter())?)
    }

    fn other_reading(&self, machine: &Setup) -> Option<Setup> {
        self.has_mapped.then(|| Setup { mapped_in_use: true, ..machine.clone() })
    }

    fn run(&self, machines: &[Setup], of_threads: Option<u16>, watch: &Watch) -> Result<Vec<Outcome>, Failure> {
        // The recorded machine is run, too, in both readings: the kernel is beside it.
        let mut all = machines.to_vec();
        let recorded = self.recorded.iter().flat_map(|of| [Some(of.clone()), self.other_reading(of)]).flatten();
        for machine in recorded {
            if place(&all, &machine).is_none() {
                all.push(machine);
            }
        }
        let recorded = self.recorded.as_ref().and_then(|of| place(&all, of));
        let total = self.loaded.accesses * all.len() as u64;
        let progress = watch.accesses(format!("replaying {}", self.loaded.name), Some(total));
        let places: Vec<usize> = (0..all.len()).collect();
        let done = on_threads(threads(of_threads), &places, &|at| {
            watch.check()?;
            let compared = run(&self.loaded, &self.settings(&all[at]))?;
            progress.add(self.loaded.accesses);
            let outcome = outcome(&compared);
            if Some(at) == recorded {
                *self.compared.lock().map_err(|e| e.to_string())? = Some(compared);
            }
            Ok(outcome)
        });
        watch.check()?;
        let mut outcomes = done.map_err(|e| format!("{}: {e}", self.loaded.name))?;
        self.weigh_in_use(&all, recorded, &mut outcomes);
        outcomes.truncate(machines.len());
        Ok(outcomes)
    }

    fn trust(&self, _today: &Outcome) -> Vec<MetricTrust> {
        let of = |compared: &Compared| {
            let accesses = compared.total.accesses.max(1) as f64;
            let rate = |misses: u64| 1.0 - misses as f64 / accesses;
            let estimate = Estimate::of(compared);
            METRICS.map(|metric| {
                let (kernel, lab) = match metric {
                    Metric::Misses => (compared.total.kernel_misses as f64, estimate.misses.best as f64),
                    Metric::HitRate => (rate(compared.total.kernel_misses), estimate.hit_rate().1),
                    _ => (compared.kernel_reads.bytes() as f64, (estimate.read_pages.best * PAGE_SIZE) as f64),
                };
                let trust = match metric == Metric::HitRate && counts_faults(compared) {
                    true => Confidence::Refused,
                    false => trust(metric, kernel, lab, accesses, 1.0),
                };
                MetricTrust { metric, kernel, lab, trust }
            })
        };
        self.with_recorded(of).map_or(Vec::new(), Vec::from)
    }

    fn least(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Misses => FEW.min(self.loaded.accesses / 1000) as f64,
            Metric::ReadBytes => (FEW * PAGE_SIZE) as f64,
            _ => 0.0,
        }
    }

    fn distance(&self, metric: Metric, _today: &Setup, _other: &Setup) -> f64 {
        match metric {
            Metric::Misses => POINTS * self.loaded.accesses as f64,
            Metric::HitRate => POINTS,
            _ => 0.0,
        }
    }

    fn doubts(&self, metric: Metric, changes: &[WhatIfChange]) -> Option<String> {
        let is_of_bits = |change: &WhatIfChange| {
            matches!(
                change,
                WhatIfChange::Kernel(_) | WhatIfChange::Policy(_) | WhatIfChange::Set(_) | WhatIfChange::Advice(_)
            )
        };
        if !self.counts_faults() {
            return None;
        }
        if metric == Metric::HitRate {
            return Some(
                "hit rate: many of the misses are faults on mapped files, and how many faults there are depends on \
                 the limit; misses and disk reads are nearer"
                    .to_owned(),
            );
        }
        changes.iter().any(is_of_bits).then(|| {
            "kernel, policy, settings, advice: many of the misses are faults on mapped files, whose touches in place a \
             recording does not have, and kernels choose by these"
                .to_owned()
        })
    }

    fn unknown(&self) -> Vec<String> {
        let mut all = vec!["swap, swappiness: anonymous memory is not replayed, and keeps its room".to_owned()];
        if self.recorded.is_none() {
            all.push("how near the lab is: no limit was recorded, so that no kernel is beside it".to_owned());
        }
        let lost = self.loaded.recording.lost;
        if lost > 0 {
            all.push(format!("{} that got lost", counted(lost, "event", "events")));
        }
        all.extend(self.loaded.direct_io_in_words());
        if self.loaded.others_part() >= OTHERS {
            all.push(format!(
                "{:.0} % of the pages of these files that came in were brought in by others: the answer holds as \
                 long as they go on as they did",
                100.0 * self.loaded.others_part()
            ));
        }
        all
    }
}
