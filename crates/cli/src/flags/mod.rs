//! Values of flags that several subcommands take: sizes of memory, and variants of the engine
//! (`--set`, `--thp`, `--kernel`).
//!
//! It calls the engine for its settings, and nothing of the command; `replay`, `size`, `run` and
//! `runner` call it.

pub(crate) mod kernel;
pub(crate) mod settings;
pub(crate) mod size;
