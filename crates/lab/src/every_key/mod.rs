//! A test of every key of a scenario: that it changes a result. Keys are noted where scenarios are
//! read, so that a new one is looked for here as soon as it is declared.
//!
//! `tests/data/every_key/keys.txt` has a change for each key, `exceptions.txt` the keys that change
//! no result, with the reason. Fields of the engine's configuration are looked for in the same way:
//! each is changed by some key, or has a reason in `fields.txt`. And every effect of the engine is
//! missed where the machine is deaf to it, or has a reason in `effects.txt`.

mod change;
mod effects;
mod tests;
