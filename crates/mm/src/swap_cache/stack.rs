//! Where anonymous memory goes that leaves: the slots of the devices, and what stands in front of them.

use crate::config::Config;
use crate::swap::Swap;
use crate::swap::zeromap::ZeroMap;
use crate::zswap::Zswap;

/// The swap devices with what stands in front of them.
#[derive(Clone, Debug)]
pub(crate) struct SwapStack {
    pub(crate) slots: Swap,
    /// Pages of zeros.
    pub(crate) zeromap: ZeroMap,
    /// Compressed pages.
    pub(crate) zswap: Zswap,
}

impl SwapStack {
    /// The devices of a configuration, with nothing on them.
    pub(crate) fn new(cfg: &Config) -> SwapStack {
        SwapStack { slots: Swap::new(cfg), zeromap: ZeroMap::default(), zswap: Zswap::default() }
    }
}
