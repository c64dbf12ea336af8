//! A world with contents: what every frame, file page and swap slot holds, and what the program
//! would expect to read.
//!
//! Contents are version numbers. The world checks that nothing is freed that exists nowhere else,
//! and the driver that every access finds the last version written.

// Each test program uses a part of it.
#![allow(dead_code)]

mod contents;
mod op;

pub use contents::{Contents, Device};
use contents::{Io, Pte};
pub use op::Op;
use refault_mm::{
    Advice, Config, Engine, HintOutcome, Lru, MAX_SWAP_DEVICES, MappingId, MappingKind, MemcgId, MemcgLimits, Outcome,
    PageId, Readahead, RefaultTest, SwapDeviceConfig, Swapoff, SwapoffError, ThrottleReason, Touch, ZswapStep,
};

/// Anonymous pages of a group that is made while things run.
const GROUP_PAGES: u32 = 40;

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

/// Index of the n-th page of a mapping: runs and holes, so that nodes and tables are neither full
/// nor alone.
fn index(n: u64) -> u64 {
    n + n / 10 * 60 + n / 100 * 5000
}

impl Driver {
    pub fn new(cfg: Config, device: Device, files: u32, anons: u32, memory: u64, swap: u64) -> Driver {
        let two_lists = cfg.lru.kind == Lru::TwoList;
        let has_kswapd = (cfg.node.is_some() || cfg.numa.is_some()) && device != Device::Instant;
        let evictions_only = cfg.lru.refault == RefaultTest::ShadowPosition;
        let zswap = cfg.zswap.is_some();
        let top_tier = cfg.numa.as_ref().map_or(Vec::new(), |n| n.top_tier.clone());
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
        world.top_tier = top_tier;
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
        if std::mem::take(&mut self.world.yielded) {
            self.engine.reclaim_directly(&mut self.world);
        }
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
            // An error: this machine has no size.
            Op::Resize(pages) => _ = self.engine.resize_node(u64::from(pages)),
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
                self.engine.zap_range(&mut self.world, PageId(first), nr);
            }
            Op::AdviseAccess(n, advice) => self.engine.advise_access(MappingId(u32::from(n % 2)), advice),
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
            Op::HintMark(n, nr) => {
                let (first, nr) = self.range(n, nr);
                for p in first..first + nr {
                    self.world.pte[p as usize].marked |= self.engine.hint_mark(PageId(p));
                }
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
            let evicted = sum("pgsteal") + self.paged_out - get("pglazyfreed") - self.world.demoted;
            // The group that asks for memory stamps what is evicted; the root sees all.
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

    /// In every outcome: a device that stays is as it was but for what could be read back.
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
        self.engine.zap_mapping(&mut self.world, self.anon);
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
            Io::Write(page, _) | Io::SwapOut(page, ..) if !ok && n.is_multiple_of(2) => {
                self.engine.write_cancelled(&mut self.world, page);
            }
            // Any page of a folio stands for it.
            Io::Read(page, nr) | Io::SwapIn(page, _, nr) => {
                self.engine.read_done(&mut self.world, PageId(page.0 + u32::from(n) % nr), ok);
            }
            Io::Write(page, contents) | Io::SwapOut(page, _, contents) => {
                let nr = contents.len() as u32;
                self.engine.write_done(&mut self.world, PageId(page.0 + u32::from(n) % nr), ok);
            }
            Io::Discard(first, _) => self.engine.discard_done(&mut self.world, first),
            Io::Migrate(page, nr) => {
                self.engine.migrate_done(&mut self.world, PageId(page.0 + u32::from(n) % nr), ok);
            }
        }
    }

    fn access(&mut self, page: PageId, touch: Touch) -> Result<(), String> {
        let touch = match (touch, self.world.is_anon(page)) {
            (Touch::Read | Touch::ReadContinued, true) => Touch::MapRead,
            (Touch::Write, true) => Touch::MapWrite,
            (touch, _) => touch,
        };
        if std::mem::take(&mut self.world.pte[page.0 as usize].marked)
            && matches!(touch, Touch::MapRead | Touch::MapWrite)
        {
            self.hint_fault(page)?;
        }
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

    /// Checks that what the engine says of it is so.
    fn hint_fault(&mut self, page: PageId) -> Result<(), String> {
        let before = self.engine.page_node(page);
        let hint = self.engine.hint_fault(&mut self.world, page);
        let (after, pte) = (self.engine.page_node(page), self.world.pte[page.0 as usize]);
        let moved = before != after;
        match hint {
            HintOutcome::Stay if !moved && pte.mapped => Ok(()),
            HintOutcome::Promoted if moved && pte.mapped => Ok(()),
            HintOutcome::Migrating if !moved && !pte.mapped && self.world.is_migrating(page) => Ok(()),
            _ => Err(format!("{page:?}: {hint:?} from {before:?}, now {after:?}, {pte:?}")),
        }
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
