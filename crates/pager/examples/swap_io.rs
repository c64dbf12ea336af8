//! Ways to write the swap file, by turns in one run: page by page, neighbours in one call, and by
//! io_uring. First the file alone, then a region on it. `swap_io DIRECTORY [ROUNDS]`; a table of
//! medians.

use std::path::Path;
use std::time::Instant;

use refault_pager::store::{FileStore, Page, PageBuf, Store, SwapIo};
use refault_pager::{Error, Region, RegionConfig};
use refault_testing::Rng;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// Processor time of this process, in seconds.
fn cpu_seconds() -> f64 {
    // SAFETY: plain data, filled by the call.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Microseconds of time and of the processor for each of `n`.
fn timed(n: usize, work: impl FnOnce()) -> [f64; 2] {
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    work();
    [begin.elapsed().as_secs_f64(), cpu_seconds() - cpu].map(|s| s * 1e6 / n as f64)
}

/// Batches of 8 pages: in slots side by side, or scattered.
fn file(directory: &Path, scattered: bool, swap_io: Option<SwapIo>) -> [f64; 2] {
    const SLOTS: u32 = 4096;
    let store = FileStore::with_io(directory, SLOTS, swap_io.unwrap_or_default()).expect("a swap file");
    if let Some(wanted) = swap_io.filter(|&w| w != store.swap_io()) {
        panic!("{wanted:?} is not to be had");
    }
    let pages: Vec<PageBuf> = (0..8).map(|i| PageBuf([i + 1; PAGE])).collect();
    (0..SLOTS).for_each(|s| store.write(s, &pages[0].0).expect("room"));
    let mut rng = Rng(1);
    timed(1024 * 8, || {
        for n in 0..1024u32 {
            let slot =
                |i: u32| if scattered { (rng.next() as u32 % 500 * 8 + i * 3) % 4000 + i } else { n * 8 % 4096 + i };
            let mut slots: Vec<u32> = (0..8).map(slot).collect();
            slots.sort_unstable();
            slots.dedup();
            let batch: Vec<(u32, &Page)> = slots.iter().zip(&pages).map(|(&s, p)| (s, &p.0)).collect();
            match swap_io {
                None => batch.iter().for_each(|&(s, p)| store.write(s, p).expect("room")),
                Some(_) => store.write_many(&batch).into_iter().for_each(|r| r.expect("room")),
            }
        }
    })
}

/// 64 MiB in 24 MiB, all of it changed by turns (a scan) or at random.
fn region(directory: &Path, random: bool, swap_io: SwapIo) -> Result<[f64; 2], Error> {
    let config = RegionConfig {
        pool: None,
        swap_directory: Some(directory.into()),
        swap_io,
        ..RegionConfig::new(64 * MIB, 24 * MIB)
    };
    let mut region = Region::new(&config)?;
    let pages = 64 * MIB / PAGE;
    let words = region.as_mut_slice();
    let mut rng = Rng(2);
    let mut touch = |n: usize, random: bool| {
        for i in 0..n {
            let page = if random { rng.next() as usize % pages } else { i % pages };
            // Pages that are not one word over and over.
            words[page * PAGE + i % 64] = words[page * PAGE + i % 64].wrapping_add(i as u8 | 1);
        }
    };
    touch(pages, false);
    Ok(timed(pages, || touch(pages, random)))
}

/// The median of the second by the first, round by round: neighbours in time are alike on a busy
/// machine.
fn ratio(first: &[[f64; 2]], second: &[[f64; 2]]) -> [f64; 2] {
    median(first.iter().zip(second).map(|(a, b)| [b[0] / a[0], b[1] / a[1]]).collect())
}

fn median(mut of: Vec<[f64; 2]>) -> [f64; 2] {
    of.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let time = of[of.len() / 2][0];
    of.sort_by(|a, b| a[1].total_cmp(&b[1]));
    [time, of[of.len() / 2][1]]
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".into());
    let rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    let directory = Path::new(&directory);
    println!("microseconds a page: time (processor)");
    for scattered in [false, true] {
        let mut results = [vec![], vec![], vec![]];
        for _ in 0..rounds {
            for (way, of) in [None, Some(SwapIo::Calls), Some(SwapIo::Ring)].into_iter().zip(&mut results) {
                of.push(file(directory, scattered, way));
            }
        }
        let by = ratio(&results[1], &results[2]);
        let [one, calls, ring] = results.map(median);
        let slots = if scattered { "scattered" } else { "side by side" };
        for (way, [time, cpu]) in [("page by page", one), ("pwritev", calls), ("io_uring", ring)] {
            println!("file, 8 slots {slots:<13} {way:<13} {time:8.1} ({cpu:5.1})");
        }
        println!("{:>41} by pwritev {:8.2} ({:5.2})", "io_uring", by[0], by[1]);
    }
    for random in [false, true] {
        let mut results = [vec![], vec![]];
        for _ in 0..rounds {
            for (way, of) in [SwapIo::Calls, SwapIo::Ring].into_iter().zip(&mut results) {
                of.push(region(directory, random, way)?);
            }
        }
        let by = ratio(&results[0], &results[1]);
        let [calls, ring] = results.map(median);
        let name = if random { "uniform" } else { "scan" };
        for (way, [time, cpu]) in [("pwritev", calls), ("io_uring", ring)] {
            println!("region, {name:<21} {way:<13} {time:8.1} ({cpu:5.1})");
        }
        println!("{:>41} by pwritev {:8.2} ({:5.2})", "io_uring", by[0], by[1]);
    }
    Ok(())
}
