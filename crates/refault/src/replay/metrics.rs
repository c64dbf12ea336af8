//! Rows as metrics.

use super::Row;
use crate::open_metrics::{MetricKind, Metrics};

/// A sample of each metric for each row.
pub fn metrics(rows: &[Row]) -> Metrics {
    let mut all = Metrics::default();
    for row in rows {
        let memory = row.memory_bytes.to_string();
        let labels = [("trace", row.trace.as_str()), ("policy", row.policy.name()), ("memory_bytes", &memory)];
        let figures: [(MetricKind, &str, &str, f64); 6] = [
            (MetricKind::Counter, "replay_accesses", "Accesses replayed.", row.accesses as f64),
            (MetricKind::Counter, "replay_misses", "Of those, misses.", row.misses as f64),
            (MetricKind::Gauge, "replay_hit_ratio", "Share of the accesses that found their page.", row.hit_rate()),
            (MetricKind::Gauge, "replay_memory_bytes", "The limit.", row.memory_bytes as f64),
            (MetricKind::Gauge, "replay_footprint_pages", "Distinct pages of the trace.", row.footprint_pages as f64),
            (MetricKind::Gauge, "replay_out_of_memory", "1: memory ran out.", f64::from(row.oom_at.is_some())),
        ];
        figures.iter().for_each(|&(kind, name, help, n)| all.add(kind, name, help, &labels, n));
        for (name, n) in row.inside.iter().flat_map(|inside| inside.counters.iter()) {
            all.add(MetricKind::Counter, name, "As in /proc/vmstat.", &labels, n as f64);
        }
        for gauge in row.inside.iter().flat_map(|inside| &inside.gauges) {
            let name = format!("replay_end_{}", gauge.name);
            all.add(
                MetricKind::Gauge,
                &name,
                "At the end, as in memory.stat, in pages unless the name says otherwise.",
                &labels,
                gauge.value as f64,
            );
        }
    }
    all
}
