//! Output of `refault verify --json`.

use crate::names::{sentence, shown};
use crate::recording::{Agreement, TrustMetric};
use crate::units::{bytes, counted, number};
use crate::verify::{NotFor, Verified};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A recording of a kernel on the engine, beside what that kernel did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct VerifyDocument {
    pub refault: String,
    pub recording: String,
    pub kernel: String,
    pub policy: String,
    pub memory_pages: Option<u64>,
    pub events: u64,
    pub lost: u64,
    pub accesses: u64,
    pub agreement: f64,
    pub kernel_pages: KernelPages,
    pub lab_counters: BTreeMap<String, u64>,
    pub windows: Vec<BothSides>,
    /// When each begins, in seconds since the first access.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub window_from_s: Vec<f64>,
    pub objects: Vec<BothSides>,
    pub verdict: Verdict,
    /// Remarks, such as its settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Pages that the kernel added, evicted, and dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct KernelPages {
    pub added: u64,
    pub evicted: u64,
    pub dropped: u64,
}

/// Accesses, and how many of them missed in the kernel and in the lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct BothSides {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub accesses: u64,
    pub kernel_misses: u64,
    pub lab_misses: u64,
    pub same: u64,
}

/// Conclusion from the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Verdict {
    pub is_within: bool,
    pub text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_for: Vec<Doubt>,
}

/// A number that the lab does not have as the kernel has it, and both values in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Doubt {
    pub metric: String,
    pub why: String,
}

/// Windows and objects at most: more than `refault verify` has.
const MOST: usize = 200;

impl VerifyDocument {
    /// Reads the object that `refault verify --json` prints.
    ///
    /// # Errors
    /// It is another object.
    pub fn from_value(mut value: Value) -> Result<VerifyDocument, serde_json::Error> {
        // A lab that ran out of memory has no figures.
        if let Some(of) = value.as_object_mut() {
            of.retain(|_, value| !value.is_null());
        }
        Ok(serde_json::from_value::<VerifyDocument>(value)?.cut())
    }

    /// A comparison that was made.
    pub fn of(verified: &Verified<'_>) -> VerifyDocument {
        let Verified { recording, settings, compared, verdict } = verified;
        let all = VerifyDocument {
            refault: env!("CARGO_PKG_VERSION").to_owned(),
            recording: recording.name.clone(),
            kernel: recording.recording.kernel.clone(),
            policy: settings.policy.name().to_owned(),
            memory_pages: settings.memory_pages,
            events: recording.recording.events,
            lost: recording.recording.lost,
            accesses: compared.total.accesses,
            kernel_pages: KernelPages { added: compared.added, evicted: compared.evicted, dropped: compared.dropped },
            window_from_s: compared.window_from_s(),
            verdict: Verdict {
                is_within: verdict.is_within,
                text: verdict.text.clone(),
                not_for: verdict.not_for.iter().map(Doubt::of).collect(),
            },
            ..VerifyDocument::default()
        };
        if compared.is_out_of_memory {
            return all.cut();
        }
        let worst = compared.worst().into_iter();
        let object = |(at, both): (usize, &Agreement)| BothSides {
            name: recording.objects[at].name.clone(),
            ..BothSides::of(both)
        };
        VerifyDocument {
            agreement: compared.total.agreement(),
            lab_counters: compared.ours.clone(),
            windows: compared.windows.iter().map(BothSides::of).collect(),
            objects: worst.map(object).collect(),
            ..all
        }
        .cut()
    }

    /// Cut down to what a page holds.
    fn cut(mut self) -> VerifyDocument {
        self.windows.truncate(MOST);
        self.window_from_s.truncate(MOST);
        self.objects.truncate(MOST);
        self.lab_counters.retain(|_, n| *n > 0);
        for text in [&mut self.recording, &mut self.kernel, &mut self.policy] {
            *text = shown(text);
        }
        self.verdict.text = sentence(&self.verdict.text);
        self.verdict.not_for.truncate(MOST);
        for doubt in &mut self.verdict.not_for {
            (doubt.metric, doubt.why) = (shown(&doubt.metric), sentence(&doubt.why));
        }
        self.objects.iter_mut().for_each(|object| object.name = shown(&object.name));
        self
    }
}

impl Doubt {
    fn of(not_for: &NotFor) -> Doubt {
        Doubt { metric: not_for.metric.name().to_owned(), why: not_for.why.clone() }
    }
}

impl BothSides {
    fn of(both: &Agreement) -> BothSides {
        let Agreement { accesses, kernel_misses, lab_misses, same, .. } = *both;
        BothSides { name: String::new(), accesses, kernel_misses, lab_misses, same }
    }

    /// Hits of the kernel and of the lab, in percent.
    pub fn hit_rates(&self) -> (f64, f64) {
        let rate = |misses: u64| 100.0 - 100.0 * misses as f64 / self.accesses.max(1) as f64;
        (rate(self.kernel_misses), rate(self.lab_misses))
    }
}

impl VerifyDocument {
    /// All windows together.
    pub fn total(&self) -> BothSides {
        self.windows.iter().fold(BothSides::default(), |sum, w| BothSides {
            name: String::new(),
            accesses: sum.accesses + w.accesses,
            kernel_misses: sum.kernel_misses + w.kernel_misses,
            lab_misses: sum.lab_misses + w.lab_misses,
            same: sum.same + w.same,
        })
    }

    /// Why hit rates of the lab are not to be trusted, in words; none: they are, or the page is
    /// older than this field.
    pub fn hit_rate_doubt(&self) -> Option<&str> {
        let doubt = self.verdict.not_for.iter().find(|doubt| doubt.metric == TrustMetric::HitRate.name())?;
        Some(doubt.why.trim_end_matches('.'))
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        let memory = self.memory_pages.map_or("no limit".into(), |n| bytes(n as f64 * 4096.0));
        format!(
            "refault verify of {}, recorded on Linux {}: {}, {}, {} lost; {}, {memory}, refault {}",
            self.recording,
            self.kernel,
            counted(self.accesses, "access"),
            counted(self.events, "event"),
            number(self.lost as f64),
            self.policy,
            self.refault
        )
    }
}
