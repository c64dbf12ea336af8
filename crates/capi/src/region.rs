//! Regions.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use refault_pager::store::Codec;
use refault_pager::{FaultMode, HugeAdvice, Limits, PoolConfig, Region, RegionConfig, SizeCounter, ThpConfig};

use crate::error::{Failure, Owner, guard};
use crate::{access_advice, borrow, check_struct, give, give_prefix, policy, range, size, text};

/// The handle of a region.
#[allow(non_camel_case_types)]
pub struct refault_region(Region, Owner);

const _: () = {
    const fn is_shared_by_threads<T: Send + Sync>() {}
    is_shared_by_threads::<refault_region>();
};

/// `refault_region_config`.
#[allow(non_camel_case_types, missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct refault_region_config {
    pub struct_bytes: u64,
    pub bytes: u64,
    pub memory_max: u64,
    pub memory_high: u64,
    pub swap_max: u64,
    pub zswap_max: u64,
    pub stall_limit_ms: u64,
    pub policy: *const c_char,
    pub swap_directory: *const c_char,
    pub thp: *const c_char,
    pub pool: u32,
    pub fault_threads: u32,
    pub standby_percent: u32,
    pub fault_mode: u32,
    pub sample_cpu_percent: u32,
    pub pool_adapts: u32,
    pub poll: u32,
    pub awake_cpus: u32,
}

/// `refault_limits`.
#[allow(non_camel_case_types, missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct refault_limits {
    pub memory_max: u64,
    pub memory_high: u64,
    pub swap_max: u64,
    pub zswap_max: u64,
}

/// `refault_region_stats`: nothing but `u64`.
#[allow(non_camel_case_types, missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct refault_region_stats {
    pub memory_bytes: u64,
    pub peak_bytes: u64,
    pub own_bytes: u64,
    pub store_bytes: u64,
    pub swap_bytes: u64,
    pub faults: u64,
    pub first_touches: u64,
    pub swapped_in: u64,
    pub swapped_out: u64,
    pub rescued: u64,
    pub throttled: u64,
    pub throttled_ns: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    pub lost_pages: u64,
    pub events_high: u64,
    pub events_max: u64,
    pub samples_taken: u64,
    pub samples_seen: u64,
    pub sample_cost_ns: u64,
    pub folios_made: u64,
    pub folios_out: u64,
    pub folios_in: u64,
    pub folios_split: u64,
    pub pool_limit_bytes: u64,
}

const POOL_NONE: u32 = 0;
const POOL_LZ4: u32 = 1;
const POOL_ZSTD: u32 = 2;

const FAULTS_BY_THREADS: u32 = 0;
const FAULTS_BY_SIGNAL: u32 = 1;

const PAGE: u64 = 4096;

/// Fills in defaults.
///
/// # Safety
/// `config` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_config_init(config: *mut refault_region_config, bytes: u64, memory_max: u64) {
    let new = refault_region_config {
        struct_bytes: size_of::<refault_region_config>() as u64,
        bytes,
        memory_max,
        memory_high: u64::MAX,
        swap_max: bytes,
        zswap_max: memory_max / 2,
        stall_limit_ms: 30_000,
        policy: std::ptr::null(),
        swap_directory: std::ptr::null(),
        thp: std::ptr::null(),
        pool: POOL_LZ4,
        fault_threads: 0,
        standby_percent: 0,
        fault_mode: FAULTS_BY_THREADS,
        sample_cpu_percent: 0,
        pool_adapts: 1,
        poll: 1,
        awake_cpus: RegionConfig::AWAKE_CPUS as u32,
    };
    // SAFETY: `pages` is null or writable, by the caller's contract.
    unsafe { give(config, new) };
}

/// # Safety
/// The texts of `c` are null, or end in a zero byte.
unsafe fn config(c: &refault_region_config) -> Result<RegionConfig, Failure> {
    check_struct::<refault_region_config>(c.struct_bytes, "refault_region_config")?;
    let codec = match c.pool {
        POOL_NONE => None,
        POOL_LZ4 => Some(Codec::Lz4),
        POOL_ZSTD => Some(Codec::Zstd),
        other => return Err(Failure::argument(format!("pool: there is no codec {other}"))),
    };
    let fault_mode = match c.fault_mode {
        FAULTS_BY_THREADS => FaultMode::Threads,
        FAULTS_BY_SIGNAL => FaultMode::Signal,
        other => return Err(Failure::argument(format!("fault_mode: there is no mode {other}"))),
    };
    // SAFETY: `pages` is null or writable, by the caller's contract.
    let (name, directory, sizes) = unsafe { (text(c.policy), text(c.swap_directory), text(c.thp)) };
    let new = RegionConfig::new(size(c.bytes), size(c.memory_max));
    Ok(RegionConfig {
        memory_high: size(c.memory_high),
        swap_max: size(c.swap_max),
        policy: policy(name)?,
        pool: codec.map(|codec| PoolConfig { codec, max_bytes: size(c.zswap_max) }),
        swap_directory: directory.map(|d| OsStr::from_bytes(d.to_bytes()).into()),
        fault_mode,
        fault_threads: c.fault_threads as usize,
        standby_percent: c.standby_percent,
        sample_cpu_percent: c.sample_cpu_percent,
        pool_adapts: c.pool_adapts != 0,
        poll: c.poll != 0,
        awake_cpus: c.awake_cpus as usize,
        thp: thp(new.thp.clone(), sizes)?,
        stall_limit: Duration::from_millis(c.stall_limit_ms),
        ..new
    })
}

/// Sizes of folios: settings between blanks.
fn thp(mut config: ThpConfig, settings: Option<&CStr>) -> Result<ThpConfig, Failure> {
    for setting in settings.map(CStr::to_string_lossy).unwrap_or_default().split_ascii_whitespace() {
        config.set(setting).map_err(|e| Failure::config(format!("thp: {e}")))?;
    }
    Ok(config)
}

/// Makes a region.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_create(
    from: *const refault_region_config,
    region: *mut *mut refault_region,
) -> c_int {
    guard(|| {
        if region.is_null() {
            return Err(Failure::argument("region is null".into()));
        }
        // SAFETY: the configuration and its texts are the caller's, by contract unchanged during
        // the call.
        let config = unsafe { config(borrow(from, "config")?)? };
        let made = Box::into_raw(Box::new(refault_region(Region::new(&config)?, Owner::this())));
        // SAFETY: it is not null; the caller's contract.
        unsafe { give(region, made) };
        Ok(())
    })
}

/// Ends a region.
///
/// # Safety
/// The contract of the header: nobody uses it or its memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_destroy(region: *mut refault_region) {
    if !region.is_null() {
        guard(|| {
            // SAFETY: the handle is a box of `refault_region_create`.
            unsafe { &*region }.1.check()?;
            // SAFETY: and is given up once.
            drop(unsafe { Box::from_raw(region) });
            Ok(())
        });
    }
}

/// Its first byte.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_pointer(region: *const refault_region) -> *mut c_void {
    // SAFETY: a handle that lives, or null.
    unsafe { region.as_ref() }.map_or(std::ptr::null_mut(), |r| r.0.as_ptr().cast())
}

/// Its size in bytes.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_bytes(region: *const refault_region) -> u64 {
    // SAFETY: a handle that lives, or null.
    unsafe { region.as_ref() }.map_or(0, |r| r.0.len() as u64)
}

/// Advice.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_advise(
    region: *mut refault_region,
    offset: u64,
    length: u64,
    advice: c_int,
    pages: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        let region = &unsafe { borrow(region, "region") }?.0;
        let range = range(offset, length)?;
        let n = match advice {
            0 => region.will_need(range)?,
            1 => region.populate(range)?,
            2 => region.cold(range).map(|()| 0)?,
            3 => region.page_out(range)?,
            // SAFETY: no reference of Rust to the memory is ever made here; what C does with it at
            // the same time is told in the header.
            4 | 5 => unsafe { region.dont_need_shared(range) }.map(|()| 0)?,
            other => return Err(Failure::argument(format!("there is no advice {other}"))),
        };
        // SAFETY: `pages` is null or writable, by the caller's contract.
        unsafe { give(pages, n) };
        Ok(())
    })
}

/// `MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`, or neither, for all of it.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_advise_huge(region: *mut refault_region, advice: c_int) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        let region = &unsafe { borrow(region, "region") }?.0;
        region.advise_huge(match advice {
            0 => HugeAdvice::None,
            1 => HugeAdvice::Huge,
            2 => HugeAdvice::NoHuge,
            other => return Err(Failure::argument(format!("there is no advice on folios {other}"))),
        });
        Ok(())
    })
}

/// `MADV_RANDOM`, `MADV_SEQUENTIAL`, or neither, for all of it.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_advise_access(region: *mut refault_region, advice: c_int) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        unsafe { borrow(region, "region") }?.0.advise_access(access_advice(advice)?);
        Ok(())
    })
}

/// The limits as they are.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_get_limits(
    region: *const refault_region,
    limits: *mut refault_limits,
) -> c_int {
    guard(|| {
        if limits.is_null() {
            return Err(Failure::argument("limits is null".into()));
        }
        // SAFETY: a handle that lives, or null.
        let l = unsafe { borrow(region, "region") }?.0.limits();
        let limit = |bytes: usize| if bytes == usize::MAX { u64::MAX } else { bytes as u64 };
        let [memory_max, memory_high] = [l.memory_max, l.memory_high].map(limit);
        let [swap_max, zswap_max] = [l.swap_max, l.zswap_max].map(limit);
        // SAFETY: it is not null; the caller's contract.
        unsafe { give(limits, refault_limits { memory_max, memory_high, swap_max, zswap_max }) };
        Ok(())
    })
}

/// Sets the limits.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_set_limits(
    region: *mut refault_region,
    limits: *const refault_limits,
) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives and a struct of the caller, or null.
        let (region, l) = unsafe { (&borrow(region, "region")?.0, *borrow(limits, "limits")?) };
        let [memory_max, memory_high] = [l.memory_max, l.memory_high].map(size);
        let [swap_max, zswap_max] = [l.swap_max, l.zswap_max].map(size);
        Ok(region.set_limits(&Limits { memory_max, memory_high, swap_max, zswap_max })?)
    })
}

/// Writes the region's counters and sizes to `stats`.
///
/// # Safety
/// Pointers and handles are as `refault.h` demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refault_region_get_stats(
    region: *const refault_region,
    stats: *mut refault_region_stats,
    size: usize,
) -> c_int {
    guard(|| {
        // SAFETY: a handle that lives, or null.
        let s = unsafe { borrow(region, "region") }?.0.stats();
        let c = s.counts;
        let folios = |which| s.sizes.iter().filter(|&(_, counter, _)| counter == which).map(|(.., n)| n).sum();
        let new = refault_region_stats {
            memory_bytes: s.memory_pages * PAGE,
            peak_bytes: s.peak_pages * PAGE,
            own_bytes: s.own_bytes,
            store_bytes: s.store_bytes,
            swap_bytes: s.swap_pages * PAGE,
            faults: c.faults,
            first_touches: c.first_touches,
            swapped_in: c.swapped_in,
            swapped_out: c.swapped_out,
            rescued: c.rescued,
            throttled: c.throttled,
            throttled_ns: c.throttled_ns,
            read_errors: c.read_errors,
            write_errors: c.write_errors,
            lost_pages: c.poisoned,
            events_high: s.events.high,
            events_max: s.events.max,
            samples_taken: s.samples.taken,
            samples_seen: s.samples.seen,
            sample_cost_ns: s.samples.cost_ns,
            folios_made: folios(SizeCounter::AnonFaultAlloc),
            folios_out: folios(SizeCounter::Swpout),
            folios_in: folios(SizeCounter::Swpin),
            folios_split: folios(SizeCounter::Split),
            pool_limit_bytes: s.area.usage.pool_limit_bytes,
        };
        // SAFETY: the caller's contract; nothing but `u64` is in it.
        unsafe { give_prefix(stats, size, new) }
    })
}
