//! A region that is written, read, advised and read again.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use refault_pager::calls::{Call, CallFault};
use refault_pager::store::{Codec, SwapIo};
use refault_pager::uffd::FaultScope;
use refault_pager::{Error, FaultMode, PoolConfig, Region, RegionConfig};

use crate::runner::{ERROR_VALUE, LOST, Report};

pub const PAGE: usize = 4096;
const PAGES: usize = 1100;

/// Reads and writes pages by system calls, which report a lost page as an error where a load would
/// raise a signal.
pub struct Pipe(std::io::PipeReader, std::io::PipeWriter);

impl Pipe {
    pub fn new() -> Pipe {
        let (r, w) = std::io::pipe().expect("a pipe");
        Pipe(r, w)
    }

    /// The bytes, or nothing if they are lost.
    pub fn get(&mut self, at: *const u8, to: &mut [u8]) -> bool {
        // SAFETY: the kernel reads bytes of the memory, and says so if it cannot.
        let n = unsafe { libc::write(self.1.as_raw_fd(), at.cast(), to.len()) };
        if n < 0 {
            return false;
        }
        assert_eq!(n, to.len() as isize, "a pipe takes a page at once");
        self.0.read_exact(to).expect("it was written");
        true
    }

    /// Writes them; false if the page is lost.
    pub fn put(&mut self, at: *mut u8, from: &[u8]) -> bool {
        std::io::Write::write_all(&mut self.1, from).expect("there is room");
        // SAFETY: the kernel writes bytes of the memory, and says so if it cannot.
        let n = unsafe { libc::read(self.0.as_raw_fd(), at.cast(), from.len()) };
        if n < 0 {
            self.0.read_exact(&mut vec![0; from.len()]).expect("it is there");
        }
        n == from.len() as isize
    }
}

fn content(page: usize, version: u64) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    if version > 0 {
        let word = (page as u64 + 1) << 32 | version;
        let words = bytes.as_chunks_mut::<8>().0;
        words.iter_mut().enumerate().for_each(|(i, w)| *w = (word ^ (i as u64) << 20).to_ne_bytes());
    }
    bytes
}

/// Content that a region should hold.
pub struct Model<'a> {
    report: &'static Report,
    region: &'a Region,
    /// Without one, by instructions.
    pipe: Option<Pipe>,
    version: Vec<u64>,
    lost: Vec<bool>,
}

impl<'a> Model<'a> {
    /// Model of a region of so many pages, in which nothing was stored.
    pub fn new(report: &'static Report, region: &'a Region, pages: usize, mode: FaultMode) -> Model<'a> {
        let pipe = (mode == FaultMode::Threads).then(Pipe::new);
        Model { report, region, pipe, version: vec![0; pages], lost: vec![false; pages] }
    }

    pub fn pages(&self) -> usize {
        self.version.len()
    }

    /// Notes the result of a call.
    pub fn told<T>(&self, result: Result<T, Error>) {
        if result.is_err() {
            self.report.got(ERROR_VALUE);
        }
    }

    /// Gives pages up.
    pub fn dont_need(&mut self, pages: std::ops::Range<usize>) {
        // SAFETY: nobody refers to these pages.
        match unsafe { self.region.dont_need_shared(pages.start * PAGE..pages.end * PAGE) } {
            Ok(()) => {
                self.version[pages.clone()].fill(0);
                self.lost[pages].fill(false);
            }
            Err(_) => self.report.got(ERROR_VALUE),
        }
    }

    /// At the end: the pager knows of what was lost, and nothing is broken.
    pub fn end(&self) {
        let lost = self.lost.iter().filter(|&&l| l).count() as u64;
        if self.region.stats().counts.poisoned < lost {
            self.report.broken("more pages are lost than were counted");
        }
        if let Err(e) = self.region.validate() {
            self.report.broken(&e);
        }
    }

    fn at(&self, page: usize) -> *mut u8 {
        self.region.as_ptr().wrapping_add(page * PAGE)
    }

    fn lose(&mut self, page: usize) {
        self.lost[page] = true;
        self.report.got(LOST);
    }

    fn back(&self, page: usize) {
        if self.lost[page] {
            self.report.wrong(&format!("page {page} was lost and is back"));
        }
    }

    pub fn put(&mut self, page: usize, version: u64) {
        let (at, bytes) = (self.at(page), content(page, version));
        let put = |to: *mut u8| {
            // SAFETY: a page of the region, which nobody else uses.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, PAGE) };
            true
        };
        match self.pipe.as_mut().map_or_else(|| put(at), |pipe| pipe.put(at, &bytes)) {
            true => {
                self.back(page);
                self.version[page] = version;
            }
            false => self.lose(page),
        }
    }

    pub fn check(&mut self, page: usize) {
        let mut found = [0; PAGE];
        let at = self.at(page);
        let is_there = match &mut self.pipe {
            Some(pipe) => pipe.get(at, &mut found),
            None => {
                // SAFETY: a page of the region, which nobody else uses.
                unsafe { std::ptr::copy_nonoverlapping(at, found.as_mut_ptr(), PAGE) };
                true
            }
        };
        if !is_there {
            return self.lose(page);
        }
        self.back(page);
        if found != content(page, self.version[page]) {
            let zeros = found == [0; PAGE];
            self.report.wrong(&format!("page {page} is not as in version {}: zeros: {zeros}", self.version[page]));
        }
    }
}

pub fn directory() -> PathBuf {
    env!("CARGO_TARGET_TMPDIR").into()
}

/// A region, or none: the run has its outcome then.
pub fn made(report: &'static Report, config: &RegionConfig) -> Option<Region> {
    match Region::new(config) {
        Ok(r) if r.scope() == FaultScope::UserMode && config.fault_mode == FaultMode::Threads => {
            report.unsupported("system calls cannot be handed memory that is not in place")
        }
        Ok(r) => Some(r),
        Err(Error::Unsupported(why)) => report.unsupported(&why),
        Err(_) => {
            report.got(ERROR_VALUE);
            None
        }
    }
}

fn run(report: &'static Report, config: &RegionConfig, base: fn(Call, u64) -> Option<CallFault>) {
    let _plan = crate::plan(report, base).enter();
    let Some(region) = made(report, config) else { return };
    let mut m = Model::new(report, &region, PAGES, config.fault_mode);
    (0..PAGES).for_each(|p| m.put(p, 1));
    (0..PAGES).for_each(|p| m.check(p));
    m.told(region.page_out(0..64 * PAGE));
    m.told(region.will_need(0..48 * PAGE));
    m.dont_need(200..264);
    (0..PAGES).step_by(3).for_each(|p| m.put(p, 2));
    // Far from each other: nothing is read ahead.
    (0..PAGES).for_each(|i| m.check(i * 461 % PAGES));
    m.end();
}

fn config() -> RegionConfig {
    RegionConfig {
        pool: None,
        swap_directory: Some(directory()),
        fault_threads: 1,
        stall_limit: Duration::from_secs(3),
        ..RegionConfig::new(PAGES * PAGE, RegionConfig::MIN_MEMORY)
    }
}

pub fn plain(report: &'static Report) {
    run(report, &config(), |_, _| None);
}

pub fn ring(report: &'static Report) {
    run(report, &RegionConfig { swap_io: SwapIo::Ring, ..config() }, |_, _| None);
}

/// Everything at once: a pool before the file, two threads, and places that stand by.
pub fn tiers(report: &'static Report) {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 256 << 10 });
    run(report, &RegionConfig { pool, fault_threads: 2, standby_percent: 5, ..config() }, |_, _| None);
}

fn failing_reads(call: Call, n: u64) -> Option<CallFault> {
    (call == Call::SwapRead && n % 40 < 20).then_some(CallFault::Fails(libc::EIO))
}

/// Pages are lost: some reads fail twice.
pub fn lossy(report: &'static Report) {
    run(report, &config(), failing_reads);
}

/// A thread that faults serves the fault.
pub fn signal(report: &'static Report) {
    run(report, &RegionConfig { fault_mode: FaultMode::Signal, ..config() }, |_, _| None);
}

/// Likewise; the first page that is lost ends the process.
pub fn signal_lossy(report: &'static Report) {
    run(report, &RegionConfig { fault_mode: FaultMode::Signal, ..config() }, failing_reads);
}

/// A thread that faults is woken by a call of its own.
pub fn high(report: &'static Report) {
    run(report, &RegionConfig { memory_high: RegionConfig::MIN_MEMORY, ..config() }, |_, _| None);
}
