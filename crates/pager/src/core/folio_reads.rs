//! State of folios beside the states of pages: which are to be read, and buffers to read them into.

use crate::store::PageBuf;
use crate::uffd::PAGE;

/// A folio that is to be read: its first page, how many it has, and the slot of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolioRead {
    pub(crate) first: u32,
    pub(crate) pages: u32,
    pub(crate) slot: u32,
}

/// State of folios beside the states of pages.
#[derive(Default)]
pub(crate) struct Folios {
    /// Pages that the engine has mapped, to be put in place.
    pub(crate) to_map: Vec<u32>,
    /// Pages among them for which that failed.
    pub(super) failed: Vec<u32>,
    /// Folios to be read.
    pub(crate) reads: Vec<FolioRead>,
    /// Folio whose access goes on, with the content that was read for it.
    pub(super) arrived: Option<(FolioRead, Box<[PageBuf]>)>,
    /// Buffers to read into: each takes the largest folio.
    pub(super) spare: Vec<Box<[PageBuf]>>,
    /// Number of buffers, in use or not. They are pooled, not freed: any thread may fault, and
    /// malloc keeps freed memory for each thread.
    buffers: usize,
    /// Pages of the largest folios that there may be.
    pub(crate) most_pages: usize,
}

impl Folios {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.to_map.capacity() + self.failed.capacity()) * size_of::<u32>()
            + self.reads.capacity() * size_of::<FolioRead>()
            + self.buffers * self.most_pages * PAGE
    }

    /// A buffer, if one is to spare; else one has to be made, without the lock, and counts from now
    /// on.
    pub(crate) fn take_buffer(&mut self) -> Option<Box<[PageBuf]>> {
        let spare = self.spare.pop();
        self.buffers += usize::from(spare.is_none());
        spare
    }
}
