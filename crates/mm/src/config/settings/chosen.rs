//! Values that users chose for settings, before there is a configuration.

use std::fmt;

use super::{Setting, Value};
use crate::config::Config;

/// Values that were chosen for some settings.
pub struct Chosen<C: 'static = Config>(Vec<(&'static Setting<C>, Value)>);

impl<C> Chosen<C> {
    /// Chooses a value for a setting, in place of one chosen before. False: the setting has no such
    /// value.
    pub fn choose(&mut self, setting: &'static Setting<C>, value: Value) -> bool {
        let is_possible = setting.values.has(value);
        if is_possible {
            self.0.retain(|(other, _)| other.name != setting.name);
            self.0.push((setting, value));
        }
        is_possible
    }

    /// The settings for which a value was chosen.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting<C>> + '_ {
        self.0.iter().map(|(setting, _)| *setting)
    }

    /// The value that was chosen for the setting of this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(setting, _)| setting.name == name).map(|(_, value)| *value)
    }

    /// Sets all chosen values in a configuration.
    pub fn apply(&self, cfg: &mut C) {
        for (setting, value) in &self.0 {
            setting.set(cfg, *value);
        }
    }
}

impl Chosen {
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
}

impl<C> Default for Chosen<C> {
    /// Nothing.
    fn default() -> Chosen<C> {
        Chosen(Vec::new())
    }
}

impl<C> Clone for Chosen<C> {
    fn clone(&self) -> Chosen<C> {
        Chosen(self.0.clone())
    }
}

impl<C> PartialEq for Chosen<C> {
    /// By names and values, in any order.
    fn eq(&self, other: &Chosen<C>) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(setting, value)| other.get(setting.name) == Some(*value))
    }
}

impl<C> fmt::Debug for Chosen<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(setting, value)| (setting.name, value))).finish()
    }
}
