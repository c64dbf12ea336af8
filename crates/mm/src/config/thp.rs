//! Sizes of anonymous folios that a fault may make: the settings of
//! `/sys/kernel/mm/transparent_hugepage`, and the advice of programs.

use crate::config::settings::{THP, Values};
use crate::ids::MAX_ORDER;

/// `transparent_hugepage/enabled`: the mappings that may have large folios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpMode {
    /// For every mapping.
    Always,
    /// For mappings advised [`HugeAdvice::Huge`].
    Madvise,
    /// For none.
    Never,
}

/// `transparent_hugepage/defrag`: response of a fault that finds no room for a large folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpDefrag {
    /// The fault reclaims.
    Always,
    /// The fault wakes kswapd, so that there is room next time.
    Defer,
    /// The fault reclaims in mappings advised [`HugeAdvice::Huge`], and wakes kswapd in others.
    DeferMadvise,
    /// The fault reclaims in mappings advised [`HugeAdvice::Huge`], and does nothing in others.
    Madvise,
    /// The fault does nothing.
    Never,
}

impl ThpDefrag {
    /// All responses.
    pub const ALL: [ThpDefrag; 5] =
        [ThpDefrag::Always, ThpDefrag::Defer, ThpDefrag::DeferMadvise, ThpDefrag::Madvise, ThpDefrag::Never];
}

/// `hugepages-<size>kB/enabled`: the mappings that may have folios of a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpSize {
    /// For every mapping.
    Always,
    /// As the setting for all sizes says.
    Inherit,
    /// For mappings advised [`HugeAdvice::Huge`].
    Madvise,
    /// For none.
    Never,
}

/// Advice of a program on large folios in a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HugeAdvice {
    /// No advice.
    #[default]
    None,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
}

/// Sizes of anonymous folios. Files have single pages.
#[derive(Clone, Debug, PartialEq)]
pub struct ThpConfig {
    /// `transparent_hugepage/enabled`, for the sizes that are set to `inherit`.
    pub enabled: ThpMode,
    /// `hugepages-<size>kB/enabled`, by order. There is no setting for orders 0 and 1: a single
    /// page is always possible, two are not.
    pub sizes: [ThpSize; MAX_ORDER as usize + 1],
    /// `transparent_hugepage/defrag`: the mappings in which a fault reclaims to make a large folio.
    /// Faults in other mappings make a smaller folio if there is no room.
    pub defrag: ThpDefrag,
    /// A fault on a page in swap may bring in a large folio at once, of the sizes that a first
    /// touch could make (since Linux 6.12).
    pub swap_in: bool,
}

impl Default for ThpConfig {
    /// As Linux 6.12 booted with `transparent_hugepage=never`: single pages only.
    fn default() -> ThpConfig {
        let mut sizes = [ThpSize::Never; MAX_ORDER as usize + 1];
        sizes[usize::from(MAX_ORDER)] = ThpSize::Inherit;
        ThpConfig { enabled: ThpMode::Never, sizes, defrag: ThpDefrag::Madvise, swap_in: true }
    }
}

impl ThpConfig {
    /// The smallest order of a large anonymous folio.
    pub const MIN_ORDER: u8 = 2;
    /// The largest order of a large anonymous folio.
    pub const MAX_ORDER: u8 = MAX_ORDER;

    /// Orders above 0 that faults may make in a mapping with this advice, one bit each.
    pub fn orders(&self, advice: HugeAdvice) -> u16 {
        let all = self.enabled == ThpMode::Always;
        let advised = advice == HugeAdvice::Huge;
        let is_allowed = |&order: &u8| match self.sizes[usize::from(order)] {
            ThpSize::Always => true,
            ThpSize::Madvise => advised,
            ThpSize::Inherit => all || (advised && self.enabled == ThpMode::Madvise),
            ThpSize::Never => false,
        };
        if advice == HugeAdvice::NoHuge {
            return 0;
        }
        (Self::MIN_ORDER..=MAX_ORDER).filter(is_allowed).map(|order| 1 << order).sum()
    }

    /// Whether some fault may bring a large folio in from swap, whatever a program advises.
    pub(crate) fn swaps_in_large(&self) -> bool {
        self.swap_in && self.orders(HugeAdvice::Huge) != 0
    }

    /// Whether a fault in a mapping with this advice reclaims to make room for a large folio.
    pub fn may_reclaim(&self, advice: HugeAdvice) -> bool {
        match self.defrag {
            ThpDefrag::Always => true,
            ThpDefrag::Madvise | ThpDefrag::DeferMadvise => advice == HugeAdvice::Huge,
            ThpDefrag::Defer | ThpDefrag::Never => false,
        }
    }

    /// Whether a fault in a mapping with this advice wakes kswapd if there is no room for a large
    /// folio.
    pub fn wakes_kswapd(&self, advice: HugeAdvice) -> bool {
        self.defrag == ThpDefrag::Defer || (self.defrag == ThpDefrag::DeferMadvise && advice != HugeAdvice::Huge)
    }

    /// Changes one of [`THP`]: `64k=always` (`64K` and `64kB` mean the same), `defrag=madvise`,
    /// `swap-in=on`.
    ///
    /// # Errors
    /// There is no such setting, or it has no such value; the text says what is known.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| format!("{text:?} is no setting; write SIZE=WHEN, as 64k=always"))?;
        let name = key.replace('-', "_");
        let named = THP.iter().find(|setting| setting.name == name);
        let setting = named.map_or_else(|| ThpConfig::size_setting(parse_order(key)?).ok_or_else(String::new), Ok)?;
        let value = match (setting.values, value) {
            (Values::Flag, "on") => "true",
            (Values::Flag, "off") => "false",
            _ => value,
        };
        setting.set(self, setting.parse(value)?);
        Ok(())
    }

    /// Whether huge pages of 2 MiB can be made anywhere, so that khugepaged runs.
    pub fn runs_khugepaged(&self) -> bool {
        match self.sizes[usize::from(MAX_ORDER)] {
            ThpSize::Always | ThpSize::Madvise => true,
            ThpSize::Inherit => self.enabled != ThpMode::Never,
            ThpSize::Never => false,
        }
    }

    /// Fails if no fault makes a large folio, whatever a program advises: then nothing else acts.
    ///
    /// # Errors
    /// A line that says what is missing.
    pub fn check_acts(&self) -> Result<(), String> {
        match self.orders(HugeAdvice::Huge) {
            0 => Err("does nothing, for no size is on; add one, such as 64k=always, or enabled=always for 2m".into()),
            _ => Ok(()),
        }
    }

    /// Names the first setting that is impossible, if any.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.sizes[..usize::from(Self::MIN_ORDER)].iter().all(|&s| s == ThpSize::Never) {
            true => Ok(()),
            false => Err("anonymous folios of order 0 or 1 cannot be set".into()),
        }
    }
}

/// The order of a size as `64k`, `64kB`, `2m` or `2M`.
fn parse_order(size: &str) -> Result<u8, String> {
    let lower = size.to_ascii_lowercase();
    let bare = lower.strip_suffix('b').unwrap_or(&lower);
    let kib = match (bare.strip_suffix('k'), bare.strip_suffix('m')) {
        (Some(k), _) => k.parse::<u64>().ok(),
        (_, Some(m)) => m.parse::<u64>().ok().and_then(|m| m.checked_mul(1024)),
        _ => None,
    };
    let known = |&order: &u8| kib == Some(4 << order);
    (ThpConfig::MIN_ORDER..=MAX_ORDER).find(known).ok_or_else(|| {
        let names: Vec<_> = (ThpConfig::MIN_ORDER..=MAX_ORDER).map(|order| format!("{}k", 4u32 << order)).collect();
        format!("unknown size {size:?}; known are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[&str]) -> ThpConfig {
        let mut c = ThpConfig::default();
        settings.iter().for_each(|s| c.set(s).unwrap());
        c
    }

    #[test]
    fn sizes_follow_their_setting_the_common_one_and_the_advice() {
        use HugeAdvice::{Huge, NoHuge, None};
        let orders = |settings: &[&str], advice| config(settings).orders(advice);
        assert_eq!(orders(&[], Huge), 0, "off by default");
        assert_eq!(orders(&["enabled=always"], None), 1 << 9, "the largest one inherits");
        assert_eq!(orders(&["enabled=madvise"], None), 0);
        assert_eq!(orders(&["enabled=madvise"], Huge), 1 << 9);
        assert_eq!(orders(&["64k=always", "32k=madvise"], None), 1 << 4);
        assert_eq!(orders(&["64k=always", "32k=madvise"], Huge), 1 << 4 | 1 << 3, "whatever the common one says");
        assert_eq!(orders(&["64kB=inherit", "2M=never", "enabled=always"], None), 1 << 4);
        assert_eq!(orders(&["64k=always", "enabled=always"], NoHuge), 0);
    }

    #[test]
    fn bad_settings_are_named() {
        let bad = |s: &str| ThpConfig::default().set(s).unwrap_err();
        assert!(bad("64k").contains("SIZE=WHEN"));
        assert!(bad("8k=always").contains("known are 16k, 32k, 64k"), "two pages are no size");
        assert!(bad("64k=often").contains("always|inherit|madvise|never"));
        assert!(bad("enabled=inherit").contains("always|madvise|never"));
        assert!(bad("18446744073709551615m=always").contains("unknown size"));
    }
}
