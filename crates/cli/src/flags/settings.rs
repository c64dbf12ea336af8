//! `--set` and `--thp`: settings of the library as flags.

pub use refault::settings::{Set, Thp};

use super::list::OrList;
use refault::settings::help;
use std::str::FromStr;

/// Reads `--set`; `help` prints what there is.
pub(crate) fn parser() -> OrList<Set> {
    OrList::new("help", help, Set::from_str)
}
