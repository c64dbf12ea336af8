//! Files that appear whole or not at all.

use crate::error::{ErrorKind, Place, TraceError};
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file under construction beside its destination; dropped without [`commit`](Self::commit), it
/// is gone.
#[derive(Debug)]
pub struct AtomicFile {
    writer: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will replace `path`, which must be absent or a regular file.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let fail = |what: &str| {
            let name = path.display().to_string();
            Err(TraceError::new(ErrorKind::Io, name, Place::Whole, what))
        };
        if path == Path::new("-") {
            return fail(
                "a file is written whole, which standard output is not; name a file, or ./- for one of that name",
            );
        }
        // A link stays a link: what it points to is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => return fail("is a directory; name a file to write"),
            Ok(found) if !found.is_file() => {
                return fail("is not a regular file; writing would replace it");
            }
            _ => {}
        }
        if path.file_name().is_none() {
            return fail("does not name a file");
        }
        let file =
            Self::beside(&path).map_err(|e| TraceError::io(path.display().to_string(), "cannot be written", &e))?;
        Ok(Self { writer: BufWriter::new(file), path })
    }

    fn beside(path: &Path) -> io::Result<NamedTempFile> {
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        tempfile::Builder::new()
            .prefix(".refault-")
            .suffix(".part")
            // What a plain creation would ask for; the umask has its say.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|e| io::Error::new(e.kind(), without_path(&e)))
    }

    /// Makes the file durable and visible under its name.
    pub fn commit(self) -> Result<(), TraceError> {
        let name = self.path.display().to_string();
        let fail = |e: &io::Error| TraceError::io(&*name, "cannot be written", e);
        let file = self.writer.into_inner().map_err(|e| fail(e.error()))?;
        file.as_file().sync_all().map_err(|e| fail(&e))?;
        file.persist(&self.path).map_err(|e| fail(&e.error))?;
        // The name is durable once the directory is; not every file system lets a directory be
        // synced.
        if let Some(parent) = self.path.parent() {
            let _ = File::open(parent).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }
}

/// A file that appears under its name when it is committed.
pub trait WholeFile: Write + Send {
    /// Makes the file durable and visible under its name.
    fn commit(self) -> Result<(), TraceError>;
}

impl WholeFile for AtomicFile {
    fn commit(self) -> Result<(), TraceError> {
        AtomicFile::commit(self)
    }
}

/// A file under construction as `PATH.part`, which stays when its writer ends before its time.
#[derive(Debug)]
pub struct PartFile {
    writer: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

impl PartFile {
    /// Starts a file that will replace `path`, which must be absent or a regular file. What an
    /// earlier writer left as `PATH.part` is an error: it may be all that there is of a recording.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        // The same demands on the name, and on its folder.
        drop(AtomicFile::create(path)?);
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::options().write(true).create_new(true).open(&part).map_err(|e| {
            let name = part.display().to_string();
            match e.kind() {
                io::ErrorKind::AlreadyExists => TraceError::new(
                    ErrorKind::Io,
                    name,
                    Place::Whole,
                    "is there: another recorder writes it, or one was killed; it can be read as it is. Move or remove it",
                ),
                _ => TraceError::io(name, "cannot be written", &e),
            }
        })?;
        Ok(Self { writer: BufWriter::new(file), part, path })
    }
}

impl Write for PartFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl WholeFile for PartFile {
    fn commit(self) -> Result<(), TraceError> {
        let name = self.path.display().to_string();
        let fail = |e: &io::Error| TraceError::io(&*name, "cannot be written", e);
        let file = self.writer.into_inner().map_err(|e| fail(e.error()))?;
        file.sync_all().map_err(|e| fail(&e))?;
        std::fs::rename(&self.part, &self.path).map_err(|e| fail(&e))
    }
}

/// The temporary name in an error would only confuse: the caller says which file could not be
/// written.
fn without_path(error: &io::Error) -> String {
    let text = crate::error::plain_io(error);
    match text.find(" at path ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_without_commit() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out");
        let mut file = AtomicFile::create(&path).expect("writable");
        file.write_all(b"half").expect("writable");
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
        let mut file = AtomicFile::create(&path).expect("writable");
        file.write_all(b"whole").expect("writable");
        file.commit().expect("writable");
        assert_eq!(std::fs::read(&path).expect("there"), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    #[test]
    fn unwritable_places_are_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let error = AtomicFile::create(dir.path()).expect_err("a directory");
        assert!(error.to_string().contains("is a directory"), "{error}");
        let error = AtomicFile::create(&dir.path().join("no/such")).expect_err("no directory");
        assert!(error.to_string().ends_with("no/such: cannot be written: No such file or directory"), "{error}");
        let error = AtomicFile::create(Path::new("-")).expect_err("no name of a file elsewhere");
        assert!(error.to_string().contains("or ./- for one of that name"), "{error}");
        let error = AtomicFile::create(Path::new("/dev/null")).expect_err("a device");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}
