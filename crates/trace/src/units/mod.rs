//! Numbers that could be meant in more than one unit: pages, sectors, addresses in bytes, keys,
//! times; and columns that could stand in another order.
//!
//! A format says how its numbers are read, and shows them to a [`UnitDetector`] as it reads.
//! `table` has what else each could be and what speaks for that; `column` keeps what is needed to
//! judge. Doubts are in [`Header::doubts`], and refused if asked to.

mod column;
mod described;
mod table;
#[cfg(test)]
mod tests;
mod times;

use crate::ahead::ReadAhead;
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::record::{Header, RecordSource};
use column::Column;
pub(crate) use times::unix_time_unit;

/// Records that are looked at; what comes later says nothing new.
pub(crate) const LOOKED_AT: u64 = 1_000_000;

/// The fields of the records of a trace, as far as they have any that could be meant otherwise.
#[derive(Debug)]
pub(crate) struct UnitDetector {
    format: Format,
    opts: OpenOptions,
    seen: u64,
    is_judged: bool,
    /// Pages, blocks, offsets or addresses.
    number: Column,
    /// Counts of pages, of blocks, or of bytes.
    count: Column,
    /// Timestamps.
    time: Column,
    /// The third number of arc, which is not used.
    third: Column,
    /// The fourth, which counts requests.
    request: Column,
    /// Hexadecimal digits of the addresses, and whether one is a letter.
    digits: u64,
    has_letter: bool,
    /// Accesses of 4 bytes and more, and how many of these begin inside a word of 4 bytes.
    wide: u64,
    inside: u64,
    /// Records that begin before the one before them ends.
    overlaps: u64,
    end: u64,
    /// Records that begin where the one before them ends, if numbers are sectors and counts bytes.
    continues: u64,
    end_sector: u64,
    /// Records that begin where the one before ends, if place and count have one unit.
    follows: u64,
    /// Times in nanoseconds as they are read, and the most digits behind the point.
    clock: Column,
    decimals: u32,
}

impl UnitDetector {
    pub(crate) fn new(format: Format, opts: &OpenOptions) -> Self {
        Self {
            format,
            opts: opts.clone(),
            seen: 0,
            is_judged: false,
            number: Column::default(),
            count: Column::default(),
            time: Column::default(),
            third: Column::default(),
            request: Column::default(),
            digits: 0,
            has_letter: false,
            wide: 0,
            inside: 0,
            overlaps: 0,
            end: 0,
            continues: 0,
            end_sector: 0,
            follows: 0,
            clock: Column::default(),
            decimals: 0,
        }
    }

    /// Begins a record; whether it is still looked at.
    fn record(&mut self) -> bool {
        self.seen += 1;
        self.is_judged = false;
        self.seen <= LOOKED_AT
    }

    /// A record of a name.
    pub(crate) fn named(&mut self) {
        self.record();
    }

    /// A record of one number.
    pub(crate) fn block(&mut self, number: u64) {
        if self.record() {
            self.number.add(number);
        }
    }

    /// A record of a number, and how much from there.
    pub(crate) fn range(&mut self, number: u64, count: u64) {
        self.block(number);
        if self.seen <= LOOKED_AT {
            self.count.add(count);
            self.overlaps += u64::from(number < self.end);
            self.follows += u64::from(number == self.end && number > 0);
            self.end = number.saturating_add(count);
            self.continues += u64::from(number == self.end_sector && number > 0);
            self.end_sector = number.saturating_add(count.div_ceil(512));
        }
    }

    /// A record of an access to memory.
    pub(crate) fn access(&mut self, address: u64, bytes: u64) {
        self.block(address);
        self.word(address, bytes);
    }

    /// The access of the record that was begun, as one to memory.
    pub(crate) fn word(&mut self, address: u64, bytes: u64) {
        if self.seen <= LOOKED_AT && bytes >= 4 {
            self.wide += 1;
            self.inside += u64::from(!address.is_multiple_of(4));
        }
    }

    /// The digits of the address of the record that was begun.
    pub(crate) fn digits(&mut self, digits: &[u8]) {
        if self.seen <= LOOKED_AT {
            self.digits += digits.len() as u64;
            self.has_letter |= digits.iter().any(u8::is_ascii_alphabetic);
        }
    }

    /// The third and fourth number of a record of arc.
    pub(crate) fn request(&mut self, third: u64, request: u64) {
        if self.seen <= LOOKED_AT {
            self.third.add(third);
            self.request.add(request);
        }
    }

    /// The time of the record that was begun.
    pub(crate) fn time(&mut self, time: u64) {
        if self.seen <= LOOKED_AT {
            self.time.add(time);
        }
    }

    /// The time of the record that was begun in nanoseconds, and its digits behind the point.
    pub(crate) fn clock(&mut self, ns: u64, decimals: u32) {
        if self.seen <= LOOKED_AT {
            self.clock.add(ns);
            self.decimals = self.decimals.max(decimals);
        }
    }

    /// Notes in the header what is in doubt after what was seen.
    pub(crate) fn judge(&mut self, header: &mut Header) {
        if !self.is_judged {
            self.is_judged = true;
            header.doubts = match &self.opts.columns {
                Some(columns) => described::doubt(self, columns).into_iter().collect(),
                None => table::doubts(self),
            };
        }
    }
}

/// Reads as much as is looked at, and refuses what is in doubt.
pub(crate) fn strict(source: Box<dyn RecordSource>) -> Result<Box<dyn RecordSource>, TraceError> {
    let (mut source, mut records) = (ReadAhead::new(source), 0);
    source.look(|chunk| {
        records += chunk.len() as u64;
        records < LOOKED_AT
    });
    match source.header().doubts.first() {
        Some(doubt) => {
            Err(TraceError::new(ErrorKind::Unsupported, source.name(), Place::Whole, format!("--strict: {doubt}")))
        }
        None => Ok(Box::new(source)),
    }
}
