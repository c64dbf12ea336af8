//! `refault replay`: a trace through the engine, with devices that answer at once; or a scenario in virtual time.

mod args;
pub mod cell;
mod command;
mod curve;
mod machine;
pub(crate) mod policy;
mod progress;
mod recorder;
mod row;
mod run;
mod scenario;
pub(crate) mod settings;
pub(crate) mod size;
mod swap_map;
pub(crate) mod table;
mod text;

pub use args::ReplayArgs;
pub use command::run;
pub(crate) use command::write;
pub(crate) use scenario::is_scenario;
