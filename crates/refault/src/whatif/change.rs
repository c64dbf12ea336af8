//! A change of a machine, and a machine with and without it.

use crate::memory_size::{Size as MemorySize, human};
use crate::replay::swap::ReplaySwap;
use crate::settings::Set;
use crate::words::duration;
use refault_mm::{Kernel, Policy};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Advice of programs on how they access their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// `MADV_RANDOM` and `POSIX_FADV_RANDOM`: nothing is read ahead, and accessed bits of mapped
    /// files do not count.
    Random,
}

impl FromStr for FileAdvice {
    type Err = String;

    fn from_str(text: &str) -> Result<FileAdvice, String> {
        match text {
            "random" => Ok(FileAdvice::Random),
            _ => Err(format!("{text:?} is no advice that can be tried; write random")),
        }
    }
}

/// A limit in the place of today's.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitChange(MemorySize);

impl FromStr for LimitChange {
    type Err = String;

    fn from_str(text: &str) -> Result<LimitChange, String> {
        MemorySize::parse(text, "today's limit").map(LimitChange)
    }
}

impl LimitChange {
    /// A share of today's limit.
    pub fn percent(percent: f64) -> LimitChange {
        LimitChange(MemorySize::percent(percent))
    }

    /// The limit in pages.
    pub(super) fn pages(&self, page_size: u32, today: u64) -> u64 {
        self.0.pages(page_size, today)
    }
}

/// One setting that is otherwise.
#[derive(Clone, Debug)]
pub enum WhatIfChange {
    /// The kernel whose rules hold.
    Kernel(Kernel),
    /// The kind of lists.
    Policy(Policy),
    /// The limit.
    Limit(LimitChange),
    /// Preference of anonymous over file pages, 0 to 200.
    Swappiness(u32),
    /// The largest window of readahead of every file, a size.
    ReadAhead(MemorySize),
    /// The kind of swap.
    Swap(ReplaySwap),
    /// Advice of programs on how they access all of their files.
    Advice(FileAdvice),
    /// `min_ttl_ms`: age below which nothing is reclaimed under multi-gen LRU.
    MinTtl(Duration),
    /// A setting of the engine.
    Set(Set),
}

impl WhatIfChange {
    /// The flag that names it.
    pub fn flag(&self) -> &'static str {
        match self {
            WhatIfChange::Kernel(_) => "kernel",
            WhatIfChange::Policy(_) => "policy",
            WhatIfChange::Limit(_) => "limit",
            WhatIfChange::Swappiness(_) => "swappiness",
            WhatIfChange::ReadAhead(_) => "read-ahead",
            WhatIfChange::Swap(_) => "swap",
            WhatIfChange::Set(_) => "set",
            WhatIfChange::Advice(_) => "advice",
            WhatIfChange::MinTtl(_) => "min-ttl",
        }
    }
}

impl fmt::Display for WhatIfChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhatIfChange::Kernel(kernel) => write!(f, "kernel {}", kernel.name()),
            WhatIfChange::Policy(policy) => write!(f, "policy {policy}"),
            WhatIfChange::Limit(LimitChange(size)) => write!(f, "limit {size}"),
            WhatIfChange::Swappiness(n) => write!(f, "swappiness {n}"),
            WhatIfChange::ReadAhead(size) => write!(f, "readahead {size}"),
            WhatIfChange::Swap(swap) => write!(f, "swap {swap}"),
            WhatIfChange::Advice(FileAdvice::Random) => write!(f, "advice random"),
            WhatIfChange::MinTtl(age) => write!(f, "min_ttl {}", duration(age.as_nanos() as u64)),
            WhatIfChange::Set(set) => write!(f, "{set}"),
        }
    }
}

/// A machine that runs.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) kernel: Kernel,
    pub(super) policy: Policy,
    /// The limit in pages, and bytes a page.
    pub(super) memory_pages: u64,
    pub(super) page_size: u32,
    pub(super) swappiness: u32,
    /// The largest window in pages; none: as each file has it.
    pub(super) read_ahead: Option<u32>,
    /// The kind of swap; none: as it is today.
    pub(super) swap: Option<ReplaySwap>,
    /// Advice on all files; none: as it is today.
    pub(super) advice: Option<FileAdvice>,
    /// `min_ttl_ms` in nanoseconds; none: as it is today.
    pub(super) min_ttl_ns: Option<u64>,
    pub(super) set: Vec<Set>,
    pub(super) seed: u64,
    /// Whether programs use what they have mapped all the time, where the input does not say.
    pub(super) mapped_in_use: bool,
}

impl Setup {
    /// Whether both are one machine.
    pub(super) fn is_same(&self, other: &Setup) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }

    /// The same with something else.
    pub(super) fn with(mut self, change: &WhatIfChange) -> Setup {
        match change {
            WhatIfChange::Kernel(kernel) => self.kernel = *kernel,
            WhatIfChange::Policy(policy) => self.policy = *policy,
            WhatIfChange::Limit(limit) => self.memory_pages = limit.pages(self.page_size, self.memory_pages),
            WhatIfChange::Swappiness(n) => self.swappiness = *n,
            WhatIfChange::ReadAhead(size) => {
                let pages = size.pages(self.page_size, 0);
                self.read_ahead = Some(u32::try_from(pages).unwrap_or(u32::MAX));
            }
            WhatIfChange::Swap(swap) => self.swap = Some(swap.clone()),
            WhatIfChange::Advice(advice) => {
                self.advice = Some(*advice);
                self.read_ahead = Some(0);
            }
            WhatIfChange::MinTtl(age) => self.min_ttl_ns = Some(age.as_nanos() as u64),
            WhatIfChange::Set(set) => self.set.push(set.clone()),
        }
        self
    }

    /// The limit in words.
    pub(super) fn limit_in_words(&self) -> String {
        match self.memory_pages {
            u64::MAX => "no limit".to_owned(),
            pages => human(pages.saturating_mul(u64::from(self.page_size))),
        }
    }

    /// Policy, kernel and limit in words.
    pub(super) fn in_words(&self) -> String {
        let swap = self.swap.as_ref().map_or(String::new(), |swap| format!(", swap {swap}"));
        format!("{} of Linux {} in {}{swap}", self.policy, self.kernel.name(), self.limit_in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_of_the_machine_as_it_is() {
        let today = Setup {
            kernel: Kernel::V6_12,
            policy: Policy::Lru,
            memory_pages: 1000,
            page_size: 4096,
            swappiness: 60,
            read_ahead: None,
            swap: None,
            advice: None,
            min_ttl_ns: None,
            set: Vec::new(),
            seed: 0,
            mapped_in_use: false,
        };
        let with = |change: WhatIfChange| today.clone().with(&change);
        let limit = |text: &str| with(WhatIfChange::Limit(text.parse().unwrap_or_else(|e| panic!("{e}")))).memory_pages;
        assert_eq!([limit("75%"), limit("1M"), limit("150%"), limit("7p")], [750, 256, 1500, 7]);
        let none = MemorySize::absolute("0").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(with(WhatIfChange::ReadAhead(none)).read_ahead, Some(0));
        assert_eq!(WhatIfChange::Limit(LimitChange::percent(50.0)).to_string(), "limit 50%");
        let random = with(WhatIfChange::Advice(FileAdvice::Random));
        assert_eq!((random.read_ahead, random.advice), (Some(0), Some(FileAdvice::Random)));
        assert_eq!(WhatIfChange::MinTtl(Duration::from_secs(1)).to_string(), "min_ttl 1.00 s");
    }
}
