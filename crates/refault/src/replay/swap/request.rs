//! A swap device as users ask for it: `zram:2G`.

use crate::memory_size::Size as MemorySize;
use std::fmt;
use std::str::FromStr;

/// Most pages of a device: 1 TiB.
const MOST_PAGES: u64 = refault_mm::MAX_SWAP_DEVICE_PAGES - 1;

/// A kind of swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapKind {
    /// None at all.
    None,
    /// Compressed memory.
    Zram,
    /// A solid-state disk.
    Disk,
    /// Compressed pages in front of a disk.
    Zswap,
}

impl SwapKind {
    /// All of them.
    pub const ALL: [SwapKind; 4] = [SwapKind::None, SwapKind::Zram, SwapKind::Disk, SwapKind::Zswap];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            SwapKind::None => "none",
            SwapKind::Zram => "zram",
            SwapKind::Disk => "disk",
            SwapKind::Zswap => "zswap",
        }
    }

    /// Whether pages are compressed.
    pub fn compresses(self) -> bool {
        matches!(self, SwapKind::Zram | SwapKind::Zswap)
    }
}

impl FromStr for SwapKind {
    type Err = String;

    fn from_str(text: &str) -> Result<SwapKind, String> {
        let known = || SwapKind::ALL.map(SwapKind::name).join(", ");
        SwapKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("{text:?} is no kind of swap; write {}", known()))
    }
}

/// A swap device of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySwap {
    /// The kind.
    pub kind: SwapKind,
    /// Its size; none: as large as there can be.
    pub size: Option<MemorySize>,
}

impl ReplaySwap {
    /// The size in pages of 4096 bytes.
    pub fn pages(&self) -> u64 {
        self.size.as_ref().map_or(MOST_PAGES, |size| size.pages(4096, 0))
    }
}

impl From<SwapKind> for ReplaySwap {
    fn from(kind: SwapKind) -> ReplaySwap {
        ReplaySwap { kind, size: None }
    }
}

impl fmt::Display for ReplaySwap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.size.as_ref().map_or(Ok(()), |size| write!(f, ":{size}"))
    }
}

impl FromStr for ReplaySwap {
    type Err = String;

    fn from_str(text: &str) -> Result<ReplaySwap, String> {
        let Some((kind, size)) = text.split_once(':') else { return Ok(text.parse::<SwapKind>()?.into()) };
        let swap = ReplaySwap { kind: kind.parse()?, size: Some(MemorySize::absolute(size)?) };
        match swap.pages() {
            _ if swap.kind == SwapKind::None => Err(format!("{text:?}: none has no size; write none")),
            1..=MOST_PAGES => Ok(swap),
            _ => Err(format!("{text:?}: a swap device has 4K to 1T; write {}:2G", swap.kind.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_a_kind_and_may_have_a_size() {
        let of = |text: &str| text.parse::<ReplaySwap>();
        assert_eq!(of("zram:2G").map(|swap| (swap.kind, swap.pages())), Ok((SwapKind::Zram, 1 << 19)));
        assert_eq!(of("disk").map(|swap| swap.pages()), Ok(MOST_PAGES));
        for (text, want) in [
            ("disc", "none, zram, disk, zswap"),
            ("none:1G", "none has no size"),
            ("zram:0", "4K to 1T"),
            ("zswap:max", "is not a size"),
            ("zram:2X", "is not a size"),
        ] {
            assert!(of(text).is_err_and(|e| e.contains(want)), "{text}: {:?}", of(text));
        }
        assert_eq!(of("zram:512M").map(|swap| swap.to_string()), Ok("zram:512M".to_owned()));
    }
}
