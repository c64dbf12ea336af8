//! Processors are kept from halting while faults come fast that others serve, and neither before
//! nor after; not if it is not wanted, nor for one thread that serves its own faults.
//!
//! Without userfaultfd, or without the right to ask for it, the test says that it skips.

use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use refault_pager::control::CpuLatencyQosStats;
use refault_pager::{FaultMode, MappedFile, MappedFileConfig, Region, RegionConfig};
use refault_testing::{Need, Rng, is_alone, require, test_name};

use crate::common::made;

const PAGE: usize = 4096;
const PAGES: usize = 4096;

/// A region, or a mapped file, of twice as much as there is memory for.
trait Memory {
    fn start(&self) -> *mut u8;
    fn awake(&self) -> CpuLatencyQosStats;
    fn check(&self) -> Result<(), String>;
}

impl Memory for Region {
    fn start(&self) -> *mut u8 {
        self.as_ptr()
    }

    fn awake(&self) -> CpuLatencyQosStats {
        self.stats().awake
    }

    fn check(&self) -> Result<(), String> {
        self.validate()
    }
}

impl Memory for MappedFile {
    fn start(&self) -> *mut u8 {
        self.as_ptr()
    }

    fn awake(&self) -> CpuLatencyQosStats {
        self.stats().awake
    }

    fn check(&self) -> Result<(), String> {
        self.validate()
    }
}

/// Touched at random until it is enough, or for so long. Whether it was enough.
fn touch(memory: &dyn Memory, longest: Duration, enough: impl Fn(CpuLatencyQosStats) -> bool) -> bool {
    let (since, mut rng) = (Instant::now(), Rng(1));
    while since.elapsed() < longest {
        for _ in 0..100 {
            let at = memory.start().wrapping_add(rng.next() as usize % PAGES * PAGE);
            // SAFETY: inside the memory, which nobody else has.
            unsafe { at.write_volatile(at.read_volatile().wrapping_add(1)) };
        }
        if enough(memory.awake()) {
            return true;
        }
    }
    false
}

fn region(change: impl Fn(&mut RegionConfig)) -> Option<Region> {
    let mut config = RegionConfig::new(PAGES * PAGE, PAGES * PAGE / 2);
    config.awake_cpus = usize::MAX;
    change(&mut config);
    made(Region::new(&config))
}

/// Maps a file in memory, for no disk is to be fast enough.
fn mapped_file(awake_cpus: usize) -> Option<MappedFile> {
    // SAFETY: the name is a C string; the descriptor is new.
    let file = unsafe { File::from_raw_fd(refault_syscalls::newer::memfd_create(c"file") as i32) };
    file.set_len((PAGES * PAGE) as u64).expect("a descriptor");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    made(MappedFile::open(&path, &MappedFileConfig { awake_cpus, ..MappedFileConfig::new(PAGES * PAGE / 2) }))
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
    if !is_alone(test_name!(processors_are_kept_awake_for_a_reason)) {
        return;
    }
    awake_while_faults_come_fast();
    never_where_it_is_not_to_be_or_of_no_use();
}

fn awake_while_faults_come_fast() {
    let may = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
    if require(Need::Latency, may).is_none() {
        return;
    }
    let Some(region) = region(|_| ()) else { return };
    starts_and_ends(&region);
    drop(region);
    let Some(file) = mapped_file(usize::MAX) else { return };
    starts_and_ends(&file);
}

fn starts_and_ends(memory: &dyn Memory) {
    assert!(touch(memory, Duration::from_secs(120), |a| a.times > 0));
    assert!(touch(memory, Duration::from_secs(120), |a| a.ns > 20_000_000), "it goes on");
    // No faults: it ends, and nothing is done any more.
    std::thread::sleep(Duration::from_millis(300));
    let (before, took) = (memory.awake(), processor_time());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(memory.awake(), before);
    let took = processor_time() - took;
    assert!(took < Duration::from_millis(30), "what is idle takes {took:?} of 300 ms");
    memory.check().unwrap();
}

fn never_where_it_is_not_to_be_or_of_no_use() {
    let never = |memory: &dyn Memory| {
        touch(memory, Duration::from_millis(300), |_| false);
        assert_eq!(memory.awake(), Default::default());
    };
    for change in [|c: &mut RegionConfig| c.awake_cpus = 0, |c: &mut RegionConfig| c.fault_mode = FaultMode::Signal] {
        let Some(region) = region(change) else { return };
        never(&region);
    }
    let Some(file) = mapped_file(0) else { return };
    never(&file);
}
