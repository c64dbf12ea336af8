//! The machine: CPUs and memory, devices.

use super::device::preset_with_overrides;
use super::machine_keys::MACHINE_KEYS;
use super::read::{Field, Result, Section};
use super::types::{DeviceOverrides, DeviceSpec, MachineSpec, NodeSpec, PRESETS};
use super::units::MAX_TIME_NS;
use super::{MAX_PAGES, policy, read};
use crate::contention::{ContentionSpec, InterruptCosts};
use crate::cost::Costs;
use refault_mm::{THP, ThpConfig, ZSWAP, ZswapConfig};
use std::collections::{BTreeMap, BTreeSet};

/// Keys of `[machine]` with values of a form of their own, beside [`MACHINE_KEYS`].
const OWN_KEYS: [&str; 7] = ["cpus", "memory", "min_free_kbytes", "large_folios", "thp", "costs", "contention"];
/// Pages of the smallest machine: it needs memory for its watermarks and batches.
const MIN_MEMORY: u64 = 256;
/// The longest single latency: an hour.
const MAX_LATENCY_NS: u64 = 3600 * 1_000_000_000;

pub(super) fn machine(root: &Section<'_>, nodes: Vec<NodeSpec>) -> Result<MachineSpec> {
    if nodes.is_empty() {
        root.need("machine", "[machine]")?;
    }
    let keys: Vec<&str> = OWN_KEYS.into_iter().chain(MACHINE_KEYS.iter().map(|key| key.name)).collect();
    let s = root.table_or_empty("machine", &keys)?;
    if let (false, Some(twice)) = (nodes.is_empty(), s.get("memory").or(s.get("cpus"))) {
        return Err(twice.error("the nodes say it; leave it out"));
    }
    let memory_pages = match nodes.is_empty() {
        true => s.need("memory", "memory = \"16G\"")?.pages(MIN_MEMORY..=MAX_PAGES)?,
        false => nodes.iter().map(|n| n.pages).sum(),
    };
    let mut spec = MachineSpec {
        cpus: match nodes.is_empty() {
            true => s.or("cpus", 1, |f| f.int(1..=4096))?,
            false => nodes.iter().map(|n| n.cpus).sum(),
        },
        memory_pages,
        min_free_kbytes: s.opt("min_free_kbytes", |f| f.int(0..=1 << 40))?,
        file_order: s.or("large_folios", 0, large_folios)?,
        thp: s.or("thp", ThpConfig::default(), thp)?,
        given: given(&s)?,
        costs: s.or("costs", BTreeMap::new(), costs)?,
        contention: s.opt("contention", contention)?,
        nodes,
        ..MachineSpec::default()
    };
    for key in MACHINE_KEYS {
        key.read(&s, &mut spec)?;
    }
    let needs = [
        ("large_folios", "read_ahead_history = true", spec.read_ahead_history),
        ("watermark_boost_factor", "page_blocks = true", spec.page_blocks),
        ("dirty_writeback", "dirty_expire, such as \"30s\"", spec.dirty_expire_ns > 0),
    ];
    for (key, other, is_on) in needs {
        if let (false, Some(field)) = (is_on, s.get(key)) {
            return Err(field.error(format!("changes nothing without {other}; write that as well, or leave this out")));
        }
    }
    let rest = spec.memory_pages.saturating_sub(spec.kernel_pages);
    if let (true, Some(kernel)) = (rest < MIN_MEMORY, s.get("kernel")) {
        return Err(kernel.bad(&format!("leaves less than {MIN_MEMORY} pages of machine.memory")));
    }
    if let (true, Some(init)) = (spec.init_pages >= memory_pages / 2, s.get("init_memory")) {
        return Err(init.bad("is half of machine.memory or more"));
    }
    if let (Some(kb), Some(field)) = (spec.min_free_kbytes, s.get("min_free_kbytes"))
        && kb / 4 > rest / 2
    {
        return Err(field.bad("is more than half of the memory"));
    }
    if spec.dirty_background_ratio >= spec.dirty_ratio {
        let what =
            "is impossible: dirty_background_ratio (10 if not given) has to be below dirty_ratio (20 if not given)";
        let at = s.get("dirty_background_ratio").or(s.get("dirty_ratio"));
        return Err(at.map_or_else(|| s.error(what), |at| at.bad(what)));
    }
    Ok(spec)
}

/// Keys that are there, of those whose default may depend on something else.
fn given(s: &Section<'_>) -> Result<BTreeSet<&'static str>> {
    let mut given: BTreeSet<_> = MACHINE_KEYS.iter().map(|key| key.name).filter(|name| s.has(name)).collect();
    if let Some(thp) = s.get("thp")
        && thp.any_section()?.has("swap_in")
    {
        given.insert("thp.swap_in");
    }
    Ok(given)
}

/// Sizes of anonymous folios, as the files of `/sys/kernel/mm/transparent_hugepage` have them.
fn thp(field: &Field<'_>) -> Result<ThpConfig> {
    let keys: Vec<&str> = THP.iter().map(|setting| setting.name).collect();
    policy::part(&field.section(&keys)?, THP)
}

/// The largest folio of a file, as the log2 of its pages.
fn large_folios(field: &Field<'_>) -> Result<u8> {
    let pages = field.pages(0..=1 << ThpConfig::MAX_ORDER)?.max(1);
    if pages.is_power_of_two() { Ok(pages.ilog2() as u8) } else { Err(field.bad("is not a power of two; write 64K")) }
}

fn costs(field: &Field<'_>) -> Result<BTreeMap<String, u64>> {
    let named = Costs::default().named();
    // With its unit or without.
    let keys: Vec<&str> = named.iter().flat_map(|(name, _)| [name.trim_end_matches("_ns"), name]).collect();
    let s = field.section(&keys)?;
    s.entries().into_iter().map(|(name, cost)| Ok((name.to_owned(), cost.time(0..=MAX_LATENCY_NS)?))).collect()
}

/// Reads the waits of CPUs for each other: values that differ from the default constants.
fn contention(field: &Field<'_>) -> Result<ContentionSpec> {
    let keys = ["interrupts", "interrupt", "interrupt_each", "interrupted", "lock_handover", "mmap_lock", "zsmalloc"];
    let s = field.section(&keys)?;
    let plain = ContentionSpec::default();
    let preset = s.or("interrupts", plain.interrupts, |f| f.choice(&InterruptCosts::NAMED))?;
    let time = |key: &str, ns: u64| s.or(key, ns, |f| f.time(0..=1_000_000_000));
    Ok(ContentionSpec {
        interrupts: InterruptCosts {
            wait_ns: time("interrupt", preset.wait_ns)?,
            each_ns: time("interrupt_each", preset.each_ns)?,
            lost_ns: time("interrupted", preset.lost_ns)?,
        },
        handover_ns: time("lock_handover", plain.handover_ns)?,
        mmap_lock_ns: time("mmap_lock", plain.mmap_lock_ns)?,
        zsmalloc_ns: time("zsmalloc", plain.zsmalloc_ns)?,
    })
}

const DEVICE_KEYS: [&str; 21] = [
    "preset",
    "channels",
    "queue",
    "read_latency",
    "read_bandwidth",
    "write_latency",
    "write_bandwidth",
    "seek_average",
    "seek_track",
    "rpm",
    "max_request",
    "compression_ratio",
    "mem_limit",
    "compress",
    "decompress",
    "read_error_per_million",
    "write_error_per_million",
    "spike_per_million",
    "spike",
    "stuck_at",
    "stuck_for",
];
/// Keys that only one preset has.
const ONLY: [(&str, &str); 7] = [
    ("seek_average", "hdd"),
    ("seek_track", "hdd"),
    ("rpm", "hdd"),
    ("compression_ratio", "zram"),
    ("mem_limit", "zram"),
    ("compress", "zram"),
    ("decompress", "zram"),
];

/// Presets of devices that answer at once: the CPU itself does the work.
const AT_ONCE: [&str; 3] = ["ramdisk", "zram", "pmem"];
/// Keys of requests that wait in a queue.
const QUEUED: [&str; 3] = ["channels", "queue", "max_request"];
/// Keys of zram that say otherwise what another one says.
const BANDWIDTHS: [(&str, &str); 2] = [("read_bandwidth", "decompress"), ("write_bandwidth", "compress")];

pub(super) fn devices(field: &Field<'_>) -> Result<Vec<DeviceSpec>> {
    field.named(&DEVICE_KEYS, 64)?.into_iter().map(|(name, section)| device(name, &section)).collect()
}

/// Refuses keys that only a device with swap on it may have.
pub(super) fn swap_only(field: &Field<'_>, swap_devices: &[usize]) -> Result<()> {
    for (index, (_, section)) in field.named(&DEVICE_KEYS, 64)?.into_iter().enumerate() {
        if swap_devices.contains(&index) {
            continue;
        }
        if let Some(limit) = section.get("mem_limit") {
            return Err(limit.error("there is no swap on it, so nothing to limit; leave it out"));
        }
        if let Some(queue) = section.get("queue") {
            return Err(queue.error("there is no swap on it, so nobody waits for room in it; leave it out"));
        }
    }
    Ok(())
}

fn device(name: &str, s: &Section<'_>) -> Result<DeviceSpec> {
    read::name(name).map_err(|what| s.error(what))?;
    let preset = s.need("preset", "preset = \"hdd\"")?.choice(&PRESETS.map(|p| (p, p)))?;
    let foreign = ONLY.into_iter().find(|(key, only)| s.has(key) && preset != *only);
    if let Some((field, only)) = foreign.and_then(|(key, only)| Some((s.get(key)?, only))) {
        return Err(field.error(format!("only {only} has it; the preset is {preset}")));
    }
    // Streams of zram may be said, as its administrators do: each CPU has one.
    let has_queue = |key: &&str| !AT_ONCE.contains(&preset) || (preset, *key) == ("zram", "channels");
    if let Some(field) = QUEUED.into_iter().filter(|key| !has_queue(key)).find_map(|key| s.get(key)) {
        return Err(field.error(format!("changes nothing: {preset} answers at once, without a queue; leave it out")));
    }
    for (key, instead) in BANDWIDTHS.into_iter().filter(|_| preset == "zram") {
        if let Some(field) = s.get(key) {
            return Err(field.error(format!("the time of zram is that of a page; write {instead} instead")));
        }
    }
    let latency = |f: &Field<'_>| f.time(0..=MAX_LATENCY_NS);
    let millionth = |f: &Field<'_>| f.int(0..=1_000_000);
    let overrides = DeviceOverrides {
        channels: s.opt("channels", |f| f.int(1..=65_536))?,
        queue: s.opt("queue", |f| f.int(1..=1_000_000))?,
        read_latency_ns: s.opt("read_latency", latency)?,
        read_bytes_per_s: s.opt("read_bandwidth", Field::bytes_per_s)?,
        write_latency_ns: s.opt("write_latency", latency)?,
        write_bytes_per_s: s.opt("write_bandwidth", Field::bytes_per_s)?,
        seek_average_ns: s.opt("seek_average", latency)?,
        seek_track_ns: s.opt("seek_track", latency)?,
        rpm: s.opt("rpm", |f| f.int(1..=1_000_000))?,
        max_request_pages: s.opt("max_request", |f| f.pages(1..=65_536))?.map(|n| n as u32),
        compression_ratio: s.opt("compression_ratio", |f| f.float(1.0..=4096.0))?,
        mem_limit_pages: s.opt("mem_limit", |f| f.pages(1..=MAX_PAGES))?,
        compress_ns: s.opt("compress", latency)?,
        decompress_ns: s.opt("decompress", latency)?,
        read_error_per_million: s.opt("read_error_per_million", millionth)?,
        write_error_per_million: s.opt("write_error_per_million", millionth)?,
        spike_per_million: s.opt("spike_per_million", millionth)?,
        spike_ns: s.opt("spike", latency)?,
        stuck_at_ns: s.opt("stuck_at", |f| f.time(0..=MAX_TIME_NS))?,
        stuck_for_ns: s.opt("stuck_for", |f| f.time(1..=MAX_TIME_NS))?,
    };
    for (one, other) in [("spike_per_million", "spike"), ("stuck_at", "stuck_for")] {
        if s.has(one) != s.has(other) {
            return Err(s.error(format!("{one} and {other} go together; write both or none")));
        }
    }
    let spec = DeviceSpec { name: name.to_owned(), preset: preset.to_owned(), overrides };
    preset_with_overrides(&spec).and_then(|device| device.check()).map_err(|what| s.error(what))?;
    Ok(spec)
}

/// `[zswap]`; none: it is there and says that zswap is off.
pub(super) fn zswap(field: &Field<'_>) -> Result<Option<ZswapConfig>> {
    let keys: Vec<&str> = ["enabled"].into_iter().chain(ZSWAP.iter().map(|setting| setting.name)).collect();
    let s = field.section(&keys)?;
    let spec = policy::part(&s, ZSWAP)?;
    Ok(s.or("enabled", true, Field::boolean)?.then_some(spec))
}
