//! History of a watcher: a file of JSON lines for the hour that goes on, and one of Parquet for
//! each that is over.
//!
//! A line is written whole or not at all, so that a watcher that is killed leaves its hour to the
//! next one. Parquet has a row for each group, time and size.

use crate::group::{Curve, PERCENT};
use crate::watched::GroupReport;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use refault_trace::AtomicFile;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Lines of a row group: they are held in memory before they are written.
const GROUP_LINES: usize = 500;

/// Milliseconds without history that are a gap.
const GAP_MS: u64 = 2 * 3_600_000;

/// Columns of the files of Parquet.
const SCHEMA: &str = "message watch {
    required int64 time_ms;
    required binary group (utf8);
    required binary name (utf8);
    required binary trust (utf8);
    required int64 one_in;
    required int64 usage_bytes;
    required int64 around_bytes;
    required int64 smallest_bytes;
    required double kernel_hit_rate;
    required double lost;
    required int64 percent;
    required int64 size_bytes;
    required double hit_rate;
    required double error;
    required double read_bytes_per_s;
}";

/// A line for a group.
pub fn line(group: &GroupReport, time_ms: u64) -> Value {
    json!({
        "time_ms": time_ms,
        "group": group.path,
        "name": group.name,
        "figures": group.figures,
        "around_bytes": group.around_bytes,
        "kernel_hit_rate": group.hit_rate_now,
        "kernel_read_bytes_per_s": group.read_bytes_per_s_now,
        "is_old": group.is_old,
        "curve": group.curve,
        "advice": group.advice,
    })
}

/// A folder of history.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
    keep: Duration,
    hour: String,
}

impl History {
    /// The history in a folder, which is made. Hours that another watcher left are packed.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn open(folder: &Path, keep: Duration) -> Result<History, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: cannot be made: {e}", folder.display()))?;
        let mut history = History { folder: folder.to_owned(), keep, hour: String::new() };
        history.turn(now_ms())?;
        Ok(history)
    }

    /// Adds lines for groups; the error of a disk that is full, which leaves a gap.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn add(&mut self, groups: &[GroupReport]) -> Result<Option<String>, String> {
        self.add_at(groups, now_ms())
    }

    fn add_at(&mut self, groups: &[GroupReport], time_ms: u64) -> Result<Option<String>, String> {
        if hour(time_ms) != self.hour {
            self.turn(time_ms)?;
        }
        append(&self.folder.join(format!("{}.jsonl", self.hour)), groups, time_ms)
    }

    /// Another hour begins: those that are over are packed, and old ones go. After a gap none goes
    /// before the next hour: a clock that jumped ahead is set right by then.
    fn turn(&mut self, time_ms: u64) -> Result<(), String> {
        let before = std::mem::replace(&mut self.hour, hour(time_ms));
        let oldest = hour(time_ms.saturating_sub(self.keep.as_millis() as u64));
        let failed = |e: std::io::Error| format!("{}: cannot be read: {e}", self.folder.display());
        let all: Vec<(PathBuf, String)> = fs::read_dir(&self.folder)
            .map_err(failed)?
            .flatten()
            .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
            .collect();
        let hours = || all.iter().filter_map(|(path, name)| Some((path, name.split_once('.')?)));
        let hours = || hours().filter(|(_, (of, _))| is_hour(of));
        let last = hour(time_ms.saturating_sub(GAP_MS));
        let is_gap = before < last && hours().all(|(_, (of, _))| of < last.as_str());
        for (path, (of, kind)) in hours() {
            let gone = |e: std::io::Error| format!("{}: cannot be removed: {e}", path.display());
            if of < oldest.as_str() && !is_gap {
                fs::remove_file(path).map_err(gone)?;
            } else if kind == "jsonl" && of != self.hour {
                mend(path).map_err(|e| format!("{}: cannot be mended: {e}", path.display()))?;
                pack(path, &self.free_name(of))?;
                fs::remove_file(path).map_err(gone)?;
            }
        }
        Ok(())
    }

    /// A name for an hour: a clock that was set back brings one again.
    fn free_name(&self, hour: &str) -> PathBuf {
        let name =
            |n: u32| self.folder.join(if n == 1 { format!("{hour}.parquet") } else { format!("{hour}.{n}.parquet") });
        (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1))
    }
}

/// Appends whole lines. A disk that is full is no end: what is said of it.
///
/// # Errors
/// A file that cannot be written.
pub fn append(path: &Path, groups: &[GroupReport], time_ms: u64) -> Result<Option<String>, String> {
    let failed = |e: std::io::Error| format!("{}: cannot be written: {e}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(failed)?;
    let before = mend(path).map_err(failed)?;
    let lines: String = groups.iter().map(|group| format!("{}\n", line(group, time_ms))).collect();
    let Err(e) = file.write_all(lines.as_bytes()) else { return Ok(None) };
    // No half of a line is left.
    file.set_len(before).map_err(failed)?;
    Ok(Some(format!("{}: history has a gap: {e}", path.display())))
}

/// Removes the half of a line that a watcher left which was killed while it wrote; the length.
fn mend(path: &Path) -> std::io::Result<u64> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut end = file.metadata()?.len();
    let mut byte = [0];
    while end > 0 {
        file.read_exact_at(&mut byte, end - 1)?;
        if byte == *b"\n" {
            break;
        }
        end -= 1;
    }
    file.set_len(end)?;
    Ok(end)
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// The hour of a time, of UTC: `2026-11-28T17`.
fn hour(time_ms: u64) -> String {
    let hours = time_ms / 3_600_000;
    // Years begin in March: the day that may lack is the last.
    let days = hours / 24 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}T{:02}", year + era * 400 + next, hours % 24)
}

/// Whether a name is that of an hour.
fn is_hour(name: &str) -> bool {
    let like = "0000-00-00T00";
    let is_like = |(a, b): (char, char)| if b == '0' { a.is_ascii_digit() } else { a == b };
    name.len() == like.len() && name.chars().zip(like.chars()).all(is_like)
}

/// Makes a file of Parquet of one of lines, whole or not at all.
fn pack(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |e: ParquetError| format!("{}: cannot be written: {e}", to.display());
    let schema = parse_message_type(SCHEMA).map_err(failed)?;
    let compression = Compression::ZSTD(ZstdLevel::try_new(3).map_err(failed)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let atomic = AtomicFile::create(to).map_err(|e| e.to_string())?;
    let mut file = SerializedFileWriter::new(atomic, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
    let lines = BufReader::new(File::open(from).map_err(|e| format!("{}: cannot be read: {e}", from.display()))?);
    let (mut rows, mut held) = (Rows::default(), 0);
    for (at, text) in lines.lines().enumerate() {
        let text = text.map_err(|e| format!("{}:{}: cannot be read: {e}", from.display(), at + 1))?;
        let read = serde_json::from_str(&text).map_err(|e| format!("is no line of history: {e}"));
        read.and_then(|value| rows.add(&value))
            .map_err(|e| format!("{}:{}: {e}; remove the line, or the file", from.display(), at + 1))?;
        held += 1;
        if held == GROUP_LINES {
            std::mem::take(&mut rows).write(file.next_row_group().map_err(failed)?).map_err(failed)?;
            held = 0;
        }
    }
    if held > 0 {
        rows.write(file.next_row_group().map_err(failed)?).map_err(failed)?;
    }
    let written = file.into_inner().map_err(failed)?;
    written.commit().map_err(|e| e.to_string())
}

/// Rows of a row group, by column: texts, whole numbers, numbers.
#[derive(Debug, Default)]
struct Rows {
    texts: [Vec<ByteArray>; 3],
    whole: [Vec<i64>; 7],
    numbers: [Vec<f64>; 5],
}

impl Rows {
    /// Adds a row for each size of a line.
    fn add(&mut self, of: &Value) -> Result<(), String> {
        let curve: Curve = serde_json::from_value(of["curve"].clone()).map_err(|e| format!("has no curve: {e}"))?;
        let text = |value: &Value| ByteArray::from(value.as_str().unwrap_or_default());
        let whole = |value: &Value| value.as_i64().unwrap_or(0);
        for (percent, point) in PERCENT.into_iter().zip(&curve.points) {
            let texts = [&of["group"], &of["name"], &of["advice"]["trust"]].map(text);
            let group = [&of["figures"]["usage_bytes"], &of["around_bytes"], &of["advice"]["smallest"]["bytes"]];
            let [usage, around, smallest] = group.map(whole);
            let (time, rate) = (whole(&of["time_ms"]), curve.one_in as i64);
            let error = point.error.unwrap_or(f64::NAN);
            let kernel = of["kernel_hit_rate"].as_f64().unwrap_or(f64::NAN);
            self.texts.iter_mut().zip(texts).for_each(|(column, value)| column.push(value));
            let all = [time, rate, usage, around, smallest, percent as i64, point.bytes as i64];
            self.whole.iter_mut().zip(all).for_each(|(column, value)| column.push(value));
            let all = [kernel, curve.lost, point.hit_rate, error, point.read_bytes_per_s];
            self.numbers.iter_mut().zip(all).for_each(|(column, value)| column.push(value));
        }
        Ok(())
    }

    /// Writes a row group, its columns in the order of the schema.
    fn write<F: Write + Send>(self, mut group: SerializedRowGroupWriter<'_, F>) -> Result<(), ParquetError> {
        let Rows { texts: [path, name, trust], whole, numbers: [kernel, lost, hits, error, reads] } = self;
        let [time, rate, usage, around, smallest, percent, size] = whole;
        put::<Int64Type, F>(&mut group, &time)?;
        for text in [path, name, trust] {
            put::<ByteArrayType, F>(&mut group, &text)?;
        }
        for number in [rate, usage, around, smallest] {
            put::<Int64Type, F>(&mut group, &number)?;
        }
        put::<DoubleType, F>(&mut group, &kernel)?;
        put::<DoubleType, F>(&mut group, &lost)?;
        put::<Int64Type, F>(&mut group, &percent)?;
        put::<Int64Type, F>(&mut group, &size)?;
        for number in [hits, error, reads] {
            put::<DoubleType, F>(&mut group, &number)?;
        }
        group.close().map(|_| ())
    }
}

fn put<T: DataType, F: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, F>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".to_owned()));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests;
