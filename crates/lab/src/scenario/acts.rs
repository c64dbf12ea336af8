//! Settings that do nothing under the policies and kernels of a run.

use super::types::{PolicySpec, Scenario};
use refault_mm::{CacheExtPolicy, Kernel, Lru};

/// Whether a key of the machine acts under a policy.
type ActsUnder = fn(&PolicySpec) -> bool;

/// Keys of the machine that act under some policies or kernels alone, and their names.
const OF_MACHINE: [(&str, ActsUnder, &str); 2] = [
    ("machine.min_ttl", |spec| spec.config().lru.kind == Lru::MultiGen, "mglru, mglru-shadow"),
    ("machine.contention.zsmalloc", |spec| spec.kernel.locking().zsmalloc_pool_lock, "the kernels 6.6-rc, 6.6"),
];

impl Scenario {
    /// Fails if something that it sets does nothing under any of some policies.
    ///
    /// # Errors
    /// A line that names the file as `file` does, the line, the key, and where it acts.
    pub fn check_acts(&self, file: &str, policies: &[PolicySpec]) -> Result<(), String> {
        for spec in policies {
            for setting in spec.settings.settings() {
                let chosen = policies.iter().filter(|other| other.settings.get(setting.name).is_some());
                let configs: Vec<_> = chosen.map(|other| (under(other), other.config())).collect();
                let runs = configs.iter().map(|(name, config)| (name.as_str(), Some(config)));
                let key = format!("policy.{}", setting.name);
                setting.check_acts(runs).map_err(|e| format!("{}: {e}", self.place(file, &key)))?;
            }
        }
        let mut names: Vec<_> = policies.iter().map(under).collect();
        names.dedup();
        let idle = |key: &str, on: &str| {
            format!("{}: does nothing under {}; it acts on {on}", self.place(file, key), names.join(", "))
        };
        for (key, acts, on) in OF_MACHINE {
            if self.settings.iter().any(|(set, _)| set == key) && !policies.iter().any(acts) {
                return Err(idle(key, on));
            }
        }
        let reads_hints = policies.iter().any(|spec| spec.config().cache_ext.is_some_and(CacheExtPolicy::reads_hints))
            || self.memcgs.iter().any(|group| group.cache_ext.is_some_and(CacheExtPolicy::reads_hints));
        match self.lines.iter().find(|(key, _)| key.ends_with(".cache_ext_hint")).filter(|_| !reads_hints) {
            Some((key, _)) => Err(idle(key, "get-scan, or a group with cache_ext = \"get-scan\"")),
            None => Ok(()),
        }
    }

    /// A key with its file and line.
    fn place(&self, file: &str, key: &str) -> String {
        match self.lines.iter().find(|(known, _)| known == key) {
            Some((_, line)) => format!("{file}:{line}: {key}"),
            None => format!("{file}: {key}"),
        }
    }
}

/// A policy, and its kernel if that is not the default.
fn under(spec: &PolicySpec) -> String {
    match spec.kernel == Kernel::default() {
        true => spec.policy.name().to_owned(),
        false => format!("{} of kernel {}", spec.policy.name(), spec.kernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_mm::{Config, Policy, Setting, settings};

    const MINIMAL: &str = "\
name = \"minimal\"
[machine]
memory = \"64M\"
[device.d]
preset = \"hdd\"
[object.f]
kind = \"file\"
size = \"1M\"
device = \"d\"
[[task]]
name = \"a\"
phase = [{ read = \"f\", passes = 1 }]
";

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("s.toml", text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn with(setting: &'static Setting, policy: Policy, kernel: Kernel) -> PolicySpec {
        let mut spec = PolicySpec { kernel, ..PolicySpec::new(policy) };
        spec.settings.choose(setting, setting.value(&Config::new(policy)));
        spec
    }

    /// Each setting is taken where it acts and refused elsewhere, and the refusal says on what it
    /// acts.
    #[test]
    fn regression_a_setting_of_other_lists_is_refused() {
        let scenario = scenario(MINIMAL);
        let mut refused = 0;
        for (setting, policy) in settings().flat_map(|s| Policy::ALL.map(|policy| (s, policy))) {
            for kernel in Kernel::ALL {
                let spec = with(setting, policy, kernel);
                let acts = setting.acts_on(&spec.config());
                match scenario.check_acts("s.toml", &[spec]) {
                    Ok(()) => assert!(acts, "{} {policy} {kernel}", setting.name),
                    Err(e) => {
                        assert!(!acts, "{e}");
                        assert!(
                            e.starts_with(&format!("s.toml: policy.{}: does nothing under {policy}", setting.name)),
                            "{e}"
                        );
                        assert!(e.ends_with(&format!("; it acts on {}", setting.acts_on_text())), "{e}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 300, "{refused}");
    }

    /// Beside a policy on which it acts a setting may be there for another.
    #[test]
    fn one_policy_on_which_it_acts_is_enough() {
        let setting = Setting::find("leaf_walk").expect("a setting");
        let both = [Policy::Lru, Policy::Mglru].map(|policy| with(setting, policy, Kernel::default()));
        assert_eq!(scenario(MINIMAL).check_acts("s.toml", &both), Ok(()));
        assert!(scenario(MINIMAL).check_acts("s.toml", &both[..1]).is_err());
    }

    #[test]
    fn keys_of_the_machine_are_refused_likewise() {
        let set = |line: &str| scenario(&MINIMAL.replace("[device.d]", &format!("{line}\n[device.d]")));
        let spec = |policy, kernel| PolicySpec { kernel, ..PolicySpec::new(policy) };
        let ttl = set("min_ttl = \"1s\"");
        assert_eq!(ttl.check_acts("s.toml", &[spec(Policy::Mglru, Kernel::V6_12)]), Ok(()));
        let error = ttl.check_acts("s.toml", &[spec(Policy::Lru, Kernel::V6_12)]).expect_err("refused");
        assert_eq!(error, "s.toml:4: machine.min_ttl: does nothing under lru; it acts on mglru, mglru-shadow");
        let pool = set("cpus = 2\n[machine.contention]\nzsmalloc = \"300ns\"");
        assert_eq!(pool.check_acts("s.toml", &[spec(Policy::Lru, Kernel::V6_6)]), Ok(()));
        let error = pool.check_acts("s.toml", &[spec(Policy::Lru, Kernel::V6_18)]).expect_err("refused");
        assert!(
            error.starts_with("s.toml:6: machine.contention.zsmalloc: does nothing under lru of kernel 6.18"),
            "{error}"
        );
    }
}
