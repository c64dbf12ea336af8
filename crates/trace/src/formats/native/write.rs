//! Writing the native format, all of it or nothing.

use super::sums::{Summed, Sums};
use super::{COLUMNS, SCHEMA, VERSION, key, op_code};
use crate::atomic::{AtomicFile, PartFile, WholeFile};
use crate::error::{ErrorKind, Place, TraceError, plain};
use crate::record::{Header, MAX_PAGES_PER_RECORD, Record, RecordKind};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: they are held in memory before they are written.
const GROUP_ROWS: usize = 1 << 20;

/// Rows a page of a column: large enough to compress, small enough to decode in cache.
const PAGE_ROWS: usize = 1 << 16;

/// The columns of a row group under construction.
#[derive(Default)]
struct Columns {
    time_ns: Vec<i64>,
    task: Vec<i32>,
    memcg: Vec<i32>,
    object: Vec<i32>,
    page: Vec<i64>,
    pages: Vec<i32>,
    op: Vec<i32>,
}

impl Columns {
    /// Parquet has no unsigned types of its own: the bits are stored, the schema says unsigned.
    fn push(&mut self, record: &Record) {
        self.time_ns.push(record.time_ns as i64);
        self.task.push(record.task as i32);
        self.memcg.push(record.memcg as i32);
        self.object.push(record.object as i32);
        self.page.push(record.page as i64);
        self.pages.push(record.pages as i32);
        self.op.push(op_code(record.op, record.kind));
    }

    fn clear(&mut self) {
        let Self { time_ns, task, memcg, object, page, pages, op } = self;
        time_ns.clear();
        page.clear();
        for column in [task, memcg, object, pages, op] {
            column.clear();
        }
    }
}

/// Writes a trace in the native format.
///
/// The file appears under its name when [`finish`](Self::finish) succeeds; until then, and after
/// any error, nothing is there.
pub struct NativeWriter<F: WholeFile = AtomicFile> {
    name: String,
    file: SerializedFileWriter<Summed<F>>,
    columns: Columns,
    /// Rows and checksum of each row group that was written.
    groups: Vec<(u64, u32)>,
    last: Option<Record>,
    rows: u64,
    /// There is a record that is more than a plain touch.
    acts: bool,
}

impl NativeWriter {
    /// Starts a file.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        Self::start(path, AtomicFile::create(path)?)
    }

    /// Starts a file that nobody else may read.
    pub fn create_private(path: &Path) -> Result<Self, TraceError> {
        Self::start(path, AtomicFile::create_private(path)?)
    }

    /// Starts a file that is made of `from`: who may not read that may not read this.
    pub fn create_like(path: &Path, from: &Path) -> Result<Self, TraceError> {
        Self::start(path, AtomicFile::create_like(path, from)?)
    }
}

impl NativeWriter<PartFile> {
    /// Starts a file that stays as `PATH.part`, readable up to the last
    /// [`checkpoint`](Self::checkpoint), whatever ends the writer before it finishes.
    pub fn create_part(path: &Path) -> Result<Self, TraceError> {
        Self::start(path, PartFile::create(path)?)
    }

    /// Writes what there is, and a footer behind it: the file can be read from now on. The next
    /// rows are written behind that footer, which nothing refers to then.
    pub fn checkpoint(&mut self, header: &Header) -> Result<(), TraceError> {
        if let Some(last) = self.last.take() {
            self.push(&last)?;
        }
        if !self.columns.op.is_empty() {
            self.flush()?;
        }
        if self.rows == 0 {
            return Ok(());
        }
        let pairs = metadata(header, self.acts, &self.groups);
        let pairs = pairs.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect();
        let by = self.file.properties().created_by().to_owned();
        let schema = Arc::new(self.file.schema_descr().clone());
        let about = FileMetaData::new(1, self.rows as i64, Some(by), Some(pairs), schema, None);
        let groups = self.file.flushed_row_groups().to_vec();
        let mut footer = Vec::new();
        let written = ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(about, groups)).finish();
        written.map_err(|e| failure(&self.name, &e))?;
        let done = self.file.write_all(&footer).and_then(|()| self.file.flush());
        done.map_err(|e| TraceError::io(&*self.name, "cannot be written", &e))
    }

    /// Bytes that were written so far.
    pub fn bytes_written(&self) -> u64 {
        self.file.bytes_written() as u64
    }
}

impl<F: WholeFile> NativeWriter<F> {
    fn start(path: &Path, file: F) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let schema = parse_message_type(SCHEMA).map_err(|e| failure(&name, &e))?;
        let file = SerializedFileWriter::new(Summed::new(file), Arc::new(schema), Arc::new(properties(&name)?))
            .map_err(|e| failure(&name, &e))?;
        Ok(Self { name, file, columns: Columns::default(), groups: Vec::new(), last: None, rows: 0, acts: false })
    }

    /// Appends records. Touches of consecutive pages become one row when nothing else differs.
    pub fn write(&mut self, records: &[Record]) -> Result<(), TraceError> {
        for record in records {
            match &mut self.last {
                Some(last) if follows(last, record) => last.pages += record.pages,
                last => {
                    if let Some(done) = last.replace(*record) {
                        self.push(&done)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, record: &Record) -> Result<(), TraceError> {
        self.acts |= record.kind != RecordKind::Touch;
        self.columns.push(record);
        if self.columns.op.len() == GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let Self { file, columns, name, rows, groups, .. } = self;
        let written = columns.op.len() as u64;
        *rows += written;
        let sum = write_group(file, columns).map_err(|e| failure(name, &e))?;
        groups.push((written, sum));
        columns.clear();
        Ok(())
    }

    /// Writes the header and makes the file appear; returns the number of rows.
    ///
    /// A trace without accesses is an error, as it is when it is read.
    pub fn finish(mut self, header: &Header) -> Result<u64, TraceError> {
        if let Some(last) = self.last.take() {
            self.push(&last)?;
        }
        if !self.columns.op.is_empty() {
            self.flush()?;
        }
        if self.rows == 0 {
            let what = "there is no access to write";
            return Err(TraceError::new(ErrorKind::Empty, self.name, Place::Whole, what));
        }
        for (key, value) in metadata(header, self.acts, &self.groups) {
            self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let file = self.file.into_inner().map_err(|e| failure(&self.name, &e))?;
        file.file.commit()?;
        Ok(self.rows)
    }
}

/// Whether `next` may be merged into `last` without a loss.
fn follows(last: &Record, next: &Record) -> bool {
    let same = |r: &Record| (r.time_ns, r.task, r.memcg, r.object, r.op, r.kind);
    same(last) == same(next)
        // Only the first of several misses in one row would be left.
        && next.kind != RecordKind::Miss
        && last.page.checked_add(u64::from(last.pages)) == Some(next.page)
        && last.pages <= MAX_PAGES_PER_RECORD.saturating_sub(next.pages)
}

fn failure(name: &str, error: &ParquetError) -> TraceError {
    let why = match error {
        ParquetError::External(e) => e.to_string(),
        other => other.to_string(),
    };
    let what = format!("cannot be written: {}", plain(why));
    TraceError::new(ErrorKind::Io, name, Place::Whole, what)
}

fn properties(name: &str) -> Result<WriterProperties, TraceError> {
    let level = ZstdLevel::try_new(9).map_err(|e| failure(name, &e))?;
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("refault ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // Times and pages hardly repeat within a group: differences beat a dictionary.
    for column in [COLUMNS[0], COLUMNS[4]] {
        builder = builder
            .set_column_dictionary_enabled(ColumnPath::from(column), false)
            .set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
    }
    Ok(builder.build())
}

/// Writes a row group; its checksum.
fn write_group<F: WholeFile>(
    file: &mut SerializedFileWriter<Summed<F>>,
    columns: &Columns,
) -> Result<u32, ParquetError> {
    // Bytes still in the buffers are of what came before.
    file.flush()?;
    file.inner_mut().take();
    let mut group = file.next_row_group()?;
    wide(&mut group, &columns.time_ns)?;
    narrow(&mut group, &columns.task)?;
    narrow(&mut group, &columns.memcg)?;
    narrow(&mut group, &columns.object)?;
    wide(&mut group, &columns.page)?;
    narrow(&mut group, &columns.pages)?;
    narrow(&mut group, &columns.op)?;
    group.close()?;
    file.flush()?;
    Ok(file.inner_mut().take())
}

type Group<'a, F> = SerializedRowGroupWriter<'a, Summed<F>>;

fn wide<F: WholeFile>(group: &mut Group<'_, F>, values: &[i64]) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".to_owned()));
    };
    column.typed::<Int64Type>().write_batch(values, None, None)?;
    column.close()
}

fn narrow<F: WholeFile>(group: &mut Group<'_, F>, values: &[i32]) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".to_owned()));
    };
    column.typed::<Int32Type>().write_batch(values, None, None)?;
    column.close()
}

/// The key-value metadata of a header.
fn metadata(header: &Header, acts: bool, groups: &[(u64, u32)]) -> Vec<(&'static str, String)> {
    // Lists of plain structs and strings always have a JSON form.
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let mut pairs = vec![
        (key::VERSION, if acts { VERSION } else { 1 }.to_string()),
        (key::PAGE_SIZE, header.page_size.to_string()),
        (key::OBJECTS, json(serde_json::to_string(&header.objects))),
    ];
    for (key, names) in [(key::TASKS, &header.tasks), (key::MEMCGS, &header.memcgs)] {
        if !names.is_empty() {
            pairs.push((key, json(serde_json::to_string(names))));
        }
    }
    for (key, text) in [(key::SOURCE, &header.source), (key::RECORDED_ON, &header.recorded_on)] {
        pairs.extend(text.iter().map(|text| (key, text.clone())));
    }
    if let Some(collapse) = &header.collapse {
        pairs.push((key::COLLAPSE, json(serde_json::to_string(collapse))));
    }
    if !header.doubts.is_empty() {
        pairs.push((key::DOUBTS, json(serde_json::to_string(&header.doubts))));
    }
    if let Some(seen) = &header.seen {
        pairs.push((key::SEEN, json(serde_json::to_string(seen))));
    }
    if let Some(recording) = &header.recording {
        pairs.push((key::RECORDING, json(serde_json::to_string(recording))));
    }
    pairs.push(Sums::pair(groups, &pairs));
    pairs
}
