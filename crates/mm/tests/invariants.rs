//! The named invariants of the mechanisms, one test each, and regressions.

use crate::model::{Device, Driver, Op};
use refault_mm::{Config, Policy, Touch};
use refault_mm::{FaultAroundConfig, LruConfig, MemcgConfig, ShadowConfig};
use refault_testing::short_or_long;

fn driver(policy: Policy, memory: u64) -> Driver {
    let cfg = Config {
        lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        fault_around: FaultAroundConfig { pages: 1, ..FaultAroundConfig::default() },
        ..Config::new(policy)
    };
    Driver::new(cfg, Device::Instant, 300, 100, memory, u64::MAX)
}

fn counter(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_stats(d.group).iter().find(|(n, _)| *n == name).expect("a counter").1
}

fn gauge(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_gauges(d.group).iter().find(|g| g.name == name).expect("a gauge").value
}

fn read(d: &mut Driver, pages: impl IntoIterator<Item = u32>) {
    pages.into_iter().for_each(|p| d.step(Op::Access(p, Touch::Read)).unwrap());
}

fn map(d: &mut Driver, pages: impl IntoIterator<Item = u32>) {
    pages.into_iter().for_each(|p| d.step(Op::Access(p, Touch::MapRead)).unwrap());
}

#[test]
fn i2_1_one_read_by_descriptor_never_activates() {
    for policy in [Policy::Lru, Policy::LruNone, Policy::Lru2013, Policy::LruShadow] {
        let mut d = driver(policy, 100);
        read(&mut d, 0..300);
        assert_eq!((counter(&d, "pgactivate"), gauge(&d, "active_file")), (0, 0), "{policy}");
        read(&mut d, 290..291);
        assert_eq!(gauge(&d, "active_file"), 1, "{policy}: the second read of a resident page does");
    }
}

#[test]
fn i2_2_a_faulted_page_is_kept_once_a_read_page_is_not() {
    let mut d = driver(Policy::Lru, 100);
    map(&mut d, 0..1);
    read(&mut d, 1..100);
    // The first pass over the tail takes 32 pages: page 0 is young and kept, the read ones behind
    // it go.
    read(&mut d, 100..101);
    assert!(d.engine.is_resident(refault_mm::PageId(0)));
    assert!(!d.engine.is_resident(refault_mm::PageId(1)));
    // It comes round once more, and is not young any longer.
    read(&mut d, 101..250);
    assert!(!d.engine.is_resident(refault_mm::PageId(0)));
}

#[test]
fn i3_4_shadow_nodes_stay_within_their_share() {
    let pages = short_or_long(8_000, 20_000);
    let mut d = {
        let cfg = Config {
            shadow: ShadowConfig { eviction_bits_max: 64, ..ShadowConfig::default() },
            ..Config::new(Policy::Lru)
        };
        Driver::new(cfg, Device::Instant, pages, 1, 400, u64::MAX)
    };
    read(&mut d, 0..pages);
    let pages = gauge(&d, "inactive_file") + gauge(&d, "active_file") + gauge(&d, "slab_reclaimable_bytes") / 4096;
    assert!(counter(&d, "workingset_nodereclaim") > 0);
    // Half of the excess is taken, in batches of 128: an excess of up to 256 waits for its turn.
    assert!(
        gauge(&d, "workingset_nodes") <= (pages >> 3) + 256,
        "{} nodes, {pages} pages",
        gauge(&d, "workingset_nodes")
    );
}

#[test]
fn i3_5_under_rfc_v3_activations_leave_the_clock_alone() {
    for (policy, moves) in [(Policy::Lru, true), (Policy::LruShadow, false)] {
        let mut d = driver(policy, 100);
        read(&mut d, 0..50);
        read(&mut d, 0..50);
        assert_eq!(gauge(&d, "active_file"), 50);
        assert_eq!(gauge(&d, "nonresident_age") > 0, moves, "{policy}");
    }
}

#[test]
fn i5_4_idle_anon_is_swapped_out_under_rfc_v3_only() {
    let run = |policy| {
        let mut d = driver(policy, 200);
        (300..360).for_each(|p| d.step(Op::Access(p, Touch::MapWrite)).unwrap());
        // Four readers of uneven speed go round a set that does not fit.
        let mut at = [0u32, 60, 120, 180];
        for step in 0..short_or_long(15_000, 60_000u32) {
            let r = [0, 0, 0, 0, 1, 1, 2, 3][(step.wrapping_mul(2_654_435_761) >> 29) as usize];
            at[r] = (at[r] + 1) % 250;
            read(&mut d, [at[r]]);
        }
        (counter(&d, "pswpout"), counter(&d, "pgsteal_file"))
    };
    let (before, after) = (run(Policy::Mglru), run(Policy::MglruShadow));
    assert!(after.1 < before.1, "file evictions: before {before:?}, after {after:?}");
}

/// A write whose page starts the flusher was taken for written before its content was there.
#[test]
fn regression_a_write_that_starts_the_flusher_is_not_lost() {
    let mut d = driver(Policy::Lru, 60);
    for round in 0..20 {
        (0..50).for_each(|p| d.step(Op::Access((p * 7 + round) % 300, Touch::Write)).unwrap());
    }
    assert!(counter(&d, "nr_written") > 0);
}

/// Aging again while a promoted folio still stands on its old list is no inconsistency.
#[test]
fn regression_a_promoted_folio_may_wait_on_an_old_list() {
    let mut d = driver(Policy::Mglru, 200);
    map(&mut d, 0..40);
    for _ in 0..6 {
        d.step(Op::Age(true)).unwrap();
        map(&mut d, 0..20);
    }
}

/// A page that was swapped in and then advised free counted as dirty, and nothing could clean it:
/// it stayed for ever.
#[test]
fn regression_a_page_advised_free_after_swap_in_can_be_freed() {
    let mut d = driver(Policy::Lru, 60);
    let write = |d: &mut Driver, pages: std::ops::Range<u32>| {
        pages.for_each(|p| d.step(Op::Access(p, Touch::MapWrite)).unwrap());
    };
    write(&mut d, 300..380);
    map(&mut d, 300..305);
    (300..305).for_each(|p| d.step(Op::Advise(p, refault_mm::Advice::Free)).unwrap());
    write(&mut d, 305..380);
    write(&mut d, 305..380);
    assert_eq!(counter(&d, "pglazyfreed"), 5);
}

/// A group of fewer pages than a batch ran out of memory: its lists were empty, so nothing drained
/// the batches.
#[test]
fn regression_a_group_smaller_than_a_batch_is_reclaimed() {
    for policy in Policy::ALL {
        let mut d = Driver::new(Config::new(policy), Device::Instant, 300, 1, 10, u64::MAX);
        read(&mut d, 0..100);
        assert_eq!(d.engine.memcg_events(d.group).oom, 0, "{policy}");
        assert_eq!(counter(&d, "pgalloc"), 100, "{policy}");
    }
}
