//! Where a setting acts: under some policies alone, or only where there is a machine.

use super::Setting;
use crate::config::kernel::Kernel;
use crate::config::lru::{Lru, RefaultTest};
use crate::config::{Config, Policy};

/// Where a setting acts.
pub(super) struct ActsOn<C: 'static = Config> {
    /// Whether the setting acts under a configuration.
    pub(super) on: fn(&C) -> bool,
    /// Other settings that it needs in order to act, in words; empty: none.
    pub(super) needs: &'static str,
    /// Part of a machine that a trace lacks for it, in words; empty: none.
    pub(super) machine: &'static str,
    /// Whether it acts between groups only, and does nothing with a single one.
    pub(super) groups: bool,
}

impl<C> ActsOn<C> {
    /// On everything.
    pub(super) const EVERYWHERE: ActsOn<C> = ActsOn { on: |_| true, needs: "", machine: "", groups: false };
}

impl ActsOn {
    /// Acts on generations.
    pub(super) const GENERATIONS: ActsOn = ActsOn { on: is_multi_gen, needs: "", machine: "", groups: false };
    /// Acts on two lists.
    pub(super) const TWO_LISTS: ActsOn = ActsOn { on: |cfg| !is_multi_gen(cfg), needs: "", machine: "", groups: false };
    /// Acts on the refault distance of two lists.
    pub(super) const DISTANCE: ActsOn =
        ActsOn { on: |cfg| !is_multi_gen(cfg) && has_shadows(cfg), needs: "", machine: "", groups: false };
    /// Acts on shadows that have a position: all shadows but those of mainline's generations.
    pub(super) const POSITION: ActsOn = ActsOn {
        on: |cfg| has_shadows(cfg) && (!is_multi_gen(cfg) || cfg.lru.refault == RefaultTest::ShadowPosition),
        needs: "",
        machine: "",
        groups: false,
    };
}

/// Whether a configuration has generations.
pub(super) fn is_multi_gen(cfg: &Config) -> bool {
    cfg.lru.kind == Lru::MultiGen
}

fn has_shadows(cfg: &Config) -> bool {
    cfg.lru.refault != RefaultTest::None
}

impl Setting {
    /// Whether the setting can change anything under a configuration.
    pub fn acts_on(&self, cfg: &Config) -> bool {
        (self.acts.on)(cfg)
    }

    /// The part of a machine that a trace lacks for the setting to act; none: it acts on traces.
    pub fn needs_machine(&self) -> Option<&'static str> {
        Some(self.acts.machine).filter(|part| !part.is_empty())
    }

    /// Whether the setting acts between groups only, and does nothing with a single one.
    pub fn needs_groups(&self) -> bool {
        self.acts.groups
    }

    /// Policies on which the setting acts under some kernel, and other settings that it needs, in
    /// words.
    pub fn acts_on_text(&self) -> String {
        let acts = |policy: &Policy| Kernel::ALL.iter().any(|kernel| self.acts_under(*policy, *kernel));
        let policies: Vec<_> = Policy::ALL.iter().filter(|policy| acts(policy)).map(|policy| policy.name()).collect();
        let needs = if self.acts.needs.is_empty() { String::new() } else { format!(" with {}", self.acts.needs) };
        policies.join(", ") + &needs
    }

    fn acts_under(&self, policy: Policy, kernel: Kernel) -> bool {
        let mut cfg = Config::new(policy);
        kernel.apply(&mut cfg);
        self.acts_on(&cfg)
    }

    /// Fails if the setting does nothing in any of these runs: names of policies, and their
    /// configurations.
    ///
    /// # Errors
    /// A line that says on which policies the setting acts.
    pub fn check_acts<'a>(&self, runs: impl Iterator<Item = (&'a str, Option<&'a Config>)>) -> Result<(), String> {
        let mut names: Vec<&str> = Vec::new();
        for (name, cfg) in runs {
            if cfg.is_some_and(|cfg| self.acts_on(cfg)) {
                return Ok(());
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Err(format!("does nothing under {}; it acts on {}", names.join(", "), self.acts_on_text()))
    }
}
