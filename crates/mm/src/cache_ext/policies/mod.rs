//! The policies that come with the engine, one a file.
//!
//! | file | the policy |
//! |---|---|
//! | `fifo` | first in, first out |
//! | `clock` | second chance |
//! | `exact_lru` | least and most recently used, exactly |
//! | `lfu` | least frequently used of a sample |
//! | `sieve` | SIEVE |
//! | `s3fifo` | S3-FIFO |
//! | `arc` | ARC |
//! | `twoq` | 2Q |
//! | `lirs` | LIRS |
//! | `wtinylfu` | W-TinyLFU |
//! | `mglru` | multi-gen LRU |
//! | `get_scan` | what scans bring in goes first: a policy that the application informs |
//! | `plain` | a plain cache for the checks of the policies (tests only) |
//!
//! The policies call `list` and `ops`; `builtin` names the policies.

pub(super) mod arc;
pub(super) mod clock;
pub(super) mod exact_lru;
pub(super) mod fifo;
pub(super) mod get_scan;
pub(super) mod lfu;
pub(super) mod lirs;
pub(super) mod mglru;
#[cfg(test)]
mod plain;
pub(super) mod s3fifo;
pub(super) mod sieve;
pub(super) mod twoq;
pub(super) mod wtinylfu;
