//! Settings for which a scenario has a machine, and a trace has none.

use super::acts::ActsOn;
use super::{Setting, Values, setting, words};
use crate::config::recency::AccessAdvice;

impl words::WordEnum for AccessAdvice {
    const WORDS: &'static [&'static str] = &{
        let mut words = [""; AccessAdvice::ALL.len()];
        let mut n = 0;
        while n < words.len() {
            words[n] = AccessAdvice::ALL[n].0;
            n += 1;
        }
        words
    };
    const ALL: &'static [AccessAdvice] =
        &[AccessAdvice::Normal, AccessAdvice::Random, AccessAdvice::Sequential, AccessAdvice::NoReuse];
}

pub(super) const SETTINGS: &[Setting] = &[
    setting!("advice", lru.file_advice, "advice of programs on how they access their files").at("Advice").of_traces(),
    setting!("one_list", lru.one_list, "never activate: FIFO by descriptor, second chance by mapping")
        .acts(ActsOn::TWO_LISTS)
        .at("Two lists")
        .of_traces(),
    setting!(
        "vfs_cache_pressure",
        vfs_cache_pressure,
        "names and inodes of files that reclaim counts of those there are; 0 keeps them all"
    )
    .at("Files of one page, and inodes")
    .takes(Values::Range(0, 10_000), "percent")
    .of_traces(),
    setting!("reserved_pages", memcg.reserved_pages, "pages charged for what the trace does not show")
        .at("Charging")
        .takes(Values::NUMBER, "pages")
        .of_traces(),
    setting!("swap_synchronous", swap.synchronous, "swap answers at once, as zram does")
        .at("The swap cache")
        .of_traces(),
    setting!("swap_pages", swap.pages, "size of the swap device")
        .at("Swap devices")
        .takes(Values::Range(0, (1 << 30) - 1), "pages")
        .of_traces(),
    setting!("dirty_background_ratio", dirty.background_ratio, "dirty share from which on the flusher writes")
        .at("Dirty pages and the flusher")
        .takes(Values::Range(0, 100), "percent")
        .of_traces(),
    setting!("total_pages", total_pages, "pages of the machine, for the bucket order of shadows")
        .at("Shadow entries")
        .takes(Values::NUMBER, "pages")
        .of_traces(),
    setting!("nodes_shift", shadow.nodes_shift, "bits of the node number in a shadow")
        .acts(ActsOn::POSITION)
        .at("Shadow entries")
        .takes(Values::Range(0, 10), "bits")
        .of_traces(),
    setting!("eviction_bits_max", shadow.eviction_bits_max, "bits of the eviction counter in a shadow, at most")
        .acts(ActsOn::POSITION)
        .at("Shadow entries")
        .takes(Values::Range(8, 64), "bits")
        .of_traces(),
];
