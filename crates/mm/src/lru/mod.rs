//! The lists: the place of each folio, the effect of a touch on it, and its age. [`pages::Pages`]
//! owns all of it.
//!
//! | file | what is in it |
//! |---|---|
//! | `pages` | `ResidentPages`, the part of the engine that holds folios, mappings and lists |
//! | `lru_list` | the lists of an lruvec by number |
//! | `lruvec` | the lists of one group on one node |
//! | `multi_gen` | generations, tiers, the refault controller |
//! | `policy` | the seam for policies, as far as lists go |
//! | `place` | putting folios on lists and taking them off |
//! | `batch` | per-CPU batches |
//! | `two_list` | taking and putting back, with two lists |
//! | `tier` | accesses by descriptor in the flags of a folio, and tiers |
//! | `aging`, `look_around`, `sort` | multi-gen LRU: new generations, accessed bits, sorting the oldest generation |
//! | `recency` | where accessed bits do not count, because of advice |
//! | `sizes` | sizes of lists, of groups and trees |
//! | `reparent` | lists of a removed group that go to its parent |
//! | `map`, `read` | mapping pages; reads under way |
//! | `validate` | checks |
//!
//! It may call: `folio`, and groups to read their tree. It is called by: `workingset`, `writeback`,
//! `reclaim` and all above.

pub(crate) mod aging;
pub(crate) mod batch;
pub(crate) mod look_around;
pub(crate) mod lru_list;
pub(crate) mod lruvec;
pub(crate) mod map;
pub(crate) mod multi_gen;
pub(crate) mod pages;
pub(crate) mod place;
pub(crate) mod policy;
pub(crate) mod read;
pub(crate) mod recency;
pub(crate) mod reparent;
pub(crate) mod sizes;
pub(crate) mod sort;
pub(crate) mod tier;
pub(crate) mod two_list;
pub(crate) mod validate;
