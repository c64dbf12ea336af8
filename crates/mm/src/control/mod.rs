//! TODO map

pub(crate) mod cpu_latency_qos;
pub(crate) mod polling;
pub(crate) mod pool_balance;
pub(crate) mod psi;
pub(crate) mod sample;
