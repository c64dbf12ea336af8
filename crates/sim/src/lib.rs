//! The lab: a machine in virtual time around the engine of `refault-mm`.
#![deny(missing_docs)]

pub mod scenario;
