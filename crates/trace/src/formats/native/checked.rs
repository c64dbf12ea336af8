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
}

impl Checked {
    /// Over the pages of a column in a row group of so many rows.
    pub(super) fn new(inner: Box<dyn PageReader>, rows: u64) -> Self {
        Self { inner, left: rows, first: true, dictionary: false }
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
            Encoding::PLAIN | Encoding::DELTA_BINARY_PACKED | Encoding::BYTE_STREAM_SPLIT => {}
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
