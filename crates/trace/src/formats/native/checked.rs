//! Pages of Parquet, looked at before they are decoded: the decoder of the library trusts some of what they say.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Passes on pages that hold together and refuses the others.
pub(super) struct Checked {
    inner: Box<dyn PageReader>,
    /// Values that the row group still promises.
    left: u64,
    first: bool,
    dictionary: bool,
    /// Values may be missing: their levels stand before the values.
    optional: bool,
}

/// What a writer may put into a block of differences; those that exist put 128 or 256.
const MAX_DELTA_BLOCK: u64 = 1 << 16;

impl Checked {
    /// Over the pages of a column in a row group of so many rows.
    pub(super) fn new(inner: Box<dyn PageReader>, rows: u64, optional: bool) -> Self {
        Self { inner, left: rows, first: true, dictionary: false, optional }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let first = std::mem::replace(&mut self.first, false);
        match page {
            Page::DictionaryPage { .. } if !first => refuse("a dictionary is not the first page"),
            Page::DictionaryPage { encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY, .. } => {
                self.dictionary = true;
                Ok(())
            }
            Page::DictionaryPage { encoding, .. } => refuse(&format!("a dictionary in encoding {encoding}")),
            Page::DataPage { def_level_encoding, rep_level_encoding, .. }
                if *def_level_encoding != Encoding::RLE || *rep_level_encoding != Encoding::RLE =>
            {
                refuse("levels are not in encoding RLE")
            }
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. }
                if u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len) > buf.len() as u64 =>
            {
                refuse("levels are longer than their page")
            }
            Page::DataPage { .. } | Page::DataPageV2 { .. } => self.check_data(page),
        }
    }

    fn check_data(&mut self, page: &Page) -> Result<()> {
        match page.encoding() {
            Encoding::PLAIN => {}
            Encoding::DELTA_BINARY_PACKED => self.check_delta(page)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if self.dictionary => {}
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                return refuse("a page refers to a dictionary that is not there");
            }
            other => return refuse(&format!("encoding {other} is not one of whole numbers")),
        }
        match self.left.checked_sub(u64::from(page.num_values())) {
            Some(left) => self.left = left,
            None => return refuse("its pages hold more values than it has rows"),
        }
        Ok(())
    }
}

impl Checked {
    /// The header of a run of differences: the decoder takes its counts on trust.
    fn check_delta(&self, page: &Page) -> Result<()> {
        let header = self.values_of(page).and_then(delta_header);
        let Some([block, minis, count]) = header else { return refuse("a page of differences has no header") };
        let sizes = (1..=MAX_DELTA_BLOCK).contains(&block) && (1..=block).contains(&minis);
        // Its first value is in the header, so it has one at least.
        if !sizes || count > u64::from(page.num_values()) || (count == 0 && page.num_values() > 0) {
            return refuse("the header of a page of differences does not fit the page");
        }
        Ok(())
    }

    /// The bytes of a page after its levels.
    fn values_of<'a>(&self, page: &'a Page) -> Option<&'a [u8]> {
        match page {
            Page::DataPage { buf, .. } if self.optional => {
                let length = u32::from_le_bytes(*buf.first_chunk()?);
                buf.get(4usize.checked_add(length as usize)?..)
            }
            Page::DataPage { buf, .. } => Some(buf),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get((*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?..)
            }
            Page::DictionaryPage { .. } => None,
        }
    }
}

/// Size of a block, miniblocks in it, and values in total.
fn delta_header(mut bytes: &[u8]) -> Option<[u64; 3]> {
    let mut header = [0; 3];
    for field in &mut header {
        for shift in (0..63).step_by(7) {
            let (&first, rest) = bytes.split_first()?;
            bytes = rest;
            *field |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
            if shift == 56 {
                return None;
            }
        }
    }
    Some(header)
}

fn refuse<T>(what: &str) -> Result<T> {
    Err(ParquetError::General(what.to_owned()))
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// Delivers pages as they are.
    struct Given(Vec<Page>);

    impl Iterator for Given {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for Given {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(if self.0.is_empty() { None } else { Some(self.0.remove(0)) })
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn data(encoding: Encoding, num_values: u32) -> Page {
        Page::DataPage {
            buf: Bytes::from_static(&[0; 64]),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn dictionary() -> Page {
        let buf = Bytes::from_static(&[0; 64]);
        Page::DictionaryPage { buf, num_values: 8, encoding: Encoding::PLAIN, is_sorted: false }
    }

    #[track_caller]
    fn refused(pages: Vec<Page>, want: &str) {
        let mut checked = Checked::new(Box::new(Given(pages)), 10, false);
        let error = checked.find_map(Result::err).expect(want);
        assert!(error.to_string().contains(want), "{error}");
    }

    /// Found by fuzzing: the decoder panics on it.
    #[test]
    fn a_dictionary_that_is_not_there() {
        refused(vec![data(Encoding::RLE_DICTIONARY, 1)], "dictionary that is not there");
    }

    /// Found by fuzzing: the decoder takes one value from none.
    #[test]
    fn differences_without_a_first_value() {
        let page = |bytes: &'static [u8], num_values| Page::DataPage {
            buf: Bytes::from_static(bytes),
            num_values,
            encoding: Encoding::DELTA_BINARY_PACKED,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        for (bytes, wrong) in [
            (&[0x80, 1, 4, 0, 0][..], "does not fit"),
            (&[0x80, 1, 4, 9, 0], "does not fit"),
            (&[0x80, 1, 0, 5, 0], "does not fit"),
            (&[0x80, 0x80, 0x80, 1, 4, 5, 0], "does not fit"),
            (&[0x80, 1], "no header"),
            (&[0xff; 40], "no header"),
        ] {
            refused(vec![page(bytes, 5)], wrong);
        }
        let mut fine = Checked::new(Box::new(Given(vec![page(&[0x80, 1, 4, 5, 0], 5)])), 10, false);
        assert!(fine.all(|page| page.is_ok()));
    }

    #[test]
    fn pages_that_contradict_each_other() {
        refused(vec![data(Encoding::PLAIN, 6), data(Encoding::PLAIN, 5)], "more values than");
        refused(vec![data(Encoding::PLAIN, 6), dictionary()], "not the first page");
        refused(vec![data(Encoding::DELTA_BYTE_ARRAY, 1)], "not one of whole numbers");
        let mut fine = Checked::new(Box::new(Given(vec![dictionary(), data(Encoding::RLE_DICTIONARY, 10)])), 10, false);
        assert!(fine.all(|page| page.is_ok()));
    }
}
