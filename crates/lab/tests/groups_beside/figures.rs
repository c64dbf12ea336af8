//! Figures of a group that are compared.

use refault_lab::machine::RunResult;
use serde_json::Value;

use super::cases;

/// Seconds from the start in which memory fills: they are left out of the pages that a group keeps.
const FILLING_S: usize = 2;

/// Figures of a group in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Share of accesses that found their page, in percent.
    hit_rate: f64,
    /// Pages charged to it, the mean after the filling.
    keeps: f64,
    /// Pages that were taken from it.
    reclaimed: f64,
    /// Pages that came back.
    refaulted: f64,
    /// When its last task had done its work, in seconds.
    ends: f64,
}

/// One of the figures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    HitRate,
    Keeps,
    Reclaimed,
    Refaulted,
    Ends,
}

/// How far two figures may be apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bar {
    Points(f64),
    /// A share, and a number of pages that is too small to compare.
    Share(f64, f64),
}

pub(super) const COMPARED: [(Figure, Bar); 5] = [
    (Figure::HitRate, Bar::Points(2.0)),
    (Figure::Keeps, Bar::Share(0.1, 100.0)),
    (Figure::Reclaimed, Bar::Share(0.2, 500.0)),
    (Figure::Refaulted, Bar::Share(0.2, 500.0)),
    (Figure::Ends, Bar::Share(0.1, 0.0)),
];

impl Bar {
    pub(super) fn is_met(self, kernel: f64, lab: f64) -> bool {
        let apart = (kernel - lab).abs();
        match self {
            Bar::Points(points) => apart <= points,
            Bar::Share(share, few) => apart <= few.max(share * kernel),
        }
    }
}

impl Figure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::HitRate => "hit rate, %",
            Figure::Keeps => "pages kept",
            Figure::Reclaimed => "reclaimed",
            Figure::Refaulted => "refaulted",
            Figure::Ends => "ends, s",
        }
    }

    fn of(self, figures: &Figures) -> f64 {
        match self {
            Figure::HitRate => figures.hit_rate,
            Figure::Keeps => figures.keeps,
            Figure::Reclaimed => figures.reclaimed,
            Figure::Refaulted => figures.refaulted,
            Figure::Ends => figures.ends,
        }
    }

    pub(super) fn mean(self, all: &[Figures]) -> f64 {
        all.iter().map(|f| self.of(f)).sum::<f64>() / all.len() as f64
    }

    /// Whether the kernel's own repeats are as far apart.
    pub(super) fn is_between(self, all: &[Figures], n: f64) -> bool {
        all.iter().any(|f| self.of(f) <= n) && all.iter().any(|f| self.of(f) >= n)
    }

    pub(super) fn text(self, n: f64) -> String {
        match self {
            Figure::HitRate | Figure::Ends => format!("{n:.1}"),
            _ => format!("{n:.0}"),
        }
    }
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

impl Figures {
    /// Means over several groups, each of the same weight; when the last ended.
    pub(super) fn of_all(all: &[Figures]) -> Figures {
        let mean = |figure: Figure| figure.mean(all);
        Figures {
            hit_rate: mean(Figure::HitRate),
            keeps: mean(Figure::Keeps),
            reclaimed: mean(Figure::Reclaimed),
            refaulted: mean(Figure::Refaulted),
            ends: all.iter().map(|f| f.ends).fold(0.0, f64::max),
        }
    }

    pub(super) fn of_kernel(row: &Value, group: &str) -> Figures {
        let stat = &row["groups"][group];
        let counter = |key: &str| stat[key].as_f64().unwrap_or(0.0);
        let list = |v: &Value| -> Vec<f64> { v.as_array().expect("a list").iter().filter_map(Value::as_f64).collect() };
        let tasks = row["tasks"].as_array().expect("tasks").iter().filter(|task| task["group"] == group);
        let (mut did, mut missed, mut ends) = (0.0, 0.0, 0.0_f64);
        for task in tasks {
            did += list(&task["did"]).iter().sum::<f64>();
            missed += list(&task["missed"]).iter().sum::<f64>();
            ends = ends.max(task["ms"].as_f64().expect("a time") / 1e3);
        }
        let seconds = cases::seconds(row["case"].as_str().expect("a case")) as usize;
        let current = list(&stat["current"]);
        Figures {
            hit_rate: 100.0 * (1.0 - missed / did),
            keeps: mean(&current[FILLING_S - 1..seconds]),
            reclaimed: ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_proactive"].map(counter).iter().sum(),
            refaulted: ["workingset_refault_anon", "workingset_refault_file"].map(counter).iter().sum(),
            ends,
        }
    }

    pub(super) fn of_lab(r: &RunResult, case: &str, group: &str, shift_ms: u64) -> Figures {
        let memcg = r.memcgs.iter().find(|m| m.path == group).expect("the group");
        let counter = |key: &str| memcg.counter(key) as f64;
        let column = format!("memcg.{group}.memory.current");
        let at = r.series.columns().iter().position(|c| *c == column).expect("a column");
        let start = (cases::START_MS + shift_ms) * 1_000_000;
        let is_second = |ns: u64| ns > start && (ns - start).is_multiple_of(1_000_000_000);
        let all: Vec<f64> = r.series.rows().filter(|(ns, _)| is_second(*ns)).map(|(_, row)| row[at]).collect();
        let seconds = cases::seconds(case) as usize;
        Figures {
            hit_rate: 100.0 * memcg.tasks.hit_rate(),
            keeps: mean(&all[FILLING_S - 1..seconds.min(all.len())]),
            reclaimed: ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_proactive"].map(counter).iter().sum(),
            refaulted: ["workingset_refault_anon", "workingset_refault_file"].map(counter).iter().sum(),
            ends: cases::tasks(case, group).map(|i| r.tasks[i].seconds).fold(0.0, f64::max),
        }
    }
}
