//! Real memory on the engine.
#![deny(missing_docs)]

pub mod mem;
pub mod store;
pub mod uffd;
