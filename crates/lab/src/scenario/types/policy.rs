//! Policies, and their variants.

use std::collections::BTreeMap;

use refault_mm::tiering::PromotionPolicy;
use refault_mm::{Chosen, Config, Kernel, Policy};

/// Settings of tiering that are not those of Linux.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieringSpec {
    /// Decision on promotion at a hint fault.
    pub promotion: Option<PromotionPolicy>,
    /// Bits of the time stamp of a folio.
    pub stamp_bits: Option<u32>,
    /// Numbers, by the names of [`refault_mm::tiering::TieringConfig::SYSCTLS`], in their units and
    /// at full size.
    pub sysctls: BTreeMap<String, u64>,
}

/// A policy, the kernel whose rules it follows, and the settings that are not as there.
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

    /// Configuration of the kernel, without the settings.
    pub fn kernel_config(&self) -> Config {
        let mut config = Config::new(self.policy);
        self.kernel.apply(&mut config);
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
