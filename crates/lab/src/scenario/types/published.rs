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
    /// Seeds that a comparison takes if nobody says how many: 1 to so many. `None`: the seed of the
    /// scenario.
    pub seeds: Option<u64>,
    /// Where the values of the machine and its workload come from.
    pub parameters: Parameters,
}

/// Where values of a scenario come from, by key: `machine.memory`, `task.clients.phase[2].cpu`, or
/// a table of which it is true as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The publication says them.
    pub published: Vec<String>,
    /// They follow from what the publication says: how.
    pub derived: BTreeMap<String, String>,
    /// The publication leaves them open, and a number of its first variant decided them.
    pub calibrated: BTreeMap<String, Calibrated>,
    /// Nobody says them: why they are so.
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
    /// The value is that of another key, which is calibrated.
    As(String),
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
    /// Name of the result of ours that it is compared with.
    pub metric: String,
    /// Name that people use.
    pub label: String,
    /// The unit in which it is published.
    pub unit: String,
    /// The published numbers, in the unit of our result, by variant.
    pub published: Vec<Option<f64>>,
    /// Whether our number is that of a smaller machine, as `--scale` says how much: seconds, pages.
    pub scaled: bool,
    /// Where our numbers must be, by variant.
    pub bands: Vec<Option<Band>>,
    /// The ratios that count.
    pub ratios: Vec<PublishedRatio>,
    /// The direction that is good.
    pub better: Option<Better>,
}

/// The number of one variant through that of another.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRatio {
    /// The variant (an index) above the line.
    pub of: usize,
    /// The variant below it.
    pub to: usize,
    /// Where our ratio must be; or, of a change from or to nothing, our difference.
    pub band: Option<Band>,
}

/// Where a number, a ratio or a difference must be, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Its ends. The upper one may be infinite.
    pub ends: [f64; 2],
    /// Origin of the band: the publication, or the scenario.
    pub from: BandFrom,
}

/// Where a band comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum BandFrom {
    /// Half to double of the published change.
    Change,
    /// A published change of less than a hundredth: none.
    NoChange,
    /// Half to double of the published difference: one of the two is nothing.
    Difference,
    /// The confidence interval of a published percentage of so many.
    Count(u64),
    /// The published number is of one draw at random, exact to half of the band's width: where one
    /// more seed of ours would be is added to it.
    Draw,
    /// The scenario gives it; why, if it says so.
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
