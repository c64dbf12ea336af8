//! Pages of Parquet, looked at before they are decoded: the decoder of the library trusts some of
//! what they say.

use super::thrift::varint;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};

/// Refuses pages that are inconsistent, in themselves or with the pages before.
pub(super) struct PageChecks {
    /// Values that the row group still promises.
    left: u64,
    /// Bytes a value.
    width: usize,
    first: bool,
    dictionary: bool,
    /// Values may be missing: their levels stand before the values.
    optional: bool,
}

/// Largest block of differences that a writer may put; writers that exist put 128 or 256.
const MAX_DELTA_BLOCK: u64 = 1 << 16;

/// Bits of an index into a dictionary.
const MAX_INDEX_BITS: u8 = 32;

impl PageChecks {
    /// Checks for the pages of a column of `rows` rows, of `width` bytes each.
    pub(super) fn new(rows: u64, width: usize, optional: bool) -> Self {
        Self { left: rows, width, first: true, dictionary: false, optional }
    }

    /// Looks at the next page.
    pub(super) fn check(&mut self, page: &Page) -> Result<()> {
        let first = std::mem::replace(&mut self.first, false);
        match page {
            Page::DictionaryPage { .. } if !first => refuse("a dictionary is not the first page"),
            Page::DictionaryPage { buf, num_values, .. } if buf.len() / self.width < *num_values as usize => {
                refuse("a dictionary is shorter than its values")
            }
            Page::DictionaryPage { encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY, .. } => {
                self.dictionary = true;
                Ok(())
            }
            Page::DictionaryPage { encoding, .. } => refuse(&format!("a dictionary in encoding {encoding}")),
            Page::DataPage { .. } | Page::DataPageV2 { .. } => self.check_data(page),
        }
    }

    fn check_data(&mut self, page: &Page) -> Result<()> {
        let count = u64::from(page.num_values());
        if count == 0 {
            return refuse("a page has no values");
        }
        let Some((levels, values)) = self.parts(page) else { return refuse("levels are longer than their page") };
        if self.optional && !are_runs(levels, 1, count) {
            return refuse("the levels of a page are broken");
        }
        match page.encoding() {
            Encoding::PLAIN => {}
            Encoding::DELTA_BINARY_PACKED => check_delta(values, count)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if self.dictionary => match values.split_first() {
                Some((&bits, runs)) if bits <= MAX_INDEX_BITS && are_runs(runs, bits, count) => {}
                _ => return refuse("the indices of a page are broken"),
            },
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                return refuse("a page refers to a dictionary that is not there");
            }
            other => return refuse(&format!("encoding {other} is not one of whole numbers")),
        }
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => return refuse("its pages hold more values than it has rows"),
        }
        Ok(())
    }

    /// The levels of a page, and what follows them.
    fn parts<'a>(&self, page: &'a Page) -> Option<(&'a [u8], &'a [u8])> {
        match page {
            Page::DataPage { buf, .. } if self.optional => {
                let (length, rest) = buf.split_first_chunk()?;
                rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
            }
            Page::DataPage { buf, .. } => Some((&[], buf)),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let (_, rest) = buf.split_at_checked(usize::try_from(*rep_levels_byte_len).ok()?)?;
                rest.split_at_checked(usize::try_from(*def_levels_byte_len).ok()?)
            }
            Page::DictionaryPage { .. } => None,
        }
    }
}

/// Whether bytes are runs of `count` numbers: a run is one number repeated, or groups of eight
/// numbers.
///
/// Runs that end before are left to the decoder, which counts; so is whether numbers are in their
/// bounds.
fn are_runs(mut bytes: &[u8], bits: u8, count: u64) -> bool {
    let mut seen = 0u64;
    while seen < count && !bytes.is_empty() {
        let Some(head) = varint(&mut bytes) else { return false };
        let (numbers, length) = match (head >> 1, head & 1) {
            (times, 0) => (times, u64::from(bits.div_ceil(8))),
            (groups, _) => (groups.saturating_mul(8), groups.saturating_mul(u64::from(bits))),
        };
        seen = seen.saturating_add(numbers);
        // The last run may be cut to the numbers that there are.
        bytes = usize::try_from(length).ok().and_then(|length| bytes.get(length..)).unwrap_or_default();
    }
    true
}

/// Differences: the decoder takes the counts of the header on trust, and panics at numbers without
/// an end.
fn check_delta(mut bytes: &[u8], values: u64) -> Result<()> {
    let bytes = &mut bytes;
    // Size of a block, parts of it, values in total, and the first value.
    let header = [varint(bytes), varint(bytes), varint(bytes), varint(bytes)];
    let [Some(block), Some(parts), Some(count), Some(_)] = header else {
        return refuse("a page of differences has no header");
    };
    let sizes = (1..=MAX_DELTA_BLOCK).contains(&block) && (1..=block).contains(&parts);
    // Its first value is in the header, so it has one at least.
    if !sizes || !(1..=values).contains(&count) {
        return refuse("the header of a page of differences does not fit the page");
    }
    match blocks(bytes, block, parts, count - 1) {
        Some(()) => Ok(()),
        None => refuse("a block of differences is broken"),
    }
}

/// Walks blocks: a smallest difference, the bits of a number in every part, and the parts.
fn blocks(bytes: &mut &[u8], block: u64, parts: u64, mut left: u64) -> Option<()> {
    let part = block / parts;
    while left > 0 {
        varint(bytes)?;
        let (widths, rest) = bytes.split_at_checked(usize::try_from(parts).ok()?)?;
        *bytes = rest;
        for width in widths.iter().map(|w| u64::from(*w)) {
            if left <= part {
                // The last part may be cut to the numbers that there are.
                return Some(());
            }
            left -= part;
            *bytes = bytes.get(usize::try_from(width * part / 8).ok()?..)?;
        }
    }
    Some(())
}

fn refuse<T>(what: &str) -> Result<T> {
    Err(ParquetError::General(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn page(encoding: Encoding, num_values: u32, bytes: &[u8]) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(bytes),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn data(encoding: Encoding, num_values: u32) -> Page {
        page(encoding, num_values, &[0; 64])
    }

    fn dictionary(num_values: u32) -> Page {
        let buf = Bytes::from_static(&[0; 64]);
        Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
    }

    fn check(optional: bool, pages: &[Page]) -> Result<()> {
        let mut checked = PageChecks::new(10, 8, optional);
        pages.iter().try_for_each(|page| checked.check(page))
    }

    #[track_caller]
    fn refused(optional: bool, pages: &[Page], want: &str) {
        let error = check(optional, pages).expect_err(want);
        assert!(error.to_string().contains(want), "{error}");
    }

    /// Found by fuzzing: the decoder panics on it.
    #[test]
    fn a_dictionary_that_is_not_there() {
        refused(false, &[data(Encoding::RLE_DICTIONARY, 1)], "dictionary that is not there");
    }

    /// Found by fuzzing: the decoder takes one value from none.
    #[test]
    fn differences_without_a_first_value() {
        let page = |bytes: &[u8]| page(Encoding::DELTA_BINARY_PACKED, 5, bytes);
        for (bytes, wrong) in [
            (&[0x80, 1, 4, 0, 0][..], "does not fit"),
            (&[0x80, 1, 4, 9, 0], "does not fit"),
            (&[0x80, 1, 0, 5, 0], "does not fit"),
            (&[0x80, 0x80, 0x80, 1, 4, 5, 0], "does not fit"),
            (&[0x80, 1], "no header"),
            (&[0xff; 40], "no header"),
        ] {
            refused(false, &[page(bytes)], wrong);
        }
        assert!(check(false, &[page(&[0x80, 1, 4, 5, 0, 0, 1, 0, 0, 0])]).is_ok());
        assert!(check(false, &[page(&[0x80, 1, 4, 1, 0])]).is_ok());
    }

    /// Found by reading: the decoder panics at a number of more than ten bytes.
    #[test]
    fn numbers_without_an_end() {
        let endless = [0xff; 11];
        let delta = |bytes: &[&[u8]]| page(Encoding::DELTA_BINARY_PACKED, 5, &bytes.concat());
        refused(false, &[delta(&[&[0x80, 1, 4, 5], &endless])], "no header");
        refused(false, &[delta(&[&[0x80, 1, 4, 5, 0], &endless])], "block of differences");
        let indices = |bytes: &[&[u8]]| [dictionary(8), page(Encoding::RLE_DICTIONARY, 10, &bytes.concat())];
        refused(false, &indices(&[&[3], &endless]), "indices");
        // Behind a run of one number, and behind a group of eight.
        refused(false, &indices(&[&[3, 18, 1], &endless]), "indices");
        refused(false, &indices(&[&[3, 3, 1, 1, 1], &endless]), "indices");
        // Behind all that are wanted, it does no harm.
        assert!(check(false, &indices(&[&[3, 20, 1], &endless])).is_ok());
        let levels = |bytes: &[&[u8]]| page(Encoding::PLAIN, 10, &bytes.concat());
        refused(true, &[levels(&[&[11, 0, 0, 0], &endless])], "levels of a page");
        refused(true, &[levels(&[&[13, 0, 0, 0, 18, 1], &endless])], "levels of a page");
        refused(true, &[levels(&[&[12, 0, 0, 0], &endless])], "longer than their page");
    }

    /// Found by reading: a block in the middle of the differences decides where the next begins.
    #[test]
    fn blocks_of_differences_are_walked() {
        // Blocks of 128 in 4 parts, 300 values: two blocks of 128 and one of 43, of 1, 0, 2 and 0
        // bits.
        let block = [&[0, 1, 0, 2, 0][..], &[7; 12]].concat();
        let bytes = [&[0x80, 1, 4, 0xac, 2, 0][..], &block, &block, &block].concat();
        assert!(check_delta(&bytes, 300).is_ok());
        assert!(check_delta(&bytes[..bytes.len() - 17], 300).is_err());
        assert!(check_delta(&bytes[..bytes.len() - 20], 300).is_err());
    }

    #[test]
    fn indices_too_wide_or_absent() {
        refused(false, &[dictionary(8), page(Encoding::RLE_DICTIONARY, 10, &[33, 20, 1])], "indices");
        refused(false, &[dictionary(8), page(Encoding::RLE_DICTIONARY, 10, &[])], "indices");
    }

    #[test]
    fn pages_that_contradict_each_other() {
        refused(false, &[data(Encoding::PLAIN, 6), data(Encoding::PLAIN, 5)], "more values than");
        refused(false, &[data(Encoding::PLAIN, 6), dictionary(8)], "not the first page");
        refused(false, &[dictionary(9)], "shorter than its values");
        refused(false, &[data(Encoding::DELTA_BYTE_ARRAY, 1)], "not one of whole numbers");
        refused(false, &[data(Encoding::PLAIN, 0)], "no values");
        assert!(check(false, &[dictionary(8), data(Encoding::RLE_DICTIONARY, 10)]).is_ok());
    }
}
