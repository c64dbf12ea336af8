//! Reading the native format, and Parquet of the same columns that other tools wrote.

use super::metadata::{Leaf, Metadata, Repetition};
use super::pages::ColumnPages;
use super::sums::{self, Sums};
use super::{COLUMNS, OPS, VERSION, key, op_from_code};
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::memcg::is_group_path;
use crate::record::{CHUNK, Collapse, Header, MAX_OBJECTS, MAX_PAGES_PER_RECORD, ObjectInfo, Record, RecordSource};
use crate::recording::Recording;
use crate::seen::Seen;
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, ColumnPath, Type};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Opens a file.
pub(crate) fn from_path(path: &Path) -> Result<Box<dyn RecordSource>, TraceError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| TraceError::io(&*name, "cannot be opened", &e))?;
    NativeSource::new(name, file).map(|source| Box::new(source) as _)
}

/// Spools a stream to an unnamed temporary file, since Parquet is read from its end.
pub(crate) fn from_input(mut input: Input) -> Result<Box<dyn RecordSource>, TraceError> {
    let name = input.name().to_owned();
    if let Some(kind) = input.compression() {
        let what = format!("is native inside {kind}, which only costs time; decompress it first");
        return Err(TraceError::new(ErrorKind::Unsupported, name, Place::Whole, what));
    }
    let fail = |e| TraceError::io(&*name, "cannot be spooled to a temporary file", &e);
    let mut file = tempfile::tempfile().map_err(fail)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let have = input.fill(&mut buffer)?;
        if have == 0 {
            break;
        }
        file.write_all(&buffer[..have]).map_err(fail)?;
    }
    NativeSource::new(name.clone(), file).map(|source| Box::new(source) as _)
}

/// One column of the current row group, as 64-bit values.
struct Column {
    /// Column in the file; `None` for an absent column, which holds `default`.
    present: Option<Present>,
    name: &'static str,
    /// Absent columns have this value.
    default: i64,
    reader: Option<ColumnReader>,
    values: Vec<i64>,
    narrow: Vec<i32>,
    levels: Vec<i16>,
}

/// A column that is in the file.
struct Present {
    /// Its place among all columns.
    index: usize,
    physical: i32,
    /// Bytes a value.
    width: usize,
    optional: bool,
    descriptor: ColumnDescPtr,
}

struct NativeSource {
    name: String,
    header: Header,
    file: Arc<File>,
    metadata: Metadata,
    /// None: the file has none, or another program wrote it.
    sums: Option<Sums>,
    columns: Vec<Column>,
    group: usize,
    left: u64,
    row: u64,
    failed: Option<TraceError>,
}

impl NativeSource {
    fn new(name: String, mut file: File) -> Result<Self, TraceError> {
        let metadata = Metadata::read(&name, &mut file)?;
        let mut header = header(&name, &metadata)?;
        let sums = if metadata.own { Sums::read(&metadata.pairs, &metadata.groups, metadata.rows) } else { Ok(None) };
        let sums = sums.map_err(|what| damaged(&name, &what))?;
        let columns = columns(&name, &metadata)?;
        if sums.is_some() && columns.iter().any(|column| column.present.is_none()) {
            return Err(damaged(&name, "a column has lost its name"));
        }
        header.has_checksums = sums.is_some();
        let file = Arc::new(file);
        Ok(Self { name, header, file, metadata, sums, columns, group: 0, left: 0, row: 0, failed: None })
    }

    /// Opens the next row group that has rows; `false` after the last.
    fn next_group(&mut self) -> Result<bool, TraceError> {
        while self.left == 0 {
            let Some(group) = self.metadata.groups.get(self.group) else { return Ok(false) };
            let failure = |what: String| broken(&self.name, &what);
            let rows = group.rows;
            self.left = u64::try_from(rows).map_err(|_| failure(format!("a row group of {rows} rows")))?;
            self.check_group()?;
            self.group += 1;
            if self.left == 0 {
                continue;
            }
            for column in &mut self.columns {
                let Some(present) = &column.present else { continue };
                let chunk = &group.chunks[present.index];
                if chunk.physical != present.physical {
                    return Err(failure(format!("column {} changes its type", column.name)));
                }
                let part = chunk.range(self.metadata.start).map_err(failure)?;
                let Present { width, optional, .. } = *present;
                let pages = ColumnPages::new(self.file.clone(), part, chunk.codec, self.left, width, optional);
                let pages = Box::new(pages.map_err(failure)?);
                column.reader = Some(get_column_reader(present.descriptor.clone(), pages));
            }
        }
        Ok(true)
    }

    /// Whether the bytes of the row group are those that were written.
    fn check_group(&self) -> Result<(), TraceError> {
        let Some((_, sum)) = self.sums.as_ref().and_then(|sums| sums.groups.get(self.group)) else { return Ok(()) };
        let parts = self.metadata.groups[self.group].chunks.iter().map(|chunk| chunk.range(self.metadata.start));
        let parts = parts.collect::<Result<Vec<_>, _>>().map_err(|what| broken(&self.name, &what))?;
        let (start, end) = match (parts.first(), parts.last()) {
            // Columns follow one another, as they were written.
            (Some(first), Some(last)) if parts.windows(2).all(|two| two[0].end == two[1].start) => {
                (first.start, last.end)
            }
            _ => return Err(damaged(&self.name, "its columns do not follow one another")),
        };
        let found = sums::of_part(&self.file, start..end);
        let found = found.map_err(|e| TraceError::io(&*self.name, "cannot be read", &e))?;
        match found == *sum {
            true => Ok(()),
            false => Err(damaged(&self.name, &format!("bytes {start} to {end} do not have their checksum"))),
        }
    }

    fn step(&mut self, out: &mut Vec<Record>) -> Result<(), TraceError> {
        if !self.next_group()? {
            return Ok(());
        }
        let rows = self.left.min(CHUNK as u64) as usize;
        for column in &mut self.columns {
            column
                .fill(rows)
                .map_err(|what| TraceError::new(ErrorKind::Malformed, &*self.name, Place::Row(self.row), what))?;
        }
        let table = Rows::of(&self.columns, rows, self.header.objects.len());
        for i in 0..rows {
            let record = table.record(i).map_err(|what| {
                let place = Place::Row(self.row + i as u64);
                TraceError::new(ErrorKind::Malformed, &*self.name, place, what)
            })?;
            out.push(record);
        }
        self.left -= rows as u64;
        self.row += rows as u64;
        Ok(())
    }
}

impl RecordSource for NativeSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.step(out) {
            Ok(()) => {}
            Err(error) if out.is_empty() => {
                self.failed = Some(error.clone());
                return Err(error);
            }
            Err(error) => self.failed = Some(error),
        }
        Ok(!out.is_empty())
    }
}

impl Column {
    /// Reads the next `rows` values.
    fn fill(&mut self, rows: usize) -> Result<(), String> {
        let Self { reader, values, narrow, levels, name, .. } = self;
        values.clear();
        levels.clear();
        let read = match reader {
            None => {
                values.resize(rows, self.default);
                return Ok(());
            }
            Some(ColumnReader::Int64ColumnReader(reader)) => reader.read_records(rows, Some(levels), None, values),
            Some(ColumnReader::Int32ColumnReader(reader)) => {
                narrow.clear();
                let read = reader.read_records(rows, Some(levels), None, narrow);
                // 32-bit columns are unsigned, as the schema of the format says.
                values.extend(narrow.iter().map(|v| i64::from(*v as u32)));
                read
            }
            Some(_) => return Err(format!("column {name} is not of whole numbers")),
        };
        let (records, present, _) = read.map_err(|e| format!("column {name} is broken: {e}"))?;
        if records < rows || present < rows {
            return Err(format!("column {name} has missing values"));
        }
        Ok(())
    }
}

/// A chunk of every column, all of one length, so that the loop over rows need not look.
struct Rows<'a> {
    columns: [&'a [i64]; COLUMNS.len()],
    objects: usize,
}

impl<'a> Rows<'a> {
    fn of(columns: &'a [Column], rows: usize, objects: usize) -> Self {
        Self { columns: std::array::from_fn(|i| &columns[i].values[..rows]), objects }
    }

    #[inline]
    fn record(&self, i: usize) -> Result<Record, String> {
        let [time_ns, task, memcg, object, page, pages, op] =
            std::array::from_fn(|column: usize| self.columns[column][i]);
        let narrow = u64::from(u32::MAX);
        let wide = (task | memcg | object | pages) as u64 > narrow;
        let known = (object as u64) < self.objects as u64;
        let counted = (1..=i64::from(MAX_PAGES_PER_RECORD)).contains(&pages);
        let ends = (page as u64).checked_add(pages as u64).is_some();
        match op_from_code(op) {
            Some((op, kind)) if !wide && known && counted && ends => Ok(Record {
                time_ns: time_ns as u64,
                page: page as u64,
                task: task as u32,
                memcg: memcg as u32,
                object: object as u32,
                pages: pages as u32,
                op,
                kind,
            }),
            _ => Err(self.wrong(i)),
        }
    }

    /// Complaint about a row that cannot be a record.
    #[cold]
    fn wrong(&self, i: usize) -> String {
        let [_, task, memcg, object, page, pages, op] = std::array::from_fn(|column: usize| self.columns[column][i]);
        if op_from_code(op).is_none() {
            return format!("op {op} is not in {OPS}");
        }
        if !(1..=i64::from(MAX_PAGES_PER_RECORD)).contains(&pages) {
            return format!("pages {pages} is not in 1 to {MAX_PAGES_PER_RECORD}");
        }
        for (name, value) in [("task", task), ("memcg", memcg), ("object", object)] {
            if u32::try_from(value).is_err() {
                return format!("{name} {value} is not a 32-bit number");
            }
        }
        if object as u64 >= self.objects as u64 {
            return format!("object {object} is not among the {} of the header", self.objects);
        }
        format!("page {} plus {pages} is beyond 64 bits", page as u64)
    }
}

/// Error that the checksums show.
fn damaged(name: &str, what: &str) -> TraceError {
    let what = format!("is damaged: {what}; take another copy, or record it again");
    TraceError::new(ErrorKind::Malformed, name, Place::Whole, what)
}

fn broken(name: &str, what: &str) -> TraceError {
    // Messages of the decoder may have several lines; ours has one.
    let what = what.lines().next().unwrap_or_default();
    TraceError::new(ErrorKind::Malformed, name, Place::Whole, format!("the Parquet data is broken: {what}"))
}

/// Finds our columns by name; `page` must be there, the others have defaults.
fn columns(name: &str, metadata: &Metadata) -> Result<Vec<Column>, TraceError> {
    let malformed = |what| TraceError::new(ErrorKind::Malformed, name, Place::Whole, what);
    let find = |wanted: &'static str| {
        let leaf = metadata.columns.iter().find(|leaf| leaf.name == wanted);
        if leaf.is_none() && wanted == "page" {
            return Err(malformed("has no column page".to_owned()));
        }
        let present =
            leaf.map(|leaf| present(leaf).ok_or_else(|| malformed(format!("column {wanted} is not of whole numbers"))));
        Ok(Column {
            present: present.transpose()?,
            name: wanted,
            default: i64::from(wanted == "pages"),
            reader: None,
            values: Vec::new(),
            narrow: Vec::new(),
            levels: Vec::new(),
        })
    };
    COLUMNS.into_iter().map(find).collect()
}

/// How a column is read; `None` unless it is of single whole numbers.
fn present(leaf: &Leaf) -> Option<Present> {
    let (physical, width) = match leaf.physical {
        1 => (PhysicalType::INT32, 4),
        2 => (PhysicalType::INT64, 8),
        _ => return None,
    };
    if leaf.repetition == Repetition::Repeated {
        return None;
    }
    let optional = leaf.repetition == Repetition::Optional;
    let kind = Type::primitive_type_builder(leaf.name, physical).build().ok()?;
    let levels = i16::from(optional);
    let descriptor = Arc::new(ColumnDescriptor::new(Arc::new(kind), levels, 0, ColumnPath::from(leaf.name)));
    Some(Present { index: leaf.index, physical: leaf.physical, width, optional, descriptor })
}

/// End of a doubt about numbers that are pages by now.
const OF_CONVERT: &str = " (so it was when this was converted: give the flag to refault trace convert)";

/// Doubts of one trace: one for each of its fields.
const MOST_DOUBTS: usize = 8;

/// A doubt of another file, in a line of a terminal.
fn of_convert(doubt: &str) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let said = doubt.strip_suffix(OF_CONVERT).unwrap_or(doubt);
    let said: String = said.chars().take(4096).map(|c| if steers(c) { '?' } else { c }).collect();
    said + OF_CONVERT
}

/// The header out of the key-value metadata.
fn header(name: &str, metadata: &Metadata) -> Result<Header, TraceError> {
    let get = |key: &str| metadata.pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    let malformed = |kind, what| TraceError::new(kind, name, Place::Whole, what);
    let Some(version) = get(key::VERSION) else {
        let what = "is Parquet, but no trace of refault: its metadata has no refault.version";
        return Err(malformed(ErrorKind::Unsupported, what.to_owned()));
    };
    if !version.parse().is_ok_and(|version: u32| (1..=VERSION).contains(&version)) {
        let what = format!("is of version {version:?} of the native format; this program knows 1 to {VERSION}");
        return Err(malformed(ErrorKind::Unsupported, what));
    }
    let mut header = Header::new(Format::Native);
    header.objects = json::<Vec<ObjectInfo>>(name, key::OBJECTS, get(key::OBJECTS))?;
    if header.objects.len() > MAX_OBJECTS as usize {
        let what = format!("more than {MAX_OBJECTS} objects");
        return Err(malformed(ErrorKind::TooLarge, what));
    }
    if let Some(size) = get(key::PAGE_SIZE) {
        header.page_size = match size.parse::<u32>() {
            Ok(size) if size.is_power_of_two() => size,
            _ => {
                let what = format!("{} {size:?} is not a power of two", key::PAGE_SIZE);
                return Err(malformed(ErrorKind::Malformed, what));
            }
        };
    }
    header.tasks = json(name, key::TASKS, get(key::TASKS))?;
    header.memcgs = json(name, key::MEMCGS, get(key::MEMCGS))?;
    if let Some(wrong) = header.memcgs.iter().find(|path| !is_group_path(path)) {
        let shown: String = wrong.chars().take(80).collect();
        let what = format!("{} {shown:?} is not the path of a group, such as /web or /a/b", key::MEMCGS);
        return Err(malformed(ErrorKind::Malformed, what));
    }
    header.collapse = json::<Option<Collapse>>(name, key::COLLAPSE, get(key::COLLAPSE))?;
    header.doubts = json::<Vec<String>>(name, key::DOUBTS, get(key::DOUBTS))?;
    header.doubts.truncate(MOST_DOUBTS);
    header.doubts.iter_mut().for_each(|doubt| *doubt = of_convert(doubt));
    header.seen = json::<Option<Seen>>(name, key::SEEN, get(key::SEEN))?;
    header.recording = json::<Option<Recording>>(name, key::RECORDING, get(key::RECORDING))?;
    if let Some(recording) = &mut header.recording {
        // Metadata that are written on the way say that the recording is not whole.
        if metadata.cut && !recording.cut {
            return Err(damaged(name, "something follows its end; it was whole before that was added"));
        }
        recording.cut |= metadata.cut;
    }
    header.source = get(key::SOURCE);
    header.recorded_on = get(key::RECORDED_ON);
    header.records_hint = u64::try_from(metadata.rows).ok();
    Ok(header)
}

/// A value of the metadata that is JSON; its default when it is not there.
fn json<T: DeserializeOwned + Default>(name: &str, key: &str, text: Option<String>) -> Result<T, TraceError> {
    let Some(text) = text else {
        return Ok(T::default());
    };
    serde_json::from_str(&text).map_err(|e| {
        TraceError::new(ErrorKind::Malformed, name, Place::Whole, format!("{key} of the metadata is broken: {e}"))
    })
}
