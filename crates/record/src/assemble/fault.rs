//! Faults on mapped files: each is one access, though the kernel tells of it in pieces.
//!
//! A fault has an address. Fault-around says its block if there is anything in it; a page that is
//! not there is a fault of its own. When what was missing has been read the fault begins anew
//! (`VM_FAULT_RETRY`), without another address: fault-around, and sometimes the fault, are told of
//! once more.

use super::{Assembler, Files, Kind, Open, PAGE_SHIFT};
use crate::event::{Event, Inode};
use refault_trace::{Op, RecordKind, Via};

/// Pages of the aligned block that fault-around takes.
const AROUND: u64 = 16;

impl Assembler {
    /// A fault begins at this address: the one before has ended.
    pub(super) fn begin_fault(&mut self, tid: u32, address: u64) {
        self.has_addresses = true;
        let thread = self.thread(tid);
        thread.address = Some(address);
        if thread.open.is_some_and(|open| matches!(open.kind, Kind::Around | Kind::Fault)) {
            self.settle(tid);
        }
    }

    pub(super) fn fault(&mut self, event: &Event, inode: Inode, page: u64, files: &mut impl Files) {
        self.file(inode, event.pid, files);
        let begins_anew = self.thread(event.tid).address.take().is_none() && self.has_addresses;
        let open = self.thread(event.tid).open.filter(|open| open.inode == inode);
        if let Some(open) = open.filter(|open| open.kind == Kind::Around) {
            // Fault-around did not settle it: this is the page.
            if let Some(record) = self.queued(open.at) {
                record.page = page;
            }
            self.thread(event.tid).open = Some(Open { kind: Kind::Fault, end: page, ..open });
            return;
        }
        if begins_anew && open.is_some_and(|open| open.kind == Kind::Fault && open.end == page) {
            return;
        }
        self.settle(event.tid);
        let at = self.push(event, inode, page, 1, Op { write: false, via: Some(Via::Map) }, RecordKind::Touch);
        let thread = self.thread(event.tid);
        thread.fresh.clear();
        thread.open = Some(Open { at, inode, kind: Kind::Fault, end: page });
    }

    pub(super) fn around(&mut self, event: &Event, inode: Inode, first: u64, last: u64, files: &mut impl Files) {
        self.file(inode, event.pid, files);
        let Some(address) = self.thread(event.tid).address.take() else {
            if !self.has_addresses {
                self.settle(event.tid);
            }
            return;
        };
        self.settle(event.tid);
        // The block begins where the address is rounded down to, but for one that the start of the
        // mapping cuts.
        let page = first.saturating_add((address >> PAGE_SHIFT) % AROUND).min(last);
        let at = self.push(event, inode, page, 1, Op { write: false, via: Some(Via::Map) }, RecordKind::Touch);
        self.thread(event.tid).open = Some(Open { at, inode, kind: Kind::Around, end: last });
    }
}
