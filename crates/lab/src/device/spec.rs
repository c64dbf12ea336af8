//! Configuration of a device: numbers that a scenario may change one by one.

use std::fmt;
use std::str::FromStr;

use super::PAGE_BYTES;

/// A kind of device whose figures are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A desktop disk of 7200 revolutions a minute.
    Hdd,
    /// A solid-state disk on SATA.
    SataSsd,
    /// A solid-state disk on PCI Express 3.0 x4.
    Nvme,
    /// A block device in memory (`brd`).
    Ramdisk,
    /// A compressed block device in memory.
    Zram,
    /// Persistent memory as a block device, one module.
    Pmem,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 6] =
        [Preset::Hdd, Preset::SataSsd, Preset::Nvme, Preset::Ramdisk, Preset::Zram, Preset::Pmem];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Hdd => "hdd",
            Preset::SataSsd => "sata-ssd",
            Preset::Nvme => "nvme",
            Preset::Ramdisk => "ramdisk",
            Preset::Zram => "zram",
            Preset::Pmem => "pmem",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|preset| preset.name()).collect();
            format!("no device preset is called {text:?}; there are {}", known.join(", "))
        })
    }
}

/// Speed of reads, or of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds from the start of a request to its first byte, without positioning. In different
    /// channels they pass at the same time.
    pub latency_ns: u64,
    /// Bytes a second of the link that all channels share.
    pub bytes_per_s: u64,
}

impl Rate {
    /// Nanoseconds that `bytes` occupy the link. Rounded up, so that no sum of transfers beats the
    /// rate.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bytes_per_s));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// The arm and the platters of a rotating disk.
///
/// A request that begins where the last one ended pays neither seek nor rotation: the disk reads
/// ahead into its cache and gathers writes there. Any other pays a seek that grows with the root of
/// the distance (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994) and half a
/// rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Mean seek between random places.
    pub average_ns: u64,
    /// Seek to the neighbouring track.
    pub track_to_track_ns: u64,
    /// Revolutions a minute.
    pub rpm: u32,
    /// Pages from the first to the last track. Data that fills a small part of the disk is found
    /// with short seeks.
    pub span_pages: u64,
}

impl Seek {
    /// Nanoseconds from the end of one request to a place elsewhere.
    pub fn positioning_ns(&self, from_page: u64, to_page: u64) -> u64 {
        self.distance_ns(from_page.abs_diff(to_page)).saturating_add(self.half_rotation_ns())
    }

    /// Nanoseconds of a seek and half a rotation if the place of the arm is unknown.
    pub fn random_ns(&self) -> u64 {
        self.average_ns.saturating_add(self.half_rotation_ns())
    }

    /// The wait for the sector to come round, on average.
    pub fn half_rotation_ns(&self) -> u64 {
        30_000_000_000 / u64::from(self.rpm)
    }

    /// The root of the distance has the mean 8/15 between two random places, hence 15/8 for the
    /// mean to be the average.
    fn distance_ns(&self, pages: u64) -> u64 {
        let pages = pages.min(self.span_pages);
        let root = ((u128::from(pages) << 32) / u128::from(self.span_pages)).isqrt();
        let sweep = u128::from(self.average_ns - self.track_to_track_ns) * 15 * root / (8 << 16);
        self.track_to_track_ns.saturating_add(u64::try_from(sweep).unwrap_or(u64::MAX))
    }
}

/// Cost to the CPU that asks where the CPU itself does the work: a codec, or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecCost {
    /// CPU time of a read request, whatever its size.
    pub read_ns: u64,
    /// CPU time of a write request, whatever its size.
    pub write_ns: u64,
    /// CPU time of each page that is read: decompressed, or copied.
    pub read_page_ns: u64,
    /// CPU time of each page that is written: compressed, or copied.
    pub write_page_ns: u64,
}

/// Faults of a device. Each request (each part of one that is split) draws its own lot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that fail, of a million. A failure takes as long as a success.
    pub read_error_per_million: u32,
    /// Writes that fail, of a million.
    pub write_error_per_million: u32,
    /// Requests with a longer latency, of a million.
    pub spike_per_million: u32,
    /// The latency on top, in nanoseconds.
    pub spike_ns: u64,
    /// Time from which on the device is stuck; none: never.
    pub stuck_at_ns: Option<u64>,
    /// Nanoseconds for which the device is stuck; `u64::MAX` is for ever.
    pub stuck_for_ns: u64,
}

impl Faults {
    /// Time at which work ends that begins at `start_ns` and takes `takes_ns`, not counting the
    /// time that the device is stuck.
    pub fn end_ns(&self, start_ns: u64, takes_ns: u64) -> u64 {
        let end = start_ns.saturating_add(takes_ns);
        let Some(stuck_at) = self.stuck_at_ns else { return end };
        let free_again = stuck_at.saturating_add(self.stuck_for_ns);
        if end <= stuck_at || start_ns >= free_again {
            return end;
        }
        // Work that was not done when it got stuck is done afterwards.
        let left = if start_ns < stuck_at { end - stuck_at } else { takes_ns };
        free_again.saturating_add(left)
    }
}

/// A block device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    /// Name in the scenario.
    pub name: String,
    /// Where the figures came from.
    pub preset: Preset,
    /// Requests in service at once.
    pub channels: u32,
    /// Requests under way, waiting ones included, from which on a thread that swaps out must wait
    /// (`nr_requests`).
    pub queue: u32,
    /// Reads.
    pub read: Rate,
    /// Writes.
    pub write: Rate,
    /// Only of rotating disks.
    pub seek: Option<Seek>,
    /// Larger requests are served in parts of this size.
    pub max_request_pages: u32,
    /// The CPU that asks does the work and waits: no queue.
    pub synchronous: Option<CodecCost>,
    /// A stored page takes 1/ratio of a page of memory, where the device is in memory.
    pub compression_ratio: f64,
    /// Most pages of memory that the device takes, if it is compressed memory; none: no limit.
    pub mem_limit_pages: Option<u64>,
    /// Faults that it has.
    pub faults: Faults,
}

impl DeviceModel {
    /// Bytes of the machine's memory that `stored_pages` take: 0 unless the device is in memory.
    pub fn memory_bytes(&self, stored_pages: u64) -> u64 {
        match self.preset {
            Preset::Zram | Preset::Ramdisk => (stored_pages as f64 * PAGE_BYTES as f64 / self.compression_ratio) as u64,
            Preset::Hdd | Preset::SataSsd | Preset::Nvme | Preset::Pmem => 0,
        }
    }

    /// Checks that such a device is possible. The error says why not, without the device's name.
    pub fn check(&self) -> Result<(), String> {
        let fail = |what: &str| Err(what.to_owned());
        if self.name.is_empty() {
            return Err("a device without a name".into());
        }
        if self.channels == 0 {
            return fail("channels must be at least 1");
        }
        if self.queue == 0 {
            return fail("queue must be at least 1");
        }
        if self.read.bytes_per_s == 0 || self.write.bytes_per_s == 0 {
            return fail("bytes per second must be at least 1");
        }
        if self.max_request_pages == 0 {
            return fail("a request has at least 1 page");
        }
        if !(self.compression_ratio.is_finite() && self.compression_ratio >= 1.0) {
            return fail("the compression ratio must be 1 or more");
        }
        if let Err(what) = self.check_seek().and_then(|()| self.check_faults()) {
            return fail(what);
        }
        Ok(())
    }

    fn check_seek(&self) -> Result<(), &'static str> {
        let Some(seek) = &self.seek else { return Ok(()) };
        if self.channels != 1 {
            return Err("a disk that seeks has one arm, hence 1 channel");
        }
        if self.synchronous.is_some() {
            return Err("a disk that seeks is not synchronous");
        }
        if seek.rpm == 0 || seek.span_pages == 0 {
            return Err("a disk that seeks turns, and has at least 1 page");
        }
        if seek.average_ns < seek.track_to_track_ns {
            return Err("the average seek is shorter than the one to the next track");
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), &'static str> {
        let faults = &self.faults;
        let rates = [faults.read_error_per_million, faults.write_error_per_million, faults.spike_per_million];
        if rates.iter().any(|&rate| rate > 1_000_000) {
            return Err("more than a million of a million requests");
        }
        if self.synchronous.is_some() && faults.stuck_at_ns.is_some() {
            return Err(
                "a synchronous device is the CPU's own work and cannot get stuck; leave stuck_at and stuck_for out",
            );
        }
        Ok(())
    }
}
