//! The recordings: `data/swap_slots/recordings.txt.zst`.

use std::collections::BTreeMap;

use super::MACHINES;
use super::driver::Case;

/// An iteration: what it prints.
pub type Lines = Vec<String>;

/// Runs of the same case, by machine.
pub type Kernels = BTreeMap<&'static str, Vec<Lines>>;

/// All of them, by case.
pub fn load() -> BTreeMap<Case, Kernels> {
    let packed: &[u8] = include_bytes!("../data/swap_slots/recordings.txt.zst");
    let text = String::from_utf8(zstd::decode_all(packed).expect("zstd")).expect("a text");
    let mut all: BTreeMap<Case, Kernels> = BTreeMap::new();
    for run in text.split("# ").skip(1) {
        let mut lines = run.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(' ').collect();
        let (machine, ..) = MACHINES.into_iter().find(|m| m.0 == head[0]).expect("a machine");
        let case =
            Case { device_mib: head[1].parse().expect("a size"), sizes: head[2].to_owned(), mode: head[3].to_owned() };
        all.entry(case).or_default().entry(machine).or_default().push(lines.map(str::to_owned).collect());
    }
    all
}

/// Folios swapped out whole, and split for want of a range, after the first line.
pub fn sums(lines: &Lines) -> [u64; 2] {
    let mut sums = [0; 2];
    for size in lines.iter().skip(1).flat_map(|line| line.split(' ').skip(3)) {
        let mut counts = size.split(':').skip(1).map(|n| n.parse::<u64>().expect("a count"));
        sums.iter_mut().for_each(|sum| *sum += counts.next().expect("two counts"));
    }
    sums
}

/// The share of those that were split, in percent.
pub fn split_percent([whole, split]: [u64; 2]) -> f64 {
    100.0 * split as f64 / (whole + split).max(1) as f64
}
