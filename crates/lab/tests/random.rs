//! Machines and workloads of any shape: none panics, hangs or breaks what must hold.
//!
//! `REFAULT_SEEDS` sets how many are tried (15, 60 with `REFAULT_LONG=1`, 200 with
//! `REFAULT_LONG=all`), `REFAULT_SEED` tries a single one. With `REFAULT_DIGEST` a digest of the
//! final state of each is printed: before and after a change that must change nothing.

mod machine_events;

use std::hash::{DefaultHasher, Hash, Hasher};

use refault_lab::contention::ContentionSpec;
use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::{
    AccessPattern, Action, Burst, ContentSpec, DeviceOverrides, DeviceSpec, EventAction, EventSpec, LimitChanges,
    LoopSpec, MachineSpec, MemcgSpec, ObjectSpec, PRESETS, PhaseLimit, PhaseSpec, PolicySpec, Scenario, Share,
    StreamSpec, SwapSpec, Sync, TaskSpec,
};
use refault_mm::{
    AccessAdvice, CacheExtPolicy, HugeAdvice, MemcgLimits, Policy, ThpConfig, ThpDefrag, ThpMode, ThpSize, ZswapConfig,
};
use refault_testing::{by_length, short_or_long};
use refault_trace::generate::Rng;
use refault_trace::{ObjectKind, Via};

/// More events than any of these machines needs: a hang.
const MOST_EVENTS: u64 = 20_000_000;

struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn device(d: &mut Dice, name: &str, presets: &[&str]) -> DeviceSpec {
    let preset = d.of(presets);
    let synchronous = !["hdd", "sata-ssd", "nvme"].contains(&preset);
    let mut overrides = DeviceOverrides::default();
    if d.one_in(3) {
        overrides.read_error_per_million = Some(d.of(&[100, 10_000, 200_000]));
        overrides.write_error_per_million = Some(d.of(&[100, 10_000, 200_000]));
    }
    if d.one_in(4) && !synchronous {
        overrides.spike_per_million = Some(10_000);
        overrides.spike_ns = Some(d.within(1_000_000, 500_000_000));
    }
    if d.one_in(6) && !synchronous {
        overrides.stuck_at_ns = Some(d.below(200_000_000));
        overrides.stuck_for_ns = Some(d.within(1_000_000, 3_000_000_000));
    }
    if preset == "zram" && d.one_in(2) {
        overrides.mem_limit_pages = Some(d.of(&[1, 20, 300]));
    }
    DeviceSpec { name: name.into(), preset: preset.into(), overrides }
}

fn stream(d: &mut Dice, objects: &[ObjectSpec], copies: u32) -> StreamSpec {
    let object = d.below(objects.len() as u64) as usize;
    let o = &objects[object];
    let anon = o.kind == ObjectKind::Anon;
    let first_page = d.below(o.pages / 2);
    let pages = d.within(u64::from(copies).min(o.pages - first_page), o.pages - first_page);
    let least_pages = if d.one_in(4) { d.within(1, pages) } else { pages };
    StreamSpec {
        object,
        action: match d.below(8) {
            0 if anon => Action::Drop,
            1 if anon => Action::PageOut,
            2 | 3 if anon => Action::Renew,
            0 => Action::Drop,
            1 => Action::Direct,
            _ => Action::Access,
        },
        pattern: match d.below(4) {
            0 => AccessPattern::Uniform,
            1 => AccessPattern::Zipf { skew: d.of(&[0.5, 1.0, 1.2]), permute: d.one_in(2) },
            _ => AccessPattern::Sequential,
        },
        weight: d.within(1, 5) as f64,
        via: if anon || d.one_in(2) { Via::Map } else { Via::Fd },
        sync: d.of(&[Sync::None, Sync::None, Sync::Fsync, Sync::SyncFileRange]),
        write_share: d.of(&[0.0, 0.0, 0.1, 0.5, 1.0]),
        block_pages: d.of(&[1, 1, 2, 8, 40]),
        advice: d.of(&AccessAdvice::ALL).1,
        first_page,
        pages,
        least_pages,
        start_page: d.below(least_pages),
        share: if least_pages < pages {
            Share::Same
        } else {
            d.of(&[Share::Same, Share::Split, Share::Staggered, Share::Queue])
        },
        times: 1,
    }
}

fn phase(d: &mut Dice, objects: &[ObjectSpec], copies: u32) -> PhaseSpec {
    let streams: Vec<_> = (0..d.within(1, 3)).map(|_| stream(d, objects, copies)).collect();
    PhaseSpec {
        name: None,
        until: match d.below(3) {
            0 => PhaseLimit::Duration(d.within(1_000_000, 300_000_000)),
            1 if streams.len() == 1 => PhaseLimit::Passes(d.of(&[0.1, 1.0, 2.5])),
            _ => PhaseLimit::Accesses(d.within(1, 6000)),
        },
        streams,
        measured: !d.one_in(4),
        think_ns: d.of(&[0, 0, 10_000, 1_000_000]),
        cpu_ns: d.of(&[0, 1_000]),
        lines: 1,
        accesses_per_op: d.of(&[1, 1, 7]),
        rate_per_s: d.one_in(5).then(|| d.within(100, 100_000) as f64),
        burst: d.one_in(5).then(|| Burst { on_ns: d.within(1_000_000, 10_000_000), off_ns: d.within(1, 20_000_000) }),
    }
}

fn objects(d: &mut Dice, memcgs: u64, disk: usize) -> Vec<ObjectSpec> {
    let one = |d: &mut Dice, i: u64| {
        let anon = d.one_in(2);
        ObjectSpec {
            name: format!("o{i}"),
            kind: if anon { ObjectKind::Anon } else { ObjectKind::File },
            pages: d.within(4, 4000),
            huge: d.of(&[HugeAdvice::None, HugeAdvice::Huge, HugeAdvice::NoHuge]),
            areas: if anon && d.one_in(2) {
                (0..d.within(1, 3)).map(|_| d.within(1, 600)).collect()
            } else {
                Vec::new()
            },
            device: (!anon).then_some(disk),
            memcg: (memcgs > 0 && d.one_in(2)).then(|| d.below(memcgs) as usize),
            private: false,
            content: (anon && d.one_in(2)).then(|| ContentSpec {
                zero: d.of(&[0.0, 0.3]),
                same: d.of(&[0.0, 0.1]),
                incompressible: d.of(&[0.0, 0.1, 0.5]),
                ratio: d.of(&[1.0, 1.2, 3.0, 20.0]),
            }),
        }
    };
    let n = d.within(1, 5);
    (0..n).map(|i| one(d, i)).collect()
}

fn memcgs(d: &mut Dice) -> Vec<MemcgSpec> {
    let n = d.below(4);
    let one = |d: &mut Dice, i: u64| MemcgSpec {
        path: format!("/g{i}"),
        parent: (i > 0 && d.one_in(2)).then(|| d.below(i) as usize),
        made_by_event: false,
        cache_ext: None,
        limits: MemcgLimits {
            min: if d.one_in(4) { d.below(2000) } else { 0 },
            low: if d.one_in(4) { d.below(2000) } else { 0 },
            high: if d.one_in(4) { d.within(100, 3000) } else { u64::MAX },
            max: if d.one_in(2) { d.within(100, 3000) } else { u64::MAX },
            swap_high: if d.one_in(8) { d.below(500) } else { u64::MAX },
            swap_max: if d.one_in(4) { d.below(500) } else { u64::MAX },
            swappiness: d.one_in(4).then(|| d.below(201) as u32),
            oom_group: d.one_in(4),
            ..MemcgLimits::default()
        },
    };
    (0..n).map(|i| one(d, i)).collect()
}

fn tasks(d: &mut Dice, objects: &[ObjectSpec], memcgs: u64) -> Vec<TaskSpec> {
    let one = |d: &mut Dice, i: u64| {
        let count = d.of(&[1, 1, 2, 5]);
        let phases: Vec<_> = (0..d.within(1, 3)).map(|_| phase(d, objects, count)).collect();
        let from = d.below(phases.len() as u64) as usize;
        let steps = from..d.within(from as u64 + 1, phases.len() as u64) as usize;
        let again = LoopSpec { phases: steps, times: d.within(1, 4), record: count == 1 && d.one_in(2) };
        TaskSpec {
            name: format!("t{i}"),
            count,
            memcg: (memcgs > 0 && d.one_in(2)).then(|| d.below(memcgs) as usize),
            start_ns: d.of(&[0, 0, 1_000_000, 50_000_000]),
            stagger_ns: d.of(&[0, 0, 1_000_000]),
            after: (i > 0 && d.one_in(4)).then(|| d.below(i) as usize),
            phases,
            loops: if d.one_in(2) { vec![again] } else { Vec::new() },
            trace: None,
            // Without a draw, so that the other values are what they were before there were these.
            threads: [None, Some(false), Some(true)][i as usize % 3],
            background: i > 0 && d.one_in(5),
            oom_score_adj: d.of(&[0, 0, -1000, 500]),
            cache_ext_hint: 0,
        }
    };
    let n = d.within(1, 4);
    (0..n).map(|i| one(d, i)).collect()
}

/// Events of any kind at any time, in any order: some come too early, some too late. Groups that
/// are made are behind the others.
fn events(d: &mut Dice, memcgs: &mut Vec<MemcgSpec>, tasks: u64) -> Vec<EventSpec> {
    let one = |d: &mut Dice, i: u64, memcgs: &mut Vec<MemcgSpec>| {
        let any = |d: &mut Dice, memcgs: &[MemcgSpec]| d.below(memcgs.len() as u64) as usize;
        let kind = if memcgs.is_empty() { 0 } else { d.below(7) };
        let action = match kind {
            0 => {
                let parent = (!memcgs.is_empty() && d.one_in(2)).then(|| any(d, memcgs));
                let max = if d.one_in(2) { d.within(100, 3000) } else { u64::MAX };
                let limits = MemcgLimits { max, ..MemcgLimits::default() };
                memcgs.push(MemcgSpec { path: format!("/e{i}"), parent, limits, made_by_event: true, cache_ext: None });
                EventAction::Create(memcgs.len() - 1)
            }
            1 | 2 => EventAction::Remove(any(d, memcgs)),
            3 => EventAction::Set {
                memcg: any(d, memcgs),
                limits: LimitChanges {
                    min: d.one_in(4).then(|| d.below(2000)),
                    low: d.one_in(4).then(|| d.below(2000)),
                    high: d.one_in(3).then(|| d.below(2000)),
                    max: d.one_in(2).then(|| d.of(&[0, 50, 500, 3000, u64::MAX])),
                    swap_max: d.one_in(4).then(|| d.below(500)),
                    swap_high: d.one_in(4).then(|| d.below(500)),
                    zswap_max: d.one_in(4).then(|| d.below(500)),
                    zswap_writeback: d.one_in(4).then(|| d.one_in(2)),
                    swappiness: d.one_in(4).then(|| d.below(201) as u32),
                    oom_group: d.one_in(4).then(|| d.one_in(2)),
                },
            },
            4 | 5 => EventAction::Move {
                task: d.below(tasks) as usize,
                to: (!d.one_in(4)).then(|| any(d, memcgs)),
                charges: !d.one_in(4),
            },
            _ => EventAction::Reclaim {
                memcg: (!d.one_in(4)).then(|| any(d, memcgs)),
                pages: d.of(&[1, 33, 500, 100_000]),
                swappiness: d.one_in(3).then(|| d.below(201) as u32),
                every_ns: d.one_in(3).then(|| d.within(1_000_000, 50_000_000)),
                until_ns: d.one_in(2).then(|| d.within(1, 1_000_000_000)),
            },
        };
        EventSpec {
            at_ns: d.of(&[0, 1_000_000, 20_000_000, 100_000_000, 300_000_000]) + d.below(1_000_000),
            after: d.one_in(5).then(|| d.below(tasks) as usize),
            watch: None,
            action,
        }
    };
    let n = if d.one_in(2) { 0 } else { d.within(1, 12) };
    (0..n).map(|i| one(d, i, memcgs)).collect()
}

fn thp(d: &mut Dice) -> ThpConfig {
    let modes = [ThpMode::Always, ThpMode::Madvise, ThpMode::Never];
    let sizes = [ThpSize::Always, ThpSize::Inherit, ThpSize::Madvise, ThpSize::Never];
    let mut thp = ThpConfig {
        enabled: d.of(&modes),
        defrag: d.of(&ThpDefrag::ALL),
        swap_in: d.one_in(2),
        ..ThpConfig::default()
    };
    thp.sizes[usize::from(ThpConfig::MIN_ORDER)..].iter_mut().for_each(|s| *s = d.of(&sizes));
    thp
}

fn machine(d: &mut Dice) -> MachineSpec {
    let memory_pages = d.within(600, 6000);
    MachineSpec {
        cpus: d.of(&[1, 1, 2, 4]) as u32,
        memory_pages,
        kernel_pages: d.below(memory_pages / 4),
        dma_pages: d.of(&[0, 200, 4096]),
        dma32_pages: d.of(&[0, 1000, 1 << 20]),
        // Not drawn: seeds stay what they are.
        init_pages: if memory_pages.is_multiple_of(5) { memory_pages / 9 } else { 0 },
        per_cpu_lists: d.one_in(2),
        page_blocks: d.one_in(2),
        watermark_boost_factor: d.of(&[15_000, 0]),
        buffer_heads: d.one_in(2),
        quantum_ns: d.of(&[10_000, 50_000, 1_000_000]),
        tick_ns: d.of(&[0, 1_000_000, 4_000_000]),
        swappiness: d.of(&[0, 1, 60, 100, 200]),
        min_free_kbytes: d.one_in(2).then(|| d.within(64, memory_pages / 2)),
        watermark_scale_factor: d.of(&[10, 100, 1000]),
        page_cluster: d.below(5) as u32,
        read_ahead_pages: d.of(&[0, 4, 32]),
        read_ahead_history: d.one_in(2),
        dirty_background_ratio: d.of(&[0, 10, 50]),
        dirty_ratio: d.of(&[5, 20, 60]),
        // Not drawn: seeds stay what they are.
        dirty_expire_ns: if memory_pages.is_multiple_of(3) { 20_000_000 } else { 0 },
        dirty_writeback_ns: 5_000_000,
        cgroup_writeback: !memory_pages.is_multiple_of(7),
        file_order: if memory_pages.is_multiple_of(4) { 4 } else { 0 },
        min_ttl_ns: d.of(&[0, 0, 0, 5_000_000]),
        thp: if d.one_in(2) { ThpConfig::default() } else { thp(d) },
        recursive_protection: d.one_in(2),
        stat_flush_interval_ns: d.of(&[0, 2_000_000_000, 10_000_000]),
        given: ["stat_flush_interval", "per_cpu_lists", "page_blocks", "thp.swap_in"].into(),
        costs: Default::default(),
        contention: memory_pages.is_multiple_of(2).then(ContentionSpec::default),
        nodes: Vec::new(),
        scale: 1,
    }
}

fn swap_devices(d: &mut Dice) -> Vec<SwapSpec> {
    let nr = d.of(&[0, 1, 1, 2]);
    let device = |i| SwapSpec {
        enabled: true,
        device: i,
        pages: d.within(2, 5000),
        priority: d.one_in(2).then_some(1),
        discard: d.one_in(3),
        rotational: d.one_in(4),
        file: d.one_in(4),
        bad_pages: if d.one_in(4) { vec![1] } else { Vec::new() },
    };
    (1..=nr).map(device).collect()
}

fn scenario(seed: u64) -> Scenario {
    let d = &mut Dice(Rng::new(seed, &[77]));
    let mut memcgs = memcgs(d);
    let devices = vec![
        device(d, "disk", &["hdd", "sata-ssd", "nvme", "ramdisk", "pmem"]),
        device(d, "swap", &PRESETS),
        device(d, "swap2", &PRESETS),
    ];
    let objects = objects(d, memcgs.len() as u64, 0);
    let mut tasks = tasks(d, &objects, memcgs.len() as u64);
    // Drawn from numbers of their own: machines without events stay what they were.
    let events = events(&mut Dice(Rng::new(seed, &[78])), &mut memcgs, tasks.len() as u64);
    let mut policy = PolicySpec::new(d.of(&Policy::ALL));
    // Drawn from numbers of their own, too: a machine that has no policy as a plug-in stays what it
    // was.
    let mut plugins = Dice(Rng::new(seed, &[79]));
    if plugins.one_in(3) {
        let of_all = plugins.of(&CacheExtPolicy::ALL);
        policy.policy = if plugins.one_in(2) { Policy::Ext(of_all) } else { Policy::Lru };
        for memcg in &mut memcgs {
            memcg.cache_ext = plugins.one_in(2).then(|| plugins.of(&CacheExtPolicy::ALL));
        }
        tasks.iter_mut().for_each(|task| task.cache_ext_hint = plugins.of(&[0, 1]));
    }
    let mut set = |name: &str, text: &str| policy.settings.choose_text(name, text).expect("a setting");
    if d.one_in(2) {
        set("swap_allocator", d.of(&["free-first", "nonfull-first", "one-frag", "free-only"]));
    }
    set("swap_slot_cache", if d.one_in(3) { "true" } else { "false" });
    if d.one_in(3) {
        set("batch_folios", "0");
    }
    let mut scenario = Scenario {
        name: format!("seed {seed}"),
        about: String::new(),
        source: None,
        seed,
        end_ns: Some(20_000_000_000),
        sample_ns: d.of(&[10_000_000, 100_000_000, 1_000_000_000]),
        machine: machine(d),
        policy,
        devices,
        swap: swap_devices(d),
        zswap: d.one_in(2).then(|| ZswapConfig {
            max_pool_percent: d.of(&[0, 1, 5, 20, 50]),
            accept_threshold_percent: d.of(&[50, 90, 100]),
            same_filled: d.one_in(2),
            ..ZswapConfig::default()
        }),
        memcgs,
        objects,
        tasks,
        events,
        published: None,
        settings: Vec::new(),
        lines: Vec::new(),
    };
    machine_events::add(seed, &mut scenario);
    scenario
}

/// A task may begin in a group that was removed before: that ends the run, and is said.
fn is_excusable(error: &str) -> bool {
    error.starts_with("task ") && error.contains(" starts at ") && error.contains("which was removed")
}

fn run(seed: u64) -> Result<RunResult, String> {
    run_machine(seed, true)
}

/// Runs the machine of a seed, which checks itself after each step if `is_checked`.
fn run_machine(seed: u64, is_checked: bool) -> Result<RunResult, String> {
    let s = scenario(seed);
    let machine = Machine::new(&s, &s.policy)?;
    let machine = if is_checked { machine.checked() } else { machine };
    if number("REFAULT_SEED").is_some() {
        println!("{s:#?}");
    }
    machine.run_with(&mut |now_ns, events| {
        if number("REFAULT_SEED").is_some() && events % (MOST_EVENTS / 10 - MOST_EVENTS / 10 % 4096) == 0 {
            println!("{events} events at {now_ns} ns");
        }
        events < MOST_EVENTS
    })
}

/// Digest of everything that a run says.
fn digest(r: &RunResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    let all = (&r.tasks, &r.memcgs, &r.devices, &r.swap, &r.loops, &r.sizes, &r.tiers, &r.timeline);
    (r.series.csv(), &r.lru_gen, r.events, format!("{all:?}")).hash(&mut hasher);
    hasher.finish()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

#[test]
fn machines_of_any_shape() {
    let seeds = match number("REFAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("REFAULT_SEEDS").unwrap_or(by_length(15, 60, 200)),
    };
    let tried = seeds.end - seeds.start;
    let (mut kills, mut errors, mut swapped, mut events, mut excused) = (0, 0, 0, 0, 0);
    let mut happened = [0u64; 2];
    for seed in seeds {
        let repeat = format!("repeat with: REFAULT_SEED={seed} cargo test -p refault-lab --test all random");
        let result = std::panic::catch_unwind(|| run(seed));
        let r = match result {
            Ok(Ok(r)) => r,
            Ok(Err(e)) if is_excusable(&e) => {
                excused += 1;
                continue;
            }
            Ok(Err(e)) => panic!("seed {seed}: {e}\n{repeat}"),
            Err(_) => panic!("seed {seed} panicked\n{repeat}"),
        };
        if std::env::var_os("REFAULT_DIGEST").is_some() {
            println!("digest {seed} {:016x}", digest(&r));
        }
        kills += r.oom_kills;
        errors += r.tasks.iter().map(|t| t.errors).sum::<u64>();
        swapped += r.metric("vmstat.pswpout").unwrap_or(0.0) as u64;
        events += r.events;
        for event in r.timeline.iter().filter(|e| e.at_ns.is_some()) {
            happened[usize::from(event.failed.is_some())] += 1;
        }
    }
    println!(
        "{tried} machines ({excused} ended when a task began in a group that was gone), {events} events, {kills} killed, {errors} failed accesses, \
         {swapped} pages swapped out, {happened:?} administrator's events that did and did not succeed"
    );
}

/// Tree nodes were given back as frames of a zone in which there were slabs of buffer heads alone.
#[test]
fn regression_tree_nodes_gave_back_the_frames_of_buffer_heads() {
    run(562).expect("a machine with page blocks and buffer heads");
}

/// A task that gave up its CPU in an access did not wait where reclaim of its group asked it to.
#[test]
fn regression_a_task_that_gave_up_its_cpu_waits_as_its_group_asked() {
    run(178).expect("a machine with ticks and a group at its limit");
}

/// Slots of a task that was killed were discarded late: by the next call, of whomever.
#[test]
fn regression_slots_of_a_task_that_was_killed_are_discarded() {
    // A task of it begins in a group that is gone.
    assert!(run(222).is_err_and(|e| is_excusable(&e)));
}

/// Checks take most of the time of a machine: two runs without cost less than one with them.
#[test]
fn a_seed_means_the_same_every_time() {
    for seed in 0..short_or_long(6, 20) {
        let (Ok(a), Ok(b)) = (run_machine(seed, false), run_machine(seed, false)) else { continue };
        assert_eq!(a.series.csv(), b.series.csv(), "seed {seed}");
        assert_eq!(format!("{:?}", a.memcgs), format!("{:?}", b.memcgs), "seed {seed}");
        assert_eq!(a.lru_gen, b.lru_gen, "seed {seed}");
        assert_eq!(a.timeline, b.timeline, "seed {seed}");
    }
}
