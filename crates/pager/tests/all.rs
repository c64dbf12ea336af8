//! All tests of the crate's public side in one program, but those of `limit`, `signal`, `tree` and
//! `inject`, which need a process of their own.

mod accounting;
mod awake;
mod clean;
mod common;
mod control;
mod faults;
mod folios;
mod fork;
mod guarded;
mod integrity;
mod lab;
mod manager_death;
mod mapped_file;
mod mapped_file_faults;
mod mapped_file_sync;
mod pool_balance;
mod pool_model;
mod refusals;
mod room;
mod tree_lab;
mod wipe_on_fork;
