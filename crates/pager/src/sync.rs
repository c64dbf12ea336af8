//! Locks and atomics: those of the standard library, or, with the feature `shuttle`, those whose
//! threads a test schedules.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
