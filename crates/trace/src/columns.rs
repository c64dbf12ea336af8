//! Columns of text, as a person describes them: which field is the time, the kind of access, the
//! place and the size, and in which units. Formats of others that are plain columns are such
//! descriptions with a name.

use crate::error::TraceError;
use crate::line_pattern::LinePattern;
use crate::seen::Seen;
use std::str::FromStr;

/// A description of columns: `time:us,object,op=R|W,offset:bytes,size:512`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Meaning of each field of a line, in their order.
    pub(crate) fields: Vec<Field>,
    /// Byte between fields; `None`: any number of spaces and tabs.
    pub(crate) separator: Option<u8>,
    /// Regular expression whose groups fields are, in the place of a separator.
    pub(crate) pattern: Option<LinePattern>,
    /// Lines at the front that are not looked at.
    pub(crate) skip_lines: u64,
    /// Units that are not in doubt.
    pub(crate) sure: SureUnits,
    /// Whether places are addresses of memory, and not places on a disk.
    pub(crate) is_memory: bool,
    /// Accesses that such a trace has, where its format says it.
    pub(crate) seen: Option<Seen>,
}

/// Units that are meant as they are said, whatever the numbers look like: `offset:512!`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SureUnits {
    pub(crate) place: bool,
    pub(crate) size: bool,
    pub(crate) time: bool,
}

/// Meaning of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Nothing that is needed (`_`).
    Skip,
    /// This field and all that follow, however many (`*`).
    Rest,
    /// A time, in units of this many nanoseconds; a fraction is read, too.
    Time(u64),
    /// The kind of access, by words: of reads, of writes, and of lines to pass over (`*`: all
    /// others).
    Op { reads: Vec<String>, writes: Vec<String>, passed: Vec<String> },
    /// Flags of block I/O, as blkparse prints them: with an `R` a read, with a `W` a write, others
    /// are passed over.
    Rwbs,
    /// Lines with another word here are passed over.
    Is(String),
    /// The place of an access in its object.
    Offset(Unit),
    /// Its length.
    Size(Unit),
    /// A name in place of a number, such as the name of an object of a cache: each name is a page.
    Key,
    /// Number of times that the access is made; 0 is none.
    Count,
    /// The object (file, disk, volume) by its name.
    Object,
    /// The task by its name or number.
    Task,
}

/// Meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Units of this many bytes.
    Bytes(u32),
    /// Units of this many bytes, in hexadecimal digits, with `0x` or without.
    Hex(u32),
    /// Pages.
    Pages,
}

/// A format with a reader of its own as columns, for files that differ from it in what is between
/// fields or on top.
pub(crate) const MSR: &str = "time:100ns,object,object,op=Read|Write,offset:bytes,size:bytes,_";
pub(crate) const MSR_SECONDS: &str = "time:s,object,object,op=Read|Write,offset:bytes,size:bytes,_";

impl Columns {
    /// Columns that begin after `skip_lines` lines. Separator: `space` for any number of blanks,
    /// one character, or `regex:` with a regular expression whose groups the columns are.
    pub fn new(fields: &str, separator: &str, skip_lines: u64) -> Result<Columns, TraceError> {
        let mut sure = SureUnits::default();
        let fields = fields.split(',').map(|text| sure_field(text.trim(), &mut sure)).collect::<Result<Vec<_>, _>>()?;
        let (between, pattern) = parts(separator, &fields)?;
        let columns = Columns { fields, separator: between, pattern, skip_lines, sure, is_memory: false, seen: None };
        columns.check().map(|()| columns)
    }

    /// The same columns with another separator, or that begin after other lines.
    pub fn with(self, separator: Option<&str>, skip_lines: Option<u64>) -> Result<Columns, TraceError> {
        let (separator, pattern) = match separator {
            Some(text) => parts(text, &self.fields)?,
            None => (self.separator, self.pattern.clone()),
        };
        Ok(Columns { separator, pattern, skip_lines: skip_lines.unwrap_or(self.skip_lines), ..self })
    }

    /// The same columns, with times in units of `unit_ns` nanoseconds.
    pub(crate) fn with_time(&self, unit_ns: u64) -> Columns {
        let fields = self.fields.iter().map(|field| match field {
            Field::Time(_) => Field::Time(unit_ns),
            other => other.clone(),
        });
        Columns { fields: fields.collect(), ..self.clone() }
    }

    fn check(&self) -> Result<(), TraceError> {
        let count = |is: fn(&Field) -> bool| self.fields.iter().filter(|field| is(field)).count();
        let error = |what: &str| Err(TraceError::usage("columns", what));
        let places = count(|f| matches!(f, Field::Offset(_) | Field::Key));
        let single: [fn(&Field) -> bool; 5] = [
            |f| matches!(f, Field::Time(_)),
            |f| matches!(f, Field::Op { .. } | Field::Rwbs),
            |f| matches!(f, Field::Size(_)),
            |f| matches!(f, Field::Task),
            |f| matches!(f, Field::Count),
        ];
        let rest = self.fields.iter().position(|f| *f == Field::Rest);
        match () {
            () if places != 1 => error("one of them is the place: offset:UNIT, page or key"),
            () if count(|f| matches!(f, Field::Key | Field::Size(_))) > 1 => {
                error("a key is a page, whatever its size: leave the size out, with _ in its place")
            }
            () if single.iter().any(|is| count(*is) > 1) => {
                error("each of time, op, size, task and count is there once")
            }
            () if rest.is_some_and(|at| at + 1 != self.fields.len()) => {
                error("* is the rest of a line, so it is the last")
            }
            () => Ok(()),
        }
    }
}

impl Field {
    /// Name of the group that a column is; none: it needs no text.
    fn group(&self) -> Option<&'static str> {
        match self {
            Field::Skip | Field::Rest => None,
            Field::Time(_) => Some("time"),
            Field::Op { .. } => Some("op"),
            Field::Rwbs => Some("rwbs"),
            Field::Is(_) => Some("is"),
            Field::Offset(Unit::Pages) => Some("page"),
            Field::Offset(_) => Some("offset"),
            Field::Size(_) => Some("size"),
            Field::Key => Some("key"),
            Field::Count => Some("count"),
            Field::Object => Some("object"),
            Field::Task => Some("task"),
        }
    }
}

/// Byte between fields, or the expression whose groups they are.
fn parts(separator: &str, fields: &[Field]) -> Result<(Option<u8>, Option<LinePattern>), TraceError> {
    match (separator, separator.as_bytes()) {
        ("space", _) => Ok((None, None)),
        ("tab", _) => Ok((Some(b'\t'), None)),
        (_, [byte]) if byte.is_ascii() && *byte != b'\n' => Ok((Some(*byte), None)),
        _ => match separator.strip_prefix("regex:") {
            Some(text) => {
                Ok((None, Some(LinePattern::new(text, &fields.iter().map(Field::group).collect::<Vec<_>>())?)))
            }
            None => {
                let what = "is neither one character nor space, tab or regex:EXPRESSION";
                Err(TraceError::usage(format!("separator {separator:?}"), what))
            }
        },
    }
}

impl FromStr for Columns {
    type Err = TraceError;

    /// Columns between commas.
    fn from_str(fields: &str) -> Result<Columns, TraceError> {
        Columns::new(fields, ",", 0)
    }
}

/// One field; a `!` behind its unit says that the unit is meant.
fn sure_field(text: &str, sure: &mut SureUnits) -> Result<Field, TraceError> {
    let Some(bare) = text.strip_suffix('!').filter(|bare| !bare.starts_with("op=") && !bare.starts_with("is=")) else {
        return field(text);
    };
    let found = field(bare)?;
    match found {
        Field::Offset(_) => sure.place = true,
        Field::Size(_) => sure.size = true,
        Field::Time(_) => sure.time = true,
        _ => return Err(TraceError::usage(format!("column {text:?}"), "has a !, which is for a unit")),
    }
    Ok(found)
}

/// One field of a description.
fn field(text: &str) -> Result<Field, TraceError> {
    let error = |what: String| TraceError::usage(format!("column {text:?}"), what);
    let (name, unit) = text.split_once(':').map_or((text, None), |(name, unit)| (name, Some(unit)));
    let plain = |field: Field| match unit {
        None => Ok(field),
        Some(_) => Err(error(format!("has a unit, and {name} takes none"))),
    };
    if let Some(words) = text.strip_prefix("op=") {
        return op(words).map_err(error);
    }
    if let Some(word) = text.strip_prefix("is=").filter(|word| !word.is_empty()) {
        return Ok(Field::Is(word.to_owned()));
    }
    match name {
        "_" => plain(Field::Skip),
        "*" => plain(Field::Rest),
        "key" => plain(Field::Key),
        "object" => plain(Field::Object),
        "task" => plain(Field::Task),
        "count" => plain(Field::Count),
        "rwbs" => plain(Field::Rwbs),
        "page" => plain(Field::Offset(Unit::Pages)),
        "time" => time_unit(unit).map(Field::Time).map_err(error),
        "offset" => number_unit(unit).map(Field::Offset).map_err(error),
        "size" => number_unit(unit).map(Field::Size).map_err(error),
        _ => Err(error(
            "is not known; one of time:UNIT, op=READS|WRITES, rwbs, offset:UNIT, page, key, size:UNIT, count, object, \
             task, is=WORD, _ and *"
                .into(),
        )),
    }
}

fn op(words: &str) -> Result<Field, String> {
    let lists: Vec<Vec<String>> =
        words.split('|').map(|list| list.split('+').filter(|w| !w.is_empty()).map(str::to_owned).collect()).collect();
    let [reads, writes, passed] = match lists.as_slice() {
        [reads, writes] => [reads.clone(), writes.clone(), Vec::new()],
        [reads, writes, passed] => [reads.clone(), writes.clone(), passed.clone()],
        _ => {
            return Err(
                "needs the words of reads and of writes: op=R|W, or op=get+gets|set|delete, the last of which \
                         are passed over"
                    .into(),
            );
        }
    };
    let all: Vec<_> = [&reads, &writes, &passed].into_iter().flatten().map(|word| word.to_ascii_lowercase()).collect();
    let twice = all.iter().enumerate().find(|(n, word)| all[..*n].contains(word)).map(|(_, word)| word.clone());
    match twice {
        _ if reads.is_empty() && writes.is_empty() => Err("has no word for a read or a write".into()),
        _ if reads.iter().chain(&writes).any(|word| word == "*") => {
            Err("has * for reads or writes; it stands for all others, which are passed over: op=R|W|*".into())
        }
        Some(word) => Err(format!("has {word} twice, so that it does not say what a line with it is")),
        None => Ok(Field::Op { reads, writes, passed }),
    }
}

fn time_unit(unit: Option<&str>) -> Result<u64, String> {
    match unit {
        None => Err("needs its unit: ns, 100ns, us, ms or s, as in time:us".into()),
        Some("ns") => Ok(1),
        Some("100ns") => Ok(100),
        Some("us") => Ok(1000),
        Some("ms") => Ok(1_000_000),
        Some("s") => Ok(1_000_000_000),
        Some(unit) => Err(format!("has the unit {unit}; a time has ns, 100ns, us, ms or s")),
    }
}

fn number_unit(unit: Option<&str>) -> Result<Unit, String> {
    match unit {
        None => Err("needs its unit: bytes, hex, pages, or a number of bytes such as 512".into()),
        Some("bytes") => Ok(Unit::Bytes(1)),
        Some("hex") => Ok(Unit::Hex(1)),
        Some("pages") => Ok(Unit::Pages),
        Some(number) => match number.strip_prefix("hex").unwrap_or(number).parse() {
            Ok(bytes @ 1..) if number.starts_with("hex") => Ok(Unit::Hex(bytes)),
            Ok(bytes @ 1..) => Ok(Unit::Bytes(bytes)),
            _ => Err(format!("has the unit {number}; it is bytes, hex, pages, or a number of bytes such as 512")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_description_is_read() {
        for (name, ..) in Columns::all_named() {
            assert!(Columns::named(name).is_some(), "{name}");
        }
        assert_eq!(Columns::named("nothing"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, what) in [
            ("time,page", "needs its unit: ns, 100ns"),
            ("time!,page", "needs its unit: ns, 100ns"),
            ("time:s,key,size:bytes", "leave the size out"),
            ("size:512,key,_", "leave the size out"),
            ("time:s,size:bytes", "one of them is the place"),
            ("offset:bytes,key", "one of them is the place"),
            ("offset", "needs its unit"),
            ("offset:furlongs", "has the unit furlongs"),
            ("key,time:h", "a time has"),
            ("key,op=R", "the words of reads and of writes"),
            ("key,op=|", "no word for a read"),
            ("key,op=3|3", "has 3 twice"),
            ("key,op=r|w|d+R", "has r twice"),
            ("key,op=*|6", "has * for reads or writes"),
            ("key,key:bytes", "takes none"),
            ("key!", "has a !, which is for a unit"),
            ("offset:hex0", "has the unit hex0"),
            ("key,*,_", "it is the last"),
            ("key,task,task", "is there once"),
            ("key,speed", "is not known"),
        ] {
            let error = text.parse::<Columns>().unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(Columns::new("key", "ab", 0).is_err());
    }
}
