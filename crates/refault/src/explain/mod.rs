//! Counters of a kernel at two moments, in sentences: what it did with memory in between.
//!
//! | file | what is in it |
//! |---|---|
//! | `parse` | [`Counters`]: `/proc/vmstat`, `memory.stat`, `*.pressure` and more, as they are pasted |
//! | `below` | dumps of below, whose rates become counters |
//! | `view` | the group or the machine between two moments |
//! | `live` | this machine's files, read twice |
//! | `lru_gen` | generations of multi-gen LRU |
//! | `rules`, `limits` | a function for each sentence, with the counters behind it |
//!
//! Rules are few, and each says why it holds; where none does, that is said.

mod below;
mod limits;
mod live;
mod lru_gen;
mod parse;
mod rules;
mod view;

pub use live::explain_live;
pub use parse::Counters;

use crate::Failure;
use crate::words::{folded, printable};
use refault_trace::Recording;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use view::{Scope, View};

/// A cause, for the commands that tell more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Files that are in use do not fit.
    Files,
    /// Anonymous memory that is in use does not fit.
    Anon,
    /// Anonymous memory that stays although files come back.
    IdleAnon,
    /// Anonymous memory that left and stays away.
    SwappedOut,
    /// Swap without room.
    SwapFull,
    /// The limit of a group.
    Limit,
    /// The memory of the machine.
    Machine,
    /// Tasks that reclaim themselves.
    DirectReclaim,
    /// Pages that wait to be written.
    Writeback,
    /// Tasks that wait.
    Pressure,
    /// Generations of multi-gen LRU.
    Generations,
}

/// A sentence, with the counters behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// Whether it is of a group, or of the machine.
    pub scope: Scope,
    /// The sentence.
    pub sentence: String,
    /// Counters and sizes that it rests on, with their values.
    pub because: Vec<String>,
}

/// Deeds of a kernel between two moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Seconds between them; none: not known.
    pub seconds: Option<f64>,
    /// Sentences.
    pub findings: Vec<Finding>,
    /// Questions that stay open, in sentences.
    pub unknown: Vec<String>,
    /// Commands that tell more.
    pub next: Vec<String>,
}

impl fmt::Display for Explanation {
    /// A sentence a line, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.seconds {
            writeln!(f, "in {seconds:.1} s:")?;
        }
        for finding in &self.findings {
            writeln!(f, "{}", folded(&format!("- {}", printable(&finding.sentence))))?;
            writeln!(f, "{}", folded(&format!("  ({})", printable(&finding.because.join(", ")))))?;
        }
        let unknown = self.unknown.iter().map(|unknown| format!("not known: {}", printable(unknown)));
        unknown.map(|line| folded(&line)).try_for_each(|line| writeln!(f, "{line}"))?;
        self.next.iter().try_for_each(|next| writeln!(f, "more: {next}"))
    }
}

/// Explains the time between two readings.
///
/// # Errors
/// The second reading is the earlier one, they have no counter in common, or tasks waited longer
/// than they are apart.
pub fn explain(before: &Counters, after: &Counters, seconds: Option<f64>) -> Result<Explanation, Failure> {
    let views: Vec<View<'_>> =
        [Scope::Group, Scope::Machine].into_iter().filter_map(|of| View::new(of, before, after, seconds)).collect();
    if views.is_empty() {
        return Err("the two readings have no counter in common; read the same files twice".into());
    }
    if let Some(name) = views.iter().find_map(View::falling) {
        return Err(format!("{name} is smaller in the second reading: give the earlier one first").into());
    }
    if let Some(why) = views.iter().find_map(limits::waited_too_long) {
        return Err(why.into());
    }
    let mut findings: Vec<Finding> = views.iter().flat_map(|view| rules::findings(view)).collect();
    findings.extend(limits::group_or_machine(&views));
    let min_ttl_ms = after.machine.get(lru_gen::MIN_TTL_MS).copied();
    findings.extend(views.iter().filter_map(|view| lru_gen::rule(view, min_ttl_ms)));
    limits::of_group_alone(&views, &mut findings);
    let unknown = limits::unknown(&views, &findings);
    let next = limits::next(&findings);
    Ok(Explanation { seconds, findings, unknown, next })
}

/// Explains a dump of below; of several groups the one of that path. None: the file is no dump.
///
/// # Errors
/// It has fewer than two moments, or several groups and none is given.
pub fn explain_below(path: &Path, group: Option<&Path>) -> Option<Result<Explanation, Failure>> {
    let text = below::text(path)?;
    let group = group.map(|group| group.display().to_string());
    Some(
        text.map_err(Failure::from)
            .and_then(|text| explain_below_text(&text, &path.display().to_string(), group.as_deref())),
    )
}

/// Explains the text of a dump of below. `name` is what errors call it.
///
/// # Errors
/// As [`explain_below`].
pub fn explain_below_text(text: &str, name: &str, group: Option<&str>) -> Result<Explanation, Failure> {
    let dump = below::read(text, name, group)?;
    explain(&dump.before, &dump.after, Some(dump.seconds))
}

/// Explains a recording, by its first and its last look at the group and the machine.
///
/// # Errors
/// It has fewer than two looks.
pub fn explain_recording(recording: &Recording, name: &str) -> Result<Explanation, Failure> {
    let series = &recording.series;
    let (Some(first), Some(last)) = (series.snapshots.first(), series.snapshots.last()) else {
        return Err(format!("{name}: has no snapshots of counters; read the files of the kernel twice").into());
    };
    if first.time_ns == last.time_ns {
        return Err(format!("{name}: has one snapshot of counters, and two are needed; record longer").into());
    }
    let of = |values: &[u64]| Counters::of_series(&series.names, values, recording);
    let seconds = (last.time_ns - first.time_ns) as f64 / 1e9;
    let explained = explain(&of(&first.values), &of(&last.values), Some(seconds))?;
    Ok(limits::in_hand(explained, name))
}

#[cfg(test)]
mod tests;
