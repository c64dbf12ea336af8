//! Policies of scenarios in words.

use crate::settings;
use refault_lab::scenario::PolicySpec;
use refault_mm::Kernel;
use serde_json::{Map, Value};

/// Settings by the keys of `--set`.
pub type Overrides = Map<String, Value>;

/// The kernel, if it is not the default, and what of a policy is not as that has it.
pub fn overrides(policy: &PolicySpec) -> Overrides {
    let (own, plain) = (policy.config(), policy.kernel_config());
    let kernel = (policy.kernel != Kernel::default()).then(|| ("kernel".to_owned(), policy.kernel.name().into()));
    let pairs = settings::values(&own).zip(settings::values(&plain));
    let of_engine = pairs.filter(|(own, plain)| own != plain).map(|((key, value), _)| (key.to_owned(), value));
    let of_tiers = policy.tiering.values().map(|(key, value)| (key.to_owned(), settings::json(value)));
    kernel.into_iter().chain(of_engine).chain(of_tiers).collect()
}

/// The policy with its overrides, by name: a map has another order where a build keeps that of its
/// making.
pub fn policy_text(policy: &PolicySpec) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut list: Vec<_> = overrides(policy).iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
    list.sort();
    match list.is_empty() {
        true => policy.policy.name().to_owned(),
        false => format!("{} ({})", policy.policy.name(), list.join(", ")),
    }
}
