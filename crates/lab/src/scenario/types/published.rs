//! Published measurements.

use super::policy::PolicySpec;
use std::collections::BTreeMap;

/// Published measurements: numbers of several kernels, or of several settings of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Variants that are compared, at least one; the first is what the second is compared with.
    pub variants: Vec<PublishedVariant>,
    /// The numbers.
    pub rows: Vec<PublishedRow>,
    /// Notes for a reader of the numbers.
    pub notes: Vec<String>,
    /// Number of seeds, from 1 on, that a comparison takes by default. `None`: only the seed of the
    /// scenario.
    pub seeds: Option<u64>,
    /// Where the values of the machine and its workload come from.
    pub parameters: Parameters,
}

/// Where values of a scenario come from, by key: `machine.memory`, `task.clients.phase[2].cpu`, or
/// a table if all its values have the same origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Keys whose values are published.
    pub published: Vec<String>,
    /// Keys whose values follow from the publication, and how.
    pub derived: BTreeMap<String, String>,
    /// Keys that the publication leaves open, and the number of its first variant that decided each
    /// value.
    pub calibrated: BTreeMap<String, Calibrated>,
    /// Keys that nobody published, and why their values were chosen.
    pub chosen: BTreeMap<String, String>,
}

/// Origin of a value that was found so that the first variant has a published number.
#[derive(Clone, Debug, PartialEq)]
pub enum Calibrated {
    /// A number of the first variant decided it.
    By {
        /// The label of the row.
        row: String,
        /// How the value was found.
        how: String,
    },
    /// The value is the same as that of another, calibrated key.
    As(String),
}

/// One of the policies that are compared.
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
    /// Name of our result that the number is compared with.
    pub metric: String,
    /// Name that people use.
    pub label: String,
    /// Unit of the published numbers.
    pub unit: String,
    /// The published numbers, in the unit of our result, by variant.
    pub published: Vec<Option<f64>>,
    /// Whether our number shrinks with the machine under `--scale`, such as seconds or pages.
    pub scaled: bool,
    /// Where our numbers must be, by variant.
    pub bands: Vec<Option<Band>>,
    /// Ratios between variants that are compared.
    pub ratios: Vec<PublishedRatio>,
    /// The direction that is good.
    pub better: Option<Better>,
}

/// The number of one variant divided by the number of another.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRatio {
    /// The variant (an index) whose number is divided.
    pub of: usize,
    /// The variant (an index) whose number it is divided by.
    pub to: usize,
    /// Where our ratio must be; where one of the two numbers is 0, our difference.
    pub band: Option<Band>,
}

/// Where a number, a ratio or a difference must be, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Ends of the band. The upper end may be infinite.
    pub ends: [f64; 2],
    /// Origin of the band: the publication, or the scenario.
    pub from: BandFrom,
}

/// Where a band comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum BandFrom {
    /// Half to double of the published change.
    Change,
    /// A published change of less than one percent counts as no change.
    NoChange,
    /// Half to double of the published difference, where one of the two numbers is 0.
    Difference,
    /// The confidence interval of a published percentage, which was counted over this many events.
    Count(u64),
    /// The published number is of one random draw, exact to half of the band's width. The band is
    /// widened by the scatter of one more seed of ours.
    Draw,
    /// The scenario gives the band, and may say why.
    Given(Option<String>),
}

/// The direction that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}
