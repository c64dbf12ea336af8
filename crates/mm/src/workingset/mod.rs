//! Working sets: what an evicted page leaves, and what it gets when it comes back.
//!
//! | file | what is in it |
//! |---|---|
//! | `policy` | the seam for policies, as far as working sets go |
//! | `refault` | a page comes back |
//! | `evict_clean` | a clean page goes, and leaves a shadow |
//! | `shadow_nodes` | tree nodes with nothing but shadows, and their shrinker |
//!
//! It may call: `lru`, `charged`. It is called by: `swap_cache`, `reclaim`, `alloc`, `fault`.

pub(crate) mod evict_clean;
pub(crate) mod policy;
pub(crate) mod refault;
pub(crate) mod shadow_nodes;
