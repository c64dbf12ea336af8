//! Files that are mapped.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use refault_pager::store::nameless_file;
use refault_pager::{MappedFile, MappedFileConfig};

use super::load::{self, Figures};
use super::options::Options;

/// A file that is gone when this process is, as long as the memory.
fn file(o: &Options) -> Result<File, String> {
    let made = nameless_file(&o.directory).and_then(|f| f.set_len(o.region as u64).map(|()| f));
    made.map_err(|e| format!("making a file in {}: {e}", o.directory.display()))
}

/// By the kernel, in whatever cgroup this process is.
pub fn by_kernel(o: &Options, workload: &str, threads: usize) -> Result<Figures, String> {
    let file = file(o)?;
    // SAFETY: a new mapping where the kernel chooses, that is not unmapped; nobody else has the
    // file.
    let memory = unsafe {
        let (rw, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        libc::mmap(std::ptr::null_mut(), o.region, rw, shared, file.as_raw_fd(), 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(format!("mapping a file: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the mapping that was made.
    if o.random && unsafe { libc::madvise(memory, o.region, libc::MADV_RANDOM) } != 0 {
        return Err(format!("advising on a mapping: {}", std::io::Error::last_os_error()));
    }
    Ok(load::run(o, workload, threads, memory.cast(), load::kernel_file_misses))
}

/// By the pager.
pub fn by_pager(o: &Options, workload: &str, threads: usize) -> Result<Figures, String> {
    let file = file(o)?;
    let mut config = MappedFileConfig::new(o.memory);
    config.policy = o.policy;
    config.fault_threads = o.fault_threads;
    config.dirty_background_ratio = o.dirty_background_ratio;
    let path: PathBuf = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    let mapped = MappedFile::open(&path, &config).map_err(|e| e.to_string())?;
    let misses = || {
        let stats = mapped.stats();
        let major = stats.vmstat.iter().find(|(name, _)| *name == "pgmajfault");
        (major.map_or(0, |m| m.1), stats.counts.reads)
    };
    let mut figures = load::run(o, workload, threads, mapped.as_ptr(), misses);
    let stats = mapped.stats();
    figures.overhead_bytes = stats.own_bytes;
    figures.in_place_bytes = stats.memory_pages * 4096;
    if o.verbose {
        eprintln!("{stats:?}");
    }
    Ok(figures)
}
