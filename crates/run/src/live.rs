//! A run while it runs: `--metrics`, and the file by which `refault top` finds it.

use crate::args::RunArgs;
use refault::open_metrics::{MetricKind, Metrics};
use refault_cli::Failure;
use refault_cli::api::write_metrics;
use refault_cli::live::{self, LiveFile};
use refault_pager::tree::{Live, ProcessWatch};
use refault_trace::AtomicFile;
use std::path::Path;
use std::sync::{Arc, Mutex};

const PAGE: f64 = 4096.0;

/// A run that tells how it goes.
pub(crate) struct LiveReport {
    /// The file by which `refault top` finds it; it is to be gone at the end.
    _file: LiveFile,
    /// Why `--metrics` could not be written the last time.
    failed: Arc<Mutex<Option<String>>>,
}

impl LiveReport {
    /// An error if `--metrics` has not what the run came to.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.failed.lock().ok().and_then(|mut failed| failed.take()) {
            Some(why) => Err(format!("--metrics {why}").into()),
            None => Ok(()),
        }
    }
}

/// Metrics, written once a second. A name that cannot be written is known before the program runs.
pub(crate) fn start(args: &RunArgs) -> Result<(ProcessWatch, LiveReport), Failure> {
    if let Some(path) = &args.metrics {
        drop(AtomicFile::create(path).map_err(|e| format!("--metrics {e}"))?);
    }
    let file = LiveFile::new()?;
    let (to_read, to_top) = (args.metrics.clone(), file.path().map(Path::to_owned));
    // Nobody else reads the file of `top`.
    let (said, all) = (args.said_words().join(" "), live::shown(&args.command));
    let failed = Arc::new(Mutex::new(None));
    let last = Arc::clone(&failed);
    let watch = move |live: &Live| {
        // The program is not to fail for want of a file; the next second may be better.
        if let Some(path) = &to_top {
            _ = write_metrics(path, &metrics(live, &all));
        }
        if let Some(path) = &to_read {
            let why = write_metrics(path, &metrics(live, &said)).err().map(|e| e.to_string());
            if let Ok(mut last) = last.lock() {
                *last = why;
            }
        }
    };
    Ok((Box::new(watch), LiveReport { _file: file, failed }))
}

fn metrics(live: &Live, command: &str) -> Metrics {
    let mut all = Metrics::default();
    let (s, c) = (&live.stats, &live.stats.counts);
    all.add(
        MetricKind::Gauge,
        "run_info",
        "The program.",
        &[("command", command), ("version", env!("CARGO_PKG_VERSION"))],
        1.0,
    );
    let gauges: [(&str, &str, f64); 13] = [
        ("run_wall_seconds", "Since the start.", live.wall.as_secs_f64()),
        ("run_memory_max_bytes", "The limit.", s.max_pages as f64 * PAGE),
        ("run_memory_bytes", "Counted against the limit.", s.memory_pages as f64 * PAGE),
        ("run_memory_peak_bytes", "The most of that.", s.peak_pages as f64 * PAGE),
        ("run_pool_bytes", "What the stores take of memory.", s.area.usage.memory_bytes as f64),
        ("run_pool_limit_bytes", "What the pool may take.", s.area.usage.pool_limit_bytes as f64),
        ("run_pool_pages", "Pages in the pool.", s.area.usage.pool_pages as f64),
        ("run_manager_bytes", "Tables, stacks and buffers of the pager.", s.own_bytes as f64),
        ("run_swap_bytes", "Out of memory, before compression.", live.swap_pages as f64 * PAGE),
        ("run_swap_max_bytes", "What may be.", live.swap_max_pages as f64 * PAGE),
        ("run_swap_file_bytes", "In the swap file.", s.area.usage.file_pages as f64 * PAGE),
        ("run_processes", "Processes that are served.", live.pids.len() as f64),
        ("run_stall_threads_seconds", "Waiting for pages, summed over threads.", s.stall_ns as f64 / 1e9),
    ];
    gauges.iter().for_each(|&(name, help, n)| all.add(MetricKind::Gauge, name, help, &[], n));
    let counters: [(&str, &str, f64); 9] = [
        ("run_faults", "Faults served.", c.faults as f64),
        ("run_first_touches", "Of those, on pages never touched before.", c.first_touches as f64),
        ("run_swapped_in_pages", "Pages read back.", c.swapped_in as f64),
        ("run_swapped_out_pages", "Pages written.", c.swapped_out as f64),
        ("run_rescued_pages", "Pages touched on their way out.", c.rescued as f64),
        ("run_throttled", "Faults that memory.high made wait.", c.throttled as f64),
        ("run_pressure_some_seconds", "Time in which some thread waited.", s.stall_some_us as f64 / 1e6),
        ("run_pressure_full_seconds", "Time in which nobody worked instead.", s.stall_full_us as f64 / 1e6),
        ("run_errors", "Reads and writes of the stores that failed.", (c.read_errors + c.write_errors) as f64),
    ];
    counters.iter().for_each(|&(name, help, n)| all.add(MetricKind::Counter, name, help, &[], n));
    for (name, n) in &s.vmstat {
        all.add(MetricKind::Counter, name, "As in /proc/vmstat.", &[], *n as f64);
    }
    for gauge in &live.gauges {
        all.add(
            MetricKind::Gauge,
            "run_list_pages",
            "Sizes of the engine's lists and more, as in memory.stat.",
            &[("list", gauge.name)],
            gauge.value as f64,
        );
    }
    for (seq, pages) in generations(&live.lru_gen) {
        all.add(MetricKind::Gauge, "run_generation_pages", "Pages of a generation.", &[("seq", &seq)], pages as f64);
    }
    for pid in &live.pids {
        all.add(MetricKind::Gauge, "run_process", "A process that is served.", &[("pid", &pid.to_string())], 1.0);
    }
    all
}

/// The generations of the group of the run: number and pages.
fn generations(lru_gen: &str) -> Vec<(String, u64)> {
    let of_group = lru_gen.lines().skip_while(|line| !(line.starts_with("memcg") && line.ends_with("/run"))).skip(1);
    let lines = of_group.take_while(|line| !line.starts_with("memcg"));
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [seq, _, anon, file] = words[..] else { return None };
        Some((seq.to_owned(), anon.parse::<u64>().ok()? + file.parse::<u64>().ok()?))
    };
    lines.filter_map(one).collect()
}
