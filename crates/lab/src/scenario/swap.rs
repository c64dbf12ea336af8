//! Swap: `[swap]`, or `[[swap]]` for several devices.

use super::SwapSpec;
use super::read::{Field, Result, Section};
use super::types::DeviceSpec;
use refault_mm::{MAX_SWAP_DEVICE_PAGES, MAX_SWAP_DEVICES};

const KEYS: [&str; 8] = ["device", "size", "enabled", "priority", "discard", "rotational", "file", "bad_pages"];
/// Bad pages of a device.
const MAX_BAD_PAGES: usize = 4096;

/// All swap devices, in the order in which they are activated.
pub(super) fn devices(field: &Field<'_>, devices: &[DeviceSpec]) -> Result<Vec<SwapSpec>> {
    let mut all: Vec<SwapSpec> = Vec::new();
    for s in &field.one_or_more(&KEYS, MAX_SWAP_DEVICES)? {
        let spec = device(s, devices)?;
        if all.iter().any(|other| other.device == spec.device) {
            return Err(s.need("device", "device = \"zram0\"")?.bad("is the device of two swap devices"));
        }
        all.push(spec);
    }
    Ok(all)
}

fn device(s: &Section<'_>, devices: &[DeviceSpec]) -> Result<SwapSpec> {
    let device = s.need("device", "device = \"zram0\"")?.index("a device", devices.iter().map(|d| d.name.as_str()))?;
    let pages = s.need("size", "size = \"16G\"")?.pages(2..=MAX_SWAP_DEVICE_PAGES)?;
    let page = |f: &Field<'_>| f.int(1..=pages - 1);
    let bad = s.opt("bad_pages", |f| f.list(MAX_BAD_PAGES)?.iter().map(page).collect::<Result<Vec<u64>>>())?;
    Ok(SwapSpec {
        device,
        pages,
        priority: s.opt("priority", |f| f.int(0..=i16::MAX))?,
        discard: s.or("discard", false, Field::boolean)?,
        // A disk has a head to move.
        rotational: s.or("rotational", devices[device].preset == "hdd", Field::boolean)?,
        enabled: s.or("enabled", true, Field::boolean)?,
        file: s.or("file", false, Field::boolean)?,
        bad_pages: bad.unwrap_or_default(),
    })
}
