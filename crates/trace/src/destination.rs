//! Where an output goes: links that may be followed, and what is there already.

use crate::error::{ErrorKind, Place, TraceError};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Links that are followed on the way to one file, as by the kernel.
const MAX_LINKS: u32 = 40;

/// Folders where everybody may make a name, and remove only their own.
const STICKY_FOR_ALL: u32 = 0o1002;

/// The place of an output.
#[derive(Debug)]
pub(crate) struct Destination {
    /// The name that was given, for messages.
    name: String,
    /// The same without links.
    path: PathBuf,
    /// The file that is there.
    replaced: Option<Replaced>,
}

/// Owner and mode of a file.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    user: u32,
    group: u32,
    rights: u32,
}

impl Destination {
    /// Destination of a name: absent, or a regular file that may be written. A link stays a link,
    /// and its target is meant, unless somebody else laid the link where everybody may: when the
    /// kernel protects links it does not follow such a link, and we never do.
    pub(crate) fn of(given: &Path) -> Result<Self, TraceError> {
        let name = given.display().to_string();
        let fail = |what: String| TraceError::new(ErrorKind::Io, &*name, Place::Whole, what);
        if given == Path::new("-") {
            let what =
                "a file is written whole, which standard output is not; name a file, or ./- for one of that name";
            return Err(fail(what.into()));
        }
        let user = rustix::process::geteuid().as_raw();
        let path = without_links(given, user).map_err(fail)?;
        let replaced = fs::symlink_metadata(&path).ok();
        match &replaced {
            Some(found) if found.is_dir() => return Err(fail("is a directory; name a file to write".into())),
            Some(found) if !found.is_file() => {
                return Err(fail("is not a regular file; writing would replace it".into()));
            }
            Some(found) => may_replace(&path, found, user).map_err(fail)?,
            None => {}
        }
        if path.file_name().is_none() {
            return Err(fail("does not name a file".into()));
        }
        let replaced =
            replaced.map(|found| Replaced { user: found.uid(), group: found.gid(), rights: found.mode() & 0o777 });
        Ok(Self { name, path, replaced })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// Whether a file is replaced.
    pub(crate) fn is_taken(&self) -> bool {
        self.replaced.is_some()
    }

    /// The rights of the file that is replaced.
    pub(crate) fn rights(&self) -> Option<u32> {
        self.replaced.map(|found| found.rights)
    }

    /// Its user and group.
    pub(crate) fn owner(&self) -> Option<(u32, u32)> {
        self.replaced.map(|found| (found.user, found.group))
    }

    /// An error about it.
    pub(crate) fn cannot_be_written(&self, e: &io::Error) -> TraceError {
        TraceError::io(&*self.name, "cannot be written", e)
    }

    /// Makes the name durable, which it is once the folder is; not every file system lets a folder
    /// be synced.
    pub(crate) fn sync_folder(&self) {
        let _ = File::open(self.folder()).and_then(|folder| folder.sync_all());
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

fn is_sticky_for_all(folder: &Metadata) -> bool {
    folder.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL
}

/// Why a file may not be replaced, if so.
fn may_replace(path: &Path, found: &Metadata, user: u32) -> Result<(), String> {
    let of_folder = fs::metadata(folder_of(path)).map_err(|e| cannot_be_written(&e))?;
    if is_sticky_for_all(&of_folder) && found.uid() != user && found.uid() != of_folder.uid() {
        return Err(format!(
            "is a file of user {} in a folder where everybody may make files; name another file",
            found.uid()
        ));
    }
    // A name can be taken from a file that may not be written; who protected it did not mean that.
    File::options().write(true).open(path).map(drop).map_err(|e| cannot_be_written(&e))
}

/// The path of a file, which need not be there, without links.
fn without_links(given: &Path, user: u32) -> Result<PathBuf, String> {
    let mut done = PathBuf::new();
    let mut left: Vec<OsString> = Vec::new();
    let ahead = |left: &mut Vec<OsString>, path: &Path| {
        left.extend(path.components().rev().map(|part: Component<'_>| part.as_os_str().to_owned()));
    };
    ahead(&mut left, given);
    // A slash at the end promises a folder.
    if given.as_os_str().as_encoded_bytes().ends_with(b"/") && !given.exists() {
        return Err("cannot be written: No such file or directory".into());
    }
    let mut links = 0;
    while let Some(part) = left.pop() {
        let next = done.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err("cannot be written: too many links, one to another".into());
                }
                may_follow(given, &next, &found, user)?;
                ahead(&mut left, &fs::read_link(&next).map_err(|e| cannot_be_written(&e))?);
            }
            // The parent of a folder without links is that of its name.
            Ok(_)
                if part == OsStr::new("..") && matches!(done.components().next_back(), Some(Component::Normal(_))) =>
            {
                done.pop();
            }
            Ok(_) => done = next,
            Err(e) if e.kind() == io::ErrorKind::NotFound && left.is_empty() => done = next,
            Err(e) => return Err(cannot_be_written(&e)),
        }
    }
    Ok(done)
}

/// Why a link on the way to a given name may not be followed, if so.
fn may_follow(given: &Path, link: &Path, found: &Metadata, user: u32) -> Result<(), String> {
    let folder = fs::metadata(folder_of(link)).map_err(|e| cannot_be_written(&e))?;
    if !is_sticky_for_all(&folder) || found.uid() == user || found.uid() == folder.uid() {
        return Ok(());
    }
    // The error names what was given.
    let which = if given == link { String::new() } else { format!("{} ", link.display()) };
    Err(format!(
        "{which}is a link that user {} laid where everybody may; it is not followed, name the file itself",
        found.uid()
    ))
}

fn cannot_be_written(e: &io::Error) -> String {
    format!("cannot be written: {}", crate::error::plain_io(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn path_of(given: &Path) -> Result<PathBuf, String> {
        Destination::of(given).map(|place| place.path).map_err(|e| e.to_string())
    }

    #[test]
    fn links_lead_to_their_file_also_to_one_that_is_not_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(dir.path()).expect("there");
        fs::create_dir_all(root.join("a/b")).expect("ours");
        symlink("a/b", root.join("in")).expect("ours");
        symlink("../../file", root.join("a/b/up")).expect("ours");
        symlink(root.join("in/up"), root.join("far")).expect("ours");
        for (given, want) in [("in/x", "a/b/x"), ("in/up", "file"), ("far", "file"), ("in/../y", "a/y")] {
            assert_eq!(path_of(&root.join(given)), Ok(root.join(want)), "{given}");
        }
        symlink("round", root.join("round")).expect("ours");
        assert!(path_of(&root.join("round")).expect_err("no end").contains("too many links"));
        assert!(path_of(&root.join("none/x")).expect_err("no folder").ends_with("No such file or directory"));
        assert!(path_of(&root.join("none/")).expect_err("no folder").ends_with("No such file or directory"));
    }

    #[test]
    fn links_and_files_of_others_are_left_alone_where_everybody_may_lay_them() {
        const OTHER: u32 = 65_534;
        let dir = tempfile::tempdir().expect("a folder");
        let all = dir.path().join("all");
        fs::create_dir(&all).expect("ours");
        fs::set_permissions(&all, fs::Permissions::from_mode(0o1777)).expect("ours");
        fs::write(dir.path().join("secret"), "secret").expect("ours");
        symlink("../secret", all.join("link")).expect("ours");
        symlink(".", all.join("folder")).expect("ours");
        fs::write(all.join("file"), "").expect("ours");
        assert!(path_of(&all.join("link")).is_ok(), "our own");
        if chown(all.join("file"), Some(OTHER), None).is_err() {
            return; // Only root gives files away.
        }
        for name in ["link", "folder"] {
            std::os::unix::fs::lchown(all.join(name), Some(OTHER), None).expect("root");
        }
        let error = path_of(&all.join("link")).expect_err("another's");
        assert!(error.contains("user 65534 laid where everybody may"), "{error}");
        assert_eq!(error.matches("/link").count(), 1, "{error}");
        assert!(path_of(&all.join("folder/x")).expect_err("another's").contains("it is not followed"));
        assert!(path_of(&all.join("file")).expect_err("another's").contains("is a file of user 65534"));
        // As by the kernel: the owner of the folder is trusted with it.
        chown(&all, Some(OTHER), None).expect("root");
        assert!(path_of(&all.join("link")).is_ok() && path_of(&all.join("file")).is_ok());
    }
}
