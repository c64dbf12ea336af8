//! Measures of a run: how long things took, and how values moved in virtual time. Both take bounded
//! memory.

use std::fmt::Write;

use hdrhistogram::Histogram;

/// The longest latency that is recorded as it is: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;

/// The distribution of a latency, in nanoseconds, to three digits. Values below 1 ns count as 1 ns,
/// values above an hour as an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// Nothing recorded.
    pub fn new() -> Latency {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Latency { histogram: histogram.expect("the bounds are constants in the range of the library") }
    }

    /// Records one latency.
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Records `count` equal latencies.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns.clamp(1, LONGEST_NS), count);
    }

    /// Adds all latencies that `other` recorded.
    pub fn merge(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
    }

    /// Number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean; 0 if nothing was recorded.
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// The longest latency, rounded up to three digits; 0 if nothing was recorded.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max().min(LONGEST_NS)
    }

    /// The latency that this share (0 to 1) of all latencies does not exceed; 0 if nothing was
    /// recorded.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share).min(LONGEST_NS)
    }

    /// The median.
    pub fn p50_ns(&self) -> u64 {
        self.quantile_ns(0.5)
    }

    /// Latency that nine of ten do not exceed.
    pub fn p90_ns(&self) -> u64 {
        self.quantile_ns(0.9)
    }

    /// Latency that 99 of a hundred do not exceed.
    pub fn p99_ns(&self) -> u64 {
        self.quantile_ns(0.99)
    }

    /// Latency that 999 of a thousand do not exceed.
    pub fn p999_ns(&self) -> u64 {
        self.quantile_ns(0.999)
    }
}

/// Equal latencies in a row: most of a task are, and a histogram takes them together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EqualLatencies {
    ns: u64,
    count: u64,
}

impl EqualLatencies {
    /// Counts `count` more of one latency. Returns the row before, and how many it was, if this
    /// ends it.
    #[inline]
    pub(crate) fn push(&mut self, ns: u64, count: u64) -> Option<(u64, u64)> {
        if ns == self.ns {
            self.count += count;
            return None;
        }
        std::mem::replace(self, EqualLatencies { ns, count }).get()
    }

    /// The row, unless it is empty.
    pub(crate) fn get(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.ns, self.count))
    }
}

/// A distribution to which one latency after the other is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyRecorder {
    /// Without the latest row.
    earlier: Latency,
    latest: EqualLatencies,
}

impl LatencyRecorder {
    /// Records `count` equal latencies.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64, count: u64) {
        if let Some((ns, count)) = self.latest.push(ns, count) {
            self.earlier.record_many(ns, count);
        }
    }

    /// Adds all latencies to `sum`.
    pub(crate) fn add_to(&self, sum: &mut Latency) {
        sum.merge(&self.earlier);
        if let Some((ns, count)) = self.latest.get() {
            sum.record_many(ns, count);
        }
    }
}

/// Figures of a distribution that are asked for most, in nanoseconds: a few bytes instead of its
/// histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// Latency that nine of ten do not exceed.
    pub p90_ns: u64,
    /// Latency that 99 of a hundred do not exceed.
    pub p99_ns: u64,
    /// Latency that 999 of a thousand do not exceed.
    pub p999_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
}

impl From<&Latency> for Quantiles {
    fn from(of: &Latency) -> Quantiles {
        Quantiles {
            mean_ns: of.mean_ns(),
            p50_ns: of.p50_ns(),
            p90_ns: of.p90_ns(),
            p99_ns: of.p99_ns(),
            p999_ns: of.p999_ns(),
            max_ns: of.max_ns(),
        }
    }
}

/// Values of named columns over virtual time.
///
/// Rows are pushed at any times that do not go back. When there are more rows than the limit, every
/// second row is dropped, and from then on only every second pushed row is kept, and so on: kept
/// rows are always those whose number, counted from 0, is a multiple of a power of two. So the kept
/// rows depend only on the pushed rows. Columns that count up stay right, since a row holds values
/// and not changes.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    columns: Vec<String>,
    limit: usize,
    /// Pushed rows of which one is kept.
    stride: u64,
    pushed: u64,
    times_ns: Vec<u64>,
    /// Row after row.
    values: Vec<f64>,
    /// The last row that was pushed, if it is not kept: a series ends where the run ended.
    last: Option<(u64, Vec<f64>)>,
}

impl MetricSeries {
    /// Rows that a series keeps unless it is told otherwise.
    pub const LIMIT: usize = 4096;

    /// An empty series that keeps at most [`MetricSeries::LIMIT`] rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> MetricSeries {
        Self::with_limit(columns, Self::LIMIT)
    }

    /// An empty series that keeps at most `limit` rows (at least 2), and the last row that was
    /// pushed.
    pub fn with_limit<S: Into<String>>(columns: impl IntoIterator<Item = S>, limit: usize) -> MetricSeries {
        MetricSeries {
            columns: columns.into_iter().map(Into::into).collect(),
            limit: limit.max(2),
            stride: 1,
            pushed: 0,
            times_ns: Vec::new(),
            values: Vec::new(),
            last: None,
        }
    }

    /// The names of the columns, without the time.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Adds a row. A time before that of the last row counts as that one, and a row of the same
    /// time takes the place of the last one.
    ///
    /// # Panics
    /// If there are more or fewer values than columns.
    pub fn push(&mut self, now_ns: u64, row: &[f64]) {
        assert_eq!(row.len(), self.columns.len(), "a row has one value a column");
        if let Some(last_ns) = self.last_ns().filter(|&last_ns| now_ns <= last_ns) {
            return self.replace_last(last_ns, row);
        }
        let kept = self.pushed.is_multiple_of(self.stride);
        self.pushed += 1;
        if !kept {
            self.last = Some((now_ns, row.to_vec()));
            return;
        }
        self.last = None;
        self.times_ns.push(now_ns);
        self.values.extend_from_slice(row);
        if self.times_ns.len() > self.limit {
            self.halve();
        }
    }

    fn replace_last(&mut self, last_ns: u64, row: &[f64]) {
        if self.last.is_some() {
            self.last = Some((last_ns, row.to_vec()));
            return;
        }
        let from = self.values.len() - row.len();
        self.values[from..].copy_from_slice(row);
    }

    /// The rows that are left, in the order of time, with the last one that was pushed.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64])> {
        let width = self.columns.len();
        let row = move |index: usize| &self.values[index * width..(index + 1) * width];
        let kept = self.times_ns.iter().enumerate().map(move |(index, &at)| (at, row(index)));
        kept.chain(self.last.iter().map(|(at, row)| (*at, row.as_slice())))
    }

    /// Number of rows in [`MetricSeries::rows`].
    pub fn len(&self) -> usize {
        self.times_ns.len() + usize::from(self.last.is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }

    /// The `mean`, `min` or `max` of a column over the rows that are left. None: no such column, no
    /// such fold, or no rows.
    pub fn fold(&self, column: &str, fold: &str) -> Option<f64> {
        let at = self.columns.iter().position(|c| c == column)?;
        let all: Vec<f64> = self.rows().map(|(_, row)| row[at]).collect();
        match fold {
            "mean" => (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64),
            "min" => all.into_iter().reduce(f64::min),
            "max" => all.into_iter().reduce(f64::max),
            _ => None,
        }
    }

    /// The rows as comma-separated values, with a head. The first column, `seconds`, is the time;
    /// it has nine decimals.
    pub fn csv(&self) -> String {
        let mut text = String::from("seconds");
        for column in &self.columns {
            text.push(',');
            text.push_str(&quoted(column));
        }
        text.push('\n');
        for (at, row) in self.rows() {
            let _ = write!(text, "{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
            for value in row {
                let _ = write!(text, ",{value}");
            }
            text.push('\n');
        }
        text
    }

    fn last_ns(&self) -> Option<u64> {
        self.last.as_ref().map(|last| last.0).or(self.times_ns.last().copied())
    }

    /// Keeps every second row, and of the rows to come half as many.
    fn halve(&mut self) {
        let width = self.columns.len();
        let rows = self.times_ns.len();
        // The newest row may be dropped here; it stays as `last` until the next row is pushed.
        if rows.is_multiple_of(2) {
            self.last = Some((self.times_ns[rows - 1], self.values[(rows - 1) * width..].to_vec()));
        }
        for (to, from) in (0..rows).step_by(2).enumerate() {
            self.times_ns[to] = self.times_ns[from];
            self.values.copy_within(from * width..(from + 1) * width, to * width);
        }
        let kept = rows.div_ceil(2);
        self.times_ns.truncate(kept);
        self.values.truncate(kept * width);
        self.stride *= 2;
    }
}

/// A field of a CSV file (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut latency = Latency::new();
        for ns in 1..=100_000u64 {
            latency.record(ns * 10);
        }
        let close = |measured: u64, expected: u64| measured.abs_diff(expected) * 1000 <= expected;
        assert!(close(latency.p50_ns(), 500_000) && close(latency.p90_ns(), 900_000));
        assert!(close(latency.p99_ns(), 990_000) && close(latency.p999_ns(), 999_000));
        assert!(close(latency.max_ns(), 1_000_000) && close(latency.mean_ns() as u64, 500_005));
        assert_eq!(latency.count(), 100_000);
    }

    #[test]
    fn nothing_recorded_is_zero() {
        let latency = Latency::new();
        assert_eq!((latency.count(), latency.p50_ns(), latency.p999_ns(), latency.max_ns()), (0, 0, 0, 0));
        assert_eq!(latency.mean_ns(), 0.0);
    }

    #[test]
    fn what_is_out_of_range_counts_as_the_end_of_it() {
        let mut latency = Latency::default();
        latency.record(0);
        assert_eq!(latency.max_ns(), 1);
        latency.record_many(u64::MAX, 3);
        assert_eq!((latency.count(), latency.max_ns(), latency.p90_ns()), (4, LONGEST_NS, LONGEST_NS));
    }

    #[test]
    fn a_series_is_csv() {
        let mut series = MetricSeries::new(["free", "of \"a\", b"]);
        series.push(0, &[1.0, 0.5]);
        series.push(1_500_000_000, &[2.0, 1e21]);
        assert_eq!(
            series.csv(),
            "seconds,free,\"of \"\"a\"\", b\"\n0.000000000,1,0.5\n1.500000000,2,1000000000000000000000\n"
        );
    }

    #[test]
    fn a_column_folds() {
        let mut series = MetricSeries::new(["free", "used"]);
        assert_eq!(series.fold("used", "mean"), None);
        for (at, used) in [(0, 1.0), (10, 4.0), (20, 1.0)] {
            series.push(at, &[9.0, used]);
        }
        assert_eq!(
            ["mean", "min", "max", "sum"].map(|f| series.fold("used", f)),
            [Some(2.0), Some(1.0), Some(4.0), None]
        );
        assert_eq!(series.fold("swap", "max"), None);
    }

    /// The end of a run is the time of its last sample, too: the row was there twice.
    #[test]
    fn regression_a_row_of_the_same_time_takes_the_place_of_the_last() {
        let mut series = MetricSeries::with_limit(["n"], 2);
        let rows = |series: &MetricSeries| series.rows().map(|(at, row)| (at, row[0] as u64)).collect::<Vec<_>>();
        for (at, n) in [(0, 0), (0, 1), (10, 2), (10, 3), (5, 4)] {
            series.push(at, &[f64::from(n)]);
        }
        assert_eq!(rows(&series), [(0, 1), (10, 4)]);
        for (at, n) in [(20, 5), (30, 6), (30, 7)] {
            series.push(at, &[f64::from(n)]);
        }
        assert_eq!(rows(&series), [(0, 1), (20, 5), (30, 7)], "the last one, which is not kept");
    }

    #[test]
    fn a_series_halves_its_resolution() {
        let mut series = MetricSeries::with_limit(["n"], 4);
        let ids = |series: &MetricSeries| series.rows().map(|(_, row)| row[0] as u64).collect::<Vec<_>>();
        for n in 0..4 {
            series.push(n * 10, &[n as f64]);
        }
        assert_eq!(ids(&series), [0, 1, 2, 3]);
        series.push(40, &[4.0]);
        assert_eq!(ids(&series), [0, 2, 4]);
        series.push(50, &[5.0]);
        assert_eq!(ids(&series), [0, 2, 4, 5]);
        series.push(60, &[6.0]);
        series.push(70, &[7.0]);
        series.push(80, &[8.0]);
        assert_eq!(ids(&series), [0, 4, 8]);
    }

    proptest! {
        #[test]
        fn a_merge_is_as_if_one_had_recorded_all(parts in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..50), 0..5)) {
            let (mut merged, mut whole, mut recorded) = (Latency::new(), Latency::new(), Latency::new());
            for part in &parts {
                let mut latency = Latency::new();
                let mut recorder = LatencyRecorder::default();
                for &ns in part {
                    let (ns, count) = (ns >> (ns % 64), 1 + ns % 3);
                    latency.record_many(ns, count);
                    (0..count).for_each(|_| recorder.record(ns, 1));
                    whole.record_many(ns, count);
                }
                merged.merge(&latency);
                recorder.add_to(&mut recorded);
            }
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(recorded, whole);
        }

        #[test]
        fn a_series_is_bounded_and_keeps_its_ends(limit in 0usize..20, gaps in prop::collection::vec(1u64..1000, 1..500)) {
            let mut series = MetricSeries::with_limit(["n"], limit);
            let mut now = 0;
            for (n, gap) in gaps.iter().enumerate() {
                now += gap;
                series.push(now, &[n as f64]);
                prop_assert!(series.len() <= limit.max(2) + 1);
                let rows: Vec<_> = series.rows().map(|(at, row)| (at, row[0])).collect();
                prop_assert_eq!(rows.len(), series.len());
                prop_assert_eq!(rows[0], (gaps[0], 0.0));
                prop_assert_eq!(*rows.last().unwrap(), (now, n as f64));
                prop_assert!(rows.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
                // Evenly spaced, but for the last.
                let step = rows.get(1).map_or(1.0, |row| row.1);
                prop_assert!(rows.windows(2).rev().skip(1).all(|pair| pair[1].1 - pair[0].1 == step));
            }
        }
    }
}
