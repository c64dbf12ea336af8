//! Workloads out of a seed.
