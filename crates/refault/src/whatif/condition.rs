//! `--fail-if`: a difference that no change may make.

use super::answer::WhatIf;
use super::effect::{EffectVerdict, is_share};
use crate::size::Metric;
use std::fmt;
use std::str::FromStr;

/// A condition on differences, such as `misses>+5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    text: String,
    metric: Metric,
    is_above: bool,
    /// Difference as effects have it.
    bound: f64,
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<FailIf, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let wrong = || format!("{text:?} is not a difference; write 'misses>+5%' or 'hit_rate<-1%'");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let metric = Metric::named(name).map_err(|e| format!("{text:?}: {e}"))?;
        let number = rest[1..].strip_suffix('%').filter(|number| number.starts_with(['+', '-'])).ok_or_else(wrong)?;
        let percent = number.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(wrong)?;
        // Pressure is in percent already.
        let bound = if matches!(metric, Metric::Pressure(..)) { percent } else { percent / 100.0 };
        Ok(FailIf { is_above: rest.starts_with('>'), metric, bound, text })
    }
}

/// Changes for which a condition holds, and those of which it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionResult {
    /// Names of changes for which it holds, each with the difference.
    pub holds: Vec<String>,
    /// Names of changes with a difference beyond the bound that is within doubt, and so is none.
    pub within_doubt: Vec<String>,
    /// Names of changes of which it is not known.
    pub unknown: Vec<String>,
}

impl FailIf {
    /// Fails where no change can say whether it holds.
    ///
    /// # Errors
    /// The input does not have the metric, or today's machine says nothing.
    pub fn applies(&self, result: &WhatIf) -> Result<(), String> {
        if !result.values.iter().any(|(metric, _)| *metric == self.metric) {
            let known: Vec<_> = result.values.iter().map(|(metric, _)| metric.name()).collect();
            return Err(format!("--fail-if {self}: {} has {}", result.name, known.join(", ")));
        }
        match result.failed {
            Some(why) => Err(format!("--fail-if {self}: today's machine is {why}, so that nothing is beside it")),
            None => Ok(()),
        }
    }

    /// Looks at every change. A difference that is called the same is none; a change with which
    /// memory runs out is worse in everything.
    ///
    /// # Errors
    /// It does not [apply](FailIf::applies), or nothing is known of any change.
    pub fn check(&self, result: &WhatIf) -> Result<ConditionResult, String> {
        self.applies(result)?;
        let mut held = ConditionResult::default();
        for of in &result.alternatives {
            match (of.failed, of.effect(self.metric)) {
                (Some(why), _) if self.is_of_worse() => held.holds.push(format!("{} ({why})", of.name)),
                (None, Some(effect)) if effect.verdict != EffectVerdict::Unknown => {
                    let is_beyond = if self.is_above { effect.change > self.bound } else { effect.change < self.bound };
                    let named = || format!("{} ({})", of.name, effect.difference(effect.change));
                    match effect.verdict {
                        _ if !is_beyond => {}
                        EffectVerdict::Same => held.within_doubt.push(named()),
                        _ => held.holds.push(named()),
                    }
                }
                _ => held.unknown.push(of.name.clone()),
            }
        }
        if held.unknown.len() == result.alternatives.len() {
            return Err(format!(
                "--fail-if {self}: is not known of any change; the lines that begin with \"not known\" say why"
            ));
        }
        Ok(held)
    }

    /// Whether it is of what gets worse.
    fn is_of_worse(&self) -> bool {
        self.is_above != self.metric.grows()
    }

    /// The unit of its bound, in words.
    pub fn unit(&self) -> &'static str {
        if is_share(self.metric) { "points" } else { "% of today's" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let of = |text: &str| text.parse::<FailIf>().unwrap_or_else(|e| panic!("{e}"));
        let misses = of("misses > +5%");
        assert_eq!((misses.metric, misses.is_above, misses.bound), (Metric::Misses, true, 0.05));
        assert_eq!((misses.is_of_worse(), misses.unit()), (true, "% of today's"));
        assert!(of("hit_rate<-1%").is_of_worse() && !of("ops_per_s>+5%").is_of_worse());
        assert_eq!(of("some>+2%").bound, 2.0);
        for (text, want) in
            [("misses>5%", "is not a difference"), ("misses", "write 'misses>+5%'"), ("mises>+5%", "is not a metric")]
        {
            assert!(text.parse::<FailIf>().is_err_and(|e| e.contains(want)), "{text}");
        }
    }
}
