//! A region and a mapped file with the least memory that they are said to need keep every page, and
//! a pool before a file gives its memory before a page is lost. Without userfaultfd the tests say
//! that they skip.

use std::fs::File;

use refault_pager::{Error, FaultMode, MappedFile, MappedFileConfig, PoolConfig, Region, RegionConfig, store::Codec};
use refault_testing::{Program, Rng, one_in, only_long, role, test_name};

use crate::common::files::{MIB, PAGE, Temp};
use crate::common::{made, run_to_a_good_end};

/// The number of bytes that an error advises.
fn advised(e: &Error) -> usize {
    let text = e.to_string();
    let number = text.split("give it ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok());
    number.unwrap_or_else(|| panic!("no advice: {text}"))
}

/// Makes it with the least memory, as far as errors advise more.
fn least<T>(make: impl Fn(usize) -> Result<T, Error>) -> Option<T> {
    let mut memory_max = 4 * MIB;
    for _ in 0..4 {
        match make(memory_max) {
            Err(e @ Error::Config(_)) => memory_max = advised(&e),
            other => return made(other),
        }
    }
    panic!("the advice changes for ever");
}

/// Half of it noise, so that a pool takes half of it.
fn fill(memory: &mut [u8]) {
    let mut rng = Rng(1);
    for (page, bytes) in memory.chunks_mut(PAGE).enumerate() {
        for word in bytes.as_chunks_mut::<16>().0 {
            word[..8].copy_from_slice(&rng.next().to_le_bytes());
            word[8..].copy_from_slice(&(page as u64).to_le_bytes());
        }
    }
}

fn check(memory: &[u8]) {
    let wrong = memory.chunks(PAGE).enumerate().find(|(page, bytes)| bytes[8..16] != (*page as u64).to_le_bytes());
    assert!(wrong.is_none(), "page {}", wrong.expect("there is one").0);
}

/// Tables that grew while the region was filled took the memory of its pages, and one was lost.
#[test]
fn the_least_memory_of_a_region_is_enough_to_fill_it() {
    if !only_long("the_least_memory_of_a_region_is_enough_to_fill_it") {
        return;
    }
    for fault_mode in [FaultMode::Threads, FaultMode::Signal] {
        let config = |memory_max| RegionConfig {
            pool: None,
            swap_directory: Some(env!("CARGO_MANIFEST_DIR").into()),
            fault_mode,
            ..RegionConfig::new(384 * MIB, memory_max)
        };
        let Some(mut region) = least(|memory_max| Region::new(&config(memory_max))) else { return };
        let first = region.stats();
        let memory = region.as_mut_slice();
        (0..memory.len()).step_by(PAGE).for_each(|at| memory[at] = (at / PAGE) as u8 | 1);
        assert!((0..memory.len()).step_by(PAGE).all(|at| memory[at] == (at / PAGE) as u8 | 1));
        let s = region.stats();
        let tables = (s.own_bytes + s.store_bytes) as usize;
        assert!(tables > first.own_bytes as usize + 2 * MIB, "they grow: {s:?}");
        assert!(tables <= region.limits().memory_max / 20 * 11, "half of the memory is for pages: {tables} {s:?}");
    }
}

/// So much was taken for noting which pages are not synced that there was none left for pages.
#[test]
fn the_least_memory_of_a_file_is_enough_to_write_it() {
    let temp = Temp::new(b"");
    File::options().write(true).open(&temp.0).unwrap().set_len(256 * MIB as u64).unwrap();
    let Some(file) = least(|memory_max| MappedFile::open(&temp.0, &MappedFileConfig::new(memory_max))) else { return };
    let first = file.stats().own_bytes;
    // SAFETY: inside the mapping; nobody else refers to it.
    (0..file.len()).step_by(PAGE).for_each(|at| unsafe { file.as_ptr().add(at).write_volatile(at as u8 | 1) });
    let s = file.stats();
    assert_eq!(s.counts.lost, 0);
    assert!(s.own_bytes < first + first / 4, "{first} bytes at first: {s:?}");
    file.close().unwrap();
}

/// A region that does not fit is refused before anything is made for it: 1 TiB in 64 MiB took 4 GB.
#[test]
fn what_is_much_too_large_is_refused_at_once() {
    let most = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmPeak:")).expect("the kernel tells it").to_string();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    };
    let before = most();
    assert!(matches!(Region::new(&RegionConfig::new(1 << 40, 64 * MIB)), Err(Error::Config(_))));
    assert!(most() < before + (1 << 40), "address space for it was asked for");
}

/// Nearly all of a region is out of memory, and half of its memory is the pool's.
fn tight() -> RegionConfig {
    RegionConfig {
        swap_max: 56 * MIB,
        swap_directory: Some(env!("CARGO_MANIFEST_DIR").into()),
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: 8 * MIB }),
        ..RegionConfig::new(64 * MIB, 16 * MIB)
    }
}

#[test]
fn a_pool_gives_its_memory_before_a_page_is_lost() {
    let modes = [(FaultMode::Threads, true), (FaultMode::Threads, false), (FaultMode::Signal, true)];
    for (fault_mode, pool_adapts) in modes.into_iter().step_by(one_in(3)) {
        let config = RegionConfig { fault_mode, pool_adapts, ..tight() };
        let Some(mut region) = made(Region::new(&config)) else { return };
        fill(region.as_mut_slice());
        for _ in 0..2 {
            check(region.as_slice());
        }
        region.validate().unwrap();
        let s = region.stats();
        assert_eq!(s.counts.poisoned, 0);
        assert!(s.swap_pages > 12_000, "it was about that: {s:?}");
    }
}

/// Not a test of its own: the program.
#[test]
fn the_program() {
    if role().is_none() {
        return;
    }
    let mut memory = vec![0u8; 60 * MIB];
    fill(&mut memory);
    for _ in 0..2 {
        check(&memory);
    }
}

#[test]
fn a_pool_gives_its_memory_before_a_program_is_killed() {
    run_to_a_good_end(Program::new(test_name!(the_program), "program"), tight());
}
