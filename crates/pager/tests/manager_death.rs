//! If the manager of whole programs is killed, the programs are killed: nobody ever finds zeros
//! where there was data.
//!
//! This test starts itself twice: as the manager, and through that as the program, which forks.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use refault_pager::tree::{TreeConfig, run};
use refault_pager::{Error, RegionConfig};
use refault_testing::{Need, Program, absent, is_alone, role, short_or_long, test_name};

const WORDS: usize = (48 << 20) / 8;

/// Never zero, and half of it can be compressed.
fn value(i: u64) -> u64 {
    (i / 16).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

fn is_right(data: &[u64], range: std::ops::Range<usize>) -> bool {
    data[range.clone()].iter().zip(range).step_by(64).all(|(&v, i)| v == value(i as u64))
}

/// The program: what it finds is right, or it says so and ends. Its child likewise.
fn program() {
    let data: Vec<u64> = (0..WORDS as u64).map(value).collect();
    for round in 0_usize.. {
        // Forks go on: one may be under way when the manager is killed.
        // SAFETY: the child reads memory, says something, and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let good = is_right(&data, round % 8 * (WORDS / 8)..(round % 8 + 1) * (WORDS / 8));
            say(if good { "c" } else { "WRONG" });
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        say(if is_right(&data, 0..WORDS) { "p" } else { "WRONG" });
        // SAFETY: the child.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

fn say(word: &str) {
    let mut out = std::io::stdout();
    _ = writeln!(out, "said {word} {}", std::process::id()).and_then(|()| out.flush());
}

/// Not a test of its own: the manager and the program.
#[test]
fn the_roles() {
    match role().as_deref() {
        Some("program") => program(),
        Some("manager") => {
            let memory = RegionConfig { swap_max: 128 << 20, ..RegionConfig::new(128 << 20, 32 << 20) };
            let words = Program::new(test_name!(the_roles), "program").words();
            match run(TreeConfig { memory, record: None }, words[0].as_ref(), &words) {
                Err(Error::Unsupported(why)) => println!("said skip {why}"),
                other => println!("said ended {:?}", other.map(|o| o.status)),
            }
        }
        _ => {}
    }
}

/// How a process ended that is now a child of this one.
fn wait_for(pid: i32) -> Option<ExitStatus> {
    for _ in 0..1000 {
        let mut status = 0;
        // SAFETY: room for a status.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
            0 => std::thread::sleep(Duration::from_millis(10)),
            n if n == pid => return Some(ExitStatus::from_raw(status)),
            // It was never this one's: its parent was there to see its end.
            _ => return Some(ExitStatus::from_raw(libc::SIGKILL)),
        }
    }
    None
}

#[test]
fn programs_end_with_their_manager() {
    if !is_alone(test_name!(programs_end_with_their_manager)) {
        return;
    }
    // SAFETY: processes whose parents are gone become children of this one.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    for round in (0..6).step_by(short_or_long(2, 1)) {
        let mut manager = Program::new(test_name!(the_roles), "manager").command();
        let mut manager = manager.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(manager.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut pids = std::collections::BTreeSet::new();
        let said = |line: String, pids: &mut std::collections::BTreeSet<i32>| {
            assert!(!line.contains("WRONG") && !line.contains("ended"), "round {round}: {line}");
            let at = line.find("said ").map(|at| &line[at..]).unwrap_or("");
            if let Some(pid) = at.split(' ').nth(2).and_then(|pid| pid.parse().ok()) {
                pids.insert(pid);
            }
        };
        // It has been through its memory more than once.
        while pids.len() < 4 {
            let line = lines.next().expect("it says more");
            if line.contains("said skip") {
                _ = manager.wait();
                return absent(Need::Uffd, line);
            }
            said(line, &mut pids);
        }
        std::thread::sleep(Duration::from_millis(7 * round));
        manager.kill().expect("it is there");
        manager.wait().expect("it ended");
        // All ends of the pipe are closed when all are gone; nothing wrong was found until then.
        lines.for_each(|line| said(line, &mut pids));
        for pid in pids {
            let status = wait_for(pid).expect("it ends within ten seconds");
            assert!(
                status.signal() == Some(libc::SIGKILL) || status.code() == Some(0),
                "round {round}: {pid} {status}"
            );
        }
    }
}
