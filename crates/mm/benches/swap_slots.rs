//! Cost of taking slots for a folio and freeing those of another one, beside a linear scan of the
//! map.
//!
//! `cargo bench -p refault-mm --bench swap_slots`: devices of 2, 20 and 200 GB, from empty to all
//! but full, folios of order 0, 4 and 9. `-- --gb N` measures one size. An operation frees the
//! slots of a folio chosen by chance and takes slots for one of the same order, so the device stays
//! as full as it is. On an empty device it takes and frees. `-- --steps` measures instead what each
//! kind of step costs (the lab charges these for CPU time), and a request for a large folio that
//! fails.

use std::hint::black_box;
use std::time::Instant;

use refault_mm::{SwapDeviceConfig, SwapPolicy, SwapSlot, SwapSpace};
use refault_testing::Rng;

const PAGES_PER_GB: u64 = 1 << 18;
const ORDERS: [u8; 3] = [0, 4, 9];

/// An allocator of slots.
trait Slots {
    fn take(&mut self, order: u8) -> Option<u32>;
    fn give_back(&mut self, slot: u32, order: u8);
}

impl Slots for SwapSpace {
    fn take(&mut self, order: u8) -> Option<u32> {
        self.swap_out(order, 0).map(|s| s.0)
    }

    fn give_back(&mut self, slot: u32, order: u8) {
        self.free(SwapSlot(slot), 1 << order);
    }
}

/// The map alone: an aligned free run is looked for from where the last one was found.
struct SlotScan {
    map: Vec<u8>,
    next: usize,
}

impl Slots for SlotScan {
    fn take(&mut self, order: u8) -> Option<u32> {
        let (nr, len) = (1usize << order, self.map.len());
        let from = self.next.next_multiple_of(nr);
        let free = |&at: &usize| self.map[at..at + nr].iter().all(|&b| b == 0);
        let found =
            (from..=len - nr).step_by(nr).find(free).or_else(|| (0..from.min(len - nr + 1)).step_by(nr).find(free))?;
        self.map[found..found + nr].fill(1);
        self.next = found + nr;
        Some(found as u32)
    }

    fn give_back(&mut self, slot: u32, order: u8) {
        self.map[slot as usize..(slot as usize) + (1 << order)].fill(0);
    }
}

/// How full the device is.
#[derive(Clone, Copy)]
enum Fill {
    Empty,
    /// Filled with folios of orders 0, 4 and 9 alike, every other one of which was freed.
    Half,
    /// Filled with folios of the order, one in a thousand of which was freed.
    AllButThousandth,
    /// Likewise, but 16 of which were freed.
    AllButSixteen,
}

/// Fills a device; the folios of `order` that are on it.
fn fill(slots: &mut impl Slots, fill: Fill, order: u8, rng: &mut Rng) -> Vec<u32> {
    let mut all: Vec<(u32, u8)> = Vec::new();
    match fill {
        Fill::Empty => {}
        Fill::Half => loop {
            // As many slots of each order.
            let taken = ORDERS.iter().flat_map(|&o| std::iter::repeat_n(o, 512 >> o));
            let before = all.len();
            for o in taken {
                all.extend(slots.take(o).map(|s| (s, o)));
            }
            if all.len() - before < 545 {
                break;
            }
        },
        Fill::AllButThousandth | Fill::AllButSixteen => {
            while let Some(s) = slots.take(order) {
                all.push((s, order));
            }
        }
    }
    let freed = match fill {
        Fill::Empty => 0,
        Fill::Half => all.len() / 2,
        Fill::AllButThousandth => (all.len() / 1000).max(1),
        Fill::AllButSixteen => 16,
    };
    for _ in 0..freed {
        let (slot, o) = all.swap_remove(rng.below(all.len()));
        slots.give_back(slot, o);
    }
    all.into_iter().filter(|&(_, o)| o == order).map(|(s, _)| s).collect()
}

/// Nanoseconds for freeing and taking: the median of many short runs, so that what else the machine
/// does falls out.
fn measure(slots: &mut impl Slots, folios: &mut [u32], order: u8, rng: &mut Rng) -> f64 {
    const OPS: u32 = 64;
    let mut runs = Vec::new();
    let begin = Instant::now();
    while (runs.len() < 200 && begin.elapsed().as_secs() < 5)
        || (begin.elapsed().as_millis() < 300 && runs.len() < 20_000)
    {
        let start = Instant::now();
        for _ in 0..OPS {
            if folios.is_empty() {
                let s = slots.take(order).expect("an empty device has room");
                slots.give_back(black_box(s), order);
            } else {
                let i = rng.below(folios.len());
                slots.give_back(folios[i], order);
                folios[i] = slots.take(order).expect("there is the room that was freed");
            }
        }
        runs.push(start.elapsed().as_nanos() as f64 / f64::from(OPS));
    }
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

/// A device of 4 KiB pages with nothing on it.
fn space(gb: u64) -> SwapSpace {
    SwapSpace::new(vec![SwapDeviceConfig::new(gb * PAGES_PER_GB)], SwapPolicy::default(), 1, false).expect("a device")
}

/// The median time of a run, in nanoseconds.
fn median_ns(times: usize, mut run: impl FnMut() -> u64) -> f64 {
    let mut all: Vec<u64> = (0..times).map(|_| run()).collect();
    all.sort_unstable();
    all[all.len() / 2] as f64
}

/// A request for a single slot on an empty device, which looks into one cluster and tests one
/// place.
fn step_call() -> f64 {
    const N: usize = 64;
    let mut slots = space(20);
    let ns = median_ns(2001, || {
        let start = Instant::now();
        let taken: Vec<_> = (0..N).filter_map(|_| slots.take(0)).collect();
        let ns = start.elapsed().as_nanos() as u64;
        taken.into_iter().for_each(|s| slots.give_back(s, 0));
        ns
    });
    ns / N as f64
}

/// A request for 16 slots that fails, on a device of which each cluster has `free` free slots,
/// never 16 aligned ones: nanoseconds, clusters looked into, places tested. Free slots are strewn
/// by chance.
fn failing(gb: u64, free: usize) -> (f64, f64, f64) {
    let mut slots = space(gb);
    let mut taken = Vec::new();
    while let Some(s) = slots.take(4) {
        taken.push(s);
    }
    // Two slots of each of the first folios of every cluster: its folios are taken one after the
    // other.
    for cluster in taken.chunks(32) {
        for i in 0..free {
            slots.give_back(cluster[i % cluster.len()] + (i / 32) as u32, 0);
        }
    }
    assert!(slots.take(4).is_none(), "no range of 16 is free");
    let before = slots.work();
    let times = (2000 / gb as usize).max(21);
    let ns = median_ns(times, || {
        let start = Instant::now();
        black_box(slots.take(4));
        start.elapsed().as_nanos() as u64
    });
    let after = slots.work();
    let calls = (after.calls - before.calls) as f64;
    (ns, (after.clusters - before.clusters) as f64 / calls, (after.probes - before.probes) as f64 / calls)
}

/// A step of a scan of the map, a byte at a time as it was done: the end is read anew, and so is
/// how full swap is, since others change both.
fn step_scan() -> f64 {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
    let map: Vec<AtomicU8> = (0..PAGES_PER_GB * 4).map(|_| AtomicU8::new(1)).collect();
    let (end, free, all) = (AtomicU64::new(map.len() as u64), AtomicU64::new(1000), AtomicU64::new(map.len() as u64));
    let ns = median_ns(101, || {
        let start = Instant::now();
        let (mut at, mut pause) = (0u64, 256);
        while at < end.load(Relaxed) {
            let byte = map[at as usize].load(Relaxed);
            if byte == 0 || (free.load(Relaxed) * 2 < all.load(Relaxed) && byte == 0x40) {
                break;
            }
            pause -= 1;
            if pause == 0 {
                pause = black_box(256);
            }
            at += 1;
        }
        black_box(at);
        start.elapsed().as_nanos() as u64
    });
    ns / map.len() as f64
}

fn steps() {
    println!("a request that finds a place at once: {:.1} ns", step_call());
    println!("a step of a scan of the map, a byte at a time: {:.2} ns", step_scan());
    println!("requests for 16 slots that fail, free slots of every cluster strewn:");
    println!("{:>7} {:>6} {:>12} {:>10} {:>12} {:>14}", "device", "free", "ns", "clusters", "places", "ns a cluster");
    for gb in [2, 20, 200] {
        for free in [8, 32, 128] {
            let (ns, clusters, places) = failing(gb, free);
            println!("{gb:>4} GB {free:>6} {ns:>12.0} {clusters:>10.0} {places:>12.0} {:>14.1}", ns / clusters);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|a| a == "--steps") {
        return steps();
    }
    let asked = args.iter().position(|a| a == "--gb").and_then(|i| args.get(i + 1));
    let sizes = asked.map_or(vec![2, 20, 200], |gb| vec![gb.parse().expect("a number of gigabytes")]);
    println!(
        "nanoseconds for freeing the slots of one folio and taking those of another, clusters and places looked at"
    );
    println!(
        "{:>7} {:>6} {:>22} {:>10} {:>9} {:>8} {:>12}",
        "device", "order", "fill", "ns", "clusters", "probes", "linear scan"
    );
    for &gb in &sizes {
        let pages = gb * PAGES_PER_GB;
        for (fullness, name) in [
            (Fill::Empty, "empty"),
            (Fill::Half, "half, fragmented"),
            (Fill::AllButThousandth, "99.9 %"),
            (Fill::AllButSixteen, "all but 16 folios"),
        ] {
            for order in ORDERS {
                let device = SwapDeviceConfig::new(pages);
                let mut space = SwapSpace::new(vec![device], SwapPolicy::default(), 1, false).expect("a device");
                let mut rng = Rng(gb);
                let mut folios = fill(&mut space, fullness, order, &mut rng);
                let before = space.work();
                let clusters = measure(&mut space, &mut folios, order, &mut rng);
                let after = space.work();
                let per_op = |n: u64| n as f64 / (after.calls - before.calls) as f64;
                let looks = per_op(after.clusters - before.clusters);
                let probes = per_op(after.probes - before.probes);
                drop(space);
                let mut scan = SlotScan { map: vec![0; pages as usize], next: 0 };
                let mut folios = fill(&mut scan, fullness, order, &mut rng);
                let linear = measure(&mut scan, &mut folios, order, &mut rng);
                println!("{gb:>4} GB {order:>6} {name:>22} {clusters:>10.0} {looks:>9.2} {probes:>8.1} {linear:>12.0}");
            }
        }
        let mut space =
            SwapSpace::new(vec![SwapDeviceConfig::new(pages)], SwapPolicy::default(), 1, false).expect("a device");
        let mut used = 0u64;
        while space.swap_out(0, 0).is_some() {
            used += 1;
        }
        println!("{gb:>4} GB, full: {:.2} bytes a slot", space.memory_bytes() as f64 / used as f64);
    }
}
