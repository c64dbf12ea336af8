//! The memory cgroups of a trace by their paths.

use crate::error::{ErrorKind, Place, TraceError};
use rustc_hash::FxHashMap;

/// The most groups of a trace that are told apart.
pub const MAX_GROUPS: usize = 1 << 15;

/// Longest path that is kept, in bytes; the kernel has no longer paths either.
const MAX_PATH: usize = 4096;

/// The path of a group by its index in a trace: what the trace calls it, with a `/` before it; one
/// without a name is called by its index. The root is `/`.
pub fn group_path(names: &[String], index: u32) -> String {
    let name = names.get(index as usize).map_or_else(|| index.to_string(), |name| clean(name));
    format!("/{name}")
}

/// Whether a text may be the path of a group: no part of it is `.` or `..`, nothing in it breaks
/// the line, and it is not too long.
pub(crate) fn is_group_path(text: &str) -> bool {
    let part = |part: &str| part != "." && part != ".." && !part.contains(char::is_control);
    text.len() <= MAX_PATH && text.split('/').all(part)
}

/// A path without its first `/` and without parts that name nothing.
fn clean(name: &str) -> String {
    let short: String = name.chars().take(MAX_PATH).collect();
    short.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// Numbers for the groups of a trace, in the order of first sight. Two indices of one path are one
/// group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) paths: Vec<String>,
    by_index: FxHashMap<u32, u16>,
    by_path: FxHashMap<String, u16>,
    /// The index that was asked for last, and its number.
    last: Option<(u32, u16)>,
}

impl Groups {
    /// The number of a group.
    #[inline]
    pub(crate) fn number(&mut self, name: &str, names: &[String], index: u32) -> Result<u16, TraceError> {
        match self.last {
            Some((last, number)) if last == index => Ok(number),
            _ => self.look_up(name, names, index),
        }
    }

    fn look_up(&mut self, name: &str, names: &[String], index: u32) -> Result<u16, TraceError> {
        let number = match self.by_index.get(&index) {
            Some(&number) => number,
            None => {
                let path = group_path(names, index);
                let number = match self.by_path.get(&path) {
                    Some(&number) => number,
                    None => self.add(name, path)?,
                };
                self.by_index.insert(index, number);
                number
            }
        };
        self.last = Some((index, number));
        Ok(number)
    }

    fn add(&mut self, name: &str, path: String) -> Result<u16, TraceError> {
        let number = self.paths.len();
        if number == MAX_GROUPS {
            let what = format!("more than {MAX_GROUPS} memory cgroups");
            return Err(TraceError::new(ErrorKind::TooLarge, name, Place::Whole, what));
        }
        self.paths.push(path.clone());
        self.by_path.insert(path, number as u16);
        Ok(number as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_clean() {
        let names: Vec<String> = ["/web", "a//b/", "", "/", "x y"].map(str::to_owned).to_vec();
        let paths: Vec<_> = (0..6).map(|index| group_path(&names, index)).collect();
        assert_eq!(paths, ["/web", "/a/b", "/", "/", "/x y", "/5"]);
    }

    #[test]
    fn two_names_of_one_path_are_one_group() {
        let names: Vec<String> = ["web", "/db", "/web/"].map(str::to_owned).to_vec();
        let mut groups = Groups::default();
        let numbers: Vec<_> = [1, 0, 2, 1, 7].map(|index| groups.number("t", &names, index).expect("few")).to_vec();
        assert_eq!(numbers, [0, 1, 1, 0, 2]);
        assert_eq!(groups.paths, ["/db", "/web", "/7"]);
    }
}
