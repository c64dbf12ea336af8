//! `refault replay --sample`: hit rates of a trace by samples of its pages.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `command` | from flags to output |
//! | `estimate` | the samples of one trace, replayed, and what they say of the whole |
//! | `text` | estimates as a table, a curve, CSV and JSON |

mod args;
mod command;
mod estimate;
mod text;

pub use args::{OneIn, SampleArgs};
pub(super) use command::{is_possible, run};
pub use estimate::{Estimate, Question, SampleRow, estimate};
