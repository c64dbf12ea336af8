//! The samples of one trace, replayed at the sizes and under the policies that were asked for.
//!
//! A sample has *p* of the *P* pages of the trace, so memory is scaled by *p/P*, and each of its
//! misses stands for *P/p*. How many accesses there are is known of the whole trace: a sample
//! without a page that is used all the time has as many misses, and is not to blame for the rest.

use super::one_in::OneIn;
use crate::replay::Plan;
use crate::replay::policy::RowPolicy;
use crate::replay::row::Row;
use crate::{Failure, Watch};
use refault_mm::{Config, Kernel};
use refault_trace::{Samples, Trace};

/// Request of an estimate.
#[derive(Debug)]
pub struct Question<'a> {
    /// Pages that each page of a sample stands for.
    pub one_in: OneIn,
    /// Bytes a page.
    pub page_size: u32,
    /// Memory sizes of the whole, in pages.
    pub sizes: &'a [u64],
    /// The kernel of their configurations.
    pub kernel: Kernel,
    /// Policies; a policy that the engine runs has its configuration of the whole.
    pub policies: &'a [(RowPolicy, Option<Config>)],
    /// Limit of swap of the whole, in pages.
    pub swap_max_pages: u64,
    /// Threads.
    pub threads: usize,
    /// Ends it.
    pub watch: Watch,
}

/// Result of one sample.
#[derive(Clone, Debug)]
pub struct SampleRow {
    /// Its pages.
    pub pages: u64,
    /// Its memory in pages.
    pub memory_pages: u64,
    /// Accesses replayed: all of the sample, unless memory ran out.
    pub accesses: u64,
    /// Misses among them.
    pub misses: u64,
    /// Whether memory ran out.
    pub out_of_memory: bool,
    /// Seconds that the replay took.
    pub seconds: f64,
}

/// Estimate of one (trace, policy, size) by samples.
#[derive(Clone, Debug)]
pub struct SampledEstimate {
    /// The trace.
    pub trace: String,
    /// The policy.
    pub policy: RowPolicy,
    /// The kernel whose rules it begins with.
    pub kernel: Kernel,
    /// The memory of the whole.
    pub memory_pages: u64,
    /// Bytes a page.
    pub page_size: u64,
    /// Distinct pages of the whole.
    pub footprint_pages: u64,
    /// Accesses of the whole.
    pub accesses: u64,
    /// Each sample.
    pub samples: Vec<SampleRow>,
}

impl SampledEstimate {
    /// The hit rate of the whole as one sample has it.
    pub fn hit_rate_of(&self, sample: &SampleRow) -> f64 {
        if sample.out_of_memory {
            return (sample.accesses - sample.misses) as f64 / sample.accesses.max(1) as f64;
        }
        let page = self.footprint_pages as f64 / sample.pages as f64;
        (1.0 - sample.misses as f64 * page / self.accesses as f64).clamp(0.0, 1.0)
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.samples.iter().map(|sample| self.hit_rate_of(sample))
    }

    /// The mean of the samples.
    pub fn hit_rate(&self) -> f64 {
        self.rates().sum::<f64>() / self.samples.len() as f64
    }

    /// The standard error of the mean; none of a single sample.
    pub fn error(&self) -> Option<f64> {
        let (n, mean) = (self.samples.len() as f64, self.hit_rate());
        (n > 1.0).then(|| (self.rates().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt())
    }

    /// The lowest and the highest of the samples.
    pub fn range(&self) -> (f64, f64) {
        self.rates().fold((1.0, 0.0), |(low, high), rate| (f64::min(low, rate), f64::max(high, rate)))
    }

    /// Misses of the whole.
    pub fn misses(&self) -> u64 {
        ((1.0 - self.hit_rate()) * self.accesses as f64).round() as u64
    }

    /// Samples that ran out of memory.
    pub fn out_of_memory(&self) -> usize {
        self.samples.iter().filter(|sample| sample.out_of_memory).count()
    }

    /// Million accesses of the whole per second of all samples run one after the other.
    pub fn maccesses_per_s(&self) -> f64 {
        let seconds: f64 = self.samples.iter().map(|sample| sample.seconds).sum();
        self.accesses as f64 / seconds.max(1e-9) / 1e6
    }
}

/// Replays every sample; estimates are by size, then by policy.
pub fn estimate(samples: &Samples, question: &Question<'_>) -> Result<Vec<SampledEstimate>, Failure> {
    let mut estimates: Vec<SampledEstimate> = Vec::new();
    for trace in &samples.traces {
        let pages = u64::from(trace.footprint_pages());
        if pages == 0 {
            return Err(
                format!("--sample: a sample has none of the {} pages; take more", samples.footprint_pages).into()
            );
        }
        let part = |n: u64| {
            ((u128::from(n) * u128::from(pages) * 2 + u128::from(samples.footprint_pages))
                / (2 * u128::from(samples.footprint_pages))) as u64
        };
        let sizes: Vec<u64> = question.sizes.iter().map(|&size| part(size)).collect();
        if let Some(at) = sizes.iter().position(|&size| size == 0) {
            let size = question.sizes[at];
            return Err(format!("--sample: a memory of {size} pages is less than a page of a sample; take more").into());
        }
        let mut at = 0;
        for (&whole, &size) in question.sizes.iter().zip(&sizes) {
            for row in replay(trace, question, size, &part)? {
                if at == estimates.len() {
                    estimates.push(SampledEstimate {
                        trace: trace.name.clone(),
                        policy: row.policy,
                        kernel: question.kernel,
                        memory_pages: whole,
                        page_size: u64::from(question.page_size),
                        footprint_pages: samples.footprint_pages,
                        accesses: samples.accesses,
                        samples: Vec::new(),
                    });
                }
                estimates[at].samples.push(SampleRow {
                    pages,
                    memory_pages: size,
                    accesses: row.accesses,
                    misses: row.misses,
                    out_of_memory: row.oom_at.is_some(),
                    seconds: row.seconds,
                });
                at += 1;
            }
        }
    }
    Ok(estimates)
}

/// Replays a sample in one size: what the constants come to depends on it.
fn replay(trace: &Trace, question: &Question<'_>, size: u64, part: &dyn Fn(u64) -> u64) -> Result<Vec<Row>, String> {
    let sampled = |cfg: &Config| cfg.clone().sampled(question.one_in.0, size);
    let policies: Vec<_> = question.policies.iter().map(|(policy, cfg)| (*policy, cfg.as_ref().map(sampled))).collect();
    let plan = Plan {
        trace,
        accesses: trace.accesses.len() as u64,
        page_size: question.page_size,
        sizes: vec![size],
        policies: &policies,
        plug_ins: &[],
        swap_max_pages: if question.swap_max_pages == u64::MAX { u64::MAX } else { part(question.swap_max_pages) },
        swap: None,
        kernel: question.kernel,
        seed: 0,
        windows: None,
        bits: false,
        lru_gen: false,
        swap_map: false,
        threads: question.threads,
        watch: question.watch.clone(),
    };
    Ok(plan.run()?.into_iter().map(|(row, _)| row).collect())
}
