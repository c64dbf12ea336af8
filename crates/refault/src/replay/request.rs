//! Replay of a trace as users ask for it: policies by name, sizes of memory as people write them,
//! settings by key. Every field has the default of the command.

use super::plan::{CellResult, Plan, PlugIn};
use super::policy::RowPolicy;
use super::swap::{Compression, ReplaySwap, SwapSetup};
use crate::memory_size::{Size, human};
use crate::settings::{self, Set, Thp};
use crate::watch::Watch;
use crate::words::grouped;
use crate::{Failure, threads};
use refault_mm::{Config, HugeAdvice, Kernel, Lru, Policy};
use refault_trace::Trace;

/// Sizes of a curve, in percent of the footprint.
const CURVE_PERCENT: [u8; 16] = [2, 4, 6, 8, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100];

/// Sizes where none is given, in percent of the footprint.
const USUAL_PERCENT: [u8; 3] = [10, 25, 50];

/// Sizes that a curve is drawn through when none are given.
pub fn curve_sizes() -> Vec<Size> {
    CURVE_PERCENT.map(|percent| Size::percent(f64::from(percent))).to_vec()
}

/// Sizes of a table when none are given.
pub fn usual_sizes() -> Vec<Size> {
    USUAL_PERCENT.map(|percent| Size::percent(f64::from(percent))).to_vec()
}

/// Request of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Policies; a row each for every size.
    pub policies: Vec<RowPolicy>,
    /// Sizes of memory; percent are of the footprint.
    pub memory: Vec<Size>,
    /// Permit sizes above the footprint, where every policy holds everything.
    pub beyond_footprint: bool,
    /// Permit no limit at all: only groups of the trace have limits.
    pub unlimited: bool,
    /// Limit of swap for anonymous memory; none: no limit.
    pub swap_max: Option<Size>,
    /// The kind of swap; none: a device of any size that answers at once, and is not looked at.
    pub swap: Option<ReplaySwap>,
    /// Compression of the pages on zram and zswap; none: lz4 as it was measured.
    pub compression: Option<Compression>,
    /// The kernel whose rules hold; none: the default one.
    pub kernel: Option<Kernel>,
    /// Preference of anonymous over file pages in reclaim, 0 to 200.
    pub swappiness: u32,
    /// Settings of the engine on top.
    pub set: Vec<Set>,
    /// Sizes of anonymous folios.
    pub thp: Vec<Thp>,
    /// Seed of the engine.
    pub seed: u64,
    /// Equal windows to count misses in.
    pub windows: Option<usize>,
    /// Keep a bit an access.
    pub bits: bool,
    /// Keep the generations at the end.
    pub lru_gen: bool,
    /// Show the clusters of the swap devices at the end.
    pub swap_map: bool,
    /// Threads; none: one a core.
    pub threads: Option<u16>,
    /// Progress and cancel.
    pub watch: Watch,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            policies: vec![RowPolicy::Linux(Policy::Lru), RowPolicy::Linux(Policy::Mglru), RowPolicy::Opt],
            memory: usual_sizes(),
            beyond_footprint: false,
            unlimited: false,
            swap_max: None,
            swap: None,
            compression: None,
            kernel: None,
            swappiness: 60,
            set: Vec::new(),
            thp: Vec::new(),
            seed: 0,
            windows: None,
            bits: false,
            lru_gen: false,
            swap_map: false,
            threads: None,
            watch: Watch::default(),
        }
    }
}

impl Replay {
    /// Replays a trace; `page_size` is in bytes. Rows are by size, then by policy.
    ///
    /// # Errors
    /// A size or a setting that is impossible, or cancel.
    pub fn run(&self, trace: &Trace, page_size: u32) -> Result<Vec<CellResult>, Failure> {
        let configs = self.configs()?;
        let sizes = self.sizes(&trace.name, page_size, u64::from(trace.footprint_pages()))?;
        Ok(self.plan(trace, page_size, sizes, &configs, &[]).run()?)
    }

    /// The kind of swap and the compression.
    ///
    /// # Errors
    /// They contradict each other, or a setting.
    pub fn swap_setup(&self) -> Result<Option<SwapSetup>, String> {
        SwapSetup::of(self.swap.as_ref(), self.compression.as_ref(), &self.set)
    }

    /// The configuration of a policy.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn config(&self, policy: Policy) -> Result<Config, Failure> {
        let mut cfg = settings::config(self.kernel, policy);
        (cfg.swappiness, cfg.seed) = (self.swappiness, self.seed);
        self.set.iter().for_each(|set| set.apply(&mut cfg));
        self.thp.iter().for_each(|thp| thp.apply(&mut cfg));
        self.swap_setup()?.iter().for_each(|swap| swap.apply(&mut cfg));
        cfg.check().map_err(|e| format!("--set: {e}; --set help lists what there is"))?;
        if let (false, Err(e)) = (self.thp.is_empty(), cfg.thp.check_acts()) {
            let all: Vec<_> = self.thp.iter().map(ToString::to_string).collect();
            return Err(format!("--thp {}: {e}", all.join(",")).into());
        }
        if !self.thp.is_empty() && cfg.thp.orders(HugeAdvice::None) == 0 {
            let all: Vec<_> = self.thp.iter().map(ToString::to_string).collect();
            let what = "does nothing, for no memory of a trace is madvised; write 64k=always, or enabled=always for 2m";
            return Err(format!("--thp {}: {what}", all.join(",")).into());
        }
        Ok(cfg)
    }

    /// The policies; a policy that the engine runs has a configuration.
    ///
    /// # Errors
    /// Settings that contradict each other, or do nothing under any of the policies.
    pub fn configs(&self) -> Result<Vec<(RowPolicy, Option<Config>)>, Failure> {
        let config = |&policy: &RowPolicy| match policy {
            RowPolicy::Linux(linux) => Ok((policy, Some(self.config(linux)?))),
            RowPolicy::Opt => Ok((policy, None)),
        };
        let all: Vec<_> = self.policies.iter().map(config).collect::<Result<_, Failure>>()?;
        if !all.is_empty() {
            settings::check_acts(&self.set, all.iter().map(|(policy, cfg)| (policy.name(), cfg.as_ref())))?;
        }
        Ok(all)
    }

    /// The sizes in pages, each once, for a trace that touches `footprint` pages.
    ///
    /// # Errors
    /// A size of no page, or one in which nothing would be reclaimed.
    pub fn sizes(&self, trace: &str, page_size: u32, footprint: u64) -> Result<Vec<u64>, Failure> {
        self.swap_setup()?.map_or(Ok(()), |swap| swap.check_page_size(page_size))?;
        let mut sizes = Vec::new();
        for size in &self.memory {
            let pages = self.size(size, trace, page_size, footprint)?;
            if !sizes.contains(&pages) {
                sizes.push(pages);
            }
        }
        Ok(sizes)
    }

    fn size(&self, size: &Size, trace: &str, page_size: u32, footprint: u64) -> Result<u64, String> {
        let pages = size.pages(page_size, footprint);
        if pages == 0 {
            return Err(format!("--memory {size}: is less than one page of {page_size} bytes; give at least 1p"));
        }
        if size.is_max() {
            let what = "with no limit nothing is reclaimed; only groups have limits of their own, with --memcg-column";
            return if self.unlimited { Ok(pages) } else { Err(format!("--memory max: {what}")) };
        }
        if (pages > footprint || size.is_beyond_all()) && !self.beyond_footprint {
            let bytes = footprint * u64::from(page_size);
            return Err(format!(
                "--memory {size}: {} pages are more than the footprint of {trace} ({} pages, {} bytes, {}), so next \
                 to nothing would be reclaimed; give at most 100%, or --beyond-footprint to replay it all the same",
                grouped(pages),
                grouped(footprint),
                grouped(bytes),
                human(bytes)
            ));
        }
        Ok(pages)
    }

    /// The plan of these sizes and configurations.
    pub fn plan<'a>(
        &self,
        trace: &'a Trace,
        page_size: u32,
        sizes: Vec<u64>,
        policies: &'a [(RowPolicy, Option<Config>)],
        plug_ins: &'a [(&'a PlugIn, Config)],
    ) -> Plan<'a> {
        let footprint = u64::from(trace.footprint_pages());
        Plan {
            trace,
            accesses: trace.accesses.len() as u64,
            page_size,
            sizes,
            policies,
            plug_ins,
            swap_max_pages: self.swap_max.as_ref().map_or(u64::MAX, |size| size.pages(page_size, footprint)),
            // Contradictions were refused where the configurations were made.
            swap: self.swap_setup().unwrap_or_default(),
            kernel: self.kernel.unwrap_or_default(),
            seed: self.seed,
            windows: self.windows,
            bits: self.bits,
            lru_gen: self.lru_gen,
            swap_map: self.swap_map,
            threads: threads(self.threads),
            watch: self.watch.clone(),
        }
    }

    /// Whether a replay asks for the times of a trace: only generations show them.
    pub fn wants_time(&self, policies: &[(RowPolicy, Option<Config>)]) -> bool {
        self.lru_gen && policies.iter().filter_map(|(_, cfg)| cfg.as_ref()).any(|cfg| cfg.lru.kind == Lru::MultiGen)
    }
}
