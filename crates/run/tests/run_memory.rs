//! `refault run` with memory of all kinds: what is said at the end against what `/proc` said
//! meanwhile. The programs are in `programs/memory.c`.

use crate::common::command::Sandbox;
use crate::common::programs::{Run, memory};
use refault_testing::{Need, absent, by_length, short_or_long, step};

const LIMIT: u64 = 24 << 20;
const MIB: u64 = 1 << 20;

/// Runs the program in [`LIMIT`]. `None`: it was said why not. `before`: words of a program that
/// starts it.
fn run(before: &[&str], words: &[&str]) -> Option<Run> {
    run_with_swap("256M", before, words)
}

/// The same with another limit of swap.
fn run_with_swap(swap: &str, before: &[&str], words: &[&str]) -> Option<Run> {
    let program = memory()?;
    let words = [before, &[program.to_str().expect("plain text")], words].concat();
    Run::of(&Sandbox::new(), &["--memory-max", "24M", "--swap-max", swap], &words)
}

/// All that there was is limited, or is said: on the last line, and for machines.
fn check(r: &Run, name: &str) {
    let (seen, line) = (&r.seen, r.said.lines().last().expect("a line"));
    let context = format!("{name}: {seen:?}\n{}\n{}", r.said, r.json);
    let limited = LIMIT.max(r.number("peak_taken_bytes")) + r.number("peak_unserved_bytes");
    // The manager looks at another moment than `/proc` was read, while the program still fills.
    assert!(seen.anonymous <= limited + limited / 8 + MIB, "anonymous memory: {context}");
    if r.number("peak_taken_bytes") > LIMIT + LIMIT / 10 {
        assert!(line.contains("with what was found late"), "{context}");
    }
    let others =
        [(seen.shared, "peak_shared_bytes", "of shared memory"), (seen.huge, "peak_huge_bytes", "of huge pages")];
    for (bytes, key, words) in others {
        // Memory that the agent shares with the manager is in it. Memory of two processes counts
        // one and a half times where the second maps it between the looks at both.
        let said = r.number(key) + r.number("peak_unserved_bytes");
        assert!(bytes <= said + said / 2 + MIB, "{key}: {context}");
        assert!(said < 2 * MIB || line.contains(words) || line.contains("not served"), "{key}: {context}");
    }
    let is_unserved = r.number("processes_unserved") > 0;
    assert_eq!(line.contains("not served"), is_unserved, "{context}");
    // Beyond its tables it has buffers of orders for each process that waits, more on a busy
    // machine.
    assert!(seen.manager <= LIMIT + LIMIT / 4, "the manager: {context}");
    let is_killed = r.number("processes_killed") > 0;
    assert_eq!(line.contains("killed for want of memory"), is_killed, "{context}");
    let status = r.status.code();
    assert!(status == Some(0) || is_killed, "{status:?}: {context}");
}

/// Shared memory was neither limited nor said: "peak 9 MiB of 24 MiB" with 218 MB.
#[test]
fn regression_shared_memory_is_said() {
    let Some(r) = run(&[], &["map", "shared", "plain", "60"]) else { return };
    check(&r, "shared");
    assert!(r.seen.shared > 50 * MIB && r.said.contains("not limited: 60 MiB of shared memory"), "{}", r.said);
}

/// With `--quiet` nothing said that the limit did not hold.
#[test]
fn regression_quiet_runs_say_where_the_limit_did_not_hold() {
    let Some(program) = memory() else { return };
    let words = |kind: &'static str| {
        let program = program.to_str().expect("plain text");
        ["--quiet", "--memory-max", "24M", "--swap-max", "256M", "--", program, "map", kind, "plain", "60"]
    };
    let said = |kind| String::from_utf8_lossy(&Sandbox::new().run(&words(kind)).stderr).into_owned();
    assert!(said("shared").starts_with("refault: warning: not limited: 60 MiB of shared memory"), "{}", said("shared"));
    assert_eq!(said("private"), "");
}

/// It went to eight times the limit: the memory was filled before the manager was asked.
#[test]
fn regression_memory_that_is_populated_is_limited() {
    for kind in ["populate", "locked"] {
        let Some(r) = run(&[], &["map", kind, "plain", "150"]) else { return };
        check(&r, kind);
        assert!(r.number("peak_taken_bytes") < LIMIT + LIMIT / 10, "{kind}: {}", r.json);
    }
}

/// The socket had a name that another network namespace has not: the program ran without a limit,
/// and nothing said so.
#[test]
fn regression_a_program_in_another_network_namespace_is_served() {
    let Some(r) = run(&["unshare", "-n"], &["map", "private", "plain", "60"]) else { return };
    if r.said.contains("Operation not permitted") {
        return absent(Need::Mount, "no namespace can be made");
    }
    check(&r, "unshare -n");
    assert!(r.number("swapped_out") > 0 && r.number("processes_unserved") == 0, "{}", r.json);
}

/// Nothing is loaded into a program that does not find the library, or has no environment.
#[test]
fn regression_a_program_that_is_not_served_is_counted() {
    for before in [&["env", "-i"][..], &["unshare", "-fp", "--mount-proc"]] {
        let Some(r) = run(before, &["map", "private", "plain", "60"]) else { return };
        if r.said.contains("Operation not permitted") {
            absent(Need::Mount, "no namespace can be made");
            continue;
        }
        check(&r, &before.join(" "));
        assert!(r.said.contains("not limited: 1 process was not served, "), "{}", r.said);
        assert!(r.number("peak_unserved_bytes") > 50 * MIB, "{}", r.json);
    }
}

/// Memory of each kind, made in each place: what was found by hand were some of these.
#[test]
fn what_is_said_at_the_end_is_what_there_was() {
    const OWN: [&str; 8] =
        ["private", "populate", "locked", "noreserve", "raw-populate", "grown", "memfd-private", "zero"];
    const OTHERS: [&str; 5] = ["shared", "shared-populate", "memfd", "sysv", "hugetlb"];
    let places = short_or_long(&["plain", "both"][..], &["plain", "thread", "fork", "both"]);
    for (i, kind) in OWN.iter().chain(&OTHERS).enumerate().step_by(step(2, 2)) {
        // In one of the places where tests are short.
        let chosen = short_or_long(1, places.len());
        for place in places.iter().cycle().skip(i % places.len()).take(chosen) {
            let Some(r) = run(&[], &["map", kind, place, "60"]) else { return };
            if r.status.code() == Some(77) {
                eprintln!("{kind}: not here: {}", r.said);
                continue;
            }
            check(&r, &format!("{kind} {place}"));
        }
    }
}

/// A program with one thread was killed each time that it moved page after page, "in several
/// threads": its changes never came to an end, and there were too many orders of them.
#[test]
fn regression_a_program_that_moves_page_after_page_survives() {
    for kind in ["rotate", "swap", "dontunmap", "forks"] {
        let Some(r) = run(&[], &["move", kind, "9000", by_length("100", "300", "1000")]) else { return };
        check(&r, kind);
        assert_eq!((r.status.code(), r.number("undecided"), r.number("processes_killed")), (Some(0), 0, 0), "{kind}");
        assert!(r.number("swapped_in") > 0, "{kind}: nothing left memory: {}", r.json);
    }
}

/// A program that did so in several threads, or in one beside an idle one, was killed still.
#[test]
fn regression_a_program_that_moves_pages_in_threads_survives() {
    for kind in ["idle", "threads"] {
        let Some(r) = run(&[], &["move", kind, "9000", by_length("40", "150", "400")]) else { return };
        check(&r, kind);
        assert_eq!((r.status.code(), r.number("undecided"), r.number("processes_killed")), (Some(0), 0, 0), "{kind}");
        assert!(r.number("swapped_in") > 0, "{kind}: nothing left memory: {}", r.json);
    }
}

/// Tables for each process grew to four times the limit, and one process was killed in ten seconds.
#[test]
fn regression_forks_that_do_not_fit_are_killed_and_the_manager_stays_small() {
    let (forks, swap) = short_or_long(("8", "32M"), ("200", "256M"));
    let Some(r) = run_with_swap(swap, &[], &["forks", forks, "40", "1"]) else { return };
    check(&r, "forks");
    assert!(r.number("processes_killed") > 0 && r.number("lost_pages") == 0, "{}", r.json);
    assert!(!r.said.contains("content is lost"), "{}", r.said);
}
