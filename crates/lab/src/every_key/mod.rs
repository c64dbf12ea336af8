//! A test of every key of a scenario: that it changes a result. Keys are noted where scenarios are
//! read, so that a new one is looked for here as soon as it is declared.
//!
//! `tests/data/every_key/keys.txt` has a change for each key, `exceptions.txt` the keys that change
//! no result, with the reason. Fields of the engine's configuration are looked for in the same way:
//! each is changed by some key, or has a reason in `fields.txt`. And every effect of the engine is
//! missed where the machine is deaf to it, or has a reason in `effects.txt`.
//!
//! Every key has a statement of what it acts on: a line of `needs.txt` is a key in a scenario
//! without that, in which it is refused, and `always.txt` has the keys that act in every scenario,
//! and why.

mod change;
mod effects;
mod needs;
mod tests;
