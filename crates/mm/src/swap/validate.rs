//! Invariants I8.1 to I8.7, checked over every device.

use super::Swap;
use super::cluster::{ClusterListId, Flag, NR_ORDERS};
use super::device::{Device, DeviceState};
use super::map::{BAD, CONTINUED, HAS_CACHE, count};

impl Swap {
    /// Checks everything. The error says what is wrong.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (mut total, mut used, mut removing, mut anonymous) = (0, 0, 0, 0);
        for d in self.devices.iter().flatten() {
            d.validate(&self.common).map_err(|e| format!("swap device {}: {e}", d.number))?;
            anonymous += d.held_without_folio();
            if !d.writable {
                removing += u64::from(d.inuse);
                continue;
            }
            total += u64::from(d.usable);
            used += u64::from(d.inuse);
            let listed = self.avail.iter().filter(|&&n| n == d.number).count();
            let waits = usize::from(self.common.relist.contains(&d.number));
            if !d.listed && !d.is_exhausted() || listed + waits < usize::from(d.listed) || listed > 1 {
                return Err(format!("swap device {}: listed {}, {listed} times", d.number, d.listed));
            }
        }
        let (taken, returned) = self.caches.held();
        if anonymous != taken + returned {
            return Err(format!("swap: {anonymous} slots held by no folio, {taken} and {returned} in slot caches"));
        }
        match (total, used, removing) == (self.common.total, self.common.used, self.common.removing) {
            true => Ok(()),
            false => {
                Err(format!("swap: {used} of {total} used, counted {} of {}", self.common.used, self.common.total))
            }
        }
    }
}

#[cfg(test)]
impl Swap {
    /// Whether any slot could be handed out: its byte is 0.
    pub(super) fn has_zero_byte(&self) -> bool {
        self.devices.iter().flatten().any(|d| (1..d.cfg.pages as u32).any(|o| d.byte(o) == 0))
    }
}

impl Device {
    fn validate(&self, common: &DeviceState) -> Result<(), String> {
        let (mut counts, mut bad) = (0u64, 0u64);
        for c in 0..self.clusters.touched() {
            let cluster = self.clusters.get(c);
            counts += u64::from(cluster.count);
            bad += self.validate_cluster(c).map_err(|e| format!("cluster {c} ({:?}): {e}", cluster.flag))?;
        }
        // I8.1. Slots past the end count as bad.
        if counts != u64::from(self.inuse) + bad {
            return Err(format!("clusters count {counts}, {} in use and {bad} unusable", self.inuse));
        }
        let stray = self.continued.keys().find(|&&o| self.byte(o) & CONTINUED == 0);
        if let Some(offset) = stray {
            return Err(format!("slot {offset}: references beyond a count that is not full"));
        }
        if self.has_clusters(&common.policy) { self.validate_lists() } else { Ok(()) }
    }

    /// The bytes of a cluster and its count. Says how many of its slots are unusable for good.
    fn validate_cluster(&self, c: u32) -> Result<u64, String> {
        let cluster = self.clusters.get(c);
        let pages = self.clusters.pages() as usize;
        let Some(slots) = &cluster.slots else {
            return if cluster.count == 0 { Ok(0) } else { Err("has a count and no slots".into()) };
        };
        if cluster.flag == Flag::None {
            let all_bad = slots.map[..pages].iter().all(|&b| b == BAD);
            return if all_bad { Ok(0) } else { Err("can be allocated from while it is discarded".into()) };
        }
        let used = slots.map[..pages].iter().filter(|&&b| b != 0).count();
        if used != usize::from(cluster.count) {
            return Err(format!("counts {}, {used} slots are used", cluster.count));
        }
        for (at, &byte) in slots.map[..pages].iter().enumerate() {
            let folio = slots.cache[at].folio().is_some();
            // I8.7, as far as it can be seen from here.
            let held = byte == BAD || byte & HAS_CACHE != 0 || count(byte) > 0;
            let stray = folio && (byte == BAD || byte & HAS_CACHE == 0);
            let left = byte == 0 && slots.cache[at] != crate::folio::slot::Slot::EMPTY;
            if (byte != 0 && !held) || stray || left {
                return Err(format!("slot {at}: byte {byte:#x}, cache {:?}", slots.cache[at]));
            }
        }
        Ok(slots.map[..pages].iter().filter(|&&b| b == BAD).count() as u64)
    }

    /// Slots that neither a page table nor a folio holds, and that are not free.
    fn held_without_folio(&self) -> usize {
        let slots = (0..self.clusters.touched()).filter_map(|c| self.clusters.get(c).slots.as_ref());
        let held = |s: &super::map::ClusterSlots| {
            s.map.iter().zip(&s.cache).filter(|&(&b, c)| b == HAS_CACHE && c.folio().is_none()).count()
        };
        slots.map(|s| held(s)).sum()
    }

    /// I8.2, I8.3, I8.4: every cluster stands on the list that its flag names, once.
    fn validate_lists(&self) -> Result<(), String> {
        let mut seen = vec![0u32; self.clusters.touched() as usize];
        let mut lists = vec![(ClusterListId::FREE, Flag::Free, 0), (ClusterListId::FULL, Flag::Full, 0)];
        lists.push((ClusterListId::DISCARD, Flag::None, 0));
        for order in 0..NR_ORDERS {
            lists.push((ClusterListId::nonfull(order), Flag::Nonfull, order));
            lists.push((ClusterListId::frag(order), Flag::Frag, order));
        }
        for (list, flag, order) in lists {
            let members = self.clusters.members(list)?;
            if flag == Flag::Frag && members.len() != self.clusters.frag_nr(order) as usize {
                return Err(format!("frag_nr[{order}] is {}, {}", self.clusters.frag_nr(order), members.len()));
            }
            for c in members {
                let cluster = self.clusters.get(c);
                seen[c as usize] += 1;
                let ordered = matches!(flag, Flag::Nonfull | Flag::Frag);
                if cluster.flag != flag || (ordered && usize::from(cluster.order) != order) {
                    let is = (cluster.flag, cluster.order);
                    return Err(format!("cluster {c} is {is:?} and on the list of {flag:?}, {order}"));
                }
            }
        }
        self.clusters.virgins().for_each(|c| seen[c as usize] += 1);
        for &c in &self.discarding {
            seen[c as usize] += 1;
            if self.clusters.get(c).flag != Flag::None {
                return Err(format!("cluster {c} is discarded and {:?}", self.clusters.get(c).flag));
            }
        }
        for (c, &times) in seen.iter().enumerate() {
            let cluster = self.clusters.get(c as u32);
            let empty = matches!(cluster.flag, Flag::Free | Flag::None);
            let full = u32::from(cluster.count) == self.clusters.pages();
            if times != 1 || empty != (cluster.count == 0) || (cluster.flag == Flag::Full) != full {
                return Err(format!("cluster {c} ({:?}, count {}) is on {times} lists", cluster.flag, cluster.count));
            }
        }
        Ok(())
    }
}
