//! Flags that a command line has: some make sense only with some inputs, and a result says those
//! that change it.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// The long names of the flags that were given, without those that have their default, and their
/// values.
#[derive(Clone, Debug, Default)]
pub struct GivenFlags(Vec<(String, Vec<String>)>);

impl GivenFlags {
    /// Collects the flags that were typed for the subcommand that was called.
    pub fn new(command: &Command, matches: &ArgMatches) -> GivenFlags {
        let called = matches.subcommand().and_then(|(name, of)| Some((command.find_subcommand(name)?, of)));
        let Some((command, matches)) = called else { return GivenFlags::default() };
        let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let flags = command.get_arguments().filter(|arg| typed(arg.get_id().as_str()));
        GivenFlags(flags.filter_map(|arg| Some((arg.get_long()?.to_owned(), values(arg, matches)))).collect())
    }

    /// Whether `--flag` was.
    pub fn has(&self, flag: &str) -> bool {
        self.flags().any(|given| given == flag)
    }

    /// An error if one of these was, which `mode` cannot have; each has what to do instead.
    pub fn refuse(&self, flags: &[(&str, &str)], mode: &str) -> Result<(), String> {
        match flags.iter().find(|(flag, _)| self.has(flag)) {
            Some((flag, instead)) => Err(format!("--{flag}: is not for {mode}; {instead}")),
            None => Ok(()),
        }
    }

    /// All of them, in the order of the help.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(flag, _)| flag.as_str())
    }

    /// Flags that may do nothing of a policy or a trace.
    pub(crate) fn partial(&self) -> Vec<&'static str> {
        refault::settings::partial_flags(|flag| self.has(flag))
    }

    /// Flags that change a result, but for some that it says anyway.
    pub(crate) fn settings(&self, but: &[&str]) -> GivenSettings {
        let changes = |flag: &str| !but.contains(&flag) && !OUTPUT.iter().any(|(other, _)| *other == flag);
        GivenSettings(self.0.iter().filter(|(flag, _)| changes(flag)).cloned().collect())
    }
}

/// Values as they were typed, a list of one flag in one; none: a flag without any.
fn values(arg: &Arg, matches: &ArgMatches) -> Vec<String> {
    if !arg.get_action().takes_values() {
        return Vec::new();
    }
    let raw = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    let all: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
    match arg.get_value_delimiter() {
        Some(delimiter) => vec![all.join(&delimiter.to_string())],
        None => all,
    }
}

/// Flags of any command that change no figure of a result, and why.
const OUTPUT: [(&str, &str); 18] = [
    ("json", "form"),
    ("csv", "form"),
    ("output", "place"),
    ("html", "place"),
    ("metrics", "place"),
    ("series", "place"),
    ("miss-bits", "place"),
    ("curve", "a drawing of the rows"),
    ("windows", "the same misses by part"),
    ("vmstat", "more of the same counters"),
    ("lru-gen", "the state at the end"),
    ("swap-map", "the state at the end"),
    ("threads", "figures are the same with any number"),
    ("max-memory", "ends with an error, or changes nothing"),
    ("check", "ends with an error, or changes nothing"),
    ("strict", "ends with an error, or changes nothing"),
    ("folder", "place"),
    ("fail-if", "a condition on the figures"),
];

/// Flags that were given and change a result. As text: what was typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSettings(Vec<(String, Vec<String>)>);

impl GivenSettings {
    /// The line of a table that says them, without some that another line says.
    pub(crate) fn line(&self, but: &[&str]) -> String {
        let left: Vec<_> = self.0.iter().filter(|(flag, _)| !but.contains(&flag.as_str())).cloned().collect();
        match left.is_empty() {
            true => String::new(),
            false => format!("settings: {}\n", refault::words::printable(&GivenSettings(left).to_string())),
        }
    }
}

impl fmt::Display for GivenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().flat_map(|(flag, values)| match values.is_empty() {
            true => vec![format!("--{flag}")],
            false => values.iter().map(|value| format!("--{flag} {value}")).collect(),
        });
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

impl Serialize for GivenSettings {
    /// An object with a value for each flag: true, a text, or a list of some.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (flag, values) in &self.0 {
            match values.as_slice() {
                [] => map.serialize_entry(flag, &true)?,
                [value] => map.serialize_entry(flag, value)?,
                values => map.serialize_entry(flag, values)?,
            }
        }
        map.end()
    }
}
