//! Advice on access patterns: a hot set in a mapped file, beside a stream of pages that are used
//! once, under both policies and the rules before and since Linux 6.3.

use refault_mm::{AccessAdvice, Config, Engine, Kernel, MappingKind, MemcgId, PageId, Policy, Touch};
use refault_testing::AtOnce;

const LIMIT: u64 = 400;
const HOT: u32 = 200;

/// How often a page of the hot set was not in memory, in rounds in which all of it is touched and
/// half as many pages of a stream are.
fn misses(kernel: Kernel, policy: Policy, advice: AccessAdvice) -> u32 {
    let mut cfg = Config::new(policy);
    kernel.apply(&mut cfg);
    (cfg.memcg.charge_batch, cfg.memcg.charge_kernel, cfg.fault_around.pages) = (1, false, 1);
    let mut e = Engine::new(cfg).unwrap();
    let group = e.add_memcg(MemcgId::ROOT, "/index", LIMIT, 0).unwrap();
    let (mapping, first) = e.add_mapping(MappingKind::File, group, 0..20_000).unwrap();
    e.advise_access(mapping, advice);
    let mut w = AtOnce::default().with_accessed_bits();
    let mut missed = 0;
    let mut touch = |e: &mut Engine, page: PageId| match w.mapped(page) {
        Some(_) => {
            w.set_young(page);
            0
        }
        None => {
            e.access(&mut w, page, Touch::MapRead);
            w.set_young(page);
            1
        }
    };
    let mut stream = first.0 + HOT;
    for round in 0..60 {
        for hot in 0..HOT {
            let absent = touch(&mut e, PageId(first.0 + hot));
            missed += if round >= 10 { absent } else { 0 };
            if hot % 2 == 0 {
                touch(&mut e, PageId(stream));
                stream += 1;
            }
        }
        e.validate().unwrap();
    }
    missed
}

/// Without advice, and with each of them.
fn all(kernel: Kernel, policy: Policy) -> [u32; 4] {
    let all = AccessAdvice::ALL.map(|(_, advice)| misses(kernel, policy, advice));
    println!("{kernel} {policy}: {all:?}");
    all
}

#[test]
fn since_6_3_a_hot_set_is_lost_in_an_advised_mapping() {
    for (policy, at_most) in [(Policy::Lru, 500), (Policy::Mglru, 2500)] {
        let [normal, random, sequential, noreuse] = all(Kernel::V6_12, policy);
        assert!(normal < at_most, "{policy}: {normal} misses of 10,000 without advice");
        assert!(random > normal + 1000, "{policy}: {random} misses with random, {normal} without");
        assert_eq!((random, random), (sequential, noreuse), "{policy}: all three are ignored alike");
    }
}

#[test]
fn before_6_3_random_advice_cost_nothing_and_under_multi_gen_lru_kept_the_stream_out() {
    let [normal, random, sequential, noreuse] = all(Kernel::V6_1, Policy::Lru);
    assert_eq!((random, noreuse), (normal, normal));
    assert!(sequential > normal + 1000, "{sequential} misses, {normal} without advice");
    // Faults began old, so the stream did; the reference check saw the bits of the hot set.
    let [normal, random, ..] = all(Kernel::V6_1, Policy::Mglru);
    assert!(random < normal / 2, "{random} misses, {normal} without advice");
}

#[test]
fn advice_can_be_taken_back_and_a_file_may_begin_with_it() {
    let mut cfg = Config::new(Policy::Lru);
    cfg.lru.file_advice = AccessAdvice::Random;
    let mut e = Engine::new(cfg).unwrap();
    let group = e.add_memcg(MemcgId::ROOT, "/g", 100, 0).unwrap();
    let (file, page) = e.add_mapping(MappingKind::File, group, 0..50).unwrap();
    let mut w = AtOnce::default().with_accessed_bits();
    e.access(&mut w, page, Touch::MapRead);
    w.set_young(page);
    e.page_out(&mut w, page, 0);
    let reclaim = |e: &mut Engine, w: &mut AtOnce| e.reclaim(w, group, 1, None).is_ok();
    assert!(reclaim(&mut e, &mut w), "a young page of a file that begins as random goes at once");
    assert_eq!(w.mapped(page), None);
    e.advise_access(file, AccessAdvice::Normal);
    e.access(&mut w, page, Touch::MapRead);
    w.set_young(page);
    e.drain_all();
    reclaim(&mut e, &mut w);
    assert!(e.vmstat().iter().any(|(name, n)| name == "pgscan_file" && n >= 2), "its bit kept it for a pass");
}

/// A driver without accessed bits says so in other words, which count where the bit would.
#[test]
fn what_stands_for_an_accessed_bit_is_ignored_with_it() {
    for (advice, activated) in [(AccessAdvice::Normal, 1), (AccessAdvice::Random, 0)] {
        let mut e = Engine::new(Config::new(Policy::Lru)).unwrap();
        let (file, page) = e.add_mapping(MappingKind::File, MemcgId::ROOT, 0..50).unwrap();
        e.advise_access(file, advice);
        e.access(&mut AtOnce::default(), page, Touch::MapRead);
        e.drain_all();
        e.advise(page, refault_mm::Advice::InUse);
        e.drain_all();
        let activations = e.vmstat().iter().find(|(name, _)| *name == "pgactivate").map(|(_, n)| n);
        assert_eq!(activations, Some(activated), "{advice:?}");
    }
}
