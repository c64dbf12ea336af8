//! Choice of the processes that are recorded: by what they descend from, or by their memory cgroup.

use crate::event::{Event, EventKind};
use crate::group::{Cgroup, Ids, contains};
use rustc_hash::FxHashMap;

/// How a process is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberRule {
    /// Processes that are named, and what descends from them.
    Descent,
    /// Processes in a group, or in one below it.
    Cgroup(String),
    /// All but the recorder.
    All,
}

/// Processes that are known, and whether they are recorded.
#[derive(Debug)]
pub struct Members {
    rule: MemberRule,
    /// The process of the recorder.
    recorder: u32,
    /// Whether a process is recorded, by its number.
    known: FxHashMap<u32, bool>,
    /// Numbers of the recorded groups, where events say the group.
    ids: Option<Ids>,
}

impl Members {
    /// Members by a rule; by descent, these processes.
    pub fn new(rule: MemberRule, recorder: u32, first: impl IntoIterator<Item = u32>) -> Members {
        Members { rule, recorder, known: first.into_iter().map(|pid| (pid, true)).collect(), ids: None }
    }

    /// From now on the group of an event is the one that the event says, and not the one that its
    /// process is in when the event is read.
    pub(crate) fn by_id(&mut self, ids: Ids) {
        self.ids = Some(ids);
    }

    /// Whether the process of an event is recorded. `group_of` returns the group that a process is
    /// in now; none: the process is gone.
    #[inline]
    pub fn contain(&mut self, event: &Event, group_of: impl Fn(u32) -> Option<String>) -> bool {
        if let EventKind::Fork { parent } = event.kind
            && parent != event.pid
            // A child of the recorder is the program that it was told to record.
            && parent != self.recorder
        {
            // Children may end before anybody can ask for their group: the parent is asked, which
            // may have moved since it was last seen.
            if let MemberRule::Cgroup(outer) = &self.rule
                && self.known.get(&parent) != Some(&true)
                && let Some(path) = group_of(parent)
            {
                self.known.insert(parent, contains(outer, &path));
            }
            // The process that had this number before is gone.
            match self.known.get(&parent).copied() {
                Some(is_in) => self.known.insert(event.pid, is_in),
                None => self.known.remove(&event.pid),
            };
        }
        if let Some(ids) = self.ids.as_mut().filter(|_| event.cgroup != 0) {
            let is_in = ids.contain(event.cgroup);
            self.known.insert(event.pid, is_in);
            return is_in;
        }
        if let Some(&known) = self.known.get(&event.pid) {
            return known;
        }
        let is_in = match &self.rule {
            MemberRule::Descent => false,
            MemberRule::All => event.pid != self.recorder && event.pid != 0,
            MemberRule::Cgroup(outer) => group_of(event.pid).is_some_and(|path| contains(outer, &path)),
        };
        self.known.insert(event.pid, is_in);
        is_in
    }

    /// Whether a process is known to be recorded, or is by a rule that takes all.
    pub(crate) fn has(&self, pid: u32) -> bool {
        let by_rule = self.rule == MemberRule::All && pid != self.recorder && pid != 0;
        self.known.get(&pid).copied().unwrap_or(by_rule)
    }

    /// Processes that are known to be recorded.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.known.iter().filter(|(_, is_in)| **is_in).map(|(&pid, _)| pid)
    }

    /// Rule by which further processes are looked for.
    pub(crate) fn rule(&self) -> &MemberRule {
        &self.rule
    }

    /// Forgets processes outside of the group: they may move into it, and are looked at again.
    pub fn look_again(&mut self) {
        if matches!(self.rule, MemberRule::Cgroup(_)) {
            self.known.retain(|_, is_in| *is_in);
        }
    }
}

/// Processes that a rule takes of all that run; by descent, none.
pub(crate) fn more(rule: &MemberRule, group: Option<&Cgroup>) -> Vec<u32> {
    match rule {
        MemberRule::Descent => Vec::new(),
        MemberRule::Cgroup(_) => group.map(Cgroup::processes).unwrap_or_default(),
        MemberRule::All => {
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let own = std::process::id();
            entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(|&pid| pid != own).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(pid: u32, kind: EventKind) -> Event {
        Event { time_ns: 0, pid, tid: pid, cgroup: 0, kind }
    }

    const OTHER: EventKind = EventKind::ReclaimBegin;

    #[test]
    fn children_belong_to_their_parents() {
        let mut members = Members::new(MemberRule::Descent, 9, [10]);
        let none = |_| None;
        assert!(members.contain(&event(10, EventKind::Fork { parent: 9 }), none));
        assert!(members.contain(&event(10, OTHER), none));
        assert!(!members.contain(&event(11, OTHER), none));
        assert!(members.contain(&event(12, EventKind::Fork { parent: 10 }), none));
        assert!(members.contain(&event(13, EventKind::Fork { parent: 12 }), none));
        // The number of a process that ended is used again, outside.
        assert!(!members.contain(&event(12, EventKind::Fork { parent: 11 }), none));
        assert!(!members.contain(&event(12, OTHER), none));
    }

    #[test]
    fn members_of_a_group_are_looked_up() {
        let mut members = Members::new(MemberRule::Cgroup("/a".to_owned()), 9, []);
        let group = |pid| Some(if pid == 1 { "/a/b" } else { "/ab" }.to_owned());
        assert!(members.contain(&event(1, OTHER), group));
        assert!(!members.contain(&event(2, OTHER), group));
        // It moved there.
        members.look_again();
        assert!(members.contain(&event(2, OTHER), |_| Some("/a".to_owned())));
        assert!(!members.contain(&event(3, OTHER), |_| None));
    }

    #[test]
    fn regression_children_that_end_at_once_belong_to_the_group_of_their_parent() {
        let mut members = Members::new(MemberRule::Cgroup("/a".to_owned()), 9, []);
        let outside = |_| Some("/b".to_owned());
        assert!(!members.contain(&event(1, OTHER), outside));
        // It moves, and has a child that is gone before it is looked at.
        let moved = |pid| (pid == 1).then(|| "/a".to_owned());
        assert!(members.contain(&event(2, EventKind::Fork { parent: 1 }), moved));
        assert!(members.contain(&event(2, OTHER), moved));
    }

    #[test]
    fn all_is_all_but_the_recorder() {
        let mut members = Members::new(MemberRule::All, 7, []);
        assert!(members.contain(&event(8, OTHER), |_| None));
        assert!(!members.contain(&event(7, OTHER), |_| None));
        assert!(!members.contain(&event(0, OTHER), |_| None));
    }
    #[test]
    fn the_group_that_an_event_says_is_believed() {
        let dir = tempfile::tempdir().expect("a folder");
        let group = Cgroup::open_at(dir.path());
        let mut members = Members::new(MemberRule::Cgroup("/a".to_owned()), 9, []);
        members.by_id(group.ids().expect("of the second version"));
        let inside = group.id().expect("there");
        let asked = |_: u32| -> Option<String> { panic!("nobody has to be asked") };
        // It was outside, moved in, and out again.
        for (cgroup, is_in) in [(1, false), (inside, true), (1, false)] {
            assert_eq!(members.contain(&Event { cgroup, ..event(1, OTHER) }, asked), is_in);
        }
        // Forks and names do not say it.
        assert!(!members.contain(&event(1, OTHER), asked));
    }
}
