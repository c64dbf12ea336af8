//! Settings of transparent huge pages.

use super::words::words;
use super::{Setting, setting};
use crate::config::thp::{ThpConfig, ThpDefrag, ThpMode, ThpSize};

words!(ThpMode { "always" = Always, "madvise" = Madvise, "never" = Never });
words!(ThpSize { "always" = Always, "inherit" = Inherit, "madvise" = Madvise, "never" = Never });
words!(ThpDefrag {
    "always" = Always,
    "defer" = Defer,
    "defer+madvise" = DeferMadvise,
    "madvise" = Madvise,
    "never" = Never,
});

/// The order of the first of [`SIZES`].
const MIN_ORDER: usize = ThpConfig::MIN_ORDER as usize;

/// The setting of a size, by its order.
macro_rules! size {
    ($name:literal, $order:literal) => {
        setting!(
            ThpConfig;
            $name,
            sizes[$order],
            "mappings that get folios of this size: `madvise` is those so advised, `inherit` those of `enabled`"
        )
        .at("Large folios")
    };
}

/// Files of `/sys/kernel/mm/transparent_hugepage`, keys of `[machine.thp]` in scenarios and of
/// `--thp`: sizes from the smallest, then what is of all.
pub const THP: &[Setting<ThpConfig>] = &[
    size!("16K", 2).in_kernels("since 6.8"),
    size!("32K", 3).in_kernels("since 6.8"),
    size!("64K", 4).in_kernels("since 6.8"),
    size!("128K", 5).in_kernels("since 6.8"),
    size!("256K", 6).in_kernels("since 6.8"),
    size!("512K", 7).in_kernels("since 6.8"),
    size!("1M", 8).in_kernels("since 6.8"),
    size!("2M", 9),
    setting!(ThpConfig; "enabled", enabled, "mappings of sizes that inherit").at("Large folios"),
    setting!(
        ThpConfig;
        "defrag",
        defrag,
        "mappings in which a fault reclaims to make a large folio; `defer` wakes kswapd instead, `defer+madvise` where nothing is advised"
    )
    .at("Large folios"),
    setting!(ThpConfig; "swap_in", swap_in, "pages that were swapped out may come back as large folios")
        .at("Large folios")
        .in_kernels("since 6.12"),
];

impl ThpConfig {
    /// The setting of an order.
    pub(crate) fn size_setting(order: u8) -> Option<&'static Setting<ThpConfig>> {
        THP.get(usize::from(order).checked_sub(MIN_ORDER)?)
    }
}
