//! `refault` without a word: where each reader begins.

use crate::exit::{BAD_INPUT, fail};
use crate::print;

const TEXT: &str = "\
refault: what Linux's page reclaim would do with the memory accesses of a program

See it at work, in five seconds:
  refault demo

I run services: how much memory does one need?
  refault record --cgroup /system.slice/web.service --for 10m -o web.parquet
  refault size web.parquet

I work on reclaim: what does a change do to a machine?
  refault bench db-switch

I study caches: what do policies make of a trace?
  refault trace generate loop.parquet --phase '245760: A:loop:12288'
  refault replay loop.parquet --policy all --curve

refault doctor says what works on this machine, refault --help has all commands.
";

/// Prints it; the exit status. Nothing was asked for, so that it is no success.
pub(crate) fn show() -> u8 {
    match print(TEXT) {
        Ok(()) => BAD_INPUT,
        Err(e) => fail(&e),
    }
}
