//! CPU time: who had it.

/// CPU time of the whole run.
#[derive(Clone, Debug)]
pub struct CpuResult {
    /// CPUs of the machine.
    pub cpus: u32,
    /// Threads of the kernel: kswapd of each node, the flusher, the worker of zswap.
    pub kthreads: Vec<KthreadResult>,
    /// CPU seconds of all tasks, in all phases, with context switches.
    pub tasks_seconds: f64,
    /// Part of `tasks_seconds` that is direct reclaim.
    pub direct_reclaim_seconds: f64,
    /// CPU seconds of all threads, those of events included.
    pub busy_seconds: f64,
}

/// A thread of the kernel.
#[derive(Clone, Debug)]
pub struct KthreadResult {
    /// Its name, as `ps` shows it.
    pub name: String,
    /// CPU time of the thread, in seconds.
    pub seconds: f64,
    /// CPU time in percent of one CPU over the run, as `top` has it.
    pub percent: f64,
    /// Highest such percentage between two samples of the time series.
    pub highest_percent: f64,
}

impl CpuResult {
    /// Names of the numbers of the whole, without those of single threads.
    pub const METRICS: [&str; 3] = ["tasks_seconds", "direct_reclaim_seconds", "busy_seconds"];
    /// The names of the numbers of a thread of the kernel.
    pub const THREAD_METRICS: [&str; 3] = ["seconds", "percent", "highest_percent"];

    /// One of its numbers: `kswapd0.seconds`.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        if let Some((thread, what)) = name.rsplit_once('.') {
            return self.kthreads.iter().find(|k| k.name == thread)?.metric(what);
        }
        Some(match name {
            "tasks_seconds" => self.tasks_seconds,
            "direct_reclaim_seconds" => self.direct_reclaim_seconds,
            "busy_seconds" => self.busy_seconds,
            _ => return None,
        })
    }

    /// CPU time of kswapd, of all nodes.
    pub fn kswapd_seconds(&self) -> f64 {
        self.kthreads.iter().filter(|k| k.name.starts_with("kswapd")).map(|k| k.seconds).sum()
    }
}

impl KthreadResult {
    fn metric(&self, name: &str) -> Option<f64> {
        Some(match name {
            "seconds" => self.seconds,
            "percent" => self.percent,
            "highest_percent" => self.highest_percent,
            _ => return None,
        })
    }
}
