//! Pages that a sample of a trace keeps: a hash of the page says, so that all accesses to it are
//! kept, or none.

use crate::shape::mix;

/// Unit of a sample: it is kept or left out as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleUnit {
    /// A page.
    Page,
    /// 64 pages in a row: a node of the page-cache tree, or what a look around an entry sees.
    Node,
    /// 512 pages in a row: a page table, or a huge page.
    Table,
}

impl SampleUnit {
    /// log2 of its pages.
    pub fn shift(self) -> u32 {
        match self {
            SampleUnit::Page => 0,
            SampleUnit::Node => 6,
            SampleUnit::Table => 9,
        }
    }
}

/// Pages that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    one_in: u64,
    unit: SampleUnit,
    salt: u64,
    below: u64,
}

impl Sample {
    /// A sample of one unit in `one_in`; another salt chooses other units.
    pub fn new(one_in: u64, unit: SampleUnit, salt: u64) -> Sample {
        Sample { one_in, unit, salt: mix(salt, !0), below: u64::MAX / one_in.max(1) }
    }

    /// Number of units for which one is kept.
    pub fn one_in(&self) -> u64 {
        self.one_in
    }

    /// Unit that is kept or left out as a whole.
    pub fn unit(&self) -> SampleUnit {
        self.unit
    }

    #[inline]
    pub(crate) fn has(&self, object: u32, page: u64) -> bool {
        mix(u64::from(object) ^ self.salt, page >> self.unit.shift()) <= self.below
    }
}
