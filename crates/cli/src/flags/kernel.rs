//! `--kernel`: the profile, and the list of them.

use refault_mm::Kernel;
use std::fmt::Write as _;

use super::list::OrList;

/// Reads `--kernel`; `list` prints what there is.
pub fn parser() -> OrList<Kernel> {
    OrList::new("list", list, |name| name.parse().map_err(|e| format!("{e}; list prints what each is")))
}

/// Text that `--kernel list` prints.
fn list() -> String {
    let mut text = String::from("--kernel NAME, and what it sets that 6.12 has not; --set KEY=VALUE goes on top:\n");
    for kernel in Kernel::ALL {
        let _ = write!(text, "\n  {}: {}\n", kernel.name(), kernel.about());
        for rule in kernel.rules() {
            let _ = writeln!(text, "    {} ({})", rule.change, rule.since);
            for (setting, value) in rule.settings() {
                let _ = writeln!(text, "      {}={value}", setting.name);
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
            assert!(after(rule.change).lines().nth(1).is_some_and(|l| l.starts_with("      ")), "{}", rule.change);
        }
    }
}
