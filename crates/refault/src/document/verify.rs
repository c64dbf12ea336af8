//! Output of `refault verify --json`.

use crate::names::{sentence, shown};
use crate::units::{bytes, counted, number};
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
    pub windows: Vec<Both>,
    /// When each begins, in seconds since the first access.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub window_from_s: Vec<f64>,
    pub objects: Vec<Both>,
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

/// Accesses, and misses of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Both {
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
        let mut all: VerifyDocument = serde_json::from_value(value)?;
        all.windows.truncate(MOST);
        all.window_from_s.truncate(MOST);
        all.objects.truncate(MOST);
        all.lab_counters.retain(|_, n| *n > 0);
        for text in [&mut all.recording, &mut all.kernel, &mut all.policy] {
            *text = shown(text);
        }
        all.verdict.text = sentence(&all.verdict.text);
        all.objects.iter_mut().for_each(|object| object.name = shown(&object.name));
        Ok(all)
    }
}

impl Both {
    /// Hits of the kernel and of the lab, in percent.
    pub fn hit_rates(&self) -> (f64, f64) {
        let rate = |misses: u64| 100.0 - 100.0 * misses as f64 / self.accesses.max(1) as f64;
        (rate(self.kernel_misses), rate(self.lab_misses))
    }
}

impl VerifyDocument {
    /// All windows together.
    pub fn total(&self) -> Both {
        self.windows.iter().fold(Both::default(), |sum, w| Both {
            name: String::new(),
            accesses: sum.accesses + w.accesses,
            kernel_misses: sum.kernel_misses + w.kernel_misses,
            lab_misses: sum.lab_misses + w.lab_misses,
            same: sum.same + w.same,
        })
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
