//! A store that fails as it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::profile::Profile;
use super::random::Random;
use crate::store::{Fault as StoreFault, Faulty};

/// Plan of faults in the store.
#[derive(Default)]
pub(super) struct StorePlan {
    pub(super) is_calm: Arc<AtomicBool>,
    pub(super) faults: Arc<AtomicU64>,
    pub(super) calls: Arc<AtomicU64>,
}

impl StorePlan {
    pub(super) fn store(&self, profile: &Profile, seed: u64) -> Faulty {
        let rates = profile.rates;
        let (is_calm, faults) = (self.is_calm.clone(), self.faults.clone());
        let mut random = Random::new(seed ^ 0x73_746F_7265);
        let calls = self.calls.clone();
        Faulty::new(move |_, is_write| {
            calls.fetch_add(1, Ordering::Relaxed);
            if is_calm.load(Ordering::Relaxed) {
                return None;
            }
            let fault = match is_write {
                true if random.one_in(rates.store_full) => StoreFault::WriteIsFull,
                true if random.one_in(rates.store_error) => StoreFault::WriteFails,
                true if random.one_in(rates.store_corrupt) => {
                    random.of(&[StoreFault::WriteIsTorn, StoreFault::WriteIsLost])
                }
                false if random.one_in(rates.store_error) => StoreFault::ReadFails,
                false if random.one_in(rates.store_corrupt) => {
                    random.of(&[StoreFault::ReadFlipsABit, StoreFault::ReadIsStale])
                }
                _ => return None,
            };
            faults.fetch_add(1, Ordering::Relaxed);
            Some(fault)
        })
        .with_copies(profile.keeps_copies)
    }
}
