//! The result of one (trace, size, policy).

use super::cell::Cell;
use super::policy::RowPolicy;
use super::swap::SwapFigures;
use super::swap_map;
use crate::settings;
use refault_mm::{
    Config, Counter, Engine, Gauge, Kernel, Lru, MemcgId, SizeCounter, SizeStats, Stats, SwapMap, ThpConfig,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Figures of a cell of the engine at its end; OPT has none.
#[derive(Clone, Debug)]
pub struct EngineFigures {
    /// The counters.
    pub counters: Stats,
    /// The sizes at the end.
    pub gauges: Vec<Gauge>,
    /// The counters of the sizes of folios.
    pub sizes: SizeStats,
    /// The generations at the end, if they were asked for and there are any.
    pub lru_gen: Option<String>,
    /// `memory.events`.
    pub events: Vec<(&'static str, u64)>,
    /// `memory.swap.events`.
    pub swap_events: Vec<(&'static str, u64)>,
    /// The swap devices at the end.
    pub swap: Vec<SwapMap>,
    /// Whether their clusters were asked for.
    pub swap_map: bool,
    /// The kernel whose rules it begins with.
    pub kernel: Kernel,
    /// The configuration.
    pub config: Config,
}

/// Reads from disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DiskReads {
    /// Pages.
    pub read_pages: u64,
    /// Runs of consecutive pages.
    pub reads: u64,
    /// Pages of block devices themselves among them: metadata of file systems.
    pub metadata_pages: u64,
}

impl std::ops::Sub for DiskReads {
    type Output = DiskReads;

    fn sub(self, other: DiskReads) -> DiskReads {
        DiskReads {
            read_pages: self.read_pages.saturating_sub(other.read_pages),
            reads: self.reads.saturating_sub(other.reads),
            metadata_pages: self.metadata_pages.saturating_sub(other.metadata_pages),
        }
    }
}

impl DiskReads {
    /// Bytes of the pages.
    pub fn bytes(&self) -> u64 {
        4096 * self.read_pages
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// The trace.
    pub trace: String,
    /// The policy.
    pub policy: RowPolicy,
    /// The name of the policy beside it, if a program brought one.
    pub plug_in: Option<String>,
    /// Memory in pages.
    pub memory_pages: u64,
    /// The same in bytes.
    pub memory_bytes: u64,
    /// Bytes a page.
    pub page_size: u64,
    /// Distinct pages of the trace.
    pub footprint_pages: u64,
    /// Accesses of the trace.
    pub trace_accesses: u64,
    /// The seed.
    pub seed: u64,
    /// Accesses replayed: those of the trace, unless memory ran out.
    pub accesses: u64,
    /// Misses among them.
    pub misses: u64,
    /// Standard error of the hit rate, 0 to 1, of a recording of a sample of pages.
    pub sampling_error: Option<f64>,
    /// Reads from disks: recordings have them, but for OPT.
    pub reads: Option<DiskReads>,
    /// Number of the access, from 0, at which memory ran out.
    pub oom_at: Option<u64>,
    /// Seconds that the replay took.
    pub seconds: f64,
    /// Misses in equal windows, if they were asked for.
    pub window_misses: Option<Vec<u64>>,
    /// Swap and its pool, if a kind of swap was chosen; OPT has none.
    pub swap: Option<SwapFigures>,
    /// Counters and more, except for OPT.
    pub inside: Option<EngineFigures>,
}

impl Row {
    /// Accesses that met their page in memory.
    pub fn hits(&self) -> u64 {
        self.accesses - self.misses
    }

    /// Pages that stayed in memory because swap had no room for them.
    pub fn swap_failures(&self) -> u64 {
        let events = self.inside.iter().flat_map(|i| &i.swap_events);
        events.filter(|(name, _)| *name == "fail").map(|(_, n)| n).sum()
    }

    /// Their share.
    pub fn hit_rate(&self) -> f64 {
        self.hits() as f64 / self.accesses.max(1) as f64
    }

    /// Million accesses a second.
    pub fn maccesses_per_s(&self) -> f64 {
        // A clock that did not advance is no reason for infinity.
        let rate = self.accesses as f64 / self.seconds.max(1e-9) / 1e6;
        (rate * 1000.0).round() / 1000.0
    }

    /// The sum of some counters; none for OPT.
    pub fn count(&self, counters: &[Counter]) -> Option<u64> {
        let stats = &self.inside.as_ref()?.counters;
        Some(counters.iter().map(|&c| stats.get(c)).sum())
    }

    /// The counters that tables and CSV show, by their names there.
    pub fn shown(&self) -> [(&'static str, Option<u64>); 7] {
        use Counter::*;
        [
            ("refaults", self.count(&[WorkingsetRefaultAnon, WorkingsetRefaultFile])),
            ("activations", self.count(&[WorkingsetActivateAnon, WorkingsetActivateFile])),
            ("restores", self.count(&[WorkingsetRestoreAnon, WorkingsetRestoreFile])),
            ("evicted_anon", self.count(&[PgstealAnon])),
            ("evicted_file", self.count(&[PgstealFile])),
            ("swap_ins", self.count(&[Pswpin])),
            ("swap_outs", self.count(&[Pswpout])),
        ]
    }
}

/// Pairs as a JSON object, in their order.
struct Pairs<I>(I);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)> + Clone> Serialize for Pairs<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.clone())
    }
}

impl EngineFigures {
    /// Figures of a cell at its end.
    #[allow(private_bounds, private_interfaces, reason = "who watches is a matter of this crate")]
    pub fn of<O>(cell: &Cell<O>, config: &Config, kernel: Kernel, lru_gen: bool) -> EngineFigures {
        let events = cell.engine.memcg_events(cell.group);
        EngineFigures {
            counters: cell.engine.vmstat(),
            gauges: cell.engine.memcg_gauges(cell.group),
            sizes: cell.engine.size_stats().clone(),
            lru_gen: (lru_gen && config.lru.kind == Lru::MultiGen).then(|| generations(&cell.engine, cell.group)),
            events: events.iter().collect(),
            swap_events: events.swap_iter().collect(),
            swap: cell.engine.swap_maps(),
            swap_map: false,
            kernel,
            config: config.clone(),
        }
    }

    /// The counters of the sizes of folios that there were, as `64kB.swpout`.
    pub fn size_counters(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.sizes.iter().map(|(order, counter, n)| (format!("{}kB.{}", 4u32 << order, counter.name()), n))
    }

    /// The same of every size, so that rows have as many, as `mthp.64kB.swpout`.
    pub fn all_size_counters(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let orders = ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER;
        let all = orders.flat_map(|order| SizeCounter::ALL.iter().map(move |&counter| (order, counter)));
        all.map(|(order, c)| (format!("mthp.{}kB.{}", 4u32 << order, c.name()), self.sizes.get(order, c)))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("trace", &self.trace)?;
        map.serialize_entry("policy", self.plug_in.as_deref().unwrap_or(self.policy.name()))?;
        if let Some(inside) = &self.inside {
            map.serialize_entry("kernel", inside.kernel.name())?;
        }
        map.serialize_entry("memory_pages", &self.memory_pages)?;
        map.serialize_entry("memory_bytes", &self.memory_bytes)?;
        map.serialize_entry("page_size", &self.page_size)?;
        map.serialize_entry("footprint_pages", &self.footprint_pages)?;
        map.serialize_entry("trace_accesses", &self.trace_accesses)?;
        map.serialize_entry("seed", &self.seed)?;
        map.serialize_entry("accesses", &self.accesses)?;
        map.serialize_entry("hits", &self.hits())?;
        map.serialize_entry("misses", &self.misses)?;
        map.serialize_entry("hit_rate", &self.hit_rate())?;
        if let Some(error) = self.sampling_error {
            map.serialize_entry("sampling_error", &error)?;
        }
        if let Some(reads) = &self.reads {
            map.serialize_entry("read_pages", &reads.read_pages)?;
            map.serialize_entry("reads", &reads.reads)?;
        }
        map.serialize_entry("oom_at", &self.oom_at)?;
        map.serialize_entry("maccesses_per_s", &self.maccesses_per_s())?;
        if let Some(windows) = &self.window_misses {
            map.serialize_entry("window_misses", windows)?;
        }
        let pairs: Vec<_> = self.inside.iter().flat_map(|i| i.counters.iter()).collect();
        map.serialize_entry("counters", &Pairs(pairs.into_iter()))?;
        let pairs: Vec<_> = self.inside.iter().flat_map(|i| &i.gauges).map(|g| (g.name, g.value)).collect();
        map.serialize_entry("gauges", &Pairs(pairs.into_iter()))?;
        let pairs: Vec<_> = self.inside.iter().flat_map(|i| i.events.iter().copied()).collect();
        map.serialize_entry("memory.events", &Pairs(pairs.into_iter()))?;
        let pairs: Vec<_> = self.inside.iter().flat_map(|i| i.swap_events.iter().copied()).collect();
        map.serialize_entry("memory.swap.events", &Pairs(pairs.into_iter()))?;
        let pairs: Vec<_> = self.inside.iter().flat_map(EngineFigures::size_counters).collect();
        if !pairs.is_empty() {
            map.serialize_entry("mthp", &Pairs(pairs.into_iter()))?;
        }
        let pairs: Vec<_> = self.inside.iter().flat_map(|i| config(&i.config)).collect();
        map.serialize_entry("config", &Pairs(pairs.into_iter()))?;
        if let Some(inside) = &self.inside {
            let devices: Vec<_> = inside.swap.iter().map(|m| swap_map::json(m, None, inside.swap_map)).collect();
            map.serialize_entry("swap", &devices)?;
        }
        if let Some(swap) = &self.swap {
            map.serialize_entry("pool", swap)?;
        }
        if let Some(text) = self.inside.as_ref().and_then(|i| i.lru_gen.as_ref()) {
            map.serialize_entry("lru_gen", text)?;
        }
        map.end()
    }
}

/// Generations of the replay's group. Nothing is charged to the root, so its generations are left
/// out.
fn generations(engine: &Engine, group: MemcgId) -> String {
    let text = engine.lru_gen_full_text();
    let group = format!("memcg {:5} ", group.0);
    text.find(&group).map_or(text.clone(), |start| text[start..].to_owned())
}

/// The configuration as the command line names it.
fn config(cfg: &Config) -> Vec<(&'static str, serde_json::Value)> {
    std::iter::once(("swappiness", cfg.swappiness.into())).chain(settings::values(cfg)).collect()
}
