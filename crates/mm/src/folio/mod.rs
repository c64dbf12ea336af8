//! Folios: resident pages, the slots of pages, the lists that folios stand on, and the mappings
//! that pages belong to.
//!
//! | file | what is in it |
//! |---|---|
//! | `table` | what is resident, in which state, on which list |
//! | `flags` | the flags of a folio |
//! | `slot` | the 12 bytes of a page: a shadow, a swap entry, or its folio |
//! | `shadow` | how a shadow entry is packed |
//! | `list` | the lists that folios stand on |
//! | `places` | one list, as a ring of places |
//! | `mapping` | files and anonymous regions: tree nodes and page tables |
//! | `inode` | names and inodes of files, which the kernel keeps beside their pages |
//! | `readahead` | what a mapping remembers of its faults |
//! | `size_stats` | counters of the sizes of folios |
//!
//! It may call: numbers of things and the configuration. It is called by: every room above.

pub(crate) mod flags;
pub(crate) mod inode;
pub(crate) mod list;
pub(crate) mod mapping;
mod places;
pub(crate) mod readahead;
pub(crate) mod shadow;
pub(crate) mod size_stats;
pub(crate) mod slot;
pub(crate) mod table;
