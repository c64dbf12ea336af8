//! All tests of the crate's public side in one program: what they share is compiled once.

mod column_units;
mod columns;
mod damage;
mod example;
mod formats;
mod generate;
mod groups;
mod native;
mod parquet;
mod random;
mod real;
mod sent;
mod separators;
mod tar;
mod tracers;
