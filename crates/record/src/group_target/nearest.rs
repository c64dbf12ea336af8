//! Names that are near to one that somebody wrote.

/// The nearest of all, the best first: those that begin with it, that contain it, and then those
/// with the fewest changes. Text in brackets behind a name does not count.
pub(super) fn nearest(name: &str, all: &[String], most: usize) -> Vec<String> {
    let rank = |other: &String| {
        let bare = other.split(" (").next().unwrap_or(other);
        (!bare.starts_with(name), !bare.contains(name), strsim::levenshtein(name, bare))
    };
    let mut ranked: Vec<_> = all.iter().map(|other| (rank(other), other)).collect();
    ranked.sort();
    ranked.into_iter().take(most).map(|(_, other)| other.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contains_it_is_nearest() {
        let all =
            ["api", "system-postgresql.slice", "postgresql@15-main.service", "wob (1)", "web-2"].map(str::to_owned);
        assert_eq!(nearest("postgresql", &all, 1), ["postgresql@15-main.service"]);
        assert_eq!(nearest("web", &all, 2), ["web-2", "wob (1)"]);
    }
}
