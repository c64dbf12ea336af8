//! Mapped files: every byte, beside a copy that is kept in memory, with files that fail. Without userfaultfd the tests say that they skip.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refault_pager::file::{FaultyFile, FileIo, IoCall, IoFault, RealFile};
use refault_pager::uffd::{Call, CallFault, CallPlan, Scope};
use refault_pager::{Error, MappedFile, MappedFileConfig, Policy};

use self::common::made;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// A file that is removed in the end.
struct Temp(PathBuf);

impl Temp {
    fn new(content: &[u8]) -> Temp {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("mapped-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, content).unwrap();
        Temp(path)
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }

    fn check(&self, expected: &[u8]) {
        let found = self.content();
        assert_eq!(found.len(), expected.len());
        if let Some(at) = (0..expected.len()).find(|&i| found[i] != expected[i]) {
            panic!("byte {at}, page {}: {} for {}", at / PAGE, found[at], expected[at]);
        }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^ (z >> 29)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed);
    let mut bytes: Vec<u8> = (0..len / 8 + 1).flat_map(|_| rng.next().to_ne_bytes()).collect();
    bytes.truncate(len);
    bytes
}

fn config(policy: Policy) -> MappedFileConfig {
    MappedFileConfig { policy, fault_threads: 2, ..MappedFileConfig::new(6 * MIB) }
}

fn bytes(file: &MappedFile) -> &[u8] {
    // SAFETY: the tests write to their files by this mapping alone while such a reference lives.
    unsafe { file.as_slice() }
}

fn bytes_mut(file: &mut MappedFile) -> &mut [u8] {
    // SAFETY: as above.
    unsafe { file.as_mut_slice() }
}

#[test]
fn a_file_that_is_larger_than_its_memory_is_read_as_it_is() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for len in [1, PAGE - 1, PAGE, PAGE + 1, 24 * MIB + 100] {
            let content = noise(len, len as u64);
            let temp = Temp::new(&content);
            let Some(file) = made(MappedFile::open(&temp.0, &config(policy))) else { return };
            assert_eq!(file.len(), len);
            for _ in 0..2 {
                assert!(bytes(&file) == content, "{len} bytes");
            }
            // What follows the end in the last page is zeros.
            let rest = len.next_multiple_of(PAGE) - len;
            // SAFETY: inside the last page of the mapping.
            assert!((0..rest).all(|i| unsafe { file.as_ptr().add(len + i).read_volatile() } == 0));
            let s = file.stats();
            assert!(s.memory_pages <= s.max_pages && s.counts.writes == 0, "{s:?}");
            if len > MIB {
                assert!(s.counts.reads > 8000, "it was read twice: {s:?}");
            }
            file.validate().unwrap();
        }
    }
}

#[test]
fn what_was_flushed_is_in_the_file() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for len in [100, 3 * PAGE, 16 * MIB + 1] {
            let mut expected = noise(len, 1);
            let temp = Temp::new(&expected);
            let Some(mut file) = made(MappedFile::open(&temp.0, &config(policy))) else { return };
            let mut rng = Rng(2);
            for _ in 0..4 {
                for _ in 0..800 {
                    let at = rng.below(len);
                    let n = rng.below(9000).min(len - at);
                    let new = noise(n, rng.next());
                    bytes_mut(&mut file)[at..at + n].copy_from_slice(&new);
                    expected[at..at + n].copy_from_slice(&new);
                }
                // The end, and what lies beyond it: that does not get into the file.
                bytes_mut(&mut file)[len - 1] = 77;
                expected[len - 1] = 77;
                if !len.is_multiple_of(PAGE) {
                    // SAFETY: inside the last page of the mapping.
                    unsafe { file.as_ptr().add(len).write_volatile(99) };
                }
                file.validate().unwrap();
                file.flush().unwrap();
                temp.check(&expected);
                // A fault thread that read of a write before, and comes to it only now, takes the page for dirty once more: nothing is lost by that.
                let is_clean = |file: &MappedFile| file.stats().dirty_pages == 0;
                assert!(is_clean(&file) || (0..10).any(|_| file.flush().is_ok() && is_clean(&file)));
                assert!(bytes(&file) == expected);
            }
            let s = file.stats();
            assert!(s.peak_pages <= s.max_pages, "{s:?}");
            file.validate().unwrap();
            file.close().unwrap();
            temp.check(&expected);
        }
    }
}

/// Threads write their part of every page, check it before, and one flushes all the time.
#[test]
fn threads_write_while_pages_are_written_and_dropped() {
    const THREADS: usize = 3;
    for policy in [Policy::Lru, Policy::Mglru] {
        let temp = Temp::new(&vec![0; 16 * MIB]);
        let Some(file) = made(MappedFile::open(&temp.0, &config(policy))) else { return };
        let (stop, base) = (AtomicBool::new(false), file.as_ptr() as usize);
        let pages = file.len() / PAGE;
        let mut finals = Vec::new();
        std::thread::scope(|s| {
            let stop = &stop;
            let work = |t: usize| {
                move || {
                    let (mut rng, mut versions) = (Rng(t as u64), vec![0u64; pages]);
                    while !stop.load(Ordering::Relaxed) {
                        let page = if rng.below(2) == 0 { rng.below(pages) } else { rng.below(pages / 16) };
                        let word = (base + page * PAGE + t * 1024 + page % 100 * 8) as *mut u64;
                        // SAFETY: inside the mapping; only this thread writes here.
                        unsafe {
                            assert_eq!(word.read_volatile(), versions[page], "page {page}, thread {t}");
                            if rng.below(3) > 0 {
                                versions[page] = rng.next();
                                word.write_volatile(versions[page]);
                            }
                        }
                    }
                    versions
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|t| s.spawn(work(t))).collect();
            let end = Instant::now() + Duration::from_millis(1500);
            while Instant::now() < end {
                file.flush().unwrap();
                file.validate().unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
            finals.extend(threads.into_iter().map(|t| t.join().unwrap()));
        });
        file.flush().unwrap();
        let content = temp.content();
        for (t, versions) in finals.iter().enumerate() {
            for (page, &version) in versions.iter().enumerate() {
                let at = page * PAGE + t * 1024 + page % 100 * 8;
                let found = u64::from_ne_bytes(content[at..at + 8].try_into().unwrap());
                assert_eq!(found, version, "page {page}, thread {t}");
            }
        }
        let s = file.stats();
        eprintln!("{policy}: {} flushes, {:?}", s.counts.flushes, s.counts);
        assert!(s.counts.reads > 1000 && s.counts.writes > 1000 && s.peak_pages <= s.max_pages, "{s:?}");
        file.validate().unwrap();
    }
}

#[test]
fn what_is_needed_soon_comes_in_without_a_fault() {
    let content = noise(8 * MIB, 3);
    let temp = Temp::new(&content);
    let Some(file) = made(MappedFile::open(&temp.0, &config(Policy::Mglru))) else { return };
    assert_eq!(file.will_need(10..MIB).unwrap(), 256);
    let faults = file.stats().counts.faults;
    assert!(bytes(&file)[..MIB] == content[..MIB]);
    assert_eq!(file.stats().counts.faults, faults);
    assert!(file.will_need(0..8 * MIB).unwrap() < 1536);
    assert!(matches!(file.will_need(0..8 * MIB + 1), Err(Error::Range(_))));
    assert!(bytes(&file) == content);
    file.validate().unwrap();
}

/// Faults that follow one another are served by ever fewer reads; those that do not are one page each.
#[test]
fn runs_of_faults_read_ahead() {
    let content = noise(24 * MIB, 9);
    let temp = Temp::new(&content);
    for policy in [Policy::Lru, Policy::Mglru] {
        let Some(file) = made(MappedFile::open(&temp.0, &config(policy))) else { return };
        assert!(bytes(&file) == content);
        let s = file.stats().counts;
        assert!(s.reads < 6500 && s.read_calls < 700 && s.faults < 1400, "6144 pages in order: {s:?}");
        let mut rng = Rng(5);
        for _ in 0..2000 {
            let at = rng.below(24 * MIB);
            assert_eq!(bytes(&file)[at], content[at]);
        }
        let after = file.stats().counts;
        let (reads, calls) = (after.reads - s.reads, after.read_calls - s.read_calls);
        assert!(reads > 1000 && reads < calls + calls / 10, "{reads} pages in {calls} calls");
        file.validate().unwrap();
    }
}

/// A read of several pages that fails is done page by page: a bad one is an error where it is touched, and nowhere else.
#[test]
fn a_bad_page_does_not_spoil_its_neighbours() {
    struct Bad(RealFile);
    impl FileIo for Bad {
        fn bytes(&self) -> std::io::Result<u64> {
            self.0.bytes()
        }
        fn read_at(&self, to: &mut [u8], at: u64) -> std::io::Result<usize> {
            let bad = 100 * PAGE as u64;
            match (at..at + to.len() as u64).contains(&bad) {
                true => Err(std::io::Error::from_raw_os_error(libc::EIO)),
                false => self.0.read_at(to, at),
            }
        }
        fn write_at(&self, from: &[u8], at: u64) -> std::io::Result<usize> {
            self.0.write_at(from, at)
        }
        fn sync(&self) -> std::io::Result<()> {
            self.0.sync()
        }
    }
    let content = noise(MIB, 10);
    let temp = Temp::new(&content);
    let io = Box::new(Bad(RealFile::open(&temp.0, false).unwrap()));
    let config = MappedFileConfig { writable: false, ..config(Policy::Mglru) };
    let Some(file) = made(MappedFile::with_io(io, &config, None)) else { return };
    // It is read ahead, and nobody touches it: that is no error.
    assert!(bytes(&file)[..100 * PAGE] == content[..100 * PAGE]);
    assert!(bytes(&file)[101 * PAGE..] == content[101 * PAGE..]);
    assert_eq!(file.stats().counts.lost, 0);
    if file.scope() != Scope::UserMode {
        assert_eq!(Pipe::new().get(file.as_ptr().wrapping_add(100 * PAGE), PAGE), None);
        assert_eq!(file.stats().counts.lost, 1);
    }
    file.validate().unwrap();
}

/// Without a flush, and without any need of memory.
#[test]
fn what_is_dirty_for_long_gets_into_the_file() {
    let mut content = noise(MIB, 12);
    let temp = Temp::new(&content);
    let config = MappedFileConfig { dirty_expire: Duration::from_millis(200), ..config(Policy::Mglru) };
    let Some(mut file) = made(MappedFile::open(&temp.0, &config)) else { return };
    for page in (0..content.len()).step_by(7 * PAGE) {
        content[page] = !content[page];
        bytes_mut(&mut file)[page] = content[page];
    }
    let end = Instant::now() + Duration::from_secs(20);
    while file.stats().dirty_pages + file.stats().writeback_pages > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let s = file.stats();
    assert!((s.dirty_pages, s.counts.flushes) == (0, 0), "{s:?}");
    temp.check(&content);
    file.validate().unwrap();
}

/// A lower limit drops and writes at once; one that cannot be met for writes that fail is an error, and the limit is as it was.
#[test]
fn the_limit_changes_while_the_file_is_in_use() {
    let mut content = noise(20 * MIB, 11);
    let temp = Temp::new(&content);
    let full = Arc::new(AtomicBool::new(false));
    let plan = {
        let full = full.clone();
        move |call, _| (call == IoCall::Write && full.load(Ordering::Relaxed)).then_some(IoFault::Fails(libc::ENOSPC))
    };
    let io = FaultyFile::new(RealFile::open(&temp.0, true).unwrap(), plan);
    let config = MappedFileConfig { policy: Policy::Mglru, ..MappedFileConfig::new(18 * MIB) };
    let Some(mut file) = made(MappedFile::with_io(Box::new(io), &config, None)) else { return };
    for page in (0..content.len()).step_by(PAGE) {
        content[page] = !content[page];
        bytes_mut(&mut file)[page] = content[page];
    }
    assert_eq!(file.memory_max(), 18 * MIB);
    file.set_memory_max(6 * MIB).unwrap();
    let s = file.stats();
    assert!(s.max_pages == 1536 && s.memory_pages <= 1536 && s.counts.lost == 0, "{s:?}");
    file.validate().unwrap();
    assert!(bytes(&file) == content);
    file.set_memory_max(18 * MIB).unwrap();
    full.store(true, Ordering::Relaxed);
    for page in (0..4096 * PAGE).step_by(PAGE) {
        content[page] = !content[page];
        bytes_mut(&mut file)[page] = content[page];
    }
    let e = file.set_memory_max(5 * MIB).unwrap_err();
    assert!(matches!(e, Error::Limit(_)), "{e}");
    assert_eq!(file.memory_max(), 18 * MIB);
    full.store(false, Ordering::Relaxed);
    assert!(file.flush().is_err(), "the writes that failed");
    assert!(matches!(file.set_memory_max(MIB), Err(Error::Config(_))));
    file.set_memory_max(5 * MIB).unwrap();
    assert!(bytes(&file) == content);
    file.validate().unwrap();
    file.close().unwrap();
    temp.check(&content);
}

/// Reads and writes pages by system calls, which report a lost page as an error where a load would raise a signal.
struct Pipe(std::io::PipeReader, std::io::PipeWriter);

impl Pipe {
    fn new() -> Pipe {
        let (r, w) = std::io::pipe().unwrap();
        Pipe(r, w)
    }

    fn get(&mut self, at: *const u8, len: usize) -> Option<Vec<u8>> {
        // SAFETY: the kernel reads bytes of the mapping, and says so if it cannot.
        let n = unsafe { libc::write(self.1.as_raw_fd(), at.cast(), len) };
        if n < 0 {
            return None;
        }
        assert_eq!(n, len as isize, "a pipe takes a page at once");
        let mut page = vec![0; len];
        self.0.read_exact(&mut page).unwrap();
        Some(page)
    }

    fn put(&mut self, at: *mut u8, page: &[u8]) -> bool {
        std::io::Write::write_all(&mut self.1, page).unwrap();
        // SAFETY: the kernel writes bytes of the mapping, and says so if it cannot.
        let n = unsafe { libc::read(self.0.as_raw_fd(), at.cast(), page.len()) };
        if n < 0 {
            let mut rest = vec![0; page.len()];
            self.0.read_exact(&mut rest).unwrap();
        }
        n == page.len() as isize
    }
}

#[test]
fn a_file_that_is_cut_is_an_error_where_it_was_cut_and_does_not_grow_again() {
    let content = noise(4 * MIB, 4);
    let temp = Temp::new(&content);
    let Some(file) = made(MappedFile::open(&temp.0, &config(Policy::Lru))) else { return };
    if file.scope() == Scope::UserMode {
        return eprintln!("skipped: system calls cannot be handed memory that is not in place");
    }
    let mut pipe = Pipe::new();
    let at = |page: usize| file.as_ptr().wrapping_add(page * PAGE);
    assert!(pipe.put(at(900), &[1; PAGE]) && pipe.put(at(10), &[2; PAGE]));
    File::options().write(true).open(&temp.0).unwrap().set_len(2 * MIB as u64 + 10).unwrap();
    // What is there, in the file or in memory, is as it was.
    assert_eq!(pipe.get(at(5), PAGE).unwrap(), content[5 * PAGE..6 * PAGE]);
    assert_eq!(pipe.get(at(900), PAGE).unwrap(), [1; PAGE]);
    // What is not is an error, also where the file ends within a page: it held more.
    assert!(pipe.get(at(600), PAGE).is_none() && pipe.get(at(512), PAGE).is_none());
    assert_eq!(pipe.get(at(511), PAGE).unwrap(), content[511 * PAGE..512 * PAGE]);
    // The page beyond the end cannot be written; the other is.
    let error = file.flush().unwrap_err().to_string();
    assert!(error.contains("the file was cut to 2097162 bytes"), "{error}");
    assert_eq!(temp.content().len(), 2 * MIB + 10);
    assert_eq!(temp.content()[10 * PAGE..11 * PAGE], [2; PAGE]);
    assert_eq!((file.stats().dirty_pages, file.stats().counts.lost), (1, 2));
    // As long as before again: what is dirty can be written.
    File::options().write(true).open(&temp.0).unwrap().set_len(content.len() as u64).unwrap();
    file.flush().unwrap();
    assert_eq!(temp.content()[900 * PAGE..901 * PAGE], [1; PAGE]);
    file.validate().unwrap();
}

#[test]
fn a_file_that_grows_keeps_what_follows() {
    let content = noise(PAGE + 100, 5);
    let temp = Temp::new(&content);
    let Some(mut file) = made(MappedFile::open(&temp.0, &config(Policy::Lru))) else { return };
    File::options().write(true).open(&temp.0).unwrap().write_all_at(&[8; 5000], content.len() as u64).unwrap();
    bytes_mut(&mut file)[PAGE..].fill(9);
    file.flush().unwrap();
    let expected = [&content[..PAGE], &[9; 100], &[8; 5000]].concat();
    temp.check(&expected);
}

#[test]
fn a_file_that_is_mapped_to_be_read_cannot_be_written() {
    let temp = Temp::new(&noise(3 * PAGE, 6));
    let config = MappedFileConfig { writable: false, ..config(Policy::Lru) };
    let Some(file) = made(MappedFile::open(&temp.0, &config)) else { return };
    if file.scope() == Scope::UserMode {
        return eprintln!("skipped: system calls cannot be handed memory that is not in place");
    }
    assert!(bytes(&file) == noise(3 * PAGE, 6));
    assert!(!Pipe::new().put(file.as_ptr(), &[1; PAGE]));
    file.flush().unwrap();
    temp.check(&noise(3 * PAGE, 6));
}

#[test]
fn what_cannot_be_mapped_is_an_error() {
    let open = |path: &Path, memory| MappedFile::open(path, &MappedFileConfig::new(memory)).map(|_| ());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let absent = directory.join("mapped-that-is-not-there");
    for (path, memory, what) in [
        (absent.as_path(), 4 * MIB, "No such file"),
        (directory, 4 * MIB, "directory"),
        (Path::new("/dev/null"), 4 * MIB, "regular file"),
    ] {
        let error = open(path, memory).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let empty = Temp::new(b"");
    assert!(open(&empty.0, 4 * MIB).unwrap_err().to_string().contains("empty"));
    let small = Temp::new(b"x");
    assert!(open(&small.0, MIB).unwrap_err().to_string().contains("4 MiB"));
}

/// A file of 1,500 pages in memory for about 900.
const PAGES: usize = 1500;

struct Run {
    lost: usize,
    failed_flushes: usize,
}

/// Reads all pages, writes every second, flushes, reads, writes every third, flushes until that goes well, and compares with what it
/// should be. A page is right, or an error.
fn run(temp: &Temp, io: Box<dyn FileIo>, plan: Option<CallPlan>) -> Option<Run> {
    let mut expected = noise(PAGES * PAGE - 500, 7);
    File::options().write(true).open(&temp.0).unwrap().write_all_at(&expected, 0).unwrap();
    let config = MappedFileConfig {
        policy: Policy::Lru,
        fault_threads: 1,
        stall_limit: Duration::from_secs(5),
        ..MappedFileConfig::new(4 * MIB)
    };
    let file = made(MappedFile::with_io(io, &config, plan))?;
    if file.scope() == Scope::UserMode {
        eprintln!("skipped: system calls cannot be handed memory that is not in place");
        return None;
    }
    let mut pipe = Pipe::new();
    let mut lost = vec![false; PAGES];
    let mut failed_flushes = 0;
    for round in 1..=3 {
        for (page, lost) in lost.iter_mut().enumerate() {
            let (from, to) = (page * PAGE, expected.len().min((page + 1) * PAGE));
            let at = file.as_ptr().wrapping_add(from);
            match pipe.get(at, to - from) {
                Some(found) => {
                    assert!(!*lost, "page {page} was lost and is back");
                    assert!(found == expected[from..to], "page {page} in round {round}");
                }
                None => *lost = true,
            }
            if round < 3 && page % (round + 1) == 0 {
                let new = noise(to - from, (page * 10 + round) as u64);
                if pipe.put(at, &new) {
                    assert!(!*lost, "page {page} was lost and is back");
                    expected[from..to].copy_from_slice(&new);
                } else {
                    *lost = true;
                }
            }
        }
        file.validate().unwrap();
        while let Err(e) = file.flush() {
            failed_flushes += 1;
            assert!(failed_flushes < 50, "{e}");
        }
        // What a flush that went well leaves in the file is all.
        temp.check(&expected);
    }
    let s = file.stats();
    assert!(s.peak_pages <= s.max_pages && s.counts.writes > 1000, "{s:?}");
    let lost = lost.iter().filter(|&&l| l).count();
    assert_eq!(s.counts.lost, lost as u64, "{s:?}");
    file.close().unwrap();
    temp.check(&expected);
    Some(Run { lost, failed_flushes })
}

fn run_faulty(temp: &Temp, plan: impl Fn(IoCall, u64) -> Option<IoFault> + Send + Sync + 'static) -> Option<Run> {
    let file = RealFile::open(&temp.0, true).unwrap();
    run(temp, Box::new(FaultyFile::new(file, plan)), None)
}

#[test]
fn what_cannot_be_mapped_is_refused_by_name() {
    let temp = Temp::new(&[]);
    let refused = |config: &MappedFileConfig| MappedFile::open(&temp.0, config).err().expect("an error").to_string();
    let usual = MappedFileConfig::new(8 * MIB);
    assert!(refused(&usual).starts_with(&format!("{} is empty; ", temp.0.display())), "{}", refused(&usual));
    std::fs::write(&temp.0, [1]).unwrap();
    assert!(refused(&MappedFileConfig { stall_limit: Duration::ZERO, ..usual.clone() }).contains("stall_limit is 0ns"));
    let many = refused(&MappedFileConfig { fault_threads: 1000, ..usual });
    assert!(many.contains("fault_threads is 1000; at most 256"), "{many}");
}

/// Every kind of call fails once, each in turn, in every way. The first call of all is the one that asks for the length.
#[test]
fn one_fault_at_a_time() {
    use IoFault::*;
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    for (call, fault) in [
        (IoCall::Read, Fails(libc::EIO)),
        (IoCall::Read, Fails(libc::EINTR)),
        (IoCall::Read, Short(0)),
        (IoCall::Read, Short(1000)),
        (IoCall::Read, Stalls(50)),
        (IoCall::Write, Fails(libc::EIO)),
        (IoCall::Write, Fails(libc::ENOSPC)),
        (IoCall::Write, Fails(libc::EINTR)),
        (IoCall::Write, Short(0)),
        (IoCall::Write, Short(1000)),
        (IoCall::Write, Stalls(50)),
        (IoCall::Bytes, Fails(libc::EIO)),
        (IoCall::Bytes, Short(0)),
    ] {
        let places: &[u64] = match call {
            // Has tests of its own, below.
            IoCall::Sync => &[],
            IoCall::Bytes | IoCall::Write => &[1, 2, 5, 20],
            IoCall::Read => &[0, 1, 2, 20, 100],
        };
        let met = Arc::new(AtomicU64::new(0));
        let (mut failed, mut lost) = (0, 0);
        for &n in places {
            let met = met.clone();
            let plan =
                move |c, m| (c == call && m == n).then(|| _ = met.fetch_add(1, Ordering::Relaxed)).map(|()| fault);
            let Some(r) = run_faulty(&temp, plan) else { return };
            (failed, lost) = (failed + r.failed_flushes, lost + r.lost);
        }
        eprintln!(
            "{call:?} {fault:?}: {} faults, {lost} pages lost, {failed} flushes failed",
            met.load(Ordering::Relaxed)
        );
        assert_eq!(met.load(Ordering::Relaxed), places.len() as u64, "{call:?} {fault:?}: all were met");
        assert_eq!(lost, 0, "{call:?} {fault:?}: a read is tried again, a page that was not written stays");
        let harmless = matches!(fault, Stalls(_) | Fails(libc::EINTR) | Short(1000)) || call == IoCall::Read;
        assert_eq!(failed, if harmless { 0 } else { places.len() }, "{call:?} {fault:?}: told once each");
    }
}

#[test]
fn reads_that_fail_again_and_again_are_errors_and_no_zeros() {
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    let plan = |call, n: u64| (call == IoCall::Read && n % 30 < 3).then_some(IoFault::Fails(libc::EIO));
    let Some(r) = run_faulty(&temp, plan) else { return };
    assert!(r.lost > 5 && r.failed_flushes == 0, "{} lost", r.lost);
}

/// No room on the medium for a long time: nothing is lost, each flush says so, and when there is room all is written.
#[test]
fn writes_that_fail_for_a_while_lose_nothing() {
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    let plan = |call, n: u64| (call == IoCall::Write && n < 40).then_some(IoFault::Fails(libc::ENOSPC));
    let Some(r) = run_faulty(&temp, plan) else { return };
    assert!(r.failed_flushes > 0 && r.lost == 0, "{} flushes failed, {} lost", r.failed_flushes, r.lost);
}

#[test]
fn an_error_of_writing_in_the_background_is_told_once() {
    let temp = Temp::new(&noise(16 * MIB, 8));
    let failing = Arc::new(AtomicBool::new(true));
    let plan = {
        let failing = failing.clone();
        move |call, _| {
            (call == IoCall::Write && failing.load(Ordering::Relaxed)).then_some(IoFault::Fails(libc::ENOSPC))
        }
    };
    let io = FaultyFile::new(RealFile::open(&temp.0, true).unwrap(), plan);
    let Some(mut file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Lru), None)) else { return };
    // So much that the flusher begins.
    for page in 0..400 {
        bytes_mut(&mut file)[page * PAGE] = 1;
    }
    let begin = Instant::now();
    while file.stats().counts.write_errors == 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", file.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    failing.store(false, Ordering::Relaxed);
    let error = file.flush().unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    file.flush().unwrap();
    assert!((0..400).all(|page| temp.content()[page * PAGE] == 1));
}

/// Calls of the kernel that fail for the moment, and a protection that cannot be had: nothing is lost.
#[test]
fn calls_of_the_kernel_that_fail() {
    let temp = Temp::new(&noise(PAGES * PAGE - 500, 7));
    for (call, errno, every) in [
        (Call::Copy, libc::EAGAIN, 3),
        (Call::Copy, libc::ENOMEM, 50),
        (Call::Protect, libc::EAGAIN, 3),
        (Call::Protect, libc::ENOMEM, 50),
    ] {
        let plan = CallPlan::new(move |c, n| (c == call && n % every == 1).then_some(CallFault::Fails(errno)));
        let io = RealFile::open(&temp.0, true).unwrap();
        let Some(r) = run(&temp, Box::new(io), Some(plan)) else { return };
        assert_eq!((r.lost, r.failed_flushes), (0, 0), "{call:?} {errno}");
    }
    for n in [0, 1, 10, 100, 1000] {
        let plan = CallPlan::new(move |c, m| {
            (c == Call::Copy && (n..n + 8).contains(&m)).then_some(CallFault::Fails(libc::ENOMEM))
        });
        let Some(r) = run(&temp, Box::new(RealFile::open(&temp.0, true).unwrap()), Some(plan)) else { return };
        assert_eq!(r.lost, 1, "a page that the kernel cannot put in its place is an error");
    }
}

#[test]
fn a_page_that_was_lost_can_be_read_again() {
    let content = noise(2 * MIB, 10);
    let temp = Temp::new(&content);
    let plan = |call, n: u64| (call == IoCall::Read && n < 3).then_some(IoFault::Fails(libc::EIO));
    let io = FaultyFile::new(RealFile::open(&temp.0, true).unwrap(), plan);
    let Some(file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Lru), None)) else { return };
    if file.scope() == Scope::UserMode {
        return eprintln!("skipped: system calls cannot be handed memory that is not in place");
    }
    let mut pipe = Pipe::new();
    for _ in 0..2 {
        assert!(pipe.get(file.as_ptr(), PAGE).is_none());
    }
    assert_eq!((file.read_again(0..2 * MIB).unwrap(), file.read_again(0..2 * MIB).unwrap()), (1, 0));
    assert!(pipe.get(file.as_ptr(), PAGE).unwrap() == content[..PAGE]);
    assert!(bytes(&file) == content);
    file.validate().unwrap();
}

/// For the engine such a page is in memory, read and mapped; touched again it was lost again, and an order came for a page that was nowhere.
#[test]
fn a_page_that_was_not_put_in_its_place_can_be_read_again() {
    let content = noise(2 * MIB, 11);
    let temp = Temp::new(&content);
    for write in [false, true] {
        let plan = CallPlan::new(|call, n| (call == Call::Copy && n < 1).then_some(CallFault::Fails(libc::EFAULT)));
        let io = RealFile::open(&temp.0, true).unwrap();
        let Some(file) = made(MappedFile::with_io(Box::new(io), &config(Policy::Mglru), Some(plan))) else { return };
        if file.scope() == Scope::UserMode {
            return eprintln!("skipped: system calls cannot be handed memory that is not in place");
        }
        let mut pipe = Pipe::new();
        match write {
            true => assert!(!pipe.put(file.as_ptr(), &content[..PAGE])),
            false => assert!(pipe.get(file.as_ptr(), PAGE).is_none()),
        }
        assert_eq!(file.read_again(0..2 * MIB).unwrap(), 1);
        assert!(pipe.get(file.as_ptr(), PAGE).unwrap() == content[..PAGE]);
        assert!(bytes(&file) == content);
        file.validate().unwrap();
        file.flush().unwrap();
    }
    temp.check(&content);
}
