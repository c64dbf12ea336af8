//! `refault size`: the smallest limit of a group with which a target is met, by the library.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags, as a request |
//! | `command` | from flags to output |
//! | `text`, `picture`, `summary` | the result for people |
//!
//! It calls `refault::size`. `main` calls `run`.

mod args;
mod command;
mod picture;
mod summary;
mod text;

pub use args::SizeArgs;
pub use command::run;
