//! Swap of a replay: a kind of device, and compressed pages where they stay in memory.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | [`ReplaySwap`], [`SwapKind`]: the device as users ask for it |
//! | `compression` | [`Compression`]: what pages shrink to, and what that costs |
//! | `setup` | both together, as a configuration of the engine |
//! | `pool` | what stands in the pool and on the device while a trace is replayed |
//! | `figures` | the result, and its table |

mod compression;
mod figures;
mod pool;
mod request;
mod setup;

pub use compression::Compression;
pub use figures::{SwapFigures, swap_table};
pub use pool::SwapPool;
pub use request::{ReplaySwap, SwapKind};
pub use setup::SwapSetup;
