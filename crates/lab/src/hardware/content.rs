//! Content of pages of anonymous memory: not their bytes, but what compressing them would make of
//! them.

use refault_mm::Content;
use refault_trace::generate::Rng;

use crate::scenario::ContentSpec;

impl ContentSpec {
    /// Compression ratio where a scenario gives none: as of the pages with which compression costs
    /// were measured (lz4).
    pub const RATIO: f64 = 2.2;

    /// Content of a page, written or not: by its object and its place in the object.
    pub fn of_page(&self, seed: u64, extent: usize, page: u32) -> Content {
        // The first number is of this use of the seed; other uses have other numbers.
        let mut rng = Rng::new(seed, &[0x0063_6f6e_7465_6e74, extent as u64, u64::from(page)]);
        let lot = rng.unit();
        if lot < self.zero {
            return Content::Zero;
        }
        if lot < self.zero + self.same {
            return Content::SameFilled;
        }
        if lot < self.zero + self.same + self.incompressible {
            return Content::Compressed { bytes: 4096 };
        }
        // Evenly around the mean, by half of it or as far as a page is long.
        let mean = 4096.0 / self.ratio;
        let half = (self.ratio - 1.0).min(0.5);
        let bytes = mean * (1.0 + half * (2.0 * rng.unit() - 1.0));
        Content::Compressed { bytes: (bytes.round() as u32).clamp(1, 4095) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_what_the_shares_say_and_as_long_as_the_ratio() {
        let spec = ContentSpec { zero: 0.1, same: 0.05, incompressible: 0.2, ratio: 3.0 };
        let (mut counts, mut bytes) = ([0u32; 4], 0u64);
        for page in 0..100_000 {
            match spec.of_page(1, 2, page) {
                Content::Zero => counts[0] += 1,
                Content::SameFilled => counts[1] += 1,
                Content::Compressed { bytes: 4096 } => counts[2] += 1,
                Content::Compressed { bytes: n } => {
                    assert!((683..=2048).contains(&n), "{n}");
                    counts[3] += 1;
                    bytes += u64::from(n);
                }
            }
            assert_eq!(spec.of_page(1, 2, page), spec.of_page(1, 2, page));
        }
        for (n, share) in counts.into_iter().zip([0.1, 0.05, 0.2, 0.65]) {
            assert!((f64::from(n) / 1e5 - share).abs() < 0.005, "{counts:?}");
        }
        let ratio = 4096.0 * f64::from(counts[3]) / bytes as f64;
        assert!((ratio - 3.0).abs() < 0.02, "{ratio}");
    }
}
