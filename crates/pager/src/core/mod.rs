//! The core of the pager: what regions and mapped files have in common, and processes in part:
//! their pages, the budget and the evictor, not their faults.
//!
//! It has no I/O, no clock, no threads and no `unsafe`: time comes in as data
//! ([`Core::set_now`]), memory is changed by [`Operations`], and calls that take long are made by
//! who drives it, between two calls of the core. So it runs on a simulated kernel, too.
//!
//! | file | what is there |
//! |---|---|
//! | `operations` | the trait below: calls on memory |
//! | `serve` | faults: served, retried, ended by what was read |
//! | `faults` | faults that wait, for a page or for a frame |
//! | `swap_out` | pages on their way out: moves, claims, writes, what becomes of them |
//! | `moves` | one batch of moves, as far as it came |
//! | `places` | which staging places are free |
//! | `swap_core` | what the core of anonymous memory holds |
//! | `state`, `pages` | the states of pages, and what is on its way out; of whole programs, too |
//! | `memory` | what the engine's orders do to pages |
//! | `folio`, `folio_reads` | pages that come and go as one |
//! | `budget`, `limits`, `memory_high` | what may be taken, and who waits for having taken more |
//! | `advise` | what the owner says: cold, out, given up |
//! | `evictor` | what the evictor's thread does next |
//! | `progress_guard` | how long someone goes on who makes room |
//! | `written_cache` | answers to "was it written?", asked beforehand |
//! | `validate` | what must be so at any time |
//!
//! It calls the engine and the swap area, and is called by `region`, `file` and `process`.

mod advise;
mod budget;
mod effects;
mod evictor;
mod faults;
mod folio;
mod folio_reads;
mod limits;
mod memory;
mod memory_high;
mod moves;
mod operations;
mod pages;
mod places;
mod progress_guard;
mod serve;
#[cfg(test)]
pub(crate) mod simulation;
mod state;
mod stats;
mod swap_core;
mod swap_out;
mod validate;
mod written_cache;

pub use budget::Limits;
pub(crate) use budget::{Budget, engine_bytes, kswapd_step, used_pages};
pub(crate) use effects::answer;
pub(crate) use evictor::{Evictor, EvictorCore, Task};
pub(crate) use faults::{Fault, MAX_MESSAGES, Waiting, WaitingForFrame};
pub(crate) use folio_reads::FolioRead;
pub(crate) use memory::Memory;
pub(crate) use memory_high::{MOST_LEAVING, MemoryHigh, Released};
pub(crate) use moves::{Moved, Moves};
pub(crate) use operations::{FillMode, Operations, Progress, Source, Stopped};
pub(crate) use pages::{BYTES_PER_PAGE, DriverPages, PageCounts, extend};
pub(crate) use places::{Places, WINDOW};
pub(crate) use progress_guard::ProgressGuard;
pub(crate) use state::State;
pub use stats::Counts;
pub(crate) use swap_core::Core;
pub(crate) use swap_out::{Claim, DISCARD_BATCH};
