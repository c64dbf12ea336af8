//! `memory.min` and `memory.low`: the part of them that is effective under the pressure of an
//! ancestor.
//!
//! Mechanism: `docs/mechanisms.md#memory-protection`.

use crate::ids::MemcgId;
use crate::memcg::group::Memcgs;
use crate::scan::ScanControl;

/// Index of `min` in `[min, low]`.
pub(crate) const MIN: usize = 0;
/// Index of `low` in `[min, low]`.
pub(crate) const LOW: usize = 1;

/// Protection that a group claims, `[min, low]` each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protection {
    /// `memory.min` and `memory.low`, as set, in pages.
    pub(crate) setting: [u64; 2],
    /// Used part of the claims, in pages: min(usage, setting).
    used: [u64; 2],
    /// Sum of `used` over the children of the group, in pages.
    children: [u64; 2],
}

impl Protection {
    /// Whether the used part must be computed anew when usage changes.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.setting != [0; 2]
    }
}

/// One level of the formula: the effective protection of a group, in pages, from its `usage` and
/// `setting`; the usage (`parent_usage`) and effective protection (`parent`) of its parent; and the
/// sum of min(usage, setting) over the parent's `children`.
pub fn effective_protection(
    usage: u64,
    setting: u64,
    parent_usage: u64,
    parent: u64,
    children: u64,
    recursive: bool,
) -> u64 {
    let scaled = |n: u64, by: u64, of: u64| (u128::from(n) * u128::from(by) / u128::from(of)) as u64;
    let used = usage.min(setting);
    if children > parent {
        // More is claimed than the parent has: all get the same share of it.
        return scaled(used, parent, children);
    }
    if recursive && parent > children && parent_usage > children && usage > used {
        // Protection that nobody claims goes to usage beyond the claims.
        return used + scaled(parent - children, usage - used, parent_usage - children);
    }
    used
}

/// Permission of reclaim to take from a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BelowProtection {
    /// Nothing: it is below its effective `min`.
    Min,
    /// Nothing while others can give: it is below its effective `low`.
    Low,
    /// The group is reclaimed like any other.
    None,
}

impl Memcgs {
    /// Updates the used protection of a group after its usage or its settings changed, and the sum
    /// that its parent keeps.
    #[cold]
    pub(crate) fn propagate_protection(&mut self, id: MemcgId) {
        let m = self.get_mut(id);
        let Some(parent) = m.parent else { return };
        let old = m.protection.used;
        m.protection.used = m.protection.setting.map(|s| s.min(m.usage));
        let new = m.protection.used;
        let sums = &mut self.get_mut(parent).protection.children;
        (0..2).for_each(|i| sums[i] = sums[i] + new[i] - old[i]);
    }

    /// The usage of a group changed, and that of all above it.
    #[cold]
    pub(crate) fn propagate_protections(&mut self, id: MemcgId) {
        let mut at = Some(id);
        while let Some(id) = at {
            let m = self.get(id);
            at = m.parent;
            if m.protection.is_set() {
                self.propagate_protection(id);
            }
        }
    }

    /// `[emin, elow]` of a group, in pages, when `target` is reclaimed. The protection of `target`
    /// itself does not count.
    pub(crate) fn effective_protection(&self, target: MemcgId, id: MemcgId) -> [u64; 2] {
        if !self.any_protected || id == target || id == MemcgId::ROOT {
            return [0; 2];
        }
        let below_target: Vec<MemcgId> = self.chain(id).take_while(|&m| m != target).collect();
        let mut effective = [0; 2];
        for (depth, &at) in below_target.iter().rev().enumerate() {
            let m = self.get(at);
            let above = self.get(m.parent.unwrap_or(target));
            effective = match depth {
                // A group right below the target is protected as it is set.
                0 => m.protection.setting,
                _ => std::array::from_fn(|i| {
                    let (setting, children) = (m.protection.setting[i], above.protection.children[i]);
                    effective_protection(
                        m.usage,
                        setting,
                        above.usage,
                        effective[i],
                        children,
                        self.recursive_protection,
                    )
                }),
            };
        }
        effective
    }

    /// Whether a group is shielded from reclaim on behalf of `target`.
    pub(crate) fn below_protection(&self, target: MemcgId, id: MemcgId) -> BelowProtection {
        if !self.any_protected || id == target || id == MemcgId::ROOT {
            return BelowProtection::None;
        }
        let [min, low] = self.effective_protection(target, id);
        let usage = self.get(id).usage;
        if min >= usage {
            BelowProtection::Min
        } else if low >= usage {
            BelowProtection::Low
        } else {
            BelowProtection::None
        }
    }

    /// Pages of a list of `size` pages of which two-list reclaim scans a share: those that the
    /// group's protection leaves, at least `batch`. Notes in `sc` if `memory.low` protects any.
    #[inline]
    pub(crate) fn unprotected_pages(&self, sc: &mut ScanControl, id: MemcgId, size: u64, batch: u64) -> u64 {
        match self.any_protected {
            true => self.pages_beyond_protection(sc, id, size, batch),
            false => size,
        }
    }

    fn pages_beyond_protection(&self, sc: &mut ScanControl, id: MemcgId, size: u64, batch: u64) -> u64 {
        let [min, low] = self.effective_protection(sc.target, id);
        if min == 0 && low == 0 {
            return size;
        }
        let by_low = low > min && !sc.low_reclaim;
        sc.low_skipped |= by_low;
        let protected = if by_low { low } else { min };
        let usage = self.get(id).usage.max(protected);
        let kept = u128::from(size) * u128::from(protected) / (u128::from(usage) + 1);
        (size - kept as u64).max(batch)
    }

    /// Checks the used protection of every group, and the sums.
    pub(crate) fn validate_protection(&self) -> Result<(), String> {
        for id in self.subtree(MemcgId::ROOT) {
            let m = self.get(id);
            let p = &m.protection;
            let used = p.setting.map(|s| s.min(m.usage));
            let sum = |i: usize| self.children(id).map(|c| self.get(c).protection.used[i]).sum::<u64>();
            if id != MemcgId::ROOT && p.used != used || p.children != [sum(MIN), sum(LOW)] {
                return Err(format!("{}: protection {p:?}, usage {}", m.name, m.usage));
            }
            if p.setting != [0; 2] && !self.any_protected {
                return Err(format!("{}: protected, and nobody knows", m.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LruvecId;
    use crate::memcg::group::Memcg;

    /// A line of a tree: the group's number, and the expected protection if it is asked for.
    type Expected = (MemcgId, [Option<u64>; 2]);

    fn number(word: &str) -> Option<u64> {
        match word {
            "?" => None,
            "max" => Some(u64::MAX),
            n => Some(n.parse().expect("a number")),
        }
    }

    /// Builds the tree of some lines; returns the target and the expected protection of each group.
    fn tree(lines: &[&str], recursive: bool, target: &str) -> (Memcgs, MemcgId, Vec<Expected>) {
        let mut t = Memcgs::new(64, recursive);
        t.any_protected = true;
        let (mut expected, mut usages) = (Vec::new(), vec![0]);
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [path, usage, min, low, "=", emin, elow] = words[..] else { panic!("{line}") };
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            let parent = t.all.iter().position(|m| m.name == above || (above.is_empty() && m.name == "/"));
            let id = MemcgId(t.all.len() as u16);
            t.all.push(Memcg::new(None, path, LruvecId(0), u64::MAX, u64::MAX));
            t.link(id, MemcgId(parent.expect("a parent") as u16));
            t.get_mut(id).protection.setting = [min, low].map(|n| number(n).expect("a setting"));
            usages.push(number(usage).expect("a usage"));
            expected.push((id, [emin, elow].map(number)));
        }
        for (i, usage) in usages.iter().enumerate().skip(1) {
            let id = MemcgId(i as u16);
            let below: u64 = t.children(id).map(|c| usages[c.index()]).sum();
            t.force_charge(id, usage - below);
            t.propagate_protection(id);
        }
        t.validate_protection().unwrap();
        let target = t.all.iter().position(|m| m.name == target).expect("the group in need");
        (t, MemcgId(target as u16), expected)
    }

    #[test]
    fn effective_protection_is_what_was_computed_by_hand() {
        let text = include_str!("../../tests/data/protection.txt");
        let trees: Vec<&str> = text.split("\ntree ").skip(1).collect();
        assert!(trees.len() >= 30, "{}", trees.len());
        for text in trees {
            let mut lines = text.lines();
            let head = lines.next().expect("a name");
            let (name, target) = head.split_once(" target ").unwrap_or((head, "/"));
            let recursive = !name.ends_with(" flat");
            let lines: Vec<&str> = lines.filter(|l| l.starts_with('/')).collect();
            let (t, target, expected) = tree(&lines, recursive, target);
            for (id, want) in expected {
                let got = t.effective_protection(target, id);
                for i in [MIN, LOW] {
                    assert!(want[i].is_none_or(|w| w == got[i]), "{name}: {}: {got:?}, not {want:?}", t.get(id).name);
                }
            }
        }
    }

    #[test]
    fn partial_protection_shortens_lists_but_not_below_a_batch() {
        let (t, target, _) = tree(&["/a 1000 100 600 = ? ?"], true, "/");
        let a = MemcgId(1);
        let mut sc = ScanControl::for_memcg(target, 32, None);
        // 500 - 500*600/1001 = 500 - 299
        assert_eq!(t.unprotected_pages(&mut sc, a, 500, 32), 201);
        assert!(sc.low_skipped);
        assert_eq!(t.unprotected_pages(&mut sc, a, 50, 32), 32);
        // Beyond low only min is left: 500 - 500*100/1001 = 500 - 49
        sc.low_reclaim = true;
        assert_eq!(t.unprotected_pages(&mut sc, a, 500, 32), 451);
        assert_eq!(t.unprotected_pages(&mut ScanControl::for_memcg(a, 32, None), a, 500, 32), 500, "its own");
    }

    #[test]
    fn a_group_is_shielded_up_to_its_effective_protection() {
        for (usage, below_protection) in [
            (100, BelowProtection::Min),
            (101, BelowProtection::Low),
            (200, BelowProtection::Low),
            (201, BelowProtection::None),
        ] {
            let line = format!("/a {usage} 100 200 = ? ?");
            let (t, target, _) = tree(&[&line], true, "/");
            assert_eq!(t.below_protection(target, MemcgId(1)), below_protection, "{usage}");
            assert_eq!(t.below_protection(MemcgId(1), MemcgId(1)), BelowProtection::None);
        }
    }
}
