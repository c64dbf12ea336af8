//! Events of a sample of the pages of a machine as they come, for who watches it all the time.

use crate::bpf::Programs;
use crate::event::{Event, Inode};
use crate::group_names::GroupNames;
use crate::names::Names;
use crate::opened::{Opened, SamplerChoice, WantedEvents};
use crate::probes::Probes;
use crate::ring::Rings;
use crate::tracefs::Tracefs;
use refault_trace::SpaceSample;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Files whose lengths are remembered.
const MOST_LENGTHS: usize = 1 << 16;

/// Nanoseconds after which a length is asked for again.
const LENGTH_NS: u64 = 10_000_000_000;

/// The events. They end when this is dropped, or with the process.
pub struct EventFeed {
    tracefs: Tracefs,
    wanted: WantedEvents,
    /// Events that were read, and lost, by rings that are closed.
    closed: (u64, u64),
    rings: Rings,
    /// Removed after the events on them have ended.
    probes: Option<Probes>,
    names: Names,
    groups: GroupNames,
    lengths: FxHashMap<Inode, (Option<u64>, u64)>,
    why_filters: Option<String>,
}

impl std::fmt::Debug for EventFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventFeed").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl EventFeed {
    /// Opens the events of a sample, with rings of so many bytes on each CPU.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn open(
        tracefs: Option<&Path>,
        sample: SpaceSample,
        sampler: SamplerChoice,
        ring_bytes: usize,
    ) -> Result<EventFeed, String> {
        let tracefs = Tracefs::find(tracefs)?;
        let wanted =
            WantedEvents { sample: Some(sample), sampler, of_pages: true, groups: true, by_process: false, ring_bytes };
        let Opened { rings, probes, has_groups, why_filters, .. } = Opened::open(&tracefs, wanted, None)?;
        let groups = GroupNames::new(has_groups)?;
        let (names, lengths) = (Names::new(), FxHashMap::default());
        Ok(EventFeed { tracefs, wanted, closed: (0, 0), rings, probes, names, groups, lengths, why_filters })
    }

    /// Reason why filters take the sample and not programs, if these were wanted, too.
    pub fn why_filters(&self) -> Option<&str> {
        self.why_filters.as_deref()
    }

    /// Another rate: of the same salt, so that of two rates one has all pages of the other.
    /// Programs go on; filters are opened anew, and miss what happens meanwhile.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn set_sample(&mut self, sample: SpaceSample) -> Result<(), String> {
        self.wanted.sample = Some(sample);
        if let Some(programs) = self.rings.programs() {
            return programs.set_sample(sample);
        }
        self.closed = self.counts();
        let Opened { rings, probes, .. } = Opened::open(&self.tracefs, self.wanted, self.probes.take())?;
        (self.rings, self.probes) = (rings, probes);
        Ok(())
    }

    /// Whether somebody counts all accesses.
    pub fn is_counted(&mut self) -> bool {
        self.rings.programs().is_some()
    }

    /// Accesses of all pages since the last call, by number of the memory cgroup; none: nobody
    /// counts them.
    pub fn accesses(&mut self) -> Option<Vec<(u64, u64)>> {
        self.rings.programs().map(Programs::accesses)
    }

    /// Appends the events up to a moment ago, by time; up to when that is all of them.
    pub fn take(&mut self, out: &mut Vec<Event>) -> u64 {
        self.rings.take(out, false)
    }

    /// Events that were read, and events that were lost, since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.closed.0 + self.rings.read, self.closed.1 + self.rings.all_lost())
    }

    /// Path of the memory cgroup that an event is of; none: its process is gone.
    pub fn group(&mut self, pid: u32, cgroup: u64, now_ns: u64) -> Option<&str> {
        self.groups.find(pid, cgroup, now_ns)
    }

    /// The length of a file in pages, as it was a moment ago.
    pub fn pages(&mut self, inode: Inode, pid: u32, now_ns: u64) -> Option<u64> {
        if let Some(&(pages, at_ns)) = self.lengths.get(&inode)
            && now_ns.saturating_sub(at_ns) < LENGTH_NS
        {
            return pages;
        }
        if self.lengths.len() >= MOST_LENGTHS {
            self.lengths.clear();
            self.names = Names::new();
        }
        let pages = self.names.length(inode, pid);
        self.lengths.insert(inode, (pages, now_ns));
        pages
    }
}
