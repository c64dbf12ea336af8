//! Reading the native format, and Parquet of the same columns that other tools wrote.

use super::bounded::Bounded;
use super::checked::Checked;
use super::{COLUMNS, VERSION, key, op_from_code};
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::record::{CHUNK, Collapse, Header, MAX_OBJECTS, MAX_PAGES_PER_RECORD, ObjectInfo, Record, RecordSource};
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write;
use std::path::Path;

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
    /// Its place in the file; `None` for an absent column, which holds `default`.
    index: Option<usize>,
    name: &'static str,
    /// Absent columns have this value.
    default: i64,
    reader: Option<ColumnReader>,
    values: Vec<i64>,
    narrow: Vec<i32>,
    levels: Vec<i16>,
}

struct NativeSource {
    name: String,
    header: Header,
    file: SerializedFileReader<Bounded>,
    columns: Vec<Column>,
    group: usize,
    left: u64,
    row: u64,
    failed: Option<TraceError>,
}

impl NativeSource {
    fn new(name: String, file: File) -> Result<Self, TraceError> {
        let file = Bounded::new(&name, file)?;
        let file = SerializedFileReader::new(file).map_err(|e| broken(&name, &e.to_string()))?;
        let header = header(&name, file.metadata())?;
        let columns = columns(&name, file.metadata())?;
        Ok(Self { name, header, file, columns, group: 0, left: 0, row: 0, failed: None })
    }

    /// Opens the next row group that has rows; `false` after the last.
    fn next_group(&mut self) -> Result<bool, TraceError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let failure = |e: ParquetError| broken(&self.name, &e.to_string());
            let group = self.file.get_row_group(self.group).map_err(failure)?;
            let rows = group.metadata().num_rows();
            self.left = u64::try_from(rows).map_err(|_| broken(&self.name, &format!("a row group of {rows} rows")))?;
            for column in &mut self.columns {
                let Some(index) = column.index else { continue };
                check_chunk(group.metadata().column(index)).map_err(|what| broken(&self.name, &what))?;
                let pages = group.get_column_page_reader(index).map_err(failure)?;
                let descriptor = group.metadata().column(index).column_descr_ptr();
                let checked = Box::new(Checked::new(pages, self.left, descriptor.max_def_level() > 0));
                column.reader = Some(get_column_reader(descriptor, checked));
            }
            self.group += 1;
        }
        Ok(true)
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
            Some(op) if !wide && known && counted && ends => Ok(Record {
                time_ns: time_ns as u64,
                page: page as u64,
                task: task as u32,
                memcg: memcg as u32,
                object: object as u32,
                pages: pages as u32,
                op,
            }),
            _ => Err(self.wrong(i)),
        }
    }

    /// What is wrong with a row that cannot be a record.
    #[cold]
    fn wrong(&self, i: usize) -> String {
        let [_, task, memcg, object, page, pages, op] = std::array::from_fn(|column: usize| self.columns[column][i]);
        if op_from_code(op).is_none() {
            return format!("op {op} is not in 0 to 5");
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

/// The library asserts what a file may well break: that a chunk of a column lies in the file.
fn check_chunk(chunk: &ColumnChunkMetaData) -> Result<(), String> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let length = chunk.compressed_size();
    if start < 0 || length < 0 || start.checked_add(length).is_none() {
        return Err(format!("a column of {length} bytes at byte {start}"));
    }
    Ok(())
}

fn broken(name: &str, what: &str) -> TraceError {
    // Messages of the decoder may have several lines; ours has one.
    let what = what.lines().next().unwrap_or_default();
    TraceError::new(ErrorKind::Malformed, name, Place::Whole, format!("the Parquet data is broken: {what}"))
}

/// Finds our columns by name; `page` must be there, the others have defaults.
fn columns(name: &str, metadata: &ParquetMetaData) -> Result<Vec<Column>, TraceError> {
    let schema = metadata.file_metadata().schema_descr();
    let malformed = |what| TraceError::new(ErrorKind::Malformed, name, Place::Whole, what);
    let find = |wanted: &'static str| {
        let index = (0..schema.num_columns()).find(|i| schema.column(*i).name() == wanted);
        if let Some(index) = index {
            let column = schema.column(index);
            let whole = matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64);
            if !whole || column.max_rep_level() != 0 {
                return Err(malformed(format!("column {wanted} is not of whole numbers")));
            }
        } else if wanted == "page" {
            return Err(malformed("has no column page".to_owned()));
        }
        Ok(Column {
            index,
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

/// The header out of the key-value metadata.
fn header(name: &str, metadata: &ParquetMetaData) -> Result<Header, TraceError> {
    let file = metadata.file_metadata();
    let get = |key: &str| {
        let pairs = file.key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    let malformed = |kind, what| TraceError::new(kind, name, Place::Whole, what);
    let Some(version) = get(key::VERSION) else {
        let what = "is Parquet, but no trace of refault: its metadata has no refault.version";
        return Err(malformed(ErrorKind::Unsupported, what.to_owned()));
    };
    if version.parse() != Ok(VERSION) {
        let what = format!("is of version {version:?} of the native format; this program knows version {VERSION}");
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
    header.collapse = json::<Option<Collapse>>(name, key::COLLAPSE, get(key::COLLAPSE))?;
    header.source = get(key::SOURCE);
    header.recorded_on = get(key::RECORDED_ON);
    header.records_hint = u64::try_from(file.num_rows()).ok();
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

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;
    use std::sync::Arc;

    /// Found by fuzzing: the library asserts that these are not negative.
    #[test]
    fn a_column_outside_the_file() {
        let schema = parse_message_type(super::super::SCHEMA).expect("our own");
        let column = SchemaDescriptor::new(Arc::new(schema)).column(0);
        for (start, length) in [(-1, 10), (4, -1), (i64::MAX, 1)] {
            let builder = ColumnChunkMetaData::builder(column.clone());
            let chunk = builder.set_data_page_offset(start).set_total_compressed_size(length).build();
            assert!(check_chunk(&chunk.expect("consistent")).is_err(), "{start} {length}");
        }
    }
}
