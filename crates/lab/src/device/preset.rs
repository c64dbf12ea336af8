//! The figures of the presets, and where they are from.
//!
//! Channels are requests in service at once, which is less than the requests that the device's
//! queue holds: they are chosen so that the random reads of a full queue come out as the data sheet
//! says, `channels / (latency + transfer)`.

use super::spec::{CodecCost, DeviceModel, Faults, Preset, Rate, Seek};

/// 1280 KiB: the most that Linux's block layer sends in one request by default (`max_sectors_kb`),
/// where the device allows.
const MAX_REQUEST_PAGES: u32 = 320;

/// `nr_requests` of a SATA device with the scheduler mq-deadline: twice the 32 commands that it
/// queues itself.
const SATA_QUEUE: u32 = 64;

/// `nr_requests` of an NVMe device without a scheduler: the entries of a hardware queue.
const NVME_QUEUE: u32 = 1023;

impl DeviceModel {
    /// A device with the figures of a preset and no faults.
    pub fn preset(name: &str, preset: Preset) -> DeviceModel {
        match preset {
            Preset::Hdd => hdd(name),
            Preset::SataSsd => sata_ssd(name),
            Preset::Nvme => nvme(name),
            Preset::Ramdisk => synchronous(name, preset, RAMDISK, 1.0),
            Preset::Zram => synchronous(name, preset, ZRAM, 2.2),
            Preset::Pmem => synchronous(name, preset, PMEM, 1.0),
        }
    }
}

/// A desktop disk of 1 TB and 7200 rpm. Hitachi's specification of the Deskstar 7K1000.C: average
/// seek 8.5 ms for reads (9.5 ms for writes; one figure is used for both). Hitachi's specification
/// of the 5K320: 1.0 ms to the next track. Seagate's figure for the Barracudas of 1 TB a platter
/// (2011): 156 MB/s. The command overhead of 50 us is an estimate.
fn hdd(name: &str) -> DeviceModel {
    let rate = Rate { latency_ns: 50_000, bytes_per_s: 156_000_000 };
    DeviceModel {
        seek: Some(Seek {
            average_ns: 8_500_000,
            track_to_track_ns: 1_000_000,
            rpm: 7200,
            span_pages: 1_000_000_000_000 / 4096,
        }),
        ..queued(name, Preset::Hdd, 1, rate, rate)
    }
}

/// Samsung 860 EVO, data sheet: 550 and 520 MB/s; 4 KiB at random, one at a time, 10 000 and 42 000
/// a second, that is 100 and 24 us with the transfer of 7.4 and 7.9 us; 32 at a time 98 000 reads a
/// second, that is 10 channels, and 90 000 writes (the model has up to 127 000, the rate of the
/// link).
fn sata_ssd(name: &str) -> DeviceModel {
    let read = Rate { latency_ns: 92_000, bytes_per_s: 550_000_000 };
    let write = Rate { latency_ns: 16_000, bytes_per_s: 520_000_000 };
    queued(name, Preset::SataSsd, 10, read, write)
}

/// Samsung 970 EVO Plus of 1 TB, data sheet: 3500 and 3300 MB/s; 4 KiB at random, one at a time, 19
/// 000 and 60 000 a second, that is 52.6 and 16.7 us with the transfer of 1.2 us; 32 at a time 600
/// 000 reads a second, that is 32 channels, and 550 000 writes (the model has up to 806 000, the
/// rate of the link; the cache of the drive never fills).
fn nvme(name: &str) -> DeviceModel {
    let read = Rate { latency_ns: 51_400, bytes_per_s: 3_500_000_000 };
    let write = Rate { latency_ns: 15_400, bytes_per_s: 3_300_000_000 };
    queued(name, Preset::Nvme, 32, read, write)
}

/// A copy of a page at about 10 GB/s, 0.4 us, and 1 us for the block layer: both estimates.
const RAMDISK: CodecCost = CodecCost { read_ns: 1_000, write_ns: 1_000, read_page_ns: 400, write_page_ns: 400 };

/// lz4 on pages of 4 KiB that shrink to 1/2.2, measured on a virtual machine with Linux 6.18: 4.3
/// us to compress a page, 1.6 us to decompress it. 1 us for the block layer and the allocator is an
/// estimate.
const ZRAM: CodecCost = CodecCost { read_ns: 1_000, write_ns: 1_000, read_page_ns: 1_600, write_page_ns: 4_300 };

/// Izraelevitz and others, "Basic Performance Measurements of the Intel Optane DC Persistent Memory
/// Module", arXiv:1903.05714: 305 ns for a random load; one module reads 6.6 GB/s and writes 2.3
/// GB/s, that is 0.62 and 1.78 us a page. 1 us for the block layer is an estimate.
const PMEM: CodecCost = CodecCost { read_ns: 1_305, write_ns: 1_305, read_page_ns: 620, write_page_ns: 1_780 };

fn queued(name: &str, preset: Preset, channels: u32, read: Rate, write: Rate) -> DeviceModel {
    DeviceModel {
        name: name.to_string(),
        preset,
        channels,
        queue: match preset {
            Preset::Nvme => NVME_QUEUE,
            _ => SATA_QUEUE,
        },
        read,
        write,
        seek: None,
        max_request_pages: MAX_REQUEST_PAGES,
        synchronous: None,
        compression_ratio: 1.0,
        mem_limit_pages: None,
        faults: Faults::default(),
    }
}

/// The rates say the same as the codec, for who asks how fast the device is or uses it through the
/// queue.
fn synchronous(name: &str, preset: Preset, codec: CodecCost, compression_ratio: f64) -> DeviceModel {
    let rate = |latency_ns, page_ns: u64| Rate { latency_ns, bytes_per_s: 4096 * 1_000_000_000 / page_ns };
    let read = rate(codec.read_ns, codec.read_page_ns);
    let write = rate(codec.write_ns, codec.write_page_ns);
    DeviceModel { synchronous: Some(codec), compression_ratio, ..queued(name, preset, 1, read, write) }
}
