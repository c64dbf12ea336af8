//! Options of a region.

use std::path::PathBuf;
use std::time::Duration;

use refault_mm::{Config, Engine, HugeAdvice, Kernel, NodeConfig, Policy, SwapConfig, ThpConfig, ThpDefrag};

use crate::core;
use crate::cpu_latency_qos;
use crate::error::Error;
use crate::staging::WINDOW;
use crate::store::{Codec, FileStore, Pool, Store, SwapArea, SwapIo, TieredStore};
use crate::threads::check_serving;
use crate::uffd::PAGE;

/// Order of the largest folios: one fills a staging window.
const MAX_ORDER: u32 = WINDOW.ilog2();

/// Slots that stay unused where a whole region may be out of memory. With no slot free, only pages
/// that have one already can leave (`reclaim_swap_cache`), and with nearly everything out of memory
/// there was no room for the other pages.
pub(crate) const SPARE_SLOTS: usize = 64;

/// The compressed pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How pages are compressed.
    pub codec: Codec,
    /// Most memory of the pool, in bytes. It counts against [`RegionConfig::memory_max`].
    pub max_bytes: usize,
}

/// Way in which a fault is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FaultMode {
    /// Threads of the region. A thread that touches the memory, system calls too, sleeps until it
    /// is there.
    #[default]
    Threads,
    /// The thread that faults, in a handler of `SIGBUS`: no switch to another thread, so a fault
    /// costs less. It asks of the program:
    ///
    /// - A system call that is handed memory which is not in place fails with `EFAULT`:
    ///   [`Region::populate`](crate::Region::populate) it first.
    /// - Threads that touch the region do not block `SIGBUS`, or the kernel ends the process, and
    ///   have 64 KiB of stack left.
    /// - The allocator of the program takes no memory from the region, because a fault takes memory
    ///   from the allocator.
    /// - A handler of `SIGBUS` that the program had before the first such region gets what is not a
    ///   region's fault. One that is installed later has to call the one that it replaced
    ///   (`sigaction` tells which).
    ///
    /// Other signals of the thread wait until its fault is served, as they do in a fault that the
    /// kernel serves.
    Signal,
}

/// A region.
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// Its size in bytes; rounded up to pages.
    pub bytes: usize,
    /// `memory.max`: bytes of memory that its pages, the pool and the pager itself may take
    /// together.
    pub memory_max: usize,
    /// `memory.high` in bytes, counted as for `memory_max`: above it, the thread that faults makes
    /// room, and waits the longer the more is used. `usize::MAX`: never.
    pub memory_high: usize,
    /// `memory.swap.max`: bytes of its pages (not compressed) that may be out of memory.
    pub swap_max: usize,
    /// Policy that decides what is out of memory.
    pub policy: Policy,
    /// The kernel whose rules that policy follows.
    pub kernel: Kernel,
    /// Pages that come and go as one: sizes from 16 KiB to 256 KiB, as
    /// `/sys/kernel/mm/transparent_hugepage` has them. None by default; `defrag` is `defer`, for
    /// without it faults for folios would use up the memory that reclaim needs before it is woken.
    pub thp: ThpConfig,
    /// The compressed pool; without one, pages go to the file.
    pub pool: Option<PoolConfig>,
    /// With a pool and a swap file: the engine decides what share the pool has of its maximum
    /// ([`crate::control::PoolBalance`]), from the costs of loads from each. `false`, and with
    /// [`RegionConfig::overhead_beside`]: always all of it.
    pub pool_adapts: bool,
    /// Where the swap file is made; without one, pages stay in the pool.
    pub swap_directory: Option<PathBuf>,
    /// How the swap file is written.
    pub swap_io: SwapIo,
    /// A thread that waits for a page from the swap file polls for it while it comes soon, rather
    /// than sleep until it is there ([`crate::control::Polling`]). It takes processor time, and
    /// saves the time that a processor takes to wake. Only with [`FaultMode::Signal`], and where
    /// there is io_uring.
    pub poll: bool,
    /// Way in which faults are served.
    pub fault_mode: FaultMode,
    /// Threads that serve faults, at most 256; 0: as many as there are CPUs, half of that with a
    /// pool alone, at most 4. With [`FaultMode::Signal`] there are none.
    pub fault_threads: usize,
    /// Most processors of a machine on which idle ones are kept from halting, while faults come
    /// fast that other threads serve, or that several threads make: in a virtual machine, a wake of
    /// a halted processor takes as long as the rest of a fault. It concerns the whole machine. 0:
    /// never. It takes the right to open `/dev/cpu_dma_latency`.
    pub awake_cpus: usize,
    /// Pages that are out of reach but not written yet, in percent of the memory. An access brings
    /// them back for next to nothing, and tells the policy that they are in use.
    pub standby_percent: u32,
    /// Further standby pages: as many as this percentage of one processor pays for when they are
    /// touched, up to 12 % of the memory; 0: none.
    pub sample_cpu_percent: u32,
    /// The pool and the pager itself take memory beside `memory_max`, not out of it: for
    /// comparisons with kernels, whose cgroups do not count zram.
    pub overhead_beside: bool,
    /// Time without room after which a fault ends in an error (`SIGBUS`); at least 1 ms.
    pub stall_limit: Duration,
}

/// Why a region cannot have so little memory.
pub(crate) fn too_large(own_bytes: usize, and: &str) -> Error {
    let need = (own_bytes * 2).next_multiple_of(1 << 20);
    Error::Config(format!(
        "half of memory_max would go to the tables of so large a region{and}; give it {need} bytes at least"
    ))
}

impl RegionConfig {
    /// The least memory that makes sense.
    pub const MIN_MEMORY: usize = 4 << 20;
    /// The most bytes that a region can have, and the most memory that it can be given.
    pub const MAX_BYTES: usize = 1 << 40;

    /// Default of [`RegionConfig::awake_cpus`]: on larger machines, most of the processors kept
    /// awake would be of no use to the threads that fault.
    pub const AWAKE_CPUS: usize = cpu_latency_qos::MOST_CPUS;

    /// A region of `bytes` in `memory_max` bytes of memory, a pool of up to half of it and no file.
    pub fn new(bytes: usize, memory_max: usize) -> RegionConfig {
        RegionConfig {
            bytes,
            memory_max,
            memory_high: usize::MAX,
            swap_max: bytes,
            policy: Policy::Mglru,
            kernel: Kernel::default(),
            thp: ThpConfig { defrag: ThpDefrag::Defer, swap_in: false, ..ThpConfig::default() },
            pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: memory_max / 2 }),
            pool_adapts: true,
            swap_directory: None,
            swap_io: SwapIo::default(),
            poll: true,
            fault_mode: FaultMode::Threads,
            fault_threads: 0,
            awake_cpus: RegionConfig::AWAKE_CPUS,
            standby_percent: 0,
            sample_cpu_percent: 0,
            overhead_beside: false,
            stall_limit: Duration::from_secs(30),
        }
    }

    pub(crate) fn pages(&self) -> usize {
        self.bytes.div_ceil(PAGE)
    }

    /// Order of the largest folios that there may be.
    pub(crate) fn max_order(&self) -> u32 {
        self.thp.orders(HugeAdvice::Huge).checked_ilog2().unwrap_or(0)
    }

    /// Slots of its swap area: slot 0 is never used.
    pub(crate) fn slots(&self) -> u32 {
        (self.swap_max / PAGE + SPARE_SLOTS + 1) as u32
    }

    /// Whether all of it may be out of memory: then swap has slots to spare, and is never used up.
    pub(crate) fn swap_is_ample(&self) -> bool {
        self.swap_max.div_ceil(PAGE) >= self.pages()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = if self.bytes == 0 {
            "the region has no bytes".to_string()
        } else if self.bytes > Self::MAX_BYTES {
            format!("the region has {} bytes; at most 1 TiB", self.bytes)
        } else if self.memory_max < Self::MIN_MEMORY {
            format!("memory_max is {} bytes; at least 4 MiB", self.memory_max)
        } else if self.memory_max > Self::MAX_BYTES {
            format!("memory_max is {} bytes; at most 1 TiB", self.memory_max)
        } else if self.memory_high < Self::MIN_MEMORY {
            format!("memory_high is {} bytes; at least 4 MiB", self.memory_high)
        } else if self.swap_max > Self::MAX_BYTES {
            format!("swap_max is {} bytes; at most 1 TiB", self.swap_max)
        } else if self.pool.as_ref().is_some_and(|p| p.max_bytes < Pool::MIN_BYTES) {
            format!("the pool has less than {} bytes", Pool::MIN_BYTES)
        } else if !self.overhead_beside && self.pool.as_ref().is_some_and(|p| p.max_bytes > self.memory_max / 4 * 3) {
            "the pool may take more than three quarters of memory_max; give it less, or more memory".to_string()
        } else if self.max_order() > MAX_ORDER {
            format!("thp: folios of a region have at most {} KiB", 4 << MAX_ORDER)
        } else if self.sample_cpu_percent > 50 {
            "sample_cpu_percent is at most 50".to_string()
        } else if self.standby_percent > 50 {
            "standby_percent is at most 50".to_string()
        } else if self.pool.is_none() && self.swap_directory.is_none() && self.swap_max > 0 {
            "swap_max is above 0, but there is neither a pool nor a swap file".to_string()
        } else {
            return check_serving(self.fault_threads, self.stall_limit);
        };
        Err(Error::Config(wrong))
    }

    pub(crate) fn engine(&self) -> Config {
        let mut cfg = Config::new(self.policy);
        self.kernel.apply(&mut cfg);
        // The swap area is no device of a kernel.
        cfg.swap = SwapConfig::default();
        let pages = (self.memory_max / PAGE) as u64;
        cfg.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) });
        cfg.total_pages = pages;
        cfg.swap.pages = (self.swap_max / PAGE) as u64;
        // A page that came back is changed soon enough, and reading ahead takes a mapping of
        // neighbours that this driver has not.
        cfg.swap.synchronous = true;
        cfg.readahead.page_cluster = 0;
        cfg.thp = self.thp.clone();
        // A page is free only when its write is done, and writes may be late: then slots are used
        // up by pages that are still in memory.
        cfg.swap.reclaim_cache = true;
        cfg
    }

    /// Bytes of the tables that are there from the start.
    fn first_table_bytes(&self) -> usize {
        self.pages() * (core::BYTES_PER_PAGE + Engine::BYTES_PER_SHADOW)
    }

    /// Bytes that tables grow by until all that can be is out of memory. A pool holds pages of a
    /// quarter of their size, or larger ones.
    pub(crate) fn growing_table_bytes(&self) -> usize {
        let out = self.pages().min(self.swap_max / PAGE);
        let in_pool = self.pool.as_ref().map_or(0, |p| out.min(p.max_bytes / (PAGE / 4)));
        out * (Engine::BYTES_PER_SWAP_SLOT + SwapArea::BYTES_PER_PAGE) + in_pool * Pool::BYTES_PER_PAGE
    }

    /// An error if tables would take half of `memory_max`. So large ones are not even made.
    pub(crate) fn check_tables(&self) -> Result<(), Error> {
        let bytes = self.first_table_bytes() + self.growing_table_bytes();
        match !self.overhead_beside && bytes > self.memory_max / 2 {
            true => Err(too_large(bytes, "")),
            false => Ok(()),
        }
    }

    /// Store that the configuration asks for, of `slots` slots.
    pub(crate) fn store(&self, slots: u32) -> Result<Box<dyn Store>, Error> {
        let pool = match &self.pool {
            Some(p) => Some(Pool::new(p.codec, p.max_bytes).map_err(Error::io("reserving the pool"))?),
            None => None,
        };
        let file = match &self.swap_directory {
            Some(dir) => {
                let failed =
                    |source| Error::Io { what: format!("making the swap file in {}", dir.display()).into(), source };
                let file = FileStore::with_io(dir, slots, self.swap_io).map_err(failed)?;
                // Where threads of the region serve faults, it was slower: who faulted is woken on
                // another processor.
                let polls = self.poll && self.fault_mode == FaultMode::Signal;
                Some(if polls { file.polling() } else { file })
            }
            None => None,
        };
        // Memory that a pool beside the memory takes is worth nothing in place.
        let adapts = self.pool_adapts && !self.overhead_beside;
        Ok(match (pool, file) {
            (Some(pool), Some(file)) if adapts => Box::new(TieredStore::adapting(pool, file)),
            (Some(pool), Some(file)) => Box::new(TieredStore::new(pool, file)),
            (Some(pool), None) => Box::new(pool),
            (None, Some(file)) => Box::new(file),
            // Nothing leaves the memory, so nothing is ever written.
            (None, None) => Box::new(Pool::new(Codec::Lz4, Pool::MIN_BYTES).map_err(Error::io("reserving memory"))?),
        })
    }
}
