//! Tests of every `--set`: that some value of it changes what a replay counts, under the policies
//! that it says to act on and no other, and is refused elsewhere.

use super::set::{Set, check_acts};
use crate::replay::machine::ReplayWorld;
use refault_mm::{
    Advice, Config, Counter, Engine, MappingKind, MemcgId, NodeConfig, PageId, Policy, Setting, Touch, settings,
};
use refault_testing::{is_long, short_or_long};
use std::collections::BTreeSet;

/// Settings that change nothing here, and why.
const EXCEPTIONS: [(&str, &str); 12] = [
    ("kswapd_revival", "of kswapd, which run has and a replay has not"),
    ("retry_without_trim", "of kswapd"),
    ("kswapd_writes_files", "of kswapd"),
    ("backoff", "needs a run over many groups of which some have anon alone to give"),
    ("target_lowers_priority", "needs one group to give all that a run wants below the first priority"),
    ("stop_at_high_mark", "of kswapd"),
    ("lru_reparent", "groups of a trace are not removed"),
    ("swap_overflow", "there is one swap device, and --thp alone makes large folios"),
    ("swap_rotational", "the swap device of a replay is solid-state"),
    ("swap_zeromap", "a trace does not say what pages hold"),
    ("vfs_cache_pressure", "needs names of thousands of files, which the tests of small files have"),
    ("nodes_shift", "so few evictions fit into any shadow; eviction_bits_max shows the buckets"),
];

/// Settings that another one needs beside it.
const WITH: [(&str, &str); 2] = [("advice_recency", "advice=random"), ("backoff", "memcgs=first")];

const FILE: u32 = 3000;
const ANON: u32 = 2500;
const LIMIT: u64 = 2000;

/// Result of a replay under this configuration: a file and a heap in a group that holds less.
fn counts(mut cfg: Config, with_node: bool) -> String {
    cfg.node = with_node.then(|| NodeConfig::new(4096));
    cfg.readahead.history = true;
    let mut e = Engine::new(cfg).expect("a configuration");
    let mut w = ReplayWorld::new((2 * (FILE + ANON)) as usize + 1024, ());
    let groups = ["/a", "/b", "/c"].map(|name| e.add_memcg(MemcgId::ROOT, name, LIMIT, LIMIT).expect("a group"));
    let (_, file) = e.add_mapping(MappingKind::File, groups[0], 0..u64::from(FILE)).expect("a file");
    let (_, anon) = e.add_mapping(MappingKind::Anon, groups[0], 0..u64::from(ANON)).expect("a heap");
    let (_, other) = e.add_mapping(MappingKind::File, groups[1], 0..u64::from(FILE)).expect("a file");
    // With more groups than CPUs their precharged pages do not all stay.
    let (_, third) = e.add_mapping(MappingKind::File, groups[2], 0..u64::from(FILE)).expect("a file");
    let mut random = 1u64;
    for i in 0..60_000u32 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = (random >> 33) as u32;
        e.set_cpu((draw % 2) as usize);
        e.set_now_ns(u64::from(i) * 1_000_000);
        let skewed = |pages: u32| (draw >> 4) % pages * ((draw >> 9) % 64 + 1) / 64;
        let (page, touch) = match draw % 8 {
            0 | 1 => (file.0 + skewed(FILE), Touch::Read),
            2 => (file.0 + skewed(FILE), Touch::MapRead),
            3 => (file.0 + i % FILE, Touch::Write),
            4 | 5 => (anon.0 + skewed(ANON), Touch::MapWrite),
            6 => (anon.0 + i % ANON, Touch::MapRead),
            _ if i % 16 < 3 => (third.0 + skewed(FILE), Touch::Read),
            _ => (other.0 + skewed(FILE), Touch::Read),
        };
        let _ = e.access(&mut w, PageId(page), touch);
        if i % 4096 == 0 {
            e.advise_range(PageId(file.0), 200, Advice::Cold);
        }
    }
    let counted: Vec<u64> = Counter::ALL.iter().map(|&c| e.vmstat().get(c)).collect();
    format!("{counted:?} {} {:?}", e.lru_gen_full_text(), e.swap_work())
}

/// A policy as a replay starts it, with what a setting needs beside it.
fn start(setting: &Setting, policy: Policy) -> Config {
    let mut cfg = Config { cpus: 2, ..Config::new(policy) };
    if let Some((_, other)) = WITH.iter().find(|(needs, _)| *needs == setting.name) {
        other.parse::<Set>().expect("a setting").apply(&mut cfg);
    }
    cfg
}

/// Whether some value of a setting changes a count under a policy; `plain`: counts without it.
fn changes(setting: &Setting, policy: Policy, plain: &[String; 2]) -> bool {
    let is_plain = WITH.iter().all(|(needs, _)| *needs != setting.name);
    [false, true].into_iter().zip(plain).any(|(node, plain)| {
        let beside = || counts(start(setting, policy), node);
        let without = if is_plain { plain.clone() } else { beside() };
        setting.values.some().into_iter().any(|value| {
            let mut cfg = start(setting, policy);
            let is_other = setting.value(&cfg) != value;
            is_other && setting.set(&mut cfg, value) && cfg.check().is_ok() && counts(cfg, node) != without
        })
    })
}

/// Settings that change a count under a policy; all of them are as the table says.
fn acting(policy: Policy) -> BTreeSet<&'static str> {
    let plain = [false, true].map(|node| counts(Config { cpus: 2, ..Config::new(policy) }, node));
    let (mut acting, mut wrong) = (BTreeSet::new(), Vec::new());
    for setting in settings() {
        let changes = changes(setting, policy, &plain);
        if changes {
            acting.insert(setting.name);
        }
        let is_exception = EXCEPTIONS.iter().any(|(key, _)| *key == setting.name);
        if changes != setting.acts_on(&start(setting, policy)) && !is_exception {
            wrong.push(format!("{} under {policy}: changes {changes}", setting.name));
        }
    }
    assert!(wrong.is_empty(), "settings that do not act where the table says: {wrong:?}");
    acting
}

/// Each setting changes a count under the policies that it says to act on, and under no other.
/// Short tests try the two policies of Linux; all five have each setting in one of them.
#[test]
fn every_setting_changes_a_count_where_it_acts() {
    let policies = [Policy::Mglru, Policy::Lru, Policy::MglruShadow, Policy::LruShadow, Policy::Lru2013];
    let acting: BTreeSet<&str> = std::thread::scope(|scope| {
        let tried = policies.into_iter().take(short_or_long(2, 5));
        let threads: Vec<_> = tried.map(|policy| scope.spawn(move || acting(policy))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("as the table says")).collect()
    });
    let known: BTreeSet<&str> = EXCEPTIONS.iter().map(|(key, _)| *key).collect();
    let idle: BTreeSet<&str> = settings().map(|setting| setting.name).filter(|name| !acting.contains(name)).collect();
    assert!(known.is_subset(&idle), "known to have no effect here, and they have: {idle:?}");
    if is_long() {
        assert_eq!(idle, known, "settings without an effect, and those that are known to have none here");
    }
}

/// A setting that does nothing is refused, with a line that says where it acts.
#[test]
fn regression_a_setting_that_does_nothing_is_refused() {
    let mut seen = 0;
    for (setting, policy) in settings().flat_map(|s| Policy::ALL.map(|policy| (s, policy))) {
        let cfg = Config::new(policy);
        let set = [format!("{}={}", setting.name, setting.value(&cfg)).parse::<Set>().expect("a setting")];
        let done = check_acts(&set, std::iter::once((policy.name(), Some(&cfg))));
        let acts = setting.acts_on(&cfg) && setting.needs_machine().is_none();
        assert_eq!(done.is_ok(), acts, "{} {policy}: {done:?}", setting.name);
        seen += usize::from(done.is_err_and(|e| e.starts_with(&format!("--set {}: does nothing ", setting.name))));
    }
    assert!(seen > 60, "{seen}");
}
