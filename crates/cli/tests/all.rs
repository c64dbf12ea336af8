//! All tests of the command and its library in one program: what they share is compiled once.

mod api;
mod bad_input;
mod bench;
mod cli;
mod common;
mod doctor;
mod golden;
mod groups;
mod memcg_column;
mod older_rules;
mod opt_bound;
mod oracle;
mod record;
mod record_failures;
mod record_warm;
mod report;
mod report_words;
mod rules;
mod run;
mod sampling;
mod scenario;
mod size;
mod streaming;
mod tiers;
mod verify;
