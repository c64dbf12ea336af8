//! Accesses that looks at the memory of processes tell, and faults on anonymous memory.

use super::space::{AddressSpace, SpaceChange};
use super::{Assembler, Files, PAGE_SHIFT};
use crate::event::Event;
use crate::scan::Scan;
use refault_trace::{AdviceKind, Op, RecordKind, Via};

/// End of the address space that programs have.
const END: u64 = 1 << 56;

impl Assembler {
    /// Anonymous memory is recorded, too.
    pub fn record_memory(&mut self) {
        self.with_memory = true;
    }

    /// A look at a process, at the time of the event.
    pub fn look(&mut self, event: &Event, scan: &Scan, files: &mut impl Files) {
        let op = Op { write: scan.writes, via: Some(Via::Map) };
        self.last_ns = self.last_ns.max(event.time_ns);
        for &inode in &scan.in_view {
            // Nothing is known of a file that nobody uses otherwise but that it is mapped.
            if let Some(file) = self.files.get(&inode) {
                self.in_view.insert(file.object);
            }
        }
        for &(inode, page, pages) in &scan.files {
            let object = self.file(inode, event.pid, files).object;
            self.in_view.insert(object);
            self.grown(inode, page.saturating_add(pages));
            self.push_to(event, object, page, pages, op, RecordKind::Sampled);
        }
        files.memory_ended(event.pid);
        if self.with_memory && (!scan.memory.is_empty() || self.memory.contains_key(&event.pid)) {
            let (object, space) = self.memory_of(event.pid, files);
            let changes = space.look(&scan.memory, scan.writes);
            self.in_view.insert(object);
            self.changed(event, object, &changes);
        }
    }

    /// A fault at an address.
    pub(super) fn address(&mut self, event: &Event, address: u64, write: bool, files: &mut impl Files) {
        self.begin_fault(event.tid, address);
        if let Some(range) = files.executable(event.pid, address)
            && self.executable.insert(range)
        {
            let (inode, first, pages) = range;
            self.file(inode, event.pid, files);
            self.push(event, inode, first, pages, Op::READ, RecordKind::Advise(AdviceKind::MapExecutable));
        }
        if !self.with_memory || address >= END || !files.is_anonymous(event.pid, address) {
            return;
        }
        let page = address >> PAGE_SHIFT;
        let (object, space) = self.memory_of(event.pid, files);
        let kind = if space.fault(page) { RecordKind::Miss } else { RecordKind::Hit };
        self.push_to(event, object, page, 1, Op { write, via: Some(Via::Map) }, kind);
    }

    /// The process ended, or runs another program: its memory is gone.
    pub(super) fn end_memory(&mut self, event: &Event, files: &mut impl Files) {
        files.memory_ended(event.pid);
        if let Some((object, mut space)) = self.memory.remove(&event.pid) {
            self.changed(event, object, &space.end());
        }
    }

    fn changed(&mut self, event: &Event, object: u32, changes: &[SpaceChange]) {
        for change in changes {
            let op = Op { write: change.write, via: Some(Via::Map) };
            let op = if change.kind.is_touch() { op } else { Op::READ };
            self.push_to(event, object, change.first, change.pages, op, change.kind);
        }
    }

    fn memory_of(&mut self, pid: u32, files: &mut impl Files) -> (u32, &mut AddressSpace) {
        let (objects, numbers) = (&mut self.objects, &mut self.of_memory);
        let (object, space) = self.memory.entry(pid).or_insert_with(|| {
            let object = *objects;
            *objects += 1;
            numbers.insert(object);
            files.memory_numbered(object, pid);
            (object, AddressSpace::default())
        });
        (*object, space)
    }

    pub(super) fn is_memory(&self, object: u32) -> bool {
        self.of_memory.contains(&object)
    }

    /// Whether touches of the object with this number would be seen by sampling.
    pub fn is_in_view(&self, object: usize) -> bool {
        self.in_view.contains(&(object as u32))
    }
}
