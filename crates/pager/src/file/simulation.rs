//! A mapped file on the simulated kernel: threads touch it, jobs of the pager go on in any order,
//! and the file fails as it is told. See [`crate::core::simulation`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use refault_mm::{Config, Engine, MappingKind, MemcgId, NodeConfig, PageId, Policy};

use super::core::Core;
use super::memory::{Memory, State};
use crate::core::simulation::{Access, Frame, Kernel, Model, Random, Rates, Thread, run_seeds, seeds};
use crate::core::{Evictor, Task};
use crate::store::PageBuf;

/// Something that a thread of the pager does without the lock.
enum Job {
    Read(Vec<u32>),
    Write(Vec<u32>),
}

/// Figures of the runs.
#[derive(Debug, Default)]
struct Figures {
    steps: u64,
    accesses: u64,
    reads: u64,
    writes: u64,
    lost: u64,
    read_again: u64,
    read_errors: u64,
    write_errors: u64,
    syncs_failed: u64,
    fills_refused: u64,
    protects_refused: u64,
}

struct Run {
    random: Random,
    pages: u32,
    steps: u32,
    rates: Rates,
    kernel: Arc<Kernel>,
    core: Core<Kernel>,
    /// Content of the file.
    file: BTreeMap<u32, Frame>,
    model: Model,
    evictor: Evictor,
    jobs: Vec<Job>,
    threads: usize,
    now_ns: u64,
    /// The next page of the thread that writes one after the other, where there is one.
    walk: Option<u32>,
    is_calm: bool,
    figures: Figures,
}

/// Core of a file of `pages` pages in `memory_pages` pages of memory.
fn core(kernel: &Arc<Kernel>, policy: Policy, memory_pages: u64, pages: u32) -> Core<Kernel> {
    let mut config = Config::new(policy);
    config.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(memory_pages) });
    (config.total_pages, config.swap.pages, config.readahead.file_map_ahead) = (memory_pages, 0, true);
    config.lru.kswapd_writes_files = true;
    let mut engine = Engine::new(config).expect("the configuration is possible");
    let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).expect("there is room for a group");
    engine.add_mapping(MappingKind::File, group, 0..u64::from(pages)).expect("there is room for a mapping");
    let mut core = Core::new(engine, Memory::new(kernel.clone(), pages as usize), group, 0);
    core.stall_limit_ns = 30_000_000_000;
    core
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed ^ 0xF11E);
        let memory_pages = 160 + random.below(200);
        let pages = (memory_pages * (120 + random.below(250)) / 100) as u32;
        let threads = 1 + random.below(8) as usize;
        let is_rough = !random.one_in(4);
        let mut seldom = |n: u64| if is_rough && random.one_in(2) { n + random.below(n * 4) } else { 0 };
        let rates = Rates {
            fill_refused: seldom(60),
            protect_refused: seldom(20),
            store_error: seldom(10),
            stray_wake: seldom(5),
            ..Rates::default()
        };
        let kernel = Kernel::new(pages, 0, threads, rates, seed);
        #[expect(clippy::arc_with_non_send_sync, reason = "the core shares it with threads, where there are any")]
        let kernel = Arc::new(kernel);
        let policy = random.of(&[Policy::Mglru, Policy::Lru]);
        let core = core(&kernel, policy, memory_pages, pages);
        let walk = random.one_in(3).then_some(0);
        Run {
            steps: 300 + random.below(700) as u32,
            random,
            pages,
            rates,
            kernel,
            core,
            file: BTreeMap::new(),
            model: Model::new(pages),
            evictor: Evictor::new(),
            jobs: Vec::new(),
            threads,
            now_ns: 0,
            walk,
            is_calm: false,
            figures: Figures::default(),
        }
    }

    fn run(mut self) -> Result<Figures, String> {
        for step in 0..self.steps {
            self.step().and_then(|()| self.check()).map_err(|e| format!("step {step}: {e}"))?;
        }
        (self.is_calm, self.kernel.0.borrow_mut().is_calm) = (true, true);
        self.come_to_rest()?;
        self.figures.read_again += self.core.forget_lost(0..self.pages).map_err(|e| e.to_string())?;
        for page in 0..self.pages {
            self.access(0, page, false)?;
            self.come_to_rest()?;
        }
        self.write_back()?;
        for page in 0..self.pages {
            let zeros = Frame::default();
            let content = self.file.get(&page).unwrap_or(&zeros);
            self.model.check(page, content).map_err(|e| format!("in the file: {e}"))?;
        }
        let (c, k) = (self.core.memory.counts, self.kernel.0.borrow().injected);
        let f = &mut self.figures;
        (f.reads, f.writes, f.lost) = (c.reads, c.writes, c.lost);
        (f.read_errors, f.write_errors) = (c.read_errors, c.write_errors);
        (f.fills_refused, f.protects_refused) = (k.fills_refused, k.protects_refused);
        Ok(self.figures)
    }

    fn check(&self) -> Result<(), String> {
        let kernel = self.kernel.0.borrow();
        let there: Vec<bool> = kernel.pages.iter().map(Option::is_some).collect();
        self.core.validate(&there)?;
        for thread in kernel.threads.all() {
            let Thread::Waits { page, .. } = *thread else { continue };
            if !kernel.messages.iter().any(|m| m.page == page) && !self.core.is_known_to_wait(page) {
                let state = self.core.memory.state(page);
                return Err(format!("no waiter is forgotten: one waits for page {page} ({state:?}), and nobody knows"));
            }
        }
        let (present, max) = (kernel.present(), self.core.budget.max_pages);
        if present > max {
            return Err(format!("the budget is held: {present} pages are more than {max}"));
        }
        if self.rates.is_harmless() && self.core.memory.counts.oom == 0 && self.core.memory.counts.lost > 0 {
            return Err("a page is lost only where something went wrong".into());
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.figures.steps += 1;
        let longest = if self.random.one_in(50) { 2_000_000_000 } else { 50_000 };
        self.now_ns += self.random.below(longest);
        self.core.set_now(self.now_ns);
        match self.random.below(100) {
            0..40 => {
                let thread = self.random.below(self.threads as u64) as usize;
                for _ in 0..1 + self.random.below(16) {
                    let now = self.kernel.0.borrow().threads.all()[thread];
                    let (page, write) = match now {
                        Thread::Waits { .. } => break,
                        Thread::Retries { page, write } => (page, write),
                        Thread::Runs => self.choose(),
                    };
                    self.access(thread, page, write)?;
                }
            }
            40..60 => self.serve(),
            60..82 => self.go_on(),
            82..84 => {
                let page = self.random.below(u64::from(self.pages)) as u32;
                self.figures.read_again += self.core.forget_lost(page..self.pages).map_err(|e| e.to_string())?;
            }
            84..86 => {
                let before = self.core.take_unsynced();
                if self.goes_wrong() {
                    self.figures.syncs_failed += 1;
                    self.core.sync_failed(&before);
                }
            }
            _ => self.evict(),
        }
        self.leave();
        Ok(())
    }

    /// The page that a thread touches next, and whether it writes to it.
    fn choose(&mut self) -> (u32, bool) {
        match &mut self.walk {
            Some(next) => {
                let page = *next;
                *next = (page + 1) % self.pages;
                (page, true)
            }
            None => (self.random.below(u64::from(self.pages)) as u32, self.random.one_in(3)),
        }
    }

    fn goes_wrong(&mut self) -> bool {
        !self.is_calm && self.random.one_in(self.rates.store_error)
    }

    /// The lock is given up.
    fn leave(&mut self) {
        self.core.memory.settle_drops();
        let mut reads = std::mem::take(&mut self.core.memory.reads);
        reads.sort_unstable();
        for side_by_side in reads.chunk_by(|a, b| a + 1 == *b) {
            self.jobs.extend(side_by_side.chunks(32).map(|run| Job::Read(run.to_vec())));
        }
    }

    fn access(&mut self, thread: usize, page: u32, write: bool) -> Result<(), String> {
        self.figures.accesses += 1;
        let came = self.kernel.0.borrow_mut().access(thread, page, write);
        let mut kernel = self.kernel.0.borrow_mut();
        if came == Access::Faulted {
            return Ok(());
        }
        if came == Access::Done {
            let frame = kernel.pages[page as usize].as_mut().ok_or("a page vanished")?;
            self.model.check(page, frame)?;
            if write {
                self.model.write(page, frame);
            }
        }
        kernel.threads.set(thread, Thread::Runs);
        Ok(())
    }

    fn serve(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            let told = self.kernel.0.borrow().messages.len() as u64;
            if told == 0 {
                return;
            }
            let i = self.random.below(told) as usize;
            let m = self.kernel.0.borrow_mut().messages.swap_remove(i);
            self.core.fault(m.page, m.write);
        }
    }

    fn start_writes(&mut self) {
        self.core.memory.settle_drops();
        let pages = self.core.claim_writes(1 + self.random.below(64) as usize);
        if !pages.is_empty() {
            self.jobs.push(Job::Write(pages));
        }
    }

    fn go_on(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let i = self.random.below(self.jobs.len() as u64) as usize;
        match self.jobs.swap_remove(i) {
            Job::Read(pages) => {
                let content = |page| self.file.get(page).map_or(PageBuf::default(), |frame| (**frame).clone());
                self.core.memory.buffer = pages.iter().map(content).collect();
                for (i, &page) in pages.iter().enumerate() {
                    let result = if self.goes_wrong() { Err("a test has it fail".to_string()) } else { Ok(i) };
                    self.core.arrive(page, result);
                }
                self.core.memory.buffer.clear();
            }
            Job::Write(pages) => {
                let is_failed = self.goes_wrong();
                // Some of it may be in the file.
                let n = if is_failed { self.random.below(pages.len() as u64) as usize } else { pages.len() };
                for &page in &pages[..n] {
                    let frame = self.kernel.0.borrow().pages[page as usize].clone();
                    self.file.insert(page, frame.expect("a page that is written is in place"));
                }
                let result = if is_failed { Err(std::io::Error::other("a test has it fail")) } else { Ok(()) };
                self.core.settle_writes(&pages, result);
                self.core.memory.settle_drops();
            }
        }
    }

    fn evict(&mut self) {
        match self.evictor.next(&mut self.core) {
            Task::Sleep(ns) => self.now_ns += self.random.below(ns / 100 + 1),
            _ => {
                self.core.step();
                self.start_writes();
                self.core.retry_waiting();
                self.core.charge_overhead();
            }
        }
    }

    /// Nobody touches anything new, and all go on until nothing is left.
    fn come_to_rest(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            self.now_ns += 1_000_000;
            self.core.set_now(self.now_ns);
            self.serve();
            self.go_on();
            self.start_writes();
            self.evict();
            self.leave();
            for thread in 0..self.threads {
                let now = self.kernel.0.borrow().threads.all()[thread];
                if let Thread::Retries { page, write } = now {
                    self.access(thread, page, write)?;
                }
            }
            let kernel = self.kernel.0.borrow();
            let is_idle = kernel.threads.all().iter().all(|t| *t == Thread::Runs);
            if is_idle && self.jobs.is_empty() && kernel.messages.is_empty() {
                drop(kernel);
                return self.check().map_err(|e| format!("at rest: {e}"));
            }
        }
        Err("nobody waits at rest: it never came to rest".into())
    }

    /// As `flush` does.
    fn write_back(&mut self) -> Result<(), String> {
        for page in self.core.memory.dirty.clone() {
            let Core { engine, memory, .. } = &mut self.core;
            engine.write_page(memory, PageId(page));
        }
        for _ in 0..20_000 {
            self.come_to_rest()?;
            if self.core.memory.dirty.is_empty() && self.core.memory.writing.is_empty() {
                return Ok(());
            }
        }
        Err("what is dirty is not written".into())
    }
}

/// Page 512 is the first of a page table. Read ahead, it takes the table when it arrives, and
/// reclaim for the table took the page itself: it was lost.
#[test]
fn regression_a_page_that_its_own_page_table_drives_out_is_read_again() {
    for write in [false, true] {
        let mut core = drive_out(write);
        // Where all else is dirty there is no room to read it again, and no thread that needs it.
        assert_eq!(core.memory.reads.contains(&512), !write, "{:?}", core.memory.state(512));
        let after = if write { State::Absent } else { State::Clean };
        arrive(&mut core, 512..1024);
        assert_eq!((core.memory.state(512), core.memory.counts.lost), (after, 0));
        let there: Vec<bool> = core.memory.ops.0.borrow().pages.iter().map(Option::is_some).collect();
        core.validate(&there).unwrap();
    }
}

/// Reads end, those of some pages.
fn arrive(core: &mut Core<Kernel>, pages: Range<u32>) {
    core.memory.buffer = vec![PageBuf::default()];
    for page in core.memory.reads.extract_if(.., |page| pages.contains(page)).collect::<Vec<_>>() {
        core.arrive(page, Ok(0));
    }
    core.memory.settle_drops();
}

/// Touches pages of the first table until there is no room, and has page 512 arrive then.
fn drive_out(write: bool) -> Core<Kernel> {
    #[expect(clippy::arc_with_non_send_sync, reason = "the core shares it with threads, where there are any")]
    let kernel = Arc::new(Kernel::new(1024, 0, 1, Rates::default(), 1));
    let mut core = core(&kernel, Policy::Lru, 160, 1024);
    for page in (480..512).chain(0..480) {
        core.fault(page, write);
        if core.is_known_to_wait(page) && core.memory.reads.is_empty() {
            break;
        }
        arrive(&mut core, 0..512);
    }
    arrive(&mut core, 512..513);
    core
}

#[test]
fn a_mapped_file() {
    let mut total = Figures::default();
    run_seeds(
        "a_mapped_file",
        |seed| Run::new(seed).run(),
        |f| {
            total.steps += f.steps;
            total.accesses += f.accesses;
            total.reads += f.reads;
            total.writes += f.writes;
            total.lost += f.lost;
            total.read_again += f.read_again;
            total.read_errors += f.read_errors;
            total.write_errors += f.write_errors;
            total.syncs_failed += f.syncs_failed;
            total.fills_refused += f.fills_refused;
            total.protects_refused += f.protects_refused;
        },
    );
    println!("{} seeds: {total:?}", seeds().len());
    if seeds().len() >= 100 {
        let t = &total;
        let met = [t.reads, t.writes, t.lost, t.read_again, t.read_errors, t.write_errors, t.syncs_failed];
        assert!(met.into_iter().chain([t.fills_refused, t.protects_refused]).all(|n| n > 0), "{total:?}");
    }
}
