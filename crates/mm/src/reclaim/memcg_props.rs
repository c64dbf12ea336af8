//! Random trees of groups under random loads: what must hold of protection, limits and turns (tests
//! only).

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::cgroupfs::oom::OomTask;
use crate::config::memcg::MemcgSelection;
use crate::config::node::NodeConfig;
use crate::config::{Config, Policy};
use crate::engine::Engine;
use crate::folio::mapping::MappingKind;
use crate::ids::{MappingId, MemcgId, PageId};
use crate::memcg::group::{MemcgEvents, MemcgLimits};
use crate::memcg::protection::BelowProtection;
use crate::stat::Counter;
use crate::touch::Touch;
use crate::world_at_once::AtOnce;
use crate::{FaultAroundConfig, Generations, LruConfig, MemcgConfig, ScanBudget, SwapConfig};
use refault_testing::short_or_long;

/// Pages of a group's file and of its anonymous memory.
const PAGES: u32 = 120;

#[derive(Clone, Debug)]
enum Op {
    /// So many accesses of one group from a page on.
    Load {
        group: u8,
        first: u8,
        len: u8,
        anon: bool,
        write: bool,
    },
    Limits {
        group: u8,
        which: u8,
        pages: u16,
    },
    Reclaim {
        group: u8,
        pages: u8,
    },
    Kswapd,
    Add {
        parent: u8,
    },
    Remove {
        group: u8,
    },
    Exit {
        group: u8,
    },
    /// The tasks of a group go to another one, with its anonymous memory or its file.
    Move {
        group: u8,
        to: u8,
        anon: bool,
    },
    Kill {
        group: u8,
    },
    Wait(u16),
}

fn op() -> impl Strategy<Value = Op> {
    let group = any::<u8>();
    prop_oneof![
        12 => (group, any::<u8>(), 1u8..120, any::<bool>(), any::<bool>())
            .prop_map(|(group, first, len, anon, write)| Op::Load { group, first, len, anon, write }),
        4 => (group, 0u8..8, 0u16..400).prop_map(|(group, which, pages)| Op::Limits { group, which, pages }),
        3 => (group, 1u8..200).prop_map(|(group, pages)| Op::Reclaim { group, pages }),
        2 => Just(Op::Kswapd),
        2 => group.prop_map(|parent| Op::Add { parent }),
        1 => group.prop_map(|group| Op::Remove { group }),
        1 => group.prop_map(|group| Op::Exit { group }),
        1 => (group, any::<u8>(), any::<bool>()).prop_map(|(group, to, anon)| Op::Move { group, to, anon }),
        1 => group.prop_map(|group| Op::Kill { group }),
        1 => (0u16..5000).prop_map(Op::Wait),
    ]
}

struct Group {
    id: MemcgId,
    file: PageId,
    anon: PageId,
    region: MappingId,
}

struct Machine {
    engine: Engine,
    world: AtOnce,
    groups: Vec<Group>,
    now_ms: u64,
}

/// Sizes of a group's lists, and its events.
type Having = Vec<(u64, MemcgEvents)>;

impl Machine {
    fn new(cfg: Config) -> Machine {
        let engine = Engine::new(cfg).expect("a possible configuration");
        Machine { engine, world: AtOnce::default().dirty().with_accessed_bits(), groups: Vec::new(), now_ms: 0 }
    }

    fn add(&mut self, parent: MemcgId) {
        let e = &mut self.engine;
        let Ok(id) = e.add_memcg(parent, &format!("/{}", self.groups.len()), u64::MAX, u64::MAX) else { return };
        let pages = || 0..u64::from(PAGES);
        let (_, file) = e.add_mapping(MappingKind::File, id, pages()).expect("a file");
        let (region, anon) = e.add_mapping(MappingKind::Anon, id, pages()).expect("a region");
        self.groups.push(Group { id, file, anon, region });
    }

    fn pick(&self, n: u8) -> Option<&Group> {
        (!self.groups.is_empty()).then(|| &self.groups[usize::from(n) % self.groups.len()])
    }

    fn having(&self) -> Having {
        let e = &self.engine;
        let has = |id: MemcgId| e.mem.pages.lruvecs[e.mem.groups.memcgs.get(id).lruvec.index()].size.iter().sum();
        self.groups.iter().map(|g| (has(g.id), e.memcg_events_local(g.id))).collect()
    }

    fn load(&mut self, g: usize, first: u8, len: u8, anon: bool, write: bool) -> Result<(), String> {
        let from = if anon { self.groups[g].anon } else { self.groups[g].file };
        for i in 0..u32::from(len) {
            let page = PageId(from.0 + (u32::from(first) + i) % PAGES);
            if self.world.mapped(page).is_some() {
                self.world.set_young(page);
                continue;
            }
            let touch = match (anon, write) {
                (true, false) => Touch::MapRead,
                (true, true) => Touch::MapWrite,
                (false, false) => Touch::Read,
                (false, true) => Touch::Write,
            };
            self.engine.access(&mut self.world, page, touch);
            if self.engine.is_over_high() {
                self.engine.return_to_user(&mut self.world);
            }
        }
        Ok(())
    }

    fn limits(&mut self, g: usize, which: u8, pages: u64) {
        let id = self.groups[g].id;
        let mut l = self.engine.memcg_limits(id);
        let bound = if pages < 40 { u64::MAX } else { pages };
        match which {
            0 => l.min = pages / 4,
            1 => l.low = pages / 2,
            2 => l.high = bound,
            3 | 4 => l.max = bound,
            5 => l.swap_max = bound,
            6 => l.swappiness = Some(pages as u32 % 201),
            _ => l = MemcgLimits { oom_group: pages.is_multiple_of(2), ..l },
        }
        // A group that was removed refuses.
        let _ = self.engine.set_memcg_limits(&mut self.world, id, &l);
    }

    /// Reclaim on behalf of `target` by `run`: what is below its min keeps all, what is below its
    /// low gives only when an event says so.
    fn protected(&mut self, target: MemcgId, run: impl FnOnce(&mut Machine)) -> Result<(), String> {
        self.engine.drain_all();
        let shields: Vec<BelowProtection> =
            self.groups.iter().map(|g| self.engine.mem.groups.memcgs.below_protection(target, g.id)).collect();
        let before = self.having();
        run(self);
        self.engine.drain_all();
        for (g, ((below_protection, was), is)) in self.groups.iter().zip(shields.iter().zip(&before).zip(self.having()))
        {
            let lost: u64 = was.0 - is.0;
            match below_protection {
                BelowProtection::Min if lost > 0 => return Err(format!("{:?} is below its min and lost {lost}", g.id)),
                BelowProtection::Low if lost > 0 && is.1.low == was.1.low => {
                    return Err(format!("{:?} is below its low and lost {lost} without an event", g.id));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<(), String> {
        let count = self.groups.len().max(1);
        let index = |n: u8| usize::from(n) % count;
        match *op {
            Op::Add { parent } if self.groups.len() < 12 => {
                let n = usize::from(parent) % (self.groups.len() + 1);
                let parent = n.checked_sub(1).map_or(MemcgId::ROOT, |n| self.groups[n].id);
                self.add(parent);
            }
            Op::Wait(ms) => {
                self.now_ms += u64::from(ms);
                self.engine.set_now_ns(self.now_ms * 1_000_000);
            }
            Op::Kswapd => self.protected(MemcgId::ROOT, |m| {
                m.engine.mem.frames.nodes.all[0].kswapd.awake = true;
                m.engine.mem.frames.nodes.all[0].kswapd.failures = 0;
                m.engine.run_kswapd(&mut m.world, 200);
            })?,
            _ if self.groups.is_empty() => {}
            Op::Load { group, first, len, anon, write } => self.load(index(group), first, len, anon, write)?,
            Op::Limits { group, which, pages } => self.limits(index(group), which, u64::from(pages)),
            Op::Reclaim { group, pages } => {
                // The root is a target, too.
                let target = if group % 5 == 0 { MemcgId::ROOT } else { self.groups[index(group)].id };
                self.protected(target, |m| {
                    let before = m.engine.vmstat();
                    let got = m.engine.reclaim(&mut m.world, target, u64::from(pages), None);
                    let stolen = |s: &crate::Stats| s.get(Counter::steal(0)) + s.get(Counter::steal(1));
                    let freed = stolen(&m.engine.vmstat()) - stolen(&before);
                    // The first form adds 64 pages to say that it is enough.
                    let plain = m.engine.mem.cfg.memcg.selection != MemcgSelection::First;
                    let said = got.unwrap_or_else(|again| again.reclaimed);
                    assert!(!plain || said == freed, "{said} pages said, {freed} freed");
                })?;
            }
            Op::Remove { group } => _ = self.engine.remove_memcg(self.groups[index(group)].id),
            Op::Exit { group } => {
                let region = self.groups[index(group)].region;
                self.engine.zap_mapping(&mut self.world, region);
            }
            Op::Move { group, to, anon } => {
                let mapping = self.groups[index(group)].region.0 - u32::from(!anon);
                let to = self.groups[index(to)].id;
                // A group that is gone takes nothing.
                let _ = self.engine.move_mapping(&mut self.world, MappingId(mapping), to);
            }
            Op::Kill { group } => {
                let task = |g: &Group| OomTask { memcg: g.id, score_adj: 0, mappings: vec![g.region] };
                let tasks: Vec<OomTask> = self.groups.iter().map(task).collect();
                let over = self.pick(group).map_or(MemcgId::ROOT, |g| g.id);
                let victims = self.engine.oom_kill(over, &tasks);
                let inside = |t: &OomTask| self.engine.mem.groups.memcgs.is_within(t.memcg, over);
                assert!(victims.iter().all(|&v| inside(&tasks[v])), "{over:?}: {victims:?}");
                for v in victims {
                    self.engine.zap_mapping(&mut self.world, tasks[v].mappings[0]);
                }
            }
            Op::Add { .. } => {}
        }
        self.turns()?;
        self.engine.validate()
    }

    /// I6.3: no group is visited twice in a pass, except those that the memcg LRU sent to a tail:
    /// they are tried once more.
    fn turns(&mut self) -> Result<(), String> {
        let visits = std::mem::take(&mut self.engine.mem.groups.visits);
        for pass in visits.split(|v| v.is_none()) {
            for id in pass.iter().flatten() {
                let times = pass.iter().flatten().filter(|v| *v == id).count();
                if times > 2 || (times > 1 && self.engine.mem.cfg.memcg.selection != MemcgSelection::MemcgLru) {
                    return Err(format!("{id:?} was visited {times} times in {pass:?}"));
                }
            }
        }
        Ok(())
    }
}

prop_compose! {
    fn config()(
        policy in prop::sample::select(Policy::every().collect::<Vec<_>>()),
        memcgs in prop::sample::select(vec![MemcgSelection::Iterate, MemcgSelection::First, MemcgSelection::MemcgLru]),
        (recursive_protection, charge_kernel, low_backoff, lru_reparent) in any::<(bool, bool, bool, bool)>(),
        (swap_pages, batch_folios, charge_batch) in (
            prop::sample::select(vec![0u64, 50, 5000]),
            prop::sample::select(vec![0usize, 31]),
            prop::sample::select(vec![1u64, 64]),
        ),
        stat_flush_interval_ns in prop::sample::select(vec![0u64, 2_000_000_000]),
        node in prop::option::of(300u64..900),
        (swappiness, seed) in (0u32..=200, any::<u64>()),
        (generations, scan_budget) in (
            prop::sample::select(vec![Generations::Linked, Generations::Independent]),
            prop::sample::select(vec![ScanBudget::PerBatch, ScanBudget::Once]),
        ),
    ) -> Config {
        Config { swappiness, seed, node: node.map(|pages| NodeConfig { low_zones: [pages / 8, pages / 2], ..NodeConfig::new(pages) }), total_pages: 4096, memcg: MemcgConfig { selection: memcgs, lru_reparent, recursive_protection, charge_kernel, charge_batch, backoff: if low_backoff { crate::Backoff::LowPriorities } else { crate::Backoff::AnyPriority }, ..MemcgConfig::default() }, swap: SwapConfig { pages: swap_pages, ..SwapConfig::default() }, lru: LruConfig { batch_folios, stat_flush_interval_ns, generations, scan_budget, ..Config::new(policy).lru }, fault_around: FaultAroundConfig { pages: 1, ..FaultAroundConfig::default() }, ..Config::new(policy) }
    }
}

/// Small requests under two lists look at each group once and know the result of later passes. They
/// visit the same groups and take the same pages as requests that look at everything.
#[test]
fn passes_over_groups_that_have_nothing_to_give_are_known() {
    let [known, looked] = [false, true].map(|closely| {
        let mut m = Machine::new(Config {
            lru: LruConfig { batch_folios: 0, ..Config::new(Policy::Lru).lru },
            fault_around: FaultAroundConfig { pages: 1, ..FaultAroundConfig::default() },
            ..Config::new(Policy::Lru)
        });
        m.engine.mem.groups.looks_closely = closely;
        (0..40).for_each(|_| m.add(MemcgId::ROOT));
        (0..12).for_each(|g| m.load(g, 0, 100, false, false).unwrap());
        m.engine.take_work();
        m.engine.reclaim(&mut m.world, MemcgId::ROOT, 8, None).unwrap();
        let visits = m.engine.mem.groups.visits.iter().flatten().count() as u64;
        (m.engine.take_work(), m.having().iter().map(|h| h.0).collect::<Vec<_>>(), visits)
    });
    assert_eq!((&known.0, &known.1), (&looked.0, &looked.1));
    assert_eq!(looked.2, looked.0.memcgs, "each visit is counted");
    assert!(known.2 < looked.2 / 2, "{} of {} visits were made", known.2, looked.2);
}

/// Reclaim for a charge took the last page of the group that was charged, which had been removed:
/// the group was gone before the page that was charged came.
#[test]
fn regression_a_group_stays_while_something_is_being_charged_to_it() {
    let node = NodeConfig { low_zones: [51, 205], ..NodeConfig::new(411) };
    let mut m = Machine::new(Config {
        node: Some(node),
        swap: SwapConfig { pages: 0, ..SwapConfig::default() },
        fault_around: FaultAroundConfig { pages: 1, ..FaultAroundConfig::default() },
        ..Config::new(Policy::Lru)
    });
    (0..4).for_each(|_| m.add(MemcgId::ROOT));
    let load = |group, first, len, anon| Op::Load { group, first, len, anon, write: false };
    for op in [
        load(3, 0, 100, false),
        Op::Remove { group: 1 },
        load(2, 3, 74, false),
        load(1, 0, 17, false),
        load(1, 0, 98, true),
        load(0, 0, 62, false),
        Op::Remove { group: 0 },
        load(2, 5, 115, false),
        load(0, 27, 36, false),
    ] {
        m.step(&op).unwrap();
    }
}

thread_local! {
    /// Visits of all cases below that knew.
    static KNOWN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[test]
fn visits_that_know_are_visits_that_look() {
    know_or_look();
    let known = KNOWN.with(std::cell::Cell::get);
    assert!(known > short_or_long(2_000, 10_000), "so few visits knew that nothing was tested: {known}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(short_or_long(64, 256)))]

    #[test]
    fn trees_keep_their_limits_and_protection(cfg in config(), ops in prop::collection::vec(op(), 1..60)) {
        let mut m = Machine::new(cfg);
        (0..3).for_each(|_| m.add(MemcgId::ROOT));
        for (i, op) in ops.iter().enumerate() {
            m.step(op).map_err(|e| TestCaseError::fail(format!("step {i}, {op:?}: {e}")))?;
        }
    }

    /// Visits that rely on earlier answers move the same groups and take the same pages as visits
    /// that look at everything.
    fn know_or_look(
        cfg in config(), groups in 1u8..40, parents in prop::collection::vec(any::<u8>(), 40), ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut machines = [false, true].map(|closely| {
            let mut m = Machine::new(Config { memcg: MemcgConfig { selection: MemcgSelection::MemcgLru, ..cfg.clone().memcg }, ..cfg.clone() });
            m.engine.mem.groups.looks_closely = closely;
            for n in 0..groups {
                let above = usize::from(parents[usize::from(n)]) % (usize::from(n) + 2);
                m.add(m.groups.get(above).map_or(MemcgId::ROOT, |g| g.id));
            }
            m
        });
        for (i, op) in ops.iter().enumerate() {
            let [one, two] = machines.each_mut().map(|m| {
                let failed = m.step(op);
                let work = format!("{:?}", m.engine.take_work());
                let e = &m.engine;
                (failed, format!("{:?}", e.mem.groups.memcg_lru), e.lru_gen_full_text(), e.vmstat().iter().collect::<Vec<_>>(), work)
            });
            prop_assert_eq!(&one, &two, "step {}, {:?}", i, op);
            prop_assert_eq!(one.0, Ok(()), "step {}, {:?}", i, op);
        }
        let known: u64 = machines[0].engine.mem.groups.empty.known;
        prop_assert_eq!(machines[1].engine.mem.groups.empty.known, 0);
        KNOWN.with(|all| all.set(all.get() + known));
    }

    /// Partial walks of two-list reclaim: everyone has a turn before anyone has a second.
    #[test]
    fn partial_walks_go_round(groups in 2u8..10, parents in prop::collection::vec(any::<u8>(), 10), rounds in 20usize..60) {
        let mut m = Machine::new(Config { memcg: MemcgConfig { charge_batch: 1, ..MemcgConfig::default() }, lru: LruConfig { batch_folios: 0, ..Config::new(Policy::Lru).lru }, ..Config::new(Policy::Lru) });
        for n in 0..groups {
            m.step(&Op::Add { parent: parents[usize::from(n)] % (n + 1) }).map_err(TestCaseError::fail)?;
        }
        for g in 0..usize::from(groups) {
            m.load(g, 0, 120, false, false).map_err(TestCaseError::fail)?;
        }
        m.engine.mem.groups.visits.clear();
        for _ in 0..rounds {
            let mut sc = crate::scan::ScanControl::for_memcg(MemcgId::ROOT, 1, None);
            (sc.proactive, sc.priority) = (true, 3);
            m.engine.reclaim_with(&mut m.world, sc).shrink_node();
        }
        let visits: Vec<MemcgId> = std::mem::take(&mut m.engine.mem.groups.visits).into_iter().flatten().collect();
        let round = usize::from(groups) + 1;
        prop_assert!(visits.len() > round || rounds < round);
        for turn in visits.chunks(round) {
            let distinct: BTreeSet<_> = turn.iter().collect();
            prop_assert_eq!(distinct.len(), turn.len(), "{:?}", visits);
        }
    }

    /// The memcg LRU: everyone in the old generation is tried before the generations move on
    /// (I6.4).
    #[test]
    fn generations_of_groups_move_on_when_all_were_tried(
        groups in 1u8..12, parents in prop::collection::vec(any::<u8>(), 12), seed in any::<u64>(), rounds in 1usize..60,
    ) {
        let mut m = Machine::new(Config { seed, memcg: MemcgConfig { charge_batch: 1, ..MemcgConfig::default() }, lru: LruConfig { batch_folios: 0, ..Config::new(Policy::Mglru).lru }, ..Config::new(Policy::Mglru) });
        for n in 0..groups {
            m.step(&Op::Add { parent: parents[usize::from(n)] % (n + 1) }).map_err(TestCaseError::fail)?;
        }
        m.engine.mem.groups.visits.clear();
        let mut tried = BTreeSet::new();
        for round in 0..rounds {
            m.load(round % usize::from(groups), round as u8, 100, round % 2 == 0, false).map_err(TestCaseError::fail)?;
            let (seq, old) = (m.engine.mem.groups.memcg_lru[0].seq(), m.engine.mem.groups.memcg_lru[0].old_generation());
            let mut sc = crate::scan::ScanControl::for_memcg(MemcgId::ROOT, 16, None);
            (sc.proactive, sc.priority) = (true, 2);
            m.engine.reclaim_with(&mut m.world, sc).shrink_node();
            tried.extend(std::mem::take(&mut m.engine.mem.groups.visits).into_iter().flatten());
            m.engine.validate().map_err(TestCaseError::fail)?;
            if m.engine.mem.groups.memcg_lru[0].seq() > seq {
                let missed: Vec<_> = old.iter().filter(|id| !tried.contains(*id)).collect();
                prop_assert!(missed.is_empty(), "{missed:?} were not tried, {tried:?} were");
                tried.clear();
            }
        }
    }
}
