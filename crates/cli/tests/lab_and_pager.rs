//! The lab predicts the pager: the accesses of a program to a region, replayed with the same memory and policy, hit as often.
//!
//! All accesses write: the pager sees writes to pages in place, but not reads. Without userfaultfd the test says that it skips.

#[path = "common/command.rs"]
mod command;

use std::fmt::Write as _;

use command::Sandbox;
use refault_pager::store::Codec;
use refault_pager::{Error, Policy, PoolConfig, Region, RegionConfig};

const PAGE: usize = 4096;
const PAGES: usize = 8192;
const MEMORY_PAGES: usize = 4096;
const ACCESSES: usize = 400_000;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// The pages of a workload, in order.
fn accesses(workload: &str) -> Vec<usize> {
    let mut rng = Rng(1);
    let page = |i: usize| match workload {
        "uniform" => rng.below(PAGES),
        // By inversion of the continuous distribution; ranks are scattered.
        "zipf" => {
            let unit = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = ((PAGES as f64 + 1.0).ln() * unit).exp() as usize - 1;
            rank.min(PAGES - 1) * 5741 % PAGES
        }
        "scan" => i % PAGES,
        // A tenth is hot, and another tenth in each quarter.
        _ if rng.below(16) == 0 => rng.below(PAGES),
        _ => (i * 4 / ACCESSES * PAGES / 10 + rng.below(PAGES / 10)) % PAGES,
    };
    (0..ACCESSES).map(page).collect()
}

/// Accesses that found their page in memory, of all; `None`: this machine has no regions, as was said.
fn in_region(pages: &[usize]) -> Option<f64> {
    let config = RegionConfig {
        policy: Policy::Mglru,
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: PAGES * PAGE }),
        // The lab counts pages alone.
        overhead_beside: true,
        ..RegionConfig::new(PAGES * PAGE, MEMORY_PAGES * PAGE)
    };
    let mut region = match Region::new(&config) {
        Ok(region) => region,
        Err(Error::Unsupported(why)) => {
            eprintln!("skipped: {why}");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    let bytes = region.as_mut_slice();
    for &page in pages {
        let byte = &mut bytes[page * PAGE];
        *byte = byte.wrapping_add(1);
    }
    let counts = region.stats().counts;
    region.validate().unwrap();
    Some(1.0 - (counts.swapped_in + counts.first_touches) as f64 / pages.len() as f64)
}

/// The same, predicted.
fn in_lab(pages: &[usize]) -> f64 {
    let s = Sandbox::new();
    let trace = pages.iter().fold(String::new(), |mut text, page| {
        _ = writeln!(text, "s {:#x} 1", (1 << 32) + page * PAGE);
        text
    });
    std::fs::write(s.path("touches.addr"), trace).unwrap();
    let memory = format!("{MEMORY_PAGES}p");
    let output = s.run(&["replay", "touches.addr", "--memory", &memory, "--policy", "mglru", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    json["rows"][0]["hit_rate"].as_f64().unwrap()
}

#[test]
fn the_lab_predicts_the_hit_rate_of_a_region() {
    for workload in ["uniform", "zipf", "scan", "phases"] {
        let pages = accesses(workload);
        let Some(pager) = in_region(&pages) else { return };
        let lab = in_lab(&pages);
        eprintln!("{workload}: {:.2} % of accesses hit in the region, {:.2} % in the lab", pager * 100.0, lab * 100.0);
        assert!((pager - lab).abs() < 0.02, "{workload}: {pager:.4} in the region, {lab:.4} in the lab");
    }
}
