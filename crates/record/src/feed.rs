//! Events of a sample of the pages of a machine as they come, for who watches it all the time.

use crate::event::{Decoder, Event, Inode};
use crate::group;
use crate::group_names::GroupNames;
use crate::machine;
use crate::names::Names;
use crate::probes::{self, Probes};
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
pub struct Feed {
    rings: Rings,
    /// Removed after the events on them have ended.
    _probes: Option<Probes>,
    names: Names,
    groups: GroupNames,
    lengths: FxHashMap<Inode, (Option<u64>, u64)>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Feed {
    /// Opens the events of a sample, with rings of so many bytes on each CPU.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn open(tracefs: Option<&Path>, sample: SpaceSample, ring_bytes: usize) -> Result<Feed, String> {
        let tracefs = Tracefs::find(tracefs)?;
        let probes = probes::needed(&tracefs)?;
        let decoder = Decoder::new(&tracefs, probes.as_ref().map(Probes::group), Some(sample))?.of_pages();
        let (mut rings, calibration) = machine::open_rings(decoder, ring_bytes, true)?;
        rings.set_last_beyond(calibration.last_beyond);
        let has_ids = calibration.cgroup != 0 && group::own_id() == Some(calibration.cgroup);
        let groups = GroupNames::new(has_ids)?;
        Ok(Feed { rings, _probes: probes, names: Names::new(), groups, lengths: FxHashMap::default() })
    }

    /// Appends the events up to a moment ago, by time; up to when that is all of them.
    pub fn take(&mut self, out: &mut Vec<Event>) -> u64 {
        self.rings.take(out, false)
    }

    /// Events that were read, and events that were lost, since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.rings.read, self.rings.lost + self.rings.undecoded)
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
