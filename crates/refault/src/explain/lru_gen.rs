//! Generations of multi-gen LRU: `lru_gen` of debugfs, and what their ages say.
//!
//! A group has lines `memcg ID PATH` and `node N`, and one for each generation: its number, the
//! milliseconds since it was made, and its pages of anonymous memory and of files. Lines of tiers,
//! which `lru_gen_full` has besides, have more or fewer columns.

use super::rules::{finding, scanned};
use super::view::View;
use super::{Cause, Finding};
use crate::memory_size::human;
use crate::words::{duration, grouped};

/// Pages of which generations say something.
const FEW: u64 = 256;

/// Share of the pages, in percent, that is nearly all of them.
const NEARLY_ALL: u64 = 95;

/// Columns of a generation.
const COLUMNS: usize = 4;

/// Names of the figures among counters.
const MAX_SEQ: &str = "lru_gen.max_seq";
const PAGES: &str = "lru_gen.pages";
const YOUNGEST: &str = "lru_gen.youngest_pages";
const TWO_YOUNGEST: &str = "lru_gen.two_youngest_pages";
const OLDEST_AGE_MS: &str = "lru_gen.oldest_age_ms";
const YOUNGEST_AGE_MS: &str = "lru_gen.youngest_age_ms";

/// The age below which nothing is reclaimed.
pub(super) const MIN_TTL_MS: &str = "lru_gen.min_ttl_ms";

/// A generation of a group on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generation {
    seq: u64,
    age_ms: u64,
    pages: u64,
}

/// Generations of a group, node by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Generations {
    path: String,
    nodes: Vec<Vec<Generation>>,
}

impl Generations {
    /// Reads groups; lines that are no generations are passed over.
    pub(super) fn parse(text: &str) -> Vec<Generations> {
        let mut all: Vec<Generations> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (words.first(), all.last_mut()) {
                (Some(&"memcg"), _) => {
                    let path = words.get(2).map_or("/", |path| path).to_owned();
                    all.push(Generations { path, nodes: Vec::new() });
                }
                (Some(&"node"), Some(group)) => group.nodes.push(Vec::new()),
                (_, Some(group)) => {
                    let Some(node) = group.nodes.last_mut() else { continue };
                    node.extend(generation(&words));
                }
                _ => {}
            }
        }
        all
    }

    /// Whether it is of the machine's root.
    pub(super) fn is_root(&self) -> bool {
        self.path == "/"
    }

    /// Whether a folder of cgroupfs is this group's.
    pub(super) fn is_of(&self, folder: &str) -> bool {
        !self.is_root() && folder.ends_with(self.path.as_str())
    }

    /// All of its pages.
    pub(super) fn pages(&self) -> u64 {
        self.sum(|_| true)
    }

    /// Pages of the generations that are so many younger than the youngest of their node.
    fn sum(&self, which: impl Fn(u64) -> bool) -> u64 {
        let of_node = |node: &Vec<Generation>| {
            let newest = node.iter().map(|of| of.seq).max().unwrap_or(0);
            let all = node.iter().filter(|of| which(newest - of.seq));
            all.fold(0u64, |sum, of| sum.saturating_add(of.pages))
        };
        self.nodes.iter().map(of_node).fold(0, u64::saturating_add)
    }

    /// Figures by their names among counters.
    pub(super) fn figures(&self) -> Vec<(&'static str, u64)> {
        let all = || self.nodes.iter().flatten();
        let Some(max_seq) = all().map(|of| of.seq).max() else { return Vec::new() };
        let oldest = all().filter(|of| of.pages > 0).map(|of| of.age_ms).max().unwrap_or(0);
        let youngest = all().map(|of| of.age_ms).min().unwrap_or(0);
        vec![
            (MAX_SEQ, max_seq),
            (PAGES, self.pages()),
            (YOUNGEST, self.sum(|behind| behind == 0)),
            (TWO_YOUNGEST, self.sum(|behind| behind <= 1)),
            (OLDEST_AGE_MS, oldest),
            (YOUNGEST_AGE_MS, youngest),
        ]
    }
}

fn generation(words: &[&str]) -> Option<Generation> {
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    // An `x` marks what is behind the oldest generation of its kind.
    let size = |at: usize| words.get(at)?.trim_end_matches('x').parse::<u64>().ok();
    let (seq, age_ms) = (number(0)?, number(1)?);
    let pages = size(2)?.saturating_add(size(3)?);
    (words.len() == COLUMNS).then_some(Generation { seq, age_ms, pages })
}

/// Sentence on the generations of a group or the machine.
pub(super) fn rule(view: &View<'_>, min_ttl_ms: Option<u64>) -> Option<Finding> {
    let pages = view.now(PAGES).filter(|&pages| pages >= FEW)?;
    let (youngest, two, oldest_ms) = (view.now(YOUNGEST)?, view.now(TWO_YOUNGEST)?, view.now(OLDEST_AGE_MS)?);
    let aged = view.grew(MAX_SEQ);
    let reclaims = scanned(view).is_some_and(|(kswapd, direct)| kswapd.saturating_add(direct) >= FEW);
    let ms = |ms: u64| duration(ms.saturating_mul(1_000_000));
    let (who, ttl_ms) = (view.scope.words(), min_ttl_ms.filter(|&ttl| ttl > 0));
    let part = |part: u64| part.saturating_mul(100) / pages >= NEARLY_ALL;
    let sentence = if let Some(ttl) = ttl_ms.filter(|&ttl| oldest_ms < ttl) {
        format!(
            "nothing of {who} is older than min_ttl_ms: the oldest pages are of the last {}, and kswapd has a task \
             killed rather than reclaim what was in use in {}",
            ms(oldest_ms),
            ms(ttl)
        )
    } else if !reclaims && aged.is_none_or(|aged| aged == 0) {
        // Two generations are what there is before anything is short.
        return None;
    } else if part(youngest) {
        format!(
            "nearly all pages of {who} are in the youngest generation: they were touched or brought in since it was \
             made, {} ago, and ages do not tell what is idle",
            ms(view.now(YOUNGEST_AGE_MS)?)
        )
    } else if two == pages {
        format!(
            "nothing old is left of {who}: all pages are in the two youngest generations, and reclaim makes a new one, \
             for which it looks at page tables, before it takes any"
        )
    } else {
        return None;
    };
    let size = |pages: u64| human(pages.saturating_mul(4096));
    let because = vec![
        format!("lru_gen: {} of {} in the youngest, {} in two", size(youngest), size(pages), size(two)),
        format!("oldest {}", ms(oldest_ms)),
        aged.map_or(String::new(), |aged| format!("max_seq +{}", grouped(aged))),
        min_ttl_ms.map_or(String::new(), |ttl| format!("min_ttl_ms {ttl}")),
    ];
    Some(finding(view, Cause::Generations, sentence, because.into_iter().filter(|why| !why.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "memcg     1 /\n node     0\n          0       9000          0           0 \n\
                        memcg    42 /web\n node     0\n          4      60000        100         900 \n\
                        \x20                    0          0r          0e          0p          0r          0e    0p\n\
                        \x20                   0x          0x          0x          0x\n\
                        \x20         5      30000          0        2000x\n          6       1000       3000           0 \n";

    #[test]
    fn generations_are_read_and_tiers_passed_over() {
        let all = Generations::parse(TEXT);
        assert_eq!(all.iter().map(|of| of.path.as_str()).collect::<Vec<_>>(), ["/", "/web"]);
        assert!(all[0].is_root() && all[1].is_of("/sys/fs/cgroup/web") && !all[1].is_of("/sys/fs/cgroup/a"));
        assert_eq!(all[1].pages(), 6000);
        let figures = all[1].figures();
        let of = |name: &str| figures.iter().find(|(known, _)| *known == name).map(|(_, n)| *n);
        assert_eq!([of(MAX_SEQ), of(YOUNGEST), of(TWO_YOUNGEST)], [Some(6), Some(3000), Some(5000)]);
        assert_eq!([of(OLDEST_AGE_MS), of(YOUNGEST_AGE_MS)], [Some(60_000), Some(1_000)]);
        assert!(Generations::parse("4 5 6 7\n node 0\n").is_empty());
    }
}
