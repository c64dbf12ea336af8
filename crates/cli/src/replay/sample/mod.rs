//! `refault replay --sample`: hit rates of a trace by samples of its pages.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `command` | from flags to output |
//! | `text` | estimates as a table, a curve, CSV and JSON |

mod args;
mod command;
mod text;

pub use args::SampleArgs;
pub(super) use command::{is_possible, run};
pub use refault::replay::sample::{OneIn, Question, SampleRow, SampledEstimate, estimate};
