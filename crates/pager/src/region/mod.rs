//! A region: anonymous memory that may be larger than the memory it takes.
//!
//! Faults are served by threads of the region, or by who makes them; who served one moves out what is to leave memory when it is low. One more
//! thread, the evictor, writes that to a device, and makes room where someone waits for it. The
//! engine decides all of it, under one lock with the states of the pages. Calls that take long (moving out, writing,
//! reading, discarding) happen without the lock, on pages whose state keeps everyone else off.

mod advice;
mod config;
mod core;
mod evict;
mod folio;
mod frames;
mod leave;
mod limits;
mod looked_up;
mod placement;
mod registry;
mod sample;
mod signal;
pub(crate) mod staging;
mod stats;
mod throttle;
mod waiters;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use refault_mm::{Engine, MappingKind, MemcgId};

pub use config::{FaultMode, PoolConfig, RegionConfig};
pub use limits::Limits;
pub use stats::{Counts, RegionStats};

use self::core::Core;
pub(crate) use self::placement::Placement;
use self::registry::Listing;
use self::sample::Sampling;
pub(crate) use self::staging::{Staging, WINDOW};
use self::waiters::Waiters;
use self::world::Memory;
use crate::awake::{self, Awake};
use crate::error::Error;
use crate::mem::Mapping;
use crate::pagemap::Pagemap;
use crate::store::{Store, SwapArea};
use crate::threads::{self, fatal};
use crate::uffd::{CallPlan, Feature, PAGE, Scope, Uffd};

/// Stack, buffers and codec tables of a thread, as far as they are touched.
const THREAD_BYTES: usize = 160 << 10;

/// Pages that are read at a time at the most, while faults follow one another: 16.
const READ_AHEAD_ORDER: u32 = 4;

/// What the threads share.
struct Shared {
    core: Mutex<Core>,
    /// The evictor has something to do.
    work: Condvar,
    stop: AtomicBool,
    uffd: Arc<Uffd>,
    area: Arc<SwapArea>,
    pagemap: Pagemap,
    placement: Placement,
    awake: Awake,
    start: usize,
    /// A page for each fault thread: a touch of it ends one. `None`: there are no such threads.
    doorbell: Option<Mapping>,
    staging_range: std::ops::Range<usize>,
}

/// Anonymous memory that may be larger than the memory it takes.
///
/// It is ordinary memory: read it and write it through [`Region::as_ptr`]. What is not in memory comes back when it is touched. A
/// page that cannot be brought back (its store failed, or there is no room and nothing to reclaim) raises `SIGBUS` in
/// whoever touches it, and a line on standard error says why; it never reads as zeros or as something older.
///
/// With [`FaultMode::Signal`], some of that is different for the program.
///
/// Do not change its mapping (`munmap`, `mremap`, `madvise`, `mprotect`).
///
/// Children of `fork` do not inherit it: there, dropping it does nothing, and nothing else may be done with it (something else may be at its address, and
/// its lock may be held by a thread that is not there).
pub struct Region {
    /// Goes before what it names.
    listing: Option<Listing>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    evictor: Option<JoinHandle<()>>,
    memory: Mapping,
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
        let page_bytes = crate::doctor::page_bytes();
        if page_bytes != PAGE as u64 {
            return Err(Error::Unsupported(format!("pages have {page_bytes} bytes; the pager knows 4096")));
        }
        let _plan = plan.map(CallPlan::enter);
        let by_signal = config.fault_mode == FaultMode::Signal;
        let (uffd, tells_writes) = open_uffd(config.fault_mode)?;
        let uffd = Arc::new(uffd);
        let pages = config.pages();
        let memory = Mapping::new(pages * PAGE).map_err(Error::io("mapping the region"))?;
        let max_pages = config.memory_max / PAGE;
        let staging = Staging::new(max_pages / 8 + 16)
            .map_err(Error::io("mapping staging windows (is ulimit -v or -d too small?)"))?;
        let threads = match config.fault_threads {
            // Who faults serves itself; at work at a time are about as many.
            n if n == 0 || by_signal => {
                let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
                // Who waits for no device gains nothing by company, and takes a processor from those who fault.
                if store.reads_wait() { cpus.min(4) } else { (cpus / 2).clamp(1, 4) }
            }
            n => n,
        };
        let doorbell = match by_signal {
            true => None,
            false => Some(Mapping::new(threads * PAGE).map_err(Error::io("mapping memory"))?),
        };
        // SAFETY: the mappings are new, and their faults are served by the threads below, which touch none of them, or by whoever makes them.
        unsafe {
            match tells_writes {
                true => uffd.register_with_writes(memory.start(), memory.bytes()),
                false => uffd.register(memory.start(), memory.bytes()),
            }
            .and_then(|()| uffd.register(staging.mapping().start(), staging.mapping().bytes()))
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
        let staging_range = staging.mapping().start()..staging.mapping().start() + staging.mapping().bytes();
        let mut state = Memory::new(uffd.clone(), area.clone(), memory.start(), pages, staging);
        if tells_writes {
            state.writes = Some(Pagemap::open().map_err(Error::io("opening /proc/self/pagemap"))?);
        }
        if by_signal {
            state.waiters = Some(Arc::new(Waiters::default()));
        }
        // Places whose content is of no use, and not yet discarded: a batch of each thread.
        let in_passing = (threads + 1) * (core::DISCARD_BATCH + WINDOW) * PAGE;
        state.folios.most_pages = 1 << config.max_order();
        let fixed = (threads + 1) * THREAD_BYTES + awake::THREAD_BYTES + in_passing;
        let standby = max_pages as u64 * u64::from(config.standby_percent) / 100;
        let limits = Limits { memory_high: usize::MAX, ..Limits::of(config) };
        let mut core = Core::new(engine, state, group, limits, standby, config.stall_limit, fixed)
            .map_err(Error::io("opening /proc/self/pagemap"))?;
        core.overhead_beside = config.overhead_beside;
        core.mapping = mapping;
        core.sampling = Sampling::new(config.sample_cpu_percent);
        core.charge_overhead();
        core.most_own_bytes = core.own_bytes() + config.growing_table_bytes();
        if !config.overhead_beside && core.most_own_bytes > config.memory_max / 2 {
            let and = if by_signal { String::new() } else { format!(" and to {threads} threads") };
            return Err(config::too_large(core.most_own_bytes, &and));
        }
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            work: Condvar::new(),
            stop: AtomicBool::new(false),
            uffd,
            area,
            pagemap: Pagemap::open().map_err(Error::io("opening /proc/self/pagemap"))?,
            placement: Placement::new(),
            awake: Awake::new(config.awake_cpus)?,
            start: memory.start(),
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
        // SAFETY: the mapping is that long and lives as long as `self`; whoever writes it needs `&mut self` or `unsafe`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// Its bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }

    /// Which faults are served. With [`Scope::UserMode`], a system call that is handed memory which is not in place fails with `EFAULT`.
    pub fn scope(&self) -> Scope {
        self.shared.uffd.scope()
    }

    /// What it did, holds and takes.
    pub fn stats(&self) -> RegionStats {
        RegionStats { awake: self.shared.awake.stats(), ..self.shared.lock().stats() }
    }

    /// Checks every structure. An error is a defect of the pager or of the engine.
    pub fn validate(&self) -> Result<(), String> {
        self.shared.lock().validate()
    }

    /// Pages of memory that hold content of the region, in place or in a staging place, as the kernel sees it. A page that is moved at
    /// that moment may be seen twice.
    pub fn pages_in_memory(&self) -> std::io::Result<u64> {
        let core = self.shared.lock();
        let staging = core.memory.staging.mapping();
        let mut n = 0;
        for m in [&self.memory, staging] {
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
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(self.shared.lock());
        self.shared.work.notify_all();
        if let Some(evictor) = self.evictor.take() {
            _ = evictor.join();
        }
        for (page, _) in self.shared.doorbell.iter().flat_map(|d| (d.start()..).step_by(PAGE)).zip(&self.threads) {
            // SAFETY: the page is mapped; the thread that reads of this fault leaves it to the kernel, and ends.
            unsafe { std::ptr::read_volatile(page as *const u8) };
        }
        self.threads.drain(..).for_each(|t| _ = t.join());
    }
}

/// And whether the kernel tells what was written.
fn open_uffd(mode: FaultMode) -> Result<(Uffd, bool), Error> {
    let by_signal = mode == FaultMode::Signal;
    let needed = [Feature::MOVE, Feature::POISON, if by_signal { Feature::SIGBUS } else { Feature::THREAD_ID }];
    let writes = [needed.as_slice(), &[Feature::PAGEFAULT_FLAG_WP, Feature::WP_ASYNC]].concat();
    // A fault in a system call is no signal, so more than those of user mode would be of no use, and take privileges.
    let open = |features: &[Feature]| match by_signal {
        true => Uffd::open_scope(Scope::UserMode, features),
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        threads::lock(&self.core)
    }

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
            self.awake.woke(faults.len());
            faults.iter().for_each(|f| self.placement.fault_of(turn.as_mut().expect("it was taken"), f.thread));
            if faults.len() > 1 || self.area.reads_wait() {
                // This one is busy for a while: another waits for the next.
                turn = None;
            }
            let mut core = self.lock();
            core.tick();
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
                    core.fault(((f.address - self.start) / PAGE) as u32, f.write);
                }
            }
            let mut core = self.finish(core);
            if core.is_starved() {
                turn = None;
                // Who waits for room makes some.
                core = self.evict_round(core);
                core.retry_starved();
                core = self.finish(core);
            }
            if self.evicts_now(&core) {
                turn = None;
            }
            core = self.evict_here(core);
            drop(core);
            drop(turn);
        }
    }

    /// After the engine was called: what it asked for is done, as far as someone waits for it.
    fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        loop {
            core.free_slots();
            if let &[one] = &core.memory.reads[..] {
                core.memory.reads.clear();
                core = self.read(core, &[one]);
                continue;
            }
            let reads = std::mem::take(&mut core.memory.reads);
            let folios = std::mem::take(&mut core.memory.folios.reads);
            if reads.is_empty() && folios.is_empty() {
                break;
            }
            for several in reads.chunks(1 << READ_AHEAD_ORDER) {
                core = self.read(core, several);
            }
            for &folio in &folios {
                core = self.read_folio(core, folio);
            }
        }
        if core.memory.high.has_held() {
            core = self.let_go(core);
        }
        if core.has_discards() { self.discard(core) } else { core }
    }

    /// Reads pages, puts them in place and tells the engine. What failed on the way may be well where it is, so it is tried once more.
    fn read<'a>(&'a self, mut core: MutexGuard<'a, Core>, reads: &[(u32, u32)]) -> MutexGuard<'a, Core> {
        // Where threads of the region serve faults, who faulted would go on before what it led to is counted; and beyond `memory.high`
        // it may have to wait although its page is there.
        let at_once = core.memory.waiters.is_some() && !core.memory.high.holds;
        if let &[(page, slot)] = reads {
            let frame = if at_once { core.take_frame() } else { None };
            let mut core = match frame {
                Some(place) => match self.read_into_frame(core, page, slot, place) {
                    Ok(core) => return core,
                    Err(core) => core,
                },
                None => core,
            };
            let mut content = core.memory.spare.pop().unwrap_or_default();
            drop(core);
            let begun = Instant::now();
            let result = self.area.read(slot, page, &mut content.0);
            let result = result.or_else(|_| self.area.read(slot, page, &mut content.0));
            let placed = at_once && result.is_ok() && self.put_in_place(page, &content);
            core = self.lock();
            core.tick();
            core.arrive(page, result.map(|()| Some(content)), begun, placed);
            return core;
        }
        let mut contents: Vec<_> = reads.iter().map(|_| core.memory.spare.pop().unwrap_or_default()).collect();
        drop(core);
        let begun = Instant::now();
        let slots: Vec<_> = reads.iter().map(|&(page, slot)| (slot, page)).collect();
        let results = self.area.read_several(&slots, &mut contents);
        let placed: Vec<bool> = (reads.iter().zip(&results).zip(&contents))
            .map(|((&(page, _), result), content)| at_once && result.is_ok() && self.put_in_place(page, content))
            .collect();
        core = self.lock();
        core.tick();
        for (((&(page, _), result), content), placed) in reads.iter().zip(results).zip(contents).zip(placed) {
            core.arrive(page, result.map(|()| Some(content)), begun, placed);
        }
        core
    }

    /// With `memory.high`: who was served goes on, now or later. Pages that reclaim orders out for it are out, and then free, before the
    /// engine says how long; else all would wait for pages that go soon.
    #[cold]
    fn let_go<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        for _ in 0..2 {
            if !core.engine.is_over_high() {
                break;
            }
            core.reclaim_high();
            core = self.evict_round(core);
            core.tick();
        }
        core.release_held();
        core.free_slots();
        core
    }
}
