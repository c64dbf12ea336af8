//! Files: their numbers, how long they are, how large their folios were.

use super::length::FirstLength;
use super::{Assembler, Files, NewFile};
use crate::event::{Event, Inode};

/// State of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) object: u32,
    pub(super) pages: Option<u64>,
    /// Whether the length may be another one than is known.
    pub(super) doubted: bool,
    /// A program that is recorded has used it.
    used: bool,
}

impl Assembler {
    /// The file, which gets a number when it is new.
    pub(super) fn file(&mut self, inode: Inode, pid: u32, files: &mut impl Files) -> File {
        match self.files.get(&inode) {
            Some(file) if file.used => *file,
            _ => self.known_file(inode, pid, true, files),
        }
    }

    pub(super) fn known_file(&mut self, inode: Inode, pid: u32, used: bool, files: &mut impl Files) -> File {
        if let Some(file) = self.files.get_mut(&inode) {
            self.unused -= u32::from(used && !file.used);
            file.used |= used;
            return *file;
        }
        let object = self.objects;
        self.objects += 1;
        self.unused += u32::from(!used);
        let NewFile { pages, look, shmem } = files.numbered(inode, object, pid);
        if shmem {
            self.of_memory.insert(object);
        }
        if let Some(pages) = pages {
            self.first_lengths.insert(object, FirstLength::new(pages, files.now_ns()));
        }
        self.first_look(inode, object, pid, look);
        let file = File { object, pages, doubted: false, used };
        self.files.insert(inode, file);
        file
    }

    /// Notes that a file has at least `pages` pages.
    pub(super) fn grown(&mut self, inode: Inode, pages: u64) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.pages = Some(file.pages.unwrap_or(0).max(pages));
        }
    }

    /// Notes that a file has another length than is known, if there is something at this page.
    pub(super) fn doubt(&mut self, inode: Inode, end: u64) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.doubted |= file.pages.is_some_and(|pages| end > pages);
        }
    }

    /// Length of a file in pages when `page` is read: asked again when it seems to have changed. A
    /// file does not grow unless pages are added, or written.
    pub(super) fn length(&mut self, event: &Event, inode: Inode, page: u64, last: u64, files: &mut impl Files) -> u64 {
        let File { pages: known, doubted, .. } = self.file(inode, event.pid, files);
        if known.is_none_or(|pages| page >= pages || doubted && last >= pages)
            && let Some(pages) = files.pages(inode, event.pid)
        {
            self.files.entry(inode).and_modify(|file| (file.pages, file.doubted) = (Some(pages), false));
        }
        // A page that is read is there, whatever is known.
        self.files[&inode].pages.unwrap_or(0).max(page + 1)
    }

    pub(super) fn note_order(&mut self, object: u32, order: u8) {
        let at = object as usize;
        if order > 0 && self.orders.len() <= at {
            self.orders.resize(at + 1, 0);
        }
        if let Some(largest) = self.orders.get_mut(at) {
            *largest = order.max(*largest);
        }
    }

    /// Objects that have a number.
    pub fn objects(&self) -> u32 {
        self.objects
    }

    /// Objects that have a number, and were used.
    pub fn used(&self) -> u32 {
        self.objects - self.unused
    }

    /// The largest order of a folio of the file with this number; 0: it had single pages.
    pub fn folio_order(&self, object: usize) -> u8 {
        self.orders.get(object).copied().unwrap_or(0)
    }

    /// The pages that the file with this number had when it was first seen, if that is known.
    pub fn first_pages(&self, object: usize) -> Option<u64> {
        self.first_lengths.get(&(object as u32)).map(FirstLength::pages)
    }
}
