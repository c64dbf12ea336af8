//! Names and inodes of files: state that the kernel keeps beside the pages of a file. Without an
//! inode it keeps no shadow of the file.

use crate::ids::MappingId;
use std::collections::VecDeque;

/// State of a file that the kernel keeps beside its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inode {
    /// The file has a name (a dentry), which holds the inode.
    pub(crate) has_name: bool,
    /// The name was looked up again since the shrinker came by.
    pub(crate) is_name_referenced: bool,
    /// The inode is on the list of inodes that may go.
    pub(crate) is_listed: bool,
    /// The inode was to be listed again since the shrinker came by.
    pub(crate) is_referenced: bool,
}

/// The names and inodes of a (memcg, node), oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct InodeCache {
    /// Files with names.
    pub(crate) names: VecDeque<MappingId>,
    /// Files whose inode may go. If a file has got a name or pages since, that is found out later.
    pub(crate) inodes: VecDeque<MappingId>,
    /// Names and inodes that the shrinker still has to scan, fewer than a batch.
    pub(crate) deferred: u64,
}

impl InodeCache {
    /// Number of names and inodes.
    pub(crate) fn objects(&self) -> u64 {
        (self.names.len() + self.inodes.len()) as u64
    }

    /// A bound on the objects to scan: a priority that shifts it to 0 leaves the shrinker nothing
    /// to do.
    pub(crate) fn reach(&self) -> u64 {
        (4 * self.objects()).max(self.deferred)
    }

    /// Checks that the files on the lists have a name, or a listed inode.
    pub(crate) fn validate(&self, inode: impl Fn(MappingId) -> Inode) -> Result<(), String> {
        let names = self.names.iter().filter(|&&m| !inode(m).has_name);
        let inodes = self.inodes.iter().filter(|&&m| !inode(m).is_listed);
        match names.chain(inodes).next() {
            Some(m) => Err(format!("{m:?}: is listed among names or inodes, but is {:?}", inode(*m))),
            None => Ok(()),
        }
    }

    /// Takes over the names and inodes of a group that is gone.
    pub(crate) fn append(&mut self, mut gone: InodeCache) {
        self.names.append(&mut gone.names);
        self.inodes.append(&mut gone.inodes);
    }
}
