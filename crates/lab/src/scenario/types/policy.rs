//! Policies, and their variants.

use refault_mm::tiering::TieringConfig;
use refault_mm::{Chosen, Config, Kernel, Policy};

/// Settings of tiering that are not those of Linux, at full size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieringSpec {
    /// Values of some of [`refault_mm::TIERING`].
    pub settings: Chosen<TieringConfig>,
}

/// A policy, the kernel whose rules it follows, and the settings that differ from that kernel's.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    /// The named policy.
    pub policy: Policy,
    /// Kernel whose rules hold.
    pub kernel: Kernel,
    /// Settings of the engine that are not as the kernel has them.
    pub settings: Chosen,
    /// Hint faults, promotion and demotion; part of the machine's configuration, not of
    /// [`PolicySpec::config`].
    pub tiering: TieringSpec,
}

impl PolicySpec {
    /// A policy as the kernel has it.
    pub fn new(policy: Policy) -> PolicySpec {
        PolicySpec { policy, kernel: Kernel::default(), settings: Chosen::default(), tiering: TieringSpec::default() }
    }

    /// Configuration of the kernel on a machine, without the settings.
    pub fn kernel_config(&self) -> Config {
        let mut config = Config::new(self.policy);
        self.kernel.apply(&mut config);
        config.swap.policy.slot_cache = self.kernel.has_slot_caches();
        config
    }

    /// The configuration of the engine. Settings that belong to the machine (CPUs, swap, seed, ...)
    /// are as [`Config::new`] has them.
    pub fn config(&self) -> Config {
        let mut config = self.kernel_config();
        self.settings.apply(&mut config);
        config
    }
}
