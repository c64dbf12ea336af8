//! Devices of a scenario: a preset with what the scenario says differs.

use super::types;
use crate::device::DeviceModel;

/// A preset with what the scenario says differs, possible or not.
pub(crate) fn preset_with_overrides(s: &types::DeviceSpec) -> Result<DeviceModel, String> {
    fn set<T: Copy>(place: &mut T, value: Option<T>) {
        *place = value.unwrap_or(*place);
    }
    let mut d = DeviceModel::preset(&s.name, s.preset.parse()?);
    let o = &s.overrides;
    set(&mut d.channels, o.channels);
    set(&mut d.queue, o.queue);
    set(&mut d.read.latency_ns, o.read_latency_ns);
    set(&mut d.read.bytes_per_s, o.read_bytes_per_s);
    set(&mut d.write.latency_ns, o.write_latency_ns);
    set(&mut d.write.bytes_per_s, o.write_bytes_per_s);
    if let Some(seek) = &mut d.seek {
        set(&mut seek.average_ns, o.seek_average_ns);
        set(&mut seek.track_to_track_ns, o.seek_track_ns);
        set(&mut seek.rpm, o.rpm);
    }
    set(&mut d.max_request_pages, o.max_request_pages);
    set(&mut d.compression_ratio, o.compression_ratio);
    d.mem_limit_pages = o.mem_limit_pages.or(d.mem_limit_pages);
    if let Some(codec) = &mut d.synchronous {
        // A page at that bandwidth.
        let page_ns = |bytes_per_s: Option<u64>| bytes_per_s.map(|b| 4096 * 1_000_000_000 / b.max(1));
        set(&mut codec.read_ns, o.read_latency_ns);
        set(&mut codec.write_ns, o.write_latency_ns);
        set(&mut codec.read_page_ns, page_ns(o.read_bytes_per_s));
        set(&mut codec.write_page_ns, page_ns(o.write_bytes_per_s));
        set(&mut codec.write_page_ns, o.compress_ns);
        set(&mut codec.read_page_ns, o.decompress_ns);
    }
    set(&mut d.faults.read_error_per_million, o.read_error_per_million);
    set(&mut d.faults.write_error_per_million, o.write_error_per_million);
    set(&mut d.faults.spike_per_million, o.spike_per_million);
    set(&mut d.faults.spike_ns, o.spike_ns);
    set(&mut d.faults.stuck_for_ns, o.stuck_for_ns);
    d.faults.stuck_at_ns = o.stuck_at_ns.or(d.faults.stuck_at_ns);
    Ok(d)
}
