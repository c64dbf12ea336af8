//! The core on a simulated kernel: seeded runs, in which faults, delays and reorderings are
//! injected.
//!
//! A run has a machine of its own: a [`kernel`] in place of userfaultfd, a store that fails as it
//! is told, threads that touch memory, and a pager whose threads are jobs that go on in any order.
//! All of it follows from one number, so a run that fails fails again:
//!
//! ```text
//! REFAULT_SEED=n cargo test -p refault-pager --lib simulation
//! ```
//!
//! Parts below the core and above it are simulated; the core, the engine and the swap area are
//! those that programs run on. After every step [`checkers`] look at all of it. `REFAULT_LONG=1`
//! runs hundreds of seeds, `REFAULT_SEEDS=n` so many.

mod anonymous;
mod checkers;
mod figures;
mod kernel;
mod owner;
mod profile;
mod random;
mod store;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use self::anonymous::Run;
use self::figures::Figures;
pub(crate) use self::kernel::{Access, Frame, Kernel};
use self::profile::Profile;
pub(crate) use self::profile::Rates;
pub(crate) use self::random::Random;
pub(crate) use self::threads::{Model, Thread};

/// Seeds of a short run, with `REFAULT_LONG=1` as in CI, and with `REFAULT_LONG=all`.
const SEEDS: [u64; 3] = [40, 120, 1000];
/// The first of them.
const FIRST: u64 = 1;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds that are to be run.
pub(crate) fn seeds() -> Vec<u64> {
    match number("REFAULT_SEED") {
        Some(seed) => vec![seed],
        None => {
            let [short, long, all] = SEEDS;
            let n = refault_testing::by_length(short, long, all);
            (FIRST..FIRST + number("REFAULT_SEEDS").unwrap_or(n)).collect()
        }
    }
}

/// Runs a seed; an error says what went wrong, and how it can be had again.
fn run_seed<T>(name: &str, seed: u64, run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(format!("panic: {}", text.unwrap_or_default()))
    });
    result.map_err(|e| format!("seed {seed}: {e}\n  REFAULT_SEED={seed} cargo test -p refault-pager --lib {name}"))
}

/// Runs all seeds, as many at a time as there are processors, and adds up their figures; fails with
/// the seeds that went wrong.
pub(crate) fn run_seeds<T: Send>(name: &str, run: impl Fn(u64) -> Result<T, String> + Sync, mut add: impl FnMut(T)) {
    let (seeds, next) = (seeds(), AtomicUsize::new(0));
    let take = || seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    let work = || std::iter::from_fn(take).map(|seed| run_seed(name, seed, || run(seed))).collect::<Vec<_>>();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a panic of a seed is its result")).collect::<Vec<_>>()
    });
    let mut failed = Vec::new();
    for result in results {
        result.map_or_else(|why| failed.push(why), &mut add);
    }
    assert!(failed.is_empty(), "{} of {} seeds:\n{}", failed.len(), seeds.len(), failed.join("\n"));
}

#[test]
fn anonymous_memory() {
    let mut total = Figures::default();
    run_seeds("anonymous_memory", |seed| Run::new(&Profile::of(seed), seed).run(), |figures| total.add(&figures));
    println!("{} seeds: {total:?}", seeds().len());
    if seeds().len() >= 100 {
        total.check_that_all_was_met();
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in [3, 7, 11] {
        let run = || Run::new(&Profile::of(seed), seed).run().map(|f| f.digest);
        assert_eq!(run(), run(), "seed {seed}");
    }
}
