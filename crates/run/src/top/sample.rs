//! A run as it is now.

use refault::open_metrics::parse;
use std::collections::BTreeMap;
use std::path::Path;

/// Mappings that are shown.
pub(super) const MAPPINGS: usize = 10;

/// State of a run, as its file and its processes tell it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    all: BTreeMap<String, f64>,
    /// The largest mappings of all its processes.
    pub(super) mappings: Vec<Mapping>,
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) size_kib: u64,
    /// Anonymous memory of it that is in place.
    pub(super) resident_kib: u64,
}

impl Sample {
    /// Reads the file of a run; none: it is gone.
    pub(super) fn read(path: &Path) -> Option<Sample> {
        let all = parse(&std::fs::read_to_string(path).ok()?);
        let mut sample = Sample { all, mappings: Vec::new() };
        for pid in sample.pids() {
            // A process that has ended meanwhile has none.
            let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
            sample.mappings.extend(mappings(pid, &smaps));
        }
        sample.mappings.sort_by_key(|m| std::cmp::Reverse((m.size_kib, m.resident_kib)));
        sample.mappings.truncate(MAPPINGS);
        Some(sample)
    }

    #[cfg(test)]
    pub(super) fn of(text: &str, mappings: Vec<Mapping>) -> Sample {
        Sample { all: parse(text), mappings }
    }

    /// A number of the run, or 0.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.all.get(&format!("refault_{name}")).copied().unwrap_or(0.0)
    }

    /// It is of `refault record`.
    pub(super) fn is_recording(&self) -> bool {
        self.all.contains_key("refault_record_wall_seconds")
    }

    pub(super) fn wall_s(&self) -> f64 {
        self.get(if self.is_recording() { "record_wall_seconds" } else { "run_wall_seconds" })
    }

    /// By how much a counter grew a second.
    pub(super) fn rate(&self, before: Option<&Sample>, name: &str) -> f64 {
        let name = format!("{name}_total");
        let (was, at) = before.map_or((0.0, 0.0), |b| (b.get(&name), b.wall_s()));
        let passed = self.wall_s() - at;
        if passed > 0.0 { (self.get(&name) - was).max(0.0) / passed } else { 0.0 }
    }

    /// The values of a label, with their numbers.
    fn labelled(&self, name: &str, label: &str) -> Vec<(String, f64)> {
        let head = format!("refault_{name}{{{label}=\"");
        let one = |(key, n): (&String, &f64)| Some((key.strip_prefix(&head)?.strip_suffix("\"}")?.to_owned(), *n));
        self.all.iter().filter_map(one).collect()
    }

    /// Pages of each generation, the oldest first.
    pub(super) fn generations(&self) -> Vec<(u64, f64)> {
        let all = self.labelled("run_generation_pages", "seq");
        let mut all: Vec<_> = all.into_iter().filter_map(|(seq, n)| Some((seq.parse().ok()?, n))).collect();
        all.sort_by_key(|(seq, _)| *seq);
        all
    }

    /// Pages of a list.
    pub(super) fn list(&self, name: &str) -> f64 {
        self.labelled("run_list_pages", "list").iter().find(|(list, _)| list == name).map_or(0.0, |(_, n)| *n)
    }

    fn pids(&self) -> Vec<u32> {
        self.labelled("run_process", "pid").into_iter().filter_map(|(pid, _)| pid.parse().ok()).collect()
    }

    /// The program.
    pub(super) fn command(&self) -> String {
        let head = if self.is_recording() { "refault_record_info{command=\"" } else { "refault_run_info{command=\"" };
        let text = self.all.keys().find_map(|key| key.strip_prefix(head)).unwrap_or_default();
        let text = text.split("\",version=").next().unwrap_or_default();
        refault::words::printable(&text.replace("\\n", " ").replace("\\\"", "\"").replace("\\\\", "\\"))
    }
}

/// The mappings of a process that have anonymous memory, from its `smaps`.
fn mappings(pid: u32, smaps: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    // Whether what stands below belongs to a mapping without a file.
    let mut counts = false;
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [range, perms, _, _, inode, ref name @ ..] if range.contains('-') && !range.ends_with(':') => {
                counts = inode == "0" && perms.starts_with("rw") && perms.ends_with('p');
                let name = if name.is_empty() {
                    format!("anonymous at {}", range.split('-').next().unwrap_or_default())
                } else {
                    name.join(" ")
                };
                if counts {
                    all.push(Mapping { pid, name: refault::words::printable(&name), size_kib: 0, resident_kib: 0 });
                }
            }
            [key, n, "kB"] if counts => {
                let (Some(last), Ok(n)) = (all.last_mut(), n.parse()) else { continue };
                match key {
                    "Size:" => last.size_kib = n,
                    "Anonymous:" => last.resident_kib = n,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_without_a_file_are_counted() {
        let smaps = "55d0-55e0 r-xp 00000000 08:01 17 /bin/sh\nSize: 64 kB\nAnonymous: 4 kB\n\
                     55f0-5600 rw-p 00000000 00:00 0 [heap]\nSize: 132 kB\nRss: 100 kB\nAnonymous: 96 kB\nVmFlags: rd wr\n\
                     7000-7100 rw-p 00000000 00:00 0 \nSize: 1024 kB\nAnonymous: 8 kB\n";
        let of = |name: &str, size_kib, resident_kib| Mapping { pid: 7, name: name.into(), size_kib, resident_kib };
        assert_eq!(mappings(7, smaps), [of("[heap]", 132, 96), of("anonymous at 7000", 1024, 8)]);
    }
}
