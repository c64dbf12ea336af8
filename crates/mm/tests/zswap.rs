//! Stores in front of swap: pages of zeros, and zswap.

use crate::model::{Device, Driver, Op};
use refault_mm::{Config, Content, NodeConfig, PageId, Policy, Touch, ZswapConfig, ZswapStats, ZswapStep};
use refault_mm::{LruConfig, MemcgConfig, SwapConfig};

/// The first anonymous page.
const ANON: u32 = 10;

fn half(_: PageId, _: u64) -> Content {
    // Two of them fill a page of the pool.
    Content::Compressed { bytes: 2040 }
}

/// A machine of 100 pages: a pool of at most 20, which accepts again from 18 down.
fn config() -> Config {
    Config {
        total_pages: 100,
        zswap: Some(ZswapConfig::default()),
        lru: LruConfig { batch_folios: 0, swap_cluster_max: 1, ..Config::new(Policy::Lru).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        ..Config::new(Policy::Lru)
    }
}

fn driver(cfg: Config, memory: u64, kind: fn(PageId, u64) -> Content) -> Driver {
    let mut d = Driver::new(cfg, Device::Instant, ANON, 300, memory, u64::MAX);
    d.world.kind = Some(kind);
    d.world.may_be_empty = true;
    d.world.zswap_by_hand = true;
    d
}

fn counter(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_stats(d.group).iter().find(|(n, _)| *n == name).expect("a counter").1
}

fn gauge(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_gauges(d.group).iter().find(|g| g.name == name).expect("a gauge").value
}

fn stats(d: &Driver) -> ZswapStats {
    d.engine.zswap_stats().expect("zswap is on")
}

fn pool_pages(d: &Driver) -> u64 {
    stats(d).pool_total_size / 4096
}

fn touch(d: &mut Driver, touch: Touch, pages: impl IntoIterator<Item = u32>) {
    pages.into_iter().for_each(|p| d.step(Op::Access(ANON + p, touch)).unwrap());
}

#[test]
fn pages_of_zeros_are_swapped_without_io() {
    for zswap in [None, Some(ZswapConfig::default())] {
        let mut d = driver(Config { zswap, ..config() }, 40, |_, _| Content::Zero);
        touch(&mut d, Touch::MapWrite, 0..100);
        touch(&mut d, Touch::MapRead, 0..100);
        let [out, back] = ["swpout_zero", "swpin_zero"].map(|c| counter(&d, c));
        assert!(out >= 60 && back >= 60, "{out} out, {back} back");
        let io = ["pswpout", "pswpin", "nr_written", "zswpout"].map(|c| counter(&d, c));
        assert_eq!(io, [0; 4]);
        assert!(gauge(&d, "swap.current") > 0, "they have slots");
    }
}

#[test]
fn a_page_that_is_no_longer_zeros_is_written() {
    // Every second version is zeros.
    let mut d = driver(Config { zswap: None, ..config() }, 40, |_, v| match v % 2 {
        0 => Content::Zero,
        _ => Content::Compressed { bytes: 4096 },
    });
    for _ in 0..4 {
        touch(&mut d, Touch::MapWrite, 0..100);
    }
    assert!(counter(&d, "pswpout") > 50 && counter(&d, "swpout_zero") > 50);
}

#[test]
fn once_full_the_pool_takes_nothing_until_it_is_below_the_threshold() {
    let mut d = driver(config(), 50, half);
    touch(&mut d, Touch::MapWrite, 0..200);
    assert_eq!((counter(&d, "zswpout"), pool_pages(&d)), (39, 20), "two a page, until the pool has 20 pages");
    assert!(stats(&d).pool_limit_hit > 0 && counter(&d, "pswpout") > 0);
    let (mut refused_between, mut taken) = (0, 0);
    let stored = d.world.stored.clone();
    for page in stored {
        // The page leaves the pool, and room for it is made of others.
        let before = ["zswpout", "pswpout"].map(|c| counter(&d, c));
        let was = pool_pages(&d);
        touch(&mut d, Touch::MapRead, [page.0 - ANON]);
        let [stored, written] = [counter(&d, "zswpout") - before[0], counter(&d, "pswpout") - before[1]];
        if stored > 0 {
            assert!(was <= 18, "taken with {was} pages in the pool");
            taken += stored;
            break;
        }
        refused_between += u64::from(written > 0 && was < 20);
    }
    assert!(refused_between > 0, "below the limit, and still refused");
    assert!(taken > 0, "below the threshold it takes pages again");
}

#[test]
fn write_back_spares_every_page_once_and_then_takes_the_oldest() {
    let mut d = driver(config(), 50, half);
    touch(&mut d, Touch::MapWrite, 0..200);
    let stored = d.world.stored.clone();
    let mut wakes = 0;
    let written = loop {
        // The refused pages wake the worker; what it writes comes after.
        touch(&mut d, Touch::MapWrite, 200 + wakes..201 + wakes);
        wakes += 1;
        d.world.swapped_out.clear();
        while d.engine.zswap_step(&mut d.world) == ZswapStep::Again {}
        d.engine.validate().unwrap();
        if !d.world.swapped_out.is_empty() {
            break d.world.swapped_out.clone();
        }
    };
    // 16 fruitless visits a run: the first two spare 32 pages, the third the other 7.
    assert_eq!(wakes, 3);
    // Room for the pages was made of others, which the pool did not take.
    let written: Vec<PageId> = written.into_iter().filter(|p| stored.contains(p)).collect();
    assert_eq!(written, stored[..3], "oldest first, down to 18 pages");
    assert_eq!((pool_pages(&d), counter(&d, "zswpwb"), stats(&d).written_back_pages), (18, 3, 3));
}

#[test]
fn a_page_that_was_written_back_is_read_from_the_device() {
    let mut d = driver(config(), 50, half);
    d.world.zswap_by_hand = false;
    touch(&mut d, Touch::MapWrite, 0..290);
    assert!(counter(&d, "zswpwb") > 0);
    let (first, last) = (d.world.stored[0].0 - ANON, d.world.stored[d.world.stored.len() - 1].0 - ANON);
    let io = |d: &Driver| ["pswpin", "zswpin"].map(|c| counter(d, c));
    assert_eq!(io(&d), [0, 0]);
    touch(&mut d, Touch::MapRead, [last]);
    assert_eq!(io(&d), [0, 1]);
    touch(&mut d, Touch::MapRead, [first]);
    assert_eq!(io(&d), [1, 1]);
}

#[test]
fn what_cannot_be_compressed_goes_to_the_device() {
    let mut d = driver(config(), 50, |_, _| Content::Compressed { bytes: 4096 });
    touch(&mut d, Touch::MapWrite, 0..200);
    let s = stats(&d);
    assert_eq!((s.stored_pages, s.pool_total_size, s.pool_limit_hit), (0, 0, 0));
    assert_eq!(s.reject_compress_poor, counter(&d, "pswpout"));
    assert_eq!(d.engine.take_work().compressed, s.reject_compress_poor, "the attempt costs all the same");
}

#[test]
fn a_group_stays_below_its_zswap_max_and_writes_back_its_own() {
    {
        let mut d = driver(config(), 50, half);
        d.limit_zswap(5, true);
        for round in 0..3 {
            for p in 0..100 {
                touch(&mut d, Touch::MapWrite, [p]);
                assert!(gauge(&d, "zswap_bytes") < 5 * 4096 + 2040, "round {round}, page {p}");
            }
        }
        assert!(counter(&d, "zswpwb") > 0);
        assert_eq!(stats(&d).pool_limit_hit, 0, "the pool has room");
        d.limit_zswap(0, true);
        let taken = counter(&d, "zswpout");
        // Each store makes room first, and finds that there is none at 0 once all is written back.
        (0..3).for_each(|_| touch(&mut d, Touch::MapWrite, 0..100));
        assert!(counter(&d, "zswpout") > taken || gauge(&d, "zswapped") == 0);
    }
}

#[test]
fn without_write_back_nothing_reaches_the_device() {
    // Every fourth page cannot be compressed: it stays in memory.
    let mut d = driver(config(), 60, |p, _| match p.0 % 4 {
        0 => Content::Compressed { bytes: 4096 },
        _ => Content::Compressed { bytes: 100 },
    });
    d.limit_zswap(u64::MAX, false);
    touch(&mut d, Touch::MapWrite, 0..150);
    assert!(counter(&d, "zswpout") > 0 && stats(&d).reject_compress_poor > 0);
    assert_eq!((counter(&d, "pswpout"), counter(&d, "zswpwb")), (0, 0));
    let stay = (ANON..ANON + 150).filter(|p| p % 4 == 0);
    assert!(stay.into_iter().all(|p| d.engine.is_resident(PageId(p))));
}

#[test]
fn compressed_bytes_are_charged_and_the_pool_takes_frames() {
    let node = NodeConfig { low_zones: [0, 0], min_free_kbytes: Some(0), ..NodeConfig::new(400) };
    let mut d = driver(Config { node: Some(node), ..config() }, 50, half);
    touch(&mut d, Touch::MapWrite, 0..100);
    let lists: u64 = ["inactive_anon", "active_anon"].iter().map(|l| gauge(&d, l)).sum();
    let bytes = gauge(&d, "zswapped") * 2040;
    assert_eq!(gauge(&d, "zswap_bytes"), bytes);
    assert!(bytes > 0);
    assert_eq!(gauge(&d, "memory.current"), lists + bytes.div_ceil(4096));
    assert_eq!(gauge(&d, "kernel"), bytes.div_ceil(4096));
    assert_eq!(d.engine.free_pages(), 400 - lists - pool_pages(&d));
}

#[test]
fn a_write_back_that_fails_keeps_the_page() {
    let mut d = driver(config(), 50, half);
    d.world.zswap_by_hand = false;
    touch(&mut d, Touch::MapWrite, 0..80);
    d.world.swap_fails = true;
    // The contents are checked at every access.
    touch(&mut d, Touch::MapWrite, 80..110);
    touch(&mut d, Touch::MapRead, 0..60);
    assert!(counter(&d, "write_errors") > 0);
    d.world.swap_fails = false;
    (0..3).for_each(|_| touch(&mut d, Touch::MapRead, 0..110));
}

#[test]
fn an_entry_lives_no_longer_than_its_slot() {
    let mut d = driver(config(), 50, half);
    touch(&mut d, Touch::MapWrite, 0..80);
    assert!(stats(&d).stored_pages > 0);
    d.step(Op::Exit).unwrap();
    assert_eq!((stats(&d).stored_pages, stats(&d).pool_total_size, gauge(&d, "zswap_bytes")), (0, 0, 0));
    assert_eq!((gauge(&d, "swap.current"), gauge(&d, "memory.current")), (0, 0));
}

#[test]
fn a_page_that_zswap_gave_back_is_dirty() {
    // The device has a queue, so the slot is kept; but nothing is in it any more.
    let mut d =
        driver(Config { swap: SwapConfig { synchronous: false, ..config().swap.clone() }, ..config() }, 50, half);
    touch(&mut d, Touch::MapWrite, 0..60);
    let stored = counter(&d, "zswpout");
    touch(&mut d, Touch::MapRead, 0..60);
    touch(&mut d, Touch::MapRead, 0..60);
    let [out, back] = ["zswpout", "zswpin"].map(|c| counter(&d, c));
    assert!(back > 20 && out >= stored + back - 20, "{stored} stored, {back} back, {out} stored in all");
    assert_eq!(counter(&d, "pswpout"), 0);
}

#[test]
fn pages_of_one_word_take_no_memory_where_they_are_looked_for() {
    for same_filled in [true, false] {
        let zswap = Some(ZswapConfig { same_filled, ..ZswapConfig::default() });
        let mut d = driver(Config { zswap, ..config() }, 50, |_, _| Content::SameFilled);
        touch(&mut d, Touch::MapWrite, 0..200);
        let s = stats(&d);
        assert!(s.stored_pages > 100);
        match same_filled {
            true => assert_eq!((s.same_filled_pages, s.pool_total_size), (s.stored_pages, 0)),
            false => assert_eq!((s.same_filled_pages, s.pool_total_size / 4096), (0, s.stored_pages.div_ceil(256) * 3)),
        }
    }
}
