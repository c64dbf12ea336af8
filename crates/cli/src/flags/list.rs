//! Flags of whose values one word prints a list of them all, as `--kernel list` does.

use clap::builder::TypedValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsStr;

/// Reads a value, but for the word that asks for the list.
#[derive(Clone, Debug)]
pub struct OrList<T> {
    /// Word that asks for the list.
    word: &'static str,
    /// Text of the list.
    list: fn() -> String,
    parse: fn(&str) -> Result<T, String>,
}

impl<T> OrList<T> {
    pub fn new(word: &'static str, list: fn() -> String, parse: fn(&str) -> Result<T, String>) -> OrList<T> {
        OrList { word, list, parse }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OrList<T> {
    type Value = T;

    /// The list goes the way of the help: in an error that ends the command line before anything
    /// that it lacks is missed, so that no trace has to be named for it.
    fn parse_ref(&self, command: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<T, clap::Error> {
        if value == self.word {
            let mut asked = clap::Error::new(ErrorKind::DisplayHelp).with_cmd(command);
            asked.insert(ContextKind::Custom, ContextValue::String((self.list)()));
            return Err(asked);
        }
        self.parse.parse_ref(command, arg, value)
    }
}
