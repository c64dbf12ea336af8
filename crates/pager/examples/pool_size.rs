//! Measures the worth to a region of a pool before a swap file: all that it may have, as much as
//! the engine gives it, and none, by turns in one run. `pool_size DIRECTORY [ROUNDS]`; a table of
//! medians. The data shrinks to about 1 / 2.2.

use std::time::Instant;

use refault_pager::store::Codec;
use refault_pager::{Error, PoolConfig, Region, RegionConfig};
use refault_testing::Rng;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;
const BYTES: usize = 96 * MIB;
const MEMORY: usize = 48 * MIB;
const TOUCHES: usize = 120_000;

#[derive(Clone, Copy, Debug)]
enum Work {
    Uniform,
    /// The product of three numbers leans to low pages.
    Leaning,
    Scan,
}

#[derive(Clone, Copy, Debug)]
enum Share {
    All,
    Adapts,
    NoPool,
}

/// Half of a page is noise.
fn fill(page: &mut [u8], rng: &mut Rng) {
    page[PAGE / 2..].fill(7);
    page[..PAGE / 2]
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .for_each(|w| *w = (rng.below(1 << 30) as u64 * 0x9E37_79B9_7F4A_7C15).to_ne_bytes());
}

/// Microseconds a touch, pages read in percent of touches, and the pool at the end, in MiB.
fn run(directory: &str, work: Work, share: Share) -> Result<[f64; 3], Error> {
    let new = RegionConfig::new(BYTES, MEMORY);
    let config = RegionConfig {
        pool: matches!(share, Share::All | Share::Adapts)
            .then_some(PoolConfig { codec: Codec::Lz4, max_bytes: MEMORY / 5 }),
        pool_adapts: matches!(share, Share::Adapts),
        swap_directory: Some(directory.into()),
        ..new
    };
    let mut region = Region::new(&config)?;
    let mut rng = Rng(7);
    let pages = BYTES / PAGE;
    for page in 0..pages {
        fill(&mut region.as_mut_slice()[page * PAGE..][..PAGE], &mut rng);
    }
    let before = region.stats().counts.swapped_in;
    let begin = Instant::now();
    for i in 0..TOUCHES {
        let page = match work {
            Work::Uniform => rng.below(pages),
            Work::Leaning => (rng.below(pages) * rng.below(pages) / pages) * rng.below(pages) / pages,
            Work::Scan => i % pages,
        };
        region.as_mut_slice()[page * PAGE + 8 * rng.below(200)] = i as u8;
    }
    let us = begin.elapsed().as_secs_f64() * 1e6 / TOUCHES as f64;
    let s = region.stats();
    let read = (s.counts.swapped_in - before) as f64 * 100.0 / TOUCHES as f64;
    let pool = if config.pool.is_some() { s.area.usage.pool_limit_bytes as f64 / MIB as f64 } else { 0.0 };
    Ok([us, read, pool])
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(directory) = args.next() else { panic!("usage: pool_size DIRECTORY [ROUNDS]") };
    let rounds: usize = args.next().map_or(3, |r| r.parse().expect("a number of rounds"));
    println!("| workload | pool | µs a touch | pages read, % | pool at the end, MiB |\n|---|---|---:|---:|---:|");
    for work in [Work::Uniform, Work::Leaning, Work::Scan] {
        let shares = [Share::All, Share::Adapts, Share::NoPool];
        let mut results = shares.map(|_| Vec::new());
        for _ in 0..rounds {
            for (share, results) in shares.into_iter().zip(&mut results) {
                match run(&directory, work, share) {
                    Ok(result) => results.push(result),
                    Err(e) => return eprintln!("skipped: {e}"),
                }
            }
        }
        for (share, results) in shares.into_iter().zip(&mut results) {
            results.sort_by(|a, b| a[0].total_cmp(&b[0]));
            let [us, read, pool] = results[results.len() / 2];
            println!("| {work:?} | {share:?} | {us:.1} | {read:.1} | {pool:.1} |");
        }
    }
}
