//! Touches of memory in place, which no event tells: every interval the page tables of the programs
//! are looked at, and marked anew.
//!
//! | method | what it sees | how |
//! |---|---|---|
//! | idle | reads and writes | a bit for each frame, `/sys/kernel/mm/page_idle/bitmap` |
//! | soft-dirty | writes | a bit of each entry of a page table, reset by `/proc/PID/clear_refs` |
//! | write-protect | writes to private memory | asynchronous write protection, `PAGEMAP_SCAN` |

mod idle;
mod inject;
mod pagemap;
mod protect;

use crate::scan::{PageRun, Scan, Vma, marked, touched_within};
use idle::Idle;
use pagemap::Pagemap;
use protect::Protection;
use refault_trace::{TouchMethod, Touches};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Least pause between looks, as a multiple of what a look takes: a look takes a tenth of the time
/// at most.
const COST: u32 = 10;

/// How touches are to be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Not at all.
    Off,
    /// Every second where that changes nothing for the program: by idle page tracking. Else not.
    IfFree,
    /// From one look to the next, by the best method that there is, or by this one.
    Every(Duration, Option<TouchMethod>),
}

/// Without being told otherwise.
const INTERVAL: Duration = Duration::from_secs(1);

/// Whether a method works here; why not.
///
/// # Errors
/// A machine without what the method needs.
pub fn touches_possible(method: TouchMethod) -> Result<(), String> {
    match method {
        TouchMethod::Idle => Idle::open().map(drop),
        TouchMethod::SoftDirty => soft_dirty_possible(),
        TouchMethod::WriteProtect => protect::is_possible(),
    }
}

/// A page of this process that was just written has the bit, if the kernel has any.
fn soft_dirty_possible() -> Result<(), String> {
    let written = std::hint::black_box(Box::new([1u8; 8192]));
    let page = (written.as_ptr().addr() as u64 >> 12) + 1;
    let mappings = [Vma {
        pages: page..page + 1,
        file: None,
        offset: 0,
        writable: true,
        executable: false,
        shared: false,
        is_shm: false,
    }];
    let regions = Pagemap::of(std::process::id()).and_then(|map| map.regions(&mappings));
    match regions.map(|regions| regions.iter().any(|region| region.touched)) {
        Ok(true) => Ok(()),
        Ok(false) => Err("no soft-dirty bits in this kernel (CONFIG_MEM_SOFT_DIRTY)".to_owned()),
        Err(e) => Err(format!("/proc/PID/pagemap: {e}")),
    }
}

/// A process that is looked at.
#[derive(Debug)]
struct Process {
    pagemap: Pagemap,
    protection: Option<Protection>,
    /// Whether it was marked, so that touches that are seen came after that.
    marked: bool,
    /// Where its mappings were when soft-dirty bits were reset.
    reset: Vec<Range<u64>>,
}

/// Looks at processes.
#[derive(Debug)]
pub(crate) struct Sampler {
    method: TouchMethod,
    interval: Duration,
    idle: Option<Idle>,
    processes: FxHashMap<u32, Process>,
    /// Processes that could not be protected, so that they are not stopped again and again.
    refused: FxHashSet<u32>,
    first: Option<Instant>,
    last: Option<Instant>,
    looks: u32,
    cost: Duration,
    /// Why a process could not be looked at; how many.
    pub(crate) complaint: Option<String>,
}

impl Sampler {
    /// A sampler as it is wanted; none: nothing is to be sampled.
    ///
    /// # Errors
    /// A method that was asked for and does not work here.
    pub(crate) fn new(sampling: Sampling) -> Result<Option<Sampler>, String> {
        let (interval, method) = match sampling {
            Sampling::Off => return Ok(None),
            Sampling::IfFree => match touches_possible(TouchMethod::Idle) {
                Ok(()) => (INTERVAL, TouchMethod::Idle),
                Err(_) => return Ok(None),
            },
            Sampling::Every(interval, method) => (interval, method.map_or_else(best, Ok)?),
        };
        touches_possible(method).map_err(|e| format!("--touches by {}: {e}", method.name()))?;
        let idle = match method {
            TouchMethod::Idle => Some(Idle::open()?),
            _ => None,
        };
        Ok(Some(Sampler {
            method,
            interval,
            idle,
            processes: FxHashMap::default(),
            refused: FxHashSet::default(),
            first: None,
            last: None,
            looks: 0,
            cost: Duration::ZERO,
            complaint: None,
        }))
    }

    /// Summary of the looks so far.
    pub(crate) fn about(&self) -> Touches {
        let span = self.first.zip(self.last).map(|(first, last)| last - first).filter(|_| self.looks > 1);
        let interval = span.map_or(self.interval, |span| span / (self.looks - 1));
        Touches { by: self.method, interval_ns: interval.as_nanos() as u64 }
    }

    /// Time to wait for the next look.
    pub(crate) fn until_next(&self) -> Duration {
        self.interval.max(self.cost * COST)
    }

    /// The memory of a process is another one from now on, or none.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.refused.remove(&pid);
    }

    /// Looks at these processes: what was touched of each since the last look.
    pub(crate) fn look(&mut self, pids: &FxHashSet<u32>) -> Vec<(u32, Scan)> {
        let begun = Instant::now();
        self.processes.retain(|pid, process| pids.contains(pid) && !process.pagemap.is_gone());
        let mut looked = Vec::new();
        for &pid in pids {
            let mappings = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let mappings = Vma::parse_all(&mappings);
            if mappings.is_empty() {
                continue;
            }
            match self.look_at(pid, &mappings) {
                Ok(regions) => looked.push((pid, mappings, regions)),
                Err(e) => self.complaint = Some(format!("process {pid}: {e}")),
            }
        }
        if let Some(idle) = &self.idle {
            let done = ask_frames(idle, &self.processes, &mut looked);
            self.complaint = done.err().map(|e| format!("idle page tracking: {e}")).or(self.complaint.take());
        }
        let writes = self.method.writes_only();
        let mut scans = Vec::new();
        for (pid, mappings, mut regions) in looked {
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            if !std::mem::replace(&mut process.marked, true) {
                regions.iter_mut().for_each(|region| region.touched = false);
            }
            scans.push((pid, Scan::of(&mappings, &regions, writes)));
        }
        (self.last, self.looks) = (Some(begun), self.looks + 1);
        self.first.get_or_insert(begun);
        self.cost = begun.elapsed();
        scans
    }

    fn look_at(&mut self, pid: u32, mappings: &[Vma]) -> Result<Vec<PageRun>, String> {
        let fail = |e: io::Error| e.to_string();
        let process = match self.processes.entry(pid) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let pagemap = Pagemap::of(pid).map_err(fail)?;
                let wants_protection = self.method == TouchMethod::WriteProtect && !self.refused.contains(&pid);
                let protection = match wants_protection.then(|| Protection::of(pid)).transpose() {
                    Ok(protection) => protection,
                    Err(e) => {
                        self.refused.insert(pid);
                        self.complaint = Some(format!("process {pid}: {e}"));
                        None
                    }
                };
                new.insert(Process { pagemap, protection, marked: false, reset: Vec::new() })
            }
        };
        match self.method {
            TouchMethod::Idle => process.pagemap.regions(mappings).map_err(fail),
            TouchMethod::SoftDirty => {
                let regions = process.soft_dirty_regions(mappings).map_err(fail)?;
                fs::write(format!("/proc/{pid}/clear_refs"), "4").map_err(fail)?;
                Ok(regions)
            }
            TouchMethod::WriteProtect => process.protected_regions(mappings).map_err(fail),
        }
    }
}

impl Process {
    /// A mapping that is new, or has grown, has the bit on all pages (`VM_SOFTDIRTY`). So the bit
    /// tells something only of mappings that are where they were at the reset.
    fn soft_dirty_regions(&mut self, mappings: &[Vma]) -> io::Result<Vec<PageRun>> {
        let regions = self.pagemap.regions(mappings)?;
        let before = std::mem::replace(&mut self.reset, mappings.iter().map(|m| m.pages.clone()).collect());
        Ok(touched_within(regions, &unchanged(&before, mappings)))
    }

    fn protected_regions(&self, mappings: &[Vma]) -> io::Result<Vec<PageRun>> {
        let mut written = Vec::new();
        if let Some(protection) = &self.protection {
            protection.watch(mappings);
            if let (Some(first), Some(last)) = (mappings.first(), mappings.last()) {
                written = self.pagemap.take_written(first.pages.start..last.pages.end)?;
            }
        }
        Ok(marked(self.pagemap.regions(mappings)?, &written))
    }
}

/// Mappings that are where they were before, both ascending and apart.
fn unchanged(before: &[Range<u64>], mappings: &[Vma]) -> Vec<Range<u64>> {
    let is_as_before =
        |m: &&Vma| before.binary_search_by_key(&m.pages.start, |r| r.start).is_ok_and(|at| before[at] == m.pages);
    mappings.iter().filter(is_as_before).map(|m| m.pages.clone()).collect()
}

/// The best method that works here.
fn best() -> Result<TouchMethod, String> {
    let found = TouchMethod::ALL.into_iter().find(|&method| touches_possible(method).is_ok());
    found.ok_or_else(|| {
        let why = TouchMethod::ALL.map(|m| format!("{}: {}", m.name(), touches_possible(m).err().unwrap_or_default()));
        format!("--touches: nothing here tells that memory was touched ({})", why.join("; "))
    })
}

type Looked = (u32, Vec<Vma>, Vec<PageRun>);

/// Splits regions by whether their frames were touched.
fn ask_frames(idle: &Idle, processes: &FxHashMap<u32, Process>, looked: &mut [Looked]) -> io::Result<()> {
    let mut frames = Vec::new();
    for (pid, _, regions) in looked.iter() {
        for region in regions.iter().filter(|region| region.is_there) {
            processes[pid].pagemap.frames(region.pages.clone(), |_, frame| frames.push(frame))?;
        }
    }
    frames.retain(|&frame| frame != 0);
    frames.sort_unstable();
    frames.dedup();
    let touched = idle.take(&frames)?;
    for (pid, _, regions) in looked {
        let mut pieces: Vec<PageRun> = Vec::new();
        for region in std::mem::take(regions) {
            if !region.is_there {
                pieces.push(region);
                continue;
            }
            processes[pid].pagemap.frames(region.pages.clone(), |page, frame| {
                let touched = touched.get(&frame).is_some_and(|&touched| touched);
                let alike = |last: &PageRun| {
                    last.pages.end == page && last.is_there && (last.is_file, last.touched) == (region.is_file, touched)
                };
                match pieces.last_mut() {
                    Some(last) if alike(last) => last.pages.end += 1,
                    _ => pieces.push(PageRun { pages: page..page + 1, touched, ..region.clone() }),
                }
            })?;
        }
        *regions = pieces;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_dirty_bits_of_mappings_that_are_new_or_have_grown_say_nothing() {
        let mapping = |pages: Range<u64>| {
            let line = format!("{:x}000-{:x}000 rw-p 00000000 00:00 0", pages.start, pages.end);
            Vma::parse(&line).expect("a mapping")
        };
        let now = [10..20, 30..45, 50..60].map(mapping);
        assert!(unchanged(&[10..20, 30..40, 45..60], &now).into_iter().eq(std::iter::once(10..20)));
        assert!(unchanged(&[], &now).is_empty());
    }
}
