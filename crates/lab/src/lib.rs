//! The lab: a machine in virtual time around the engine of `refault-mm`.
#![deny(missing_docs)]

pub mod cost;
pub mod device;
pub mod machine;
pub mod metric;
pub mod scenario;
