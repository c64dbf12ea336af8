//! A trace that a kernel played several times, beside the lab.

use crate::Failure;
use crate::recording::POINTS;
use crate::replay::cell::Cell;
use crate::settings;
use refault_mm::{Config, Policy};
use refault_trace::{PackedAccess, Recording, Trace};
use serde::Serialize;

/// Starts of the lab, at different times, where the statistics of groups lag.
const STARTS: u64 = 5;

/// A trace that is played.
#[derive(Debug)]
pub struct Play<'a> {
    trace: &'a Trace,
    accesses: &'a [PackedAccess],
    config: Config,
    kernel: String,
    policy: Policy,
}

/// Result of a play in several sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// The trace.
    pub trace: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The name of the policy.
    pub policy: &'static str,
    /// How files were accessed, in words.
    pub via: &'static str,
    /// How many accesses there were.
    pub accesses: u64,
    /// Distinct pages of the trace.
    pub footprint_pages: u64,
    /// Results by size.
    pub rows: Vec<PlayedSize>,
    /// Whether the lab is in all sizes.
    pub is_within: bool,
}

/// Misses of one time that it was played: by a kernel, or by the lab.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Whether the access missed, by access.
    pub missed: Vec<bool>,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
}

impl Repeat {
    fn hit_rate(&self) -> f64 {
        let misses = self.missed.iter().filter(|&&missed| missed).count();
        1.0 - misses as f64 / self.missed.len().max(1) as f64
    }
}

/// One size of memory.
#[derive(Clone, Debug, Serialize)]
pub struct PlayedSize {
    /// Size in pages.
    pub memory_pages: u64,
    /// Hit rates of the kernel's repeats, 0 to 1.
    pub kernel_hit_rates: Vec<f64>,
    /// The mean of all starts of the lab.
    pub lab_hit_rate: f64,
    /// Hit rates of the lab's starts, 0 to 1.
    pub lab_hit_rates: Vec<f64>,
    /// Percentage points between the best and the worst repeat.
    pub spread_points: f64,
    /// Share of accesses with the same outcome in lab and kernel, the mean of all repeats.
    pub agreement: f64,
    /// The same share between repeats of the kernel; null: there is one repeat.
    pub kernel_agreement: Option<f64>,
    /// Whether the lab is inside of the kernel's own spread and half a point.
    pub is_within: bool,
}

impl<'a> Play<'a> {
    /// Accesses of a trace to play; `machine` gives the release and settings of the kernel, and
    /// `policy` its policy.
    pub fn new(trace: &'a Trace, accesses: &'a [PackedAccess], machine: &Recording, policy: Policy) -> Play<'a> {
        let kernel = settings::kernel_of(machine);
        let mut config = settings::config(Some(kernel), policy);
        config.swappiness = settings::swappiness_of(machine).unwrap_or(config.swappiness);
        config.lru.stat_flush_interval_ns = settings::stat_flush_interval_ns(kernel);
        Play { trace, accesses, config, kernel: machine.kernel.clone(), policy }
    }

    /// Compares in each of these sizes; `kernel` plays the accesses there.
    ///
    /// # Errors
    /// A play that fails, or a configuration that is impossible.
    pub fn run(&self, sizes: &[u64], kernel: &dyn Fn(u64) -> Result<Vec<Repeat>, Failure>) -> Result<Played, Failure> {
        let row = |&pages: &u64| Ok(self.beside(pages, &kernel(pages)?)?);
        let rows = sizes.iter().map(row).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Played {
            trace: self.trace.name.clone(),
            kernel: self.kernel.clone(),
            policy: self.policy.name(),
            via: via(self.accesses),
            accesses: self.accesses.len() as u64,
            footprint_pages: u64::from(self.trace.footprint_pages()),
            is_within: rows.iter().all(|row| row.is_within),
            rows,
        })
    }

    /// Plays it in the lab with `memory_pages`, at the speed of the kernel, and compares.
    fn beside(&self, memory_pages: u64, repeats: &[Repeat]) -> Result<PlayedSize, String> {
        let ns = repeats.iter().map(|played| played.duration_ns).sum::<u64>() / repeats.len().max(1) as u64;
        Ok(compare(memory_pages, repeats, &self.labs(memory_pages, ns)?))
    }

    /// Misses of the lab. When the kernel adds up the statistics of groups is chance, so the lab
    /// starts at several times after that, evenly apart.
    fn labs(&self, pages: u64, ns: u64) -> Result<Vec<Repeat>, String> {
        let interval_ns = self.config.lru.stat_flush_interval_ns;
        let starts = if interval_ns == 0 { 1 } else { STARTS };
        (0..starts).map(|start| self.lab(pages, interval_ns / STARTS * start, ns)).collect()
    }

    /// One start of the lab, at `start_ns`, for accesses that take `duration_ns` together.
    fn lab(&self, pages: u64, start_ns: u64, duration_ns: u64) -> Result<Repeat, String> {
        let mut cell = Cell::new(self.trace, self.config.clone(), pages, u64::MAX)?;
        // The statistics were added up before the group was made.
        cell.engine.set_now_ns(1);
        let mut missed = Vec::with_capacity(self.accesses.len());
        for (i, access) in self.accesses.iter().enumerate() {
            let passed = u128::from(duration_ns) * i as u128 / self.accesses.len() as u128;
            cell.engine.set_now_ns(start_ns + passed as u64);
            missed.push(!cell.step(*access));
        }
        Ok(Repeat { missed, duration_ns })
    }
}

fn via(accesses: &[PackedAccess]) -> &'static str {
    let by_mapping = accesses.iter().filter(|access| access.is_map()).count();
    match by_mapping {
        0 => "by descriptor",
        n if n == accesses.len() => "by mapping",
        _ => "both",
    }
}

fn agreement(a: &Repeat, b: &Repeat) -> f64 {
    let same = a.missed.iter().zip(&b.missed).filter(|(a, b)| a == b).count();
    same as f64 / a.missed.len().max(1) as f64
}

/// The mean of some.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

fn compare(memory_pages: u64, repeats: &[Repeat], labs: &[Repeat]) -> PlayedSize {
    let rates: Vec<_> = repeats.iter().map(Repeat::hit_rate).collect();
    let (low, high) = rates.iter().fold((1.0f64, 0.0f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    let pairs = repeats.iter().zip(repeats.iter().skip(1)).map(|(a, b)| agreement(a, b));
    let lab_hit_rates: Vec<_> = labs.iter().map(Repeat::hit_rate).collect();
    let lab_hit_rate = mean(lab_hit_rates.iter().copied());
    let alike: Vec<_> = repeats.iter().flat_map(|repeat| labs.iter().map(|lab| agreement(repeat, lab))).collect();
    let slack = POINTS / 100.0;
    PlayedSize {
        memory_pages,
        lab_hit_rate,
        lab_hit_rates,
        spread_points: 100.0 * (high - low),
        agreement: mean(alike.into_iter()),
        kernel_agreement: pairs.reduce(f64::min),
        is_within: (low - slack..=high + slack).contains(&lab_hit_rate),
        kernel_hit_rates: rates,
    }
}

impl PlayedSize {
    /// The mean hit rate of the kernel's repeats.
    pub fn kernel_hit_rate(&self) -> f64 {
        mean(self.kernel_hit_rates.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(misses: &[u8]) -> Repeat {
        Repeat { missed: misses.iter().map(|&miss| miss == 1).collect(), duration_ns: 1 }
    }

    #[test]
    fn the_kernel_has_a_spread_of_its_own() {
        let repeats = [played(&[1, 1, 0, 0]), played(&[1, 0, 0, 0])];
        let within = compare(9, &repeats, &[played(&[1, 0, 1, 0])]);
        assert_eq!((within.spread_points, within.kernel_agreement), (25.0, Some(0.75)));
        assert_eq!((within.agreement, within.is_within, within.kernel_hit_rate()), (0.625, true, 0.625));
        let outside = compare(9, &repeats, &[played(&[0, 0, 0, 0])]);
        let starts = compare(9, &repeats, &[played(&[0, 0, 0, 0]), played(&[1, 1, 0, 0])]);
        assert_eq!((starts.lab_hit_rate, starts.lab_hit_rates, starts.is_within), (0.75, vec![1.0, 0.5], true));
        assert!(!outside.is_within);
        assert_eq!(compare(9, &repeats[..1], &[played(&[1, 1, 0, 0])]).kernel_agreement, None);
    }
}
