//! Mapped files: memory whose content is that of a file, and that may be larger than the memory it
//! takes.
//!
//! The pager fills pages from the file when they are touched, writes those back that were changed,
//! and drops what the engine gives up. The kernel's page cache has no part in it where the file
//! system has direct I/O.

mod core;
mod flush;
mod io;
mod limits;
mod memory;
mod operations;
mod read;
#[cfg(test)]
mod simulation;
mod stats;

use std::ops::Deref;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use refault_mm::{AccessAdvice, Config, Engine, Kernel, MappingId, MappingKind, MemcgId, NodeConfig, Policy};

pub use io::{FileIo, RealFile};
pub use stats::{FileCounts, FileStats};

use self::memory::{BYTES_PER_PAGE, Memory};
use self::operations::FileMemory;
use crate::config::RegionConfig;
use crate::cpu_latency_qos::{self, CpuLatencyQos};
use crate::error::Error;
use crate::evict::DriverState;
use crate::mem::AnonymousMapping;
use crate::pagemap::Pagemap;
use crate::placement::Placement;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::threads::{self, fatal};
use crate::uffd::{CallPlan, FaultScope, PAGE, Uffd, UffdFeature};

/// Bytes of stack and buffers of a thread, as far as they are touched.
const THREAD_BYTES: usize = 64 << 10;
/// Pages of a read at most: as many as the engine reads ahead.
const READ_RUN: usize = 32;

/// How a file is mapped.
#[derive(Clone, Debug)]
pub struct MappedFileConfig {
    /// `memory.max`: bytes of memory that its pages and the pager itself may take together.
    pub memory_max: usize,
    /// Policy that decides what stays in memory.
    pub policy: Policy,
    /// The kernel whose rules that policy follows.
    pub kernel: Kernel,
    /// Whether the memory may be written to.
    pub writable: bool,
    /// `dirty_expire_centisecs`: time after which written pages are on their way to the file,
    /// without a flush. Looked at every 5 s, or as often as this if it is shorter.
    pub dirty_expire: Duration,
    /// `dirty_background_ratio`, in percent of the memory: when more pages than that were changed
    /// and not written, the older half of them is written. Another write to a written page takes
    /// another fault.
    pub dirty_background_ratio: u32,
    /// Threads that serve faults, at most 256; 0: as many as there are CPUs, at most 4.
    pub fault_threads: usize,
    /// As [`RegionConfig::awake_cpus`](crate::RegionConfig::awake_cpus).
    pub awake_cpus: usize,
    /// Time without room after which a fault ends in an error (`SIGBUS`); at least 1 ms.
    pub stall_limit: Duration,
}

impl MappedFileConfig {
    /// A mapping in `memory_max` bytes of memory, to be read and written.
    pub fn new(memory_max: usize) -> MappedFileConfig {
        MappedFileConfig {
            memory_max,
            policy: Policy::Mglru,
            kernel: Kernel::default(),
            writable: true,
            dirty_expire: Duration::from_secs(30),
            dirty_background_ratio: 10,
            fault_threads: 0,
            awake_cpus: RegionConfig::AWAKE_CPUS,
            stall_limit: Duration::from_secs(30),
        }
    }

    fn engine(&self) -> Config {
        let mut cfg = Config::new(self.policy);
        self.kernel.apply(&mut cfg);
        let pages = (self.memory_max / PAGE) as u64;
        cfg.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) });
        cfg.dirty.expire_ns = u64::try_from(self.dirty_expire.as_nanos()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2);
        cfg.dirty.writeback_ns = cfg.dirty.writeback_ns.min(cfg.dirty.expire_ns);
        cfg.dirty.background_ratio = self.dirty_background_ratio.into();
        (cfg.total_pages, cfg.swap.pages, cfg.readahead.file_map_ahead) = (pages, 0, true);
        // Dirty pages that the evictor meets are written by the pager: where all of so little
        // memory is dirty, no flusher runs beside it.
        cfg.lru.kswapd_writes_files = true;
        cfg
    }
}

type Core = self::core::Core<FileMemory>;

/// State that the threads share.
struct Shared {
    common: DriverState<Core>,
    /// Writes ended.
    written: Condvar,
    /// Held during a flush: there is one at a time.
    flushing: Mutex<()>,
    /// Held during a change of the limit: there is one at a time.
    resizing: Mutex<()>,
    uffd: Arc<Uffd>,
    io: Box<dyn FileIo>,
    start: usize,
    /// Bytes of the file that are mapped.
    bytes: u64,
    /// A page for each fault thread: a touch of it ends one.
    doorbell: AnonymousMapping,
    placement: Placement,
    latency: CpuLatencyQos,
}

/// A file as memory. Writes to it are in the file after [`MappedFile::flush`].
///
/// It is ordinary memory: read it and write it through [`MappedFile::as_ptr`]. A page that cannot
/// be read raises `SIGBUS` in the thread that touches it, now and later (until
/// [`MappedFile::read_again`]), and a line on standard error says why. Do not change its mapping.
///
/// Children of `fork` do not inherit it: there, dropping it does nothing, and nothing else may be
/// done with it (something else may be at its address, and its lock may be held by a thread that is
/// not there).
///
/// Writes of others to the file while it is mapped may or may not be seen, page by page; writes
/// here replace whole pages of it.
pub struct MappedFile {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
    memory: AnonymousMapping,
    mapping: MappingId,
    writable: bool,
}

impl MappedFile {
    /// Maps a file as long as it is now.
    pub fn open(path: &Path, config: &MappedFileConfig) -> Result<MappedFile, Error> {
        let file = RealFile::open(path, config.writable)
            .map_err(|source| Error::Io { what: format!("opening {}", path.display()).into(), source })?;
        MappedFile::with_name(Box::new(file), config, None, &path.display().to_string())
    }

    /// As [`MappedFile::open`], of anything that behaves like a file, with calls that fail by plan:
    /// for tests.
    pub fn with_io(
        io: Box<dyn FileIo>,
        config: &MappedFileConfig,
        plan: Option<CallPlan>,
    ) -> Result<MappedFile, Error> {
        MappedFile::with_name(io, config, plan, "the file")
    }

    fn with_name(
        io: Box<dyn FileIo>,
        config: &MappedFileConfig,
        plan: Option<CallPlan>,
        name: &str,
    ) -> Result<MappedFile, Error> {
        let _plan = plan.map(CallPlan::enter);
        let bytes = io.bytes().map_err(Error::io("asking for the length of the file"))?;
        check(config, bytes, name)?;
        let uffd = Uffd::open(&[UffdFeature::PAGEFAULT_FLAG_WP, UffdFeature::POISON, UffdFeature::THREAD_ID])
            .map_err(crate::region::unsupported)?;
        let uffd = Arc::new(uffd);
        let pages = bytes.div_ceil(PAGE as u64) as usize;
        // So large ones are not even made.
        check_tables(pages * (BYTES_PER_PAGE + Engine::BYTES_PER_SHADOW), config, "")?;
        let memory = AnonymousMapping::new(pages * PAGE).map_err(Error::io("mapping memory"))?;
        let threads = match config.fault_threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(4)),
            n => n,
        };
        let doorbell = AnonymousMapping::new(threads * PAGE).map_err(Error::io("mapping memory"))?;
        // SAFETY: the mappings are new, and their faults are served by the threads below. The
        // writer alone among them touches the first one, where pages are in place.
        unsafe {
            uffd.register_with_writes(memory.start(), memory.bytes()).map_err(crate::region::not_registered)?;
            uffd.register(doorbell.start(), doorbell.bytes()).map_err(crate::region::not_registered)?;
        }
        if !config.writable {
            memory.forbid_writes().map_err(Error::io("protecting memory"))?;
        }
        let mut engine = Engine::new(config.engine()).map_err(Error::Config)?;
        let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).map_err(Error::Config)?;
        let (mapping, _) = engine.add_mapping(MappingKind::File, group, 0..pages as u64).map_err(Error::Config)?;
        let fixed = (threads + 1) * (THREAD_BYTES + READ_RUN * PAGE) + cpu_latency_qos::THREAD_BYTES;
        let memory_of = Arc::new(FileMemory {
            uffd: uffd.clone(),
            start: memory.start(),
            pages,
            pagemap: Pagemap::open().map_err(Error::io("opening /proc/self/pagemap"))?,
        });
        let mut core = Core::new(engine, Memory::new(memory_of, pages), group, fixed);
        core.stall_limit_ns = threads::nanoseconds(config.stall_limit);
        core.charge_overhead();
        check_tables(core.own_bytes(), config, &format!(" and to {threads} threads"))?;
        let shared = Arc::new(Shared {
            common: DriverState::new(core),
            written: Condvar::new(),
            flushing: Mutex::new(()),
            resizing: Mutex::new(()),
            uffd,
            io,
            start: memory.start(),
            bytes,
            doorbell,
            placement: Placement::new(),
            latency: CpuLatencyQos::new(config.awake_cpus)?,
        });
        let writable = config.writable;
        let mut file = MappedFile { shared, threads: Vec::new(), writer: None, memory, mapping, writable };
        // If a thread cannot be made, those that were made end with `file`.
        for _ in 0..threads {
            let thread = threads::spawn("refault-fault", &file.shared, Shared::serve_faults)?;
            file.threads.push(thread);
        }
        file.writer = Some(threads::spawn("refault-write", &file.shared, Shared::run_writer)?);
        Ok(file)
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.start() as *mut u8
    }

    /// The length of the file when it was opened. Its last page goes on with zeros, which never get
    /// into the file.
    pub fn len(&self) -> usize {
        self.shared.bytes as usize
    }

    /// Whether it has no bytes: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes, to be read.
    ///
    /// # Safety
    /// Nobody writes to the file by other means while the reference lives: pages that were dropped
    /// are read again.
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is that long and lives as long as `self`; writes need `&mut self` or
        // `unsafe`, those of others are the caller's contract.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// Its bytes. A panic if it was not mapped to be written.
    ///
    /// # Safety
    /// As for [`MappedFile::as_slice`].
    pub unsafe fn as_mut_slice(&mut self) -> &mut [u8] {
        assert!(self.writable, "the file was mapped to be read");
        // SAFETY: as above; `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len()) }
    }

    /// `MADV_WILLNEED`: reads pages ahead, while there is room. Returns how many of the range are
    /// in place.
    pub fn will_need(&self, range: Range<usize>) -> Result<u64, Error> {
        Ok(self.shared.bring_in(self.pages_of(range)?))
    }

    /// `MADV_RANDOM`, `MADV_SEQUENTIAL` or `POSIX_FADV_NOREUSE` for the whole file: touches of its
    /// pages do not keep them in memory; with random advice nothing is read ahead either.
    pub fn advise_access(&self, advice: AccessAdvice) {
        self.shared.lock().engine.advise_access(self.mapping, advice);
    }

    /// Pages of the range that were lost, because they could not be read, are read again when they
    /// are touched next. Returns how many.
    pub fn read_again(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        self.shared.lock().forget_lost(pages).map_err(Error::io("discarding memory"))
    }

    /// The pages that a range of bytes touches.
    fn pages_of(&self, range: Range<usize>) -> Result<Range<u32>, Error> {
        if range.start > range.end || range.end > self.len() {
            let (a, b, len) = (range.start, range.end, self.len());
            return Err(Error::Range(format!("there are no bytes {a} to {b} in a file of {len}")));
        }
        if range.is_empty() {
            return Ok(0..0);
        }
        Ok((range.start / PAGE) as u32..range.end.div_ceil(PAGE) as u32)
    }

    /// Faults that are served. With [`FaultScope::UserMode`], a system call that is handed memory
    /// which is not in place fails with `EFAULT`.
    pub fn scope(&self) -> FaultScope {
        self.shared.uffd.scope()
    }

    /// Counters, content and memory of the file.
    pub fn stats(&self) -> FileStats {
        FileStats { awake: self.shared.latency.stats(), ..self.shared.lock().stats() }
    }

    /// Checks every structure. An error is a defect of the pager or of the engine.
    pub fn validate(&self) -> Result<(), String> {
        let core = self.shared.lock();
        let there = core.memory.ops.present().map_err(|e| e.to_string())?;
        core.validate(&there)
    }
}

fn check(config: &MappedFileConfig, bytes: u64, name: &str) -> Result<(), Error> {
    let wrong = if bytes == 0 {
        format!("{name} is empty; write to it first, or give it a length")
    } else if bytes > 1 << 40 {
        format!("{name} has {bytes} bytes; at most 1 TiB")
    } else if config.dirty_background_ratio > 100 {
        format!("dirty_background_ratio is {}; at most 100", config.dirty_background_ratio)
    } else {
        check_memory(config.memory_max)?;
        return threads::check_serving(config.fault_threads, config.stall_limit);
    };
    Err(Error::Config(wrong))
}

fn check_tables(own_bytes: usize, config: &MappedFileConfig, and: &str) -> Result<(), Error> {
    if own_bytes <= config.memory_max / 2 {
        return Ok(());
    }
    let need = (own_bytes * 2).next_multiple_of(1 << 20);
    Err(Error::Config(format!(
        "half of memory_max would go to the tables of so large a file{and}; give it {need} bytes at least"
    )))
}

fn check_memory(bytes: usize) -> Result<(), Error> {
    match bytes {
        _ if bytes < RegionConfig::MIN_MEMORY => {
            Err(Error::Config(format!("memory_max is {bytes} bytes; at least 4 MiB")))
        }
        _ if bytes > RegionConfig::MAX_BYTES => {
            Err(Error::Config(format!("memory_max is {bytes} bytes; at most 1 TiB")))
        }
        _ => Ok(()),
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if !self.memory.is_ours() {
            // Memory that is at its address would be written to the file, and no thread is there to
            // end.
            return threads::abandon(&self.shared, self.threads.drain(..).chain(self.writer.take()));
        }
        if self.writer.is_some()
            && let Err(e) = self.shared.write_back()
        {
            eprintln!("refault: closing the file that is mapped at {:#x}: {e}", self.shared.start);
        }
        self.shared.end();
        if let Some(writer) = self.writer.take() {
            _ = writer.join();
        }
        for (i, _) in self.threads.iter().enumerate() {
            // SAFETY: the page is mapped; the thread that reads of this fault leaves it to the
            // kernel, and ends.
            unsafe { std::ptr::read_volatile((self.shared.doorbell.start() + i * PAGE) as *const u8) };
        }
        self.threads.drain(..).for_each(|t| _ = t.join());
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
            let mut turn = self.placement.turn();
            if let Err(e) = self.uffd.wait(&mut faults) {
                fatal(&format!("waiting for faults: {e}"));
            }
            if faults.is_empty() {
                continue;
            }
            self.latency.woke(faults.len());
            faults.iter().for_each(|f| self.placement.fault_of(&mut turn, f.thread));
            // This one reads the file: another waits for the next.
            drop(turn);
            let mut core = self.lock();
            self.tick(&mut core);
            for f in &faults {
                if self.doorbell.contains(f.address) {
                    // The kernel serves it from now on, and who touched it goes on.
                    if let Err(e) = self.uffd.unregister(f.address, PAGE) {
                        fatal(&format!("ending a thread: {e}"));
                    }
                    end = true;
                } else {
                    core.fault(((f.address - self.start) / PAGE) as u32, f.write);
                }
            }
            let core = self.finish(core);
            if core.has_work() {
                self.work.notify_one();
            }
        }
    }

    /// After the engine was called: what it asked for is done, as far as someone waits for it.
    fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        loop {
            core.memory.settle_drops();
            let mut reads = std::mem::take(&mut core.memory.reads);
            if reads.is_empty() {
                return core;
            }
            reads.sort_unstable();
            for side_by_side in reads.chunk_by(|a, b| a + 1 == *b) {
                for run in side_by_side.chunks(READ_RUN) {
                    core = self.read_run(core, run);
                }
            }
        }
    }

    fn bring_in(&self, pages: Range<u32>) -> u64 {
        const CHUNK: usize = 64;
        let mut core = self.lock();
        // More would push out what came first.
        let mut room = core.stats().max_pages / 2;
        let mut in_place = 0;
        for first in pages.clone().step_by(CHUNK) {
            let chunk = first..pages.end.min(first + CHUNK as u32);
            self.tick(&mut core);
            for page in chunk.clone() {
                room = if room > 0 && core.bring(page) { room - 1 } else { 0 };
            }
            core = self.finish(core);
            in_place += chunk.filter(|&p| core.memory.state(p).is_present()).count() as u64;
            if core.has_work() {
                self.work.notify_one();
            }
            // A thread that faults comes first.
            drop(core);
            core = self.lock();
        }
        in_place
    }
}
