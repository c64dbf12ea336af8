//! `--kernel`: the profile, and the list of them.

use refault_mm::{Config, Kernel, Policy};
use std::fmt::Write as _;
use std::str::FromStr;

use super::settings;

/// The value of `--kernel`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelArg {
    /// `--kernel list`.
    List,
    /// That kernel.
    Of(Kernel),
}

impl FromStr for KernelArg {
    type Err = String;

    fn from_str(name: &str) -> Result<KernelArg, String> {
        match name {
            "list" => Ok(KernelArg::List),
            _ => name.parse().map(KernelArg::Of).map_err(|e| format!("{e}; list prints their rules")),
        }
    }
}

impl KernelArg {
    /// The kernel; none: the list was asked for, or nothing.
    pub fn kernel(arg: Option<KernelArg>) -> Option<Kernel> {
        match arg {
            Some(KernelArg::Of(kernel)) => Some(kernel),
            _ => None,
        }
    }
}

/// A policy as a kernel has it.
pub fn config(kernel: Option<Kernel>, policy: Policy) -> Config {
    let mut cfg = Config::new(policy);
    kernel.unwrap_or_default().apply(&mut cfg);
    cfg
}

/// What `--kernel list` prints.
pub fn list() -> String {
    let mut text = String::from("--kernel NAME, and what it sets that 6.12 has not; --set KEY=VALUE goes on top:\n");
    for kernel in Kernel::ALL {
        let _ = write!(text, "\n  {}: {}\n", kernel.name(), kernel.about());
        for rule in kernel.rules() {
            let _ = writeln!(text, "    {}", rule.change);
            let mut cfg = Config::new(Policy::Mglru);
            rule.apply(&mut cfg);
            let plain = Config::new(Policy::Mglru);
            let changed = settings::values(&cfg).zip(settings::values(&plain)).filter(|(a, b)| a != b);
            for ((key, value), _) in changed {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(text, "      {key}={value}");
            }
        }
        if kernel.has_exact_stats() {
            text += "    \"use ratelimited stats flush in the reclaim\" (6.12): before, reclaim of a group saw exact statistics\n";
            text += "      stat_flush_interval = 0, in scenarios\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_every_rule_with_the_keys_that_it_sets() {
        let text = list();
        for kernel in Kernel::ALL {
            assert!(text.contains(&format!("\n  {}: ", kernel.name())));
        }
        let after = |line: &str| text.split_once(line).unwrap_or_else(|| panic!("{line} in {text}")).1;
        assert!(after("\n  6.1: ").contains("      memcgs=first\n"));
        let of_6_6 = after("\n  6.6: ").split_once("\n\n").unwrap().0;
        assert!(of_6_6.contains("batch_folios=15") && !of_6_6.contains("memcgs=first"), "{of_6_6}");
        for rule in Kernel::ALL.iter().flat_map(|k| k.rules()) {
            assert!(after(rule.change).starts_with("\n      "), "{}: no key", rule.change);
        }
    }

    #[test]
    fn unknown_kernels_are_named() {
        let error = "2.6".parse::<KernelArg>().unwrap_err();
        assert!(error.contains("6.18, 7.2; list prints"), "{error}");
    }
}
