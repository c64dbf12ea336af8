//! How a recording begins: a program is started, or found.

use super::{Options, RecordTarget};
use crate::group::{self, Cgroup};
use crate::members::{MemberRule, Members};
use crate::program;
use std::fs;
use std::path::PathBuf;
use std::process::Child;

/// Target of the recording, as it begins.
pub(super) struct StartedTarget {
    pub(super) child: Option<Child>,
    pub(super) members: Members,
    /// Number of a process of the target, if one is known.
    pub(super) pid: Option<u32>,
}

pub(super) fn start(options: &Options, group: Option<&Cgroup>) -> Result<StartedTarget, String> {
    let own = std::process::id();
    Ok(match &options.target {
        RecordTarget::Command(words) => {
            let child = program::start(words, group)?;
            let pid = child.id();
            StartedTarget { child: Some(child), members: Members::new(MemberRule::Descent, own, [pid]), pid: Some(pid) }
        }
        RecordTarget::Pids(pids) => {
            if let Some(gone) = pids.iter().find(|pid| !is_there(**pid)) {
                return Err(format!("--pid {gone}: there is no such process"));
            }
            let members = Members::new(MemberRule::Descent, own, pids.iter().copied());
            StartedTarget { child: None, members, pid: pids.first().copied() }
        }
        RecordTarget::Group => {
            let path = group.map(|g| g.path().to_owned()).ok_or("no group given")?;
            StartedTarget { child: None, members: Members::new(MemberRule::Cgroup(path), own, []), pid: None }
        }
        RecordTarget::All => StartedTarget { child: None, members: Members::new(MemberRule::All, own, []), pid: None },
    })
}

/// The group that a process is in, if it has a limit.
pub(super) fn group_of_target(pid: Option<u32>) -> Option<Cgroup> {
    let path = group::of_process(pid?)?;
    Cgroup::open(&PathBuf::from(path)).ok().filter(|group| group.limit_bytes().is_some())
}

/// Whether a process runs: one that has ended, and that nobody has waited for, does not.
pub(super) fn is_there(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything, is the state.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
