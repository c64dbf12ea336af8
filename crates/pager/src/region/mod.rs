//! A region: anonymous memory that may be larger than the memory it takes.
//!
//! Faults are served by threads of the region, or by who makes them; who served one moves out what
//! is to leave memory when it is low. One more thread, the evictor, writes that to a device, and
//! makes room where someone waits for it. The engine decides all of it, under one lock with the
//! states of the pages. Calls that take long (moving out, writing, reading, discarding) happen
//! without the lock, on pages whose state keeps everyone else off.

mod advice;
mod core;
mod evict;
mod frames;
mod limits;
mod operations;
mod read;
mod registry;
mod sample;
mod signal;
mod stats;
mod waiters;

use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use refault_mm::{Engine, MappingKind, MemcgId};

pub use crate::core::Limits;
pub use stats::{Counts, RegionStats};

use self::core::Core;
use self::operations::RegionMemory;
use self::registry::RegistryEntry;
use self::sample::Sampling;
use self::waiters::Waiters;
use crate::config::{self, FaultMode, RegionConfig};
use crate::core::{self as pager, DISCARD_BATCH, Memory, Places, State, WINDOW};
use crate::cpu_latency_qos::{self, CpuLatencyQos};
use crate::error::Error;
use crate::evict::DriverState;
use crate::mem::AnonymousMapping;
use crate::pagemap::Pagemap;
use crate::placement::Placement;
use crate::store::{Store, SwapArea};
use crate::sync::Mutex;
use crate::threads::{self, fatal};
use crate::uffd::{CallPlan, FaultScope, PAGE, Uffd, UffdFeature};

/// Bytes of stack, buffers and codec tables of a thread, as far as they are touched.
const THREAD_BYTES: usize = 160 << 10;

/// Pages that are read at a time at the most, while faults follow one another: 16.
const READ_AHEAD_ORDER: u32 = 4;

/// State that the threads share.
struct Shared {
    common: DriverState<Core>,
    uffd: Arc<Uffd>,
    area: Arc<SwapArea>,
    pagemap: Pagemap,
    memory: Arc<RegionMemory>,
    placement: Placement,
    latency: CpuLatencyQos,
    /// A page for each fault thread: a touch of it ends one. `None`: there are no such threads.
    doorbell: Option<AnonymousMapping>,
    staging_range: std::ops::Range<usize>,
}

/// Anonymous memory that may be larger than the memory it takes.
///
/// It is ordinary memory: read it and write it through [`Region::as_ptr`]. Pages that are not in
/// memory come back when they are touched. A page that cannot be brought back (its store failed, or
/// there is no room and nothing to reclaim) raises `SIGBUS` in the thread that touches it, and a
/// line on standard error says why; it never reads as zeros or as something older.
///
/// With [`FaultMode::Signal`], some of that is different for the program.
///
/// Do not change its mapping (`munmap`, `mremap`, `madvise`, `mprotect`).
///
/// Children of `fork` do not inherit it: there, dropping it does nothing, and nothing else may be
/// done with it (something else may be at its address, and its lock may be held by a thread that is
/// not there).
pub struct Region {
    /// Goes before what it names.
    listing: Option<RegistryEntry>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    evictor: Option<JoinHandle<()>>,
    memory: AnonymousMapping,
    len: usize,
    /// As it was made; held while limits are changed.
    config: Mutex<RegionConfig>,
}

impl Region {
    /// A region, or why there can be none.
    pub fn new(config: &RegionConfig) -> Result<Region, Error> {
        config.check()?;
        config.check_tables()?;
        let store = config.store(config.slots())?;
        Region::with_store(config, store)
    }

    /// As [`Region::new`], with another store than the configuration asks for.
    pub fn with_store(config: &RegionConfig, store: Box<dyn Store>) -> Result<Region, Error> {
        Region::with_faults(config, store, None)
    }

    /// As [`Region::with_store`], with calls that fail by plan: for tests.
    pub fn with_faults(config: &RegionConfig, store: Box<dyn Store>, plan: Option<CallPlan>) -> Result<Region, Error> {
        config.check()?;
        config.check_tables()?;
        let page_bytes = refault_syscalls::machine::page_bytes();
        if page_bytes != PAGE as u64 {
            return Err(Error::Unsupported(format!("pages have {page_bytes} bytes; the pager knows 4096")));
        }
        let _plan = plan.map(CallPlan::enter);
        let by_signal = config.fault_mode == FaultMode::Signal;
        let (uffd, tells_writes) = open_uffd(config.fault_mode)?;
        let uffd = Arc::new(uffd);
        let pages = config.pages();
        let memory = AnonymousMapping::new(pages * PAGE).map_err(Error::io("mapping the region"))?;
        let max_pages = config.memory_max / PAGE;
        let windows = max_pages / 8 + 16;
        let staging = AnonymousMapping::new(windows * WINDOW * PAGE)
            .map_err(Error::io("mapping staging windows (is ulimit -v or -d too small?)"))?;
        let threads = match config.fault_threads {
            // A thread that faults serves itself; at work at a time are about as many.
            n if n == 0 || by_signal => {
                let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
                // A thread that waits for no device gains nothing by company, and takes a processor
                // from those that fault.
                if store.reads_wait() { cpus.min(4) } else { (cpus / 2).clamp(1, 4) }
            }
            n => n,
        };
        let doorbell = match by_signal {
            true => None,
            false => Some(AnonymousMapping::new(threads * PAGE).map_err(Error::io("mapping memory"))?),
        };
        // SAFETY: the mappings are new, and their faults are served by the threads below, which
        // touch none of them, or by the threads that make them.
        unsafe {
            match tells_writes {
                true => uffd.register_with_writes(memory.start(), memory.bytes()),
                false => uffd.register(memory.start(), memory.bytes()),
            }
            .and_then(|()| uffd.register(staging.start(), staging.bytes()))
            .and_then(|()| doorbell.as_ref().map_or(Ok(()), |d| uffd.register(d.start(), d.bytes())))
        }
        .map_err(not_registered)?;
        let mut engine_config = config.engine();
        (engine_config.readahead.page_cluster, engine_config.readahead.swap_map_ahead) = (READ_AHEAD_ORDER, true);
        let mut swap_max = (config.swap_max / PAGE) as u64;
        if config.swap_is_ample() {
            (engine_config.swap.pages, swap_max) = (swap_max + config::SPARE_SLOTS as u64, u64::MAX);
        }
        let mut engine = Engine::new(engine_config).map_err(Error::Config)?;
        let group = engine.add_memcg(MemcgId::ROOT, "/region", u64::MAX, swap_max).map_err(Error::Config)?;
        let (mapping, _) = engine.add_mapping(MappingKind::Anon, group, 0..pages as u64).map_err(Error::Config)?;
        let area = Arc::new(SwapArea::new(store));
        let staging_range = staging.start()..staging.start() + staging.bytes();
        let opening = "opening /proc/self/pagemap";
        let writes = if tells_writes { Some(Pagemap::open().map_err(Error::io(opening))?) } else { None };
        let memory_of = Arc::new(RegionMemory {
            uffd: uffd.clone(),
            start: memory.start(),
            staging,
            pagemap: Pagemap::open().map_err(Error::io(opening))?,
            writes,
            waiters: by_signal.then(Waiters::default),
        });
        let mut state = Memory::new(memory_of.clone(), area.clone(), pages, Places::new(windows));
        state.tells_writes = tells_writes;
        state.folios.most_pages = 1 << config.max_order();
        // Places whose content is of no use, and not yet discarded: a batch of each thread.
        let in_passing = (threads + 1) * (DISCARD_BATCH + WINDOW) * PAGE;
        let fixed = (threads + 1) * THREAD_BYTES + cpu_latency_qos::THREAD_BYTES + in_passing;
        let limits = Limits { memory_high: usize::MAX, ..Limits::of(config) };
        let mut core = pager::Core::new(engine, state, group, limits, fixed);
        core.standby_pages = max_pages as u64 * u64::from(config.standby_percent) / 100;
        core.stall_limit_ns = threads::nanoseconds(config.stall_limit);
        core.budget.overhead_beside = config.overhead_beside;
        let mut core = Core::new(core, mapping, Sampling::new(config.sample_cpu_percent));
        core.charge_overhead();
        core.most_own_bytes = core.own_bytes() + config.growing_table_bytes();
        if !config.overhead_beside && core.most_own_bytes > config.memory_max / 2 {
            let and = if by_signal { String::new() } else { format!(" and to {threads} threads") };
            return Err(config::too_large(core.most_own_bytes, &and));
        }
        let shared = Arc::new(Shared {
            common: DriverState::new(core),
            uffd,
            area,
            pagemap: Pagemap::open().map_err(Error::io(opening))?,
            memory: memory_of,
            placement: Placement::new(),
            latency: CpuLatencyQos::new(config.awake_cpus)?,
            doorbell,
            staging_range,
        });
        let (len, made_with) = (config.bytes, Mutex::new(config.clone()));
        let mut region =
            Region { listing: None, shared, threads: Vec::new(), evictor: None, memory, len, config: made_with };
        // If a thread cannot be made, those that were made end with `region`.
        for _ in 0..if by_signal { 0 } else { threads } {
            let thread = threads::spawn("refault-fault", &region.shared, Shared::serve_faults)?;
            region.threads.push(thread);
        }
        region.evictor = Some(threads::spawn("refault-evict", &region.shared, Shared::evict)?);
        if by_signal {
            signal::install()?;
            let memory = region.memory.start()..region.memory.start() + region.memory.bytes();
            region.listing = Some(registry::enter(memory, Arc::as_ptr(&region.shared))?);
        }
        region.set_limits(&Limits::of(config))?;
        Ok(region)
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.start() as *mut u8
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes: never.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its bytes, to be read.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is that long and lives as long as `self`; the thread that writes it
        // needs `&mut self` or `unsafe`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// Its bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }

    /// Faults that are served. With [`FaultScope::UserMode`], a system call that is handed memory
    /// which is not in place fails with `EFAULT`.
    pub fn scope(&self) -> FaultScope {
        self.shared.uffd.scope()
    }

    /// Counters, content and memory of the region.
    pub fn stats(&self) -> RegionStats {
        RegionStats { awake: self.shared.latency.stats(), ..self.shared.lock().stats() }
    }

    /// Checks every structure. An error is a defect of the pager or of the engine.
    pub fn validate(&self) -> Result<(), String> {
        self.shared.lock().validate()
    }

    /// Pages of memory that hold content of the region, in place or in a staging place, as the
    /// kernel sees it. A page that is moved at that moment may be seen twice.
    pub fn pages_in_memory(&self) -> std::io::Result<u64> {
        let _core = self.shared.lock();
        self.populated()
    }

    /// Pages in memory, and what the pool and the pager itself take, at one moment: read one after
    /// the other, pages that come back from the pool meanwhile would count twice.
    pub fn pages_in_use(&self) -> std::io::Result<u64> {
        let core = self.shared.lock();
        // Pages that go to the pool during the look are seen where they were.
        let own = core.stats().overhead_pages;
        Ok(self.populated()? + own)
    }

    fn populated(&self) -> std::io::Result<u64> {
        let mut n = 0;
        for m in [&self.memory, &self.shared.memory.staging] {
            n += self.shared.pagemap.populated(m.start(), m.bytes() / PAGE)?.iter().filter(|&&there| there).count();
        }
        Ok(n as u64)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.memory.is_ours() {
            std::mem::forget(self.listing.take());
            return threads::abandon(&self.shared, self.threads.drain(..).chain(self.evictor.take()));
        }
        self.shared.end();
        if let Some(evictor) = self.evictor.take() {
            _ = evictor.join();
        }
        for (page, _) in self.shared.doorbell.iter().flat_map(|d| (d.start()..).step_by(PAGE)).zip(&self.threads) {
            // SAFETY: the page is mapped; the thread that reads of this fault leaves it to the
            // kernel, and ends.
            unsafe { std::ptr::read_volatile(page as *const u8) };
        }
        self.threads.drain(..).for_each(|t| _ = t.join());
    }
}

/// And whether the kernel tells what was written.
fn open_uffd(mode: FaultMode) -> Result<(Uffd, bool), Error> {
    let by_signal = mode == FaultMode::Signal;
    let needed =
        [UffdFeature::MOVE, UffdFeature::POISON, if by_signal { UffdFeature::SIGBUS } else { UffdFeature::THREAD_ID }];
    let writes = [needed.as_slice(), &[UffdFeature::PAGEFAULT_FLAG_WP, UffdFeature::WP_ASYNC]].concat();
    // A fault in a system call is no signal, so more than those of user mode would be of no use,
    // and take privileges.
    let open = |features: &[UffdFeature]| match by_signal {
        true => Uffd::open_scope(FaultScope::UserMode, features),
        false => Uffd::open(features),
    };
    if let Ok(uffd) = open(&writes) {
        return Ok((uffd, true));
    }
    open(&needed).map(|uffd| (uffd, false)).map_err(unsupported)
}

/// Why memory cannot be watched.
pub(crate) fn not_registered(e: std::io::Error) -> Error {
    match e.raw_os_error() {
        Some(libc::EBUSY) => Error::Unsupported(
            "new memory of this process is watched by another userfaultfd already, as in programs under refault run; run it without".into(),
        ),
        _ => Error::io("registering memory with userfaultfd")(e),
    }
}

/// Why there is no userfaultfd as it is needed.
pub(crate) fn unsupported(e: std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::Unsupported => {
            Error::Unsupported(format!("{e}; Linux 6.8 or later has it (refault doctor tells more)"))
        }
        _ => Error::Unsupported(format!("userfaultfd: {e} (refault doctor tells what is missing)")),
    }
}

impl Deref for Shared {
    type Target = DriverState<Core>;

    fn deref(&self) -> &DriverState<Core> {
        &self.common
    }
}

impl Shared {
    /// A fault thread.
    fn serve_faults(&self) {
        self.placement.join();
        let mut faults = Vec::new();
        let mut end = false;
        while !end {
            faults.clear();
            let mut turn = Some(self.placement.turn());
            if let Err(e) = self.uffd.wait(&mut faults) {
                fatal(&format!("waiting for faults: {e}"));
            }
            if faults.is_empty() {
                continue;
            }
            self.latency.woke(faults.len());
            faults.iter().for_each(|f| self.placement.fault_of(turn.as_mut().expect("it was taken"), f.thread));
            if faults.len() > 1 || self.area.reads_wait() {
                // This one is busy for a while: another waits for the next.
                turn = None;
            }
            let mut core = self.lock_now();
            for f in &faults {
                if self.doorbell.as_ref().is_some_and(|d| d.contains(f.address)) {
                    // The kernel serves it from now on, and who touched it goes on.
                    if let Err(e) = self.uffd.unregister(f.address, PAGE) {
                        fatal(&format!("ending a thread: {e}"));
                    }
                    end = true;
                } else if self.staging_range.contains(&f.address) {
                    fatal("a staging place was read after it had been given up");
                } else {
                    self.fault(&mut core, f.address, f.write);
                }
            }
            let mut core = self.finish(core);
            if core.is_waiting_for_frame() {
                turn = None;
                // A thread that waits for room makes some.
                core = self.evict_round(core);
                core.retry();
                core = self.finish(core);
            }
            if self.is_evicting(&core) {
                turn = None;
            }
            core = self.evict_here(core);
            drop(core);
            drop(turn);
        }
    }

    /// Someone touched a page that is not in place.
    fn fault(&self, core: &mut Core, address: usize, write: bool) {
        let page = ((address - self.memory.start) / PAGE) as u32;
        let begun = (core.memory.state(page) == State::Staged).then(Instant::now);
        core.fault(page, write);
        if let Some(begun) = begun {
            core.note_rescued(|| begun.elapsed());
        }
    }
}
