//! `refault run` ends when it is told to, whatever the program makes of that.

use crate::common::command::Sandbox;
use crate::common::programs::{memory, start};
use refault_testing::{Need, absent, one_in};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

fn tell(child: &Child, signal: Signal) {
    // If it has ended meanwhile, that is what is waited for.
    _ = kill_process(Pid::from_child(child), signal);
}

/// Its end, if it comes within so long.
fn end(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let since = Instant::now();
    while since.elapsed() < within {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

const AFTER: Duration = Duration::from_millis(600);
const SOON: Duration = Duration::from_secs(4);
const AT_LAST: Duration = Duration::from_secs(15);

/// Tells a run to end by a signal, and once more if that was not enough. How it ended, what it
/// said, and whether it took the second.
fn told(signal: Signal, limit: &str, words: &[&str]) -> Option<(ExitStatus, String, bool)> {
    let s = Sandbox::new();
    let mut child = start(&s, &["--memory-max", limit], words);
    let said = || std::fs::read_to_string(s.path("said")).expect("text");
    if let Some(status) = end(&mut child, AFTER) {
        if status.code() == Some(2) {
            absent(Need::Uffd, said().trim());
            return None;
        }
        panic!("{words:?} ended by itself: {status:?}: {}", said());
    }
    tell(&child, signal);
    let first = end(&mut child, SOON);
    let was_second = first.is_none();
    if was_second {
        tell(&child, signal);
    }
    let status = first.or_else(|| end(&mut child, AT_LAST));
    if status.is_none() {
        _ = child.kill();
        _ = child.wait();
    }
    let said = said();
    Some((status.unwrap_or_else(|| panic!("{words:?} goes on after a second {signal:?}: {said}")), said, was_second))
}

const BOTH: [Signal; 2] = [Signal::TERM, Signal::INT];

/// It is the program's: what it does not take ends it. A test that runs in the background of a
/// shell has its interrupts ignored, and so would the program.
#[test]
fn regression_a_run_ends_when_it_is_told_to() {
    for signal in BOTH {
        let Some((status, said, was_second)) = told(signal, "24M", &["env", "--default-signal", "sleep", "100"]) else {
            return;
        };
        assert!(!was_second && status.signal() == Some(signal.as_raw()), "{status:?}: {said}");
    }
}

/// `timeout` signals its child and then its group: the run was ended before the program could.
#[test]
fn regression_one_request_that_comes_twice_is_one() {
    const SCRIPT: &str = "trap 'sleep 0.5; exit 7' TERM; while :; do sleep 0.05; done";
    for _ in 0..5 {
        let s = Sandbox::new();
        let mut child = start(&s, &["--memory-max", "24M"], &["sh", "-c", SCRIPT]);
        let said = || std::fs::read_to_string(s.path("said")).expect("text");
        if let Some(status) = end(&mut child, AFTER) {
            assert_eq!(status.code(), Some(2), "{}", said());
            return absent(Need::Uffd, said().trim());
        }
        let begun = Instant::now();
        tell(&child, Signal::TERM);
        std::thread::sleep(Duration::from_millis(5));
        tell(&child, Signal::TERM);
        let was_at_once = begun.elapsed() < Duration::from_millis(30);
        let status = end(&mut child, AT_LAST).expect("an end");
        if was_at_once {
            return assert_eq!(status.code(), Some(7), "{}", said());
        }
    }
    eprintln!("the machine was too busy to send two signals at once");
}

/// Signals were passed on to the program alone, and it had ended.
#[test]
fn regression_what_the_program_has_left_behind_is_told_too() {
    for script in ["sleep 100 & exec sleep 99", "sleep 100 & exit 0"] {
        let Some((_, said, was_second)) = told(Signal::TERM, "24M", &["sh", "-c", script]) else { return };
        assert!(!was_second, "{script}: {said}");
    }
}

#[test]
fn regression_a_second_signal_ends_a_program_that_ignores_it() {
    let signals = [(Signal::TERM, "trap '' TERM"), (Signal::INT, "trap '' INT")];
    for (signal, trap) in signals.into_iter().step_by(one_in(2)) {
        let script = format!("{trap}; while :; do sleep 1; done");
        let Some((status, said, was_second)) = told(signal, "24M", &["sh", "-c", &script]) else { return };
        assert!(was_second && status.signal() == Some(9), "{status:?}: {said}");
        assert!(said.contains("told to end a second time"), "{said}");
    }
}

/// Processes that wait for memory and get none ended neither by one nor by the other.
#[test]
fn regression_a_run_that_has_no_memory_ends_when_it_is_told_to() {
    let Some(program) = memory() else { return };
    for signal in BOTH {
        let words = [program.to_str().expect("plain text"), "forks", "60", "40", "1000"];
        let Some((_, said, _)) = told(signal, "24M", &words) else { return };
        assert!(said.contains("refault: "), "{said}");
    }
}
