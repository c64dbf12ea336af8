//! What the command `refault` is made of.

pub mod replay;
