//! Decisions of a driver of real memory, without system calls and clocks: what happened comes in as
//! numbers.
//!
//! | file | what is in it |
//! |---|---|
//! | `cpu_latency_qos` | whether to keep idle processors from halting |
//! | `polling` | whether to poll for what comes soon |
//! | `pool_balance` | how large a compressed pool is to be |
//! | `sample` | how many pages to sample |
//! | `serving_cpu` | which processor serves the faults of a memory |
//!
//! It may call: nothing.

mod cpu_latency_qos;
mod polling;
mod pool_balance;
mod sample;
mod serving_cpu;

pub use cpu_latency_qos::{CpuLatencyQos, CpuLatencyQosStats, LOOK_NS, LOOK_WAKES};
pub use polling::{Polling, PollingStats};
pub use pool_balance::{PoolBalance, PoolBalanceStats, PoolExtent, PoolTier};
pub use sample::{SampleBudget, SampleStats};
pub use serving_cpu::{ServingCpu, ServingCpuStep};
