//! Descriptors of processes, and where each open file is read next.

use std::collections::HashMap;

/// Meaning of a descriptor.
#[derive(Clone, Debug)]
pub(super) enum Descriptor {
    /// An open file, by its number.
    File(usize),
    /// A socket, a pipe, or what else has no pages.
    Other,
}

/// An open file: descriptors that were duplicated share one.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub(super) path: Vec<u8>,
    /// Byte that is read or written next.
    pub(super) position: u64,
    /// Writes go to the end.
    pub(super) appends: bool,
    /// The page cache is bypassed.
    pub(super) is_direct: bool,
}

/// Descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Vec<OpenFile>,
    /// Tables of descriptors; threads of a process share one.
    tables: Vec<HashMap<i64, Descriptor>>,
    of_process: HashMap<u64, usize>,
    /// The end of each file, as far as it was seen.
    ends: HashMap<Vec<u8>, u64>,
    /// The process that creates another at this moment, and whether that is a thread: lines of the
    /// new one may come before the call returns.
    creating: Option<(u64, bool)>,
}

impl Files {
    fn table(&mut self, process: u64) -> usize {
        if let Some(table) = self.of_process.get(&process) {
            return *table;
        }
        // strace without -o gives the first process no number until there is another.
        let (parent, is_thread) = self.creating.unwrap_or((0, true));
        match self.of_process.get(&parent).copied() {
            Some(of_parent) => self.inherit(process, of_parent, is_thread),
            None => self.add_table(process, HashMap::new()),
        }
    }

    fn add_table(&mut self, process: u64, table: HashMap<i64, Descriptor>) -> usize {
        self.tables.push(table);
        self.of_process.insert(process, self.tables.len() - 1);
        self.tables.len() - 1
    }

    fn inherit(&mut self, process: u64, of_parent: usize, is_thread: bool) -> usize {
        if is_thread {
            self.of_process.insert(process, of_parent);
            return of_parent;
        }
        let copy = self.tables[of_parent].clone();
        self.add_table(process, copy)
    }

    /// A process begins to create another.
    pub(super) fn creating(&mut self, process: u64, is_thread: bool) {
        self.table(process);
        self.creating = Some((process, is_thread));
    }

    /// A process has created another.
    pub(super) fn created(&mut self, process: u64, new: Option<u64>, is_thread: bool) {
        let table = self.table(process);
        self.creating = None;
        if let Some(new) = new.filter(|new| *new > 0 && !self.of_process.contains_key(new)) {
            self.inherit(new, table, is_thread);
        }
    }

    /// A process is over.
    pub(super) fn exited(&mut self, process: u64) {
        self.of_process.remove(&process);
    }

    pub(super) fn opened(&mut self, process: u64, fd: i64, file: OpenFile) {
        self.open.push(file);
        let number = self.open.len() - 1;
        self.set(process, fd, Descriptor::File(number));
    }

    pub(super) fn set(&mut self, process: u64, fd: i64, descriptor: Descriptor) {
        let table = self.table(process);
        self.tables[table].insert(fd, descriptor);
    }

    pub(super) fn get(&mut self, process: u64, fd: i64) -> Option<Descriptor> {
        let table = self.table(process);
        self.tables[table].get(&fd).cloned()
    }

    pub(super) fn close(&mut self, process: u64, first: i64, last: i64) {
        let table = self.table(process);
        self.tables[table].retain(|fd, _| !(first..=last).contains(fd));
    }

    pub(super) fn file(&mut self, number: usize) -> &mut OpenFile {
        &mut self.open[number]
    }

    /// The end of a file, as far as it was seen.
    pub(super) fn end(&self, path: &[u8]) -> u64 {
        self.ends.get(path).copied().unwrap_or(0)
    }

    /// Bytes up to there are in a file.
    pub(super) fn reaches(&mut self, path: &[u8], end: u64) {
        match self.ends.get_mut(path) {
            Some(known) => *known = end.max(*known),
            None => drop(self.ends.insert(path.to_owned(), end)),
        }
    }
}
