//! Errors of a command line, each in one line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use refault::words::printable;
use std::ffi::OsString;

/// The list of values that a command line asks for, by the word that a flag has for it.
pub fn asked_for(e: &clap::Error) -> Option<&str> {
    match e.get(ContextKind::Custom)? {
        ContextValue::String(text) if e.kind() == ErrorKind::DisplayHelp => Some(text),
        _ => None,
    }
}

/// The mistake that clap found in the words of a command line, with its hints, without its usage.
pub fn complaint(command: &mut Command, words: &[OsString], e: &Error) -> String {
    match negative_number(e) {
        Some(number) => of_its_flag(command, words, number)
            .unwrap_or_else(|| format!("{number}: no flag takes a negative number; --help says more")),
        None if asked_for(e).is_some() => "a list of values is for the command to print".to_owned(),
        None => plain(e),
    }
}

fn plain(e: &Error) -> String {
    let text = e.to_string();
    // Clap advises to write what begins with a dash as a file.
    let text = text.split("\n  tip: to pass '-").next().unwrap_or_default();
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    let line = one_line(&text[..end.unwrap_or(text.len())]);
    let line = NUMBERS.iter().fold(line, |line, (of_std, plain)| line.replace(of_std, plain));
    format!("{}; --help says more", line.strip_prefix("error: ").unwrap_or(&line))
}

/// Messages of the standard library for text that is no number, each with ours.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "is not a whole number, 0 or more"),
    ("cannot parse integer from empty string", "is not a whole number, 0 or more"),
    ("number too large to fit in target type", "is too large"),
    ("invalid float literal", "is not a number"),
];

/// The negative number that clap took for an unknown flag, and would advise to write as a file.
fn negative_number(e: &Error) -> Option<&str> {
    match e.get(ContextKind::InvalidArg)? {
        ContextValue::String(arg) if e.kind() == ErrorKind::UnknownArgument => {
            let digits = arg.strip_prefix('-')?;
            digits.starts_with(|c: char| c.is_ascii_digit()).then_some(arg)
        }
        _ => None,
    }
}

/// Error of the flag in front of a negative number about that value: the command line is parsed
/// again with both joined in one word.
fn of_its_flag(command: &mut Command, words: &[OsString], number: &str) -> Option<String> {
    let is_pair =
        |pair: &[OsString]| pair[0].to_string_lossy().starts_with('-') && pair[1].to_string_lossy().starts_with(number);
    let at = words.windows(2).position(is_pair)?;
    let mut joined = words.to_vec();
    let value = joined.remove(at + 1);
    joined[at].push("=");
    joined[at].push(value);
    let e = command.try_get_matches_from_mut(joined).err()?;
    matches!(e.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue).then(|| plain(&e))
}

/// The lines of a message in one. Names of files are in messages: no control character of theirs
/// reaches the terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part);
    }
    printable(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line() {
        assert_eq!(one_line("a:\n  b\n\n  tip: c"), "a: b; tip: c");
        assert_eq!(one_line("a\x1b[2J\u{202e}b"), "a?[2J?b");
    }
}
