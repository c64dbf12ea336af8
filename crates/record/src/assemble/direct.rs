//! Reads and writes that bypass the page cache, and how they compare with those that do not.

use super::{Assembler, Files};
use crate::event::{Event, Inode};
use refault_trace::{DirectIo, Record, Via};
use rustc_hash::FxHashMap;

/// By object.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    direct: FxHashMap<u32, DirectIo>,
    /// Pages that were read and written by descriptor in the page cache.
    cached: Vec<u64>,
}

impl Descriptors {
    pub(super) fn direct(&mut self, object: u32, bytes: u64, write: bool) {
        let io = self.direct.entry(object).or_default();
        let (calls, sum) = match write {
            true => (&mut io.writes, &mut io.write_bytes),
            false => (&mut io.reads, &mut io.read_bytes),
        };
        (*calls, *sum) = (*calls + 1, sum.saturating_add(bytes));
    }

    #[inline]
    pub(super) fn cached(&mut self, record: &Record) {
        if record.kind.is_touch() && record.op.via == Some(Via::Fd) {
            let at = record.object as usize;
            if self.cached.len() <= at {
                self.cached.resize(at + 1, 0);
            }
            self.cached[at] += u64::from(record.pages);
        }
    }
}

/// Bytes read and written by descriptor that bypassed the page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectShare {
    /// Bytes of all files.
    pub all: DirectIo,
    /// The share of these bytes in all that were read and written by descriptor, 0 to 1.
    pub share: f64,
    /// Object with most of these bytes, and their share in the object's own bytes, 0 to 1.
    pub most: (u32, f64),
}

impl Assembler {
    /// The first step of a call, extent by extent, counts for all of it.
    pub(super) fn direct_step(&mut self, event: &Event, inode: Inode, write: bool, files: &mut impl Files) {
        let begun = self.thread(event.tid).direct.take();
        if let Some((_, bytes)) = begun.filter(|(of, _)| *of == inode) {
            let object = self.file(inode, event.pid, files).object;
            self.descriptors.direct(object, bytes, write);
        }
    }

    /// Bytes of the object with this number that bypassed the page cache.
    pub fn direct(&self, object: usize) -> Option<DirectIo> {
        self.descriptors.direct.get(&(object as u32)).copied()
    }

    /// Bytes that bypassed the page cache; none: no bytes did.
    pub fn bypass(&self) -> Option<DirectShare> {
        let Descriptors { direct, cached } = &self.descriptors;
        let bytes = |io: &DirectIo| io.read_bytes + io.write_bytes;
        let (&most, io) = direct.iter().max_by_key(|(object, io)| (bytes(io), u32::MAX - **object))?;
        let share = |direct: u64, pages: u64| direct as f64 / (direct + (pages << 12)).max(1) as f64;
        let own = share(bytes(io), cached.get(most as usize).copied().unwrap_or(0));
        let mut all = DirectIo::default();
        for io in direct.values() {
            all.reads += io.reads;
            all.read_bytes += io.read_bytes;
            all.writes += io.writes;
            all.write_bytes += io.write_bytes;
        }
        Some(DirectShare { all, share: share(bytes(&all), cached.iter().sum()), most: (most, own) })
    }
}
