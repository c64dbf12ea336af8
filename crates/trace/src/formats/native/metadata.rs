//! The metadata of a Parquet file: the few values that reading needs, and nothing else.
//!
//! The library's own reader of metadata believes what a file claims, so that it is not asked.

use super::thrift::{Thrift, ThriftField};
use super::{COLUMNS, MAGIC, key};
use crate::error::{ErrorKind, Place, TraceError};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// Bytes at the end of the file: the length of the metadata, and the mark.
const FOOTER: u64 = 8;

/// Metadata of more bytes are refused; a million million rows have about as many.
const MAX_METADATA: u64 = 64 << 20;

/// Places in a cut file that are taken for the end of metadata before it is given up.
const MAX_CANDIDATES: usize = 64;

/// Bytes of a cut file that are searched at a time.
const BLOCK: u64 = 1 << 20;

/// Name of this program as a writer, before its version.
const OWN: &[u8] = b"refault ";

/// Prefix of all our keys; other writers add their own.
const OUR_KEYS: &[u8] = b"refault.";

/// Metadata of a file.
#[derive(Default)]
pub(super) struct Metadata {
    /// Rows in total; nothing but a hint.
    pub(super) rows: i64,
    /// Columns of ours that are there, by their place among all.
    pub(super) columns: Vec<Leaf>,
    pub(super) groups: Vec<Group>,
    /// This program wrote it.
    pub(super) own: bool,
    /// Keys of ours and their values.
    pub(super) pairs: Vec<(String, String)>,
    /// Where the metadata begin: columns lie in front of it.
    pub(super) start: u64,
    /// Whether the metadata are not at the end of the file: what follows was being written when its
    /// writer ended.
    pub(super) cut: bool,
}

/// A column of the schema.
#[derive(Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) name: &'static str,
    pub(super) index: usize,
    pub(super) physical: i32,
    pub(super) repetition: Repetition,
}

/// How often a column has a value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Repetition {
    Once,
    Optional,
    Repeated,
}

/// A row group.
pub(super) struct Group {
    pub(super) rows: i64,
    /// All columns, in the order of the schema.
    pub(super) chunks: Vec<Chunk>,
}

/// A column of a row group.
pub(super) struct Chunk {
    pub(super) physical: i32,
    pub(super) codec: i32,
    elsewhere: bool,
    length: i64,
    data: i64,
    dictionary: Option<i64>,
}

impl Metadata {
    /// Reads the metadata of a file that begins and ends as Parquet does; of a recording that was
    /// cut, the last metadata that are whole.
    pub(super) fn read(name: &str, file: &mut File) -> Result<Self, TraceError> {
        match check_ends(name, file) {
            Ok(len) => Self::ending_at(name, file, len),
            Err(error) if error.kind() == ErrorKind::Truncated => Self::of_cut(name, file).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// The last metadata of a recording that lie before the end of its file: a recorder writes some
    /// now and then.
    fn of_cut(name: &str, file: &mut File) -> Option<Self> {
        let mut tail = file.seek(SeekFrom::End(0)).ok()?;
        let mut block = Vec::new();
        let mut candidates = 0;
        while tail > MAGIC.len() as u64 && candidates < MAX_CANDIDATES {
            // Blocks overlap, so that a mark on their border is found.
            let start = tail.saturating_sub(BLOCK);
            file.seek(SeekFrom::Start(start)).ok()?;
            block.clear();
            file.take(tail - start).read_to_end(&mut block).ok()?;
            for at in memchr::memmem::rfind_iter(&block, MAGIC) {
                let end = start + (at + MAGIC.len()) as u64;
                // The mark at the front.
                if end < 12 {
                    return None;
                }
                candidates += 1;
                let found = Self::ending_at(name, file, end).ok();
                if let Some(found) = found.filter(|m| m.pairs.iter().any(|(key, _)| key == key::RECORDING)) {
                    return Some(Self { cut: true, ..found });
                }
            }
            tail = if start == 0 { 0 } else { start + MAGIC.len() as u64 - 1 };
        }
        None
    }

    fn ending_at(name: &str, file: &mut File, len: u64) -> Result<Self, TraceError> {
        let fail = |e| TraceError::io(name, "cannot be read", &e);
        let mut raw = [0; 4];
        file.seek(SeekFrom::Start(len - FOOTER)).map_err(fail)?;
        file.read_exact(&mut raw).map_err(fail)?;
        let size = u64::from(u32::from_le_bytes(raw));
        let malformed = |at, what| TraceError::new(ErrorKind::Malformed, name, Place::Byte(at), what);
        // Between the mark at the front and the footer.
        if size > len - FOOTER - MAGIC.len() as u64 {
            return Err(malformed(len - FOOTER, format!("metadata of {size} bytes do not fit into the file")));
        }
        if size > MAX_METADATA {
            let what = format!("metadata of {size} bytes, more than {MAX_METADATA}");
            return Err(TraceError::new(ErrorKind::TooLarge, name, Place::Byte(len - FOOTER), what));
        }
        let start = len - FOOTER - size;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start)).map_err(fail)?;
        file.take(size).read_to_end(&mut bytes).map_err(fail)?;
        match parse(&bytes) {
            Ok(metadata) => Ok(Self { start, ..metadata }),
            Err(at) => Err(malformed(start + at as u64, "the Parquet metadata are broken".to_owned())),
        }
    }
}

impl Chunk {
    /// Where it lies, in front of `end`.
    pub(super) fn range(&self, end: u64) -> Result<Range<u64>, String> {
        if self.elsewhere {
            return Err("a column is in another file".to_owned());
        }
        // Some writers set the place of a dictionary that is not there to 0.
        let first = match self.dictionary {
            Some(at) if at > 0 => at.min(self.data),
            _ => self.data,
        };
        let range = u64::try_from(first).ok().zip(u64::try_from(self.length).ok());
        match range.and_then(|(start, length)| Some(start..start.checked_add(length)?)) {
            Some(range) if range.end <= end => Ok(range),
            _ => Err(format!("a column of {} bytes at byte {first}, of {end}", self.length)),
        }
    }
}

/// Checks that both ends are Parquet's: a cut file is told before its tail is taken for metadata.
fn check_ends(name: &str, file: &mut File) -> Result<u64, TraceError> {
    let fail = |e| TraceError::io(name, "cannot be read", &e);
    let len = file.seek(SeekFrom::End(0)).map_err(fail)?;
    let mut ends = [[0; 4]; 2];
    for (end, at) in ends.iter_mut().zip([0, len.saturating_sub(4)]) {
        file.seek(SeekFrom::Start(at)).map_err(fail)?;
        // A file shorter than the mark leaves zeros, which are not the mark.
        let _ = file.take(4).read(end).map_err(fail)?;
    }
    if len < 12 || &ends[1] != MAGIC {
        let what = "does not end with PAR1: the file is cut, or something follows its end";
        return Err(TraceError::new(ErrorKind::Truncated, name, Place::Byte(len), what));
    }
    if &ends[0] != MAGIC {
        let what = "does not start with PAR1; it is not Parquet";
        return Err(TraceError::new(ErrorKind::Malformed, name, Place::Byte(0), what));
    }
    Ok(len)
}

/// Reads metadata; where they break when they do.
fn parse(bytes: &[u8]) -> Result<Metadata, usize> {
    let mut thrift = Thrift::new(bytes);
    let mut found = Metadata::default();
    let mut schema = Schema::default();
    let whole = thrift.structure(|t, f| {
        match f.id {
            2 => t.structures(f, |t| schema.element(t))?,
            3 => found.rows = t.i64(f)?,
            4 => t.structures(f, |t| {
                found.groups.push(group(t)?);
                Some(())
            })?,
            5 => t.structures(f, |t| {
                found.pairs.extend(pair(t)?);
                Some(())
            })?,
            6 => found.own = t.binary(f)?.starts_with(OWN),
            _ => t.skip(f)?,
        }
        Some(())
    });
    let fits = schema.begun && schema.open.is_empty() && found.groups.iter().all(|g| g.chunks.len() == schema.leaves);
    if whole.is_none() || !fits {
        return Err(bytes.len() - thrift.left());
    }
    found.columns = schema.columns;
    Ok(found)
}

/// A schema is a list, every group followed by what is in it.
#[derive(Default)]
struct Schema {
    begun: bool,
    /// Number of elements still to come, of each group around the next element.
    open: Vec<u32>,
    leaves: usize,
    columns: Vec<Leaf>,
}

impl Schema {
    fn element(&mut self, t: &mut Thrift<'_>) -> Option<()> {
        let (mut physical, mut repetition, mut name, mut children) = (None, 0, None, None);
        t.structure(|t, f| {
            match f.id {
                1 => physical = Some(t.i32(f)?),
                3 => repetition = t.i32(f)?,
                4 => name = Some(t.binary(f)?),
                5 => children = Some(t.u32(f)?),
                _ => t.skip(f)?,
            }
            Some(())
        })?;
        let repetition = match repetition {
            0 => Repetition::Once,
            1 => Repetition::Optional,
            2 => Repetition::Repeated,
            _ => return None,
        };
        let depth = self.open.len();
        if self.begun {
            let left = self.open.last_mut()?;
            *left = left.checked_sub(1)?;
        }
        match (physical, children) {
            // The root is a group whatever it says.
            (Some(physical), None | Some(0)) if self.begun => {
                let known = COLUMNS.into_iter().find(|known| Some(known.as_bytes()) == name);
                if let (Some(name), 1) = (known, depth) {
                    self.columns.push(Leaf { name, index: self.leaves, physical, repetition });
                }
                self.leaves += 1;
            }
            (_, children) => self.open.push(children.unwrap_or(0)),
        }
        self.begun = true;
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        name.map(drop)
    }
}

fn group(t: &mut Thrift<'_>) -> Option<Group> {
    let (mut rows, mut chunks) = (None, Vec::new());
    t.structure(|t, f| {
        match f.id {
            1 => t.structures(f, |t| {
                chunks.push(chunk(t)?);
                Some(())
            })?,
            3 => rows = Some(t.i64(f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    // So that a group takes bytes: what is made of metadata is a few times as large as they are.
    if chunks.is_empty() { None } else { Some(Group { rows: rows?, chunks }) }
}

fn chunk(t: &mut Thrift<'_>) -> Option<Chunk> {
    let (mut found, mut elsewhere) = (None, false);
    t.structure(|t, f| {
        match f.id {
            1 => elsewhere = !t.binary(f)?.is_empty(),
            3 => found = Some(column(t, f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    Some(Chunk { elsewhere, ..found? })
}

fn column(t: &mut Thrift<'_>, field: ThriftField) -> Option<Chunk> {
    let (mut physical, mut codec, mut length, mut data, mut dictionary) = (None, None, None, None, None);
    t.inner(field, |t, f| {
        match f.id {
            1 => physical = Some(t.i32(f)?),
            4 => codec = Some(t.i32(f)?),
            7 => length = Some(t.i64(f)?),
            9 => data = Some(t.i64(f)?),
            11 => dictionary = Some(t.i64(f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    Some(Chunk { physical: physical?, codec: codec?, elsewhere: false, length: length?, data: data?, dictionary })
}

/// A key of ours and its value; nothing for other keys.
fn pair(t: &mut Thrift<'_>) -> Option<Option<(String, String)>> {
    let (mut key, mut value) = (None, None);
    t.structure(|t, f| {
        match f.id {
            1 => key = Some(t.binary(f)?),
            2 => value = Some(t.binary(f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    match (key?, value) {
        (key, Some(value)) if key.starts_with(OUR_KEYS) => Some(Some((text(key)?, text(value)?))),
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element of a schema: its name of one letter, children, type and repetition.
    fn element(name: &str, children: Option<u8>, physical: Option<u8>, repetition: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(physical) = physical {
            bytes.extend([0x15, 2 * physical]);
        }
        bytes.extend([0x05, 6, 2 * repetition, 0x18, name.len() as u8]);
        bytes.extend(name.as_bytes());
        if let Some(children) = children {
            bytes.extend([0x15, 2 * children]);
        }
        bytes.push(0);
        bytes
    }

    fn schema(elements: &[Vec<u8>]) -> Result<Metadata, usize> {
        let mut bytes = vec![0x29, (elements.len() as u8) << 4 | 12];
        bytes.extend(elements.concat());
        bytes.push(0);
        parse(&bytes)
    }

    #[test]
    fn columns_are_found_among_others() {
        let root = element("root", Some(3), None, 0);
        let nested =
            [element("n", Some(2), None, 1), element("page", None, Some(2), 0), element("x", None, Some(6), 0)];
        let [nested, inner, text] = nested;
        let elements = [root, element("op", None, Some(1), 1), nested, inner, text, element("page", None, Some(2), 0)];
        let found = schema(&elements).expect("whole");
        let op = Leaf { name: "op", index: 0, physical: 1, repetition: Repetition::Optional };
        assert_eq!(found.columns, [op, Leaf { name: "page", index: 3, physical: 2, repetition: Repetition::Once }]);
    }

    #[test]
    fn schemas_that_do_not_add_up() {
        let (root, page) = (|n| element("r", Some(n), None, 0), element("page", None, Some(2), 0));
        assert!(schema(&[root(1), page.clone()]).is_ok());
        assert!(schema(&[root(2), page.clone()]).is_err());
        assert!(schema(&[root(1), page.clone(), page.clone()]).is_err());
        assert!(schema(&[root(1), element("page", None, Some(2), 3)]).is_err());
        assert!(schema(&[]).is_err());
        assert!(schema(&[root(0)]).is_ok());
        assert!(parse(&[0]).is_err());
    }

    #[test]
    fn a_column_outside_the_file() {
        let chunk = |data, length, dictionary| {
            Chunk { physical: 2, codec: 0, elsewhere: false, length, data, dictionary }.range(100)
        };
        for (start, length) in [(-1, 10), (4, -1), (i64::MAX, 1), (i64::MAX, i64::MAX), (4, 97)] {
            assert!(chunk(start, length, None).is_err(), "{start} {length}");
        }
        assert!(chunk(-1, 10, Some(20)).is_err());
        assert_eq!(chunk(4, 96, None), Ok(4..100));
        assert_eq!(chunk(50, 20, Some(0)), Ok(50..70));
        assert_eq!(chunk(50, 20, Some(20)), Ok(20..40));
        assert_eq!(chunk(20, 20, Some(50)), Ok(20..40));
    }

    /// Found by fuzzing: a row group of fewer columns than the schema has.
    #[test]
    fn a_group_without_columns() {
        let root = [element("r", Some(1), None, 0), element("page", None, Some(2), 0)].concat();
        let mut bytes = vec![0x29, 0x2c];
        bytes.extend(root);
        // One row group: no columns, two rows.
        bytes.extend([0x29, 0x1c, 0x19, 0x0c, 0x26, 4, 0, 0]);
        assert!(parse(&bytes).is_err());
    }
}
