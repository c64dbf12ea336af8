//! Which device is asked (8.1): the highest priority first, equals in turn.

use super::Swap;
use super::config::{MAX_SWAP_DEVICES, SwapDeviceConfig, SwapOverflow};
use super::device::{Device, SwapHost};
use crate::ids::SwapSlot;

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
        if self.free_pages() >> order == 0 {
            return None;
        }
        self.relist();
        // The usual case: one device, asked once.
        let mut asked = 0u32;
        while let Some(at) = self.avail.iter().position(|&d| asked & 1 << d == 0) {
            let number = self.avail.remove(at);
            asked |= 1 << number;
            self.list(number);
            let Some(device) = self.devices[usize::from(number)].as_mut() else { continue };
            let found = device.alloc(order, cpu, &mut self.common, host);
            if !device.listed {
                self.avail.retain(|&d| d != number);
            }
            if let Some(offset) = found {
                return Some(SwapSlot::new(number, offset));
            }
            if order > 0 && self.common.policy.overflow == SwapOverflow::None {
                return None;
            }
        }
        None
    }
}
