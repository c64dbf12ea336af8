//! Limits of a recorded group, tried by replaying it as `refault verify` does: with its readahead,
//! its drops, and what the group had besides files.

use super::args::SizeArgs;
use super::report::{Change, Figure, Object, Point, Recorded, Report};
use super::search::{Verdict, search};
use super::target::Metric;
use crate::flags;
use crate::flags::recorded;
use crate::flags::size::{Size, human};
use crate::recording::{self, Compared, Loaded, Settings};
use crate::replay::groups::on_threads;
use crate::{Failure, Given};
use refault_trace::RecordSource;
use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE_SIZE: u64 = 4096;

/// Flags of traces that a recording answers itself.
const ANSWERED: [&str; 3] = ["via", "memory", "swap-max"];

/// Sizes beside the recorded one, of which people ask: percent of it, and words for them.
const BESIDE: [(u64, &str); 3] = [(75, "25 % less memory"), (50, "half of it"), (200, "twice as much")];

/// A recording, and what it is looked at with.
struct Subject<'a> {
    args: &'a SizeArgs,
    loaded: Loaded,
    settings: Settings,
    span_s: f64,
    /// What came of the sizes that were tried.
    tried: Mutex<BTreeMap<u64, Compared>>,
}

pub(super) fn run(args: &SizeArgs, given: &Given, source: &mut dyn RecordSource) -> Result<Report, Failure> {
    args.refuse_foreign(given, &ANSWERED, "a trace", "a recording, which says it itself")?;
    let subject = Subject::new(args, given, Loaded::read(source)?)?;
    recorded::note_cut(Some(&subject.loaded.recording), subject.loaded.name.as_ref());
    recorded::note_touches(Some(&subject.loaded.recording), subject.loaded.name.as_ref());
    recorded::note_files_only(&subject.loaded.recording, subject.loaded.name.as_ref());
    let footprint = subject.loaded.footprint_pages();
    let whole = footprint + footprint / 32 + 64 + subject.loaded.besides_files_pages();
    let pages = |size: &Size| size.pages(PAGE_SIZE as u32, footprint);
    let grid = args.grid(&pages, whole, u64::MAX, human(u64::MAX))?;
    let (mut points, verdict) = search(grid, |sizes| subject.probe(sizes))?;
    let recorded = subject.recorded()?;
    if let Some(recorded) = &recorded {
        let sizes = recorded.changes.iter().map(|change| change.pages).chain([recorded.pages]);
        let inside: Vec<_> = sizes.filter(|pages| (grid.low..=grid.high).contains(pages)).collect();
        points.extend(inside.iter().copied().zip(subject.probe(&inside)?));
    }
    let points: Vec<_> = points.into_values().collect();
    Ok(Report {
        name: subject.loaded.name.clone(),
        group: subject.loaded.recording.group.clone().unwrap_or_else(|| "/".to_owned()),
        limit: args.limit.file(),
        target: args.target.clone(),
        policy: subject.policy_text(),
        seed: subject.settings.config.seed,
        scale: 1.0,
        page_size: PAGE_SIZE,
        grid,
        verdict: verdict_of(&points, verdict),
        points,
        recorded,
        sampled: None,
    })
}

/// The smallest size above which nothing that was tried fails; sizes beside those of the search may
/// be nearer to it.
fn verdict_of(points: &[Point], searched: Verdict) -> Verdict {
    match points.iter().rposition(|point| !point.met) {
        Some(failed) => points.get(failed + 1).map_or(Verdict::NotMet, |point| Verdict::Found(point.pages)),
        None => searched,
    }
}

impl<'a> Subject<'a> {
    fn new(args: &'a SizeArgs, given: &Given, loaded: Loaded) -> Result<Subject<'a>, Failure> {
        let metric = args.target.metric();
        if metric.needs_machine() {
            return Err(format!(
                "--target {}: devices of a replay answer at once, so a recording has no {}; it has {}",
                args.target,
                metric.name(),
                Metric::names(|metric| !metric.needs_machine()),
            )
            .into());
        }
        let mut settings = Settings::of(&loaded.recording, args.policy.map(|policy| policy.0), args.kernel, false);
        let config = &mut settings.config;
        config.seed = args.seed.unwrap_or(0);
        if given.has("swappiness") {
            config.swappiness = args.trace.swappiness;
        }
        args.trace.set.iter().for_each(|set| set.apply(config));
        config.check().map_err(|e| format!("--set: {e}; `refault replay --set help` lists what there is"))?;
        let span_s = (loaded.recording.duration_ns as f64 / 1e9).max(1e-9);
        Ok(Subject { args, loaded, settings, span_s, tried: Mutex::default() })
    }

    fn policy_text(&self) -> String {
        let readahead = human(u64::from(self.settings.config.readahead.file_pages) * PAGE_SIZE);
        let (policy, kernel) = (self.settings.policy.name(), self.settings.kernel.name());
        format!("{policy} of Linux {kernel}, readahead {readahead}")
    }

    /// Replays the recording with these sizes.
    fn probe(&self, sizes: &[u64]) -> Result<Vec<Point>, String> {
        self.replay(sizes)?;
        let tried = self.tried.lock().map_err(|e| e.to_string())?;
        Ok(sizes.iter().filter_map(|pages| Some(self.point(*pages, tried.get(pages)?))).collect())
    }

    /// Sees to it that these sizes were tried.
    fn replay(&self, sizes: &[u64]) -> Result<(), String> {
        let mut wanted = sizes.to_vec();
        wanted.retain(|pages| self.tried.lock().is_ok_and(|tried| !tried.contains_key(pages)));
        let all = on_threads(flags::threads(self.args.threads), &wanted, &|pages| {
            let settings = Settings { memory_pages: Some(pages), ..self.settings.clone() };
            recording::run(&self.loaded, &settings).map_err(|e| format!("{}: {e}", self.loaded.name))
        })?;
        self.tried.lock().map_err(|e| e.to_string())?.extend(wanted.into_iter().zip(all));
        Ok(())
    }

    fn point(&self, pages: u64, compared: &Compared) -> Point {
        let total = &compared.total;
        let count = |name: &str| compared.ours.get(name).copied().unwrap_or(0);
        let refaults = count("workingset_refault_file") + count("workingset_refault_anon");
        let swap_ins = count("pswpin");
        let an_access = |n: u64| n as f64 / total.accesses.max(1) as f64;
        let reads = &compared.lab_reads;
        let value = match self.args.target.metric() {
            // The lab stopped: what is counted is not whole.
            _ if compared.is_out_of_memory => None,
            Metric::Misses => Some(total.lab_misses as f64),
            Metric::ReadBytes => Some(reads.bytes() as f64),
            Metric::ReadBytesPerS => Some(reads.bytes() as f64 / self.span_s),
            Metric::ReadsPerS => Some(reads.reads as f64 / self.span_s),
            Metric::HitRate => Some(an_access(total.accesses - total.lab_misses)),
            Metric::RefaultsPerAccess => Some(an_access(refaults)),
            Metric::SwapInsPerAccess => Some(an_access(swap_ins)),
            Metric::RefaultsPerS => Some(refaults as f64 / self.span_s),
            Metric::SwapInsPerS => Some(swap_ins as f64 / self.span_s),
            Metric::Pressure(..) | Metric::OpsPerS | Metric::Latency(_) => None,
        };
        let failed = compared.is_out_of_memory.then_some("out of memory");
        let met = failed.is_none() && value.is_some_and(|value| self.args.target.is_met(value));
        let beside = vec![
            ("hit_rate", Figure::Share(an_access(total.accesses - total.lab_misses))),
            ("misses", Figure::Count(total.lab_misses)),
            ("read_bytes", Figure::Bytes(reads.bytes())),
            ("reads", Figure::Count(reads.reads)),
            ("refaults", Figure::Count(refaults)),
        ];
        Point { pages, value, failed, met, beside: if failed.is_some() { Vec::new() } else { beside } }
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
                misses: other.total.lab_misses,
                read_bytes: other.lab_reads.bytes(),
                object: (!is_out_of_memory).then(|| self.object(base, other)).flatten(),
                is_out_of_memory,
            })
        };
        let changes = sizes.into_iter().filter_map(change).collect();
        Ok(Some(Recorded { pages, misses: base.total.lab_misses, read_bytes: base.lab_reads.bytes(), changes }))
    }

    /// The object to which most of a difference in misses is due, with its share of it.
    fn object(&self, base: &Compared, other: &Compared) -> Option<Object> {
        let more = other.total.lab_misses as i64 - base.total.lab_misses as i64;
        let of = |at: usize| (other.objects[at].lab_misses as i64 - base.objects[at].lab_misses as i64) * more.signum();
        let (at, largest) = (0..base.objects.len()).map(|at| (at, of(at))).max_by_key(|&(_, of)| of)?;
        (largest > 0).then(|| Object {
            name: self.loaded.objects[at].name.clone(),
            share: (largest as f64 / more.unsigned_abs() as f64).min(1.0),
        })
    }
}
