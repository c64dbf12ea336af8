//! Threads that are recorded: numbers, names, groups.

use crate::assemble::Assembler;
use crate::event::{COMM, Event, EventKind};
use crate::group;
use rustc_hash::FxHashMap;
use std::fs;

/// The threads of a recording.
#[derive(Default)]
pub(crate) struct Tasks {
    /// Number of a thread in records, by thread.
    numbers: FxHashMap<u32, u32>,
    /// Names of threads, by number.
    pub(crate) names: Vec<String>,
    /// Groups, by number.
    pub(crate) groups: Vec<String>,
    /// Parent of a process, by process: its name and group hold until the process says otherwise.
    parents: FxHashMap<u32, u32>,
    /// Last known name and group of a process, by process.
    known: FxHashMap<u32, (String, String)>,
}

impl Tasks {
    /// A thread that is recorded does something: it gets a number, and a name.
    pub(crate) fn see(&mut self, event: &Event, assembler: &mut Assembler, with_groups: bool) {
        if let EventKind::Fork { parent } = event.kind {
            self.parents.insert(event.pid, parent);
        }
        let number = match self.numbers.get(&event.tid) {
            Some(&number) => number,
            None => self.add(event, assembler, with_groups),
        };
        if let EventKind::Comm { name, .. } = event.kind {
            let name = text(&name);
            self.names[number as usize] = format!("{name} {}", event.tid);
            if let Some(known) = self.known.get_mut(&event.pid).filter(|_| event.pid == event.tid) {
                known.0 = name;
            }
        }
    }

    /// Name and group of a process; if the process is gone, of its parent.
    fn about(&mut self, pid: u32) -> (String, String) {
        let (mut at, mut steps) = (pid, 0);
        let found = loop {
            if let Some(known) = self.known.get(&at) {
                break known.clone();
            }
            let comm = fs::read(format!("/proc/{at}/comm")).ok();
            if let Some((comm, path)) = comm.zip(group::of_process(at)) {
                break (text(comm.trim_ascii()), path);
            }
            steps += 1;
            match self.parents.get(&at) {
                Some(&parent) if steps < 64 => at = parent,
                _ => break ("?".to_owned(), "/".to_owned()),
            }
        };
        self.known.entry(pid).or_insert(found).clone()
    }

    fn add(&mut self, event: &Event, assembler: &mut Assembler, with_groups: bool) -> u32 {
        let number = self.names.len() as u32;
        self.numbers.insert(event.tid, number);
        let (name, mut path) = self.about(event.pid);
        self.names.push(format!("{name} {}", event.tid));
        if !with_groups {
            "/".clone_into(&mut path);
        }
        let group = self.groups.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.groups.push(path);
            self.groups.len() - 1
        });
        assembler.set_thread(event.tid, number, group as u32);
        number
    }
}

fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len()).min(COMM);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
