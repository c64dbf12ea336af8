//! The groups of a trace as a tree, with limits from a file.

use crate::Failure;
use crate::memory_size::Size;
use refault_lab::scenario::GroupLimits;
use refault_mm::MemcgLimits;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names in a path at most.
const MAX_DEPTH: usize = 64;
/// Groups at most, their parents included.
const MAX_GROUPS: usize = 65_000;
/// Groups that a message lists.
const LISTED: usize = 8;

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its path.
    pub path: String,
    /// Place of the parent, earlier in the list; none: this is the whole replay.
    pub parent: Option<usize>,
    /// Its limits, in pages.
    pub limits: MemcgLimits,
}

/// All groups; the first is the whole replay, `/`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Groups, parents before children.
    pub groups: Vec<Group>,
    /// Place in `groups`, by group of the trace.
    pub of_trace: Vec<usize>,
}

impl Tree {
    /// A single group, for a trace that says nothing of groups.
    pub fn whole() -> Tree {
        let all = Group { path: "/".to_owned(), parent: None, limits: MemcgLimits::default() };
        Tree { groups: vec![all], of_trace: vec![0] }
    }

    /// Groups of a trace and their parents, without limits.
    pub fn new(paths: &[String]) -> Result<Tree, String> {
        let mut all = BTreeSet::from(["/"]);
        for path in paths {
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
            let depth = ends.clone().count();
            if depth > MAX_DEPTH {
                return Err(format!("group {path:?} is {depth} deep; at most {MAX_DEPTH} are possible"));
            }
            all.extend(ends.map(|end| &path[..end]));
            if all.len() > MAX_GROUPS {
                return Err(format!("more than {MAX_GROUPS} groups, those above others included"));
            }
        }
        let places: BTreeMap<&str, usize> = all.iter().zip(0..).map(|(&path, at)| (path, at)).collect();
        let parent = |path: &str| match path.rsplit_once('/') {
            _ if path == "/" => None,
            Some(("", _)) | None => Some(0),
            Some((above, _)) => Some(places[above]),
        };
        let group =
            |&path: &&str| Group { path: path.to_owned(), parent: parent(path), limits: MemcgLimits::default() };
        Ok(Tree {
            groups: all.iter().map(group).collect(),
            of_trace: paths.iter().map(|path| places[&**path]).collect(),
        })
    }

    /// The same with the limits of a file.
    pub fn with_limits(mut self, file: &Path, page_size: u32, footprint_pages: u64) -> Result<Tree, Failure> {
        let size = |text: &str| {
            let size: Size = text.parse()?;
            Ok(size.pages(page_size, footprint_pages))
        };
        for given in GroupLimits::load(file, &size)? {
            let Some(at) = self.find(&given.path) else {
                let (file, line, path) = (file.display(), given.line, &given.path);
                return Err(
                    format!("{file}:{line}: group {path:?} is not in the trace, which has {}", self.listed()).into()
                );
            };
            self.groups[at].limits = given.limits;
        }
        Ok(self)
    }

    /// The place of a group.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.path == path)
    }

    /// A group and its ancestors.
    pub fn chain(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |&at| self.groups[at].parent)
    }

    /// Whether some group has a limit that makes it reclaim by itself.
    pub fn is_limited(&self) -> bool {
        self.groups.iter().any(|g| g.limits.max != u64::MAX || g.limits.high != u64::MAX)
    }

    /// The paths, or the first of them.
    pub fn listed(&self) -> String {
        let paths: Vec<_> = self.groups.iter().skip(1).take(LISTED).map(|group| group.path.as_str()).collect();
        match self.groups.len() - 1 {
            0 => "none".to_owned(),
            n if n > LISTED => format!("{} and {} more", paths.join(", "), n - LISTED),
            _ => paths.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Result<Tree, String> {
        Tree::new(&paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn groups_above_are_there_and_before() {
        let tree = tree(&["/a/b", "/a-b", "/", "/c/d/e"]).expect("a tree");
        let paths: Vec<_> = tree.groups.iter().map(|g| &*g.path).collect();
        assert_eq!(paths, ["/", "/a", "/a-b", "/a/b", "/c", "/c/d", "/c/d/e"]);
        let parents: Vec<_> = tree.groups.iter().map(|g| g.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(1), Some(0), Some(4), Some(5)]);
        assert_eq!(tree.of_trace, [3, 2, 0, 6]);
        assert_eq!(tree.chain(6).collect::<Vec<_>>(), [6, 5, 4, 0]);
        assert!(tree.groups.iter().enumerate().all(|(at, g)| g.parent.is_none_or(|p| p < at)));
    }

    #[test]
    fn too_many_and_too_deep_are_errors() {
        assert!(tree(&[&"/a".repeat(65)]).expect_err("too deep").contains("65 deep"));
        let many: Vec<String> = (0..1100).map(|n| format!("/{n}{}", "/x".repeat(60))).collect();
        assert!(Tree::new(&many).expect_err("too many").contains("more than 65000 groups"));
    }
}
