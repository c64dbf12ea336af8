//! Mapped files on a medium whose `fdatasync` fails. Without userfaultfd the tests say that they
//! skip.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refault_pager::file::FileIo;
use refault_pager::{MappedFile, MappedFileConfig, Policy};

use crate::common::made;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7 + i / PAGE) as u8).collect()
}

fn bytes_mut(file: &mut MappedFile) -> &mut [u8] {
    // SAFETY: the tests write to their files by this mapping alone.
    unsafe { file.as_mut_slice() }
}

/// Medium whose writes go to a cache first; a sync that fails leaves them there, as written: the
/// next one goes well without them, as Linux has it.
#[derive(Default)]
struct Medium {
    bytes: std::sync::Mutex<Vec<u8>>,
    cache: std::sync::Mutex<Vec<u8>>,
    dirty: std::sync::Mutex<std::collections::BTreeSet<u64>>,
    failing: AtomicBool,
}

struct Cached(Arc<Medium>);

impl FileIo for Cached {
    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.cache.lock().unwrap().len() as u64)
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> std::io::Result<usize> {
        let cache = self.0.cache.lock().unwrap();
        let from = cache.get(at as usize..).unwrap_or_default();
        let n = to.len().min(from.len());
        to[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write_at(&self, from: &[u8], at: u64) -> std::io::Result<usize> {
        self.0.cache.lock().unwrap()[at as usize..at as usize + from.len()].copy_from_slice(from);
        self.0.dirty.lock().unwrap().extend(at / PAGE as u64..(at + from.len() as u64).div_ceil(PAGE as u64));
        Ok(from.len())
    }

    fn sync(&self) -> std::io::Result<()> {
        let dirty = std::mem::take(&mut *self.0.dirty.lock().unwrap());
        if self.0.failing.load(Ordering::Relaxed) {
            return Err(std::io::Error::from_raw_os_error(libc::EIO));
        }
        let (mut bytes, cache) = (self.0.bytes.lock().unwrap(), self.0.cache.lock().unwrap());
        for page in dirty {
            let range = page as usize * PAGE..cache.len().min((page as usize + 1) * PAGE);
            bytes[range.clone()].copy_from_slice(&cache[range]);
        }
        Ok(())
    }
}

fn on_medium(bytes: usize) -> Option<(Arc<Medium>, MappedFile)> {
    let medium = Arc::new(Medium::default());
    *medium.bytes.lock().unwrap() = content(bytes);
    *medium.cache.lock().unwrap() = content(bytes);
    let config = MappedFileConfig { policy: Policy::Lru, fault_threads: 2, ..MappedFileConfig::new(6 * MIB) };
    let file = made(MappedFile::with_io(Box::new(Cached(medium.clone())), &config, None))?;
    Some((medium, file))
}

/// The kernel takes what it could not write for written, so the next sync says that all is well:
/// then it must be.
#[test]
fn a_flush_that_goes_well_after_a_failed_sync_has_written_all_again() {
    let Some((medium, mut file)) = on_medium(2 * MIB) else { return };
    (0..200).for_each(|page| bytes_mut(&mut file)[page * PAGE] = 1);
    medium.failing.store(true, Ordering::Relaxed);
    assert!(file.flush().unwrap_err().to_string().contains("Input/output error"));
    (100..300).for_each(|page| bytes_mut(&mut file)[page * PAGE] = 2);
    assert!(file.flush().is_err());
    medium.failing.store(false, Ordering::Relaxed);
    file.flush().unwrap();
    assert!(*medium.bytes.lock().unwrap() == *bytes_mut(&mut file));
    file.validate().unwrap();
}

/// Nobody can write again what left memory, so no later flush may say that all is well.
#[test]
fn after_a_failed_sync_of_pages_that_left_memory_no_flush_goes_well() {
    let Some((medium, mut file)) = on_medium(16 * MIB) else { return };
    (0..2000).for_each(|page| bytes_mut(&mut file)[page * PAGE] = 1);
    assert!(file.stats().counts.writes > 0, "some were written in the background");
    medium.failing.store(true, Ordering::Relaxed);
    assert!(file.flush().is_err());
    medium.failing.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        let error = file.flush().unwrap_err().to_string();
        assert!(error.contains("may not be on the medium"), "{error}");
    }
    file.validate().unwrap();
}
