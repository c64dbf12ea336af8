//! The registry, the waiters and the path of a signal under every schedule that `shuttle` draws: it
//! says of a run that fails which it was, and plays it again.
//!
//! `cargo test -p refault-pager --features shuttle --lib schedules`; `REFAULT_LONG=1` draws more.

use std::sync::Arc;

use refault_mm::{Config, Engine, MappingKind, MemcgId, NodeConfig, Policy};
use shuttle::thread;

use super::{Shared, Table};
use crate::core::{self, FillMode, Limits, Memory, Moves, Operations, Places, Progress, Source, State, WINDOW};
use crate::region::waiters::Waiters;
use crate::store::{Faulty, PageBuf, SwapArea};
use crate::sync::Mutex;

fn check(run: impl Fn() + Send + Sync + 'static) {
    let schedules = refault_testing::by_length(1000, 5000, 20_000);
    // Three places at which threads change, at the most: most defects need no more.
    shuttle::check_pct(run, schedules, 3);
}

/// Nobody follows these pointers.
fn name(n: usize) -> *const Shared {
    std::ptr::without_provenance(n)
}

#[test]
fn an_address_is_found_while_other_places_change() {
    check(|| {
        let table = Arc::new(Table::new());
        let range = |n: usize| n << 20..(n << 20) + 4096;
        let stays = table.enter(range(3), name(3)).unwrap();
        let changer = {
            let table = table.clone();
            thread::spawn(move || {
                for n in 10..12 {
                    let at = table.enter(range(n), name(n)).unwrap();
                    table.leave(at);
                }
            })
        };
        for _ in 0..2 {
            assert_eq!(table.find(range(3).end - 1), Some(name(3)));
            assert_eq!(table.find(range(3).end), None);
            (10..12).for_each(|n| assert!(table.find(range(n).start).is_none_or(|r| r == name(n))));
        }
        changer.join().unwrap();
        table.leave(stays);
        assert_eq!(table.find(range(3).start), None);
    });
}

/// Memory that is nothing but what is in place.
struct Fake {
    there: std::sync::Mutex<(Vec<bool>, Vec<bool>)>,
    waiters: Waiters,
}

impl Operations for Fake {
    fn fill(&self, first: u32, pages: usize, _source: Source<'_>, _mode: FillMode) -> usize {
        let i = first as usize;
        self.there.lock().unwrap().0[i..i + pages].fill(true);
        self.waiters.wake();
        pages
    }

    fn move_out(&self, first: u32, place: u32, pages: usize) -> Progress {
        let mut there = self.there.lock().unwrap();
        there.0[first as usize..first as usize + pages].fill(false);
        there.1[place as usize..place as usize + pages].fill(true);
        Progress { pages, stopped: None }
    }

    fn wake(&self, _page: u32) {
        self.waiters.wake();
    }

    fn poison(&self, page: u32, why: Option<&str>) {
        panic!("page {page} is lost: {why:?}");
    }

    fn discard(&self, first: u32, pages: usize) -> std::io::Result<()> {
        self.there.lock().unwrap().0[first as usize..first as usize + pages].fill(false);
        Ok(())
    }

    fn is_present(&self, page: u32) -> bool {
        self.there.lock().unwrap().0[page as usize]
    }

    fn is_filled(&self, place: u32) -> bool {
        self.there.lock().unwrap().1[place as usize]
    }

    fn fatal(&self, what: &str) -> ! {
        panic!("{what}")
    }
}

/// As `Shared` has it: the core under its lock, and what is used without.
struct Pager {
    core: Mutex<core::Core<Fake>>,
    fake: Arc<Fake>,
    area: Arc<SwapArea>,
}

const PAGES: u32 = 8;

impl Pager {
    fn new() -> Pager {
        let mut config = Config::new(Policy::Lru);
        config.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(64) });
        (config.total_pages, config.swap.pages) = (64, 64);
        (config.swap.synchronous, config.swap.reclaim_cache, config.readahead.page_cluster) = (true, true, 0);
        let mut engine = Engine::new(config).unwrap();
        let group = engine.add_memcg(MemcgId::ROOT, "/region", u64::MAX, u64::MAX).unwrap();
        engine.add_mapping(MappingKind::Anon, group, 0..u64::from(PAGES)).unwrap();
        let there = (vec![false; PAGES as usize], vec![false; 2 * WINDOW]);
        let fake = Arc::new(Fake { there: std::sync::Mutex::new(there), waiters: Waiters::default() });
        let area = Arc::new(SwapArea::new(Box::new(Faulty::new(|_, _| None))));
        let memory = Memory::new(fake.clone(), area.clone(), PAGES as usize, Places::new(2));
        let core = core::Core::new(engine, memory, group, Limits::default(), 0);
        Pager { core: Mutex::new(core), fake, area }
    }

    /// Handles `SIGBUS`: serves the thread's own fault, or waits for the one that does.
    fn fault_by_signal(&self, page: u32) {
        let mut core = self.core.lock().unwrap();
        core.fault(page, false);
        loop {
            core.memory.free_slots();
            let (reads, _) = core.take_reads();
            if reads.is_empty() {
                break;
            }
            drop(core);
            thread::yield_now();
            let read = |&(page, slot): &(u32, u32)| {
                let mut content = Box::<PageBuf>::default();
                (page, self.area.read(slot, page, &mut content.0).map(|()| Some(content)))
            };
            let contents: Vec<_> = reads.iter().map(read).collect();
            core = self.core.lock().unwrap();
            for (page, content) in contents {
                core.arrive(page, content, false);
            }
        }
        core = self.fake.waiters.wait_while(core, |core| core.is_awaited(page, false));
        drop(core);
    }

    /// A touch of the program: it faults until the page is there.
    fn touch(&self, page: u32) {
        while !self.fake.is_present(page) {
            self.fault_by_signal(page);
        }
    }

    /// Plays the evictor: pages are moved out, written and discarded.
    fn page_out(&self) {
        let mut core = self.core.lock().unwrap();
        core.page_out(0..PAGES);
        let mut moves = Moves::new(core.take_leaving(WINDOW));
        drop(core);
        moves.go_on(&*self.fake, || true);
        thread::yield_now();
        core = self.core.lock().unwrap();
        if !moves.moves.is_empty() {
            core.settle_moves(&moves);
        }
        let claimed = core.claim_writes(WINDOW);
        drop(core);
        let zeros = PageBuf::default();
        let pages: Vec<_> = claimed.iter().map(|c| (c.slot, c.page, &zeros.0)).collect();
        let results = self.area.write_many(&pages);
        thread::yield_now();
        core = self.core.lock().unwrap();
        core.settle_writes(&claimed, &results);
        core.memory.free_slots();
        let places = core.take_discards();
        places.iter().for_each(|&p| self.fake.there.lock().unwrap().1[p as usize] = false);
        core.memory.settle_discards(&places);
        core.validate().unwrap();
    }
}

/// A wake that is lost would leave a thread waiting for ever: of `shuttle`'s waits none ends by
/// itself.
#[test]
fn a_thread_that_faults_goes_on_under_any_schedule() {
    check(|| {
        let pager = Arc::new(Pager::new());
        let threads: Vec<_> = (0..2)
            .map(|t| {
                let pager = pager.clone();
                thread::spawn(move || (0..2).for_each(|n| pager.touch((t + n) % 2)))
            })
            .collect();
        pager.page_out();
        pager.page_out();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let core = pager.core.lock().unwrap();
        core.validate().unwrap();
        assert!((0..PAGES).all(|p| core.memory.state(p) != State::Poisoned));
    });
}
