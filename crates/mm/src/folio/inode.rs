//! Names and inodes of files: state of a file that the kernel keeps beside its pages, and without
//! which it keeps no shadow of it.

use crate::ids::MappingId;
use std::collections::VecDeque;

/// State of a file that the kernel keeps beside its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inode {
    /// It has a name (a dentry), which holds the inode.
    pub(crate) has_name: bool,
    /// The name was looked up again since the shrinker came by.
    pub(crate) is_name_referenced: bool,
    /// It is on the list of inodes that may go.
    pub(crate) is_listed: bool,
    /// It was wanted there again since the shrinker came by.
    pub(crate) is_referenced: bool,
}

/// The names and inodes of a (memcg, node), oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct InodeCache {
    /// Files with names.
    pub(crate) names: VecDeque<MappingId>,
    /// Files whose inode may go; those that have got a name or pages since are found out later.
    pub(crate) inodes: VecDeque<MappingId>,
    /// Objects that the shrinker should have scanned, in less than a batch.
    pub(crate) deferred: u64,
}

impl InodeCache {
    /// Names and inodes.
    pub(crate) fn objects(&self) -> u64 {
        (self.names.len() + self.inodes.len()) as u64
    }

    /// A number of which a priority that leaves nothing lets the shrinker rest.
    pub(crate) fn reach(&self) -> u64 {
        (4 * self.objects()).max(self.deferred)
    }

    /// The files on the lists are those that say so.
    pub(crate) fn validate(&self, inode: impl Fn(MappingId) -> Inode) -> Result<(), String> {
        let names = self.names.iter().filter(|&&m| !inode(m).has_name);
        let inodes = self.inodes.iter().filter(|&&m| !inode(m).is_listed);
        match names.chain(inodes).next() {
            Some(m) => Err(format!("{m:?}: is listed among names or inodes, but is {:?}", inode(*m))),
            None => Ok(()),
        }
    }

    /// Takes over those of a group that is gone.
    pub(crate) fn append(&mut self, mut gone: InodeCache) {
        self.names.append(&mut gone.names);
        self.inodes.append(&mut gone.inodes);
    }
}
