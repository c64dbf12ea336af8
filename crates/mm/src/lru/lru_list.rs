//! The lists of an lruvec by number (`enum lru_list`), and the balance of inactive and active ones.

/// Index of anon in `[anon, file]`.
pub(crate) const ANON: usize = 0;
/// Index of file in `[anon, file]`.
pub(crate) const FILE: usize = 1;

/// The LRU lists, in the order in which reclaim visits them.
pub(crate) const INACTIVE_ANON: usize = 0;
pub(crate) const ACTIVE_ANON: usize = 1;
pub(crate) const INACTIVE_FILE: usize = 2;
pub(crate) const ACTIVE_FILE: usize = 3;
pub(crate) const UNEVICTABLE: usize = 4;
/// Names of the lists in `memory.stat`.
pub(crate) const LIST_NAMES: [&str; 5] =
    ["inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"];

/// The list of a type.
#[inline(always)]
pub(crate) fn list_index(type_index: usize, active: bool) -> usize {
    type_index * 2 + usize::from(active)
}

/// Whether the inactive list is low: inactive·ratio < active. The ratio is isqrt(10·GiB of the
/// type), and 1 below a GiB. `size` may be of a whole tree. `gib_pages`: pages of a GiB; none: the
/// ratio is 1.
#[inline]
pub(crate) fn is_low(size: &[u64; 5], type_index: usize, gib_pages: Option<u64>) -> bool {
    let inactive = size[list_index(type_index, false)];
    let active = size[list_index(type_index, true)];
    let gib = gib_pages.map_or(0, |pages| (inactive + active) / pages);
    let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
    inactive * ratio < active
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_of_inactive_to_active_grows_with_the_root_of_size() {
        let mut size = [0; 5];
        // Checkpoints: 1 GiB → 3, 10 GiB → 10, 100 GiB → 31, 1 TiB → 101.
        for (gib, ratio) in [(1u64, 3u64), (10, 10), (100, 31), (1024, 101)] {
            let total = gib << 18;
            let inactive = total / (ratio + 1);
            size[INACTIVE_FILE] = inactive + 1;
            size[ACTIVE_FILE] = total - inactive - 1;
            assert!(!is_low(&size, FILE, Some(1 << 18)), "{gib} GiB");
            size[INACTIVE_FILE] = inactive - 1;
            size[ACTIVE_FILE] = total - inactive + 1;
            assert!(is_low(&size, FILE, Some(1 << 18)), "{gib} GiB");
            assert!(is_low(&size, FILE, None));
        }
        // The same on a machine that is smaller by a factor of 1024.
        (size[INACTIVE_FILE], size[ACTIVE_FILE]) = (25_600 / 32 + 1, 25_600 - 25_600 / 32 - 1);
        assert!(!is_low(&size, FILE, Some(1 << 8)) && is_low(&size, FILE, Some(1 << 18)));
        (size[INACTIVE_FILE], size[ACTIVE_FILE]) = (100, 100);
        assert!(!is_low(&size, FILE, Some(1 << 18)), "below a GiB the ratio is 1");
    }
}
