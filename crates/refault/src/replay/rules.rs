//! Rules of a table, if they are not the default ones.

use super::policy::RowPolicy;
use crate::settings;
use refault_mm::{Config, Kernel};
use serde_json::Value;

/// Configurations of the policies that the engine runs.
pub fn of_policies(policies: &[(RowPolicy, Option<Config>)]) -> impl Iterator<Item = (RowPolicy, &Config)> + Clone {
    policies.iter().filter_map(|(policy, cfg)| Some((*policy, cfg.as_ref()?)))
}

/// A line about rules that are not the defaults, or about a kernel in place of the recorded one.
pub fn line<'a>(kernel: (Kernel, bool), configs: impl Iterator<Item = (RowPolicy, &'a Config)>) -> String {
    words(kernel, configs).map_or(String::new(), |words| format!("rules: {words}\n"))
}

/// The kernel, with whether it is in the place of a recorded one, and what is not as that has it;
/// none for the default kernel as it is, where it is in nobody's place.
pub fn words<'a>(
    (kernel, is_other): (Kernel, bool),
    configs: impl Iterator<Item = (RowPolicy, &'a Config)>,
) -> Option<String> {
    let mut all = vec![format!("kernel {kernel}")];
    for (policy, cfg) in configs {
        for pair in changed(kernel, policy, cfg) {
            if !all.contains(&pair) {
                all.push(pair);
            }
        }
    }
    (is_other || kernel != Kernel::default() || all.len() > 1).then(|| all.join(", "))
}

/// Settings that differ from the kernel's own, as `KEY=VALUE`.
fn changed(kernel: Kernel, policy: RowPolicy, cfg: &Config) -> Vec<String> {
    let RowPolicy::Linux(policy) = policy else { return Vec::new() };
    let plain = settings::config(Some(kernel), policy);
    let swappiness = ("swappiness", Value::from(cfg.swappiness), Value::from(plain.swappiness));
    let settings =
        settings::values(cfg).zip(settings::values(&plain)).map(|((key, own), (_, plain))| (key, own, plain));
    let changed = std::iter::once(swappiness).chain(settings).filter(|(_, own, plain)| own != plain);
    changed
        .map(|(key, own, _)| format!("{key}={}", own.as_str().map_or_else(|| own.to_string(), str::to_owned)))
        .collect()
}
