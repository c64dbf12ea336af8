//! `refault replay`: a trace through the engine, with devices that answer at once; or a scenario in virtual time.

mod args;
pub mod cell;
mod command;
mod curve;
pub(crate) mod groups;
mod machine;
pub(crate) mod policy;
pub(crate) mod progress;
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
pub(crate) use args::{SwapMax, ViaArg};
pub use command::run;
pub(crate) use command::write;
pub(crate) use scenario::is_scenario;
