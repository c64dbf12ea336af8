//! All tests of the command in one program: what they share is compiled once.

mod common;
mod doctor;
mod run;
mod run_ends;
mod run_memory;
