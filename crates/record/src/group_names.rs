//! Paths of the memory cgroups that events are of.

use crate::group::{contains, numbered, of_process, paths};
use crate::group_handle::GroupHandles;
use crate::hierarchy::Hierarchy;
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Nanoseconds after which a process is asked for its group again, and the groups are looked for.
const AGAIN_NS: u64 = 1_000_000_000;

/// Groups, or processes, that are remembered.
const MOST: usize = 1 << 14;

/// Share of the time that may go into looking for groups.
const SHARE: u32 = 1000;

/// Known groups.
#[derive(Debug, Default)]
pub(crate) struct GroupNames {
    /// Events say the number of their group.
    has_ids: bool,
    /// None: it was gone when it was looked for. No other group ever gets its number.
    by_id: FxHashMap<u64, Option<String>>,
    by_pid: FxHashMap<u32, (Option<String>, u64)>,
    /// The hierarchy, and a way to ask it for one group; none: all groups are looked at.
    handles: Option<(Hierarchy, GroupHandles)>,
    /// When all groups may be looked at again.
    again_ns: u64,
}

impl GroupNames {
    pub(crate) fn new(has_ids: bool) -> Result<GroupNames, String> {
        // A machine without groups is told at once.
        paths()?;
        let handles = Hierarchy::find().ok().and_then(|all| Some((all.clone(), GroupHandles::new(&all)?)));
        Ok(GroupNames { has_ids, handles, ..GroupNames::default() })
    }

    /// Path of the group of a process, or of that number.
    pub(crate) fn find(&mut self, pid: u32, cgroup: u64, now_ns: u64) -> Option<&str> {
        if self.has_ids && cgroup != 0 {
            if !self.by_id.contains_key(&cgroup) {
                self.look(cgroup, now_ns);
            }
            return self.by_id.get(&cgroup)?.as_deref();
        }
        let known = self.by_pid.get(&pid).filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) < AGAIN_NS);
        if known.is_none() {
            if self.by_pid.len() >= MOST {
                self.by_pid.clear();
            }
            // A process that is gone was where it was last seen.
            let before = self.by_pid.remove(&pid).and_then(|(path, _)| path);
            self.by_pid.insert(pid, (of_process(pid).or(before), now_ns));
        }
        self.by_pid.get(&pid)?.0.as_deref()
    }

    /// Asks for a group, or looks which groups there are, once in a while: a number that is not
    /// found may be of one that is gone.
    fn look(&mut self, id: u64, now_ns: u64) {
        if self.by_id.len() >= MOST {
            self.by_id.clear();
        }
        if let Some((hierarchy, handles)) = &self.handles
            && let Ok(folder) = handles.folder(id)
        {
            self.by_id.insert(id, folder.map(|folder| hierarchy.folder(&folder).1));
            return;
        }
        if now_ns < self.again_ns {
            return;
        }
        let started = Instant::now();
        self.by_id.extend(numbered().into_iter().map(|(id, path)| (id, Some(path))));
        let took_ns = (started.elapsed() * SHARE).as_nanos() as u64;
        self.again_ns = now_ns.saturating_add(took_ns.max(AGAIN_NS));
    }
}

/// Whether a path of a group is named by a pattern, or lies below one that is: `*` stands for any
/// characters but `/`, `**` for any.
pub fn group_matches(pattern: &str, path: &str) -> bool {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/{pattern}") };
    let above = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
    above.filter(|part| !part.is_empty() || pattern == "/").any(|part| matches(pattern.as_bytes(), part.as_bytes()))
        || contains(&pattern, path)
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            let (deep, rest) = match rest.strip_prefix(b"*") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let end = if deep { text.len() } else { text.iter().position(|&b| b == b'/').unwrap_or(text.len()) };
            (0..=end).any(|at| matches(rest, &text[at..]))
        }
        (Some((a, rest)), Some((b, left))) => (a == b || *a == b'?') && matches(rest, left),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_groups_and_what_is_below() {
        for (pattern, path, is) in [
            ("/system.slice/*.service", "/system.slice/nginx.service", true),
            ("/system.slice/*.service", "/system.slice/nginx.service/worker", true),
            ("system.slice/nginx*", "/system.slice/nginx.service", true),
            ("/system.slice/*", "/user.slice/a", false),
            ("/*", "/a/b", true),
            ("/kubepods/**/app", "/kubepods/x/y/app", true),
            ("/kubepods/*/app", "/kubepods/x/y/app", false),
            ("/a?c", "/abc", true),
            ("/", "/abc", true),
            ("/a", "/ab", false),
        ] {
            assert_eq!(group_matches(pattern, path), is, "{pattern} {path}");
        }
    }

    #[test]
    fn a_process_that_is_gone_was_where_it_was_seen() {
        let mut names = GroupNames::default();
        let own = std::process::id();
        let Some(path) = of_process(own) else { return };
        assert_eq!(names.find(own, 0, 1), Some(path.as_str()));
        names.by_pid.insert(u32::MAX, (Some("/x".to_owned()), 1));
        assert_eq!(names.find(u32::MAX, 0, 3 * AGAIN_NS), Some("/x"));
        assert_eq!(names.find(u32::MAX - 1, 0, 1), None);
    }
}
