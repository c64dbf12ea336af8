//! What was published.

use super::policy::PolicySpec;

/// What was published: numbers of several kernels, or of several settings of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What is compared, at least one; the first is what the second is compared with.
    pub variants: Vec<PublishedVariant>,
    /// The numbers.
    pub rows: Vec<PublishedRow>,
    /// What a reader of the numbers should know.
    pub notes: Vec<String>,
    /// Seeds that a comparison takes if nobody says how many: 1 to so many. `None`: the seed of the
    /// scenario.
    pub seeds: Option<u64>,
}

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedVariant {
    /// Its name.
    pub name: String,
    /// The scenario's own policy with the overrides of the variant.
    pub policy: PolicySpec,
}

/// One number, of each variant.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// What it is compared with: the name of one of our results.
    pub metric: String,
    /// What people call it.
    pub label: String,
    /// The unit in which it is published.
    pub unit: String,
    /// The published numbers, in the unit of our result, by variant.
    pub published: Vec<Option<f64>>,
    /// Where our numbers must be, by variant.
    pub bands: Vec<Option<[f64; 2]>>,
    /// The ratios that count.
    pub ratios: Vec<PublishedRatio>,
    /// Which direction is good.
    pub better: Option<Better>,
}

/// The number of one variant through that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRatio {
    /// The variant (an index) above the line.
    pub of: usize,
    /// The variant below it.
    pub to: usize,
    /// Where our ratio must be.
    pub band: Option<[f64; 2]>,
}

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}
