//! Working sets: the shadow of an evicted page, and its standing when it comes back.
//!
//! | file | what is in it |
//! |---|---|
//! | `policy` | the seam for policies, as far as working sets go |
//! | `refault` | a page comes back |
//! | `evict_clean` | a clean page goes, and leaves a shadow |
//! | `shadow_nodes` | which tree nodes exist, and which hold nothing but shadows |
//! | `inodes` | names and inodes of files |
//! | `shrink_slab` | the shrinkers of both |
//!
//! It may call: `lru`, `memcontrol`. It is called by: `swap_cache`, `reclaim`, `alloc`, `fault`.

pub(crate) mod evict_clean;
pub(crate) mod inodes;
pub(crate) mod policy;
pub(crate) mod refault;
pub(crate) mod shadow_nodes;
pub(crate) mod shrink_slab;
