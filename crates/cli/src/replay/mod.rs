//! `refault replay`: a trace through the engine, with devices that answer at once.

pub mod cell;
mod machine;
