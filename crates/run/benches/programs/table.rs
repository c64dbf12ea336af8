//! Rows as they come, and all of them as a table for the documentation.

use super::place::{Outcome, SYSTEMS, System};
use super::rig::Swap;

const MIB: f64 = (1 << 20) as f64;

/// Pairs of systems whose seconds are divided, the first's by the second's.
const COMPARED: [(System, System); 6] = [
    (System::Refault, System::Alone),
    (System::Refault, System::Kernel(Swap::Zram)),
    (System::Refault, System::Kernel(Swap::File)),
    (System::Refault, System::ZramCounted),
    (System::RefaultBeside, System::Kernel(Swap::Zram)),
    (System::RefaultBeside, System::Kernel(Swap::File)),
];

pub const HEADER: &str =
    "program         system        limit MiB  seconds  by alone  peak counted   seen  pages out      back";

/// Outcomes of a program under each system.
pub struct Row {
    pub name: &'static str,
    pub limit_bytes: u64,
    pub load: String,
    pub outcomes: Vec<(System, Outcome)>,
}

impl Row {
    pub fn of(&self, system: System) -> Option<&Outcome> {
        self.outcomes.iter().find(|o| o.0 == system).map(|o| &o.1)
    }

    fn seconds(&self, system: System) -> Option<f64> {
        Some(self.of(system)?.figures()?.wall_s)
    }

    /// Prints what was found last.
    pub fn print_last(&self) {
        let Some((system, outcome)) = self.outcomes.last() else { return };
        let begin = format!("{:<16}{system:<14}{:>9.1}", self.name, self.limit_bytes as f64 / MIB);
        let f = match outcome {
            Outcome::Ended(f) => f,
            Outcome::Killed => return println!("{begin}  killed by the kernel, twice"),
            Outcome::TimedOut => return println!("{begin}  did not end in time"),
            Outcome::Skipped(why) => return println!("{begin}  skipped: {}", why.trim_end()),
            Outcome::Failed(why) => return println!("{begin}  FAILED: {}", why.trim_end()),
        };
        let by_alone = self.seconds(System::Alone).map_or(String::new(), |alone| format!("x{:.1}", f.wall_s / alone));
        let of_limit = |bytes: Option<f64>| match (bytes, *system) {
            (None, _) => "-".into(),
            (Some(bytes), System::Alone) => format!("{:.0} MiB", bytes / MIB),
            (Some(bytes), _) => format!("{:.1}%", bytes / self.limit_bytes as f64 * 100.0),
        };
        println!(
            "{begin}{:>9.2}{by_alone:>10}{:>14}{:>9}{:>9}{:>10}  {}",
            f.wall_s,
            of_limit(f.taken_peak_bytes),
            of_limit(f.anon_peak_bytes.map(|b| b as f64)),
            f.pages_out,
            f.pages_back,
            f.note
        );
    }

    fn markdown(&self) -> String {
        let time = |&system: &System| match self.of(system) {
            Some(Outcome::Ended(f)) => format!("{:.2}", f.wall_s),
            Some(Outcome::Killed) => "killed".into(),
            Some(Outcome::TimedOut) => "no end".into(),
            Some(Outcome::Skipped(_)) | None => "–".into(),
            Some(Outcome::Failed(_)) => "FAILED".into(),
        };
        let times: Vec<String> = SYSTEMS.iter().map(time).collect();
        let by = |(refault, other): &(System, System)| match (self.seconds(*refault), self.seconds(*other)) {
            (Some(refault), Some(other)) => format!("×{:.1}", refault / other),
            _ => "–".into(),
        };
        let by_all: Vec<String> = COMPARED.iter().map(by).collect();
        let pages = |system: System| match self.of(system).and_then(Outcome::figures) {
            Some(f) => format!("{:.0}, {:.0}", f.pages_out / 1000.0, f.pages_back / 1000.0),
            None => "–".into(),
        };
        let pager = self.of(System::Refault).and_then(Outcome::figures);
        let share = |bytes: Option<f64>| {
            bytes.map_or("–".into(), |b| format!("{:.1} %", b / self.limit_bytes as f64 * 100.0))
        };
        let alone = self.of(System::Alone).and_then(Outcome::figures).and_then(|f| f.anon_peak_bytes);
        format!(
            "| {} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            self.name,
            self.limit_bytes as f64 / MIB,
            alone.map_or("–".into(), |b| format!("{:.0}", b as f64 / MIB)),
            times.join(" | "),
            by_all.join(" | "),
            share(pager.and_then(|f| f.taken_peak_bytes)),
            share(pager.and_then(|f| f.anon_peak_bytes).map(|b| b as f64)),
            pages(System::Refault),
            pages(System::RefaultBeside),
            pages(System::Kernel(Swap::Zram)),
            pages(System::Kernel(Swap::File)),
            self.load,
        )
    }
}

/// All rows, as documentation has them.
pub fn markdown(rows: &[Row]) -> String {
    let columns = [
        "program",
        "limit, MiB",
        "takes alone, MiB",
        "alone, s",
        "`refault run`, s",
        "beside, s",
        "cgroup, zram, s",
        "cgroup, file, s",
        "zram counted, s",
        "by alone",
        "by zram",
        "by file",
        "by zram counted",
        "beside, by zram",
        "beside, by file",
        "peak, counted",
        "peak, seen",
        "k pages out, back",
        "beside",
        "zram",
        "file",
        "load",
    ];
    let mut text = format!("\n| {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len() - 1));
    rows.iter().for_each(|r| text.push_str(&r.markdown()));
    text
}
