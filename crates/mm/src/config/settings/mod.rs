//! The table of settings: every rule and number of the engine that users may choose, each declared
//! once, with its name, values, unit, kernels and page.
//!
//! `--set`, `[policy]` of scenarios, the keywords of Python, profiles of kernels, help and the
//! tables of the documentation come from here. Defaults are those of [`Config::new`].

mod acts;
mod groups;
mod kswapd;
mod mappings;
mod multi_gen;
mod swap;
mod trace;
mod two_lists;
mod value;
pub(crate) mod words;

use std::fmt;

use crate::config::Config;
use crate::config::kernel::{Kernel, KernelRule};
use crate::config::lru::RefaultTest;

use acts::Acts;

pub use value::{Value, Values};

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

/// One field of [`Config`] under the name that users give.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
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
    /// Forms that other kernels than 6.12 have.
    pub other: &'static [Other],
    /// Whether a scenario has it in `[policy]`; else its machine says it, or it is of traces.
    pub in_scenarios: bool,
    /// Names and words that it had, and those that it has now.
    pub former: &'static [(&'static str, &'static str)],
    /// Whether RFC v3 has a form of its own, whatever the kernel.
    of_rfc_v3: bool,
    /// Policies and parts of a machine without which it does nothing.
    acts: Acts,
    read: fn(&Config) -> Value,
    write: fn(&mut Config, Value) -> Option<()>,
}

/// The form of a setting in the kernels of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// The change of Linux, and the profiles that are not as 6.12.
    pub rule: &'static KernelRule,
    /// The form there.
    pub value: Value,
}

/// All settings, in the order of [`SUBJECTS`].
pub fn settings() -> impl Iterator<Item = &'static Setting> + Clone {
    SUBJECTS.iter().flat_map(|(_, settings)| settings.iter())
}

impl Setting {
    const fn new(
        name: &'static str,
        about: &'static str,
        values: Values,
        read: fn(&Config) -> Value,
        write: fn(&mut Config, Value) -> Option<()>,
    ) -> Setting {
        Setting {
            name,
            about,
            heading: "",
            values,
            unit: "",
            other: &[],
            in_scenarios: true,
            former: &[],
            of_rfc_v3: false,
            acts: Acts::EVERYWHERE,
            read,
            write,
        }
    }

    /// With the heading that documents it.
    const fn at(self, heading: &'static str) -> Setting {
        Setting { heading, ..self }
    }

    /// With other values than all of its type.
    const fn takes(self, values: Values, unit: &'static str) -> Setting {
        Setting { values, unit, ..self }
    }

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
    const fn acts(self, acts: Acts) -> Setting {
        Setting { acts, ..self }
    }

    /// Acting on some policies alone, with other settings beside it.
    const fn acts_with(self, needs: &'static str, on: fn(&Config) -> bool) -> Setting {
        Setting { acts: Acts { on, needs, ..self.acts }, ..self }
    }

    /// Acting on machines alone, by a part of which a trace has nothing.
    const fn of_machines(self, machine: &'static str) -> Setting {
        Setting { acts: Acts { machine, ..self.acts }, ..self }
    }

    /// Acting between groups alone.
    const fn of_groups(self) -> Setting {
        Setting { acts: Acts { groups: true, ..self.acts }, ..self }
    }

    /// With a form in RFC v3 that no kernel's form replaces.
    const fn own_in_rfc_v3(self) -> Setting {
        Setting { of_rfc_v3: true, ..self }
    }

    /// The setting of this name.
    ///
    /// # Errors
    /// There is none; the text says so, with the name that it has if it had another.
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

    /// Reads it from a configuration.
    pub fn value(&self, cfg: &Config) -> Value {
        (self.read)(cfg)
    }

    /// Sets it; false, and nothing is changed: not a value of this setting.
    pub fn set(&self, cfg: &mut Config, value: Value) -> bool {
        self.values.has(value) && (self.write)(cfg, value).is_some()
    }

    /// The value that is written so.
    ///
    /// # Errors
    /// It is none; the text names those that are.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let found = self.values.parse(text).filter(|&value| self.values.has(value));
        found.ok_or_else(|| match self.former.iter().find(|(old, _)| *old == text) {
            Some((_, now)) => format!("{text:?} is not a value of {}; it is {now:?}", self.name),
            None => format!("{text:?} is not a value of {}; it takes {}", self.name, self.values),
        })
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

/// Values that were chosen for some settings.
#[derive(Clone, Default)]
pub struct Chosen(Vec<(&'static Setting, Value)>);

impl Chosen {
    /// Chooses a value, in the place of another for the same setting. False: it is none.
    pub fn choose(&mut self, setting: &'static Setting, value: Value) -> bool {
        let is_possible = setting.values.has(value);
        if is_possible {
            self.0.retain(|(other, _)| other.name != setting.name);
            self.0.push((setting, value));
        }
        is_possible
    }

    /// Chooses by name and text.
    ///
    /// # Errors
    /// There is no such setting, or it has no such value.
    pub fn choose_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let setting = Setting::find(name)?;
        let value = setting.parse(text)?;
        self.choose(setting, value);
        Ok(())
    }

    /// The settings for which a value was chosen.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting> + '_ {
        self.0.iter().map(|(setting, _)| *setting)
    }

    /// The value that was chosen for the setting of this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(setting, _)| setting.name == name).map(|(_, value)| *value)
    }

    /// Sets all of them.
    pub fn apply(&self, cfg: &mut Config) {
        for (setting, value) in &self.0 {
            setting.set(cfg, *value);
        }
    }
}

impl PartialEq for Chosen {
    /// By names and values, in any order.
    fn eq(&self, other: &Chosen) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(setting, value)| other.get(setting.name) == Some(*value))
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(setting, value)| (setting.name, value))).finish()
    }
}

/// A setting: its name, its field of [`Config`] and its effect.
macro_rules! setting {
    ($name:literal, $($field:ident).+, $about:literal) => {
        $crate::config::settings::Setting::new(
            $name,
            $about,
            $crate::config::settings::words::values_of(|c| c.$($field).+),
            |c| $crate::config::settings::words::Held::value(c.$($field).+),
            |c, value| {
                c.$($field).+ = $crate::config::settings::words::Held::of(value)?;
                Some(())
            },
        )
    };
}
use setting;

#[cfg(test)]
mod tests;
