//! Decisions that only a live driver asks for. They know nothing of the engine: what happened comes
//! in as numbers.
//!
//! | file | what is in it |
//! |---|---|
//! | `cpu_latency_qos` | whether to keep idle processors from halting |
//! | `polling` | whether to poll for what comes soon |
//! | `pool_balance` | how large a compressed pool is to be |
//! | `sample` | how many pages to sample |
//! | `psi` | pressure-stall information |
//! | `serving_cpu` | which processor serves the faults of a memory |
//!
//! It may call: nothing. It is called by: drivers.

pub(crate) mod cpu_latency_qos;
pub(crate) mod polling;
pub(crate) mod pool_balance;
pub(crate) mod psi;
pub(crate) mod sample;
pub(crate) mod serving_cpu;
