//! Byte ranges into pages.

use crate::record::MAX_PAGES_PER_RECORD;

/// The pages that a range of bytes touches: first page and count. A range of no bytes touches one
/// page.
pub(crate) fn of_bytes(start: u64, bytes: u64, page_size: u32) -> Result<(u64, u32), String> {
    let size = u64::from(page_size);
    let last = start
        .checked_add(bytes.saturating_sub(1))
        .ok_or_else(|| format!("address {start} plus {bytes} bytes is beyond 64 bits"))?;
    let first = start / size;
    count(last / size - first).map(|pages| (first, pages))
}

/// Pages that `bytes` touch from `address` on, which counts units of `unit` bytes.
pub(crate) fn of_units(address: u64, unit: u32, bytes: u64, page_size: u32) -> Result<(u64, u32), String> {
    match address.checked_mul(u64::from(unit)) {
        Some(start) => of_bytes(start, bytes, page_size),
        None => Err(format!("address {address} times {unit} is beyond 64 bits")),
    }
}

/// The pages that a range of blocks touches.
pub(crate) fn of_blocks(
    start: u64,
    blocks: u64,
    block_bytes: Option<u32>,
    page_size: u32,
) -> Result<(u64, u32), String> {
    let Some(block) = block_bytes else {
        if start.checked_add(blocks).is_none() {
            return Err(format!("block {start} plus {blocks} is beyond 64 bits"));
        }
        return count(blocks.saturating_sub(1)).map(|pages| (start, pages));
    };
    let block = u64::from(block);
    match (start.checked_mul(block), blocks.checked_mul(block)) {
        (Some(start), Some(bytes)) => of_bytes(start, bytes, page_size),
        _ => Err(format!("{blocks} blocks of {block} bytes at block {start} are beyond 64 bits")),
    }
}

/// Number of pages: one more than `beyond_first`, if a record may have that many.
fn count(beyond_first: u64) -> Result<u32, String> {
    match u32::try_from(beyond_first) {
        Ok(n) if n < MAX_PAGES_PER_RECORD => Ok(n + 1),
        _ => Err(format!(
            "one access to {} pages is more than the {MAX_PAGES_PER_RECORD} that are believable",
            u128::from(beyond_first) + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_fold_into_pages() {
        assert_eq!(of_bytes(4095, 2, 4096), Ok((0, 2)));
        assert_eq!(of_bytes(4096, 4096, 4096), Ok((1, 1)));
        assert_eq!(of_bytes(8192, 0, 4096), Ok((2, 1)));
        assert_eq!(of_blocks(7, 2, Some(512), 4096), Ok((0, 2)));
        assert_eq!(of_blocks(7, 2, None, 4096), Ok((7, 2)));
        assert!(of_bytes(u64::MAX, 2, 4096).is_err());
        assert!(of_bytes(0, u64::MAX, 4096).is_err());
        assert!(of_blocks(u64::MAX, 1, Some(512), 4096).is_err());
        assert!(of_blocks(0, u64::from(MAX_PAGES_PER_RECORD) + 1, None, 4096).is_err());
    }
}
