//! The list corruption that was reported against the series, and the two wrong rules that its test
//! must find.
//!
//! The discard worker takes a cluster off its list and works on it without the lock. The code that
//! frees a cluster moved it to the free list, which follows the links of a cluster that is on none.
//!
//! Mechanism: `docs/mechanisms.md#rules-of-slots`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cluster::InjectedFault;
use super::*;
use crate::config::Config;
use crate::config::swap::SwapDeviceConfig;
use crate::ids::FolioId;
use crate::world::Ack;

/// A driver whose discards take time.
#[derive(Default)]
struct Slow {
    discards: Vec<SwapSlot>,
}

impl SwapHost for Slow {
    fn droppable(&self, _: FolioId) -> Option<(SwapSlot, u8)> {
        None
    }

    fn dropped(&mut self, _: FolioId) {}

    fn discard(&mut self, first: SwapSlot, _: u32) -> Ack {
        self.discards.push(first);
        Ack::Pending
    }
}

fn check(swap: &Swap) -> Result<(), String> {
    swap.validate()
}

/// Takes `n` times 2^order slots for folios that are swapped out.
fn swap_out(swap: &mut Swap, host: &mut Slow, order: u8, n: u32) -> Result<Vec<SwapSlot>, String> {
    let mut slots = Vec::new();
    for i in 0..n {
        let slot = swap.alloc(order, MemcgId::ROOT, 0, host).ok_or("no slot")?;
        swap.add_to_cache(slot, order, FolioId(i));
        (0..1 << order).for_each(|i| swap.get(slot.nth(i)));
        swap.drop_cache(slot, order, None);
        slots.push(slot);
        check(swap)?;
    }
    Ok(slots)
}

/// One order-9 range, 32 of order 4, 512 single slots: taken and freed, with the worker at work
/// between any two steps.
fn scenario(discard: bool, fault: InjectedFault) -> Result<u64, String> {
    let device = SwapDeviceConfig { discard, ..SwapDeviceConfig::new(16 * 512) };
    let cfg = Config {
        swap: SwapConfig { devices: vec![device], ..SwapConfig::default() },
        ..Config::new(crate::Policy::Lru)
    };
    let mut swap = Swap::new(&cfg.swap, cfg.cpus);
    swap.devices[0].as_mut().expect("a device").clusters.fault = fault;
    let mut host = Slow::default();
    for (order, n) in [(9u8, 1u32), (4, 32), (0, 512)] {
        for round in 0..40 {
            let slots = swap_out(&mut swap, &mut host, order, n)?;
            if let Some(&first) = host.discards.first() {
                // The worker is between its two locked parts.
                let cluster = first..first.nth(512);
                if slots.iter().any(|s| cluster.contains(s)) {
                    return Err(format!("{first:?} is discarded and was handed out"));
                }
            }
            // Before this round's slots are freed, after them, or in between.
            let done_at = [0, slots.len() / 2, slots.len()][round % 3];
            for (i, &slot) in slots.iter().enumerate() {
                if i == done_at {
                    finish(&mut swap, &mut host)?;
                }
                swap.put_range(slot, 1 << order);
                check(&swap)?;
                swap.background_work(&mut host);
                check(&swap)?;
            }
            if done_at == slots.len() {
                finish(&mut swap, &mut host)?;
            }
        }
    }
    while !host.discards.is_empty() {
        finish(&mut swap, &mut host)?;
    }
    let d = swap.devices[0].as_ref().expect("a device");
    let left = (1..d.cfg.pages as u32).filter(|&o| d.byte(o) != 0).count();
    if left + d.inuse as usize != 0 {
        return Err(format!("{left} bytes of the map are not 0, {} in use", d.inuse));
    }
    Ok(swap.work().discarded)
}

/// One discard ends; the worker goes on.
fn finish(swap: &mut Swap, host: &mut Slow) -> Result<(), String> {
    if let Some(first) = host.discards.pop() {
        swap.discard_done(first);
        check(swap)?;
    }
    swap.background_work(host);
    check(swap)
}

/// Whether the scenario finds a wrong rule on a device with or without discard: by a broken
/// invariant, or by following a link to nowhere.
fn is_killed(fault: InjectedFault, discard: bool) -> bool {
    let result = catch_unwind(AssertUnwindSafe(|| scenario(discard, fault)));
    !matches!(result, Ok(Ok(_)))
}

#[test]
fn regression_a_discarded_cluster_is_put_on_the_free_list_not_moved_to_it() {
    assert!(scenario(true, InjectedFault::None).expect("no invariant is broken") >= 40);
    assert_eq!(scenario(false, InjectedFault::None), Ok(0));
    assert!(is_killed(InjectedFault::AlwaysMove, true), "moving a cluster that is on no list");
    assert!(is_killed(InjectedFault::FullFlagZero, true), "full clusters that look as if they were discarded");
    assert!(is_killed(InjectedFault::FullFlagZero, false), "full clusters that look as if they were on no list");
}
