//! The test of the swap allocator on the engine, as `data/swap_slots/slots.c` runs it on a kernel.

use std::fmt::Write as _;

use refault_mm::{
    Ack, Config, Effect, Engine, HugeAdvice, Kernel, MappingKind, MemcgId, Outcome, PageId, Policy, SizeCounter,
    SwapDeviceConfig, Touch,
};
use refault_testing::AtOnce;

/// Pages of 64 KiB.
const BLOCK: u64 = 16;
/// Pages of a MiB.
const MIB: u64 = 256;

/// A case of the recordings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Size of the device.
    pub device_mib: u64,
    /// Sizes of folios that are allowed, as in the file's name.
    pub sizes: String,
    /// Letters of `a` and `s`, or `-`.
    pub mode: String,
}

/// The swap device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// It answers at once.
    Zram,
    /// Writes end when all were begun; what was swapped out is in the swap cache until somebody
    /// reclaims, which nobody does.
    Disk,
}

/// An area: its first page, its pages.
#[derive(Clone, Copy)]
struct Area {
    first: PageId,
    pages: u64,
}

impl Area {
    fn page(self, n: u64) -> PageId {
        PageId(self.first.0 + n as u32)
    }
}

/// Whether an effect is a request to the swap device.
fn is_io(effect: Effect) -> bool {
    matches!(effect, Effect::SwapOut { .. } | Effect::SwapIn { .. })
}

/// The program, with its memory.
struct Program {
    engine: Engine,
    world: AtOnce,
    state: u64,
}

impl Program {
    fn new(case: &Case, kernel: Kernel, device: Device, seed: u64) -> Program {
        let mut cfg = Config::new(Policy::Lru);
        kernel.apply(&mut cfg);
        let synchronous = device == Device::Zram;
        cfg.swap.devices = vec![SwapDeviceConfig { synchronous, ..SwapDeviceConfig::new(case.device_mib * MIB) }];
        cfg.swap.policy.slot_cache = kernel.has_slot_caches();
        for size in case.sizes.split(',') {
            cfg.thp.set(&format!("{size}k=madvise")).expect("a size");
        }
        let world = match device {
            Device::Zram => AtOnce::default(),
            Device::Disk => AtOnce::answering(|_, effect| is_io(effect).then_some(Ack::Pending)),
        };
        Program { engine: Engine::new(cfg).expect("an engine"), world, state: seed }
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    fn area(&mut self, mib: u64, advice: HugeAdvice) -> Area {
        let pages = mib * MIB;
        if pages == 0 {
            return Area { first: PageId(0), pages };
        }
        let added = self.engine.add_mapping(MappingKind::Anon, MemcgId::ROOT, 0..pages);
        let (mapping, first) = added.expect("a mapping");
        self.engine.advise_huge(mapping, advice);
        Area { first, pages }
    }

    fn write(&mut self, area: Area, from: u64, pages: u64) {
        for n in from..from + pages {
            let page = area.page(n);
            if self.world.mapped(page).is_none() {
                let mut outcome = self.engine.access(&mut self.world, page, Touch::MapWrite);
                while outcome == Outcome::Waiting && self.end_io() {
                    outcome = self.engine.access(&mut self.world, page, Touch::MapWrite);
                }
                assert!(!matches!(outcome, Outcome::Waiting | Outcome::Oom(_)), "{outcome:?}");
            }
            self.world.set_young(page);
            self.world.set_dirty(page);
        }
    }

    fn page_out(&mut self, area: Area) {
        if area.pages > 0 {
            self.engine.page_out(&mut self.world, area.first, area.pages as u32);
            self.end_io();
        }
    }

    /// Requests to the disk end. False: there were none.
    fn end_io(&mut self) -> bool {
        let requests = std::mem::take(&mut self.world.noted);
        for &request in &requests {
            match request {
                Effect::SwapOut { page, .. } => self.engine.write_done(&mut self.world, page, true),
                Effect::SwapIn { page, .. } => self.engine.read_done(&mut self.world, page, true),
                _ => {}
            }
        }
        !requests.is_empty()
    }

    fn counters(&self) -> Vec<[u64; 2]> {
        let counters = [SizeCounter::Swpout, SizeCounter::SwpoutFallback];
        (2..=9).map(|order| counters.map(|c| self.engine.size_stats().get(order, c))).collect()
    }

    fn swapped_in(&self) -> u64 {
        let stats = self.engine.memcg_stats(MemcgId::ROOT);
        stats.iter().find(|(name, _)| *name == "pswpin").map_or(0, |(_, n)| n)
    }
}

/// The lines of a run, as the program prints them.
pub fn run(case: &Case, kernel: Kernel, device: Device, iterations: u64, seed: u64) -> Vec<String> {
    let mut p = Program::new(case, kernel, device, seed);
    let (is_aligned, has_small) = (case.mode.contains('a'), case.mode.contains('s'));
    let large = p.area(60, HugeAdvice::Huge);
    let small = p.area(if has_small { 4 } else { 0 }, HugeAdvice::NoHuge);
    let unit = if is_aligned { BLOCK } else { 1 };
    let (mut before, mut read, mut lines) = (p.counters(), 0, Vec::new());
    for at in 0..=iterations {
        if at == 0 {
            for area in [large, small] {
                p.write(area, 0, area.pages);
                p.page_out(area);
            }
        } else {
            iteration(&mut p, large, small, unit);
        }
        let (now, now_read) = (p.counters(), p.swapped_in());
        let mut line = format!("{at} {} {}", p.engine.swap_used_pages(), now_read - read);
        for (i, (now, before)) in now.iter().zip(&before).enumerate() {
            let [out, fallback] = std::array::from_fn(|c| now[c] - before[c]);
            if out + fallback > 0 {
                write!(line, " {}:{out}:{fallback}", 16 << i).expect("a text");
            }
        }
        lines.push(line);
        (before, read) = (now, now_read);
    }
    lines
}

fn iteration(p: &mut Program, large: Area, small: Area, unit: u64) {
    for _ in 0..16 * MIB / unit {
        let n = p.draw(large.pages / unit) * unit;
        p.write(large, n, unit);
    }
    for _ in 0..16 * MIB / BLOCK {
        let n = p.draw(large.pages / BLOCK) * BLOCK;
        p.engine.zap_range(&mut p.world, large.page(n), BLOCK as u32);
        p.write(large, n, BLOCK);
    }
    for _ in 0..if small.pages > 0 { MIB } else { 0 } {
        let n = p.draw(small.pages);
        p.write(small, n, 1);
    }
    p.page_out(large);
    p.page_out(small);
}
