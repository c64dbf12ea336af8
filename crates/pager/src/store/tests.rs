//! Stores against a model, alone and under faults.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use refault_testing::{Need, absent};

use super::*;
use crate::calls::{Call, CallFault, CallPlan};

/// A page by number: noise, half noise, repeated words, or text that compresses well.
fn content(seed: u32) -> Box<Page> {
    let mut page = Box::new([0; PAGE]);
    let mut x = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    match seed % 4 {
        0 => page.as_chunks_mut::<8>().0.fill(next().to_ne_bytes()),
        kind => {
            let noisy = [0, PAGE, PAGE / 2, PAGE / 16][kind as usize];
            page[..noisy].iter_mut().for_each(|b| *b = next() as u8);
            page[noisy..].iter_mut().enumerate().for_each(|(i, b)| *b = (i as u32 / 64 + seed) as u8);
        }
    }
    page
}

fn file(slots: u32) -> FileStore {
    FileStore::new(Path::new(env!("CARGO_MANIFEST_DIR")), slots).unwrap()
}

fn stores() -> Vec<(&'static str, SwapArea)> {
    let pool = |codec, bytes| Pool::new(codec, bytes).unwrap();
    vec![
        ("lz4", SwapArea::new(Box::new(pool(Codec::Lz4, 1 << 20)))),
        ("zstd", SwapArea::new(Box::new(pool(Codec::Zstd, 1 << 20)))),
        ("a pool that is soon full", SwapArea::new(Box::new(pool(Codec::Lz4, 64 << 10)))),
        ("file", SwapArea::new(Box::new(file(64)))),
        ("a file that is soon full", SwapArea::new(Box::new(file(16)))),
        ("both", SwapArea::new(Box::new(TieredStore::new(pool(Codec::Lz4, 64 << 10), file(64))))),
        ("both full", SwapArea::new(Box::new(TieredStore::new(pool(Codec::Lz4, 64 << 10), file(16))))),
        ("adapting", SwapArea::new(Box::new(TieredStore::adapting(pool(Codec::Lz4, 128 << 10), file(64))))),
        ("adapting, full", SwapArea::new(Box::new(TieredStore::adapting(pool(Codec::Lz4, 64 << 10), file(16))))),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Write(u32, u32),
    Read(u32),
    Free(u32),
    /// Limit of the pool, in bytes.
    Limit(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..48u32, prop_oneof![any::<u32>(), 0..4u32]).prop_map(|(slot, seed)| Op::Write(slot, seed)),
        2 => (0..48u32).prop_map(Op::Read),
        1 => (0..48u32).prop_map(Op::Free),
        1 => (0..128usize << 10).prop_map(Op::Limit),
    ];
    prop::collection::vec(op, 1..300)
}

/// Carries out the operations on an area and a model. A write may fail for want of room, and then
/// the slot is empty.
fn check(name: &str, area: &SwapArea, ops: &[Op]) {
    let mut model: HashMap<u32, Box<Page>> = HashMap::new();
    let mut page = Box::new([0; PAGE]);
    for op in ops {
        match *op {
            Op::Write(slot, seed) => match area.write(slot, slot + 1000, &content(seed)) {
                Ok(()) => _ = model.insert(slot, content(seed)),
                Err(StoreError::Full) if name.contains("full") => _ = model.remove(&slot),
                Err(e) => panic!("{name}: {e}"),
            },
            Op::Read(slot) => match (model.get(&slot), area.read(slot, slot + 1000, &mut page)) {
                (Some(expected), Ok(())) => assert_eq!(expected, &page, "{name}"),
                (None, Err(StoreError::Absent)) => {}
                (expected, got) => panic!("{name}: slot {slot}: {got:?}, expected {}", expected.is_some()),
            },
            Op::Free(slot) => {
                area.free(slot);
                model.remove(&slot);
            }
            Op::Limit(bytes) if name.contains("adapting") => {
                area.set_pool_limit(bytes);
                while !name.contains("full") && area.wants_tending() {
                    area.tend();
                }
                area.tend();
            }
            Op::Limit(_) => {}
        }
    }
    let stats = area.stats();
    let filled = model.values().filter(|p| p[8..] == p[..PAGE - 8]).count() as u64;
    assert_eq!((stats.pages, stats.same_filled), (model.len() as u64, filled));
    assert_eq!(stats.usage.pool_pages + stats.usage.file_pages + stats.same_filled, stats.pages, "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stores_give_back_what_they_got(ops in ops()) {
        stores().iter().for_each(|(name, area)| check(name, area, &ops));
    }

    #[test]
    fn the_pool_keeps_its_lists_in_order(ops in ops()) {
        let pool = Pool::new(Codec::Lz4, 128 << 10).unwrap();
        let tiers = TieredStore::adapting(Pool::new(Codec::Lz4, 64 << 10).unwrap(), file(48));
        for op in ops {
            match op {
                Op::Write(slot, seed) => {
                    _ = pool.write(slot, &content(seed));
                    tiers.write(slot, &content(seed)).unwrap();
                }
                Op::Read(slot) => _ = tiers.read(slot, &mut content(0)),
                Op::Free(slot) => [&pool as &dyn Store, &tiers].map(|s| s.free(slot)).iter().for_each(|()| ()),
                Op::Limit(bytes) => {
                    tiers.set_pool_limit(bytes);
                    tiers.tend();
                    tiers.tuner().validate();
                }
            }
            pool.validate();
            tiers.pool().validate();
        }
    }

    /// A store that fails gives back what was written last, or an error.
    #[test]
    fn no_fault_gets_through(ops in ops(), faults in prop::collection::vec(0..40u8, 300)) {
        use Fault::*;
        const ALL: [Fault; 7] =
            [ReadFails, ReadFlipsABit, ReadIsStale, WriteFails, WriteIsFull, WriteIsTorn, WriteIsLost];
        let faulty = |faults: &Vec<u8>| {
            let faults = faults.clone();
            Faulty::new(move |n, _| faults.get(n as usize).and_then(|&f| ALL.get(usize::from(f)).copied()))
        };
        let before_it = Pool::new(Codec::Lz4, 64 << 10).unwrap();
        let areas: [Box<dyn Store>; 2] =
            [Box::new(faulty(&faults)), Box::new(TieredStore::adapting(before_it, faulty(&faults)))];
        for area in areas.map(SwapArea::new) {
            let mut model: HashMap<u32, Box<Page>> = HashMap::new();
            let mut page = Box::new([0; PAGE]);
            for op in &ops {
                match *op {
                    Op::Write(slot, seed) => {
                        model.remove(&slot);
                        if area.write(slot, slot, &content(seed)).is_ok() {
                            model.insert(slot, content(seed));
                        }
                    }
                    Op::Read(slot) => {
                        if area.read(slot, slot, &mut page).is_ok() {
                            prop_assert_eq!(Some(&page), model.get(&slot));
                        }
                    }
                    Op::Free(slot) => {
                        area.free(slot);
                        model.remove(&slot);
                    }
                    Op::Limit(bytes) => {
                        area.set_pool_limit(bytes);
                        area.tend();
                    }
                }
            }
        }
    }
}

#[test]
fn each_fault_is_found() {
    use Fault::*;
    for (fault, of_write) in [
        (ReadFails, false),
        (ReadFlipsABit, false),
        (ReadIsStale, false),
        (WriteFails, true),
        (WriteIsFull, true),
        (WriteIsTorn, true),
        (WriteIsLost, true),
    ] {
        // Operations: two writes, then a read.
        let at = if of_write { 1 } else { 2 };
        let area = SwapArea::new(Box::new(Faulty::new(move |n, _| (n == at).then_some(fault))));
        area.write(3, 7, &content(1)).unwrap();
        let written = area.write(3, 7, &content(2));
        let read = area.read(3, 7, &mut content(0));
        assert!(written.is_err() || read.is_err(), "{fault:?}: {written:?} {read:?}");
        let s = area.stats();
        let expected = match fault {
            ReadFlipsABit | ReadIsStale | WriteIsTorn | WriteIsLost => (1, 0, 0),
            ReadFails => (0, 1, 0),
            // The slot is empty then.
            _ => (0, 1, 1),
        };
        assert_eq!((s.corrupt, s.read_errors, s.write_errors), expected, "{fault:?}");
    }
}

#[test]
fn a_slot_with_another_page_is_an_error() {
    let area = SwapArea::new(Box::new(Pool::new(Codec::Lz4, 1 << 20).unwrap()));
    area.write(1, 10, &content(1)).unwrap();
    assert!(matches!(area.read(1, 11, &mut content(0)), Err(StoreError::Corrupt(_))));
    area.read(1, 10, &mut content(0)).unwrap();
}

#[test]
fn pages_of_one_word_take_no_room_in_the_store() {
    let area = SwapArea::new(Box::new(Pool::new(Codec::Lz4, 1 << 20).unwrap()));
    for slot in 0..64 {
        area.write(slot, slot, &content(slot * 4)).unwrap();
    }
    let s = area.stats();
    assert_eq!((s.same_filled, s.usage.pool_pages), (64, 0));
}

#[test]
fn what_the_pool_has_no_room_for_goes_on_to_the_file_coldest_first() {
    let tiers = TieredStore::new(Pool::new(Codec::Lz4, 64 << 10).unwrap(), file(1000));
    (0..200).for_each(|slot| tiers.write(slot, &content(slot * 4 + 2)).unwrap());
    let u = tiers.usage();
    assert!(u.file_pages > 100 && u.pool_pages > 10, "{u:?}");
    assert_eq!(u.file_pages + u.pool_pages, 200);
    // The last ones are in memory.
    assert!(tiers.pool().coldest(1)[0].0 > 100);
    // A page that does not get smaller goes to the file at once and pushes nothing out.
    tiers.write(500, &content(401)).unwrap();
    assert_eq!(tiers.usage(), Usage { file_pages: u.file_pages + 1, memory_bytes: tiers.usage().memory_bytes, ..u });
    let mut page = content(0);
    (0..200).for_each(|slot| {
        tiers.read(slot, &mut page).unwrap();
        assert_eq!(page, content(slot * 4 + 2));
    });
}

/// Batches and runs over both tiers, in any mix of what is in the pool, below, of noise, and
/// written again.
#[test]
fn runs_over_both_tiers_are_as_page_by_page() {
    let tiers = TieredStore::new(Pool::new(Codec::Lz4, 64 << 10).unwrap(), file(4096));
    assert!(tiers.takes_runs());
    let mut held = HashMap::new();
    for round in 0..40u32 {
        let first = round.wrapping_mul(37) % 160;
        let pages: Vec<(u32, PageBuf)> =
            (0..48).map(|i| (first + i, PageBuf(*content((round * 48 + i) * 4 + i % 2 + 1)))).collect();
        let batch: Vec<(u32, &Page)> = pages.iter().map(|(slot, page)| (*slot, &page.0)).collect();
        assert!(tiers.write_many(&batch).iter().all(Result::is_ok));
        held.extend(pages);
        let mut back = vec![PageBuf::default(); 48];
        let mut refs: Vec<&mut Page> = back.iter_mut().map(|b| &mut b.0).collect();
        tiers.read_run(first, &mut refs).unwrap();
        (0..48).for_each(|i| assert_eq!(back[i].0, held[&(first + i as u32)].0, "slot {}", first + i as u32));
        tiers.pool().validate();
    }
    let u = tiers.usage();
    assert!(u.pool_pages > 0 && u.written_back > 0 && u.file_pages + u.pool_pages == held.len() as u64, "{u:?}");
    held.remove(&100);
    tiers.free(100);
    let mut page = content(0);
    assert!(matches!(tiers.read_run(100, &mut [&mut page]), Err(StoreError::Absent)));
    for (slot, expected) in held {
        tiers.read(slot, &mut page).unwrap();
        assert_eq!(*page, expected.0, "slot {slot}");
    }
}

#[test]
fn threads_use_different_slots_of_both_tiers() {
    let tiers = TieredStore::new(Pool::new(Codec::Lz4, 64 << 10).unwrap(), file(4096));
    let area = SwapArea::new(Box::new(tiers));
    std::thread::scope(|s| {
        for t in 0..4u32 {
            let area = &area;
            s.spawn(move || {
                let mut page = content(0);
                let mut held = HashMap::new();
                for i in 0..3000u32 {
                    let slot = (i.wrapping_mul(2_654_435_761) >> 20) % 64 * 4 + t;
                    match held.get(&slot) {
                        Some(&seed) if i % 3 > 0 => {
                            area.read(slot, slot, &mut page).unwrap();
                            assert_eq!(page, content(seed), "slot {slot}");
                            if i % 3 == 1 {
                                area.free(slot);
                                held.remove(&slot);
                            }
                        }
                        _ => {
                            let seed = (i * 4 + t) | 1;
                            area.write(slot, slot, &content(seed)).unwrap();
                            held.insert(slot, seed);
                        }
                    }
                }
            });
        }
    });
    assert!(area.stats().usage.written_back > 0);
}

#[test]
fn the_file_has_no_name_and_is_its_owners_alone() {
    let store = file(8);
    store.write(0, &content(1)).unwrap();
    assert_eq!(store.mode_and_links(), (0o600, 0));
}

/// Batches of any size, whatever the file is written by: as page by page, with slots beyond the end
/// and pages that are not aligned.
#[test]
fn a_batch_is_written_as_page_by_page() {
    for swap_io in [SwapIo::Calls, SwapIo::Ring] {
        let store = FileStore::with_io(&std::env::temp_dir(), 300, swap_io).unwrap();
        if store.swap_io() != swap_io {
            absent(Need::IoUring, "a store that asked for it has none");
            continue;
        }
        let pages: Vec<PageBuf> = (0..200).map(|i| PageBuf(*content(i * 4 + 1))).collect();
        for (from, n, step) in [(0u32, 1usize, 1u32), (5, 8, 1), (100, 130, 1), (0, 64, 4), (290, 20, 1), (3, 100, 2)] {
            let slots: Vec<u32> = (0..n as u32).rev().map(|i| from + i * step).collect();
            let odd = Box::new((0u8, *content(7)));
            let page = |i: usize| if i == 3 { &odd.1 } else { &pages[i].0 };
            let batch: Vec<(u32, &Page)> = slots.iter().enumerate().map(|(i, &s)| (s, page(i))).collect();
            let results = store.write_many(&batch);
            let mut back = content(0);
            for ((slot, page), result) in batch.iter().zip(&results) {
                match *slot < 300 {
                    true => {
                        assert!(result.is_ok(), "{swap_io:?}: slot {slot}: {result:?}");
                        store.read(*slot, &mut back).unwrap();
                        assert_eq!(&*back, *page, "{swap_io:?}: slot {slot}");
                    }
                    false => assert!(matches!(result, Err(StoreError::Full)), "{result:?}"),
                }
            }
        }
    }
}

/// Pages that are polled for are those that were written, also by several at a time, and they are
/// counted.
#[test]
fn reads_that_are_polled_for_are_right() {
    let store = file(256).polling();
    (0..256).for_each(|slot| store.write(slot, &content(slot)).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let store = &store;
            scope.spawn(move || {
                let mut back = PageBuf::default();
                let mut run = [PageBuf::default(), PageBuf::default(), PageBuf::default()];
                for i in 0..500u32 {
                    let slot = (i * 7 + thread * 64) % 253;
                    store.read(slot, &mut back.0).unwrap();
                    assert_eq!(back.0, *content(slot));
                    let mut pages: Vec<&mut Page> = run.iter_mut().map(|p| &mut p.0).collect();
                    store.read_run(slot, &mut pages).unwrap();
                    (0..3).for_each(|n| assert_eq!(run[n as usize].0, *content(slot + n)));
                }
            });
        }
    });
    let odd = &mut Box::new((0u8, [0; PAGE])).1;
    store.read(5, odd).unwrap();
    assert_eq!(*odd, *content(5));
    let (usage, most) = (store.usage(), 4001);
    let p = usage.polling;
    if p == PollingStats::default() {
        absent(Need::IoUring, "a store that asked for it has none");
        return;
    }
    assert!(p.polled + p.in_vain + p.slept <= most && p.polled + p.in_vain > 0, "{p:?}");
    assert!(usage.memory_bytes > file(256).usage().memory_bytes);
}

#[test]
fn without_io_uring_nothing_is_polled_for() {
    for fault in [CallFault::Fails(libc::ENOSYS), CallFault::Fails(libc::EPERM)] {
        let plan = CallPlan::new(move |call, _| (call == Call::RingSetup).then_some(fault));
        let _entered = plan.enter();
        let store = file(8).polling();
        store.write(3, &content(3)).unwrap();
        let mut back = content(0);
        (0..10).for_each(|_| store.read(3, &mut back).unwrap());
        assert_eq!(*back, *content(3));
        assert_eq!(store.usage().polling.polled, 0);
    }
}

/// Reads that were handed to the kernel are waited for, whatever the calls say; others are read in
/// another way.
#[test]
fn calls_of_polled_reads_may_fail() {
    let faults = [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::EINVAL, libc::ENOMEM]
        .into_iter()
        .flat_map(|e| [CallFault::Fails(e), CallFault::DoneButFails(e)]);
    for fault in faults {
        let plan = CallPlan::new(move |call, n| (call == Call::RingEnter && n % 2 == 0).then_some(fault));
        let _entered = plan.enter();
        let store = file(8).polling();
        store.write(3, &content(3)).unwrap();
        for _ in 0..20 {
            let mut back = PageBuf::default();
            store.read(3, &mut back.0).unwrap();
            assert_eq!(back.0, *content(3), "{fault:?}");
        }
    }
}

#[test]
fn areas_take_batches_with_pages_of_one_word_and_faults() {
    let area = SwapArea::new(Box::new(Faulty::new(|n, _| (n == 2).then_some(Fault::WriteFails))));
    let pages: Vec<Box<Page>> = [1u32, 4, 5, 9, 8].map(content).to_vec();
    let batch: Vec<(u32, u32, &Page)> =
        pages.iter().enumerate().map(|(i, p)| (i as u32, i as u32 + 50, &**p)).collect();
    let results = area.write_many(&batch);
    // The last of the three that reach the store fails.
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false, true]);
    let mut back = content(0);
    for (slot, page, expected) in batch {
        match slot == 3 {
            true => assert!(matches!(area.read(slot, page, &mut back), Err(StoreError::Absent))),
            false => {
                area.read(slot, page, &mut back).unwrap();
                assert_eq!(&*back, expected);
            }
        }
    }
    assert_eq!((area.stats().pages, area.stats().same_filled, area.stats().write_errors), (4, 2, 1));
}
