//! Checksums of a file in its own metadata: what is damaged is not taken for a trace.
//!
//! There is a CRC-32 of the bytes of each row group with the number of its rows, and one of the
//! other values of the metadata. A program that rewrites the rows may copy the metadata, so that
//! only what this program wrote is checked.

use super::key;
use super::metadata::Group;
use flate2::Crc;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 16;

/// The value of [`key::SUMS`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sums {
    /// Rows of each row group, and the checksum of its bytes.
    pub(super) groups: Vec<(u64, u32)>,
    /// Checksum of our other keys and their values.
    about: u32,
}

impl Sums {
    /// The pair for these pairs and what was written of row groups.
    pub(super) fn pair(groups: &[(u64, u32)], pairs: &[(&'static str, String)]) -> (&'static str, String) {
        let about = about(pairs.iter().map(|(key, value)| (*key, &**value)));
        let sums = Sums { groups: groups.to_vec(), about };
        // Numbers always have a JSON form.
        (key::SUMS, serde_json::to_string(&sums).unwrap_or_default())
    }

    /// Reads the checksums of a file, if the metadata and the numbers of its rows are what they
    /// were.
    pub(super) fn read(pairs: &[(String, String)], groups: &[Group], all_rows: i64) -> Result<Option<Sums>, String> {
        let Some((_, text)) = pairs.iter().find(|(key, _)| key == key::SUMS) else { return Ok(None) };
        let sums: Sums = serde_json::from_str(text).map_err(|e| format!("{} is broken: {e}", key::SUMS))?;
        let others = pairs.iter().filter(|(key, _)| key != key::SUMS);
        let rows = groups.iter().map(|group| u64::try_from(group.rows).ok());
        let all = sums.groups.iter().try_fold(0u64, |all, (rows, _)| all.checked_add(*rows));
        if u64::try_from(all_rows).ok() != all
            || sums.about != about(others.map(|(key, value)| (&**key, &**value)))
            || !rows.eq(sums.groups.iter().map(|(rows, _)| Some(*rows)))
        {
            return Err("its metadata do not have the checksum that they were written with".to_owned());
        }
        Ok(Some(sums))
    }
}

fn about<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> u32 {
    let mut crc = Crc::new();
    for (key, value) in pairs {
        // Lengths, so that nothing moves from one to the other.
        crc.update(&(key.len() as u64).to_le_bytes());
        crc.update(key.as_bytes());
        crc.update(&(value.len() as u64).to_le_bytes());
        crc.update(value.as_bytes());
    }
    crc.sum()
}

/// The checksum of a part of a file.
pub(super) fn of_part(mut file: &File, part: std::ops::Range<u64>) -> io::Result<u32> {
    let mut crc = Crc::new();
    file.seek(SeekFrom::Start(part.start))?;
    let mut left = file.take(part.end - part.start);
    let mut block = vec![0; BLOCK];
    loop {
        match left.read(&mut block)? {
            0 => return Ok(crc.sum()),
            n => crc.update(&block[..n]),
        }
    }
}

/// A file under construction, with the checksum of what was written last.
pub(super) struct Summed<F> {
    pub(super) file: F,
    crc: Crc,
}

impl<F> Summed<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, crc: Crc::new() }
    }

    /// The checksum of what was written since this was asked last.
    pub(super) fn take(&mut self) -> u32 {
        std::mem::take(&mut self.crc).sum()
    }
}

impl<F: Write> Write for Summed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
