//! Settings of the engine: by the keys that users give, as a kernel has them, and as a recording
//! says them.

mod acts;
#[cfg(test)]
mod every_setting;
mod recorded;
mod set;

pub use acts::{check_on_policies, check_on_sample, check_on_trace, partial_flags};
pub use recorded::{kernel_of, policy_of, stat_flush_interval_ns, swappiness_of};
pub(crate) use set::json;
pub use set::{Set, Thp, check_acts, check_one_group, described, help, idle, values};

use refault_mm::{Config, Kernel, Policy};

/// A policy as a kernel has it; without one, as the default kernel.
pub fn config(kernel: Option<Kernel>, policy: Policy) -> Config {
    let mut cfg = Config::new(policy);
    kernel.unwrap_or_default().apply(&mut cfg);
    cfg
}
