//! The result of one (trace, size, policy) with groups.

use super::cell::GroupCount;
use crate::replay::policy::RowPolicy;
use refault_mm::{Counter, Gauge, Kernel, MemcgLimits, Stats};

/// One group of a row, groups below it included.
#[derive(Clone, Debug)]
pub struct GroupRow {
    /// Its path.
    pub path: String,
    /// Its limits, in pages.
    pub limits: MemcgLimits,
    /// Accesses and misses.
    pub count: GroupCount,
    /// Its counters.
    pub counters: Stats,
    /// Its sizes at the end.
    pub gauges: Vec<Gauge>,
    /// `memory.events`.
    pub events: Vec<(&'static str, u64)>,
    /// `memory.swap.events`.
    pub swap_events: Vec<(&'static str, u64)>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct GroupedRow {
    /// The trace.
    pub trace: String,
    /// The policy.
    pub policy: RowPolicy,
    /// The kernel whose rules it begins with.
    pub kernel: Kernel,
    /// `u64::MAX`: no limit.
    pub memory_pages: u64,
    /// Bytes a page.
    pub page_size: u64,
    /// Distinct pages of the trace.
    pub footprint_pages: u64,
    /// Accesses of the trace.
    pub trace_accesses: u64,
    /// The seed.
    pub seed: u64,
    /// The access at which memory ran out and nobody was left to kill.
    pub oom_at: Option<u64>,
    /// Seconds that the replay took.
    pub seconds: f64,
    /// The whole replay first.
    pub groups: Vec<GroupRow>,
}

impl GroupRow {
    /// Accesses that met their page in memory.
    pub fn hits(&self) -> u64 {
        self.count.accesses - self.count.misses
    }

    /// None without accesses.
    pub fn hit_rate(&self) -> Option<f64> {
        (self.count.accesses > 0).then(|| self.hits() as f64 / self.count.accesses as f64)
    }

    fn sum(&self, counters: &[Counter]) -> u64 {
        counters.iter().map(|&c| self.counters.get(c)).sum()
    }

    /// The counters that tables and CSV show, by their names there.
    pub fn shown(&self) -> [(&'static str, u64); 7] {
        use Counter::*;
        [
            ("refaults", self.sum(&[WorkingsetRefaultAnon, WorkingsetRefaultFile])),
            ("activations", self.sum(&[WorkingsetActivateAnon, WorkingsetActivateFile])),
            ("restores", self.sum(&[WorkingsetRestoreAnon, WorkingsetRestoreFile])),
            ("evicted_anon", self.sum(&[PgstealAnon])),
            ("evicted_file", self.sum(&[PgstealFile])),
            ("swap_ins", self.sum(&[Pswpin])),
            ("swap_outs", self.sum(&[Pswpout])),
        ]
    }

    /// A size at the end, by its kernel name; 0 if there is none.
    pub fn gauge(&self, name: &str) -> u64 {
        self.gauges.iter().find(|g| g.name == name).map_or(0, |g| g.value)
    }

    /// A count of `memory.events`; 0 if there is none.
    pub fn event(&self, name: &str) -> u64 {
        self.events.iter().find(|(known, _)| *known == name).map_or(0, |&(_, n)| n)
    }
}

impl GroupedRow {
    /// Million accesses a second.
    pub fn maccesses_per_s(&self) -> f64 {
        let accesses = self.groups.first().map_or(0, |whole| whole.count.accesses);
        (accesses as f64 / self.seconds.max(1e-9) / 1e6 * 1000.0).round() / 1000.0
    }
}

/// The limits that are not the kernel's defaults, by the names of their files; sizes in pages.
pub fn limits(of: &MemcgLimits) -> Vec<(&'static str, u64)> {
    let none = MemcgLimits::default();
    let all = [
        ("memory.min", of.min, none.min),
        ("memory.low", of.low, none.low),
        ("memory.high", of.high, none.high),
        ("memory.max", of.max, none.max),
        ("memory.swap.high", of.swap_high, none.swap_high),
        ("memory.swap.max", of.swap_max, none.swap_max),
        ("memory.zswap.max", of.zswap_max, none.zswap_max),
    ];
    all.into_iter().filter(|(_, pages, none)| pages != none).map(|(name, pages, _)| (name, pages)).collect()
}

/// The same for people, other settings behind them.
pub fn limits_text(of: &MemcgLimits, page_size: u64) -> String {
    let size = |pages: u64| match pages {
        u64::MAX => "max".to_owned(),
        pages => crate::memory_size::human(pages * page_size),
    };
    let short = |name: &'static str| name.trim_start_matches("memory.");
    let mut parts: Vec<_> =
        limits(of).into_iter().map(|(name, pages)| format!("{} {}", short(name), size(pages))).collect();
    parts.extend(of.swappiness.map(|n| format!("swappiness {n}")));
    parts.extend((!of.zswap_writeback).then(|| "zswap.writeback 0".to_owned()));
    parts.extend(of.oom_group.then(|| "oom.group".to_owned()));
    parts.join(", ")
}
