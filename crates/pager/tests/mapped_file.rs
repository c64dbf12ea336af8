//! Mapped files: every byte, beside a copy that is kept in memory. Without userfaultfd the tests
//! say that they skip.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refault_pager::file::{FileIo, RealFile};
use refault_pager::uffd::{Call, CallFault, CallPlan, FaultScope};
use refault_pager::{Error, MappedFile, MappedFileConfig, Policy};
use refault_testing::{Rng, short_or_long};

use crate::common::files::{MIB, PAGE, Pipe, Temp, bytes, bytes_mut, config, noise};
use crate::common::{made, serves_system_calls};

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
            // The rest behind the end in the last page is zeros.
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
            for _ in 0..short_or_long(2, 4) {
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
                // A fault thread that read of a write before, and comes to it only now, takes the
                // page for dirty once more: nothing is lost by that.
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

/// Faults that follow one another are served by ever fewer reads; those that do not are one page
/// each.
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

/// A read of several pages that fails is done page by page: a bad one is an error where it is
/// touched, and nowhere else.
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
    if file.scope() != FaultScope::UserMode {
        assert_eq!(Pipe::new().get(file.as_ptr().wrapping_add(100 * PAGE), PAGE), None);
        assert_eq!(file.stats().counts.lost, 1);
    }
    file.validate().unwrap();
}

/// A third of the memory is changed: more than the usual tenth, so some of it is written, and less
/// than three fifths.
#[test]
fn as_much_may_be_dirty_as_is_said() {
    let temp = Temp::new(&noise(4 * MIB, 1));
    for (ratio, is_written) in [(10, true), (60, false)] {
        let config = MappedFileConfig { dirty_background_ratio: ratio, ..config(Policy::Mglru) };
        let Some(mut file) = made(MappedFile::open(&temp.0, &config)) else { return };
        bytes_mut(&mut file)[..500 * PAGE].fill(ratio as u8);
        let since = Instant::now();
        while is_written && file.stats().counts.writes == 0 && since.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !is_written {
            std::thread::sleep(Duration::from_millis(300));
        }
        assert_eq!(file.stats().counts.writes > 0, is_written, "{ratio} %: {:?}", file.stats());
        file.close().unwrap();
    }
    let config = MappedFileConfig { dirty_background_ratio: 101, ..config(Policy::Mglru) };
    assert!(matches!(MappedFile::open(&temp.0, &config), Err(Error::Config(_))));
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

/// A lower limit drops and writes at once; one that cannot be met for writes that fail is an error,
/// and the limit is as it was.
#[test]
fn the_limit_changes_while_the_file_is_in_use() {
    let mut content = noise(20 * MIB, 11);
    let temp = Temp::new(&content);
    let full = Arc::new(AtomicBool::new(false));
    let plan = {
        let full = full.clone();
        move |call, _| {
            (call == Call::FileWrite && full.load(Ordering::Relaxed)).then_some(CallFault::Fails(libc::ENOSPC))
        }
    };
    // Flushes are calls of this thread.
    let _plan = CallPlan::new(plan).enter();
    let io = RealFile::open(&temp.0, true).unwrap();
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

#[test]
fn a_file_that_is_cut_is_an_error_where_it_was_cut_and_does_not_grow_again() {
    let content = noise(4 * MIB, 4);
    let temp = Temp::new(&content);
    let Some(file) = made(MappedFile::open(&temp.0, &config(Policy::Lru))) else { return };
    if !serves_system_calls(file.scope()) {
        return;
    }
    let mut pipe = Pipe::new();
    let at = |page: usize| file.as_ptr().wrapping_add(page * PAGE);
    assert!(pipe.put(at(900), &[1; PAGE]) && pipe.put(at(10), &[2; PAGE]));
    File::options().write(true).open(&temp.0).unwrap().set_len(2 * MIB as u64 + 10).unwrap();
    // Pages that are there, in the file or in memory, are as they were.
    assert_eq!(pipe.get(at(5), PAGE).unwrap(), content[5 * PAGE..6 * PAGE]);
    assert_eq!(pipe.get(at(900), PAGE).unwrap(), [1; PAGE]);
    // Pages that are not are an error, also where the file ends within a page: it held more.
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
    if !serves_system_calls(file.scope()) {
        return;
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
    let error = open(&empty.0, 4 * MIB).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} is empty; ", empty.0.display())), "{error}");
    let small = Temp::new(b"x");
    assert!(open(&small.0, MIB).unwrap_err().to_string().contains("4 MiB"));
    let refused = |config: &MappedFileConfig| MappedFile::open(&small.0, config).err().expect("an error").to_string();
    let usual = MappedFileConfig::new(4 * MIB);
    let at_once = refused(&MappedFileConfig { stall_limit: Duration::ZERO, ..usual.clone() });
    assert!(at_once.contains("stall_limit is 0ns"), "{at_once}");
    let many = refused(&MappedFileConfig { fault_threads: 1000, ..usual });
    assert!(many.contains("fault_threads is 1000; at most 256"), "{many}");
}

/// It waited for who writes to it.
#[test]
fn a_pipe_is_refused_at_once() {
    let name = std::env::temp_dir().join(format!("refault-fifo-{}", std::process::id()));
    let path = std::ffi::CString::new(name.to_str().unwrap()).unwrap();
    // SAFETY: the name ends in a zero byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let refused = MappedFile::open(&name, &MappedFileConfig { writable: false, ..config(Policy::Mglru) });
    std::fs::remove_file(&name).unwrap();
    let text = refused.err().expect("a pipe is no file").to_string();
    assert!(text.contains("regular file"), "{text}");
}
