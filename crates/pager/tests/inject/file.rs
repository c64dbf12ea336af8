//! A mapped file that is read, written and flushed.

use std::path::PathBuf;
use std::time::Duration;

use refault_pager::calls::{Call, CallFault};
use refault_pager::uffd::FaultScope;
use refault_pager::{Error, MappedFile, MappedFileConfig};

use crate::region::{PAGE, Pipe};
use crate::runner::{ERROR_VALUE, LOST, Report};

const PAGES: usize = 1050;
const BYTES: usize = PAGES * PAGE - 500;

fn fill(bytes: &mut [u8], mut seed: u64) {
    for b in bytes.chunks_mut(8) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b.copy_from_slice(&(seed >> 5).to_ne_bytes()[..b.len()]);
    }
}

/// A file that is gone when the run is over, however it ends: its name is taken away at once.
fn nameless(content: &[u8]) -> (PathBuf, impl Fn() -> Vec<u8> + use<>) {
    use std::os::fd::AsRawFd;
    let file = refault_pager::store::nameless_file(env!("CARGO_TARGET_TMPDIR").as_ref()).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&file, content, 0).expect("it is written");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let read = move || {
        let mut bytes = vec![0; file.metadata().expect("it is there").len() as usize];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).expect("it is read");
        bytes
    };
    (path, read)
}

fn run(report: &'static Report, base: fn(Call, u64) -> Option<CallFault>) {
    let mut expected = vec![0; BYTES];
    fill(&mut expected, 7);
    let (path, content) = nameless(&expected);
    let config = MappedFileConfig {
        fault_threads: 1,
        stall_limit: Duration::from_secs(3),
        ..MappedFileConfig::new(refault_pager::RegionConfig::MIN_MEMORY)
    };
    let _plan = crate::plan(report, base).enter();
    let file = match MappedFile::open(&path, &config) {
        Ok(f) if f.scope() == FaultScope::UserMode => {
            report.unsupported("system calls cannot be handed memory that is not in place")
        }
        Ok(f) => f,
        Err(Error::Unsupported(why)) => report.unsupported(&why),
        Err(_) => return report.got(ERROR_VALUE),
    };
    let mut pipe = Pipe::new();
    let mut lost = vec![false; PAGES];
    for round in 1..=2_u64 {
        for (page, lost) in lost.iter_mut().enumerate() {
            let (from, to) = (page * PAGE, BYTES.min((page + 1) * PAGE));
            let at = file.as_ptr().wrapping_add(from);
            let mut found = vec![0; to - from];
            let mut is_there = pipe.get(at, &mut found);
            if is_there && found != expected[from..to] {
                let zeros = found.iter().all(|&b| b == 0);
                report.wrong(&format!("page {page} in round {round}: zeros: {zeros}"));
            }
            if is_there && *lost {
                report.wrong(&format!("page {page} was lost and is back"));
            }
            if (page as u64).is_multiple_of(round + 1) && is_there {
                fill(&mut found, page as u64 * 10 + round);
                is_there = pipe.put(at, &found);
                if is_there {
                    expected[from..to].copy_from_slice(&found);
                }
            }
            if !is_there {
                *lost = true;
                report.got(LOST);
            }
        }
        validate(report, &file);
        for attempt in 1.. {
            match file.flush() {
                Ok(()) => break,
                Err(_) => report.got(ERROR_VALUE),
            }
            if attempt == 20 {
                return;
            }
        }
        // After a flush that went well, the file has all of it.
        let there = content();
        if there.len() != BYTES {
            report.wrong("the length of the file changed");
        }
        if let Some(page) = (0..PAGES).find(|p| {
            let range = p * PAGE..BYTES.min((p + 1) * PAGE);
            there[range.clone()] != expected[range]
        }) {
            report.wrong(&format!("page {page} is not in the file after a flush in round {round}"));
        }
    }
    validate(report, &file);
    if file.close().is_err() {
        report.got(ERROR_VALUE);
    }
    if content() != expected {
        report.wrong("the file after it was closed");
    }
}

fn validate(report: &'static Report, file: &MappedFile) {
    match file.validate() {
        Ok(()) => {}
        // It asks the kernel itself.
        Err(_) if report.is_about(Call::ReadPagemap) => report.got(ERROR_VALUE),
        Err(e) => report.broken(&e),
    }
}

pub fn plain(report: &'static Report) {
    run(report, |_, _| None);
}

/// Pages are lost: some reads fail twice.
pub fn lossy(report: &'static Report) {
    run(report, |call, n| (call == Call::FileRead && n % 60 < 20).then_some(CallFault::Fails(libc::EIO)));
}

/// Sizes of a file that does not fit, for the pager itself takes half of so little.
const SMALL_PAGES: usize = 700;
const SMALL_BYTES: usize = SMALL_PAGES * PAGE - 500;
/// One page in so many is written: they are far from each other, for each is a fault.
const SMALL_EVERY: usize = 40;

/// Everything once, with few calls: pages are read in order, so most of them come ahead of their
/// touch, in runs.
pub fn small(report: &'static Report) {
    let mut expected = vec![0; SMALL_BYTES];
    fill(&mut expected, 7);
    let (path, content) = nameless(&expected);
    let config = MappedFileConfig {
        fault_threads: 3,
        stall_limit: Duration::from_secs(2),
        ..MappedFileConfig::new(2 * refault_pager::RegionConfig::MIN_MEMORY)
    };
    let _plan = crate::plan(report, |_, _| None).enter();
    let file = match MappedFile::open(&path, &config) {
        Ok(f) if f.scope() == FaultScope::UserMode => {
            report.unsupported("system calls cannot be handed memory that is not in place")
        }
        Ok(f) => f,
        Err(Error::Unsupported(why)) => report.unsupported(&why),
        Err(_) => return report.got(ERROR_VALUE),
    };
    let told = |is_well: bool| {
        if !is_well {
            report.got(ERROR_VALUE);
        }
        is_well
    };
    let (mut pipe, mut lost) = (Pipe::new(), vec![false; SMALL_PAGES]);
    told(file.will_need(100 * PAGE..140 * PAGE).is_ok());
    for round in 0..2 {
        for (page, lost) in lost.iter_mut().enumerate() {
            let (from, to) = (page * PAGE, SMALL_BYTES.min((page + 1) * PAGE));
            let (at, mut found) = (file.as_ptr().wrapping_add(from), vec![0; to - from]);
            let mut is_there = pipe.get(at, &mut found);
            if is_there && found != expected[from..to] {
                report.wrong(&format!("page {page} in round {round}"));
            }
            if is_there && *lost {
                report.wrong(&format!("page {page} was lost and is back"));
            }
            if is_there && page % SMALL_EVERY == round {
                fill(&mut found, (page * 10 + round) as u64);
                is_there = pipe.put(at, &found);
                if is_there {
                    expected[from..to].copy_from_slice(&found);
                }
            }
            if !is_there {
                *lost = true;
                report.got(LOST);
            }
        }
        // Pages that were changed leave, too.
        told(file.set_memory_max(refault_pager::RegionConfig::MIN_MEMORY).is_ok());
        validate(report, &file);
        if told(file.flush().is_ok()) && content() != expected {
            report.wrong(&format!("the file after the flush in round {round}"));
        }
        if told(file.read_again(0..SMALL_BYTES).is_ok()) {
            lost.fill(false);
        }
    }
    validate(report, &file);
    // One more than failures that are planned.
    if !(0..3).any(|_| told(file.flush().is_ok())) {
        return;
    }
    told(file.close().is_ok());
    if content() != expected {
        report.wrong("the file after it was closed");
    }
}
