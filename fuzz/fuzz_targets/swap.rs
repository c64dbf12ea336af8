//! Swap devices driven by bytes: the first ones make the devices, the rest are operations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_mm::{
    SwapAllocator, SwapDeviceConfig, SwapOverflow, SwapPolicy, SwapRotational, SwapSlot, SwapSpace, SwapSplit,
};

/// Bytes as numbers; 0 when there are none left.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }
}

fn space(bytes: &mut Bytes<'_>) -> Option<SwapSpace> {
    let policy = bytes.next();
    let policy = SwapPolicy {
        allocator: SwapAllocator::ALL[usize::from(policy & 3)],
        overflow: if policy & 4 == 0 { SwapOverflow::None } else { SwapOverflow::TryNext },
        rotational: if policy & 8 == 0 { SwapRotational::Cursor } else { SwapRotational::Clusters },
        cluster_pages: if policy & 16 == 0 { 512 } else { 256 },
        slot_cache: policy & 32 != 0,
        split: if policy & 64 == 0 { SwapSplit::Ascending } else { SwapSplit::FirstThenBack },
        // Not asked by the map of slots.
        zeromap: true,
    };
    let devices = (0..1 + bytes.next() % 3).map(|_| {
        let (size, rest, flags) = (bytes.next(), bytes.next(), bytes.next());
        SwapDeviceConfig {
            pages: u64::from(size % 8) * 256 + u64::from(rest),
            priority: (flags & 1 != 0).then_some(i16::from(flags >> 6)),
            synchronous: false,
            rotational: flags & 2 != 0,
            discard: flags & 4 != 0,
            block_device: flags & 8 == 0,
            bad_pages: (0..flags >> 4 & 3).map(|_| u64::from(bytes.next())).collect(),
        }
    });
    let devices = devices.collect();
    let slow = bytes.next() & 1 != 0;
    // An impossible request is an error of one line.
    SwapSpace::new(devices, policy, 2, slow).inspect_err(|e| assert_eq!(e.lines().count(), 1, "{e}")).ok()
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let Some(mut space) = space(&mut bytes) else { return };
    let mut slots: Vec<SwapSlot> = Vec::new();
    while !bytes.0.is_empty() {
        let (op, n) = (bytes.next(), bytes.next());
        let pick = |slots: &mut Vec<SwapSlot>| match slots.len() {
            0 => None,
            len => Some(slots.swap_remove(usize::from(n) * 7 % len)),
        };
        match op % 8 {
            0..4 => {
                for _ in 0..1 + (op >> 3) {
                    let order = if op & 1 == 0 { 0 } else { n % 10 };
                    let Some(first) = space.swap_out(order, usize::from(op & 1)) else { break };
                    let range = (0..1u32 << order).map(|i| SwapSlot(first.0 + i));
                    assert!(range.clone().all(|s| space.is_swapped_out(s)), "{first:?}");
                    slots.extend(range);
                }
            }
            4 | 5 => {
                for _ in 0..1 + (op >> 3) {
                    if let Some(slot) = pick(&mut slots) {
                        space.free(slot, 1);
                    }
                }
            }
            6 => {
                if let Some(slot) = pick(&mut slots) {
                    space.swap_in(slot);
                }
            }
            _ => space.end_discard(usize::from(n)),
        }
        space.validate().expect("no invariant is broken");
    }
    assert!(slots.iter().all(|&s| space.is_swapped_out(s)));
});
