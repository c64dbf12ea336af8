//! Swap as an administrator sees it: devices, and zswap.

use crate::config::swap::SwapDeviceConfig;
use crate::engine::Engine;
use crate::fault::swapoff::Swapoff;
use crate::ids::SwapSlot;
use crate::world::World;
use crate::zswap::{ZswapStats, ZswapStep};

impl Engine {
    /// Takes a swap device away, and brings everything on it back to memory. To be called again as
    /// long as the result is `Waiting`.
    pub fn swapoff<W: World>(&mut self, w: &mut W, device: u8) -> Swapoff {
        self.fault(w).swapoff(device)
    }

    /// A discard that was pending ended, well or not: the cluster that starts with this slot can be
    /// used again.
    pub fn discard_done<W: World>(&mut self, w: &mut W, first: SwapSlot) {
        self.mem.swap_cache(w).discard_done(first)
    }

    /// One step of the worker that writes entries of zswap back: to be called from
    /// [`crate::Effect::WakeZswap`] on until it says `Sleep`.
    pub fn zswap_step<W: World>(&mut self, w: &mut W) -> ZswapStep {
        self.alloc(w).zswap_step()
    }

    /// Adds a swap device; says its number, which is that in the slots on it.
    pub fn swapon(&mut self, device: SwapDeviceConfig) -> Result<u8, String> {
        self.mem.swap.slots.add(device)
    }

    /// The figures of zswap, as debugfs shows them; none: it is off.
    pub fn zswap_stats(&self) -> Option<ZswapStats> {
        self.mem.cfg.zswap.as_ref().map(|_| self.mem.swap.zswap.stats())
    }
}
