//! Pages that were in memory before the recording: files that are looked at beside the events.

use super::Recorder;
use crate::event::Inode;
use crate::members;
use crate::names::pages;
use crate::open_files::{self, Walk};
use crate::residency::{PIECE, pages_in_memory};
use crate::ring::now_ns;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Longest time that all looks at large files take together.
const LONGEST: Duration = Duration::from_secs(60);

/// Most pages of a file that is looked at: 4 TiB.
const MOST_PAGES: u64 = 1 << 30;

/// A large file, piece by piece.
#[derive(Debug)]
struct WarmLook {
    inode: Inode,
    file: File,
    /// Pages that are still to be looked at.
    left: Range<u64>,
    seen: Vec<Range<u64>>,
}

/// Files that are still to be looked at.
#[derive(Debug, Default)]
pub(super) struct WarmFiles {
    looks: VecDeque<WarmLook>,
    /// Folders of files that are open.
    walk: Walk,
    /// Programs had more open than could be looked at.
    cut: bool,
    spent: Duration,
}

impl WarmFiles {
    /// For the recording: what is known; `failed` files could not be looked at.
    pub(super) fn in_words(&self, failed: u32) -> String {
        let mut words = "pages in memory at the start".to_owned();
        match failed + self.walk.failed {
            0 => {}
            1 => words += " (of all files but one)",
            n => words += &format!(" (of all files but {n})"),
        }
        if self.cut || self.walk.cut {
            words += " (cut: there were too many files)";
        }
        words
    }
}

impl Recorder {
    /// Programs that run have files open and mapped: of these it is noted what is in memory.
    pub(super) fn find_what_is_in_use(&mut self) {
        if self.recording.attached != Some(true) {
            return;
        }
        let others = members::more(self.members.rule(), self.group.as_ref());
        let mut pids: Vec<u32> = self.members.pids().chain(others).collect();
        pids.sort_unstable();
        pids.dedup();
        let (files, folders, cut) = open_files::in_use(pids);
        self.warm = WarmFiles { walk: Walk::new(folders), cut, ..WarmFiles::default() };
        for file in files {
            if self.names.is_of_disk(file.inode.dev) {
                self.names.hint(file.inode, file.path);
                self.assembler.register(file.inode, file.pid, &mut self.names);
            }
        }
    }

    /// Looks at what is still to be looked at, for a while.
    pub(super) fn look_on(&mut self, longest: Duration) {
        let begun = Instant::now();
        for (inode, _) in self.assembler.to_look() {
            self.begin_look(inode);
        }
        while let Some(mut look) = self.warm.looks.pop_front() {
            let piece = look.left.start..look.left.end.min(look.left.start + PIECE);
            look.left.start = piece.end;
            let runs = pages_in_memory(&look.file, piece);
            let over = self.warm.spent + begun.elapsed() > LONGEST;
            match runs {
                Ok(runs) if !over => look.seen.extend(runs),
                _ => {
                    self.assembler.looked(look.inode, None, 0);
                    continue;
                }
            }
            match look.left.is_empty() {
                true => self.assembler.looked(look.inode, Some(look.seen), now_ns()),
                false => self.warm.looks.push_front(look),
            }
            if begun.elapsed() > longest {
                break;
            }
        }
        while !self.warm.walk.is_done() && begun.elapsed() < longest {
            for (inode, path) in self.warm.walk.go_on(longest / 4) {
                self.names.hint(inode, path);
                self.assembler.register(inode, 0, &mut self.names);
            }
        }
        self.warm.spent += begun.elapsed();
    }

    fn begin_look(&mut self, inode: Inode) {
        let opened = self.names.open(inode).and_then(|file| Some((pages(&file.metadata().ok()?), file)));
        match opened.filter(|(length, _)| *length <= MOST_PAGES) {
            Some((length, file)) => {
                self.warm.looks.push_back(WarmLook { inode, file, left: 0..length, seen: Vec::new() })
            }
            None => self.assembler.looked(inode, None, 0),
        }
    }
}
