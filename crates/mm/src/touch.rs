//! Touches of pages, and their outcomes.

use crate::ids::MemcgId;

/// Kind of an access to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Read by descriptor.
    Read,
    /// Read by descriptor, going on in the page where the last read on the descriptor ended: not
    /// counted as another access.
    ReadContinued,
    /// Written by descriptor: the whole page, so nothing is read before.
    Write,
    /// Read through a mapping.
    MapRead,
    /// Written through a mapping.
    MapWrite,
}

impl Touch {
    pub(crate) fn is_mapped(self) -> bool {
        matches!(self, Touch::MapRead | Touch::MapWrite)
    }

    pub(crate) fn is_write(self) -> bool {
        matches!(self, Touch::Write | Touch::MapWrite)
    }
}

/// Outcome of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Resident; by mapping: mapped.
    Hit,
    /// Resident, but a mapping had to be made.
    Minor,
    /// The data had to be read, and was.
    Major,
    /// The first touch of an anonymous page, or a whole page written to a file.
    Fresh,
    /// I/O on the page is under way: access the page again when the I/O has ended.
    Waiting,
    /// There is no room before kswapd or writes under way make some: access the page again in a
    /// while, a tick at most.
    Throttled,
    /// The read failed.
    Failed,
    /// There is no room, and nothing to reclaim.
    Oom(MemcgId),
}

impl Outcome {
    /// Whether the page was in memory.
    pub fn is_hit(self) -> bool {
        matches!(self, Outcome::Hit | Outcome::Minor)
    }
}
