//! Memory that a region says it takes, beside the memory that the kernel says the process takes.
//! One test, for it looks at the whole process. Without userfaultfd it says that it skips.

use refault_pager::{PoolConfig, Region, RegionConfig, store::Codec};
use refault_testing::{is_alone, short_or_long, test_name};

use crate::common::made;

/// Anonymous memory and page tables of this process, in bytes.
fn taken() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find(|l| l.starts_with(name)).expect("the kernel tells it");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (kib("RssAnon:") + kib("VmPTE:")) << 10
}

#[test]
fn a_region_counts_all_that_it_takes() {
    if !is_alone(test_name!(a_region_counts_all_that_it_takes)) {
        return;
    }
    const MIB: usize = 1 << 20;
    for (bytes, memory_max, directory) in [
        (64 * MIB, 24 * MIB, None),
        (96 * MIB, 32 * MIB, Some(env!("CARGO_MANIFEST_DIR").into())),
        // Large tables: more address space than is touched.
        (2048 * MIB, 160 * MIB, None),
    ] {
        let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: memory_max / 2 });
        let config = RegionConfig { pool, swap_directory: directory, ..RegionConfig::new(bytes, memory_max) };
        let before = taken();
        let Some(mut region) = made(Region::new(&config)) else { return };
        let mut peak = 0;
        for round in 0..short_or_long(1, 2u64) {
            for (i, word) in region.as_mut_slice()[..bytes.min(256 * MIB)].as_chunks_mut::<8>().0.iter_mut().enumerate()
            {
                // Pages of some 1 KiB, compressed.
                *word = (i as u64 / 8 + round).wrapping_mul(0x9E37_79B9).to_ne_bytes();
                if i % (1 << 18) == 0 {
                    peak = peak.max(taken().saturating_sub(before));
                }
            }
        }
        peak = peak.max(taken().saturating_sub(before));
        let s = region.stats();
        eprintln!(
            "limit {memory_max}: the process took {peak} more; the region counts {} at most, {} of its own, {} of the store",
            s.peak_pages * 4096,
            s.own_bytes,
            s.store_bytes
        );
        assert!(peak as usize <= memory_max / 100 * 105, "{peak} of {memory_max} bytes");
        assert!(s.counts.swapped_out > 1000);
    }
}
