//! Processors are kept from halting while faults come fast that others serve, and neither before nor after; not if it is not wanted, nor for one
//! thread that serves its own faults.
//!
//! Without userfaultfd, or without the right to ask for it, the test says that it skips.

mod common;

use std::time::{Duration, Instant};

use refault_pager::{FaultMode, Region, RegionConfig};

use self::common::Rng;

const PAGE: usize = 4096;
const PAGES: usize = 4096;

/// Twice as much as there is memory for, touched at random until it is enough, or for so long. Whether it was enough.
fn touch(region: &mut Region, longest: Duration, enough: impl Fn(&Region) -> bool) -> bool {
    let (since, mut rng) = (Instant::now(), Rng(1));
    while since.elapsed() < longest {
        for _ in 0..100 {
            let at = rng.next() as usize % PAGES * PAGE;
            region.as_mut_slice()[at] = region.as_slice()[at].wrapping_add(1);
        }
        if enough(region) {
            return true;
        }
    }
    false
}

fn region(change: impl Fn(&mut RegionConfig)) -> Option<Region> {
    let mut config = RegionConfig::new(PAGES * PAGE, PAGES * PAGE / 2);
    config.awake_cpus = usize::MAX;
    change(&mut config);
    Region::new(&config).map_err(|e| eprintln!("skipped: {e}")).ok()
}

/// The processor's time of this process.
fn processor_time() -> Duration {
    // SAFETY: plain data, filled by the call.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        assert_eq!(libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t), 0);
        t
    };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// One test, for the processor's time is that of the process.
#[test]
fn processors_are_kept_awake_for_a_reason() {
    awake_while_faults_come_fast();
    never_where_it_is_not_to_be_or_of_no_use();
}

fn awake_while_faults_come_fast() {
    let may = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
    if let Err(e) = may {
        return eprintln!("skipped: /dev/cpu_dma_latency: {e}");
    }
    let Some(mut region) = region(|_| ()) else { return };
    assert!(touch(&mut region, Duration::from_secs(120), |r| r.stats().awake.times > 0));
    assert!(touch(&mut region, Duration::from_secs(120), |r| r.stats().awake.ns > 20_000_000), "it goes on");
    // No faults: it ends, and nothing is done any more.
    std::thread::sleep(Duration::from_millis(300));
    let (before, took) = (region.stats().awake, processor_time());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(region.stats().awake, before);
    let took = processor_time() - took;
    assert!(took < Duration::from_millis(30), "an idle region takes {took:?} of 300 ms");
    region.validate().unwrap();
}

fn never_where_it_is_not_to_be_or_of_no_use() {
    for change in [|c: &mut RegionConfig| c.awake_cpus = 0, |c: &mut RegionConfig| c.fault_mode = FaultMode::Signal] {
        let Some(mut region) = region(change) else { return };
        touch(&mut region, Duration::from_millis(300), |_| false);
        assert_eq!(region.stats().awake, Default::default());
    }
}
