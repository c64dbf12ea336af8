//! Kinds of events, and which of them a trace is made of.

use crate::record::Via;
use crate::seen::Seen;

/// EventKind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// Pages that a read wants, whether they are in memory or not.
    GetPages,
    /// A fault on a mapped file.
    FileFault,
    /// A call that says the place: a read or a write.
    Call { write: bool },
    /// A page was added to the page cache.
    Added,
    /// A fault of a program.
    Fault,
    /// A request to a block device.
    Block,
    /// A call that reads or writes where the file is at that moment.
    WithoutPlace,
}

/// Events that are read together, by how much they see; a file is read by the first of them that
/// its front has.
pub(super) struct Class {
    pub(super) name: &'static str,
    events: &'static [(&'static str, EventKind)],
    pub(super) seen: Seen,
}

const READ: EventKind = EventKind::Call { write: false };
const WRITE: EventKind = EventKind::Call { write: true };

pub(super) const CLASSES: [Class; 8] = [
    Class {
        name: "mm_filemap_get_pages and mm_filemap_fault",
        events: &[("mm_filemap_get_pages", EventKind::GetPages), ("mm_filemap_fault", EventKind::FileFault)],
        seen: Seen::SystemCalls,
    },
    Class {
        name: "sys_enter_pread64 and sys_enter_pwrite64",
        events: &[
            ("sys_enter_pread64", READ),
            ("sys_enter_pwrite64", WRITE),
            ("sys_pread64", READ),
            ("sys_pwrite64", WRITE),
        ],
        seen: Seen::SystemCalls,
    },
    Class {
        name: "mm_filemap_add_to_page_cache",
        events: &[("mm_filemap_add_to_page_cache", EventKind::Added)],
        seen: Seen::Additions,
    },
    Class {
        name: "page faults",
        events: &[
            ("page-faults", EventKind::Fault),
            ("faults", EventKind::Fault),
            ("major-faults", EventKind::Fault),
            ("minor-faults", EventKind::Fault),
            ("page_fault_user", EventKind::Fault),
        ],
        seen: Seen::Faults,
    },
    Class { name: "block_bio_queue", events: &[("block_bio_queue", EventKind::Block)], seen: Seen::BlockRequests },
    Class { name: "block_rq_insert", events: &[("block_rq_insert", EventKind::Block)], seen: Seen::BlockRequests },
    Class { name: "block_rq_issue", events: &[("block_rq_issue", EventKind::Block)], seen: Seen::BlockRequests },
    Class { name: "block_rq_complete", events: &[("block_rq_complete", EventKind::Block)], seen: Seen::BlockRequests },
];

/// Calls whose place is that of the open file.
const WITHOUT_PLACE: [&str; 4] = ["read", "write", "readv", "writev"];

impl Class {
    /// EventKind of an event of this class.
    pub(super) fn kind(&self, event: &[u8]) -> Option<EventKind> {
        let own = self.events.iter().find(|(name, _)| name.as_bytes() == event).map(|(_, kind)| *kind);
        let call = event.strip_prefix(b"sys_enter_").or_else(|| event.strip_prefix(b"sys_"));
        let is_without = call.is_some_and(|call| WITHOUT_PLACE.iter().any(|name| name.as_bytes() == call));
        own.or_else(|| (is_without && self.events[0].1 == READ).then_some(EventKind::WithoutPlace))
    }

    /// Whether it has that event.
    pub(super) fn has(&self, event: &[u8]) -> bool {
        self.events.iter().any(|(name, _)| name.as_bytes() == event)
    }
}

impl EventKind {
    /// How pages are touched, where the event says it.
    pub(super) fn via(self) -> Option<Via> {
        match self {
            EventKind::GetPages | EventKind::Call { .. } => Some(Via::Fd),
            EventKind::FileFault | EventKind::Fault => Some(Via::Map),
            EventKind::Added | EventKind::Block | EventKind::WithoutPlace => None,
        }
    }
}
