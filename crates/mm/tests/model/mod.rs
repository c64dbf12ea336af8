//! A world with contents: what every frame, file page and swap slot holds, and what the program would expect to read.
//!
//! Contents are version numbers. The world checks that nothing is freed that exists nowhere else, and the driver that every access
//! finds the last version written.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use refault_mm::{
    Ack, Advice, Config, Content, Effect, Engine, HugeAdvice, Lru, MAX_SWAP_DEVICES, MappingId, MappingKind, MemcgId,
    MemcgLimits, Outcome, PageId, Readahead, RefaultTest, SwapDeviceConfig, SwapSlot, Swapoff, SwapoffError,
    ThrottleReason, Touch, World, ZswapStep,
};

/// Anonymous pages of a group that is made while things run.
const GROUP_PAGES: u32 = 40;

/// I/O that is under way.
#[derive(Clone, Debug)]
enum Io {
    Read(PageId),
    /// So many pages, from consecutive slots.
    SwapIn(PageId, SwapSlot, u32),
    Write(PageId, u64),
    /// The contents of consecutive pages.
    SwapOut(PageId, SwapSlot, Vec<u64>),
    Discard(SwapSlot, u32),
}

/// The pages of a folio.
fn pages(first: PageId, order: u8) -> impl Iterator<Item = PageId> {
    (first.0..first.0 + (1 << order)).map(PageId)
}

/// How devices answer, by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// At once.
    Instant,
    /// Later.
    Slow,
    /// At once, later, or with an error.
    Flaky,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pte {
    mapped: bool,
    writable: bool,
    young: bool,
    dirty: bool,
}

/// Frames, files, swap and page tables.
#[derive(Debug)]
pub struct Contents {
    device: Device,
    turn: u64,
    first_anon: u32,
    frame: BTreeMap<PageId, u64>,
    file: Vec<u64>,
    swap: BTreeMap<SwapSlot, u64>,
    /// Compressed pages in memory.
    zswap: BTreeMap<SwapSlot, u64>,
    /// Pages of zeros that were swapped out, with their version.
    zeros: BTreeMap<PageId, u64>,
    /// What a version of a page holds; none: nothing can be compressed.
    pub kind: Option<fn(PageId, u64) -> Content>,
    /// Pages in the order in which zswap took them, and in which they were written to swap.
    pub stored: Vec<PageId>,
    pub swapped_out: Vec<PageId>,
    /// The worker of zswap runs when the test says so, even where the device answers at once.
    pub zswap_by_hand: bool,
    /// A slot in use may hold nothing: its page is zeros, or zswap had it or must not write it.
    pub may_be_empty: bool,
    /// Every write to swap fails.
    pub swap_fails: bool,
    /// Writes to swap that were tried.
    pub swap_tries: u64,
    /// The slot that last took the content of an anonymous page.
    slot_of: BTreeMap<PageId, SwapSlot>,
    pte: Vec<Pte>,
    pending: Vec<Io>,
    may_drop: BTreeSet<PageId>,
    dropped: BTreeSet<PageId>,
    pub violations: Vec<String>,
    pub flusher_woken: bool,
}

impl Contents {
    fn new(device: Device, files: u32, pages: usize) -> Contents {
        Contents {
            device,
            turn: 0,
            first_anon: files,
            frame: BTreeMap::new(),
            file: vec![0; pages],
            swap: BTreeMap::new(),
            zswap: BTreeMap::new(),
            zeros: BTreeMap::new(),
            kind: None,
            stored: Vec::new(),
            swapped_out: Vec::new(),
            zswap_by_hand: false,
            may_be_empty: false,
            swap_fails: false,
            swap_tries: 0,
            slot_of: BTreeMap::new(),
            pte: vec![Pte::default(); pages],
            pending: Vec::new(),
            may_drop: BTreeSet::new(),
            dropped: BTreeSet::new(),
            violations: Vec::new(),
            flusher_woken: false,
        }
    }

    /// Zeros, pages of one word, and pages that are more or less compressible.
    pub fn mixed(page: PageId, version: u64) -> Content {
        if version == 0 {
            return Content::Zero;
        }
        let h = (u64::from(page.0) << 32 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match h % 10 {
            0 | 1 => Content::Zero,
            2 => Content::SameFilled,
            3 => Content::Compressed { bytes: 4096 + (h / 10 % 64) as u32 },
            _ => Content::Compressed { bytes: (h / 10 % 4000) as u32 + 30 },
        }
    }

    fn zswap_store(&mut self, page: PageId, slot: SwapSlot) -> Ack {
        self.turn += 1;
        if self.device == Device::Flaky && self.turn.is_multiple_of(5) {
            return Ack::Failed;
        }
        if self.zswap.insert(slot, self.frame[&page]).is_some() {
            self.violations.push(format!("{slot:?} is stored over another page"));
        }
        self.zeros.remove(&page);
        self.slot_of.insert(page, slot);
        self.stored.push(page);
        Ack::Done
    }

    fn swap_out(&mut self, page: PageId, slot: SwapSlot, order: u8) -> Ack {
        let mut contents = Vec::new();
        for p in pages(page, order) {
            self.swapped_out.push(p);
            // Zeros that are written are on the device.
            self.zeros.remove(&p);
            contents.push(self.frame[&p]);
        }
        self.start(Io::SwapOut(page, slot, contents))
    }

    /// Fills a page with what was kept.
    fn fill(&mut self, page: PageId, version: Option<u64>) {
        match version {
            Some(v) => _ = self.frame.insert(page, v),
            None => self.violations.push(format!("{page:?} is filled with what was not kept")),
        }
    }

    fn is_anon(&self, page: PageId) -> bool {
        page.0 >= self.first_anon
    }

    fn start(&mut self, io: Io) -> Ack {
        self.turn += 1;
        let ack = match (self.device, self.turn % 7) {
            (Device::Instant, _) | (Device::Flaky, 1 | 2) => Ack::Done,
            (Device::Flaky, 3) => Ack::Failed,
            _ => Ack::Pending,
        };
        match ack {
            Ack::Done => self.finish(io),
            Ack::Pending => self.pending.push(io),
            Ack::Failed => {}
        }
        ack
    }

    fn finish(&mut self, io: Io) {
        match io {
            Io::Read(page) => _ = self.frame.insert(page, self.file[page.0 as usize]),
            Io::SwapIn(page, slot, nr) => {
                for (page, slot) in (page.0..page.0 + nr).map(PageId).zip((slot.0..).map(SwapSlot)) {
                    match self.swap.get(&slot) {
                        Some(&v) => _ = self.frame.insert(page, v),
                        None => self.violations.push(format!("{page:?}: {slot:?} holds nothing")),
                    }
                }
            }
            Io::Write(page, version) => self.file[page.0 as usize] = version,
            Io::SwapOut(page, slot, versions) => {
                for (i, version) in (0..).zip(versions) {
                    self.swap.insert(SwapSlot(slot.0 + i), version);
                    self.slot_of.insert(PageId(page.0 + i), SwapSlot(slot.0 + i));
                }
            }
            Io::Discard(first, pages) => {
                if let Some((slot, _)) = self.swap.range(first..first.nth(pages)).next() {
                    self.violations.push(format!("{slot:?} is discarded and holds a page"));
                }
            }
        }
    }

    /// A frame may go only if its content is somewhere else.
    fn free(&mut self, page: PageId) {
        let Some(version) = self.frame.remove(&page) else { return };
        let kept = if self.is_anon(page) {
            let slot = self.slot_of.get(&page);
            let stored = || slot.and_then(|s| self.zswap.get(s).or_else(|| self.swap.get(s)));
            self.zeros.get(&page).or_else(stored).copied()
        } else {
            Some(self.file[page.0 as usize])
        };
        if kept == Some(version) {
            return;
        }
        if self.is_anon(page) && self.may_drop.contains(&page) {
            self.dropped.insert(page);
        } else {
            self.violations.push(format!("{page:?}: version {version} freed, kept is {kept:?}"));
        }
    }
}

impl World for Contents {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Read { page, .. } => return self.start(Io::Read(page)),
            Effect::SwapIn { page, slot, order } => return self.start(Io::SwapIn(page, slot, 1 << order)),
            Effect::Write { page, .. } => return self.start(Io::Write(page, self.frame[&page])),
            Effect::SwapOut { .. } if self.swap_fails => {
                self.swap_tries += 1;
                assert!(self.swap_tries < 1_000_000, "it tries to write for ever");
                return Ack::Failed;
            }
            Effect::SwapOut { page, slot, order } => return self.swap_out(page, slot, order),
            Effect::Map { page, young, writable } => {
                // A fault hands out zeroed frames, for every page of a large folio.
                if self.is_anon(page) && !self.frame.contains_key(&page) {
                    self.frame.insert(page, 0);
                    // Zeros in swap are known by page only, so that a page may have been dropped whose slot was given up before.
                    if self.may_drop.contains(&page) {
                        self.dropped.insert(page);
                    }
                }
                let dirty = self.pte[page.0 as usize].dirty;
                self.pte[page.0 as usize] = Pte { mapped: true, writable, young, dirty };
            }
            Effect::Unmap { page } => {
                let dirty = self.pte[page.0 as usize].dirty;
                self.pte[page.0 as usize] = Pte { dirty, ..Pte::default() };
            }
            Effect::WriteProtect { page } => {
                let pte = &mut self.pte[page.0 as usize];
                (pte.writable, pte.dirty) = (false, false);
            }
            Effect::Free { page, order } => pages(page, order).for_each(|p| self.free(p)),
            Effect::FreeSlot { slot } => {
                // Whoever gets it next is not to be taken for this page.
                self.slot_of.retain(|_, s| *s != slot);
                if self.zswap.contains_key(&slot) {
                    self.violations.push(format!("{slot:?} is free and still in zswap"));
                }
                if self.swap.remove(&slot).is_none() && self.device == Device::Instant && !self.may_be_empty {
                    self.violations.push(format!("{slot:?} freed and empty"));
                }
            }
            Effect::WakeFlusher => {
                self.flusher_woken = true;
                return if self.device == Device::Instant { Ack::Done } else { Ack::Pending };
            }
            Effect::ZeroFill { page, order } => {
                pages(page, order).for_each(|p| self.fill(p, self.zeros.get(&p).copied()));
            }
            Effect::ZswapStore { page, slot } => return self.zswap_store(page, slot),
            Effect::ZswapLoad { page, slot } => self.fill(page, self.zswap.get(&slot).copied()),
            Effect::ZswapDrop { slot } => {
                if self.zswap.remove(&slot).is_none() {
                    self.violations.push(format!("{slot:?} is dropped and not in zswap"));
                }
            }
            Effect::WakeZswap => {
                let by_itself = self.device == Device::Instant && !self.zswap_by_hand;
                return if by_itself { Ack::Done } else { Ack::Pending };
            }
            // As if there were someone who waits, and a kswapd that gets the processor now and then.
            Effect::Throttle { .. } | Effect::WakeKswapd if self.device != Device::Instant => return Ack::Pending,
            Effect::Discard { first, pages } => return self.start(Io::Discard(first, pages)),
            Effect::WakeKswapd | Effect::Throttle { .. } | Effect::Unthrottle { .. } | Effect::Oom { .. } => {}
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.pte[page.0 as usize].young)
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.pte[page.0 as usize].dirty)
    }

    fn content(&mut self, page: PageId) -> Content {
        let Some(kind) = self.kind else { return Content::Compressed { bytes: 4096 } };
        let content = kind(page, self.frame[&page]);
        if content == Content::Zero {
            self.zeros.insert(page, self.frame[&page]);
        }
        content
    }
}

/// What a test does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Access(u32, Touch),
    /// The n-th pending I/O ends, well or not.
    Complete(u8, bool),
    Advise(u32, Advice),
    /// The same for so many pages.
    AdviseRange(u32, u16, Advice),
    PageOut(u32, u16),
    DropRange(u32, u16),
    Huge(HugeAdvice),
    Drain,
    Flush,
    Cpu(u8),
    Wait(u32),
    /// A read by descriptor that reads ahead.
    ReadFile(u32, u8),
    /// So many steps of kswapd.
    Kswapd(u8),
    /// A throttled task waited long enough.
    ThrottleEnded(u8),
    /// The driver takes so many pages of the node.
    External(u8),
    /// The owner of the anonymous memory is gone; the next one starts from nothing.
    Exit,
    /// A group of its own for more anonymous memory, below one of those that are there.
    NewGroup(u8),
    /// A group is removed; its pages stay in use.
    RemoveGroup(u8),
    /// What the n-th mapping has moves to a group.
    Move(u8, u8),
    /// A limit of a group is set: which, and to how much.
    Limit(u8, u8, u16),
    /// `memory.reclaim`.
    Reclaim(u8, u8),
    /// Through the debug interface.
    Age(bool),
    /// A swap device of so many pages is added.
    Swapon(u8),
    /// The n-th swap device is taken away, as far as that goes at once.
    Swapoff(u8),
    Evict(u8),
    /// So many steps of the worker of zswap.
    Zswap(u8),
    /// `zswap.max` and `zswap.writeback` of the group.
    ZswapLimit(u64, bool),
}

/// An engine, its world, and what a program would expect to read.
pub struct Driver {
    pub engine: Engine,
    pub world: Contents,
    pub group: MemcgId,
    two_lists: bool,
    /// The non-resident clock advances on nothing else.
    evictions_only: bool,
    expected: Vec<u64>,
    pages: u32,
    now_ns: u64,
    readahead: Readahead,
    anon: MappingId,
    /// Where its pages end.
    anon_end: u32,
    /// Groups that were made, in this order; the first is `group`.
    groups: Vec<MemcgId>,
    /// Pages freed by advice, which are not counted as stolen.
    paged_out: u64,
    has_kswapd: bool,
    /// Largest and smallest seq seen, from `lru_gen`.
    seqs: (u64, u64),
}

/// Index of the n-th page of a mapping: runs and holes, so that nodes and tables are neither full nor alone.
fn index(n: u64) -> u64 {
    n + n / 10 * 60 + n / 100 * 5000
}

impl Driver {
    pub fn new(cfg: Config, device: Device, files: u32, anons: u32, memory: u64, swap: u64) -> Driver {
        let two_lists = cfg.lru == Lru::TwoList;
        let has_kswapd = cfg.node.is_some() && device != Device::Instant;
        let evictions_only = cfg.refault == RefaultTest::ShadowPosition;
        let zswap = cfg.zswap.is_some();
        // Large folios want pages next to each other, not always from an aligned one on.
        let (dense, offset) = (cfg.thp != Default::default(), cfg.seed % 4);
        let mut engine = Engine::new(cfg).expect("a possible configuration");
        let group = engine.add_memcg(MemcgId::ROOT, "/g", memory, swap).expect("a group");
        engine.add_mapping(MappingKind::File, group, (0..u64::from(files)).map(index)).expect("a file");
        let anon_index = |n| if dense { n + offset } else { index(n) };
        let (anon, _) =
            engine.add_mapping(MappingKind::Anon, group, (0..u64::from(anons)).map(anon_index)).expect("a region");
        let pages = files + anons;
        let mut world = Contents::new(device, files, pages as usize);
        world.may_be_empty = zswap;
        Driver {
            engine,
            world,
            group,
            two_lists,
            evictions_only,
            expected: vec![0; pages as usize],
            pages,
            now_ns: 0,
            readahead: Readahead::default(),
            anon,
            anon_end: pages,
            groups: vec![group],
            paged_out: 0,
            has_kswapd,
            seqs: (0, 0),
        }
    }

    /// One step, and everything is as it must be.
    pub fn step(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Access(n, touch) => {
                self.access(PageId(n % self.pages), touch)?;
                if self.engine.is_over_high() {
                    self.engine.return_to_user(&mut self.world);
                }
            }
            Op::ReadFile(n, asked) => self.read_file(PageId(n % self.world.first_anon), asked)?,
            Op::Kswapd(steps) => _ = self.engine.run_kswapd(&mut self.world, usize::from(steps)),
            Op::ThrottleEnded(n) => {
                let reason = ThrottleReason::ALL[usize::from(n) % ThrottleReason::ALL.len()];
                self.engine.throttle_ended(reason);
            }
            Op::External(pages) => _ = self.engine.set_external_pages(u64::from(pages)),
            Op::Exit => self.exit(),
            Op::Complete(n, ok) => self.complete(n, ok),
            Op::Advise(n, advice) => {
                self.advised(PageId(n % self.pages), advice);
                self.engine.advise(PageId(n % self.pages), advice);
            }
            Op::AdviseRange(n, nr, advice) => {
                let (first, nr) = self.range(n, nr);
                (first..first + nr).for_each(|p| self.advised(PageId(p), advice));
                self.engine.advise_range(PageId(first), nr, advice);
            }
            Op::PageOut(n, nr) => {
                let (first, nr) = self.range(n, nr);
                self.paged_out += self.engine.page_out(&mut self.world, PageId(first), nr);
            }
            Op::DropRange(n, nr) => {
                let (first, nr) = self.range(n, nr);
                if self.world.is_anon(PageId(first)) {
                    self.forget(first..first + nr);
                }
                self.engine.drop_range(&mut self.world, PageId(first), nr);
            }
            Op::Huge(advice) => self.engine.advise_huge(self.anon, advice),
            Op::Drain => self.engine.drain_all(),
            Op::Flush => self.engine.flush(&mut self.world),
            Op::Cpu(n) => self.engine.set_cpu(usize::from(n % 2)),
            Op::Wait(ms) => {
                self.now_ns += u64::from(ms) * 1_000_000;
                self.engine.set_now_ns(self.now_ns);
            }
            Op::NewGroup(parent) => self.new_group(parent),
            Op::RemoveGroup(n) => {
                // Not the group whose generations are watched.
                if let Some(&id) = self.groups.get(1 + usize::from(n) % self.groups.len()) {
                    let _ = self.engine.remove_memcg(id);
                }
            }
            Op::Move(mapping, to) => {
                let to = self.groups[usize::from(to) % self.groups.len()];
                let mapping = MappingId(u32::from(mapping) % (1 + self.groups.len() as u32));
                let _ = self.engine.move_mapping(&mut self.world, mapping, to);
            }
            Op::Limit(n, which, pages) => self.limit(n, which, u64::from(pages)),
            Op::Reclaim(n, pages) => {
                let id = self.groups[usize::from(n) % self.groups.len()];
                let _ = self.engine.reclaim(&mut self.world, id, u64::from(pages), None);
            }
            Op::Age(force) => self.age(force),
            Op::Swapon(n) => self.swapon(n)?,
            Op::Swapoff(n) => self.swapoff(n % 4)?,
            Op::Evict(n) => {
                let command = format!("- {} 0 {} 60 {n}", self.group.0, n % 8);
                let _ = self.engine.lru_gen_command(&mut self.world, &command);
            }
            Op::Zswap(steps) => {
                for _ in 0..steps {
                    if self.engine.zswap_step(&mut self.world) == ZswapStep::Sleep {
                        break;
                    }
                }
            }
            Op::ZswapLimit(max, writeback) => self.limit_zswap(max, writeback),
        }
        self.after_call();
        self.engine.validate()?;
        self.counters_agree()?;
        match self.world.violations.first() {
            None => Ok(()),
            Some(v) => Err(v.clone()),
        }
    }

    /// Sets `zswap.max` and `zswap.writeback` of the group.
    pub fn limit_zswap(&mut self, max: u64, writeback: bool) {
        let limits = MemcgLimits { zswap_max: max, zswap_writeback: writeback, ..self.engine.memcg_limits(self.group) };
        self.engine.set_memcg_limits(&mut self.world, self.group, &limits).expect("a group");
    }

    fn after_call(&mut self) {
        if std::mem::take(&mut self.world.flusher_woken) && self.world.device != Device::Instant {
            self.engine.flush(&mut self.world);
        }
    }

    /// I3.1, I4.2, I3.5 and I5.1: what the counters must say of each other.
    fn counters_agree(&mut self) -> Result<(), String> {
        let stats = self.engine.vmstat();
        let get = |name: &str| stats.iter().find(|(n, _)| *n == name).expect("a counter").1;
        let sum = |name: &str| get(&format!("{name}_anon")) + get(&format!("{name}_file"));
        if self.two_lists && sum("workingset_activate") > sum("workingset_refault") {
            return Err("more activated than refaulted".into());
        }
        if self.evictions_only {
            let evicted = sum("pgsteal") + self.paged_out - get("pglazyfreed");
            // Whoever asks for memory stamps what is evicted; the root sees all.
            let age =
                self.engine.memcg_gauges(MemcgId::ROOT).iter().find(|g| g.name == "nonresident_age").map(|g| g.value);
            if age != Some(evicted) {
                return Err(format!("the clock is {age:?} after {evicted} evictions"));
            }
        }
        let text = self.own_lru_gen();
        let seqs: Vec<u64> = text.lines().filter_map(|l| l.split_whitespace().next()?.parse().ok()).collect();
        let now = (*seqs.last().expect("a generation"), seqs[seqs.len() - self.generations(&text)]);
        if now.0 < self.seqs.0 || now.1 < self.seqs.1 {
            return Err(format!("max_seq and min_seq went from {:?} to {now:?}", self.seqs));
        }
        self.seqs = now;
        Ok(())
    }

    /// The part of the group in the text of `lru_gen`.
    fn own_lru_gen(&self) -> String {
        let text = self.engine.lru_gen_text();
        let header = format!("memcg {:5} ", self.group.0);
        let own = text.split_inclusive('\n').skip_while(|l| !l.starts_with(&header));
        own.enumerate().take_while(|(i, l)| *i == 0 || !l.starts_with("memcg")).map(|(_, l)| l).collect()
    }

    /// More anonymous memory, in a group of its own.
    fn new_group(&mut self, parent: u8) {
        if self.groups.len() > 6 {
            return;
        }
        let parent = self.groups[usize::from(parent) % self.groups.len()];
        let Ok(id) = self.engine.add_memcg(parent, &format!("/{}", self.groups.len()), u64::MAX, u64::MAX) else {
            return;
        };
        self.engine.add_mapping(MappingKind::Anon, id, (0..u64::from(GROUP_PAGES)).map(index)).expect("a region");
        self.groups.push(id);
        self.pages += GROUP_PAGES;
        self.expected.resize(self.pages as usize, 0);
        self.world.file.resize(self.pages as usize, 0);
        self.world.pte.resize(self.pages as usize, Pte::default());
    }

    fn limit(&mut self, n: u8, which: u8, pages: u64) {
        let id = self.groups[usize::from(n) % self.groups.len()];
        let mut l = self.engine.memcg_limits(id);
        match which % 6 {
            0 => l.min = pages,
            1 => l.low = pages,
            2 => l.high = pages.max(8),
            3 => l.max = pages.max(8),
            4 => l.swap_max = pages,
            _ => l.swappiness = Some(pages as u32 % 201),
        }
        let _ = self.engine.set_memcg_limits(&mut self.world, id, &l);
    }

    /// Generations of the group: the lines after the last header.
    fn generations(&self, text: &str) -> usize {
        text.lines().rev().take_while(|l| !l.contains("node")).count()
    }

    fn age(&mut self, force: bool) {
        // Only the youngest seq is accepted: try the ones that are possible in a short test.
        for seq in 3..40 {
            let command = format!("+ {} 0 {seq} 60 {}", self.group.0, u8::from(force));
            if self.engine.lru_gen_command(&mut self.world, &command).is_err() {
                return;
            }
        }
    }

    fn swapon(&mut self, n: u8) -> Result<(), String> {
        let device = SwapDeviceConfig {
            pages: 2 + u64::from(n) * 8,
            synchronous: n.is_multiple_of(2),
            discard: n.is_multiple_of(3),
            ..SwapDeviceConfig::new(2)
        };
        let devices = self.engine.swap_devices().len();
        match self.engine.swapon(device) {
            Ok(_) if devices < MAX_SWAP_DEVICES => Ok(()),
            Err(_) if devices == MAX_SWAP_DEVICES => Ok(()),
            other => Err(format!("{other:?} with {devices} devices")),
        }
    }

    /// Whatever becomes of it: if the device stays, it is as it was but for what could be read back.
    fn swapoff(&mut self, n: u8) -> Result<(), String> {
        let find = |e: &Engine| e.swap_devices().into_iter().find(|d| d.number == n);
        let before = find(&self.engine);
        let result = self.engine.swapoff(&mut self.world, n);
        match (result, before, find(&self.engine)) {
            (Swapoff::Done, Some(_), None) => Ok(()),
            (Swapoff::Failed(SwapoffError::NoDevice), None, None) => Ok(()),
            (Swapoff::Failed(_), Some(old), Some(new)) if new.used_pages <= old.used_pages && !new.removing => Ok(()),
            (Swapoff::Waiting, Some(_), Some(new)) if new.removing => {
                match self.world.pending.is_empty() && !self.has_kswapd {
                    true => Err("swapoff waits for nothing".into()),
                    false => Ok(()),
                }
            }
            (result, before, after) => Err(format!("swapoff says {result:?}, before {before:?}, after {after:?}")),
        }
    }

    /// So many pages of the mapping of the n-th page, from that on.
    fn range(&self, n: u32, nr: u16) -> (u32, u32) {
        let first = n % self.pages;
        let end = match first {
            f if f < self.world.first_anon => self.world.first_anon,
            f if f < self.anon_end => self.anon_end,
            f => self.anon_end + ((f - self.anon_end) / GROUP_PAGES + 1) * GROUP_PAGES,
        };
        (first, u32::from(nr).min(end - first))
    }

    /// Anonymous pages are as if they had never been touched.
    fn forget(&mut self, pages: std::ops::Range<u32>) {
        self.world.may_drop.extend(pages.clone().map(PageId));
        pages.for_each(|p| self.expected[p as usize] = 0);
    }

    fn advised(&mut self, page: PageId, advice: Advice) {
        if advice == Advice::Free && self.world.is_anon(page) && self.world.pte[page.0 as usize].mapped {
            // As the kernel does: the content counts as clean from here on.
            self.world.pte[page.0 as usize].dirty = false;
            self.world.may_drop.insert(page);
        }
    }

    fn exit(&mut self) {
        self.forget(self.world.first_anon..self.anon_end);
        self.engine.drop_mapping(&mut self.world, self.anon);
        let left = (self.world.first_anon..self.anon_end).any(|p| self.engine.is_resident(PageId(p)));
        if self.world.pending.is_empty() && left {
            self.world.violations.push("pages outlive their owner".into());
        }
    }

    fn read_file(&mut self, page: PageId, asked: u8) -> Result<(), String> {
        let mut ra = self.readahead;
        let outcome = self.engine.read_file(&mut self.world, page, u32::from(asked), Touch::Read, &mut ra);
        self.readahead = ra;
        match outcome {
            Outcome::Waiting | Outcome::Throttled | Outcome::Failed | Outcome::Oom(_) => Ok(()),
            _ => self.touch(page, Touch::Read, outcome),
        }
    }

    fn complete(&mut self, n: u8, ok: bool) {
        if self.world.pending.is_empty() {
            return;
        }
        let io = self.world.pending.remove(usize::from(n) % self.world.pending.len());
        if ok {
            self.world.finish(io.clone());
        }
        match io {
            Io::Read(page) => self.engine.read_done(&mut self.world, page, ok),
            Io::Write(page, _) | Io::SwapOut(page, ..) if !ok && n.is_multiple_of(2) => {
                self.engine.write_cancelled(&mut self.world, page);
            }
            Io::Write(page, _) => self.engine.write_done(&mut self.world, page, ok),
            // Any page of a folio stands for it.
            Io::SwapIn(page, _, nr) => {
                self.engine.read_done(&mut self.world, PageId(page.0 + u32::from(n) % nr), ok);
            }
            Io::SwapOut(page, _, contents) => {
                let nr = contents.len() as u32;
                self.engine.write_done(&mut self.world, PageId(page.0 + u32::from(n) % nr), ok);
            }
            Io::Discard(first, _) => self.engine.discard_done(&mut self.world, first),
        }
    }

    fn access(&mut self, page: PageId, touch: Touch) -> Result<(), String> {
        let touch = match (touch, self.world.is_anon(page)) {
            (Touch::Read | Touch::ReadOn, true) => Touch::MapRead,
            (Touch::Write, true) => Touch::MapWrite,
            (touch, _) => touch,
        };
        let pte = self.world.pte[page.0 as usize];
        let mapped = match touch {
            Touch::MapRead => pte.mapped,
            Touch::MapWrite => pte.mapped && pte.writable,
            _ => false,
        };
        let outcome = if mapped { Outcome::Hit } else { self.engine.access(&mut self.world, page, touch) };
        match outcome {
            Outcome::Waiting | Outcome::Throttled | Outcome::Failed | Outcome::Oom(_) => return Ok(()),
            Outcome::Fresh if touch != Touch::Write => _ = self.world.frame.insert(page, 0),
            Outcome::Fresh | Outcome::Hit | Outcome::Minor | Outcome::Major => {}
        }
        self.touch(page, touch, outcome)
    }

    /// The program's side of an access that went through.
    fn touch(&mut self, page: PageId, touch: Touch, outcome: Outcome) -> Result<(), String> {
        let i = page.0 as usize;
        if self.world.dropped.remove(&page) {
            self.expected[i] = 0;
        }
        let whole_page = touch == Touch::Write && outcome == Outcome::Fresh;
        let found = self.world.frame.get(&page).copied();
        if !whole_page && found != Some(self.expected[i]) {
            return Err(format!("{page:?}: {touch:?} ({outcome:?}) finds {found:?}, expected {}", self.expected[i]));
        }
        if matches!(touch, Touch::MapRead | Touch::MapWrite) {
            self.world.pte[i].young = true;
        }
        if matches!(touch, Touch::Write | Touch::MapWrite) {
            self.world.pte[i].dirty |= touch == Touch::MapWrite;
            self.world.may_drop.remove(&page);
            self.expected[i] += 1;
            self.world.frame.insert(page, self.expected[i]);
        }
        Ok(())
    }
}
