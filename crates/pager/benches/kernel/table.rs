//! Rows as they come, and medians of them.

use std::fmt::Write as _;

use super::load::Figures;
use super::options::Faults;

pub const HEADER: &str = "\
row                          system  accesses/s  misses  pages read  CPU us/read  p50 us  p99 us  in place MiB";

/// Figures of the rows of one name.
#[derive(Default)]
struct Row {
    name: String,
    kernel: Vec<Figures>,
    pager: Vec<Figures>,
}

#[derive(Default)]
pub struct Table(Vec<Row>);

impl Table {
    /// Takes note of a round, and prints it.
    pub fn add(&mut self, name: &str, round: usize, kernel: Option<Figures>, pagers: &[(Faults, Figures)]) {
        let kernel_line = kernel.map(|f| ("kernel", f));
        let pager_lines = pagers.iter().map(|&(faults, f)| (faults.name(), f));
        for (system, f) in kernel_line.into_iter().chain(pager_lines) {
            println!(
                "{name:28} {system:7} {:>10.0} {:>6.2}% {:>10.2}% {:>12.1} {:>7.1} {:>7.1} {:>13.1}",
                f.per_second,
                f.miss_share * 100.0,
                f.read_share * 100.0,
                f.cpu_us_per_read,
                f.p50_us,
                f.p99_us,
                f.in_place_bytes as f64 / f64::from(1 << 20)
            );
        }
        if round == 0 {
            let rows = pagers.iter().map(|(faults, _)| format!("{name}, {}", faults.name()));
            self.0.extend(rows.map(|name| Row { name, ..Row::default() }));
        }
        let first = self.0.len() - pagers.len();
        for (row, &(_, pager)) in self.0[first..].iter_mut().zip(pagers) {
            row.kernel.extend(kernel);
            row.pager.push(pager);
        }
    }

    /// The medians. Speed is the median of the ratios of rows that were run one after the other.
    pub fn markdown(&self) -> String {
        let mut out = String::from(
            "\n| row | kernel: accesses/s | misses | CPU µs/page read | p99 µs | pager: accesses/s | misses | CPU µs/page read | p99 µs \
             | speed | misses |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in &self.0 {
            _ = write!(out, "| {} ", row.name);
            for figures in [&row.kernel, &row.pager] {
                if figures.is_empty() {
                    out.push_str("| - | - | - | - ");
                    continue;
                }
                let of = |get: fn(&Figures) -> f64| median(figures.iter().map(get));
                _ = write!(
                    out,
                    "| {:.0} k | {:.2} % | {:.1} | {:.0} ",
                    of(|f| f.per_second) / 1000.0,
                    of(|f| f.miss_share) * 100.0,
                    of(|f| f.cpu_us_per_read),
                    of(|f| f.p99_us)
                );
            }
            let ratio =
                |get: fn(&Figures) -> f64| median(row.pager.iter().zip(&row.kernel).map(|(p, k)| get(p) / get(k)));
            match row.kernel.is_empty() {
                true => out.push_str("| - | - |\n"),
                false => _ = writeln!(out, "| ×{:.2} | ×{:.2} |", ratio(|f| f.per_second), ratio(|f| f.miss_share)),
            }
        }
        out
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
