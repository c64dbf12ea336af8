//! `--swap` and `--compression` of a trace.

use clap::Args;
use refault::replay::swap::{Compression, ReplaySwap};

/// Flags of the kind of swap.
#[derive(Clone, Debug, Args)]
pub struct SwapArgs {
    /// Swap on zram, disk or zswap, each with a size if need be (zram:2G), or none: what goes there
    /// and comes back, and the memory of compressed pages [default: a device that answers at once]
    #[arg(long, value_name = "KIND[:SIZE]")]
    pub(crate) swap: Option<ReplaySwap>,

    /// With --swap zram or zswap: KEY=VALUE, separated by commas: ratio=2.2, shares of pages that
    /// are zero, same or incompressible, times to compress=4.3us and decompress=1.6us a page, and
    /// pool=SIZE, the most memory
    #[arg(long, value_name = "LIST", requires = "swap")]
    pub(crate) compression: Option<Compression>,
}
