//! The keys of `[machine]`, each declared once: its name, its field, its unit, what is possible,
//! and its effect as the documentation has it. Defaults are those of [`MachineSpec::default`].

use super::MAX_PAGES;
use super::read::{Field, Result, Section};
use super::types::MachineSpec;
use super::units::{MAX_TIME_NS, size_text, time_text};

/// A key of `[machine]` that sets a flag or a number.
#[derive(Clone, Copy, Debug)]
pub struct MachineKey {
    /// The key.
    pub name: &'static str,
    /// Effect of the key, in Markdown; links are from `docs/reference`.
    pub about: &'static str,
    kind: Kind,
}

/// Kinds of values, with their field.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Flag(fn(&mut MachineSpec) -> &mut bool),
    Number(Unit, u64, u64, fn(&MachineSpec) -> u64, fn(&mut MachineSpec, u64)),
}

/// Unit of a number.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// A plain number.
    None,
    /// Pages, written as a size.
    Pages,
    /// Nanoseconds, written as a time.
    Time,
}

macro_rules! flag {
    ($name:literal, $field:ident, $about:literal) => {
        MachineKey { name: $name, about: $about, kind: Kind::Flag(|m| &mut m.$field) }
    };
}

macro_rules! number {
    ($name:literal, $field:ident, $unit:ident, $range:expr, $about:literal) => {
        MachineKey {
            name: $name,
            about: $about,
            kind: Kind::Number(
                Unit::$unit,
                *$range.start(),
                *$range.end(),
                |m| u64::from(m.$field),
                // The range is within the type of the field.
                |m, n| m.$field = n as _,
            ),
        }
    };
}

/// The keys, in the order of the documentation.
pub const MACHINE_KEYS: &[MachineKey] = &[
    number!(
        "kernel",
        kernel_pages,
        Pages,
        0..=MAX_PAGES,
        "of memory, what is never reclaimed: the kernel, slab, RAM disks, what else runs there"
    ),
    number!(
        "dma",
        dma_pages,
        Pages,
        0..=MAX_PAGES,
        "of memory, what lies in the zone DMA (16M without the first); never more than an eighth"
    ),
    number!(
        "dma32",
        dma32_pages,
        Pages,
        0..=MAX_PAGES,
        "what of the rest lies in the zone DMA32 (3G less 16M); what is left is Normal. Multi-gen eviction takes from the highest zone first"
    ),
    number!(
        "init_memory",
        init_pages,
        Pages,
        0..=MAX_PAGES,
        "of memory, what boot gave back late: [zones](../mechanisms.md#zones-and-watermarks) have no marks and no reserve for it"
    ),
    flag!(
        "per_cpu_lists",
        per_cpu_lists,
        "CPUs keep [free pages for themselves](../mechanisms.md#per-cpu-lists-of-free-pages); on a [divided](#scaling) machine only if the file says so"
    ),
    flag!(
        "page_blocks",
        page_blocks,
        "free pages are of [kinds](../mechanisms.md#page-blocks-and-the-watermark-boost), by blocks of 512; on a [divided](#scaling) machine only if the file says so"
    ),
    number!(
        "watermark_boost_factor",
        watermark_boost_factor,
        None,
        0..=100_000,
        "in 1/10000 of the high mark: how far marks rise when a page block changes its kind. Needs `page_blocks`"
    ),
    flag!(
        "buffer_heads",
        buffer_heads,
        "file systems keep [buffer heads](../mechanisms.md#buffer-heads) of pages that are written, as ext4 does; `false`: XFS, btrfs"
    ),
    number!(
        "quantum",
        quantum_ns,
        Time,
        1000..=1_000_000_000,
        "the longest that a task works at once: who waits for a CPU takes it then, or with ticks at the next of them"
    ),
    number!(
        "tick",
        tick_ns,
        Time,
        0..=1_000_000_000,
        "a task keeps a CPU until one of the [ticks](../mechanisms.md#ticks), and who is woken takes it at once; 0 is none, the default on a [divided](#scaling) machine with `[node.NAME]`"
    ),
    number!("swappiness", swappiness, None, 0..=200, "as the sysctl"),
    number!("watermark_scale_factor", watermark_scale_factor, None, 1..=3000, "in 1/10000 of memory"),
    number!("page_cluster", page_cluster, None, 0..=9, "swap readahead of up to 2^this pages; 0 is none"),
    number!("read_ahead", read_ahead_pages, Pages, 0..=8192, "readahead of files; 0 is none"),
    flag!(
        "read_ahead_history",
        read_ahead_history,
        "a miss elsewhere reads [what is asked for at once](../mechanisms.md#readahead), and windows follow what is in memory. `false`, by which such a miss reads a page, is kept for one benchmark, GETs beside scans of cache_ext"
    ),
    number!(
        "dirty_background_ratio",
        dirty_background_ratio,
        None,
        0..=100,
        "percent of cache and free pages that may be dirty before writing starts"
    ),
    number!("dirty_ratio", dirty_ratio, None, 1..=100, "likewise, from which on writers wait"),
    number!(
        "dirty_expire",
        dirty_expire_ns,
        Time,
        0..=MAX_TIME_NS,
        "what has been dirty for so long is written; 0 is never"
    ),
    number!(
        "dirty_writeback",
        dirty_writeback_ns,
        Time,
        1_000_000..=MAX_TIME_NS,
        "how often it is looked for. Needs `dirty_expire`"
    ),
    flag!(
        "cgroup_writeback",
        cgroup_writeback,
        "`false`: groups have no [dirty limit of their own](../mechanisms.md#dirty-pages-and-the-flusher), as with cgroup v1, and of files on NFS"
    ),
    number!(
        "min_ttl",
        min_ttl_ns,
        Time,
        0..=MAX_TIME_NS,
        "`lru_gen/min_ttl_ms`: where no group has [anything older](../mechanisms.md#min_ttl_ms), kswapd has a task killed"
    ),
    flag!(
        "memory_recursiveprot",
        recursive_protection,
        "the mount option: what a group's `min` and `low` leave unclaimed goes to its descendants"
    ),
    number!(
        "stat_flush_interval",
        stat_flush_interval_ns,
        Time,
        0..=MAX_TIME_NS,
        "how old the statistics of groups may be that two-list reclaim and the refault tests by distance read; 0 is none, the default with a `kernel` before 6.12. Without groups they are exact"
    ),
];

impl MachineKey {
    /// Sets what the section says.
    pub(super) fn read(&self, s: &Section<'_>, machine: &mut MachineSpec) -> Result<()> {
        let Some(field) = s.get(self.name) else { return Ok(()) };
        match self.kind {
            Kind::Flag(place) => *place(machine) = field.boolean()?,
            Kind::Number(unit, least, most, _, set) => set(machine, number(&field, unit, least, most)?),
        }
        Ok(())
    }

    /// The default, as a scenario would write it.
    pub fn default_text(&self) -> String {
        let mut plain = MachineSpec::default();
        match self.kind {
            Kind::Flag(place) => place(&mut plain).to_string(),
            Kind::Number(unit, _, _, get, _) => text(unit, get(&plain)),
        }
    }

    /// Possible values, for people; empty: those of its unit.
    pub fn range_text(&self) -> String {
        match self.kind {
            Kind::Number(unit, least, most, ..) if most < MAX_PAGES.min(MAX_TIME_NS) => {
                format!("{} to {}", text(unit, least), text(unit, most))
            }
            _ => String::new(),
        }
    }
}

fn number(field: &Field<'_>, unit: Unit, least: u64, most: u64) -> Result<u64> {
    match unit {
        Unit::None => field.int(least..=most),
        Unit::Pages => field.pages(least..=most),
        Unit::Time => field.time(least..=most),
    }
}

fn text(unit: Unit, n: u64) -> String {
    match unit {
        _ if n == 0 => "0".to_owned(),
        Unit::None => n.to_string(),
        Unit::Pages if n < 256 => format!("{}K", 4 * n),
        Unit::Pages => size_text(n),
        Unit::Time => time_text(n),
    }
}
