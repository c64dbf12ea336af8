//! Formats of tracepoints, as the kernel describes them in tracefs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted by custom.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's descriptions of its events.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
}

/// Where a field lies in the raw data of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventField {
    offset: usize,
    size: usize,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFormat {
    /// Its number, in the field `common_type` of its data.
    pub id: u16,
    fields: BTreeMap<String, EventField>,
    /// Bits of the flags that it prints.
    bits: BTreeMap<String, u64>,
}

impl Tracefs {
    /// Finds it, or takes that in a folder. The error says what to do.
    pub fn find(given: Option<&Path>) -> Result<Tracefs, String> {
        if let Some(root) = given {
            return Tracefs::at(root);
        }
        let root = PLACES.iter().map(Path::new).find(|root| {
            // Without rights the folder can be seen, but not what is in it.
            !matches!(fs::metadata(root.join("events")), Err(e) if e.kind() == io::ErrorKind::NotFound)
        });
        let Some(root) = root else {
            return Err("tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing".to_owned());
        };
        Tracefs::at(root)
    }

    /// Opens the tracefs in a folder.
    pub fn at(root: &Path) -> Result<Tracefs, String> {
        match fs::read_dir(root.join("events")) {
            Ok(_) => Ok(Tracefs { root: root.to_owned() }),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(format!(
                "{}: no right to read it; recording takes root, or the capabilities PERFMON, SYS_PTRACE, \
                 DAC_READ_SEARCH and IPC_LOCK: sudo refault record ...",
                root.display()
            )),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(format!(
                "{}: is no tracefs, there is no folder events in it: mount -t tracefs tracefs {}",
                root.display(),
                root.display()
            )),
            Err(e) => Err(format!("{}: cannot be read: {e}", root.join("events").display())),
        }
    }

    /// Its folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The format of an event such as `filemap/mm_filemap_get_pages`; none: this kernel does not
    /// have it.
    pub fn format(&self, event: &str) -> Result<Option<EventFormat>, String> {
        let path = self.root.join("events").join(event).join("format");
        match fs::read_to_string(&path) {
            Ok(text) => {
                EventFormat::parse(&text).map(Some).ok_or_else(|| format!("{}: is not understood", path.display()))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: cannot be read: {e}", path.display())),
        }
    }
}

impl EventFormat {
    /// Reads the text of a file `format`.
    pub fn parse(text: &str) -> Option<EventFormat> {
        let mut format = EventFormat::default();
        let mut numbered = false;
        for line in text.lines().map(str::trim) {
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
                numbered = true;
            } else if let Some(line) = line.strip_prefix("field:") {
                let mut parts = line.split(';').map(str::trim);
                let declared = parts.next()?;
                let name = declared.rsplit([' ', '*']).next()?;
                let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
                let field = EventField { offset: number("offset:")?, size: number("size:")? };
                format.fields.insert(name.to_owned(), field);
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.bits = bits(print);
            }
        }
        numbered.then_some(format)
    }

    /// The bit of that name, of the flags that the event prints.
    pub(crate) fn bit(&self, name: &str) -> Option<u64> {
        self.bits.get(name).copied()
    }

    /// The first of these names that is a field.
    pub(crate) fn name<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.fields.contains_key(*name))
    }

    /// The first of these names that is a field of a number.
    pub fn field(&self, names: &[&str]) -> Option<EventField> {
        let found = names.iter().find_map(|name| self.fields.get(*name))?;
        matches!(found.size, 1 | 2 | 4 | 8).then_some(*found)
    }
}

/// Names of bits, from pairs such as `{ (1 << 18), "WRITE" }`.
fn bits(print: &str) -> BTreeMap<String, u64> {
    let pair = |text: &str| {
        let (bit, rest) = text.split_once(',')?;
        let name = rest.trim().strip_prefix('"')?.split_once('"')?.0;
        let shift = bit.trim().trim_matches(['(', ')']).strip_prefix("1 <<")?.trim().parse().ok()?;
        Some((name.to_owned(), 1u64.checked_shl(shift)?))
    };
    print.split('{').filter_map(pair).collect()
}

impl EventField {
    /// Its value, in the order of bytes of this machine; none: the data are too short.
    #[inline]
    pub fn read(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: mm_filemap_get_pages
ID: 599
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long i_ino;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const char * name;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;

print fmt: \"ino=%lx\", REC->i_ino
";

    #[test]
    fn a_format_is_read() {
        let format = EventFormat::parse(TEXT).expect("a format");
        assert_eq!(format.id, 599);
        assert_eq!(format.field(&["ino", "i_ino"]), Some(EventField { offset: 8, size: 8 }));
        assert_eq!(format.field(&["name"]), Some(EventField { offset: 16, size: 8 }));
        assert_eq!(format.field(&["comm[16]"]), None, "no number");
        assert_eq!(format.field(&["other"]), None);
    }

    #[test]
    fn flags_have_names() {
        let print = "\"%s\", __print_flags(REC->ki_flags, \"|\", { ( int) (( __kernel_rwf_t)0x00000001), \"HIPRI\" }, \
                     { (1 << 17), \"DIRECT\" }, { (1 << 18), \"WRITE\" }, { (1 << 99), \"X\" })";
        let format = EventFormat::parse(&format!("ID: 1\nprint fmt: {print}")).expect("a format");
        assert_eq!((format.bit("WRITE"), format.bit("DIRECT")), (Some(1 << 18), Some(1 << 17)));
        assert_eq!((format.bit("HIPRI"), format.bit("X"), format.bit("READ")), (None, None, None));
    }

    #[test]
    fn broken_formats_are_none() {
        assert_eq!(EventFormat::parse("ID: many"), None);
        assert_eq!(EventFormat::parse("field:int a;\toffset:x;\tsize:4;"), None);
        assert_eq!(EventFormat::parse("field:int a;"), None);
        assert_eq!(EventFormat::parse(""), None);
    }

    #[test]
    fn a_field_beyond_the_data_is_none() {
        let raw = 0x0102_0304_0506_0708u64.to_ne_bytes();
        assert_eq!(EventField { offset: 0, size: 8 }.read(&raw), Some(0x0102_0304_0506_0708));
        assert_eq!(EventField { offset: 4, size: 8 }.read(&raw), None);
        assert_eq!(EventField { offset: usize::MAX, size: 8 }.read(&raw), None);
        assert_eq!(EventField { offset: 0, size: 3 }.read(&raw), None);
    }

    #[test]
    fn an_event_that_is_missing_is_no_error() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(Tracefs::at(dir.path()).is_err());
        std::fs::create_dir_all(dir.path().join("events/a/b")).expect("writable");
        let tracefs = Tracefs::at(dir.path()).expect("found");
        assert_eq!(tracefs.format("a/b"), Ok(None));
        std::fs::write(dir.path().join("events/a/b/format"), "none").expect("writable");
        assert!(tracefs.format("a/b").is_err());
    }
}
