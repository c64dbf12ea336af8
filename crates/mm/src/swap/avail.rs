//! The device that is asked: the highest priority first, equals in turn.
//!
//! Mechanism: `docs/mechanisms.md#swap-devices`.

use super::Swap;
use super::device::{Device, SwapHost};
use crate::config::swap::{MAX_SWAP_DEVICES, SwapDeviceConfig, SwapOverflow};
use crate::ids::{MemcgId, SwapSlot};

impl Swap {
    /// Activates a device and says its number.
    pub(crate) fn add(&mut self, cfg: SwapDeviceConfig) -> Result<u8, String> {
        cfg.check()?;
        let number = self.devices.iter().position(Option::is_none).unwrap_or(self.devices.len());
        if number >= MAX_SWAP_DEVICES {
            return Err(format!("there are {MAX_SWAP_DEVICES} swap devices already; take one away first"));
        }
        let priority = cfg.priority.map_or(self.next_priority, i32::from);
        self.next_priority -= i32::from(cfg.priority.is_none());
        let device = Device::new(number as u8, cfg, priority, &self.common.policy, self.cpus);
        self.common.total += u64::from(device.usable);
        if number == self.devices.len() {
            self.devices.push(None);
        }
        self.devices[number] = Some(device);
        self.list(number as u8);
        Ok(number as u8)
    }

    fn priority(&self, number: u8) -> i32 {
        self.devices[usize::from(number)].as_ref().map_or(i32::MIN, |d| d.priority)
    }

    /// Notes how full the devices of higher priority are when a device first hands out slots.
    fn note_first_use(&mut self, number: u8) {
        let priority = self.priority(number);
        let higher = self.devices.iter().flatten().filter(|d| d.priority > priority);
        let sum = higher.fold((0, 0), |(used, all), d| (used + u64::from(d.inuse), all + u64::from(d.usable)));
        if let Some(device) = &mut self.devices[usize::from(number)] {
            device.first_use = Some(sum);
        }
    }

    /// Puts a device behind those of the same priority.
    pub(super) fn list(&mut self, number: u8) {
        let priority = self.priority(number);
        let at = self.avail.iter().position(|&d| self.priority(d) < priority).unwrap_or(self.avail.len());
        self.avail.insert(at, number);
    }

    /// Devices that were full have room again.
    pub(super) fn relist(&mut self) {
        while let Some(number) = self.common.relist.pop() {
            if self.devices[usize::from(number)].as_ref().is_some_and(|d| d.listed) && !self.avail.contains(&number) {
                self.list(number);
            }
        }
    }

    /// Takes 2^order slots from the first device that has them.
    pub(super) fn alloc_from_devices<H: SwapHost>(&mut self, order: u8, cpu: usize, host: &mut H) -> Option<SwapSlot> {
        let mut found = None;
        self.fill(order, 1, cpu, host, |slot| found = Some(slot));
        found
    }

    /// A slot for a page in the usual case without consequences: there is one device, and the CPU
    /// goes on in its cluster.
    #[inline]
    pub(crate) fn alloc_behind_last(&mut self, cpu: usize, memcg: MemcgId) -> Option<SwapSlot> {
        let &[number] = &self.avail[..] else { return None };
        let device = self.devices[usize::from(number)].as_mut()?;
        if device.first_use.is_none() || !self.common.relist.is_empty() || self.caches.are_enabled() {
            return None;
        }
        self.cpu = cpu;
        let offset = device.alloc_behind_last(cpu, memcg, &mut self.common)?;
        Some(SwapSlot::new(number, offset))
    }

    /// Takes up to `n` times 2^order slots, all from the first device that has any.
    pub(super) fn fill<H: SwapHost>(
        &mut self,
        order: u8,
        n: usize,
        cpu: usize,
        host: &mut H,
        mut found: impl FnMut(SwapSlot),
    ) {
        let n = (self.free_pages() >> order).min(n as u64);
        if n == 0 {
            return;
        }
        self.relist();
        // The usual case: one device, asked once.
        let mut asked = 0u32;
        while let Some(at) = self.avail.iter().position(|&d| asked & 1 << d == 0) {
            let number = self.avail[at];
            asked |= 1 << number;
            if self.avail.len() > 1 {
                self.avail.remove(at);
                self.list(number);
            }
            let Some(device) = self.devices[usize::from(number)].as_mut() else { continue };
            let mut any = false;
            for _ in 0..n {
                let Some(offset) = device.alloc(order, cpu, &mut self.common, host) else { break };
                found(SwapSlot::new(number, offset));
                any = true;
            }
            let (first, listed) = (any && device.first_use.is_none(), device.listed);
            if first {
                self.note_first_use(number);
            }
            if !listed {
                self.avail.retain(|&d| d != number);
            }
            if any || (order > 0 && self.common.policy.overflow == SwapOverflow::None) {
                return;
            }
        }
    }
}
