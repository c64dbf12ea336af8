//! A recording while it records: the file by which `refault top` finds it.

use super::RecordArgs;
use crate::Failure;
use crate::live::{self, LiveFile};
use refault::open_metrics::{MetricKind, Metrics};
use refault_record::RecordProgress;
use std::time::{Duration, Instant};

/// From one writing to the next.
const EVERY: Duration = Duration::from_secs(1);

/// State of a recording, told once a second.
pub(super) struct Live {
    file: LiveFile,
    command: String,
    output: String,
    told: Instant,
}

impl Live {
    pub(super) fn new(args: &RecordArgs) -> Result<Live, Failure> {
        let (command, output) = (live::shown(&args.command), args.output().display().to_string());
        Ok(Live { file: LiveFile::new()?, command, output, told: Instant::now() })
    }

    pub(super) fn tell(&mut self, now: &RecordProgress) {
        let Some(file) = self.file.path().filter(|_| self.told.elapsed() >= EVERY) else { return };
        self.told = Instant::now();
        // The recording goes on for want of a file; the next second may be better.
        _ = crate::page::write_metrics(file, &self.metrics(now));
    }

    fn metrics(&self, now: &RecordProgress) -> Metrics {
        let mut all = Metrics::default();
        let about = [("command", &*self.command), ("version", env!("CARGO_PKG_VERSION")), ("output", &*self.output)];
        all.add(MetricKind::Gauge, "record_info", "What is recorded.", &about, 1.0);
        all.add(MetricKind::Gauge, "record_wall_seconds", "Since the start.", &[], now.seconds);
        all.add(MetricKind::Gauge, "record_files", "Files that were accessed.", &[], f64::from(now.objects));
        let counters: [(&str, &str, f64); 5] = [
            ("record_events", "Events of the kernel.", now.events as f64),
            ("record_lost", "Events that were lost.", now.lost as f64),
            ("record_accesses", "Accesses.", now.accesses as f64),
            ("record_misses", "Of those, misses of the kernel.", now.misses as f64),
            ("record_bytes", "Bytes written.", now.bytes as f64),
        ];
        counters.iter().for_each(|&(name, help, n)| all.add(MetricKind::Counter, name, help, &[], n));
        all
    }
}
