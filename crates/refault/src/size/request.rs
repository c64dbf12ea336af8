//! A search as users ask for it: every field has the default of the command.

use super::grid::Grid;
use super::search::{Probe, SizeVerdict, search, walk};
use super::target::{Metric, MetricTarget};
use crate::memory_size::Size as MemorySize;
use crate::recording::WarmUp;
use crate::replay::policy::RowPolicy;
use crate::replay::rules::words as rules_in_words;
use crate::replay::sample::SampledBy;
use crate::replay::swap::{Compression, ReplaySwap, SwapSetup};
use crate::settings::{self, Set};
use crate::{Failure, threads};
use refault_lab::scenario::LimitChanges;
use refault_mm::{Config, Kernel, MemcgLimits, Policy};
use refault_trace::{Seen, Via};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// Swappiness of a trace.
const SWAPPINESS: u32 = 60;

/// Request of a search for the smallest limit.
#[derive(Clone, Debug)]
pub struct SizeRequest {
    /// The condition that must hold; none: a summary of the costs of sizes.
    pub target: Option<MetricTarget>,
    /// The path of the group; none: all of a trace or a recording. A scenario needs one.
    pub group: Option<String>,
    /// The limit of the group that is tried.
    pub limit: Limit,
    /// The sizes between which it is looked for; none: up to what the group can use.
    pub range: Option<SizeRange>,
    /// Step that the answer must be exact to; none: 1/64 of the range.
    pub resolution: Option<MemorySize>,
    /// The file of the limits of the groups; `limit` is tried on top of them.
    pub memcg_limits: Option<PathBuf>,
    /// The policy; none: that of a scenario or a recording, of a trace `mglru`.
    pub policy: Option<Policy>,
    /// The kernel whose rules hold; none: that of a scenario or a recording, or the default one.
    pub kernel: Option<Kernel>,
    /// The seed of everything random; none: that of a scenario, or 0.
    pub seed: Option<u64>,
    /// Divisor of sizes, amounts of work and times of a scenario, 1 or more.
    pub scale: f64,
    /// Threads; none: one a core. Two sizes are tried at a time.
    pub threads: Option<u16>,
    /// `memory.max` of all groups of a trace together; none: no limit.
    pub memory: Option<MemorySize>,
    /// Limit of swap of a trace; none: no limit.
    pub swap_max: Option<MemorySize>,
    /// The kind of swap of a trace; none: a device that answers at once, and is not looked at.
    pub swap: Option<ReplaySwap>,
    /// Compression of the pages on zram and zswap; none: lz4 as it was measured.
    pub compression: Option<Compression>,
    /// Preference of anonymous over file pages in reclaim, 0 to 200; none: that of a recording, of
    /// a trace 60.
    pub swappiness: Option<u32>,
    /// How pages of files are touched where a trace that is read does not say.
    pub via: Via,
    /// The start of a recording that is left out of account.
    pub warm_up: WarmUp,
    /// A trace that lacks hits, as of a block device, is sized as it is.
    pub as_page_cache: bool,
    /// Settings of the engine on top, of a trace or a recording.
    pub set: Vec<Set>,
    /// Samples of the pages of a trace in the place of all; none: all.
    pub sampling: Option<SampledBy>,
    /// Names of chosen flags that may do nothing: a flag that does nothing is refused.
    pub flags: Vec<&'static str>,
}

impl Default for SizeRequest {
    fn default() -> SizeRequest {
        SizeRequest {
            target: None,
            group: None,
            limit: Limit::Max,
            range: None,
            resolution: None,
            memcg_limits: None,
            policy: None,
            kernel: None,
            seed: None,
            scale: 1.0,
            threads: None,
            memory: None,
            swap_max: None,
            swap: None,
            compression: None,
            swappiness: None,
            via: Via::Fd,
            warm_up: WarmUp::Auto,
            as_page_cache: false,
            set: Vec::new(),
            sampling: None,
            flags: Vec::new(),
        }
    }
}

impl SizeRequest {
    /// Fails without a target where there is no summary.
    ///
    /// # Errors
    /// The input is a scenario, or samples of a trace.
    pub fn check_summary(&self, name: &str, is_scenario: bool) -> Result<(), String> {
        match self.target {
            Some(_) => Ok(()),
            None if is_scenario => {
                Err(format!("--target: {name} is a scenario: say what must be met, such as p99<5ms"))
            }
            None if self.sampling.is_some() => {
                Err("--sample: a summary is of all pages; give a --target, or leave --sample out".into())
            }
            None => Ok(()),
        }
    }

    /// Fails where samples cannot tell what is asked for.
    ///
    /// # Errors
    /// The target is no hit rate, or the request is of groups.
    pub fn check_samples(&self) -> Result<(), String> {
        let target = self.target();
        if target.metric() != Metric::HitRate {
            return Err(format!("--target {target}: samples estimate hit_rate alone; leave --sample out"));
        }
        let groups = [
            ("--group", self.group.is_some()),
            ("--memcg-limits", self.memcg_limits.is_some()),
            ("--memory", self.memory.is_some()),
            ("--limit", self.limit != Limit::Max),
        ];
        match groups.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(format!("{flag}: the groups of a trace are replayed whole; leave --sample out")),
            None => Ok(()),
        }
    }

    /// Fails where hits are missing in a trace, and it is not said that it is sized all the same.
    ///
    /// # Errors
    /// A trace that lacks hits, or a flag that does nothing.
    pub(super) fn check_seen(&self, name: &str, seen: Option<Seen>) -> Result<(), String> {
        match seen.filter(|seen| seen.lacks_hits()) {
            Some(seen) if !self.as_page_cache => Err(format!(
                "{name}: {}; no size of a page cache follows; --as-page-cache sizes a cache that is asked for these alone",
                seen.note()
            )),
            None if self.as_page_cache => {
                Err(format!("--as-page-cache: is for traces that lack hits, and {name} is not known to; leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it asks for times or groups of accesses, which a trace in memory may not have kept.
    pub fn needs_records(&self) -> bool {
        !self.is_of_all() || self.sampling.is_some() || self.target().metric().is_per_second()
    }

    /// Whether it is of all of a trace, and of nothing but its limit.
    pub(super) fn is_of_all(&self) -> bool {
        self.group.is_none() && self.memcg_limits.is_none() && self.limit == Limit::Max
    }

    /// The target, or one that nobody asked for.
    pub(super) fn target(&self) -> MetricTarget {
        self.target.clone().unwrap_or_else(MetricTarget::none)
    }

    /// Threads that sizes are tried on.
    pub(super) fn threads(&self) -> usize {
        threads(self.threads)
    }

    /// Tries sizes in the order in which a search wants them, or, without a target, on a scale.
    pub(super) fn tried<P: Probe, E>(
        &self,
        grid: Grid,
        probe: impl FnMut(&[u64]) -> Result<Vec<P>, E>,
    ) -> Result<(BTreeMap<u64, P>, SizeVerdict), E> {
        match self.target {
            Some(_) => search(grid, probe),
            None => walk(grid, probe),
        }
    }

    /// The policy of a trace that does not say one.
    pub(super) fn policy_of_trace(&self) -> Policy {
        self.policy.unwrap_or(Policy::Mglru)
    }

    /// The policy of a trace, with rules that are not the default ones.
    pub(super) fn policy_of_trace_text(&self, cfg: &Config) -> String {
        let policy = self.policy_of_trace();
        let of_policy = std::iter::once((RowPolicy::Linux(policy), cfg));
        let rules = rules_in_words((self.kernel.unwrap_or_default(), false), of_policy);
        rules.map_or_else(|| policy.name().to_owned(), |rules| format!("{policy} ({rules})"))
    }

    /// The engine of a trace.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let mut cfg = settings::config(self.kernel, self.policy_of_trace());
        (cfg.swappiness, cfg.seed) = (self.swappiness.unwrap_or(SWAPPINESS), self.seed.unwrap_or(0));
        self.set.iter().for_each(|set| set.apply(&mut cfg));
        self.swap_setup()?.iter().for_each(|swap| swap.apply(&mut cfg));
        cfg.check().map_err(|e| format!("--set: {e}; --set help lists what there is"))?;
        self.check_acts(self.policy_of_trace(), &cfg)?;
        Ok(cfg)
    }

    /// Fails on a flag or a setting that does nothing under the policy.
    pub(super) fn check_acts(&self, policy: Policy, cfg: &Config) -> Result<(), String> {
        let run = std::iter::once((policy.name(), Some(cfg)));
        let seed = self.seed.map(|_| "seed");
        let flags: Vec<_> = self.flags.iter().copied().chain(seed).collect();
        settings::check_on_policies(&flags, run.clone())?;
        settings::check_acts(&self.set, run)
    }

    /// The kind of swap of a trace, and its compression.
    pub(super) fn swap_setup(&self) -> Result<Option<SwapSetup>, String> {
        let setup = SwapSetup::of(self.swap.as_ref(), self.compression.as_ref(), &self.set)?;
        match (&setup, self.is_of_all() && self.memory.is_none(), &self.sampling) {
            (Some(setup), false, _) => Err(format!("--swap {}: is of a whole trace; leave --group out", setup.swap)),
            (Some(setup), _, Some(_)) => {
                Err(format!("--swap {}: the pool of a sample is not that of the whole; leave --sample out", setup.swap))
            }
            _ => Ok(setup),
        }
    }

    /// The limit of swap of a trace, in pages.
    pub(super) fn swap_max_pages(&self, page_size: u32, footprint_pages: u64) -> u64 {
        self.swap_max.as_ref().map_or(u64::MAX, |size| size.pages(page_size, footprint_pages))
    }

    /// Sizes to try: the ones asked for, or sizes up to `whole`, the most that the group can use,
    /// but at most `most`, all there is (`most_text` for people). `pages` converts a size to pages.
    pub(super) fn grid(
        &self,
        pages: &dyn Fn(&MemorySize) -> u64,
        whole: u64,
        most: u64,
        most_text: String,
    ) -> Result<Grid, Failure> {
        let step = match &self.resolution {
            Some(size) if size.is_max() => return Err("--resolution max: is not a size; write 1M".into()),
            Some(size) => match pages(size) {
                0 => return Err(format!("--resolution {size}: is less than a page; write 1p or more").into()),
                pages => Some(pages),
            },
            None => None,
        };
        let Some(range) = &self.range else {
            // Ends that are as round as the sizes between them.
            let high = whole.min(most).max(2);
            let round = step.unwrap_or(Grid::new(0, high, None).step);
            let high = high.next_multiple_of(round).min(most).max(2);
            let low = match self.limit.protects() {
                true => 0,
                false => (high / 32).next_multiple_of(round).max(1).min(high - 1),
            };
            return Ok(Grid::new(low, high, step));
        };
        let (low, high) = (pages(&range.low), pages(&range.high));
        let shown = format!("--range {}..{}", range.low, range.high);
        if range.low.is_max() || range.high.is_max() {
            return Err(format!("{shown}: max is no size; write 64M..1G").into());
        }
        if low >= high {
            return Err(format!("{shown}: is empty; write the smaller size first").into());
        }
        if high > most {
            return Err(format!("{shown}: {} is more than there is, {most_text}", range.high).into());
        }
        if low == 0 && !self.limit.protects() {
            return Err(
                format!("{shown}: a {} of nothing holds nothing; begin with 1p or more", self.limit.file()).into()
            );
        }
        Ok(Grid::new(low, high, step))
    }
}

/// A limit of a memory cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing is charged above it.
    Max,
    /// Above it tasks reclaim, and sleep if that does not help.
    High,
    /// Below it the group is reclaimed only if other groups have nothing to give.
    Low,
    /// Not reclaimed below it.
    Min,
}

impl Limit {
    /// The name of its file in cgroupfs.
    pub fn file(self) -> &'static str {
        match self {
            Limit::Max => "memory.max",
            Limit::High => "memory.high",
            Limit::Low => "memory.low",
            Limit::Min => "memory.min",
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.file().trim_start_matches("memory.")
    }

    /// Whether it protects the group from others rather than others from it.
    pub(super) fn protects(self) -> bool {
        matches!(self, Limit::Low | Limit::Min)
    }

    /// Changed value of this limit, if there is one.
    pub(super) fn get(self, changes: &LimitChanges) -> Option<u64> {
        match self {
            Limit::Max => changes.max,
            Limit::High => changes.high,
            Limit::Low => changes.low,
            Limit::Min => changes.min,
        }
    }

    /// Sets it.
    pub(super) fn set(self, limits: &mut MemcgLimits, pages: u64) {
        match self {
            Limit::Max => limits.max = pages,
            Limit::High => limits.high = pages,
            Limit::Low => limits.low = pages,
            Limit::Min => limits.min = pages,
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        let all = [Limit::Max, Limit::High, Limit::Low, Limit::Min];
        let names = || all.map(Limit::name).join(", ");
        all.into_iter().find(|limit| limit.name() == text).ok_or_else(|| format!("one of {}", names()))
    }
}

/// Reads the name of a policy that has groups.
///
/// # Errors
/// There is no such policy, or it knows no groups.
pub fn policy_of_groups(name: &str) -> Result<Policy, String> {
    let known = || Policy::ALL.map(Policy::name).join(", ");
    match RowPolicy::all().find(|policy| policy.name() == name) {
        Some(RowPolicy::Linux(policy)) => Ok(policy),
        Some(RowPolicy::Opt) => Err(format!("opt knows no groups; one of {} does", known())),
        None => Err(format!("unknown policy {name:?}; one of {}", known())),
    }
}

/// Two sizes, the smallest and the largest that may be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRange {
    /// The smallest.
    pub low: MemorySize,
    /// The largest.
    pub high: MemorySize,
}

impl SizeRange {
    /// Reads a size of a range or of a resolution.
    ///
    /// # Errors
    /// The text is no size.
    pub fn size(text: &str) -> Result<MemorySize, String> {
        MemorySize::parse(text, "the machine's memory, or of the footprint of a trace")
    }
}

impl FromStr for SizeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeRange, String> {
        let (low, high) = text.split_once("..").ok_or_else(|| format!("{text:?} is not a range; write 64M..1G"))?;
        Ok(SizeRange { low: SizeRange::size(low)?, high: SizeRange::size(high)? })
    }
}
