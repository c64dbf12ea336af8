use refault_trace::generate::Rng;

use super::lock::Lock;
use super::*;

fn holds() -> LockHolds {
    LockHolds {
        lru_page_ns: 30,
        lru_batch: 31,
        swap_device_lock: true,
        slot_cache: false,
        slot_ns: 40,
        zsmalloc_pool_lock: true,
        zsmalloc_ns: 240,
        lock_per_area: true,
    }
}

fn machine(cpus: usize) -> Contention {
    Contention::new(ContentionSpec::default(), holds(), cpus, vec![false, true])
}

#[test]
fn who_comes_while_a_lock_is_held_waits_until_it_is_handed_over() {
    let mut lock = Lock::default();
    assert_eq!(lock.acquire(100, 50, 10), 0);
    // 20 ns are left, then the handover; the third is behind both.
    assert_eq!(lock.acquire(130, 50, 10), 30);
    assert_eq!(lock.acquire(140, 50, 10), 80);
    assert_eq!(lock.acquire(1000, 50, 10), 0);
    assert_eq!(lock.stats(), LockStats { acquisitions: 4, contended: 2, hold_ns: 200, wait_ns: 110 });
    lock.validate().unwrap();
}

#[test]
fn a_request_of_an_earlier_time_takes_the_gap_before_those_that_were_decided_first() {
    let mut lock = Lock::default();
    assert_eq!(lock.acquire(1000, 50, 10), 0);
    assert_eq!(lock.acquire(900, 50, 10), 0);
    // 50 ns are left between the two: too few for 60.
    assert_eq!(lock.acquire(950, 60, 10), 110);
    lock.validate().unwrap();
}

#[test]
fn a_lock_that_is_asked_for_too_much_is_never_idle_and_never_held_twice() {
    let mut rng = Rng::new(3, &[]);
    let mut lock = Lock::default();
    let (mut floor, mut last) = (0, 0);
    for _ in 0..20_000 {
        floor += rng.below(40);
        lock.forget_before(floor);
        let (at, hold) = (floor + rng.below(5_000), 1 + rng.below(100));
        last = last.max(at + lock.acquire(at, hold, 7) + hold);
        lock.validate().unwrap();
    }
    // A million nanoseconds of work in 400,000: it is over when the work is.
    let busy = lock.stats().hold_ns;
    assert!(last >= busy && last < busy + busy / 4, "{last} {busy}");
}

#[test]
fn a_flush_interrupts_the_cpus_that_run_the_program_and_no_other() {
    let mut c = machine(4);
    for (cpu, program) in [(1, Some(1)), (2, Some(0)), (3, None), (0, Some(1))] {
        c.enter(cpu, program, 0);
    }
    let demand = Demand { flushes: vec![vec![1]], ..Demand::default() };
    let costs = InterruptCosts::VIRTUAL;
    assert_eq!(c.wait(0, 0, &demand), costs.wait_ns);
    assert_eq!([0, 1, 2, 3].map(|cpu| c.take_lost_ns(cpu)), [0, costs.lost_ns, 0, 0]);
    // Two CPUs are one more, and the one that is interrupted already answers later.
    let both = Demand { flushes: vec![vec![0, 1]], ..Demand::default() };
    assert_eq!(c.wait(0, 0, &both), costs.lost_ns + costs.wait_ns);
    assert_eq!(c.interrupt_stats().interrupts, 3);
    c.stop(1);
    assert!(c.validate().unwrap_err().contains("runs no program"));
    assert_eq!((c.take_lost_ns(1), c.take_lost_ns(2)), (costs.lost_ns, costs.lost_ns));
    c.validate().unwrap();
}

#[test]
fn slots_are_taken_one_by_one_or_as_many_as_a_cache_has() {
    let demand = Demand { slot_calls: 64, slot_ns: 6_400, slots_freed: vec![(1, 64)], ..Demand::default() };
    let is_of = |step: &ContentionStep<'_>, name| matches!(step, ContentionStep::Hold(n, _) if *n == name);
    let count = |holds: &LockHolds, name| steps(&demand, holds).iter().filter(|s| is_of(s, name)).count();
    let without = LockHolds { zsmalloc_pool_lock: false, ..holds() };
    assert_eq!([0, 1].map(|d| count(&without, LockName::SwapDevice(d))), [64, 64]);
    let cached = LockHolds { slot_cache: true, ..without };
    assert_eq!([0, 1].map(|d| count(&cached, LockName::SwapDevice(d))), [1, 1]);
    assert!(steps(&demand, &cached).contains(&ContentionStep::Hold(LockName::SwapDevice(0), 6_400)));
    // Each cluster has a lock of its own, and each CPU a cluster.
    assert!(steps(&demand, &LockHolds { swap_device_lock: false, ..without }).is_empty());
}

#[test]
fn cpus_that_do_nothing_but_scan_one_list_get_as_much_done_as_its_lock_allows() {
    // 32 pages take 960 ns under the lock and as much again without: one CPU does them in 1920 ns.
    let run = |cpus: usize| {
        let mut c = machine(cpus);
        let mut clocks = vec![0u64; cpus];
        let mut done = 0;
        while let Some((cpu, at)) = clocks.iter().copied().enumerate().min_by_key(|&(_, at)| at) {
            if at > 1_000_000 {
                break;
            }
            c.enter(cpu, None, at);
            let demand = Demand { scanned: 32, ..Demand::default() };
            clocks[cpu] = at + 1920 + c.wait(at, 1920, &demand);
            done += 1;
            c.validate().unwrap();
        }
        done
    };
    assert_eq!(run(1), 521);
    // The lock is free after 960 ns and the handover.
    let many = run(16);
    assert!((800..=860).contains(&many), "{many}");
}

#[test]
fn only_a_program_with_several_threads_waits_to_fault() {
    let mut c = machine(2);
    c.enter(0, Some(0), 0);
    assert_eq!((c.fault(0, 7, 100), c.fault(0, 7, 100)), (0, 0));
    assert_eq!((c.fault(1, 7, 100), c.fault(1, 7, 100), c.fault(1, 8, 100)), (0, 258 + 240, 0));
}
