//! Which flags a command line has: some make sense only with some inputs.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The long names of the flags that were given, without those that have their default.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<String>);

impl Given {
    /// Collects the flags that were typed for the subcommand that was called.
    pub fn new(command: &Command, matches: &ArgMatches) -> Given {
        let called = matches.subcommand().and_then(|(name, of)| Some((command.find_subcommand(name)?, of)));
        let Some((command, matches)) = called else { return Given::default() };
        let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let flags = command.get_arguments().filter(|arg| typed(arg.get_id().as_str()));
        Given(flags.filter_map(|arg| arg.get_long().map(str::to_owned)).collect())
    }

    /// Whether `--flag` was.
    pub fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|given| given == flag)
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
        self.0.iter().map(String::as_str)
    }
}
