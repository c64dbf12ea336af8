//! Policies by name: Linux's own, plug-ins, and OPT, the limit of them all.

use refault_mm::{CacheExtPolicy, Policy};
use std::fmt;
use std::str::FromStr;

/// A policy of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowPolicy {
    /// A policy that the engine runs: of Linux, or in the form of cache_ext.
    Linux(Policy),
    /// Belady's OPT, which knows the future.
    Opt,
}

impl RowPolicy {
    /// All policies but the ones in the form of cache_ext.
    pub fn all() -> impl Iterator<Item = RowPolicy> {
        Policy::ALL.into_iter().map(RowPolicy::Linux).chain([RowPolicy::Opt])
    }

    /// All policies, also the ones in the form of cache_ext.
    pub fn every() -> impl Iterator<Item = RowPolicy> {
        Policy::every().map(RowPolicy::Linux).chain([RowPolicy::Opt])
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RowPolicy::Linux(policy) => policy.name(),
            RowPolicy::Opt => "opt",
        }
    }

    /// Whether it has the form of cache_ext: one for pages of files.
    pub fn is_plug_in(self) -> bool {
        matches!(self, RowPolicy::Linux(Policy::Ext(_)))
    }

    /// The letter that stands for it in a curve.
    pub fn letter(self) -> char {
        match self {
            RowPolicy::Linux(Policy::Lru) => 'l',
            RowPolicy::Linux(Policy::Lru2013) => '3',
            RowPolicy::Linux(Policy::LruNone) => 'n',
            RowPolicy::Linux(Policy::LruShadow) => 's',
            RowPolicy::Linux(Policy::Mglru) => 'm',
            RowPolicy::Linux(Policy::MglruShadow) => 'M',
            RowPolicy::Linux(Policy::Ext(policy)) => match policy {
                CacheExtPolicy::Fifo => 'f',
                CacheExtPolicy::Clock => 'c',
                CacheExtPolicy::LruExact => 'L',
                CacheExtPolicy::Mru => 'u',
                CacheExtPolicy::Lfu => 'q',
                CacheExtPolicy::Sieve => 'v',
                CacheExtPolicy::S3Fifo => 'S',
                CacheExtPolicy::Arc => 'a',
                CacheExtPolicy::TwoQ => '2',
                CacheExtPolicy::Lirs => 'i',
                CacheExtPolicy::WTinyLfu => 'w',
                CacheExtPolicy::Mglru => 'g',
                CacheExtPolicy::GetScan => 'x',
            },
            RowPolicy::Opt => 'o',
        }
    }
}

impl fmt::Display for RowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RowPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<RowPolicy, String> {
        let known = || RowPolicy::every().map(RowPolicy::name).collect::<Vec<_>>().join(", ");
        let found = RowPolicy::every().find(|policy| policy.name() == name);
        found.ok_or_else(|| format!("unknown policy {name:?}; known are {}", known()))
    }
}

/// The policies of one `--policy`, without repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyList(pub Vec<RowPolicy>);

impl FromStr for PolicyList {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyList, String> {
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim) {
            let named: Vec<_> = match name {
                "all" => RowPolicy::all().collect(),
                name => RowPolicy::every().filter(|p| p.name() == name).collect(),
            };
            if named.is_empty() {
                let known: Vec<_> = RowPolicy::every().map(RowPolicy::name).collect();
                return Err(format!("unknown policy {name:?}; known are {} and all", known.join(", ")));
            }
            for policy in named {
                if !list.contains(&policy) {
                    list.push(policy);
                }
            }
        }
        Ok(PolicyList(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let names = |text: &str| text.parse::<PolicyList>().map(|l| l.0.iter().map(|p| p.name()).collect::<Vec<_>>());
        assert_eq!(names("mglru, opt,mglru"), Ok(vec!["mglru", "opt"]));
        assert_eq!(names("all").map(|l| l.len()), Ok(7));
        assert_eq!(names("opt,all").map(|l| l[0]), Ok("opt"));
        let error = names("belady").expect_err("not a policy");
        assert!(error.contains("\"belady\"") && error.contains("lru-2013, lru-none"), "{error}");
    }
}
