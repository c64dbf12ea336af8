//! Values of flags that several subcommands take: sizes of memory, and variants of the engine
//! (`--set`, `--thp`, `--kernel`); `list` prints all values of one; `threads` is how many there
//! are; `recorded` has what they are for a recording; `swap` is the kind of swap; `memory` is what
//! the process itself may take; `sampler` is by what the kernel takes a sample.
//!
//! It calls the engine for its settings, and nothing of the command; `replay`, `size`,
//! `report`, `run`, `runner` and `main` call it.

pub(crate) mod kernel;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod recorded;
pub(crate) mod sampler;
pub(crate) mod settings;
pub(crate) mod swap;

pub(crate) use refault::{memory_size as size, threads, time};
