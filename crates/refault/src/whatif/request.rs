//! Request: which machine is today's, and what of it is changed.

use super::change::{FileAdvice, LimitChange, WhatIfChange};
use super::subject::WhatIfSubject;
use crate::Failure;
use crate::memory_size::Size as MemorySize;
use crate::replay::swap::{Compression, ReplaySwap, SwapKind};
use crate::settings::Set;
use refault_mm::{Kernel, Policy};
use refault_trace::Via;
use std::time::Duration;

/// Kernels that are tried where none is named: releases that distributions have.
const KERNELS: [Kernel; 5] = [Kernel::V6_1, Kernel::V6_6, Kernel::V6_12, Kernel::V6_18, Kernel::V7_2];
/// Limits that are tried where none is named, in percent of today's.
const LIMITS: [f64; 4] = [50.0, 75.0, 125.0, 150.0];
/// Swappiness that is tried where none is named.
const SWAPPINESS: [u32; 3] = [0, 60, 100];

/// `min_ttl_ms` that is tried where none is named, as distributions set it.
const MIN_TTL: Duration = Duration::from_secs(1);

/// Request of changes. Where no change is named, each of a list is tried by itself; where some are,
/// these are tried, and crossed with each other.
#[derive(Clone, Debug)]
pub struct WhatIfRequest {
    /// Today's limit; none: as recorded, of a trace half of what it touches.
    pub memory: Option<MemorySize>,
    /// Today's kernel; none: as recorded or written, of a trace the default one.
    pub from_kernel: Option<Kernel>,
    /// Today's policy; none: as recorded or written, of a trace `mglru`.
    pub from_policy: Option<Policy>,
    /// Today's swap of a trace; none: zram of any size.
    pub from_swap: Option<ReplaySwap>,
    /// Compression of the pages on zram and zswap of a trace; none: lz4 as it was measured.
    pub compression: Option<Compression>,
    /// Takes a recording page by page, as a trace, with the touches of anonymous memory that it
    /// has.
    pub page_by_page: bool,
    /// Kernels to try.
    pub kernels: Vec<Kernel>,
    /// Policies to try.
    pub policies: Vec<Policy>,
    /// Limits to try.
    pub limits: Vec<LimitChange>,
    /// Swappiness to try, 0 to 200.
    pub swappiness: Vec<u32>,
    /// Largest windows of readahead to try.
    pub read_ahead: Vec<MemorySize>,
    /// Kinds of swap to try.
    pub swap: Vec<ReplaySwap>,
    /// Advice of programs on all of their files to try.
    pub advice: Vec<FileAdvice>,
    /// `min_ttl_ms` of a scenario to try.
    pub min_ttl: Vec<Duration>,
    /// Settings of the engine to try.
    pub set: Vec<Set>,
    /// How pages of files are touched where a trace does not say.
    pub via: Via,
    /// Runs of each machine, from which the uncertainty comes, 1 or more; none: 5, of a scenario 3.
    pub starts: Option<u16>,
    /// The group of a scenario that is measured, and limited; none: the machine, and the only group
    /// with a limit.
    pub group: Option<String>,
    /// Divisor of sizes, amounts of work and times of a scenario, 1 or more.
    pub scale: f64,
    /// The first seed; none: that of a scenario, or 0.
    pub seed: Option<u64>,
    /// Threads; none: one a core.
    pub threads: Option<u16>,
}

impl Default for WhatIfRequest {
    fn default() -> WhatIfRequest {
        WhatIfRequest {
            memory: None,
            from_kernel: None,
            from_policy: None,
            from_swap: None,
            compression: None,
            page_by_page: false,
            kernels: Vec::new(),
            policies: Vec::new(),
            limits: Vec::new(),
            swappiness: Vec::new(),
            read_ahead: Vec::new(),
            swap: Vec::new(),
            advice: Vec::new(),
            min_ttl: Vec::new(),
            set: Vec::new(),
            via: Via::Fd,
            starts: None,
            group: None,
            scale: 1.0,
            seed: None,
            threads: None,
        }
    }
}

impl WhatIfRequest {
    /// Changes that are tried: some at a time, each a list of what is changed together.
    pub(super) fn changes(&self, subject: &dyn WhatIfSubject) -> Result<Vec<Vec<WhatIfChange>>, Failure> {
        let lists: Vec<Vec<WhatIfChange>> = self.named().into_iter().filter(|list| !list.is_empty()).collect();
        for change in lists.iter().flatten() {
            if let Some(why) = subject.refuses(change) {
                return Err(format!("--{}: {}", change.flag(), why).into());
            }
        }
        if lists.is_empty() {
            let usual = self.usual(subject).into_iter().filter(|change| subject.refuses(change).is_none());
            return Ok(usual.map(|change| vec![change]).collect());
        }
        let crossed = lists.iter().fold(vec![Vec::new()], |all: Vec<Vec<WhatIfChange>>, list| {
            let with = |changes: &Vec<WhatIfChange>| {
                let changes = changes.clone();
                list.iter().map(move |change| changes.iter().cloned().chain([change.clone()]).collect())
            };
            all.iter().flat_map(with).collect()
        });
        Ok(crossed)
    }

    /// Whether changes are named, in the place of the usual ones.
    pub(super) fn has_changes(&self) -> bool {
        self.named().iter().any(|list| !list.is_empty())
    }

    /// Changes that are named, by kind.
    fn named(&self) -> [Vec<WhatIfChange>; 9] {
        [
            self.kernels.iter().copied().map(WhatIfChange::Kernel).collect(),
            self.policies.iter().copied().map(WhatIfChange::Policy).collect(),
            self.limits.iter().cloned().map(WhatIfChange::Limit).collect(),
            self.swappiness.iter().copied().map(WhatIfChange::Swappiness).collect(),
            self.read_ahead.iter().cloned().map(WhatIfChange::ReadAhead).collect(),
            self.swap.iter().cloned().map(WhatIfChange::Swap).collect(),
            self.advice.iter().copied().map(WhatIfChange::Advice).collect(),
            self.min_ttl.iter().copied().map(WhatIfChange::MinTtl).collect(),
            self.set.iter().cloned().map(WhatIfChange::Set).collect(),
        ]
    }

    /// Changes that are tried where none is named.
    fn usual(&self, subject: &dyn WhatIfSubject) -> Vec<WhatIfChange> {
        let today = subject.today();
        let mut all: Vec<WhatIfChange> =
            KERNELS.into_iter().filter(|&kernel| kernel != today.kernel).map(WhatIfChange::Kernel).collect();
        let other = if today.policy == Policy::Mglru { Policy::Lru } else { Policy::Mglru };
        all.push(WhatIfChange::Policy(other));
        all.extend(LIMITS.map(|percent| WhatIfChange::Limit(LimitChange::percent(percent))));
        all.extend(SWAPPINESS.into_iter().filter(|&n| n != today.swappiness).map(WhatIfChange::Swappiness));
        all.extend(subject.read_ahead().into_iter().map(WhatIfChange::ReadAhead));
        all.extend(SwapKind::ALL.map(|kind| WhatIfChange::Swap(kind.into())));
        all.push(WhatIfChange::Advice(FileAdvice::Random));
        if today.policy == Policy::Mglru {
            all.push(WhatIfChange::MinTtl(MIN_TTL));
        }
        all
    }
}
