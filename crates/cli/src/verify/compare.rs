//! Hits and misses of the kernel and of the lab, and what to say of them.

use super::args::Settings;
use super::load::Loaded;
use refault_trace::{Act, Record};
use serde::Serialize;
use std::collections::BTreeMap;

/// Windows of equal numbers of accesses.
pub(super) const WINDOWS: u64 = 64;

/// Differences in hit rate below this are agreement, in points.
const POINTS: f64 = 0.5;

/// So many accesses must be the same.
const AGREEMENT: f64 = 0.99;

/// Accesses, and misses of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Both {
    pub(super) accesses: u64,
    pub(super) kernel_misses: u64,
    pub(super) lab_misses: u64,
    /// Accesses that both hit or both missed.
    pub(super) same: u64,
}

impl Both {
    fn add(&mut self, kernel: bool, lab: bool) {
        self.accesses += 1;
        self.kernel_misses += u64::from(kernel);
        self.lab_misses += u64::from(lab);
        self.same += u64::from(kernel == lab);
    }

    /// Hit rates in percent.
    pub(super) fn rates(&self) -> (f64, f64) {
        let rate = |misses: u64| 100.0 * (1.0 - misses as f64 / self.accesses.max(1) as f64);
        (rate(self.kernel_misses), rate(self.lab_misses))
    }

    /// How much more the lab hits, in points.
    pub(super) fn difference(&self) -> f64 {
        let (kernel, lab) = self.rates();
        lab - kernel
    }

    pub(super) fn agreement(&self) -> f64 {
        self.same as f64 / self.accesses.max(1) as f64
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Compared {
    pub(super) total: Both,
    pub(super) windows: Vec<Both>,
    /// By object.
    pub(super) objects: Vec<Both>,
    /// Pages that the kernel added, evicted, and dropped.
    pub(super) added: u64,
    pub(super) evicted: u64,
    pub(super) dropped: u64,
    /// Counters of the engine.
    pub(super) ours: BTreeMap<String, u64>,
    /// Pages that were in memory at the start.
    pub(super) warm: u64,
    all: u64,
}

/// What it means.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) is_within: bool,
    pub(super) text: String,
}

impl Compared {
    pub(super) fn new(loaded: &Loaded) -> Compared {
        Compared {
            windows: vec![Both::default(); WINDOWS as usize],
            objects: vec![Both::default(); loaded.objects.len()],
            all: loaded.accesses,
            ..Compared::default()
        }
    }

    pub(super) fn access(&mut self, object: u32, kernel: bool, lab: bool) {
        let window = u128::from(self.total.accesses) * u128::from(WINDOWS) / u128::from(self.all.max(1));
        self.total.add(kernel, lab);
        if let Some(window) = self.windows.get_mut(window as usize) {
            window.add(kernel, lab);
        }
        self.objects[object as usize].add(kernel, lab);
    }

    pub(super) fn count(&mut self, record: &Record) {
        let pages = u64::from(record.pages);
        match record.act {
            Act::Add => self.added += pages,
            Act::Evict => self.evicted += pages,
            Act::Drop => self.dropped += pages,
            _ => {}
        }
    }

    /// The largest differences in a window, in points: how much less and more the lab hits.
    pub(super) fn extremes(&self) -> (f64, f64) {
        let all = self.windows.iter().filter(|w| w.accesses > 0).map(Both::difference);
        all.fold((0.0, 0.0), |(low, high): (f64, f64), d| (low.min(d), high.max(d)))
    }

    /// The objects with most misses more or less than the kernel's.
    pub(super) fn worst(&self) -> Vec<(usize, &Both)> {
        let mut all: Vec<_> =
            self.objects.iter().enumerate().filter(|(_, b)| b.lab_misses != b.kernel_misses).collect();
        all.sort_by_key(|(_, b)| std::cmp::Reverse(b.lab_misses.abs_diff(b.kernel_misses)));
        all.truncate(10);
        all
    }

    pub(super) fn verdict(&self, loaded: &Loaded) -> Verdict {
        let (difference, agreement) = (self.total.difference(), self.total.agreement());
        let is_near = difference.abs() <= POINTS;
        let mut text = format!("the lab is within {:.2} points of this kernel", difference.abs());
        if !is_near {
            let (points, word) = (difference.abs(), if difference > 0.0 { "more" } else { "less" });
            text = format!("the lab hits {points:.2} points {word} than this kernel");
        }
        text += &format!(", and {:.2} % of the accesses are the same", 100.0 * agreement);
        let worst = self.worst();
        let worst = worst.first().filter(|_| !is_near || agreement < AGREEMENT);
        if let Some((object, both)) = worst {
            let name = &loaded.objects[*object].name;
            text +=
                &format!("; the largest difference is {name}: {} misses for {}", both.lab_misses, both.kernel_misses);
        }
        if loaded.recording.lost > 0 {
            text += &format!("; {} events were lost, so that the recording is not exact", loaded.recording.lost);
        }
        if loaded.recording.cut {
            text += "; the recording was cut";
        }
        Verdict { is_within: is_near && agreement >= AGREEMENT && loaded.recording.lost == 0, text }
    }

    /// What `--json` prints.
    pub(super) fn json(&self, loaded: &Loaded, settings: &Settings, verdict: &Verdict) -> serde_json::Value {
        let (kernel, lab) = self.total.rates();
        let objects: Vec<_> = self
            .worst()
            .into_iter()
            .map(|(at, both)| {
                let mut value = serde_json::json!(both);
                value["name"] = loaded.objects[at].name.as_str().into();
                value
            })
            .collect();
        serde_json::json!({
            "refault": env!("CARGO_PKG_VERSION"),
            "recording": loaded.name,
            "kernel": loaded.recording.kernel,
            "policy": settings.policy.name(),
            "memory_pages": settings.memory_pages,
            "read_ahead_pages": settings.config.readahead.file_pages,
            "events": loaded.recording.events,
            "lost": loaded.recording.lost,
            "accesses": self.total.accesses,
            "kernel_hit_rate": kernel / 100.0,
            "lab_hit_rate": lab / 100.0,
            "agreement": self.total.agreement(),
            "warm_pages": self.warm,
            "kernel_pages": { "added": self.added, "evicted": self.evicted, "dropped": self.dropped },
            "lab_counters": self.ours,
            "windows": self.windows,
            "objects": objects,
            "verdict": verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_counted() {
        let mut both = Both::default();
        for (kernel, lab) in [(true, true), (false, false), (true, false), (false, false)] {
            both.add(kernel, lab);
        }
        assert_eq!(both, Both { accesses: 4, kernel_misses: 2, lab_misses: 1, same: 3 });
        assert_eq!((both.rates(), both.difference(), both.agreement()), ((50.0, 75.0), 25.0, 0.75));
    }
}
