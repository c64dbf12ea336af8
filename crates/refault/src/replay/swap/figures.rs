//! Figures of swap at the end of a replay, and their table.

use super::{SwapKind, SwapSetup};
use crate::memory_size::human;
use crate::replay::Row;
use crate::table::Table;
use crate::words::{duration, grouped};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt::Write as _;

/// Traffic of swap, and the pool of compressed pages.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapFigures {
    /// The device and the compression.
    pub setup: SwapSetup,
    /// Pages that came from the pool.
    pub pool_ins: u64,
    /// Pages that came from the disk.
    pub disk_ins: u64,
    /// Pages that went to the pool.
    pub pool_outs: u64,
    /// Pages that went to the disk.
    pub disk_outs: u64,
    /// Pages among these that the pool had before.
    pub written_back: u64,
    /// Pages that the pool of zram had no room for, and that stayed.
    pub refused: u64,
    /// Pages in the pool at the end.
    pub stored_pages: u64,
    /// Bytes of memory of the pool at the end.
    pub pool_bytes: u64,
    /// The most that they were.
    pub pool_peak_bytes: u64,
    /// The same at the end of each 32nd part of the accesses.
    pub pool_parts_bytes: Vec<u64>,
    /// Pages that were compressed, in vain or not.
    pub compressions: u64,
    /// Pages that were decompressed.
    pub decompressions: u64,
    /// CPU time of both, in nanoseconds.
    pub codec_ns: u64,
}

impl SwapFigures {
    /// Pages that came back, wherever they were.
    pub fn swap_ins(&self) -> u64 {
        self.pool_ins + self.disk_ins
    }

    /// Whether the group is charged for the pool.
    pub fn is_charged(&self) -> bool {
        self.setup.swap.kind == SwapKind::Zswap
    }

    /// The most memory of the group, which `limit_bytes` bounds, and the pool together.
    pub fn memory_bytes(&self, limit_bytes: u64) -> u64 {
        if self.is_charged() { limit_bytes } else { limit_bytes.saturating_add(self.pool_peak_bytes) }
    }

    /// The pool and its price in a few words, for a remark.
    pub fn in_words(&self) -> String {
        match self.setup.swap.kind {
            SwapKind::None => String::new(),
            SwapKind::Disk => format!("{} read from swap on disk", grouped(self.disk_ins)),
            SwapKind::Zram | SwapKind::Zswap => {
                let disk = match self.setup.swap.kind {
                    SwapKind::Zswap => format!(", {} from disk", grouped(self.disk_ins)),
                    _ => String::new(),
                };
                let (pool, cpu) = (human(self.pool_peak_bytes), duration(self.codec_ns));
                format!("pool {pool} at most, {} from it{disk}, {cpu} of CPU", grouped(self.pool_ins))
            }
        }
    }
}

impl SwapFigures {
    /// Names of the figures in CSV.
    pub const COLUMNS: [&'static str; 8] =
        ["pool_ins", "disk_ins", "pool_outs", "disk_outs", "pool_refused", "pool_peak_bytes", "pool_bytes", "codec_ns"];

    /// Figures in the order of the columns.
    pub fn columns(&self) -> [u64; 8] {
        let SwapFigures { pool_ins, disk_ins, pool_outs, disk_outs, refused, codec_ns, .. } = *self;
        [pool_ins, disk_ins, pool_outs, disk_outs, refused, self.pool_peak_bytes, self.pool_bytes, codec_ns]
    }
}

impl Serialize for SwapFigures {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("kind", self.setup.swap.kind.name())?;
        map.serialize_entry("pool_ins", &self.pool_ins)?;
        map.serialize_entry("disk_ins", &self.disk_ins)?;
        map.serialize_entry("pool_outs", &self.pool_outs)?;
        map.serialize_entry("disk_outs", &self.disk_outs)?;
        map.serialize_entry("written_back", &self.written_back)?;
        map.serialize_entry("refused", &self.refused)?;
        map.serialize_entry("stored_pages", &self.stored_pages)?;
        map.serialize_entry("pool_bytes", &self.pool_bytes)?;
        map.serialize_entry("pool_peak_bytes", &self.pool_peak_bytes)?;
        map.serialize_entry("pool_parts_bytes", &self.pool_parts_bytes)?;
        map.serialize_entry("is_charged", &self.is_charged())?;
        map.serialize_entry("compressions", &self.compressions)?;
        map.serialize_entry("decompressions", &self.decompressions)?;
        map.serialize_entry("codec_ns", &self.codec_ns)?;
        map.end()
    }
}

/// A table of swap, a line for each row that has it; empty if none has.
pub fn swap_table(rows: &[Row]) -> String {
    let all: Vec<(&Row, &SwapFigures)> = rows.iter().filter_map(|row| Some((row, row.swap.as_ref()?))).collect();
    let Some((_, first)) = all.first() else { return String::new() };
    let kind = first.setup.swap.kind;
    if kind == SwapKind::None {
        return String::new();
    }
    let mut text = format!("\nswap on {}", first.setup.swap);
    if kind.compresses() {
        let charged = if first.is_charged() { "the group is" } else { "the machine and not the group is" };
        let _ = write!(text, ": {}; {charged} charged for the pool", first.setup.compression);
    }
    text.push('\n');
    let heads = [
        "policy",
        "memory",
        "in from\npool",
        "in from\ndisk",
        "out to\npool",
        "out to\ndisk",
        "refused",
        "pool at\nmost",
        "at the\nend",
        "memory\nwith it",
        "CPU\ntime",
    ];
    let mut table = Table::new(heads, 1).sparse(2..7);
    for (row, of) in all {
        let size = |bytes: u64| if kind.compresses() { human(bytes) } else { "-".to_owned() };
        table.row(vec![
            row.policy.name().to_owned(),
            human(row.memory_bytes),
            grouped(of.pool_ins),
            grouped(of.disk_ins),
            grouped(of.pool_outs),
            grouped(of.disk_outs),
            grouped(of.refused),
            size(of.pool_peak_bytes),
            size(of.pool_bytes),
            human(of.memory_bytes(row.memory_bytes)),
            if kind.compresses() { duration(of.codec_ns) } else { "-".to_owned() },
        ]);
    }
    text + &table.render()
}
