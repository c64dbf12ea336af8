//! `memory.min` and `memory.low`: what of them is effective under the pressure of an ancestor (6.4).

use crate::ids::MemcgId;
use crate::memcg::Memcgs;
use crate::scan::ScanControl;

/// Index of `min` in `[min, low]`.
pub(crate) const MIN: usize = 0;
/// Index of `low` in `[min, low]`.
pub(crate) const LOW: usize = 1;

/// What a group claims, `[min, low]` each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protection {
    /// As set.
    pub(crate) setting: [u64; 2],
    /// What of it is used: min(usage, setting). Its parent has the sum.
    used: [u64; 2],
    /// Σ of `used` over its children.
    children: [u64; 2],
}

impl Protection {
    /// Whether it must be kept when usage changes.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.setting != [0; 2]
    }
}

/// One level of the formula: the effective protection of a group with `usage` and `setting`, below a parent with `parent_usage` and
/// the effective protection `parent`, whose children use `children` of theirs together.
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
        // What nobody claims goes to what is used beyond the claims.
        return used + scaled(parent - children, usage - used, parent_usage - children);
    }
    used
}

/// What reclaim may do with a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shield {
    /// Nothing: it is below its effective `min`.
    Min,
    /// Nothing while others can give: it is below its effective `low`.
    Low,
    /// It is reclaimed.
    None,
}

impl Memcgs {
    /// The usage or the settings of a group changed: what it uses of them, and its parent's sum.
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

    /// `[emin, elow]` of a group under pressure from `target`, whose own protection does not count.
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
                // What stands right below the target has what it says.
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
    pub(crate) fn shield(&self, target: MemcgId, id: MemcgId) -> Shield {
        if !self.any_protected || id == target || id == MemcgId::ROOT {
            return Shield::None;
        }
        let [min, low] = self.effective_protection(target, id);
        let usage = self.get(id).usage;
        if min >= usage {
            Shield::Min
        } else if low >= usage {
            Shield::Low
        } else {
            Shield::None
        }
    }

    /// The pages of a list that two-list reclaim counts: those that its group's protection leaves, but a batch at least. Says in
    /// `sc` if `low` made it fewer.
    pub(crate) fn unprotected_pages(&self, sc: &mut ScanControl, id: MemcgId, size: u64, batch: u64) -> u64 {
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

    /// What every group uses of its protection, and the sums.
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
