//! A run of anonymous memory: threads touch it, and jobs of the pager go on in any order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::checkers::{ALWAYS, AT_REST, Checker, View, check_read};
use super::figures::Figures;
use super::kernel::{Access, Kernel};
use super::owner::Resize;
use super::profile::Profile;
use super::random::Random;
use super::store::StorePlan;
use super::threads::{Model, Thread};
use crate::core::{Claim, Core, Evictor, FolioRead, Limits, Memory, Moves, Places, Task, WINDOW};
use crate::store::{PageBuf, StoreError, SwapArea};
use crate::uffd::PAGE;

/// Pages of the largest folios that a profile has.
const LARGEST_FOLIO: usize = 16;

/// Accesses of a thread at a time, at the most.
const BURST: u64 = 16;

/// Something that a thread of the pager does without the lock.
enum Job {
    Read(Vec<(u32, u32)>),
    Folio(FolioRead),
    Move(Moves),
    Write(Vec<Claim>),
    Discard(Vec<u32>),
    Look(Vec<u32>),
}

/// A run.
pub(super) struct Run {
    pub(super) profile: Profile,
    pub(super) random: Random,
    pub(super) kernel: Arc<Kernel>,
    area: Arc<SwapArea>,
    pub(super) core: Core<Kernel>,
    pub(super) model: Model,
    store: StorePlan,
    evictor: Evictor,
    jobs: Vec<Job>,
    pub(super) resize: Option<Resize>,
    /// Pages that are being given up.
    pub(super) giving_up: Option<std::ops::Range<u32>>,
    /// Each thread is in a part of the memory.
    at: Vec<u32>,
    pub(super) now_ns: u64,
    pub(super) figures: Figures,
    /// Pages of the pager's own that were charged last, and whether there was room for all.
    charged: (u64, bool),
}

impl Run {
    pub(super) fn new(profile: &Profile, seed: u64) -> Run {
        let windows = profile.memory_pages as usize / 8 + 16;
        let kernel = Kernel::new(profile.pages, windows * WINDOW, profile.threads, profile.rates, seed);
        #[expect(clippy::arc_with_non_send_sync, reason = "the core shares it with threads, where there are any")]
        let kernel = Arc::new(kernel);
        let store = StorePlan::default();
        let area = Arc::new(SwapArea::new(Box::new(store.store(profile, seed))));
        let (engine, group) = profile.engine();
        let mut memory = Memory::new(kernel.clone(), area.clone(), profile.pages as usize, Places::new(windows));
        memory.tells_writes = profile.tells_writes;
        memory.folios.most_pages = LARGEST_FOLIO;
        let limits = Limits {
            memory_max: profile.memory_pages as usize * PAGE,
            memory_high: usize::MAX,
            swap_max: profile.swap_pages as usize * PAGE,
            zswap_max: 0,
        };
        let mut core = Core::new(engine, memory, group, limits, 4 * PAGE);
        core.budget.overhead_beside = profile.overhead_beside;
        core.stall_limit_ns = 30_000_000_000;
        core.standby_pages = profile.memory_pages * profile.standby_percent / 100;
        core.pages_to_keep = core.standby_pages;
        Run {
            profile: profile.clone(),
            random: Random::new(seed),
            kernel,
            area,
            core,
            model: Model::new(profile.pages),
            store,
            evictor: Evictor::new(),
            jobs: Vec::new(),
            resize: None,
            giving_up: None,
            at: vec![0; profile.threads],
            now_ns: 0,
            figures: Figures::default(),
            charged: (0, true),
        }
    }

    /// All of it.
    pub(super) fn run(mut self) -> Result<Figures, String> {
        let all = u64::from(self.profile.pages);
        self.at = (0..self.at.len()).map(|_| self.random.below(all) as u32).collect();
        // The first limits are set like those that come later.
        let limits = self.core.limits;
        self.core.set_group(&limits, u64::MAX).map_err(|e| e.to_string())?;
        self.start_resize(self.profile.memory_pages);
        for step in 0..self.profile.steps {
            self.step().and_then(|()| self.check(ALWAYS)).map_err(|e| format!("step {step}: {e}"))?;
        }
        self.come_to_rest()?;
        self.read_all()?;
        Ok(self.report())
    }

    fn report(mut self) -> Figures {
        let (c, k) = (self.core.memory.counts, self.kernel.0.borrow().injected);
        let f = &mut self.figures;
        (f.faults, f.swapped_in, f.swapped_out) = (c.faults, c.swapped_in, c.swapped_out);
        (f.rescued, f.throttled, f.given_up, f.poisoned) = (c.rescued, c.throttled, c.given_up, c.poisoned);
        (f.store_faults, f.of_kernel) = (self.store.faults.load(Ordering::Relaxed), k);
        f.store_calls = self.store.calls.load(Ordering::Relaxed);
        f.injected = f.store_faults + k.total();
        f.digest = [c.faults, c.swapped_in, c.swapped_out, c.moves, c.poisoned, self.now_ns, f.injected]
            .into_iter()
            .fold(f.digest, mix);
        self.figures
    }

    fn check(&self, checkers: &[Checker]) -> Result<(), String> {
        let view = self.view();
        checkers.iter().try_for_each(|(name, check)| check(&view).map_err(|e| format!("{name}: {e}")))
    }

    fn view(&self) -> View<'_> {
        let discarding = |j: &Job| if let Job::Discard(places) = j { places.len() as u64 } else { 0 };
        let is_short = self.core.memory.counts.oom > 0;
        View {
            core: &self.core,
            kernel: &self.kernel,
            model: &self.model,
            discarding: self.jobs.iter().map(discarding).sum(),
            is_resizing: self.resize.is_some(),
            charged: self.charged,
            may_lose: self.profile.may_lose || is_short,
        }
    }

    /// One thing happens.
    fn step(&mut self) -> Result<(), String> {
        self.figures.steps += 1;
        // Mostly microseconds, seldom as long as a disk.
        let longest = if self.random.one_in(50) { 200_000_000 } else { 50_000 };
        self.now_ns += self.random.below(longest);
        self.core.set_now(self.now_ns);
        match self.random.below(100) {
            0..40 => self.thread()?,
            40..55 => self.serve(),
            55..75 => self.go_on(),
            75..80 => self.start_moves(),
            80..85 => self.start_writes(),
            85..88 => self.start_discards(),
            88..90 => self.look_ahead(),
            90..92 => self.resume(),
            _ => self.evict(),
        }
        if self.profile.advice_in > 0 && self.random.one_in(self.profile.advice_in) {
            self.advise();
        }
        if self.profile.limits_in > 0 && self.random.one_in(self.profile.limits_in) {
            self.change_limits()?;
        }
        self.go_on_resizing()?;
        self.go_on_giving_up();
        self.leave();
        Ok(())
    }

    /// The lock is given up: what was asked for is someone's now.
    fn leave(&mut self) {
        self.core.memory.free_slots();
        let (reads, folios) = self.core.take_reads();
        self.jobs.extend(reads.chunks(16).map(|r| Job::Read(r.to_vec())));
        self.jobs.extend(folios.into_iter().map(Job::Folio));
        self.core.rescued = 0;
    }

    /// A thread of the program goes on, until it waits or others have their turn.
    fn thread(&mut self) -> Result<(), String> {
        let thread = self.random.below(self.at.len() as u64) as usize;
        for _ in 0..1 + self.random.below(BURST) {
            let now = self.kernel.0.borrow().threads.all()[thread];
            let (page, write) = match now {
                Thread::Waits { .. } => return Ok(()),
                Thread::Retries { page, write } => (page, write),
                Thread::Runs => self.next_access(thread),
            };
            if self.giving_up.as_ref().is_some_and(|range| range.contains(&page)) {
                return Ok(());
            }
            self.access(thread, page, write)?;
        }
        Ok(())
    }

    fn next_access(&mut self, thread: usize) -> (u32, bool) {
        let pages = u64::from(self.profile.pages);
        let at = match self.random.below(10) {
            0 => self.random.below(pages),
            1..4 => u64::from(self.at[thread]) + 1,
            _ => u64::from(self.at[thread]) + self.random.below(u64::from(self.profile.locality)),
        };
        if self.random.one_in(4) {
            self.at[thread] = (at % pages) as u32;
        }
        ((at % pages) as u32, self.random.one_in(self.profile.write_in))
    }

    fn access(&mut self, thread: usize, page: u32, write: bool) -> Result<(), String> {
        self.figures.accesses += 1;
        let came = self.kernel.0.borrow_mut().access(thread, page, write);
        self.figures.digest = mix(self.figures.digest, u64::from(page) << 2 | came as u64);
        match came {
            Access::Faulted => return Ok(()),
            Access::Signal => self.figures.signals += 1,
            Access::Done => {
                check_read(&self.view(), page)?;
                if write {
                    self.figures.writes += 1;
                    let mut kernel = self.kernel.0.borrow_mut();
                    let frame = kernel.pages[page as usize].as_mut().ok_or("a page vanished")?;
                    self.model.write(page, frame);
                }
            }
        }
        self.kernel.0.borrow_mut().threads.set(thread, Thread::Runs);
        Ok(())
    }

    /// A thread of the pager reads faults, in any order, and serves them.
    fn serve(&mut self) {
        let n = 1 + self.random.below(4);
        for _ in 0..n {
            let told = self.kernel.0.borrow().messages.len() as u64;
            if told == 0 {
                return;
            }
            let i = self.random.below(told) as usize;
            let m = self.kernel.0.borrow_mut().messages.swap_remove(i);
            self.core.fault(m.page, m.write);
        }
    }

    fn start_moves(&mut self) {
        let moves = Moves::new(self.core.take_leaving(WINDOW));
        if !moves.is_done() {
            self.jobs.push(Job::Move(moves));
        }
    }

    fn start_writes(&mut self) {
        let most = if self.random.one_in(2) { 8 } else { WINDOW };
        let claimed = self.core.claim_writes(most);
        if !claimed.is_empty() {
            self.jobs.push(Job::Write(claimed));
        }
    }

    fn start_discards(&mut self) {
        if self.core.has_any_discards() {
            self.jobs.push(Job::Discard(self.core.take_discards()));
        }
    }

    fn look_ahead(&mut self) {
        let pages = self.core.pages_to_ask_about();
        if !pages.is_empty() {
            self.jobs.push(Job::Look(pages));
        }
    }

    /// One of the jobs goes on.
    fn go_on(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let i = self.random.below(self.jobs.len() as u64) as usize;
        match self.jobs.swap_remove(i) {
            Job::Read(reads) => self.read(&reads),
            Job::Folio(read) => self.read_folio(read),
            Job::Move(moves) => self.go_on_moving(moves),
            Job::Write(claimed) => self.write(&claimed),
            Job::Discard(places) => {
                self.kernel.empty(&places);
                self.core.memory.settle_discards(&places);
            }
            Job::Look(pages) => {
                use crate::core::Operations;
                let answer = |page| Some((page, self.kernel.was_written(page)?));
                let answers = pages.into_iter().filter_map(answer).collect();
                self.core.fill_written_cache(answers);
            }
        }
    }

    fn read(&mut self, reads: &[(u32, u32)]) {
        let mut contents: Vec<_> = reads.iter().map(|_| self.core.memory.buffer()).collect();
        let slots: Vec<_> = reads.iter().map(|&(page, slot)| (slot, page)).collect();
        let results = self.area.read_several(&slots, &mut contents);
        for ((&(page, _), result), content) in reads.iter().zip(results).zip(contents) {
            self.core.arrive(page, result.map(|()| Some(content)), false);
        }
    }

    fn read_folio(&mut self, read: FolioRead) {
        use crate::core::State;
        let is_read = |p: &u32| self.core.memory.state(*p) == State::Reading;
        let pages: Vec<u32> = (read.first..read.first + read.pages).filter(is_read).collect();
        let spare = self.core.memory.folios.take_buffer();
        let mut buffer = spare.unwrap_or_else(|| vec![PageBuf::default(); LARGEST_FOLIO].into());
        let mut errors: Vec<(u32, StoreError)> = Vec::new();
        for page in pages {
            let i = page - read.first;
            if let Err(e) = self.area.read(read.slot + i, page, &mut buffer[i as usize].0) {
                errors.push((page, e));
            }
        }
        self.core.folio_arrived(read, buffer, &errors);
    }

    /// A call or more; between two of them others may go on.
    fn go_on_moving(&mut self, mut moves: Moves) {
        let calls = 1 + self.random.below(8);
        for _ in 0..calls {
            if !moves.is_done() {
                moves.call(&*self.kernel);
            }
        }
        match moves.is_done() {
            true => self.core.settle_moves(&moves),
            false => self.jobs.push(Job::Move(moves)),
        }
    }

    fn write(&mut self, claimed: &[Claim]) {
        let contents: Vec<_> = claimed.iter().map(|c| self.kernel.staged(c.place)).collect();
        let pages: Vec<_> = claimed.iter().zip(&contents).map(|(c, page)| (c.slot, c.page, &page.0)).collect();
        let results = self.area.write_many(&pages);
        self.core.settle_writes(claimed, &results);
    }

    /// The evictor's next task.
    fn evict(&mut self) {
        match self.evictor.next(&mut self.core) {
            Task::Sleep(ns) => self.now_ns += self.random.below(ns / 100 + 1),
            Task::Reclaim => {
                self.core.kswapd_step();
                self.start_moves();
                self.start_writes();
                self.core.retry_waiting();
                self.charge();
                self.core.note_step();
            }
            Task::Write => {
                self.start_writes();
                self.core.retry_waiting();
                self.charge();
            }
            Task::Tend => self.area.tend(),
            Task::GiveRoom => self.area.give_room(),
            Task::Yield => {}
        }
    }

    /// The pager's own memory is charged, as it is now.
    pub(super) fn charge(&mut self) {
        self.core.charge_overhead();
        let bytes = self.core.own_bytes() + self.core.store_bytes() as usize;
        let pages = if self.profile.overhead_beside { 0 } else { bytes.div_ceil(PAGE) as u64 };
        self.charged = (pages, self.core.engine.free_pages() > 0);
    }

    /// Faults that were served go on, or wait for having taken too much.
    fn resume(&mut self) {
        if self.core.memory.high.has_held() {
            self.core.reclaim_high();
            self.core.release_held();
        }
    }

    /// Nothing goes wrong any more, nobody touches anything new, and all go on until nothing is
    /// left.
    fn come_to_rest(&mut self) -> Result<(), String> {
        self.kernel.0.borrow_mut().is_calm = true;
        self.store.is_calm.store(true, Ordering::Relaxed);
        for _ in 0..20_000 {
            self.now_ns += 1_000_000;
            self.core.set_now(self.now_ns);
            self.serve();
            self.go_on();
            self.start_moves();
            self.start_writes();
            self.start_discards();
            self.resume();
            self.evict();
            self.go_on_resizing()?;
            self.go_on_giving_up();
            self.leave();
            for thread in 0..self.at.len() {
                let now = self.kernel.0.borrow().threads.all()[thread];
                if let Thread::Retries { page, write } = now {
                    self.access(thread, page, write)?;
                }
            }
            if self.is_at_rest() {
                break;
            }
        }
        self.check(ALWAYS).and_then(|()| self.check(AT_REST)).map_err(|e| format!("at rest: {e}"))
    }

    fn is_at_rest(&self) -> bool {
        let kernel = self.kernel.0.borrow();
        self.jobs.is_empty()
            && kernel.messages.is_empty()
            && kernel.threads.all().iter().all(|t| *t == Thread::Runs)
            && self.resize.is_none()
            && self.giving_up.is_none()
            && self.core.memory.leaving.is_empty()
    }

    /// Every page is what it should be, or is lost.
    fn read_all(&mut self) -> Result<(), String> {
        for page in 0..self.profile.pages {
            self.access(0, page, false)?;
            for _ in 0..2000 {
                if self.kernel.0.borrow().threads.all()[0] == Thread::Runs {
                    break;
                }
                self.come_to_rest()?;
            }
        }
        Ok(())
    }
}

fn mix(digest: u64, n: u64) -> u64 {
    (digest ^ n).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17)
}
