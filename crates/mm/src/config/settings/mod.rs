//! The table of settings: every rule and number of the engine that users may choose, each declared
//! once, with its name, values, unit, kernels and page.
//!
//! `--set`, `[policy]` of scenarios, the keywords of Python, profiles of kernels, help and the
//! tables of the documentation come from here. Defaults are those of [`Config::new`]. Parts of a
//! machine that have a configuration of their own have a table each, [`THP`], [`ZSWAP`] and
//! [`TIERING`]: tables of scenarios, `--thp` and the documentation come from these.

mod acts;
mod chosen;
mod groups;
mod kswapd;
mod mappings;
mod multi_gen;
mod swap;
mod thp;
mod tiering;
mod trace;
mod two_lists;
mod value;
pub(crate) mod words;
mod zswap;

use std::fmt;

use crate::config::Config;
use crate::config::kernel::{Kernel, KernelRule};
use crate::config::lru::RefaultTest;

use acts::ActsOn;

pub use chosen::Chosen;
pub use thp::THP;
pub use tiering::TIERING;
pub use value::{Value, Values};
pub use zswap::ZSWAP;

/// Settings by subject, as help and documentation list them.
pub const SUBJECTS: [(&str, &[Setting]); 7] = [
    ("two lists", two_lists::SETTINGS),
    ("multi-gen LRU", multi_gen::SETTINGS),
    ("kswapd", kswapd::SETTINGS),
    ("groups", groups::SETTINGS),
    ("mappings and batches", mappings::SETTINGS),
    ("swap", swap::SETTINGS),
    ("of a trace alone", trace::SETTINGS),
];

/// One field of a configuration, [`Config`] or a part of a machine, under the name that users give.
pub struct Setting<C: 'static = Config> {
    /// The name, of `--set`, of a key of `[policy]` and of a keyword of Python.
    pub name: &'static str,
    /// Effect of the setting, in a line.
    pub about: &'static str,
    /// Heading of `docs/mechanisms.md` that has the rule.
    pub heading: &'static str,
    /// Possible values.
    pub values: Values,
    /// Unit of a number; empty: none.
    pub unit: &'static str,
    /// Kernels that have the setting, in words; empty: all that are modelled.
    pub kernels: &'static str,
    /// Forms that other kernels than 6.12 have.
    pub other: &'static [Other],
    /// Whether scenarios have the setting in `[policy]`. If not, their machine has it, or only
    /// traces do.
    pub in_scenarios: bool,
    /// Former names and words of the setting, each with its present form.
    pub former: &'static [(&'static str, &'static str)],
    /// Whether RFC v3 has a form of its own, whatever the kernel.
    of_rfc_v3: bool,
    /// Policies, and parts of a machine, that the setting needs to do anything.
    acts: ActsOn<C>,
    read: fn(&C) -> Value,
    write: fn(&mut C, Value) -> Option<()>,
}

/// The form of a setting in the kernels of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// The change of Linux, and the profiles that are not as 6.12.
    pub rule: &'static KernelRule,
    /// Value of the setting in these kernels.
    pub value: Value,
}

/// All settings, in the order of [`SUBJECTS`].
pub fn settings() -> impl Iterator<Item = &'static Setting> + Clone {
    SUBJECTS.iter().flat_map(|(_, settings)| settings.iter())
}

impl<C> Setting<C> {
    const fn new(
        name: &'static str,
        about: &'static str,
        values: Values,
        read: fn(&C) -> Value,
        write: fn(&mut C, Value) -> Option<()>,
    ) -> Setting<C> {
        Setting {
            name,
            about,
            heading: "",
            values,
            unit: "",
            kernels: "",
            other: &[],
            in_scenarios: true,
            former: &[],
            of_rfc_v3: false,
            acts: ActsOn::EVERYWHERE,
            read,
            write,
        }
    }

    /// With the heading that documents it.
    const fn at(self, heading: &'static str) -> Setting<C> {
        Setting { heading, ..self }
    }

    /// With fewer values than all of its type, and with their unit.
    const fn takes(self, values: Values, unit: &'static str) -> Setting<C> {
        Setting { values, unit, ..self }
    }

    /// In these kernels alone.
    const fn in_kernels(self, kernels: &'static str) -> Setting<C> {
        Setting { kernels, ..self }
    }

    /// Reads it from a configuration.
    pub fn value(&self, cfg: &C) -> Value {
        (self.read)(cfg)
    }

    /// Sets a value in a configuration. False: the setting has no such value, and nothing is
    /// changed.
    pub fn set(&self, cfg: &mut C, value: Value) -> bool {
        self.values.has(value) && (self.write)(cfg, value).is_some()
    }

    /// The value that a text stands for.
    ///
    /// # Errors
    /// The text is no value of the setting; the error names the values that are.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let found = self.values.parse(text).filter(|&value| self.values.has(value));
        found.ok_or_else(|| match self.former.iter().find(|(old, _)| *old == text) {
            Some((_, now)) => format!("{text:?} is not a value of {}; it is {now:?}", self.name),
            None => format!("{text:?} is not a value of {}; it takes {}", self.name, self.values),
        })
    }
}

impl<C> fmt::Debug for Setting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Setting").field(&self.name).finish()
    }
}

impl Setting {
    /// With forms of other kernels.
    const fn other(self, other: &'static [Other]) -> Setting {
        Setting { other, ..self }
    }

    /// With names and words that it had before.
    const fn formerly(self, former: &'static [(&'static str, &'static str)]) -> Setting {
        Setting { former, ..self }
    }

    /// Not in scenarios: for traces, which have no machine.
    const fn of_traces(self) -> Setting {
        Setting { in_scenarios: false, ..self }
    }

    /// Acting on some policies alone.
    const fn acts(self, acts: ActsOn) -> Setting {
        Setting { acts, ..self }
    }

    /// Acting on some policies alone, and only together with other settings.
    const fn acts_with(self, needs: &'static str, on: fn(&Config) -> bool) -> Setting {
        Setting { acts: ActsOn { on, needs, ..self.acts }, ..self }
    }

    /// Acting on machines alone, by a part that a trace lacks.
    const fn of_machines(self, machine: &'static str) -> Setting {
        Setting { acts: ActsOn { machine, ..self.acts }, ..self }
    }

    /// Acting between groups alone.
    const fn of_groups(self) -> Setting {
        Setting { acts: ActsOn { groups: true, ..self.acts }, ..self }
    }

    /// With a form in RFC v3 that no kernel's form replaces.
    const fn own_in_rfc_v3(self) -> Setting {
        Setting { of_rfc_v3: true, ..self }
    }

    /// The setting of this name.
    ///
    /// # Errors
    /// No setting has this name; if one had it before, the error says how it is written now.
    pub fn find(name: &str) -> Result<&'static Setting, String> {
        settings().find(|s| s.name == name).ok_or_else(|| match Setting::renamed(name) {
            Some((_, now)) => format!("unknown key {name:?}; it is {now}"),
            None => format!("unknown key {name:?}"),
        })
    }

    /// The setting that had this name, and how it is written now.
    pub fn renamed(name: &str) -> Option<(&'static Setting, &'static str)> {
        let now = |s: &'static Setting| s.former.iter().find(|(old, _)| *old == name).map(|(_, now)| (s, *now));
        settings().find_map(now)
    }

    /// Gives a configuration the form of a kernel, where it has that of 6.12.
    pub(crate) fn apply_kernel(&self, cfg: &mut Config, kernel: Kernel) {
        let others = self.other.iter().filter(|other| other.rule.kernels.contains(&kernel));
        others.for_each(|other| self.apply(cfg, other));
    }

    /// Gives a configuration the form of a rule.
    pub(crate) fn apply(&self, cfg: &mut Config, other: &Other) {
        if !(self.of_rfc_v3 && cfg.lru.refault == RefaultTest::ShadowPosition) {
            self.set(cfg, other.value);
        }
    }
}

/// A setting: its configuration if that is not [`Config`], its name, its field and its effect.
macro_rules! setting {
    ($name:literal, $($field:ident).+, $about:literal) => {
        setting!($crate::config::Config; $name, $($field).+, $about)
    };
    ($of:ty; $name:literal, $($field:ident).+ $([$at:literal])?, $about:literal) => {
        $crate::config::settings::Setting::<$of>::new(
            $name,
            $about,
            $crate::config::settings::words::values_of(|c: &$of| c.$($field).+ $([$at])?),
            |c| $crate::config::settings::words::FieldType::value(c.$($field).+ $([$at])?),
            |c, value| {
                c.$($field).+ $([$at])? = $crate::config::settings::words::FieldType::of(value)?;
                Some(())
            },
        )
    };
}
use setting;

#[cfg(test)]
mod tests;
