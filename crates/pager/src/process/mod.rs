//! Whole programs: all processes of a tree in one memory, served from outside.
//!
//! The *manager* is the process that starts the program. In each process of the tree there is an
//! *agent*, a thread that lives by system calls alone (`crates/preload`). The manager holds the
//! userfaultfd of every process: it reads faults and changes of mappings and puts pages in place.
//! The agent does the one thing that must be done inside, `UFFDIO_MOVE`: pages that are to leave go
//! to scratch pages of its own and from there to memory that both map.
//!
//! Threads of the manager: two or more that serve faults, the evictor, the scanner (which finds
//! memory), and the greeter (which admits processes); one more looks at it once a second if someone
//! wants to know. The engine decides, under one lock with the states of all pages.

#[path = "../../preload/abi.rs"]
#[expect(dead_code, reason = "each side uses its part")]
mod abi;
mod address_space;
mod agent;
mod child_processes;
mod components;
mod core;
mod cow_swap;
mod epoll;
mod events;
mod evict;
mod evidence;
mod fill;
mod fork;
mod handshake;
mod inherited;
mod known_order;
mod lanes;
mod launch;
mod lost_pages;
mod maps;
mod memory;
mod memory_high;
mod new_memory;
mod no_progress;
mod oom;
mod order;
mod page_table;
mod pressure;
mod recent_swap_ins;
mod record;
mod scan;
mod share;
mod signals;
mod socket_file;
mod stats;
mod table_limit;
mod unanswered;
mod unlimited;
mod unserved;
mod validate;
mod wake;
mod watch;
mod written;

use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use refault_mm::{Engine, MemcgId, NodeConfig, SwapAllocator};

use self::agent::Listener;
use self::core::Core;
use self::epoll::Ready;
use self::lanes::Lanes;
use self::memory::{Memory, kept_places};
use self::record::Recorder;
use crate::config::RegionConfig;
use crate::core::DISCARD_BATCH;
use crate::cpu_latency_qos::{self, CpuLatencyQos};
use crate::error::Error;
use crate::evict::{DriverState, SwapEvictor};
use crate::staging::WINDOW;
use crate::store::{SwapArea, SwapIo};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::threads::{self, fatal};
use crate::uffd::PAGE;

pub use launch::{RunEnd, exit_like, run, run_watched};
pub use record::{ProcessTouch, TouchRecording};
pub use stats::TreeStats;
pub use watch::{Live, ProcessWatch};

/// Bytes of stack, buffers and codec tables of a thread, as far as they are touched.
const THREAD_BYTES: usize = 160 << 10;

/// Up to 2 to the power of this pages are read at a time, while faults follow one another.
const READ_AHEAD_ORDER: u32 = 4;

/// Limits of the pages on their way out: one part in this many of the memory, and at most this
/// number of pages, 16 batches.
const UNDER_WAY: u64 = 16;
const MOST_UNDER_WAY: u64 = 1024;
/// One part in this many while processes share memory: a page that leaves one of them is copied
/// first, and the copy is one page more until it is written.
const SHARED_UNDER_WAY: u64 = 64;

/// Unless the number of threads is chosen.
const MOST_LANES: usize = 4;

/// Library that is loaded into programs.
static PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// A program and the memory of its processes.
#[derive(Debug)]
pub struct TreeConfig {
    /// Limits, policy and stores, as of a region. Its size has no meaning here, nor have who serves
    /// faults and how they wait, standby places, samples, folios and how the swap file is written.
    pub memory: RegionConfig,
    /// A file for what was touched.
    pub record: Option<File>,
}

/// State that the threads share.
struct Shared {
    common: DriverState<Core>,
    area: Arc<SwapArea>,
    lanes: Lanes,
    latency: CpuLatencyQos,
    listener: Listener,
    /// State of the program itself: it is served, or why not.
    first: Mutex<Option<Result<(), String>>>,
    arrived: Condvar,
}

/// The manager.
struct Tree {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Tree {
    /// A manager whose agents come to the socket of this name, or to the one beside it.
    fn new(config: &mut TreeConfig, name: &str, beside: Option<OwnedFd>) -> Result<Tree, Error> {
        config.memory.check()?;
        if PRELOAD.is_empty() {
            return Err(Error::Unsupported("whole programs are served on x86-64 Linux only".into()));
        }
        // Slots of whole programs are all over the file, so a batch is many calls: at once they
        // take a tenth less processor time.
        config.memory.swap_io = SwapIo::Ring;
        let m = &config.memory;
        let max_pages = m.memory_max / PAGE;
        let slots = m.slots();
        let store = m.store(slots.saturating_mul(2))?;
        let area = Arc::new(SwapArea::sharing(store, slots));
        let mut config_of_engine = m.engine();
        if let Some(node) = &mut config_of_engine.node {
            node.min_free_kbytes = Some(min_free_kbytes(node));
        }
        (config_of_engine.readahead.page_cluster, config_of_engine.readahead.swap_map_ahead) = (READ_AHEAD_ORDER, true);
        // As kernels since 6.13: clusters that are used in part come first. So slots in use, and
        // with them the tables, stay close together.
        config_of_engine.swap.policy.allocator = SwapAllocator::OneFrag;
        let mut engine = Engine::new(config_of_engine).map_err(Error::Config)?;
        let group =
            engine.add_memcg(MemcgId::ROOT, "/run", u64::MAX, (m.swap_max / PAGE) as u64).map_err(Error::Config)?;
        let kept_places = kept_places(max_pages);
        let memory = Memory::new(area.clone(), max_pages / 8 + 16, kept_places)
            .map_err(Error::io("mapping staging windows (is ulimit -v or -d too small?)"))?;
        let most_lanes = match m.fault_threads {
            0 => MOST_LANES,
            n => n.div_ceil(lanes::THREADS),
        };
        let lanes = Lanes::new(most_lanes).map_err(Error::io("waiting for faults"))?;
        let serving = match m.fault_threads {
            0 => lanes.len() * lanes::THREADS,
            n => n,
        };
        // Places of no use that are not emptied yet, with what a round of writing adds.
        let in_passing = (kept_places + DISCARD_BATCH + WINDOW) * PAGE;
        let fixed = (serving + 3) * THREAD_BYTES + cpu_latency_qos::THREAD_BYTES + in_passing;
        let mut core = Core::new(engine, group, memory, fixed);
        core.stall_limit_ns = threads::nanoseconds(m.stall_limit);
        core.swap_pages = (m.swap_max / PAGE) as u64;
        core.has_swap_file = m.swap_directory.is_some();
        core.limit_under_way(false);
        core.set_high(m.memory_high, core.swap_pages)?;
        core.memory.recorder = config.record.take().map(Recorder::new);
        core.budget.overhead_beside = m.overhead_beside;
        core.charge_overhead();
        let shared = Arc::new(Shared {
            common: DriverState::new(core),
            area,
            latency: CpuLatencyQos::new(m.awake_cpus)?,
            lanes,
            listener: Listener::new(name, beside).map_err(Error::io("opening a socket for the program"))?,
            first: Mutex::new(None),
            arrived: Condvar::new(),
        });
        let mut tree = Tree { shared, threads: Vec::new() };
        let mut start = |name: &str, run: fn(&Shared)| -> Result<(), Error> {
            tree.threads.push(threads::spawn(name, &tree.shared, run)?);
            Ok(())
        };
        for _ in 0..serving {
            start("refault-fault", Shared::serve)?;
        }
        start("refault-evict", Shared::evict)?;
        start("refault-scan", Shared::scan)?;
        start("refault-greet", Shared::handshakes)?;
        Ok(tree)
    }
}

/// At most three times what an order moves out, because moved pages are in an agent's scratch
/// pages, in the window and in staging places for a moment. The kernel's formula, made for devices
/// that take pages at any time, gives 1 % of a limit of 150 MiB.
fn min_free_kbytes(node: &NodeConfig) -> u64 {
    node.min_mark_pages().min(3 * WINDOW as u64) * (PAGE as u64 >> 10)
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.shared.end();
        self.shared.listener.close();
        self.shared.lanes.stop();
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
    /// A thread that serves faults.
    fn serve(&self) {
        let lane = self.lanes.join();
        loop {
            let ready = match self.lanes.wait(lane) {
                Ok(Some(ready)) => ready,
                Ok(None) => continue,
                Err(e) => fatal(&format!("waiting for faults: {e}")),
            };
            let mut core = self.lock_now();
            match ready {
                Ready::Stop => return,
                Ready::Faults(index) => {
                    _ = core.settle(index);
                    self.latency.woke(core.threads.len());
                    self.follow_threads(&mut core);
                }
                Ready::Answered(index, serial) => {
                    if core.space(index).is_some_and(|s| s.serial == serial) {
                        core.note_answer(index);
                        // Faults were told of meanwhile, once.
                        _ = core.settle(index);
                        core.threads.clear();
                    }
                }
                Ready::Gone(index, serial) => {
                    if core.space(index).is_some_and(|s| s.serial == serial) {
                        core.remove_process(index);
                    }
                }
            }
            self.after(core);
        }
    }

    /// After anything was done: what was read of faults is served, what the engine asked for is
    /// done, as far as someone waits for it.
    fn after<'a>(&'a self, mut core: MutexGuard<'a, Core>) {
        core.keep_wakes();
        core.serve_pending();
        core = self.finish(core);
        if !core.waiting_for_frame.is_empty() {
            core.take_wakes().give();
            // A thread that waits for room makes some.
            core = self.evict_round(core);
            core.retry_waiting();
            core = self.finish(core);
        }
        self.tell_evictor(&mut core);
        let wakes = core.take_wakes();
        drop(core);
        wakes.give();
    }

    /// Wakes the evictor if it waits and there is something for it.
    fn tell_evictor(&self, core: &mut Core) {
        if core.evictor_waits && core.has_work() {
            core.evictor_waits = false;
            self.work.notify_one();
        }
    }

    fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        loop {
            core.serve_pending();
            // Lent pages are read by the thread that serves them.
            self.tick(&mut core);
            core.memory.free_slots();
            for index in std::mem::take(&mut core.is_new) {
                let Some(s) = core.space(index) else { continue };
                if let Err(e) = self.lanes.add_faults(s.uffd.as_fd().as_raw_fd(), index, s.serial) {
                    fatal(&format!("waiting for the faults of a process: {e}"));
                }
            }
            self.watch_answers(&mut core);
            let reads = std::mem::take(&mut core.memory.reads);
            if reads.is_empty() {
                break;
            }
            for several in reads.chunks(1 << READ_AHEAD_ORDER) {
                core = self.read(core, several);
            }
        }
        if core.memory.high.has_held() {
            core.take_wakes().give();
            core = self.resume_faults(core);
        }
        if core.memory.has_discards() {
            core.take_wakes().give();
            core = self.discard(core);
        }
        core
    }

    /// Reads pages, and tells the engine. A page that failed on the way may be well where it is, so
    /// it is tried once more.
    fn read<'a>(&'a self, mut core: MutexGuard<'a, Core>, reads: &[(u32, u32)]) -> MutexGuard<'a, Core> {
        let mut contents: Vec<_> = reads.iter().map(|_| core.memory.buffer()).collect();
        let (keeps, wakes) = (core.wakes.are_kept(), core.take_wakes());
        drop(core);
        wakes.give();
        let slots: Vec<_> = reads.iter().map(|&(page, slot)| (slot, page)).collect();
        let results = self.area.read_several(&slots, &mut contents);
        let mut core = self.lock_now();
        if keeps {
            core.keep_wakes();
        }
        for ((&(page, _), result), content) in reads.iter().zip(results).zip(contents) {
            core.arrive(page, result.map(|()| content));
        }
        core
    }
}
