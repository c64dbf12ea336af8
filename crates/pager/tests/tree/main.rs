//! Whole programs under heavy eviction: this test starts itself as the program, which keeps
//! versioned patterns in memory and checks every byte against what it knows, while it forks,
//! remaps, unmaps, advises, protects, and hands cold memory to system calls.
//!
//! Seconds by default; `REFAULT_STRESS_SECONDS` makes each case as long as one likes. Without
//! userfaultfd the tests say that they skip.

#[path = "../common/mod.rs"]
mod common;
mod roles;
mod segment;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refault_pager::store::Codec;
use refault_pager::tree::{RunEnd, TreeStats};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{Policy, PoolConfig, RegionConfig};
use refault_testing::{Program, Rng, role, stress_seconds, test_name};

use self::common::run_program;
use self::roles::{FORKS, GROW, HOLD, TRACE, TURNS, forks, grow, hold, trace, turns, work};
use self::segment::PAGE;

fn seconds() -> f64 {
    stress_seconds(1.5, 2.0)
}

/// Not a test of its own: what the others start as the program.
#[test]
fn the_program() {
    match role() {
        Some(role) if role == GROW => grow(),
        Some(role) if role == TRACE => trace(),
        Some(role) if role == FORKS => forks(),
        Some(role) if role == HOLD => hold(),
        Some(role) if role == TURNS => turns(),
        Some(role) => work(&role),
        None => {}
    }
}

/// Runs the program of this file; `None`: it was said why not.
fn run_self(name: &str, role: &str, memory: RegionConfig) -> Option<RunEnd> {
    let outcome = run_program(&Program::new(test_name!(the_program), role), memory)?;
    let c = outcome.stats.counts;
    eprintln!("{name}: {} evictions, peak {} pages, {c:?}", c.swapped_out, outcome.stats.peak_resident_pages);
    Some(outcome)
}

fn stress(name: &str, memory: RegionConfig) {
    stress_with(name, memory, DATA, 3, false);
}

/// `None`: skipped.
fn stress_with(name: &str, memory: RegionConfig, data: usize, threads: usize, churns: bool) -> Option<TreeStats> {
    let pages = data / PAGE;
    let role = format!("{threads} {pages} {} {}", seconds(), u8::from(churns));
    let o = run_self(name, &role, memory)?;
    let c = o.stats.counts;
    assert!(o.status.success(), "{name}: {}", o.status);
    // On a busy machine two seconds may not be enough for memory to be tight.
    assert!(c.swapped_out > 1000 || seconds() < 10.0, "{name}: there was eviction");
    let s = &o.stats;
    assert_eq!((s.undecided, s.strays), (0, 0), "{name}: order of changes not known, content without a place");
    assert_eq!((c.poisoned, c.inconsistent, o.stats.area.corrupt), (0, 0, 0), "{name}");
    Some(o.stats)
}

/// Bytes that the programs have, twice to three times the memory.
const DATA: usize = 60 << 20;

fn config(policy: Policy) -> RegionConfig {
    RegionConfig { policy, swap_max: 256 << 20, ..RegionConfig::new(256 << 20, 24 << 20) }
}

fn directory() -> Option<std::path::PathBuf> {
    Some(env!("CARGO_MANIFEST_DIR").into())
}

#[test]
fn stress_pool_of_lz4() {
    // A quarter of the pages is noise, which takes all its size, and the tables take 8 MiB: with
    // less memory there would be no room at times.
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 18 << 20 });
    stress("pool of lz4", RegionConfig { pool, memory_max: 26 << 20, ..config(Policy::Mglru) });
}

#[test]
fn stress_file_alone() {
    stress("file", RegionConfig { pool: None, swap_directory: directory(), ..config(Policy::Mglru) });
}

#[test]
fn stress_pool_before_file_and_two_lists() {
    let pool = Some(PoolConfig { codec: Codec::Zstd, max_bytes: 4 << 20 });
    stress("both", RegionConfig { pool, swap_directory: directory(), ..config(Policy::Lru) });
}

/// Threads take the addresses that others give up, and fork meanwhile: the kernel tells of it in
/// any order.
#[test]
fn stress_of_changing_mappings() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 4 << 20 });
    // With five forked processes at a time, tables come to 27 MiB; with less memory there would be
    // no room at times.
    let memory = RegionConfig { pool, swap_directory: directory(), memory_max: 52 << 20, ..config(Policy::Mglru) };
    stress_with("changes", memory, 100 << 20, 5, true);
}

/// The changes of one thread are dealt with in the order in which they are read.
#[test]
fn stress_of_one_thread() {
    let memory = RegionConfig { swap_directory: directory(), ..config(Policy::Mglru) };
    stress_with("one thread", memory, DATA, 1, true);
}

/// Memory that cannot leave goes beyond `memory.high`, and the thread that makes it grow has to
/// wait.
#[test]
fn beyond_memory_high_a_thread_that_faults_waits() {
    let memory = RegionConfig { memory_high: 24 << 20, memory_max: 64 << 20, swap_max: 0, ..config(Policy::Mglru) };
    let Some(o) = run_self("high", GROW, memory) else { return };
    let c = o.stats.counts;
    assert!(o.status.success(), "{}", o.status);
    assert!(c.throttled > 0 && c.throttled_ns > 0 && c.swapped_out == 0, "{c:?}");
}

/// Below it everyone goes on, also while pages leave memory and come back.
#[test]
fn memory_high_changes_no_byte() {
    let memory = RegionConfig {
        memory_high: 22 << 20,
        memory_max: 28 << 20,
        swap_directory: directory(),
        ..config(Policy::Mglru)
    };
    stress("high, both", memory);
}

/// Every other answer of an agent does not come in time: faults, reads, writes and changes of
/// mappings wait for it, and no byte is lost.
#[test]
fn stress_of_late_answers() {
    let plan =
        |call, n: u64| (call == Call::ReadAnswer && n.is_multiple_of(2)).then_some(CallFault::Fails(libc::EAGAIN));
    let _plan = CallPlan::new(plan).enter();
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 4 << 20 });
    let memory = RegionConfig { pool, swap_directory: directory(), memory_max: 52 << 20, ..config(Policy::Mglru) };
    let outcome = stress_with("late answers", memory, 100 << 20, 5, true);
    assert!(outcome.is_none_or(|s| s.unanswered > 100), "they are late");
}

/// Processes are stopped at any time, also while they move pages, and go on.
#[test]
fn stress_of_stopped_processes() {
    let is_over = AtomicBool::new(false);
    let memory = RegionConfig { swap_directory: directory(), memory_max: 32 << 20, ..config(Policy::Mglru) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng(7);
            while !is_over.load(Ordering::Relaxed) {
                let ours = descendants();
                if !ours.is_empty() {
                    let pid = ours[rng.below(ours.len())];
                    // SAFETY: processes of this test, which are told to go on again.
                    unsafe {
                        libc::kill(pid, libc::SIGSTOP);
                        std::thread::sleep(Duration::from_millis(rng.below(40) as u64));
                        libc::kill(pid, libc::SIGCONT);
                    }
                }
                std::thread::sleep(Duration::from_millis(rng.below(20) as u64));
            }
        });
        let result = std::panic::catch_unwind(|| stress_with("stopped", memory, DATA, 3, false));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|why| std::panic::resume_unwind(why));
    });
}

/// Pages of two processes that are to leave by turns are moved out together, process by process.
#[test]
fn orders_are_about_many_pages_where_processes_take_turns() {
    let memory = RegionConfig { swap_directory: directory(), ..config(Policy::Mglru) };
    let Some(o) = run_self("turns", TURNS, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    let c = o.stats.counts;
    assert!(c.moved_out > 3000 && c.moved_out > 8 * c.moves, "{} pages by {} orders", c.moved_out, c.moves);
}

/// Processes that run below this one: the program's name is that of this file.
fn descendants() -> Vec<i32> {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let own = std::process::id() as i32;
    let entries = std::fs::read_dir("/proc").expect("it is there").flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_below = |pid: &i32| std::iter::successors(parent(*pid), |&p| parent(p)).take(8).any(|p| p == own);
    pids.filter(is_below).collect()
}

/// A debugger that stops the threads of another process, its agent among them, is served meanwhile.
#[test]
fn a_debugger_inside_of_the_run_goes_on() {
    let memory = RegionConfig { swap_directory: directory(), ..config(Policy::Mglru) };
    let Some(o) = run_self("trace", TRACE, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    assert!(o.stats.unanswered > 0, "{:?}", o.stats);
    assert_eq!((o.stats.undecided, o.stats.strays, o.stats.counts.poisoned, o.stats.killed), (0, 0, 0, 0));
}

/// It is not known for long that a fork is over: it is read of, and dealt with later. Pages that
/// come in meanwhile were not there for the child.
#[test]
fn a_child_has_what_came_in_while_it_was_forked() {
    let plan = |call, n: u64| (call == Call::Probe && n % 50 < 45).then_some(CallFault::Fails(libc::EAGAIN));
    let _plan = CallPlan::new(plan).enter();
    let memory = RegionConfig { swap_directory: directory(), memory_max: 32 << 20, ..config(Policy::Mglru) };
    let Some(o) = run_self("forks", FORKS, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    assert_eq!((o.stats.undecided, o.stats.strays, o.stats.counts.poisoned), (0, 0, 0));
}

#[test]
fn others_go_on_beside_a_stopped_process() {
    let memory = RegionConfig { swap_directory: directory(), ..config(Policy::Mglru) };
    let Some(o) = run_self("hold", HOLD, memory) else { return };
    assert!(o.status.success(), "{}", o.status);
    assert_eq!((o.stats.undecided, o.stats.strays, o.stats.counts.poisoned, o.stats.killed), (0, 0, 0, 0));
}
