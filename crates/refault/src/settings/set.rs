//! `--set KEY=VALUE`: the settings of the engine, by name.

use refault_mm::{Chosen, Config, Policy, SUBJECTS, Setting, ThpConfig, settings};
use serde_json::Value;
use std::fmt::Write as _;
use std::str::FromStr;

/// One `--set KEY=VALUE`.
#[derive(Clone, Debug)]
pub struct Set(&'static Setting, refault_mm::Value);

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Set, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("{text:?} is not KEY=VALUE; --set help lists the keys"));
        };
        let setting = Setting::find(key.trim()).map_err(|e| format!("{e}; --set help lists the keys"))?;
        Ok(Set(setting, setting.parse(value.trim())?))
    }
}

impl std::fmt::Display for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.0.name, self.1)
    }
}

impl Set {
    /// Chooses it for a policy of a scenario.
    pub(crate) fn choose_in(&self, chosen: &mut Chosen) {
        chosen.choose(self.0, self.1);
    }

    /// The key.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Sets it.
    pub fn apply(&self, cfg: &mut Config) {
        self.0.set(cfg, self.1);
    }
}

/// Words for a setting or a flag that does nothing under some policies.
pub fn idle(policies: &str, acts_on: &str) -> String {
    format!("does nothing under {policies}; it acts on {acts_on}")
}

/// Fails on a setting that is between groups, where a replay has one.
///
/// # Errors
/// A line that says where it acts.
pub fn check_one_group(set: &[Set]) -> Result<(), String> {
    match set.iter().find(|Set(setting, _)| setting.needs_groups()) {
        Some(Set(setting, _)) => Err(format!(
            "--set {}: does nothing of one group; it acts between groups, with --memcg-column and in scenarios",
            setting.name
        )),
        None => Ok(()),
    }
}

/// Fails on a setting of a trace that does nothing: no policy has the rule, or no trace.
///
/// # Errors
/// A line that says where it acts.
pub fn check_acts<'a>(
    set: &[Set],
    runs: impl Iterator<Item = (&'a str, Option<&'a Config>)> + Clone,
) -> Result<(), String> {
    for Set(setting, _) in set {
        if let Some(part) = setting.needs_machine() {
            return Err(format!(
                "--set {}: does nothing of a trace, which has no {part}; it acts in scenarios",
                setting.name
            ));
        }
        setting.check_acts(runs.clone()).map_err(|e| format!("--set {}: {e}", setting.name))?;
    }
    Ok(())
}

/// One setting of `--thp`.
#[derive(Clone, Debug)]
pub struct Thp(String);

impl FromStr for Thp {
    type Err = String;

    fn from_str(text: &str) -> Result<Thp, String> {
        ThpConfig::default().set(text.trim())?;
        Ok(Thp(text.trim().to_owned()))
    }
}

impl std::fmt::Display for Thp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Thp {
    /// Sets it.
    pub fn apply(&self, cfg: &mut Config) {
        // It was tried when it was parsed.
        let _ = cfg.thp.set(&self.0);
    }
}

/// Key and value of everything that can be set.
pub fn values(cfg: &Config) -> impl Iterator<Item = (&'static str, Value)> + '_ {
    settings().map(|s| (s.name, json(s.value(cfg))))
}

/// A value as results have it.
pub(crate) fn json(value: refault_mm::Value) -> Value {
    match value {
        refault_mm::Value::Flag(on) => on.into(),
        refault_mm::Value::Number(n) => n.into(),
        refault_mm::Value::Word(word) => word.into(),
    }
}

/// Every key with the values that it takes and its effect.
pub fn described() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    settings().map(|s| (s.name, s.values.to_string(), s.about))
}

/// Every key with its values, its default and the kernels that have another, for people.
pub fn help() -> String {
    let mut text = String::from("--set KEY=VALUE, for all policies of the replay; docs/mechanisms.md has the rules:\n");
    for (subject, settings) in SUBJECTS {
        let _ = writeln!(text, "\n{subject}");
        settings.iter().for_each(|setting| text += &entry(setting));
    }
    text
}

fn entry(setting: &Setting) -> String {
    let default = |policy| setting.value(&Config::new(policy));
    let (usual, shadow) = (default(Policy::Lru), default(Policy::LruShadow));
    let unit = if setting.unit.is_empty() { String::new() } else { format!(" {}", setting.unit) };
    let mut text = format!("  {}={}{unit}\n      {}", setting.name, setting.values, setting.about);
    let _ = write!(text, "\n      [default: {usual}");
    if shadow != usual {
        let _ = write!(text, "; {shadow} for lru-shadow and mglru-shadow");
    }
    for other in setting.other {
        let kernels: Vec<_> = other.rule.kernels.iter().map(|kernel| kernel.name()).collect();
        let _ = write!(text, "; {} in {}", other.value, kernels.join(", "));
    }
    text + "]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values() {
        for policy in Policy::ALL {
            let cfg = Config::new(policy);
            for (key, value) in values(&cfg) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let set: Set = format!("{key}={text}").parse().expect(key);
                let mut again = cfg.clone();
                set.apply(&mut again);
                assert_eq!(again, cfg, "{key}={text}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("recency", "KEY=VALUE"),
            ("speed=1", "unknown key \"speed\""),
            ("recency=4bit", "it takes 3bit|literal"),
            ("recency=three-bit", "it is \"3bit\""),
            ("charge_kernel=yes", "true|false"),
            ("batch_folios=-1", "not a value"),
            ("charge_batch=18446744073709551615", "it takes 1..1048576"),
            ("fault_around=64K", "it is fault_around_pages"),
            ("fault_around_pages=3", "it takes 1|2|4"),
        ] {
            let error = text.parse::<Set>().expect_err(text);
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn help_names_every_key() {
        let text = help();
        assert!(settings().all(|s| text.contains(&format!("  {}=", s.name))));
        assert!(text.lines().all(|line| line.len() <= 140));
    }
}
