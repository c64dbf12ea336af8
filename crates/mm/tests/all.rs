//! All tests of the crate's public side in one program: what they share is compiled once.

mod advice;
mod cache_ext;
mod dirty_expire;
mod dirty_limits;
mod executable;
mod file_folios;
mod invariants;
mod kernels;
mod large_folios;
mod machines;
mod memcgs;
mod model;
mod promotion;
mod read_around;
mod readahead;
mod reparent;
mod reserve;
mod small_files;
mod state_machine;
mod swap;
mod tiers;
mod tiers_random;
mod truncate;
mod unmap;
mod zswap;
mod zswap_regressions;
