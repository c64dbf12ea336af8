//! Ends of a command that cannot go on: exit statuses, and one line on standard error.

use crate::{Failure, asked_for, complaint, print, say};
use clap::error::ErrorKind;
use std::ffi::OsString;

/// The exit status of bad input.
pub const BAD_INPUT: u8 = 2;

/// Status of success.
pub const SUCCESS: u8 = 0;

/// The least stack with which the command line is read in every build.
const LEAST_STACK: u64 = 1 << 20;

/// Says an error; the exit status.
pub fn fail(e: &Failure) -> u8 {
    say(&format!("error: {e}"));
    BAD_INPUT
}

/// An error where the stack would not suffice for the command line.
pub fn check_stack() -> Result<(), Failure> {
    match refault_syscalls::machine::limit("stack_bytes").filter(|&bytes| bytes < LEAST_STACK) {
        Some(bytes) => Err(format!(
            "the stack may have no more than {} KiB here (ulimit -s); refault takes 1024: raise that limit",
            bytes >> 10
        )
        .into()),
        None => Ok(()),
    }
}

/// Help and lists of values go out whole; a mistake becomes one line with the hints of clap,
/// without its usage. Gives the exit status.
pub fn complain(command: &mut clap::Command, words: &[OsString], e: &clap::Error) -> u8 {
    if let Some(list) = asked_for(e) {
        return print(list).map_or_else(|e| fail(&e), |()| SUCCESS);
    }
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match e.print() {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                fail(&format!("standard output: cannot be written: {e}").into())
            }
            // A reader that has seen enough is no error.
            _ => SUCCESS,
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            BAD_INPUT
        }
        _ => {
            say(&format!("error: {}", complaint(command, words, e)));
            BAD_INPUT
        }
    }
}
