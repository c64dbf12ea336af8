//! Files that appear whole or not at all.

use crate::destination::Destination;
use crate::error::{ErrorKind, Place, TraceError};
use rustix::fs::{AtFlags, CWD, OFlags};
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The rights of a file that only its owner may read.
pub(crate) const PRIVATE: u32 = 0o600;

/// Rights that a plain creation asks for, before the umask.
const COMMON: u32 = 0o666;

/// A file under construction. It has no name until [`commit`](Self::commit), so that nothing is
/// left of it, whatever ends the process.
#[derive(Debug)]
pub struct AtomicFile {
    writer: BufWriter<File>,
    place: Destination,
    /// Rights that it will have; none: the ones that it was made with.
    rights: Option<u32>,
    /// Whether the file system has `O_TMPFILE`, and `linkat` of such a file.
    links: bool,
}

impl AtomicFile {
    /// Starts a file that will replace `path`, which must be absent or a regular file that may be
    /// written. A file that is there keeps its owner and its rights.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let place = Destination::of(path)?;
        let rights = place.rights();
        Self::start(place, rights)
    }

    /// The same for a file that nobody else may read.
    pub fn create_private(path: &Path) -> Result<Self, TraceError> {
        Self::start(Destination::of(path)?, Some(PRIVATE))
    }

    /// The same for what is made of `from`: who may not read that may not read this.
    pub fn create_like(path: &Path, from: &Path) -> Result<Self, TraceError> {
        let place = Destination::of(path)?;
        let of_source = std::fs::metadata(from).ok().filter(|m| m.is_file()).map(|m| m.permissions().mode());
        let is_private = of_source.is_some_and(|mode| mode & 0o077 == 0);
        let rights = if is_private { Some(PRIVATE) } else { place.rights() };
        Self::start(place, rights)
    }

    fn start(place: Destination, rights: Option<u32>) -> Result<Self, TraceError> {
        let (file, links) = nameless(place.folder()).map_err(|e| place.cannot_be_written(&e))?;
        Ok(Self { writer: BufWriter::new(file), place, rights, links })
    }

    /// Makes the file durable and visible under its name.
    pub fn commit(self) -> Result<(), TraceError> {
        let Self { writer, place, rights, links } = self;
        let file = writer.into_inner().map_err(|e| place.cannot_be_written(e.error()))?;
        publish(file, &place, rights, links).map_err(|e| place.cannot_be_written(&e))
    }
}

/// A file without a name, and whether it can get one.
fn nameless(folder: &Path) -> io::Result<(File, bool)> {
    let flags = OFlags::TMPFILE.bits() as i32;
    let opened = File::options().read(true).write(true).mode(COMMON).custom_flags(flags).open(folder);
    match opened {
        Ok(file) => Ok((file, true)),
        // Some file systems have no such files: this one has had a name for a moment.
        Err(e) if is_unsupported(&e) => Ok((tempfile::tempfile_in(folder).map_err(|e| without_path(&e))?, false)),
        Err(e) => Err(e),
    }
}

fn is_unsupported(e: &io::Error) -> bool {
    // A kernel that does not know the flag wants to open the folder itself.
    matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::IsADirectory)
}

/// Gives the whole file its owner, rights and name.
fn publish(file: File, place: &Destination, rights: Option<u32>, links: bool) -> io::Result<()> {
    if links {
        own(&file, place, rights)?;
        file.sync_all()?;
        match link(&file, place) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => return done.map(|()| place.sync_folder()),
        }
    }
    // Also where /proc is not mounted.
    copy(file, place, rights)?;
    place.sync_folder();
    Ok(())
}

/// The owner of the file that is replaced, as far as one may give files away.
fn own(file: &File, place: &Destination, rights: Option<u32>) -> io::Result<()> {
    if let Some((user, group)) = place.owner() {
        let _ = fchown(file, Some(user), Some(group));
    }
    rights.map_or(Ok(()), |rights| file.set_permissions(Permissions::from_mode(rights)))
}

/// Names a file that has no name; what has that name is replaced.
fn link(file: &File, place: &Destination) -> io::Result<()> {
    let this = format!("/proc/self/fd/{}", file.as_raw_fd());
    let name = |path: &Path| rustix::fs::linkat(CWD, &*this, CWD, path, AtFlags::SYMLINK_FOLLOW);
    if !place.is_taken() && name(place.path()).is_ok() {
        return Ok(());
    }
    // A name can be given only if it is free, and a file with a name can take that of another.
    let beside = tempfile::Builder::new().prefix(".refault-").suffix(".part").make_in(place.folder(), |path| {
        name(path).map_err(io::Error::from)?;
        Ok(())
    });
    let beside = beside.map_err(|e| without_path(&e))?;
    beside.into_temp_path().persist(place.path()).map_err(|e| e.error)
}

/// The long way: a file with a name, which gets the content of the nameless one.
fn copy(mut file: File, place: &Destination, rights: Option<u32>) -> io::Result<()> {
    let mut named: NamedTempFile = tempfile::Builder::new()
        .prefix(".refault-")
        .suffix(".part")
        .permissions(Permissions::from_mode(COMMON))
        .tempfile_in(place.folder())
        .map_err(|e| without_path(&e))?;
    file.rewind()?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => named.write_all(&buffer[..n])?,
        }
    }
    own(named.as_file(), place, rights)?;
    named.as_file().sync_all()?;
    named.persist(place.path()).map(drop).map_err(|e| e.error)
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
/// Nobody else may read it.
#[derive(Debug)]
pub struct PartFile {
    writer: BufWriter<File>,
    part: PathBuf,
    place: Destination,
}

impl PartFile {
    /// Starts a file that will replace `path`, which must be absent or a regular file that may be
    /// written. A `PATH.part` that an earlier writer left is an error: it may be all that there is
    /// of a recording.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let place = Destination::of(path)?;
        let part = Self::part_of(path)?;
        let file = File::options().write(true).create_new(true).mode(PRIVATE).open(&part).map_err(|e| {
            let name = part.display().to_string();
            match e.kind() {
                io::ErrorKind::AlreadyExists => TraceError::new(
                    ErrorKind::Io,
                    name,
                    Place::Whole,
                    "is there: another recorder writes it, or one was killed; it can be read as it is. Move or remove it",
                ),
                // The name that was given: the other one is ours.
                _ => place.cannot_be_written(&e),
            }
        })?;
        Ok(Self { writer: BufWriter::new(file), part, place })
    }

    /// Where it is until it is whole.
    pub fn part_of(path: &Path) -> Result<PathBuf, TraceError> {
        let mut part = Destination::of(path)?.path().as_os_str().to_owned();
        part.push(".part");
        Ok(part.into())
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
        let Self { writer, part, place } = self;
        let fail = |e: &io::Error| place.cannot_be_written(e);
        let file = writer.into_inner().map_err(|e| fail(e.error()))?;
        own(&file, &place, Some(PRIVATE)).and_then(|()| file.sync_all()).map_err(|e| fail(&e))?;
        std::fs::rename(&part, place.path()).map_err(|e| fail(&e))?;
        place.sync_folder();
        Ok(())
    }
}

/// The temporary name in an error would only confuse: the caller says which file could not be
/// written.
fn without_path(error: &io::Error) -> io::Error {
    let text = crate::error::plain_io(error);
    let end = text.find(" at path ").unwrap_or(text.len());
    io::Error::new(error.kind(), text[..end].to_owned())
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

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    fn write(mut file: AtomicFile) {
        file.write_all(b"new").expect("writable");
        file.commit().expect("writable");
    }

    /// Both ways to a name: that of most file systems, and that of the others.
    fn both_ways(path: &Path, check: impl Fn()) {
        for links in [true, false] {
            let mut file = AtomicFile::create(path).expect("writable");
            file.links &= links;
            write(file);
            assert_eq!(std::fs::read(path).expect("there"), b"new");
            check();
        }
    }

    #[test]
    fn regression_a_file_that_is_replaced_keeps_its_rights() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out");
        for rights in [0o600, 0o640, 0o664] {
            std::fs::write(&path, "old").expect("writable");
            std::fs::set_permissions(&path, Permissions::from_mode(rights)).expect("ours");
            both_ways(&path, || assert_eq!(mode(&path), rights));
        }
        if fchown(File::open(&path).expect("there"), Some(65_534), Some(65_534)).is_ok() {
            let owner = || Destination::of(&path).expect("there").owner();
            both_ways(&path, || assert_eq!(owner(), Some((65_534, 65_534))));
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    #[test]
    fn regression_a_file_made_of_a_private_one_is_private() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
        std::fs::write(&from, "").expect("writable");
        write(AtomicFile::create_like(&to, &from).expect("writable"));
        assert_eq!(mode(&to), mode(&from));
        std::fs::set_permissions(&from, Permissions::from_mode(0o400)).expect("ours");
        write(AtomicFile::create_like(&to, &from).expect("writable"));
        assert_eq!(mode(&to), PRIVATE);
        std::fs::remove_file(&to).expect("ours");
        write(AtomicFile::create_private(&to).expect("writable"));
        assert_eq!(mode(&to), PRIVATE);
        let mut part = PartFile::create(&to).expect("writable");
        assert_eq!(mode(&PartFile::part_of(&to).expect("a name")), PRIVATE);
        part.write_all(b"x").expect("writable");
        part.commit().expect("writable");
        assert_eq!(mode(&to), PRIVATE);
    }

    #[test]
    fn regression_a_file_under_construction_has_no_name() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out");
        let mut file = AtomicFile::create(&path).expect("writable");
        file.write_all(&[0; 1 << 17]).expect("writable");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
        // Somebody took the name meanwhile.
        std::fs::write(&path, "old").expect("writable");
        file.commit().expect("writable");
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 1 << 17);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
    }
}
