//! Changes in the counters of the machine by each time through a loop of a task.

use std::collections::BTreeMap;

/// Changes by each time through a loop of a task.
#[derive(Clone, Debug)]
pub struct LoopResult {
    /// The task.
    pub task: String,
    /// By iteration: the rise of each counter of the machine that counts up.
    pub iterations: Vec<BTreeMap<String, u64>>,
}

impl LoopResult {
    /// A number of one iteration, `N.COUNTER`, counted from 1.
    pub(super) fn one(&self, name: &str) -> Option<f64> {
        let (n, counter) = name.split_once('.')?;
        let at = n.parse::<usize>().ok()?.checked_sub(1)?;
        counted(self.iterations.get(at)?, counter)
    }

    /// A number over several iterations, `FROM-TO.FOLD.COUNTER`, as far as these happened.
    pub(super) fn several(&self, name: &str) -> Option<f64> {
        let (range, rest) = name.split_once('.')?;
        let (fold, counter) = rest.split_once('.')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|n| n.parse::<usize>().ok());
        let times = self.iterations.iter().take(to?).skip(from?.checked_sub(1)?);
        let all: Vec<f64> = times.map(|counters| counted(counters, counter)).collect::<Option<_>>()?;
        let of = |fold: fn(f64, f64) -> f64| all.iter().copied().reduce(fold).unwrap_or(0.0);
        Some(match fold {
            "mean" => all.iter().sum::<f64>() / all.len().max(1) as f64,
            "min" => of(f64::min),
            "max" => of(f64::max),
            "lower-quartile" => quantile(all, 0.25),
            "median" => quantile(all, 0.5),
            "upper-quartile" => quantile(all, 0.75),
            "nonzero" => all.iter().filter(|&&n| n != 0.0).count() as f64,
            _ => return None,
        })
    }
}

/// The quantile of values at `share`, interpolated between two neighbours.
fn quantile(mut all: Vec<f64>, share: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    let at = share * all.len().saturating_sub(1) as f64;
    let value = |n: f64| all.get(n as usize).copied().unwrap_or(0.0);
    value(at.floor()) + (value(at.ceil()) - value(at.floor())) * at.fract()
}

/// A counter; or `fallback_percent` of a folio size: percent of the folios going to swap that were
/// split instead of swapped out whole.
pub(super) fn counted(counters: &BTreeMap<String, u64>, name: &str) -> Option<f64> {
    if let Some(size) = name.strip_suffix(".fallback_percent") {
        let of = |what: &str| counters.get(&format!("{size}.{what}")).map(|&n| n as f64);
        let (whole, split) = (of("swpout")?, of("swpout_fallback")?);
        return Some(if whole + split > 0.0 { 100.0 * split / (whole + split) } else { 0.0 });
    }
    counters.get(name).map(|&n| n as f64)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_lie_between_values() {
        let all = || vec![4.0, 1.0, 2.0, 3.0];
        assert_eq!([0.25, 0.5, 0.75].map(|share| quantile(all(), share)), [1.75, 2.5, 3.25]);
        assert_eq!((quantile(vec![7.0], 0.25), quantile(Vec::new(), 0.5)), (7.0, 0.0));
    }
}
