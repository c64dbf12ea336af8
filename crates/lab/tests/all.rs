//! All tests of the crate's public side in one program: what they share is compiled once.

mod cache_ext;
mod cpu_time;
mod events;
mod file_io;
mod groups_beside;
mod machine_events;
mod machine_wide;
mod memory_tiers;
mod min_ttl;
mod nfs_and_marks;
mod oracle;
mod pressure_beside;
mod random;
mod reports;
mod scenario;
mod swap_slots;
mod tables;
mod tiers;
mod trace_task;
mod zram;
