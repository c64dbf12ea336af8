//! Limits of a recorded group, tried by replaying it as it is compared with the kernel: with its
//! readahead, its drops, and what the group had besides files.

use super::doubts::{self, Doubt};
use super::mapped::MappedPages;
use super::request::SizeRequest;
use super::search::SizeVerdict;
use super::sizing::{Baseline, Change, Confidence, Figure, Point, Recorded, STANDARD_ERROR, SizedObject, Sizing};
use super::summary::SizeSummary;
use super::target::{Metric, MetricTarget};
use super::{near, states};
use crate::memory_size::{Size as MemorySize, human};
use crate::recording::{self, Compared, Estimate, Interval, LoadedRecording, Settings, WarmUp};
use crate::words::duration;
use crate::{Failure, Watch, on_threads};
use refault_mm::Policy;
use refault_trace::RecordSource;
use std::collections::BTreeMap;
use std::sync::Mutex;

pub(super) const PAGE_SIZE: u64 = 4096;

/// Sizes beside the recorded one that people ask for: in percent of it, and in words.
const BESIDE: [(u64, &str); 3] = [(75, "25 % less memory"), (50, "half of it"), (200, "twice as much")];

/// The name of the column of accesses that a recording leaves open.
const FIRST_TOUCHES: &str = "first_touches";

/// Major faults that loading a program's own files may cause: so few say nothing of the service.
const FEW_FAULTS: u64 = 1000;
/// Share of all misses, one in this many, from which major faults decide the hit rate.
const MANY_FAULTS: u64 = 5;

/// Share of the pages that come in, above which pages brought in by others get a remark.
const OTHERS: f64 = 0.05;

/// A recording, and what it is looked at with.
#[derive(Debug)]
pub(super) struct RecordingSubject<'a> {
    request: &'a SizeRequest,
    watch: Watch,
    pub(super) target: MetricTarget,
    pub(super) loaded: LoadedRecording,
    pub(super) settings: Settings,
    span_s: f64,
    /// Whether the target is a share of accesses whose number depends on the limit.
    pub(super) counts_faults: bool,
    /// Difference between the lab and the kernel under the recorded limit.
    baseline: Option<Baseline>,
    /// Columns in which the lab is not near the kernel.
    pub(super) doubts: Vec<Doubt>,
    /// Comparisons at the sizes that were tried.
    pub(super) tried: Mutex<BTreeMap<u64, Compared>>,
    /// Pages that are mapped, and may be in use.
    pub(super) mapped: MappedPages,
}

/// The smallest size that meets the target with all larger ones that were tried. Sizes that were
/// tried beside the search count, too.
fn verdict_of(points: &[Point], searched: SizeVerdict) -> SizeVerdict {
    match points.iter().rposition(|point| !point.met) {
        Some(failed) => points.get(failed + 1).map_or(SizeVerdict::NotMet, |point| SizeVerdict::Found(point.pages)),
        None => searched,
    }
}

/// Whether many of the misses are faults on mapped files. The smaller its memory, the more of these
/// a program has, and a recording lacks touches of mapped pages.
pub(crate) fn counts_faults(compared: &Compared) -> bool {
    let (faults, all) = (compared.by_mapping.kernel_misses, compared.total.kernel_misses);
    compared.evicted > 0 && faults >= FEW_FAULTS && faults.saturating_mul(MANY_FAULTS) >= all
}

/// Why swap-ins of a recording are not known, and what would tell.
fn swap_ins_unknown(loaded: &LoadedRecording) -> String {
    let seen = match loaded.recording.touches {
        Some(touches) if touches.by.writes_only() => {
            "it has seen writes to memory alone, and a page that is only read \
             looks idle, so that swap-ins would come out many times too few"
        }
        Some(_) => "its touches of memory are samples, of which several in one interval are one",
        None => "it has not seen which memory was touched",
    };
    format!(
        "is not known of this recording: {seen}; read `pswpin` of the group in the size in question, or ask for the \
         hit rate, misses or disk reads of its files"
    )
}

impl<'a> RecordingSubject<'a> {
    /// Reads a recording.
    pub(super) fn read(
        source: &mut dyn RecordSource,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        if request.sampling.is_some() {
            let file = source.name();
            let what = "is a recording, which is replayed with readahead, and samples have none; leave --sample out";
            return Err(format!("--sample: {file} {what}").into());
        }
        RecordingSubject::new(LoadedRecording::read(source)?, request, watch)
    }

    fn new(loaded: LoadedRecording, request: &'a SizeRequest, watch: &Watch) -> Result<Self, Failure> {
        let target = request.target();
        let metric = target.metric();
        if metric.needs_machine() {
            return Err(format!(
                "--target {target}: devices of a replay answer at once, so a recording has no {}; it has {}",
                metric.name(),
                Metric::names(|metric| !metric.needs_machine()),
            )
            .into());
        }
        if matches!(metric, Metric::SwapInsPerAccess | Metric::SwapInsPerS) {
            return Err(format!("--target {target}: {}", swap_ins_unknown(&loaded)).into());
        }
        let mut settings = Settings::of(&loaded.recording, request.policy, request.kernel, false);
        metric.check_counted(settings.policy)?;
        let config = &mut settings.config;
        config.seed = request.seed.unwrap_or(0);
        config.swappiness = request.swappiness.unwrap_or(config.swappiness);
        request.set.iter().for_each(|set| set.apply(config));
        config.check().map_err(|e| format!("--set: {e}; `refault replay --set help` lists what there is"))?;
        request.check_acts(settings.policy, &settings.config)?;
        settings.warm_up = request.warm_up;
        if loaded.measured_ns(settings.warm_up) == 0 && loaded.recording.duration_ns > 0 {
            let seconds = loaded.recording.duration_ns as f64 / 1e9;
            return Err(format!("--warm-up: leaves nothing of the recording, which has {seconds:.1} s").into());
        }
        let mapped = MappedPages::new(loaded.mapped_pages());
        let span_s = (loaded.measured_ns(request.warm_up) as f64 / 1e9).max(1e-9);
        Ok(RecordingSubject {
            request,
            watch: watch.clone(),
            target,
            loaded,
            mapped,
            settings,
            span_s,
            counts_faults: false,
            baseline: None,
            doubts: Vec::new(),
            tried: Mutex::default(),
        })
    }

    /// Tries sizes.
    pub(super) fn run(mut self) -> Result<Sizing, Failure> {
        self.compare_with_kernel()?;
        let footprint = self.loaded.footprint_pages();
        let whole = footprint + footprint / 32 + 64 + self.loaded.besides_files_pages();
        let whole = whole.max(self.had().saturating_mul(2));
        let pages = |size: &MemorySize| size.pages(PAGE_SIZE as u32, footprint);
        let grid = self.request.grid(&pages, whole, u64::MAX, human(u64::MAX))?;
        let (mut points, verdict) = self.request.tried(grid, |sizes| self.probe(sizes))?;
        let recorded = self.recorded()?;
        if let Some(recorded) = &recorded {
            let sizes = recorded.changes.iter().map(|change| change.pages).chain([recorded.pages]);
            let inside: Vec<_> = sizes.filter(|pages| (grid.low..=grid.high).contains(pages)).collect();
            points.extend(inside.iter().copied().zip(self.probe(&inside)?));
        }
        let mut points: Vec<_> = points.into_values().collect();
        self.raise(&mut points);
        let summary = self.request.target.is_none().then(|| SizeSummary::of(&points, recorded.as_ref()));
        Ok(Sizing {
            name: self.loaded.name.clone(),
            group: self.loaded.recording.group.clone().unwrap_or_else(|| "/".to_owned()),
            limit: self.request.limit,
            policy: self.policy_text(),
            seed: self.settings.config.seed,
            scale: 1.0,
            page_size: PAGE_SIZE,
            grid,
            verdict: match self.baseline {
                Some(Baseline { trust: Confidence::Refused, .. }) => SizeVerdict::NotTrusted,
                _ => verdict_of(&points, verdict),
            },
            notes: self.notes(&points),
            points,
            summary,
            recorded,
            rests_on_others: self.rests_on_others(),
            baseline: self.baseline,
            doubted: self.doubts.iter().map(|doubt| doubt.column).collect(),
            sampled: None,
            target: self.target,
        })
    }

    fn policy_text(&self) -> String {
        let readahead = human(u64::from(self.loaded.read_ahead_pages(&self.settings)) * PAGE_SIZE);
        let (policy, kernel) = (self.settings.policy.name(), self.settings.kernel.name());
        let warm_up = match self.settings.warm_up {
            WarmUp::Auto => String::new(),
            WarmUp::Time(_) | WarmUp::Part(_) => {
                let left = self.loaded.measured_ns(self.settings.warm_up);
                format!(", the last {} of {}", duration(left), duration(self.loaded.recording.duration_ns))
            }
        };
        format!("{policy} of Linux {kernel}, readahead {readahead}{warm_up}")
    }

    /// Replays the recording with these sizes.
    fn probe(&self, sizes: &[u64]) -> Result<Vec<Point>, String> {
        let beside: Vec<_> =
            sizes.iter().filter(|_| self.has_states()).flat_map(|&pages| states::beside(pages)).collect();
        self.replay(&[sizes, &beside].concat())?;
        self.replay_in_use(sizes)?;
        let tried = self.tried.lock().map_err(|e| e.to_string())?;
        let point = |&pages: &u64| {
            let mut point = self.with_mapped_in_use(self.point(pages, tried.get(&pages)?));
            if let Some((low, high)) = self.states(pages, &tried) {
                let (least, most) = self.widened((low, low, high));
                let (low, high) = point.bounds.unwrap_or((least, most));
                point.bounds = Some((least.min(low), most.max(high)));
            }
            Some(point)
        };
        Ok(sizes.iter().filter_map(point).collect())
    }

    /// Whether the policy may have two states in a size.
    fn has_states(&self) -> bool {
        self.settings.policy == Policy::Mglru && self.settings.memory_pages.is_some()
    }

    /// The lowest and the highest value next to a size, where it has two states.
    pub(super) fn states(&self, pages: u64, tried: &BTreeMap<u64, Compared>) -> Option<(f64, f64)> {
        if !self.has_states() {
            return None;
        }
        let [below, above] = states::beside(pages);
        let value = |pages| {
            let compared = tried.get(&pages).filter(|compared| !compared.is_out_of_memory)?;
            Some(self.measured(&Estimate::of(compared)).1)
        };
        states::spread([value(below)?, value(pages)?, value(above)?], self.target.metric().grows())
    }

    /// Sees to it that these sizes were tried.
    fn replay(&self, sizes: &[u64]) -> Result<(), String> {
        self.replay_into(&self.tried, sizes, false)
    }

    /// Sees to it that these sizes were tried in one of the readings of mapped pages.
    pub(super) fn replay_into(
        &self,
        tried: &Mutex<BTreeMap<u64, Compared>>,
        sizes: &[u64],
        mapped_in_use: bool,
    ) -> Result<(), String> {
        let mut wanted = sizes.to_vec();
        wanted.retain(|pages| tried.lock().is_ok_and(|tried| !tried.contains_key(pages)));
        let all = on_threads(self.request.threads(), &wanted, &|pages| {
            self.watch.check()?;
            let settings = Settings { memory_pages: Some(pages), mapped_in_use, ..self.settings.clone() };
            recording::run(&self.loaded, &settings).map_err(|e| format!("{}: {e}", self.loaded.name))
        })?;
        tried.lock().map_err(|e| e.to_string())?.extend(wanted.into_iter().zip(all));
        Ok(())
    }

    fn point(&self, pages: u64, compared: &Compared) -> Point {
        if compared.is_out_of_memory {
            // The lab stopped: what is counted is not whole.
            let failed = Some("out of memory");
            return Point { pages, value: None, failed, met: false, bounds: None, beside: Vec::new() };
        }
        let estimate = Estimate::of(compared);
        let measured = self.measured(&estimate);
        let mut bounds = self.widened(measured);
        let error = compared.sampling_error();
        if let Some(error) = error.filter(|_| self.target.metric() == Metric::HitRate) {
            bounds = ((bounds.0 - 2.0 * error).max(0.0), (bounds.1 + 2.0 * error).min(1.0));
        }
        // Where there is no likely value the worse bound must do.
        let value = match (estimate.is_bounds_only, self.target.metric().grows()) {
            (false, _) => measured.1,
            (true, true) => measured.0,
            (true, false) => measured.2,
        };
        let mut beside = vec![
            ("hit_rate", Figure::Share(estimate.hit_rate().1)),
            ("misses", Figure::Count(estimate.misses.best)),
            ("read_bytes", Figure::Bytes(estimate.read_pages.best * PAGE_SIZE)),
            ("reads", Figure::Count(estimate.reads.best)),
            ("refaults", Figure::Count(estimate.refaults.best)),
        ];
        beside.extend(error.map(|error| (STANDARD_ERROR, Figure::Share(error))));
        if estimate.first_touches > 0 {
            beside.push((FIRST_TOUCHES, Figure::Count(estimate.first_touches)));
        }
        Point {
            pages,
            value: Some(value),
            failed: None,
            met: self.target.is_met(self.safe(value)),
            bounds: (bounds.0 != bounds.1).then_some(bounds),
            beside,
        }
    }

    /// Gives sizes with bounds alone the value of the next smaller size, where that is better than
    /// the worse bound: a larger size does what a smaller one does.
    fn raise(&self, points: &mut [Point]) {
        let grows = self.target.metric().grows();
        let is_better = |a: f64, b: f64| if grows { a > b } else { a < b };
        for at in 1..points.len() {
            let (smaller, larger) = points.split_at_mut(at);
            let (before, point) = (&smaller[at - 1], &mut larger[0]);
            let Some(open) = point.beside.iter().find(|(name, _)| *name == FIRST_TOUCHES).copied() else { continue };
            let (Some(best), Some(value), Some((least, most))) = (before.value, point.value, point.bounds) else {
                continue;
            };
            if is_better(best, value) && (least..=most).contains(&best) {
                point.value = Some(best);
                // The smaller size was judged in both readings of mapped files.
                point.met |= before.met;
                point.beside = before.beside.iter().filter(|(name, _)| *name != FIRST_TOUCHES).copied().collect();
                point.beside.push(open);
            }
        }
    }

    /// The metric at the least, most likely and at the most.
    pub(super) fn measured(&self, estimate: &Estimate) -> (f64, f64, f64) {
        let count = |of: Interval, factor: f64| {
            let scaled = |n: u64| n as f64 * factor;
            (scaled(of.low), scaled(of.best), scaled(of.high))
        };
        let (an_access, a_second) = (1.0 / estimate.accesses.max(1) as f64, 1.0 / self.span_s);
        match self.target.metric() {
            Metric::HitRate => estimate.hit_rate(),
            Metric::Misses => count(estimate.misses, 1.0),
            Metric::ReadBytes => count(estimate.read_pages, PAGE_SIZE as f64),
            Metric::ReadBytesPerS => count(estimate.read_pages, PAGE_SIZE as f64 * a_second),
            Metric::ReadsPerS => count(estimate.reads, a_second),
            Metric::RefaultsPerAccess => count(estimate.refaults, an_access),
            Metric::RefaultsPerS => count(estimate.refaults, a_second),
            // Refused before anything is tried.
            Metric::SwapInsPerAccess | Metric::SwapInsPerS => (0.0, 0.0, 0.0),
            Metric::Pressure(..) | Metric::OpsPerS | Metric::Latency(_) => (0.0, 0.0, 0.0),
        }
    }

    /// Bounds that hold also where the lab is as far off as it is under the recorded limit.
    pub(super) fn widened(&self, (least, _, most): (f64, f64, f64)) -> (f64, f64) {
        let Some(Baseline { kernel, lab, .. }) = self.baseline else { return (least, most) };
        if self.target.metric() == Metric::HitRate {
            let off = kernel - lab;
            return ((least + off.min(0.0)).max(0.0), (most + off.max(0.0)).min(1.0));
        }
        let ratio = kernel / lab.max(f64::MIN_POSITIVE);
        (least * ratio.min(1.0), most * ratio.max(1.0))
    }

    /// A value that is judged: as much worse as the kernel is under the recorded limit.
    pub(super) fn safe(&self, value: f64) -> f64 {
        let (least, most) = self.widened((value, value, value));
        if self.target.metric().grows() { least } else { most }
    }

    /// How near the lab is to the kernel under the recorded limit.
    fn compare_with_kernel(&mut self) -> Result<(), String> {
        let pages = self.settings.memory_pages.unwrap_or(u64::MAX);
        self.replay(&[pages])?;
        self.replay_in_use(&[pages])?;
        let tried = self.tried.lock().map_err(|e| e.to_string())?;
        let Some(compared) = tried.get(&pages) else { return Ok(()) };
        self.mapped.compare_with_kernel(pages, compared);
        let doubts = doubts::of(compared, &self.loaded, &self.settings, self.target.metric().name());
        let Some(kernel) = self.kernel_value(compared) else {
            drop(tried);
            self.doubts = doubts;
            return Ok(());
        };
        let lab = self.measured(&Estimate::of(compared)).1;
        let accesses = compared.total.accesses.max(1) as f64;
        let metric = self.target.metric();
        let is_of_accesses = matches!(metric, Metric::HitRate | Metric::RefaultsPerAccess);
        let counts_faults = is_of_accesses && counts_faults(compared);
        let trust = match compared.is_out_of_memory || counts_faults {
            true => Confidence::Refused,
            false => near::trust(metric, kernel, lab, accesses, self.span_s),
        };
        drop(tried);
        self.counts_faults = counts_faults;
        self.doubts = doubts;
        self.baseline = Some(Baseline { pages, kernel, lab, trust });
        Ok(())
    }

    /// The metric, as the recorded kernel had it.
    fn kernel_value(&self, compared: &Compared) -> Option<f64> {
        let total = &compared.total;
        let series = &self.loaded.recording.series;
        let is_whole = self.settings.warm_up == WarmUp::Auto;
        let refaults = || {
            self.loaded.recording.group.as_ref()?;
            let (first, last) = series.ends("workingset_refault_file").filter(|_| is_whole)?;
            Some(last.saturating_sub(first) as f64)
        };
        let reads = &compared.kernel_reads;
        Some(match self.target.metric() {
            Metric::HitRate => 1.0 - total.kernel_misses as f64 / total.accesses.max(1) as f64,
            Metric::Misses => total.kernel_misses as f64,
            Metric::ReadBytes => reads.bytes() as f64,
            Metric::ReadBytesPerS => reads.bytes() as f64 / self.span_s,
            Metric::ReadsPerS => reads.reads as f64 / self.span_s,
            Metric::RefaultsPerAccess => refaults()? / total.accesses.max(1) as f64,
            Metric::RefaultsPerS => refaults()? / self.span_s,
            _ => return None,
        })
    }

    /// Pages that a warm service had under its limit, which may be more than it touches in a
    /// minute: people ask for that much, and for more.
    fn had(&self) -> u64 {
        let start = &self.loaded.start;
        let all = start.pages.len() as u64 + start.stand_ins + self.loaded.besides_files_pages();
        self.settings.memory_pages.filter(|_| start.is_warm).map_or(0, |limit| limit.min(all))
    }

    /// Whether a considerable part of what is in memory is there for others, so that no size is
    /// certain.
    pub(super) fn rests_on_others(&self) -> bool {
        self.loaded.others_part() >= OTHERS
    }

    /// The recorded limit, and what other sizes would change; none: it had no limit.
    fn recorded(&self) -> Result<Option<Recorded>, String> {
        let Some(pages) = self.settings.memory_pages.filter(|&pages| pages > 1) else { return Ok(None) };
        let sizes = BESIDE.map(|(percent, words)| ((u128::from(pages) * u128::from(percent) / 100) as u64, words));
        self.replay(&sizes.iter().map(|size| size.0).chain([pages]).collect::<Vec<_>>())?;
        let tried = self.tried.lock().map_err(|e| e.to_string())?;
        let Some(base) = tried.get(&pages).filter(|base| !base.is_out_of_memory) else { return Ok(None) };
        let change = |(pages, words): (u64, &'static str)| {
            let other = tried.get(&pages)?;
            let is_out_of_memory = other.is_out_of_memory;
            Some(Change {
                pages,
                words,
                misses: Estimate::of(other).misses.best,
                read_bytes: Estimate::of(other).read_pages.best * PAGE_SIZE,
                object: (!is_out_of_memory).then(|| self.object(base, other)).flatten(),
                is_out_of_memory,
            })
        };
        let changes = sizes.into_iter().filter_map(change).collect();
        Ok(Some(Recorded { pages, misses: base.total.lab_misses, read_bytes: base.lab_reads.bytes(), changes }))
    }

    /// The object to which most of a difference in misses is due, with its share of it.
    fn object(&self, base: &Compared, other: &Compared) -> Option<SizedObject> {
        let more = other.total.lab_misses as i64 - base.total.lab_misses as i64;
        let of = |at: usize| (other.objects[at].lab_misses as i64 - base.objects[at].lab_misses as i64) * more.signum();
        let (at, largest) = (0..base.objects.len()).map(|at| (at, of(at))).max_by_key(|&(_, of)| of)?;
        (largest > 0).then(|| SizedObject {
            name: self.loaded.objects[at].name.clone(),
            share: (largest as f64 / more.unsigned_abs() as f64).min(1.0),
        })
    }
}
