//! Mapped files of the pager, for C.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use refault_pager::{MappedFile, MappedFileConfig, RegionConfig};

use crate::error::{Failure, Owner, guard};
use crate::{access_advice, borrow, check_struct, give, give_prefix, policy, range, size, text};

/// The handle of a mapped file.
#[allow(non_camel_case_types)]
pub struct refault_file(MappedFile, Owner);

const _: () = {
    const fn is_shared_by_threads<T: Send + Sync>() {}
    is_shared_by_threads::<refault_file>();
};

/// `refault_file_config`.
#[allow(non_camel_case_types, missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct refault_file_config {
    pub struct_bytes: u64,
    pub memory_max: u64,
    pub stall_limit_ms: u64,
    pub policy: *const c_char,
    pub writable: u32,
    pub fault_threads: u32,
    pub awake_cpus: u32,
    pub dirty_background_ratio: u32,
}

/// `refault_file_stats`: nothing but `u64`.
#[allow(non_camel_case_types, missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct refault_file_stats {
    pub memory_bytes: u64,
    pub peak_bytes: u64,
    pub own_bytes: u64,
    pub dirty_bytes: u64,
    pub writeback_bytes: u64,
    pub faults: u64,
    pub reads: u64,
    pub writes: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    pub lost_pages: u64,
}

const PAGE: u64 = 4096;

/// Fills in defaults.
///
/// # Safety
/// `config` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_config_init(config: *mut refault_file_config, memory_max: u64) {
    let new = refault_file_config {
        struct_bytes: size_of::<refault_file_config>() as u64,
        memory_max,
        stall_limit_ms: 30_000,
        policy: std::ptr::null(),
        writable: 1,
        fault_threads: 0,
        awake_cpus: RegionConfig::AWAKE_CPUS as u32,
        dirty_background_ratio: 10,
    };
    // SAFETY: the caller's contract.
    unsafe { give(config, new) };
}

/// Maps a file.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_open(
    path: *const c_char,
    config: *const refault_file_config,
    file: *mut *mut refault_file,
) -> c_int {
    guard(|| {
        if file.is_null() {
            return Err(Failure::argument("file is null".into()));
        }
        // SAFETY: structs and texts of the caller, by contract unchanged during the call.
        let (path, c) = unsafe { (text(path), borrow(config, "config")?) };
        let path = path.ok_or_else(|| Failure::argument("path is null".into()))?;
        check_struct::<refault_file_config>(c.struct_bytes, "refault_file_config")?;
        let config = MappedFileConfig {
            // SAFETY: as above.
            policy: policy(unsafe { text(c.policy) })?,
            writable: c.writable != 0,
            fault_threads: c.fault_threads as usize,
            awake_cpus: c.awake_cpus as usize,
            dirty_background_ratio: c.dirty_background_ratio,
            stall_limit: Duration::from_millis(c.stall_limit_ms),
            ..MappedFileConfig::new(size(c.memory_max))
        };
        let made = MappedFile::open(Path::new(OsStr::from_bytes(path.to_bytes())), &config)?;
        // SAFETY: `file` is not null (checked above), and writable by the caller's contract.
        unsafe { give(file, Box::into_raw(Box::new(refault_file(made, Owner::this())))) };
        Ok(())
    })
}

/// Its first byte.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_pointer(file: *const refault_file) -> *mut c_void {
    // SAFETY: a handle that lives, or null.
    unsafe { file.as_ref() }.map_or(std::ptr::null_mut(), |f| f.0.as_ptr().cast())
}

/// Its length in bytes.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_bytes(file: *const refault_file) -> u64 {
    // SAFETY: a handle that lives, or null.
    unsafe { file.as_ref() }.map_or(0, |f| f.0.len() as u64)
}

/// Reads ahead.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_will_need(
    file: *mut refault_file,
    offset: u64,
    length: u64,
    pages: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        let n = unsafe { borrow(file, "file") }?.0.will_need(range(offset, length)?)?;
        // SAFETY: the caller's contract.
        unsafe { give(pages, n) };
        Ok(())
    })
}

/// `MADV_RANDOM`, `MADV_SEQUENTIAL`, `POSIX_FADV_NOREUSE`, or none of them, for all of it.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_advise_access(file: *mut refault_file, advice: c_int) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        unsafe { borrow(file, "file") }?.0.advise_access(access_advice(advice)?);
        Ok(())
    })
}

/// Sets `memory.max`.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_set_memory_max(file: *mut refault_file, memory_max: u64) -> c_int {
    // SAFETY: a handle that lives, or null.
    guard(|| Ok(unsafe { borrow(file, "file") }?.0.set_memory_max(size(memory_max))?))
}

/// Writes back.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_flush(file: *mut refault_file) -> c_int {
    // SAFETY: a handle that lives, or null.
    guard(|| Ok(unsafe { borrow(file, "file") }?.0.flush()?))
}

/// Writes back, and ends it.
///
/// # Safety
/// The contract of the header: nobody uses it or its memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_close(file: *mut refault_file) -> c_int {
    if file.is_null() {
        return crate::error::REFAULT_OK;
    }
    guard(|| {
        // SAFETY: the handle is a box of `refault_file_open`.
        unsafe { &*file }.1.check()?;
        // SAFETY: and is given up once.
        Ok(unsafe { Box::from_raw(file) }.0.close()?)
    })
}

/// Writes the file's counters and sizes to `stats`.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_file_get_stats(
    file: *const refault_file,
    stats: *mut refault_file_stats,
    size: usize,
) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        let s = unsafe { borrow(file, "file") }?.0.stats();
        let c = s.counts;
        let new = refault_file_stats {
            memory_bytes: s.memory_pages * PAGE,
            peak_bytes: s.peak_pages * PAGE,
            own_bytes: s.own_bytes,
            dirty_bytes: s.dirty_pages * PAGE,
            writeback_bytes: s.writeback_pages * PAGE,
            faults: c.faults,
            reads: c.reads,
            writes: c.writes,
            read_errors: c.read_errors,
            write_errors: c.write_errors,
            lost_pages: c.lost,
        };
        // SAFETY: the caller's contract; nothing but `u64` is in it.
        unsafe { give_prefix(stats, size, new) }
    })
}
