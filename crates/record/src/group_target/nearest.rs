//! Names that are near to one that somebody wrote.

/// The nearest of all, the best first: those that begin with it, that contain it, and then those
/// with the fewest changes. What is behind a name, in brackets, does not count.
pub(super) fn nearest(name: &str, all: &[String], most: usize) -> Vec<String> {
    let rank = |other: &String| {
        let bare = other.split(" (").next().unwrap_or(other);
        (!bare.starts_with(name), !bare.contains(name), changes(name, bare))
    };
    let mut ranked: Vec<_> = all.iter().map(|other| (rank(other), other)).collect();
    ranked.sort();
    ranked.into_iter().take(most).map(|(_, other)| other.clone()).collect()
}

/// Letters to insert, remove or replace to come from one to the other.
fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j].min(diagonal) + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        assert_eq!((changes("web", "web"), changes("web", "wb"), changes("", "abc")), (0, 1, 3));
        assert_eq!(changes("kitten", "sitting"), 3);
    }

    #[test]
    fn what_contains_it_is_nearest() {
        let all =
            ["api", "system-postgresql.slice", "postgresql@15-main.service", "wob (1)", "web-2"].map(str::to_owned);
        assert_eq!(nearest("postgresql", &all, 1), ["postgresql@15-main.service"]);
        assert_eq!(nearest("web", &all, 2), ["web-2", "wob (1)"]);
    }
}
