//! Target that must be met: `some.avg60<1%`, `p99<5ms`, `hit_rate>99%`.

use crate::memory_size::{Size, human};
use crate::words::{duration, number};
use refault_mm::Policy;
use std::fmt;
use std::str::FromStr;

/// Quantity that is measured of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Pressure: some or full (0, 1), and the average of 10, 60 or 300 s (0, 1, 2); none: the share
    /// of the whole run.
    Pressure(usize, Option<usize>),
    /// `workingset_refault_*` a second.
    RefaultsPerS,
    /// `workingset_refault_*` an access.
    RefaultsPerAccess,
    /// `pswpin` a second.
    SwapInsPerS,
    /// `pswpin` an access.
    SwapInsPerAccess,
    /// Hits of all accesses.
    HitRate,
    /// Accesses that missed.
    Misses,
    /// Bytes read from disks, of a recording.
    ReadBytes,
    /// The same a second.
    ReadBytesPerS,
    /// Requests to read a second, of a recording.
    ReadsPerS,
    /// Operations a second.
    OpsPerS,
    /// Quantile of the latency of operations: this many of 1000 are no longer.
    Latency(u32),
}

/// In which unit a metric is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// `1%`; without the sign it would be guessed at, as the kernel prints none.
    Percent,
    /// `99%` or `0.99`.
    Share,
    /// `100`, `1.5k`.
    Number,
    /// `5ms`.
    Time,
    /// `10M`.
    Bytes,
}

const NAMES: [(&str, Metric); 23] = [
    ("some.avg10", Metric::Pressure(0, Some(0))),
    ("some.avg60", Metric::Pressure(0, Some(1))),
    ("some.avg300", Metric::Pressure(0, Some(2))),
    ("some", Metric::Pressure(0, None)),
    ("full.avg10", Metric::Pressure(1, Some(0))),
    ("full.avg60", Metric::Pressure(1, Some(1))),
    ("full.avg300", Metric::Pressure(1, Some(2))),
    ("full", Metric::Pressure(1, None)),
    ("refaults_per_s", Metric::RefaultsPerS),
    ("refaults_per_access", Metric::RefaultsPerAccess),
    ("swap_ins_per_s", Metric::SwapInsPerS),
    ("swap_ins_per_access", Metric::SwapInsPerAccess),
    ("hit_rate", Metric::HitRate),
    ("misses", Metric::Misses),
    ("read_bytes", Metric::ReadBytes),
    ("read_bytes_per_s", Metric::ReadBytesPerS),
    ("reads_per_s", Metric::ReadsPerS),
    ("ops_per_s", Metric::OpsPerS),
    ("p50", Metric::Latency(500)),
    ("p90", Metric::Latency(900)),
    ("p99", Metric::Latency(990)),
    ("p999", Metric::Latency(999)),
    ("max_latency", Metric::Latency(1000)),
];

impl Metric {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name)
    }

    /// The metric of that name.
    ///
    /// # Errors
    /// The name is not a metric's.
    pub fn named(name: &str) -> Result<Metric, String> {
        let found = NAMES.iter().find(|(known, _)| *known == name).map(|&(_, metric)| metric);
        found.ok_or_else(|| format!("{name:?} is not a metric; known are {}", Metric::names(|_| true)))
    }

    /// All names that some condition holds for.
    pub(super) fn names(which: impl Fn(Metric) -> bool) -> String {
        let names: Vec<_> = NAMES.iter().filter(|(_, metric)| which(*metric)).map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Whether more memory is expected to make it larger.
    pub fn grows(self) -> bool {
        matches!(self, Metric::HitRate | Metric::OpsPerS)
    }

    /// Whether it needs operations that were measured.
    pub(super) fn needs_operations(self) -> bool {
        !matches!(self, Metric::Pressure(..) | Metric::RefaultsPerS | Metric::SwapInsPerS)
    }

    /// An error if a policy does not count it: 0 of it would be an answer to nothing.
    pub(super) fn check_counted(self, policy: Policy) -> Result<(), String> {
        match (self, policy) {
            (Metric::RefaultsPerS | Metric::RefaultsPerAccess, Policy::LruNone) => Err(format!(
                "--target {}: {policy} keeps no shadows and counts no refaults; name another --policy, or ask for \
                 hit_rate or misses",
                self.name()
            )),
            _ => Ok(()),
        }
    }

    /// Whether it is something a second.
    pub fn is_per_second(self) -> bool {
        matches!(self, Metric::RefaultsPerS | Metric::SwapInsPerS | Metric::ReadBytesPerS | Metric::ReadsPerS)
    }

    /// Whether it is of reads from disks, which are known of recordings.
    pub(super) fn is_of_disks(self) -> bool {
        matches!(self, Metric::ReadBytes | Metric::ReadBytesPerS | Metric::ReadsPerS)
    }

    /// Whether devices and CPUs that take time are needed for it.
    pub fn needs_machine(self) -> bool {
        matches!(self, Metric::Pressure(..) | Metric::OpsPerS | Metric::Latency(_))
    }

    /// Exact quantity that is compared, for people.
    pub fn about(self) -> &'static str {
        match self {
            Metric::Pressure(_, Some(_)) => "the highest of the run",
            Metric::Pressure(_, None) => "of the whole run",
            Metric::RefaultsPerS | Metric::SwapInsPerS => "of the whole run",
            Metric::ReadBytes | Metric::ReadBytesPerS | Metric::ReadsPerS => "from disks, of the whole run",
            Metric::RefaultsPerAccess | Metric::SwapInsPerAccess => "of all measured accesses",
            Metric::HitRate | Metric::Misses => "of all measured accesses",
            Metric::OpsPerS | Metric::Latency(_) => "of all measured operations",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Metric::Pressure(..) => Unit::Percent,
            Metric::HitRate | Metric::RefaultsPerAccess | Metric::SwapInsPerAccess => Unit::Share,
            Metric::RefaultsPerS | Metric::SwapInsPerS | Metric::OpsPerS => Unit::Number,
            Metric::Misses | Metric::ReadsPerS => Unit::Number,
            Metric::ReadBytes | Metric::ReadBytesPerS => Unit::Bytes,
            Metric::Latency(_) => Unit::Time,
        }
    }

    /// A value as people read it. Pressure is in percent, shares are 0 to 1, times in nanoseconds.
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::Percent => format!("{value:.2}%"),
            Unit::Share => format!("{:.2}%", 100.0 * value),
            Unit::Number => number(value),
            Unit::Time => duration(value as u64),
            Unit::Bytes => human(value as u64),
        }
    }
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// A metric and what it must be.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricTarget {
    text: String,
    metric: Metric,
    comparison: Comparison,
    bound: f64,
}

impl MetricTarget {
    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The value that decides, in the unit of [`Metric::show`].
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Whether a value meets it.
    pub fn is_met(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Below => value < self.bound,
            Comparison::AtMost => value <= self.bound,
            Comparison::Above => value > self.bound,
            Comparison::AtLeast => value >= self.bound,
        }
    }
}

impl MetricTarget {
    /// One that nobody asked for: no misses at all.
    pub(super) fn none() -> MetricTarget {
        MetricTarget {
            text: "misses<=0".to_owned(),
            metric: Metric::Misses,
            comparison: Comparison::AtMost,
            bound: 0.0,
        }
    }
}

impl fmt::Display for MetricTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for MetricTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricTarget, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let wrong = || format!("{text:?} is not a target; write some.avg60<1%, p99<5ms or hit_rate>99%");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let (comparison, value) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(value), _) => (Comparison::AtMost, value),
            (_, Some(value)) => (Comparison::AtLeast, value),
            _ if rest.starts_with('<') => (Comparison::Below, &rest[1..]),
            _ => (Comparison::Above, &rest[1..]),
        };
        let metric = Metric::named(name).map_err(|e| format!("{text:?}: {e}"))?;
        let upwards = matches!(comparison, Comparison::Above | Comparison::AtLeast);
        if upwards != metric.grows() {
            let (way, sign) = if metric.grows() { ("grows", '>') } else { ("falls", '<') };
            return Err(format!(
                "{text:?}: {name} {way} with memory, so that the smallest limit is asked for with {sign}"
            ));
        }
        let bound = value_of(metric.unit(), value).map_err(|what| format!("{text:?}: {what}"))?;
        Ok(MetricTarget { text, metric, comparison, bound })
    }
}

fn value_of(unit: Unit, text: &str) -> Result<f64, String> {
    let plain = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let percent = || text.strip_suffix('%').and_then(plain).filter(|n| *n <= 100.0);
    match unit {
        Unit::Percent => percent().ok_or_else(|| format!("{text:?} is not a share of time; write 1%")),
        Unit::Share => {
            let share = percent().map(|n| n / 100.0).or_else(|| plain(text).filter(|n| *n <= 1.0));
            share.ok_or_else(|| format!("{text:?} is not a share; write 99% or 0.99"))
        }
        Unit::Number => {
            let (digits, factor) = match text.strip_suffix(['k', 'K']) {
                Some(digits) => (digits, 1e3),
                None => (text.strip_suffix('M').unwrap_or(text), if text.ends_with('M') { 1e6 } else { 1.0 }),
            };
            let number = plain(digits).map(|n| n * factor);
            number.ok_or_else(|| format!("{text:?} is not a number; write 100 or 1.5k"))
        }
        // Bytes are pages of one byte.
        Unit::Bytes => match Size::absolute(text) {
            Ok(size) if !text.ends_with(['p', 'P']) => Ok(size.pages(1, 0) as f64),
            _ => Err(format!("{text:?} is not a number of bytes; write 10M or 1.5G")),
        },
        Unit::Time => {
            let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let (digits, unit) = text.split_at(unit_at);
            let ns = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)].into_iter().find(|(name, _)| *name == unit);
            let time = ns.and_then(|(_, ns)| plain(digits).map(|n| n * ns));
            time.ok_or_else(|| format!("{text:?} is not a time; write 500us, 5ms or 1s"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_and_a_target() {
        for (name, metric) in NAMES {
            assert_eq!(metric.name(), name);
            let sign = if metric.grows() { '>' } else { '<' };
            let value = match metric.unit() {
                Unit::Percent | Unit::Share => "5%",
                Unit::Number => "5",
                Unit::Time => "5us",
                Unit::Bytes => "5M",
            };
            let target: MetricTarget = format!("{name}{sign}{value}").parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(target.metric(), metric);
        }
    }

    #[test]
    fn values_have_units() {
        for (text, bound) in [
            ("some.avg60<1%", 1.0),
            ("full <= 0.5%", 0.5),
            ("hit_rate>99%", 0.99),
            ("hit_rate>=0.995", 0.995),
            ("refaults_per_access<0.1%", 0.001),
            ("refaults_per_s<100", 100.0),
            ("ops_per_s>1.5k", 1500.0),
            ("ops_per_s>2M", 2e6),
            ("misses<10k", 1e4),
            ("read_bytes_per_s<10M", 10_485_760.0),
            ("read_bytes<=1.5GiB", 1_610_612_736.0),
            ("p99<5ms", 5e6),
            ("p999<=1.5s", 1.5e9),
        ] {
            let target: MetricTarget = text.parse().unwrap_or_else(|e| panic!("{e}"));
            assert!((target.bound() - bound).abs() < 1e-9 * bound.max(1.0), "{text}: {}", target.bound());
        }
    }

    #[test]
    fn bounds_are_in_or_out() {
        let met = |text: &str, value| text.parse::<MetricTarget>().unwrap_or_else(|e| panic!("{e}")).is_met(value);
        assert!(!met("some<1%", 1.0) && met("some<=1%", 1.0) && met("some<1%", 0.99));
        assert!(!met("hit_rate>50%", 0.5) && met("hit_rate>=50%", 0.5) && met("hit_rate>50%", 0.51));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("some.avg60", "is not a target"),
            ("some.avg5<1%", "\"some.avg5\" is not a metric; known are some.avg10, some.avg60"),
            ("some.avg60<1", "not a share of time; write 1%"),
            ("some.avg60<101%", "not a share of time"),
            ("some.avg60>1%", "falls with memory, so that the smallest limit is asked for with <"),
            ("hit_rate<99%", "grows with memory, so that the smallest limit is asked for with >"),
            ("hit_rate>99", "not a share; write 99% or 0.99"),
            ("read_bytes<5p", "not a number of bytes; write 10M"),
            ("read_bytes<5%", "not a number of bytes"),
            ("read_bytes_per_s>5M", "falls with memory"),
            ("p99<5", "not a time"),
            ("p99<-5ms", "not a time"),
            ("p99<5min", "not a time"),
            ("ops_per_s>nan", "not a number"),
            ("ops_per_s>", "not a number"),
            ("", "is not a target"),
            ("<", "\"\" is not a metric"),
        ] {
            let error = text.parse::<MetricTarget>().expect_err(text);
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
