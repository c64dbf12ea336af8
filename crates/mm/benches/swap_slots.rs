//! What it costs to take slots for a folio and to free those of another one, beside a linear scan of the map.
//!
//! `cargo bench -p refault-mm --bench swap_slots`: devices of 2, 20 and 200 GB, from empty to all but full, folios of order 0, 4 and 9.
//! `-- --gb N` measures one size. An operation frees the slots of a folio chosen by chance and takes slots for one of the same order, so
//! the device stays as full as it is. On an empty device it takes and frees.

use std::hint::black_box;
use std::time::Instant;

use refault_mm::{SwapDeviceConfig, SwapPolicy, SwapSlot, SwapSpace};

const PAGES_PER_GB: u64 = 1 << 18;
const ORDERS: [u8; 3] = [0, 4, 9];

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// What gives out slots.
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
struct Scan {
    map: Vec<u8>,
    next: usize,
}

impl Slots for Scan {
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

/// Nanoseconds for freeing and taking: the median of many short runs, so that what else the machine does falls out.
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

fn main() {
    let args: Vec<String> = std::env::args().collect();
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
                let mut scan = Scan { map: vec![0; pages as usize], next: 0 };
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
