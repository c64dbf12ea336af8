//! Lines of columns that the caller has described.

use crate::columns::{Columns, Field, Unit};
use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, MAX_OBJECTS, ObjectInfo, ObjectKind, Op, Record};
use crate::text::{LineFormat, LinePosition, is_names, other_separator, words};
use crate::units::{UnitDetector, unix_time_unit};
use std::collections::HashMap;

/// Longest name of an object, a task or a key, in bytes.
const MAX_NAME: usize = 4096;

pub(crate) struct ColumnLines {
    header: Header,
    columns: Columns,
    /// Pages of keys, numbers of objects and of tasks, each by name.
    keys: HashMap<Vec<u8>, u64>,
    objects: HashMap<Vec<u8>, u32>,
    tasks: HashMap<Vec<u8>, u32>,
    /// Time of the first record.
    start_ns: Option<u64>,
    has_filter: bool,
    /// Words that lines were passed over for before the first record, and in how many.
    passed: Vec<(String, u64)>,
    watch: UnitDetector,
}

/// Words that are counted.
const MOST_WORDS: usize = 8;

/// Times that a line may say that its access is made.
const MOST_TIMES: u64 = 1 << 20;

/// A time as it is written: the number before the point, how many digits it has behind that, zeros
/// at the end left out, and in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct LineTime {
    whole: u64,
    decimals: u32,
    pub(super) ns: u64,
}

/// Parts of a line that were read.
#[derive(Default)]
struct Line {
    time: Option<LineTime>,
    write: bool,
    /// A page by its name.
    key: Option<u64>,
    offset: Option<(u64, Option<u32>)>,
    size: Option<(u64, Option<u32>)>,
    /// Names of the object, one behind the other.
    object: Vec<u8>,
    task: u32,
    /// Times that the access is made, where a field says it.
    count: Option<u64>,
}

impl ColumnLines {
    pub(crate) fn new(columns: Columns, opts: &OpenOptions) -> Self {
        let has_object = columns.fields.contains(&Field::Object);
        let mut header = match has_object {
            true => Header::new(Format::Columns),
            false => Header::with_object(Format::Columns, "blocks", ObjectKind::File),
        };
        header.page_size = opts.page_size;
        header.seen = columns.seen;
        let is_filter = |f: &Field| matches!(f, Field::Is(_) | Field::Rwbs | Field::Op { .. });
        let has_filter = columns.fields.iter().any(is_filter);
        let (keys, objects, tasks) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (passed, watch) = (Vec::new(), UnitDetector::new(Format::Columns, opts));
        Self { header, columns, keys, objects, tasks, start_ns: None, has_filter, passed, watch }
    }

    /// Fields of a line; `None`: a field says that the line is to be passed over.
    fn fields<'l>(&self, line: &'l [u8], at: &LinePosition<'_>) -> Result<Option<Vec<&'l [u8]>>, TraceError> {
        let unquoted = |field: &'l [u8]| {
            let field = field.trim_ascii();
            field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field)
        };
        let matched = self.columns.pattern.as_ref().map(|pattern| pattern.fields(line));
        let found: Vec<&[u8]> = match self.columns.separator {
            _ if matched == Some(None) => return Ok(None),
            None if matched.is_some() => matched.flatten().unwrap_or_default(),
            None => words(line).collect(),
            Some(separator) => line.split(|b| *b == separator).map(unquoted).collect(),
        };
        // Lines of another kind may have another number of fields.
        if self.has_filter && self.columns.fields.iter().zip(&found).any(|(field, text)| passes_over(field, text)) {
            return Ok(None);
        }
        let wanted = self.columns.fields.len();
        let has_rest = self.columns.fields.last() == Some(&Field::Rest);
        match (found.len(), has_rest) {
            (n, false) if n == wanted => Ok(Some(found)),
            (n, true) if n + 1 >= wanted => Ok(Some(found)),
            // A filter that the line does not reach.
            (n, _) if self.columns.fields.iter().skip(n).any(|f| matches!(f, Field::Is(_))) => Ok(None),
            (n, _) => {
                let at_least = if has_rest { "at least " } else { "" };
                let fields = if n == 1 { "field" } else { "fields" };
                let wanted = wanted - usize::from(has_rest);
                let error = at.error(format!("{n} {fields} instead of {at_least}{wanted}"));
                Err(match other_separator(line, self.columns.separator, wanted, has_rest) {
                    Some(separator) => error.with_advice(&format!("--separator {separator} finds {wanted}")),
                    None => error,
                })
            }
        }
    }

    /// Whether every field that is a number or a kind holds a name, as in the line on top of a
    /// table; one alone is damage.
    fn has_names(&self, found: &[&[u8]], at: &LinePosition<'_>) -> bool {
        let is_name = |(field, text): (&Field, &&[u8])| match field {
            Field::Time(unit) => Some(time(text, *unit).is_err()),
            Field::Count => Some(at.decimal(text, "").is_err()),
            Field::Offset(unit) | Field::Size(unit) => Some(number(text, *unit, "", at).is_err()),
            Field::Op { reads, writes, .. } => Some(kind(text, reads, writes).is_err()),
            _ => None,
        };
        let all: Vec<bool> = self.columns.fields.iter().zip(found).filter_map(is_name).collect();
        !all.is_empty() && all.iter().all(|is_name| *is_name)
    }

    /// Counts a line that is passed over, by the word for which it is.
    fn count_passed(&mut self, text: &[u8]) {
        if self.columns.pattern.as_ref().is_some_and(|pattern| pattern.fields(text).is_none()) {
            // The first of the lines that do not match is shown.
            match self.passed.first_mut() {
                Some((_, lines)) => *lines += 1,
                None => self.passed.push((quote(text), 1)),
            }
            return;
        }
        let found: Vec<&[u8]> = match self.columns.separator {
            None => words(text).collect(),
            Some(separator) => text.split(|b| *b == separator).map(<[u8]>::trim_ascii).collect(),
        };
        let Some((_, word)) = self.columns.fields.iter().zip(found).find(|(field, text)| passes_over(field, text))
        else {
            return;
        };
        let word = quote(word);
        if let Some((_, lines)) = self.passed.iter_mut().find(|(known, _)| *known == word) {
            *lines += 1;
        } else if self.passed.len() < MOST_WORDS {
            self.passed.push((word, 1));
        }
    }

    /// Words for which every line so far was passed over, and the flag that reads most of these
    /// lines.
    fn passed_over(&self) -> Option<String> {
        let (word, lines) = self.passed.iter().max_by_key(|(_, lines)| *lines)?;
        if let Some(pattern) = &self.columns.pattern {
            let expression = pattern.text();
            return Some(format!("{lines} of its lines do not match {expression}; the first of them is {word}"));
        }
        let all: Vec<_> = self.passed.iter().map(|(word, lines)| format!("{lines} with {word}")).collect();
        let is = self.columns.fields.iter().find_map(|field| match field {
            Field::Is(wanted) => Some(wanted),
            _ => None,
        });
        let all = all.join(", ");
        let Some(wanted) = is else { return Some(format!("its lines are passed over: {all}")) };
        let plain = word.trim_matches('"');
        // Words that are cut or have bytes that cannot be typed are no flag.
        if plain.contains('\\') || plain.ends_with("...") {
            return Some(format!("lines with {wanted} are read, and it has {all}"));
        }
        let fields = self.columns.fields.iter().map(|field| match field {
            Field::Is(_) => Field::Is(plain.to_owned()),
            _ => field.clone(),
        });
        let how = Columns { fields: fields.collect(), ..self.columns.clone() }.flags();
        Some(format!("lines with {wanted} are read, and it has {all}; {how} reads lines with {plain}"))
    }

    /// A line on top that is taken for names of columns: said, for it may be a damaged one.
    fn note_names(&mut self, text: &[u8]) {
        self.header.remarks.push(format!(
            "line {} is taken for names of columns ({}); --skip-lines {} passes over it without a word",
            self.columns.skip_lines + 1,
            quote(text),
            self.columns.skip_lines + 1
        ));
    }

    /// Reads a field into the line.
    fn take(&mut self, field: &Field, text: &[u8], line: &mut Line, at: &LinePosition<'_>) -> Result<(), TraceError> {
        match field {
            Field::Skip | Field::Rest | Field::Is(_) => {}
            Field::Time(unit) => line.time = Some(time(text, *unit).map_err(|why| at.error(why))?),
            Field::Op { reads, writes, .. } => line.write = kind(text, reads, writes).map_err(|why| at.error(why))?,
            Field::Rwbs => line.write = text.contains(&b'W'),
            Field::Offset(unit) => line.offset = Some(number(text, *unit, "offset", at)?),
            Field::Size(unit) => line.size = Some(number(text, *unit, "size", at)?),
            Field::Key => line.key = Some(self.key(text, at)?),
            Field::Object => {
                bounded(text, "object", at)?;
                if !line.object.is_empty() {
                    line.object.push(b'.');
                }
                line.object.extend_from_slice(text);
            }
            Field::Task => line.task = self.task(text, at)?,
            Field::Count => line.count = Some(at.decimal(text, "count")?),
        }
        Ok(())
    }

    fn key(&mut self, name: &[u8], at: &LinePosition<'_>) -> Result<u64, TraceError> {
        bounded(name, "key", at)?;
        if let Some(page) = self.keys.get(name) {
            return Ok(*page);
        }
        let page = self.keys.len() as u64;
        self.keys.insert(name.to_owned(), page);
        Ok(page)
    }

    fn object(&mut self, name: &[u8], at: &LinePosition<'_>) -> Result<u32, TraceError> {
        if name.is_empty() {
            return Ok(0);
        }
        bounded(name, "object", at)?;
        if let Some(object) = self.objects.get(name) {
            return Ok(*object);
        }
        let object = self.header.objects.len() as u32;
        if object >= MAX_OBJECTS {
            return Err(at.error(format!("more than {MAX_OBJECTS} objects")));
        }
        self.header.objects.push(ObjectInfo::new(String::from_utf8_lossy(name).into_owned(), ObjectKind::File));
        self.objects.insert(name.to_owned(), object);
        Ok(object)
    }

    fn task(&mut self, name: &[u8], at: &LinePosition<'_>) -> Result<u32, TraceError> {
        bounded(name, "task", at)?;
        let next = self.tasks.len() as u32;
        if next >= MAX_OBJECTS && !self.tasks.contains_key(name) {
            return Err(at.error(format!("more than {MAX_OBJECTS} tasks")));
        }
        Ok(*self.tasks.entry(name.to_owned()).or_insert(next))
    }

    /// Shows the numbers of a line to whom judges their units.
    fn show(&mut self, line: &Line) {
        match (line.offset, line.size) {
            (Some((number, _)), Some((count, _))) => {
                self.watch.range(number, count);
                self.watch.word(number, count);
            }
            (Some((number, _)), None) => self.watch.block(number),
            (None, _) => self.watch.named(),
        }
        if let Some(LineTime { whole, decimals, ns }) = line.time {
            self.watch.time(whole);
            self.watch.clock(ns, decimals);
        }
    }

    /// Advice on a time that is beyond its unit.
    fn with_other_time(&self, error: TraceError, found: &[&[u8]]) -> TraceError {
        let beyond = self.columns.fields.iter().zip(found).find_map(|(field, text)| match field {
            Field::Time(unit) if time(text, *unit).is_err() => Some((parts_of_time(text)?.0, *unit)),
            _ => None,
        });
        let dated = beyond.and_then(|(whole, unit)| Some((unix_time_unit(whole.parse().ok()?)?, unit)));
        match dated {
            // Advice that says what was said would fail again.
            Some(((name, unit), said)) if unit != said => {
                let flags = self.columns.with_time(unit).flags();
                error.with_advice(&format!("it looks like {name}, which {flags} reads"))
            }
            _ => error,
        }
    }

    /// The pages of a line.
    fn pages(&self, line: &Line, at: &LinePosition<'_>) -> Result<(u64, u32), TraceError> {
        let page_size = self.header.page_size;
        let bytes = |(number, unit): (u64, Option<u32>)| match number.checked_mul(u64::from(unit.unwrap_or(page_size)))
        {
            Some(bytes) => Ok(bytes),
            None => Err(at.error(format!("{number} times {} bytes is beyond 64 bits", unit.unwrap_or(page_size)))),
        };
        let key = line.key.map(|page| (page, None));
        let offset = line.offset.or(key).expect("every description has a place");
        let size = line.size.map(bytes).transpose()?;
        let range = match (offset, size) {
            // Numbers of pages need not fit as bytes.
            ((page, None), size) => {
                let pages = size.map_or(1, |bytes| bytes.div_ceil(u64::from(page_size)).max(1));
                pages::of_blocks(page, pages, None, page_size)
            }
            (offset, size) => pages::of_bytes(bytes(offset)?, size.unwrap_or(1), page_size),
        };
        range.map_err(|what| at.error(what))
    }
}

impl LineFormat for ColumnLines {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
        self.header.passed_over = if self.start_ns.is_none() { self.passed_over() } else { None };
    }

    fn line(&mut self, text: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let skipped = self.columns.skip_lines;
        if at.number() <= skipped || text.trim_ascii().is_empty() || text.starts_with(b"#") {
            return Ok(());
        }
        let is_header = at.number() == skipped + 1 && is_names(text);
        let found = match self.fields(text, at) {
            Ok(Some(found)) if !(is_header && self.has_names(&found, at)) => found,
            Ok(None) => {
                if self.start_ns.is_none() {
                    self.count_passed(text);
                }
                return Ok(());
            }
            Err(error) if !is_header => return Err(error),
            _ => {
                self.note_names(text);
                return Ok(());
            }
        };
        let mut line = Line::default();
        let columns = std::mem::take(&mut self.columns.fields);
        let mut both = columns.iter().zip(&found);
        let taken = both.try_for_each(|(field, text)| self.take(field, text, &mut line, at));
        self.columns.fields = columns;
        taken.map_err(|error| self.with_other_time(error, &found))?;
        let times = line.count.unwrap_or(1);
        if times > MOST_TIMES {
            return Err(at.error(format!("a count of {times} is more than the {MOST_TIMES} that are believable")));
        }
        if times == 0 {
            return Ok(());
        }
        let (page, pages) = self.pages(&line, at)?;
        let object = self.object(&line.object, at)?;
        self.show(&line);
        let time_ns = line.time.map_or(0, |time| time.ns);
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        let record = Record {
            time_ns: time_ns.saturating_sub(start_ns),
            object,
            task: line.task,
            pages,
            ..Record::touch(page, Op { write: line.write, via: None })
        };
        out.extend(std::iter::repeat_n(record, times as usize));
        Ok(())
    }
}

/// Whether a line is to be passed over for what stands in this field.
fn passes_over(field: &Field, text: &[u8]) -> bool {
    match field {
        Field::Is(word) => text != word.as_bytes(),
        Field::Rwbs => !text.iter().any(|b| matches!(b, b'R' | b'W')),
        Field::Op { reads, writes, passed } => {
            let is_other = passed.iter().any(|word| word == "*") && kind(text, reads, writes).is_err();
            is_other || is_one_of(text, passed)
        }
        _ => false,
    }
}

fn is_one_of(text: &[u8], words: &[String]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether it is a write.
fn kind(text: &[u8], reads: &[String], writes: &[String]) -> Result<bool, String> {
    match (is_one_of(text, reads), is_one_of(text, writes)) {
        (true, _) => Ok(false),
        (_, true) => Ok(true),
        _ => Err(format!(
            "{} is no word for a read ({}) or a write ({})",
            quote(text),
            reads.join(", "),
            writes.join(", ")
        )),
    }
}

/// A number and the bytes that it counts; none: pages.
fn number(text: &[u8], unit: Unit, what: &str, at: &LinePosition<'_>) -> Result<(u64, Option<u32>), TraceError> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"));
    let number = match (digits, unit) {
        (Some(digits), _) => at.hex(digits, what)?,
        (None, Unit::Hex(_)) => at.hex(text, what)?,
        (None, _) => at.decimal(text, what)?,
    };
    Ok(match unit {
        Unit::Pages => (number, None),
        Unit::Bytes(bytes) | Unit::Hex(bytes) => (number, Some(bytes)),
    })
}

/// The digits of a time before and behind its point, if it is a number.
fn parts_of_time(text: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    (!whole.is_empty() && is_number(whole) && is_number(fraction)).then_some((whole, fraction))
}

/// A time with or without a fraction, in units of `unit_ns` nanoseconds.
pub(super) fn time(text: &[u8], unit_ns: u64) -> Result<LineTime, String> {
    let no_time = || format!("time {} is not a number", quote(text));
    let (whole, fraction) = parts_of_time(text).ok_or_else(no_time)?;
    let decimals = fraction.trim_end_matches('0').len() as u32;
    let fraction = &fraction[..fraction.len().min(9)];
    let part = match fraction {
        "" => 0,
        digits => {
            let scale = 10u128.pow(digits.len() as u32);
            (u128::from(digits.parse::<u64>().map_err(|_| no_time())?) * u128::from(unit_ns) / scale) as u64
        }
    };
    let beyond = || format!("time {} is beyond 64 bits of nanoseconds", quote(text));
    let whole = whole.parse::<u64>().map_err(|_| beyond())?;
    let ns = whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(part)).ok_or_else(beyond)?;
    Ok(LineTime { whole, decimals, ns })
}

fn bounded(name: &[u8], what: &str, at: &LinePosition<'_>) -> Result<(), TraceError> {
    match name.len() {
        0 => Err(at.error(format!("{what} is empty"))),
        1..=MAX_NAME => Ok(()),
        _ => Err(at.error(format!("{what} is longer than {MAX_NAME} bytes"))),
    }
}
