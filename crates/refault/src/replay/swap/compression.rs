//! Compression of pages: what they shrink to, and the CPU time of it.

use crate::memory_size::Size as MemorySize;
use crate::words::duration;
use refault_lab::cost::Costs;
use refault_lab::scenario::ContentSpec;
use std::fmt;
use std::str::FromStr;

/// Longest time of a page, in nanoseconds.
const LONGEST_NS: f64 = 1e9;

/// Compression of anonymous pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Content of the pages: shares, and the ratio of the others.
    pub content: ContentSpec,
    /// CPU time to compress a page, in nanoseconds.
    pub compress_ns: u64,
    /// CPU time to decompress a page, in nanoseconds.
    pub decompress_ns: u64,
    /// The most memory of the pool; none: of zram no limit, of zswap a fifth of the machine.
    pub pool: Option<MemorySize>,
}

impl Default for Compression {
    /// lz4, as it was measured.
    fn default() -> Compression {
        let costs = Costs::default();
        Compression {
            content: ContentSpec { zero: 0.0, same: 0.0, incompressible: 0.0, ratio: ContentSpec::RATIO },
            compress_ns: costs.compress_page_ns,
            decompress_ns: costs.decompress_page_ns,
            pool: None,
        }
    }
}

impl fmt::Display for Compression {
    /// In words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ContentSpec { zero, same, incompressible, ratio } = self.content;
        write!(f, "pages shrink to 1/{ratio}")?;
        for (share, what) in [(zero, "zeros"), (same, "one word"), (incompressible, "not at all")] {
            if share > 0.0 {
                write!(f, ", {:.0} % {what}", 100.0 * share)?;
            }
        }
        write!(f, "; {} to compress one, {} to read it", duration(self.compress_ns), duration(self.decompress_ns))
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Compression, String> {
        let mut all = Compression::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.split(',').map(str::trim) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair:?} is not KEY=VALUE; write ratio=3,incompressible=10%"))?;
            if seen.contains(&key) {
                return Err(format!("{key} is given twice; leave one out"));
            }
            all.set(key, value).map_err(|e| format!("{pair:?}: {e}"))?;
            seen.push(key);
        }
        let ContentSpec { zero, same, incompressible, .. } = all.content;
        match zero + same + incompressible <= 1.0 + 1e-9 {
            true => Ok(all),
            false => Err(format!("{text:?}: zero, same and incompressible are more than 100% together")),
        }
    }
}

impl Compression {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ratio" => {
                let ratio = value.parse().ok().filter(|ratio| (1.0..=4096.0).contains(ratio));
                self.content.ratio = ratio.ok_or("is not a ratio; write a number, 1 to 4096, as 2.2")?;
            }
            "zero" => self.content.zero = share(value)?,
            "same" => self.content.same = share(value)?,
            "incompressible" => self.content.incompressible = share(value)?,
            "compress" => self.compress_ns = nanoseconds(value)?,
            "decompress" => self.decompress_ns = nanoseconds(value)?,
            "pool" => {
                let size = MemorySize::absolute(value)?;
                if size.pages(4096, 0) == 0 || size.is_max() {
                    return Err("is no size of a pool; write 512M".to_owned());
                }
                self.pool = Some(size);
            }
            _ => return Err("known are ratio, zero, same, incompressible, compress, decompress, pool".to_owned()),
        }
        Ok(())
    }
}

/// A share: `10%`, or `0.1`.
fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.parse::<f64>().ok();
    let share = text.strip_suffix('%').map_or_else(|| number(text), |text| number(text).map(|n| n / 100.0));
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "is not a share; write 10% or 0.1".to_owned())
}

/// A time of a page: `4.3us`.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit = [("ns", 1.0), ("us", 1e3), ("ms", 1e6)].into_iter().find(|(name, _)| *name == unit);
    let ns = unit.and_then(|(_, ns)| digits.parse::<f64>().ok().map(|n| n * ns));
    let ns = ns.filter(|ns| (0.0..=LONGEST_NS).contains(ns));
    ns.map(|ns| ns.round() as u64).ok_or_else(|| "is not a time of a page; write 4.3us".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_mistakes_are_named() {
        let of = |text: &str| text.parse::<Compression>();
        let all = of("ratio=3, zero=0.1,incompressible=20%,compress=9us,decompress=800ns,pool=1G")
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((all.content.ratio, all.content.zero, all.content.incompressible), (3.0, 0.1, 0.2));
        assert_eq!((all.compress_ns, all.decompress_ns, all.content.same), (9_000, 800, 0.0));
        assert_eq!(all.pool.map(|size| size.pages(4096, 0)), Some(1 << 18));
        for (text, want) in [
            ("", "is not KEY=VALUE"),
            ("ratio", "is not KEY=VALUE"),
            ("ratio=0.5", "is not a ratio"),
            ("ratio=nan", "is not a ratio"),
            ("zero=110%", "is not a share"),
            ("zero=60%,same=50%", "more than 100% together"),
            ("ratio=2,ratio=3", "given twice"),
            ("compress=4", "is not a time of a page"),
            ("compress=inf", "is not a time of a page"),
            ("pool=0", "is no size of a pool"),
            ("codec=lz4", "known are ratio"),
        ] {
            assert!(of(text).is_err_and(|e| e.contains(want)), "{text}: {:?}", of(text));
        }
    }
}
