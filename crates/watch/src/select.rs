//! Groups that are watched, by patterns of their paths.

use refault_record::group_matches;

/// Groups that are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All.
    All,
    /// Groups of these patterns: each with all below it.
    Patterns(Vec<String>),
}

impl Select {
    /// The group that one is counted for; none: it is not watched.
    pub(crate) fn of<'a>(&self, path: &'a str) -> Option<&'a str> {
        let Select::Patterns(patterns) = self else { return Some(path) };
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0).chain([path.len()]);
        let mut above = ends.map(|end| &path[..end]);
        above.find(|part| patterns.iter().any(|pattern| group_matches(pattern, part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_count_for_the_one_that_is_named() {
        let select = Select::Patterns(vec!["/system.slice/*".to_owned(), "/a".to_owned()]);
        assert_eq!(select.of("/system.slice/x.service/inner"), Some("/system.slice/x.service"));
        assert_eq!((select.of("/a/b"), select.of("/b"), select.of("/")), (Some("/a"), None, None));
        assert_eq!(Select::All.of("/b/c"), Some("/b/c"));
    }
}
