//! Numbers of a watcher for Prometheus.

use crate::advice::CurveTrust;
use crate::group::PERCENT;
use crate::host::HostCounts;
use crate::watched::GroupReport;
use refault::open_metrics::{MetricKind, Metrics};

/// The text of OpenMetrics: a bounded number of samples for each group.
pub fn metrics(groups: &[GroupReport], counts: &HostCounts) -> String {
    let mut all = Metrics::default();
    all.add(MetricKind::Counter, "watch_events", "Events of the kernel.", &[], counts.events as f64);
    all.add(MetricKind::Counter, "watch_lost", "Events that were lost.", &[], counts.lost as f64);
    all.add(MetricKind::Counter, "watch_unwatched", "Events of groups beyond --groups.", &[], counts.unwatched as f64);
    all.add(MetricKind::Gauge, "watch_groups", "Groups that are watched.", &[], counts.groups as f64);
    all.add(MetricKind::Gauge, "watch_engine_bytes", "Memory of engines.", &[], counts.engine_bytes as f64);
    all.add(
        MetricKind::Gauge,
        "watch_one_in",
        "Pages that a page of the sample stands for.",
        &[],
        counts.one_in as f64,
    );
    all.add(MetricKind::Counter, "watch_rate_changes", "Changes of the rate.", &[], counts.rate_changes as f64);
    all.add(MetricKind::Gauge, "watch_cpu_ratio", "Share of one CPU that it takes.", &[], counts.taken.cpu);
    all.add(MetricKind::Gauge, "watch_resident_bytes", "Its memory.", &[], counts.taken.memory_bytes as f64);
    groups.iter().for_each(|group| add(&mut all, group));
    all.text()
}

fn add(all: &mut Metrics, group: &GroupReport) {
    let mut gauge = |name: &str, help: &str, labels: &[(&str, &str)], value: f64| {
        let mut own = vec![("group", group.path.as_str())];
        own.extend(group.name.as_deref().map(|name| ("name", name)));
        let labels = [&own, labels].concat();
        all.add(MetricKind::Gauge, &format!("watch_group_{name}"), help, &labels, value);
    };
    let figures = &group.figures;
    gauge("usage_bytes", "Memory that the group is charged for.", &[], figures.usage_bytes as f64);
    gauge("file_bytes", "Pages of files.", &[], figures.file_bytes as f64);
    if let Some(limit) = figures.limit_bytes {
        gauge("limit_bytes", "The least limit that holds for it.", &[], limit as f64);
    }
    if let Some(rate) = group.hit_rate_now {
        gauge("kernel_hit_ratio", "Touches that meet their page in memory, now.", &[], rate);
    }
    gauge("kernel_read_bytes_per_second", "Read from disks, now.", &[], group.read_bytes_per_s_now);
    let trust = group.advice.trust;
    gauge("trust", "0: not yet, 1: low, 2: good.", &[], f64::from(trust as u8));
    if trust == CurveTrust::NotYet {
        return;
    }
    for (percent, point) in PERCENT.iter().zip(&group.curve.points).filter(|(_, point)| point.fits) {
        let size = [("percent", &*percent.to_string())];
        gauge("size_bytes", "A size of the curve, in percent of the limit.", &size, point.bytes as f64);
        gauge("hit_ratio", "Hit rate in that size.", &size, point.hit_rate);
        gauge("hit_error_ratio", "Standard error of it.", &size, point.error.unwrap_or(0.0));
        gauge("read_bytes_per_second", "Read from disks in that size.", &size, point.read_bytes_per_s);
    }
    if let Some(smallest) = group.advice.smallest {
        let help = "Smallest limit at which misses grow by no more than --growth.";
        let bounds = [("low", smallest.low_bytes), ("best", smallest.bytes), ("high", smallest.high_bytes)];
        bounds.iter().for_each(|(bound, bytes)| gauge("smallest_bytes", help, &[("bound", bound)], *bytes as f64));
    }
}
