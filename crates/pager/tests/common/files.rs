//! Helpers for tests of mapped files.
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use refault_pager::{MappedFile, MappedFileConfig, Policy};

use refault_testing::Rng;

pub const PAGE: usize = 4096;
pub const MIB: usize = 1 << 20;

/// A file that is removed in the end.
pub struct Temp(pub PathBuf);

impl Temp {
    pub fn new(content: &[u8]) -> Temp {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("mapped-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, content).unwrap();
        Temp(path)
    }

    pub fn content(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }

    pub fn check(&self, expected: &[u8]) {
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

pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed);
    let mut bytes: Vec<u8> = (0..len / 8 + 1).flat_map(|_| rng.next().to_ne_bytes()).collect();
    bytes.truncate(len);
    bytes
}

pub fn config(policy: Policy) -> MappedFileConfig {
    MappedFileConfig { policy, fault_threads: 2, ..MappedFileConfig::new(6 * MIB) }
}

pub fn bytes(file: &MappedFile) -> &[u8] {
    // SAFETY: the tests write to their files by this mapping alone while such a reference lives.
    // The compiler may not know that nothing has changed: what is read twice is to be read twice.
    std::hint::black_box(unsafe { file.as_slice() })
}

pub fn bytes_mut(file: &mut MappedFile) -> &mut [u8] {
    // SAFETY: as above.
    unsafe { file.as_mut_slice() }
}

/// Reads and writes pages by system calls, which report a lost page as an error where a load would
/// raise a signal.
pub struct Pipe(std::io::PipeReader, std::io::PipeWriter);

impl Pipe {
    pub fn new() -> Pipe {
        let (r, w) = std::io::pipe().unwrap();
        Pipe(r, w)
    }

    pub fn get(&mut self, at: *const u8, len: usize) -> Option<Vec<u8>> {
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

    pub fn put(&mut self, at: *mut u8, page: &[u8]) -> bool {
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
