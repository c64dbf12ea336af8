//! CPU time of the threads of the kernel: in all, and the most of a CPU between two samples.

use super::Threads;

/// CPU time of the kernel's threads, sample by sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    at_ns: u64,
    /// CPU time at the last sample, in the order of [`Threads::of_kernel`].
    last_ns: Vec<u64>,
    /// The highest share of a CPU between two samples.
    highest: Vec<f64>,
}

impl Usage {
    /// A sample is taken. One that follows the last sooner than `least_ns` is the end of a run, and
    /// too short to tell a share.
    pub(crate) fn sample(&mut self, threads: &Threads, now_ns: u64, least_ns: u64) {
        let ran: Vec<_> = threads.of_kernel().map(|(_, t)| threads.ran_ns(t, now_ns)).collect();
        let passed_ns = now_ns - self.at_ns;
        self.last_ns.resize(ran.len(), 0);
        self.highest.resize(ran.len(), 0.0);
        if passed_ns < least_ns && self.at_ns > 0 {
            return;
        }
        for ((last, highest), &ran) in self.last_ns.iter_mut().zip(&mut self.highest).zip(&ran) {
            let share = (ran - *last) as f64 / passed_ns.max(1) as f64;
            (*last, *highest) = (ran, highest.max(share));
        }
        self.at_ns = now_ns;
    }

    /// The highest share of a CPU that each had, in the order of [`Threads::of_kernel`].
    pub(crate) fn highest(&self) -> &[f64] {
        &self.highest
    }
}
