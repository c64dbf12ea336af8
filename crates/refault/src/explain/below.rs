//! Dumps of below (`below dump cgroup` or `system`, `-O csv`, `tsv` or `json`): sizes of a moment,
//! and rates a second since the row before, from which counters are made again.

use super::Counters;
use super::parse::MOST;
use crate::names::shown;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest dump that is taken.
const MOST_BYTES: u64 = 256 << 20;
/// Groups that an error names.
const NAMED: usize = 8;

/// Measure of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Bytes, or `max`.
    Size,
    /// Events a second.
    Rate,
    /// Pages a second, which are printed as bytes without `--raw`.
    PageRate,
    /// Percent of the time, of pressure.
    Pressure,
}

use Measure::{PageRate, Pressure, Rate, Size};

/// Titles of `below dump cgroup`, and the kernel's names.
const OF_GROUP: [(&str, &str, Measure); 31] = [
    ("Mem Total", "memory.current", Size),
    ("Mem Swap", "memory.swap.current", Size),
    ("Mem Max", "memory.max", Size),
    ("Mem High", "memory.high", Size),
    ("Swap Max", "memory.swap.max", Size),
    ("Mem Anon", "anon", Size),
    ("Mem File", "file", Size),
    ("Mem Shmem", "shmem", Size),
    ("Inactive Anon", "inactive_anon", Size),
    ("Active Anon", "active_anon", Size),
    ("Inactive File", "inactive_file", Size),
    ("Active File", "active_file", Size),
    ("File Dirty", "file_dirty", Size),
    ("File WB", "file_writeback", Size),
    ("Pgfault", "pgfault", Rate),
    ("Pgmajfault", "pgmajfault", Rate),
    ("Workingset Refault Anon", "workingset_refault_anon", Rate),
    ("Workingset Refault File", "workingset_refault_file", Rate),
    ("Workingset Activate Anon", "workingset_activate_anon", Rate),
    ("Workingset Activate File", "workingset_activate_file", Rate),
    ("Workingset Restore Anon", "workingset_restore_anon", Rate),
    ("Workingset Restore File", "workingset_restore_file", Rate),
    ("Pgscan", "pgscan", Rate),
    ("Pgsteal", "pgsteal", Rate),
    ("Pgactivate", "pgactivate", Rate),
    ("Events High/s", "events.high", Rate),
    ("Events Max/s", "events.max", Rate),
    ("Events OOM/s", "events.oom", Rate),
    ("Events Kill/s", "events.oom_kill", Rate),
    ("Mem Some Pressure", "memory.some_us", Pressure),
    ("Mem Pressure", "memory.full_us", Pressure),
];

/// Titles of `below dump system`.
const OF_MACHINE: [(&str, &str, Measure); 12] = [
    ("Total", "MemTotal", Size),
    ("Free", "MemFree", Size),
    ("Available", "MemAvailable", Size),
    ("Dirty", "Dirty", Size),
    ("Swap Total", "SwapTotal", Size),
    ("Swap Free", "SwapFree", Size),
    ("Swap In", "pswpin", PageRate),
    ("Swap Out", "pswpout", PageRate),
    ("Pgscan Kswapd", "pgscan_kswapd", Rate),
    ("Pgscan Direct", "pgscan_direct", Rate),
    ("Pgsteal Kswapd", "pgsteal_kswapd", Rate),
    ("Pgsteal Direct", "pgsteal_direct", Rate),
];

/// A row: texts by their titles.
type Row = BTreeMap<String, String>;

/// Two readings, and the seconds between them.
#[derive(Debug)]
pub(super) struct BelowReadings {
    pub(super) before: Counters,
    pub(super) after: Counters,
    pub(super) seconds: f64,
}

/// The text of a dump, or that it is too large; none: the file is none, or cannot be read as one.
pub(super) fn text(path: &Path) -> Option<Result<String, String>> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|of| of.is_file()))?;
    let mut file = file.take(MOST_BYTES);
    Read::by_ref(&mut file).take(4096).read_to_end(&mut bytes).ok()?;
    if !is_of_below(&String::from_utf8_lossy(&bytes)) {
        return None;
    }
    file.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 >= MOST_BYTES {
        let name = path.display();
        return Some(Err(format!("{name}: is larger than {} MiB; dump a shorter time", MOST_BYTES >> 20)));
    }
    Some(Ok(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Whether a text begins as a dump does.
fn is_of_below(head: &str) -> bool {
    let head = head.trim_start_matches('\u{feff}').trim_start();
    let first = head.lines().next().unwrap_or_default();
    let is_table = |separator| first.split(separator).any(|title| ["Timestamp", "Datetime"].contains(&title));
    let is_json = head.starts_with("[{") && (head.contains("\"Timestamp\"") || head.contains("\"Datetime\""));
    is_json || is_table(',') || is_table('\t')
}

/// Reads a dump; of several groups the one of that path.
///
/// # Errors
/// There are fewer than two rows of it, or columns are missing. `name` is what errors call it.
pub(super) fn read(text: &str, name: &str, group: Option<&str>) -> Result<BelowReadings, String> {
    let rows = rows(text).map_err(|e| format!("{name}: {e}"))?;
    let path = |row: &Row| row.get("Full Path").or_else(|| row.get("Name")).map(|path| path.trim().to_owned());
    let groups: BTreeSet<String> = rows.iter().filter_map(path).collect();
    let chosen = match (group, groups.len()) {
        (Some(_), 0) => return Err(format!("{name}: is of the machine, and has no group; leave --cgroup out")),
        (Some(of), _) => Some(of.to_owned()),
        (None, 0 | 1) => groups.first().cloned(),
        (None, n) => {
            let some: Vec<_> = groups.iter().take(NAMED).map(|path| shown(path)).collect();
            let more = if n > NAMED { format!(", and {} more", n - NAMED) } else { String::new() };
            return Err(format!("{name}: has groups, {n} of them; give one by --cgroup: {}{more}", some.join(", ")));
        }
    };
    let is_own = |row: &&Row| chosen.is_none() || path(row) == chosen;
    let mut own = Vec::new();
    for row in rows.iter().filter(is_own) {
        let time = row.get("Timestamp").and_then(|text| text.trim().parse::<f64>().ok()).filter(|s| s.is_finite());
        let time = time.ok_or_else(|| {
            format!("{name}: has no Timestamp in a row; dump it with `-f timestamp`, or with the default fields")
        })?;
        own.push((time, row));
    }
    if own.is_empty() {
        return Err(format!("{name}: has no row of {}", shown(chosen.as_deref().unwrap_or("the machine"))));
    }
    own.sort_by(|a, b| a.0.total_cmp(&b.0));
    let seconds = own[own.len() - 1].0 - own[0].0;
    if seconds <= 0.0 {
        return Err(format!("{name}: has one moment of it, and two are needed; dump a longer time"));
    }
    let titles: &[_] = if groups.is_empty() { &OF_MACHINE } else { &OF_GROUP };
    let [before, after] = counters(&own, titles);
    if after.is_empty() {
        return Err(format!("{name}: has no column of memory; dump it with `-f mem.`, `vm` or `-d`"));
    }
    let of = |map: BTreeMap<String, u64>| match groups.is_empty() {
        true => Counters { machine: map, ..Counters::default() },
        false => Counters { group: map, ..Counters::default() },
    };
    Ok(BelowReadings { before: of(before), after: of(after), seconds })
}

/// Counters before and after: sums of rates from the second row on, and sizes of the last.
fn counters(rows: &[(f64, &Row)], titles: &[(&str, &str, Measure)]) -> [BTreeMap<String, u64>; 2] {
    let [mut before, mut after] = [BTreeMap::new(), BTreeMap::new()];
    for &(title, name, measure) in titles {
        let value = |row: &Row| row.get(title).and_then(|text| number(text));
        if measure == Size {
            let last = rows.iter().rev().find_map(|(_, row)| value(row));
            let bounded = |n: f64| if n >= u64::MAX as f64 { u64::MAX } else { (n as u64).min(MOST) };
            after.extend(last.map(|(n, _)| (name.to_owned(), bounded(n))));
            continue;
        }
        let parts = rows.windows(2).filter_map(|pair| {
            let (rate, is_bytes) = value(pair[1].1)?;
            let rate = match measure {
                PageRate if is_bytes => rate / 4096.0,
                Pressure => rate * 1e4,
                _ => rate,
            };
            Some(rate * (pair[1].0 - pair[0].0))
        });
        let parts: Vec<f64> = parts.collect();
        if !parts.is_empty() {
            before.insert(name.to_owned(), 0);
            after.insert(name.to_owned(), (parts.iter().sum::<f64>().round() as u64).min(MOST));
        }
    }
    [before, after]
}

/// A number as below prints it, and whether it has a unit of bytes: `1.5 GB`, `12.3 KB/s`,
/// `5.00%`, `7 pages/s`, `max`; with `--raw` the number alone. None: it is not known (`?`).
fn number(text: &str) -> Option<(f64, bool)> {
    let text = text.trim();
    if text == "max" || text == "-1" {
        return Some((u64::MAX as f64, false));
    }
    let text = text.strip_suffix("/s").unwrap_or(text);
    let (digits, unit) = match text.find(|c: char| c == '%' || c.is_ascii_alphabetic() || c == ' ') {
        Some(at) if !text[at..].starts_with('e') => (&text[..at], text[at..].trim()),
        _ => (text, ""),
    };
    let power = ["B", "KB", "MB", "GB", "TB", "PB"].iter().position(|name| *name == unit);
    let n = digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
    Some((n * 1024f64.powi(power.unwrap_or(0) as i32), power.is_some()))
}

fn rows(text: &str) -> Result<Vec<Row>, String> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('[') {
        let all: Vec<Value> = serde_json::from_str(text).map_err(|e| format!("is no JSON of below dump: {e}"))?;
        let mut rows = Vec::new();
        all.iter().for_each(|tree| flatten(tree, &mut rows));
        return Ok(rows);
    }
    let mut lines = text.lines().enumerate();
    let (_, head) = lines.next().ok_or("is empty")?;
    let separator = if head.contains('\t') { '\t' } else { ',' };
    let titles: Vec<&str> = head.split(separator).map(str::trim).collect();
    let mut rows = Vec::new();
    for (n, line) in lines.filter(|(_, line)| !line.trim().is_empty() && *line != head) {
        let fields: Vec<&str> = line.split(separator).collect();
        if fields.len() != titles.len() {
            let (line, got, wanted) = (n + 1, fields.len(), titles.len());
            return Err(format!("line {line}: has {got} fields, and the first line has {wanted}"));
        }
        rows.push(titles.iter().map(|title| (*title).to_owned()).zip(fields.into_iter().map(str::to_owned)).collect());
    }
    Ok(rows)
}

/// Rows of a tree of groups.
fn flatten(tree: &Value, rows: &mut Vec<Row>) {
    let Value::Object(all) = tree else { return };
    let text = |(title, value): (&String, &Value)| Some((title.clone(), value.as_str()?.to_owned()));
    let row: Row = all.iter().filter_map(text).collect();
    if !row.is_empty() {
        rows.push(row);
    }
    all.get("children").and_then(Value::as_array).into_iter().flatten().for_each(|child| flatten(child, rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "Datetime,Full Path,Mem Total,Mem Max,Inactive File,Active File,Workingset Refault File,\
        Mem Some Pressure,Timestamp,\n\
        2026-11-28 10:00:00,/a,1.0 GB,max,512.0 MB,256.0 MB,9999,50.00%,100,\n\
        2026-11-28 10:00:00,/b,2.0 MB,?,1.0 MB,1.0 MB,0,0.00%,100,\n\
        2026-11-28 10:00:10,/a,1.0 GB,max,512.0 MB,128.0 MB,200,5.00%,110,\n\
        2026-11-28 10:00:10,/b,3.0 MB,?,1.0 MB,1.0 MB,0,0.00%,110,\n";

    #[test]
    fn rates_become_counters_and_the_first_row_is_where_time_begins() {
        assert!(is_of_below(CSV));
        let dump = read(CSV, "d", Some("/a")).expect("a dump");
        assert_eq!((dump.seconds, dump.before.group["workingset_refault_file"]), (10.0, 0));
        let after = &dump.after.group;
        assert_eq!((after["workingset_refault_file"], after["memory.some_us"]), (2000, 500_000));
        assert_eq!((after["active_file"], after["memory.max"]), (128 << 20, u64::MAX));
        let json = r#"[{"Timestamp":"1","Full Path":"","Mem Total":"5","children":[{"Timestamp":"1","Full Path":"/a",
            "Pgscan":"0","children":[]}]},{"Timestamp":"3","Full Path":"","children":[{"Timestamp":"3",
            "Full Path":"/a","Pgscan":"4","children":[]}]}]"#;
        assert_eq!(read(json, "d", Some("/a")).expect("a dump").after.group["pgscan"], 8);
        let machine = "Datetime,Swap In,Pgscan Direct,Swap Total,Timestamp,\nx,0.0 B/s,0 pages/s,1.0 GB,1,\n\
                       x,40.0 KB/s,3 pages/s,1.0 GB,2,\n";
        let dump = read(machine, "d", None).expect("a dump").after.machine;
        assert_eq!((dump["pswpin"], dump["pgscan_direct"], dump["SwapTotal"]), (10, 3, 1 << 30));
    }

    #[test]
    fn a_dump_that_does_not_do_says_what_to_give() {
        let error = |text: &str, group| read(text, "d", group).expect_err("an error");
        assert_eq!(error(CSV, None), "d: has groups, 2 of them; give one by --cgroup: /a, /b");
        assert!(error(CSV, Some("/c")).starts_with("d: has no row of /c"));
        assert!(error(&CSV.replace("10:00:10,/a,1.0 GB", "/a"), Some("/a")).starts_with("d: line 4: has 8 fields"));
        assert!(error("Datetime,Pgscan,\n1,2,\n", None).starts_with("d: has no Timestamp"));
        assert!(error("Timestamp,Pgscan Direct,\n1,2,\n", None).contains("one moment"));
        assert!(error("Timestamp,Hostname,\n1,a,\n2,a,\n", None).contains("no column of memory"));
        assert!(error("[{", None).starts_with("d: is no JSON"));
        assert!(!is_of_below("nr_free_pages 5\n") && !is_of_below("ts,key\n"));
        assert_eq!((number("-3"), number("nan"), number("1e400"), number("é")), (None, None, None, None));
    }
}
