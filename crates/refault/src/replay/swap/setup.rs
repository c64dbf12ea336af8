//! Swap of a replay as a configuration of the engine.

use super::{Compression, ReplaySwap, SwapKind, SwapPool};
use crate::settings::Set;
use refault_mm::{Config, ZswapConfig};
use refault_trace::{Recording, Seen};

/// Bytes of a page that compressed sizes are known of.
const PAGE_BYTES: u32 = 4096;

/// Settings that a device says itself.
const SAID: [&str; 2] = ["swap_pages", "swap_synchronous"];

/// A swap device, and what its pages are compressed to.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapSetup {
    /// The device.
    pub swap: ReplaySwap,
    /// Compression.
    pub compression: Compression,
}

impl SwapSetup {
    /// Setup of what was asked for; none: no device was chosen.
    ///
    /// # Errors
    /// Compression where nothing is compressed, or a setting that the device says itself.
    pub fn of(
        swap: Option<&ReplaySwap>,
        compression: Option<&Compression>,
        set: &[Set],
    ) -> Result<Option<SwapSetup>, String> {
        let compresses = swap.is_some_and(|swap| swap.kind.compresses());
        if compression.is_some() && !compresses {
            return Err("--compression: does nothing without --swap zram or --swap zswap".to_owned());
        }
        let Some(swap) = swap else { return Ok(None) };
        if let Some(set) = set.iter().find(|set| SAID.contains(&set.name())) {
            return Err(format!("--set {set}: --swap {swap} says that; leave one of them out"));
        }
        Ok(Some(SwapSetup { swap: swap.clone(), compression: compression.cloned().unwrap_or_default() }))
    }

    /// Fails where touches of anonymous memory are not known well enough: a page that is in use and
    /// whose touches are not there looks idle, and goes to swap.
    ///
    /// # Errors
    /// A line that says why, and what to do.
    pub fn check_touches(&self, name: &str, seen: Option<Seen>, recording: Option<&Recording>) -> Result<(), String> {
        let swap = format!("--swap {}", self.swap);
        if seen == Some(Seen::Faults) {
            return Err(format!(
                "{swap}: {name} has page faults alone, and what is touched in place looks idle; record with refault \
                 record --touches 1s --touches-by idle"
            ));
        }
        let touches = recording.and_then(|recording| recording.touches.as_ref());
        match touches.filter(|touches| touches.by.writes_only()) {
            Some(touches) => Err(format!(
                "{swap}: {name} has touches of memory in place by {}, which sees writes alone, and what is read looks \
                 idle; record with --touches 1s --touches-by idle",
                touches.by.name()
            )),
            None => Ok(()),
        }
    }

    /// Fails of a trace whose pages have another size than compressed ones.
    ///
    /// # Errors
    /// A line that says so.
    pub fn check_page_size(&self, page_size: u32) -> Result<(), String> {
        match self.swap.kind.compresses() && page_size != PAGE_BYTES {
            true => Err(format!(
                "--swap {}: what pages of {page_size} bytes shrink to is not known; give --page-size 4096",
                self.swap
            )),
            false => Ok(()),
        }
    }

    /// Sets it. Devices of a replay read what is touched and nothing ahead, as files.
    pub fn apply(&self, cfg: &mut Config) {
        cfg.swap.synchronous = self.swap.kind == SwapKind::Zram;
        cfg.readahead.page_cluster = 0;
        match self.swap.kind {
            SwapKind::None => cfg.swap.pages = 0,
            _ => cfg.swap.pages = self.swap.pages(),
        }
        if self.swap.kind == SwapKind::Zswap {
            let plain = ZswapConfig::default();
            let max_pool_pages = self.pool_pages().unwrap_or(plain.max_pool_pages);
            // Kernels in which the zero bitmap does not exist kept pages of one word without
            // memory.
            cfg.zswap = Some(ZswapConfig { max_pool_pages, same_filled: !cfg.swap.policy.zeromap, ..plain });
        }
    }

    /// The most pages of memory of the pool, where that was said.
    pub fn pool_pages(&self) -> Option<u64> {
        self.compression.pool.as_ref().map(|size| size.pages(PAGE_BYTES, 0))
    }

    /// The world's part of it, for a replay of so many accesses.
    pub fn pool(&self, seed: u64, accesses: u64) -> SwapPool {
        SwapPool::new(self, seed, accesses)
    }
}
