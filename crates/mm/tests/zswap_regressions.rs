//! Errors of zswap that were found, each by name, and what groups have to do with it.

use crate::model::{Device, Driver, Op};
use refault_mm::{Config, Content, MappingId, MemcgId, MemcgLimits, PageId, Policy, Touch, ZswapConfig};
use refault_mm::{LruConfig, MemcgConfig};

/// The first anonymous page.
const ANON: u32 = 10;
/// A page of this compresses to so much.
const BYTES: u64 = 2040;

fn half(_: PageId, _: u64) -> Content {
    Content::Compressed { bytes: BYTES as u32 }
}

/// 300 pages of anonymous memory in a group of 50, and a pool that they do not fill.
fn driver(device: Device) -> Driver {
    let cfg = Config {
        total_pages: 1000,
        zswap: Some(ZswapConfig::default()),
        lru: LruConfig { batch_folios: 0, swap_cluster_max: 1, ..Config::new(Policy::Lru).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        ..Config::new(Policy::Lru)
    };
    let mut d = Driver::new(cfg, device, ANON, 300, 50, u64::MAX);
    d.world.kind = Some(half);
    d.world.may_be_empty = true;
    d
}

fn counter(d: &Driver, name: &str) -> u64 {
    d.engine.vmstat().iter().find(|(n, _)| *n == name).expect("a counter").1
}

fn gauge(d: &Driver, group: MemcgId, name: &str) -> u64 {
    d.engine.memcg_tree_gauges(group).iter().find(|g| g.name == name).expect("a gauge").value
}

fn touch(d: &mut Driver, touch: Touch, pages: impl IntoIterator<Item = u32>) {
    pages.into_iter().for_each(|p| d.step(Op::Access(ANON + p, touch)).unwrap());
}

fn set(d: &mut Driver, group: MemcgId, change: impl FnOnce(&mut MemcgLimits)) {
    let mut limits = d.engine.memcg_limits(group);
    change(&mut limits);
    d.engine.set_memcg_limits(&mut d.world, group, &limits).expect("a group");
}

/// A fault on a stored page charges a frame; reclaim for it stores another page, for which the
/// group has no room, so zswap writes back its oldest: the page of the fault. It was put into the
/// swap cache twice then.
#[test]
fn a_page_that_its_own_fault_has_written_back_is_in_the_swap_cache_once() {
    let mut d = driver(Device::Slow);
    d.limit_zswap(5, true);
    let (mut met, mut chance) = (0, 1u32);
    for _ in 0..4000 {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let page = PageId(ANON + (chance >> 16) % 100);
        let absent = !d.engine.is_resident(page);
        d.world.swapped_out.clear();
        // Every step checks that the swap cache and the pages know each other.
        touch(&mut d, Touch::MapWrite, [page.0 - ANON]);
        met += u32::from(absent && d.world.swapped_out.contains(&page));
        (0..4).for_each(|_| d.step(Op::Complete(0, true)).unwrap());
    }
    assert!(met > 0, "no fault wrote back its own page");
}

/// Every page that a write-back could not write came back as one that reclaim had to swap out,
/// which made room in zswap by another write-back, and so on without end.
#[test]
fn reclaim_ends_although_every_write_back_fails() {
    let mut d = driver(Device::Instant);
    d.limit_zswap(5, true);
    touch(&mut d, Touch::MapWrite, 0..60);
    d.world.swap_fails = true;
    let before = counter(&d, "zswpwb");
    for p in 60..110 {
        let tries = d.world.swap_tries;
        touch(&mut d, Touch::MapWrite, [p]);
        assert!(d.world.swap_tries - tries < 5000, "page {p}: {} writes tried", d.world.swap_tries - tries);
    }
    assert!(counter(&d, "zswpwb") - before <= 16, "after 16 failures nothing is written back");
    assert!(counter(&d, "write_errors") >= 16);
    d.world.swap_fails = false;
    // One write that goes well is enough to go on.
    (0..4).for_each(|_| touch(&mut d, Touch::MapWrite, 0..110));
    assert!(counter(&d, "zswpwb") - before > 16);
}

/// Stored pages go with their mapping: the bytes, their pages and the order of writing back.
#[test]
fn what_zswap_holds_moves_to_the_new_group() {
    let mut d = driver(Device::Instant);
    touch(&mut d, Touch::MapWrite, 0..90);
    let old = d.group;
    let new = d.engine.add_memcg(MemcgId::ROOT, "/new", u64::MAX, u64::MAX).expect("a group");
    let stored = gauge(&d, old, "zswapped");
    assert!(stored >= 40 && gauge(&d, old, "zswap_bytes") == stored * BYTES);
    let anon = MappingId(1);
    d.engine.move_mapping(&mut d.world, anon, new).expect("it moves");
    d.engine.validate().unwrap();
    assert_eq!((gauge(&d, old, "zswapped"), gauge(&d, old, "zswap_bytes")), (0, 0));
    assert_eq!((gauge(&d, new, "zswapped"), gauge(&d, new, "zswap_bytes")), (stored, stored * BYTES));
    assert_eq!(gauge(&d, new, "kernel"), (stored * BYTES).div_ceil(4096), "its pages are charged there");
    // The limits of the new group hold for it, and those of the old do not.
    set(&mut d, old, |l| l.zswap_max = 0);
    set(&mut d, new, |l| (l.max, l.zswap_max) = (60, 5));
    touch(&mut d, Touch::MapWrite, 0..200);
    touch(&mut d, Touch::MapRead, 0..200);
    assert!(counter(&d, "zswpwb") > 0, "the oldest of what came along is written back");
}

/// `memory.zswap.max` of a group is a limit of what is below it, too.
#[test]
fn zswap_max_of_a_parent_limits_its_children() {
    let mut d = driver(Device::Instant);
    let parent = d.group;
    let child = d.engine.add_memcg(parent, "/g/child", u64::MAX, u64::MAX).expect("a group");
    d.engine.move_mapping(&mut d.world, MappingId(1), child).expect("it moves");
    set(&mut d, parent, |l| l.zswap_max = 4);
    for p in (0..150).chain(0..150) {
        touch(&mut d, Touch::MapWrite, [p]);
        let (own, tree) = (gauge(&d, child, "zswap_bytes"), gauge(&d, parent, "zswap_bytes"));
        assert_eq!(own, tree, "all of it is the child's");
        assert!(tree < 4 * 4096 + BYTES, "page {p}: {tree} bytes");
    }
    assert!(counter(&d, "zswpwb") > 0, "the child's own pages make the room");
    // Without write-back in the parent nothing of the child is written to the device.
    set(&mut d, parent, |l| l.zswap_writeback = false);
    assert_eq!(d.engine.memcg_file(parent, "memory.zswap.writeback").as_deref(), Some("0\n"));
    assert_eq!(d.engine.memcg_file(child, "memory.zswap.writeback").as_deref(), Some("1\n"));
    let written = ["zswpwb", "pswpout"].map(|c| counter(&d, c));
    let mut oom = 0;
    for p in 0..60 {
        touch(&mut d, Touch::MapWrite, [p]);
        oom += u32::from(!d.engine.is_resident(PageId(ANON + p)));
    }
    assert_eq!(["zswpwb", "pswpout"].map(|c| counter(&d, c)), written);
    assert!(oom > 0, "what can neither be stored nor written leaves no room for others");
}
