//! Curves of known accesses, and any events.

use super::*;
use refault_mm::Policy;
use refault_testing::Rng;

const FILE: Inode = Inode { dev: 8, ino: 12 };

fn curve(limit_pages: u64, most_units: usize, policy: Policy) -> GroupCurve {
    let mut config = Config::new(policy);
    config.readahead.history = true;
    config.memcg.charge_kernel = false;
    let settings = CurveSettings { config, one_in: 1, window_ns: 1 << 40, most_units, is_counted: false };
    GroupCurve::new(settings, limit_pages, 0).expect("a curve")
}

fn read(page: u64) -> Touched {
    Touched { inode: FILE, pages: page..page + 1, via: Via::Fd, write: false, tid: 1 }
}

#[test]
fn a_loop_hits_where_it_fits_and_nowhere_else() {
    let mut group = curve(2000, 1000, Policy::Lru);
    for round in 0..6 {
        for page in 0..3000 {
            // The kernel has it all from the second round on.
            if round == 0 {
                group.add(FILE, page..page + 1, true).expect("room");
            }
            group.touch(&read(page)).expect("room");
        }
        group.validate().expect("consistent");
    }
    let curve = group.curve();
    let rates: Vec<_> = curve.points.iter().map(|point| point.hit_rate).collect();
    assert!(rates[0] < 0.1 && rates[AT_LIMIT] < 0.5, "{rates:?}");
    assert!((rates[14] - 5.0 / 6.0).abs() < 0.01, "{rates:?}");
    assert!((curve.kernel_hit_rate.expect("touches") - 5.0 / 6.0).abs() < 1e-9);
    assert!(curve.points[0].is_filled && !curve.points[14].is_filled);
    assert!(curve.points[0].read_bytes_per_s > curve.points[14].read_bytes_per_s);
}

#[test]
fn pages_met_in_memory_do_not_count_at_first() {
    let mut group = curve(2000, 1000, Policy::Lru);
    (0..500).for_each(|page| group.touch(&read(page)).expect("room"));
    assert_eq!((group.totals.accesses, group.curve().kernel_hit_rate), (0, None));
    (0..500).for_each(|page| group.touch(&read(page)).expect("room"));
    assert_eq!(group.totals, Totals { whole: 0, accesses: 500, misses: 0, reads: 0 });
    // A fault on a page that has to be read: the addition comes after it.
    group.delete(FILE, 7..8);
    let fault = Touched { via: Via::Map, ..read(7) };
    group.touch(&fault).expect("room");
    group.add(FILE, 7..8, true).expect("room");
    assert_eq!(group.totals, Totals { whole: 0, accesses: 501, misses: 1, reads: 1 });
    // A written page is added, and not read.
    group.delete(FILE, 9..10);
    group.touch(&Touched { write: true, ..read(9) }).expect("room");
    group.add(FILE, 9..10, true).expect("room");
    group.touch(&read(9)).expect("room");
    assert_eq!(group.totals, Totals { whole: 0, accesses: 502, misses: 1, reads: 1 });
}

#[test]
fn hits_are_of_all_touches_where_these_are_counted() {
    let mut group = curve(2000, 1000, Policy::Lru);
    group.settings.is_counted = true;
    for page in 0..100 {
        group.add(FILE, page..page + 1, true).expect("room");
        group.touch(&read(page)).expect("room");
    }
    // Touches of pages that are not in the sample: hits, as no page of theirs was read.
    group.counted(1000);
    let curve = group.curve();
    assert_eq!((curve.sampled, curve.counted, group.totals.whole), (100, Some(1000), 1000));
    assert!((curve.kernel_hit_rate.expect("touches") - 0.9).abs() < 1e-9);
    assert!((curve.points[AT_LIMIT].hit_rate - 0.9).abs() < 1e-9);
}

#[test]
fn a_bound_on_units_holds() {
    let mut group = curve(2000, 10, Policy::Mglru);
    for page in 0..64_000 {
        group.touch(&read(page)).expect("room");
    }
    group.validate().expect("consistent");
    assert_eq!(group.units(), 10);
    assert!(group.curve().given_up > 900);
}

#[test]
fn any_events_leave_it_consistent() {
    let mut rng = Rng(3);
    for policy in [Policy::Lru, Policy::Mglru] {
        let mut group = curve(300, 40, policy);
        for step in 0..6000 {
            let mut below = |n: usize| rng.below(n) as u64;
            let inode = Inode { dev: 8, ino: below(6) };
            let (first, pages) = (below(1500), 1 + below(20));
            let pages = first..(first + pages).min(first / 64 * 64 + 64);
            let touched = |via, write| Touched { inode, pages: pages.clone(), via, write, tid: 7 };
            match below(16) {
                0..6 => group.touch(&touched(Via::Fd, false)).expect("room"),
                6..8 => group.touch(&touched(Via::Map, below(4) == 0)).expect("room"),
                8..10 => group.touch(&touched(Via::Fd, true)).expect("room"),
                10..12 => group.add(inode, pages.clone(), below(2) == 0).expect("room"),
                12 => group.delete(inode, pages.clone()),
                13 if step % 9 == 0 => group.freed(inode),
                14 => group.set_besides(below(400)),
                15 if step % 20 == 0 => group.set_limit(50 + below(500)).expect("possible"),
                _ => group.set_now_ns(step * 1_000_000),
            }
            if step % 100 == 0 {
                group.validate().expect("consistent");
                let curve = group.curve();
                assert!(curve.points.iter().all(|point| (0.0..=1.0).contains(&point.hit_rate)));
            }
        }
    }
}
