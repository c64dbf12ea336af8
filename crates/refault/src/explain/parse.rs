//! Readings as people paste them: files of the kernel one after the other, with or without the
//! headings of `head` and `tail` (`==> memory.stat <==`).

use super::lru_gen::{Generations, MIN_TTL_MS};
use refault_trace::Recording;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelFile {
    Vmstat,
    Stat,
    Meminfo,
    Events,
    SwapEvents,
    /// Pressure of memory, io or cpu; whether it is the machine's.
    Pressure(&'static str, bool),
    /// A file that holds one number, such as `memory.max`.
    Number(&'static str),
    /// Generations of debugfs.
    LruGen,
    /// `min_ttl_ms` of multi-gen LRU.
    MinTtl,
    Other,
}

/// The largest value that is taken as it is, so that sums of pages in bytes are numbers.
pub(super) const MOST: u64 = 1 << 48;

/// The largest reading that is taken; files of the kernel are far smaller.
const MOST_BYTES: u64 = 16 << 20;

/// Files that hold one number.
const NUMBERS: [&str; 6] =
    ["memory.current", "memory.max", "memory.high", "memory.swap.current", "memory.swap.max", "memory.swappiness"];

/// Counters and sizes at a moment. Sizes are in bytes, of `/proc/vmstat` in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Figures of a group: names of `memory.stat`, `events.high`, `memory.some_us`, `memory.max`.
    pub group: BTreeMap<String, u64>,
    /// Figures of the machine: names of `/proc/vmstat`, `/proc/meminfo`, `memory.some_us`.
    pub machine: BTreeMap<String, u64>,
}

impl Counters {
    /// Reads what was pasted; lines of other files are passed over.
    ///
    /// # Errors
    /// No line has a counter, or one has no number. `name` is what the error calls the text.
    pub fn parse(text: &str, name: &str) -> Result<Counters, String> {
        let (mut all, mut part) = (Counters::default(), None);
        let (mut folder, mut generations) = (None, String::new());
        for (at, line) in text.lines().map(str::trim).enumerate() {
            match heading(line) {
                Some(of) => {
                    folder = folder.or_else(|| folder_of(line).filter(|_| of == KernelFile::Stat));
                    part = Some(of);
                }
                None => {
                    part = all.line(line, part);
                    if let Some(value) = damaged(line, part) {
                        return Err(format!("{name}:{}: {value} is not a number", at + 1));
                    }
                }
            }
            if part == Some(KernelFile::LruGen) {
                generations.extend([line, "\n"]);
            }
        }
        all.add_generations(&generations, folder);
        if all.group.is_empty() && all.machine.is_empty() {
            return Err(format!(
                "{name}: has no counter of the kernel; give /proc/vmstat, memory.stat or *.pressure, as `head -n -0 \
                 FILE...` prints them"
            ));
        }
        Ok(all)
    }

    /// Reads a file of what was pasted.
    ///
    /// # Errors
    /// It cannot be read, is larger than any reading, or has no counter.
    pub fn read(path: &Path) -> Result<Counters, String> {
        let name = path.display().to_string();
        let unread = |e: std::io::Error| format!("{name}: cannot be read: {e}");
        let (mut file, mut bytes) = (File::open(path).map_err(unread)?, Vec::new());
        let read = Read::by_ref(&mut file).take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
        if read as u64 > MOST_BYTES {
            return Err(format!("{name}: is larger than any reading of the kernel's files"));
        }
        Counters::parse(&String::from_utf8_lossy(&bytes), &name)
    }

    /// Counters of a snapshot of a recording.
    pub(super) fn of_series(names: &[String], values: &[u64], recording: &Recording) -> Counters {
        let mut all = Counters::default();
        for (name, &value) in names.iter().zip(values) {
            let value = value.min(MOST);
            match name.strip_prefix("vmstat.") {
                Some(name) => all.machine.insert(name.to_owned(), value),
                None if recording.group.is_none() => None,
                None if name == "usage" => all.group.insert("memory.current".to_owned(), value),
                None => all.group.insert(name.clone(), value),
            };
        }
        let known = [("memory.max", recording.memory_max), ("memory.swap.max", recording.swap_max)];
        for (name, value) in known.into_iter().filter(|_| recording.group.is_some()) {
            all.group.extend(value.map(|value| (name.to_owned(), value)));
        }
        all
    }

    /// Takes the generations of the machine's root, and of the group whose `memory.stat` was read,
    /// or of the one with most pages.
    fn add_generations(&mut self, text: &str, folder: Option<&str>) {
        let all = Generations::parse(text);
        let (roots, groups): (Vec<_>, Vec<_>) = all.into_iter().partition(Generations::is_root);
        let own = folder.and_then(|folder| groups.iter().find(|of| of.is_of(folder)));
        let group = own.or_else(|| groups.iter().max_by_key(|of| of.pages()));
        let figures = |of: &Generations| of.figures().into_iter().map(|(name, n)| (name.to_owned(), n.min(MOST)));
        self.machine.extend(roots.iter().flat_map(figures));
        self.group.extend(group.into_iter().flat_map(figures));
    }

    /// Takes a line of a file, if it is known which; the file that the next line is of.
    fn line(&mut self, line: &str, part: Option<KernelFile>) -> Option<KernelFile> {
        let mut words = line.split_whitespace();
        let (Some(name), value) = (words.next(), words.next()) else { return part };
        if let Some(total) = line.rsplit_once("total=").filter(|_| matches!(name, "some" | "full")) {
            self.pressure(name, total.1, part);
            return part;
        }
        if let Some(KernelFile::Number(file)) = part {
            let number = if name == "max" { Some(u64::MAX) } else { name.parse::<u64>().ok().map(|n| n.min(MOST)) };
            self.group.extend(number.map(|number| (file.to_owned(), number)));
            return part;
        }
        if part == Some(KernelFile::MinTtl) {
            let age = name.parse::<u64>().ok().map(|ms| (MIN_TTL_MS.to_owned(), ms.min(MOST)));
            self.machine.extend(age);
            return part;
        }
        let part = begun(name, line).or(part);
        let Some(value) = value.and_then(|value| value.parse::<u64>().ok()) else { return part };
        let (map, key, value) = match part {
            Some(KernelFile::Vmstat) => (&mut self.machine, name.to_owned(), value),
            Some(KernelFile::Meminfo) => {
                (&mut self.machine, name.trim_end_matches(':').to_owned(), value.saturating_mul(1024))
            }
            Some(KernelFile::Stat) => (&mut self.group, name.to_owned(), value),
            Some(KernelFile::Events) => (&mut self.group, format!("events.{name}"), value),
            Some(KernelFile::SwapEvents) => (&mut self.group, format!("swap.events.{name}"), value),
            _ => return part,
        };
        map.insert(key, value.min(MOST));
        part
    }

    fn pressure(&mut self, kind: &str, total: &str, part: Option<KernelFile>) {
        let (resource, is_machine) = match part {
            Some(KernelFile::Pressure(resource, is_machine)) => (resource, is_machine),
            // Without a heading it is of memory, and of that which came before it.
            _ => ("memory", self.group.is_empty()),
        };
        let map = if is_machine { &mut self.machine } else { &mut self.group };
        map.extend(total.parse::<u64>().ok().map(|us| (format!("{resource}.{kind}_us"), us.min(MOST))));
    }
}

/// The counter of a line, and what stands for its value although it is no number.
fn damaged(line: &str, part: Option<KernelFile>) -> Option<String> {
    use KernelFile::{Events, Stat, SwapEvents, Vmstat};
    let mut words = line.split_whitespace();
    let (name, value, None) = (words.next()?, words.next()?, words.next()) else { return None };
    let is_counter = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let is_number = value.parse::<u64>().is_ok();
    (matches!(part, Some(Vmstat | Stat | Events | SwapEvents)) && is_counter && !is_number)
        .then(|| format!("{name} {value:?}"))
}

/// The folder of the file that a heading names.
fn folder_of(line: &str) -> Option<&str> {
    let path = line.strip_prefix("==>").and_then(|rest| rest.strip_suffix("<=="))?.trim();
    path.rsplit_once('/').map(|(folder, _)| folder)
}

/// The file that a heading names; none: the line is none.
fn heading(line: &str) -> Option<KernelFile> {
    let path = line.strip_prefix("==>").and_then(|rest| rest.strip_suffix("<=="))?.trim();
    let file = path.rsplit('/').next().unwrap_or(path);
    let resource = |name: &str| ["memory", "io", "cpu"].into_iter().find(|of| *of == name);
    Some(match file {
        "vmstat" => KernelFile::Vmstat,
        "meminfo" => KernelFile::Meminfo,
        "memory.stat" => KernelFile::Stat,
        "memory.events" | "memory.events.local" => KernelFile::Events,
        "memory.swap.events" => KernelFile::SwapEvents,
        "lru_gen" | "lru_gen_full" => KernelFile::LruGen,
        "min_ttl_ms" => KernelFile::MinTtl,
        file => match (file.strip_suffix(".pressure").and_then(resource), resource(file)) {
            (Some(resource), _) => KernelFile::Pressure(resource, false),
            (None, Some(resource)) => KernelFile::Pressure(resource, true),
            (None, None) => NUMBERS.into_iter().find(|of| *of == file).map_or(KernelFile::Other, KernelFile::Number),
        },
    })
}

/// The file that begins with a line of this name.
fn begun(name: &str, line: &str) -> Option<KernelFile> {
    match name {
        "nr_free_pages" => Some(KernelFile::Vmstat),
        "anon" | "cache" => Some(KernelFile::Stat),
        "low" => Some(KernelFile::Events),
        "memcg" => Some(KernelFile::LruGen),
        "MemTotal:" if line.ends_with("kB") => Some(KernelFile::Meminfo),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Counters {
        Counters::parse(text, "pasted").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn files_are_told_apart_with_headings_and_without() {
        let headed = "==> /sys/fs/cgroup/a/memory.stat <==\nanon 5\nfile 7\n\n==> /sys/fs/cgroup/a/memory.max <==\nmax\n\
                      ==> /proc/pressure/io <==\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=9\n\
                      ==> /proc/vmstat <==\nnr_free_pages 3\nworkingset_refault_file 4\n";
        let all = parse(headed);
        assert_eq!((all.group["anon"], all.group["memory.max"]), (5, u64::MAX));
        assert_eq!((all.machine["io.some_us"], all.machine["workingset_refault_file"]), (9, 4));
        let bare = parse("anon 5\nworkingset_refault_file 8\nlow 0\nhigh 2\nsome avg10=1.00 total=6\nMemTotal: 4 kB\n");
        assert_eq!((bare.group["workingset_refault_file"], bare.group["events.high"]), (8, 2));
        assert_eq!((bare.group["memory.some_us"], bare.machine["MemTotal"]), (6, 4096));
    }

    #[test]
    fn a_text_without_counters_says_what_to_give() {
        for text in ["", "hello world\n", "==> memory.stat <==\n", "pgscan -1\n"] {
            assert!(Counters::parse(text, "f").is_err_and(|e| e.starts_with("f: has no counter")), "{text}");
        }
    }

    #[test]
    fn regression_a_value_that_is_no_number_has_its_line() {
        for (text, wrong) in [
            ("anon x", "f:1: anon \"x\" is not a number"),
            ("anon 5\npgscan -1\n", "f:2: pgscan \"-1\" is not a number"),
            ("nr_free_pages 5\n\npswpin 3k\n", "f:3: pswpin \"3k\" is not a number"),
        ] {
            assert_eq!(Counters::parse(text, "f"), Err(wrong.to_owned()));
        }
    }
}
