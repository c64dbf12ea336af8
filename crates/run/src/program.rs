//! Program to be run, and whether it can be.

use refault_cli::Failure;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Scripts name their interpreter, which may be one itself; the kernel goes no further either.
const MAX_SCRIPTS: u32 = 4;
/// `e_machine` of x86-64.
const X86_64: u16 = 62;
/// `p_type` of the program header that names the loader.
const PT_INTERP: u32 = 3;

/// The file of a program: as it is if its name has a slash, else looked for in `PATH`.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let is_program = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if name.is_empty() {
        return Err("the name of the program is empty".into());
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match path.metadata() {
            Err(e) => Err(format!("{}: {e}", path.display()).into()),
            Ok(_) if !is_program(&path) => Err(format!("{}: is no program (not executable)", path.display()).into()),
            Ok(_) => Ok(path),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| is_program(path));
    found.ok_or_else(|| format!("{}: no such program in PATH", name.display()).into())
}

/// Says why a program cannot be served, if it cannot.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let mut at = path.to_owned();
    for _ in 0..MAX_SCRIPTS {
        match kind_of(&at)? {
            Kind::Fine => return Ok(()),
            Kind::Script(interpreter) => at = interpreter,
            Kind::Refused(why) => return Err(format!("{}: {why}", at.display()).into()),
        }
    }
    Err(format!("{}: scripts that interpret scripts, without an end", path.display()).into())
}

enum Kind {
    Fine,
    Script(PathBuf),
    Refused(String),
}

fn kind_of(path: &Path) -> Result<Kind, Failure> {
    let said = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = File::open(path).map_err(said)?;
    let mode = file.metadata().map_err(said)?.mode();
    let mut head = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut head).map_err(said)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let name = line.split(|b| b.is_ascii_whitespace()).find(|word| !word.is_empty()).unwrap_or_default();
        return Ok(Kind::Script(OsString::from(OsStr::from_bytes(name)).into()));
    }
    if mode & 0o6000 != 0 {
        let why = "is setuid or setgid: its loader takes no library from the one who starts it. Run it as its owner, from a copy without \
                   that bit";
        return Ok(Kind::Refused(why.into()));
    }
    Ok(elf(&file, &head).map_or_else(Kind::Refused, |()| Kind::Fine))
}

/// Whether an ELF file is a program of this machine with the loader that is known; else why not.
fn elf(file: &File, head: &[u8]) -> Result<(), String> {
    let u16_at = |bytes: &[u8], at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    let u32_at = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if !head.starts_with(b"\x7fELF") {
        return Err("is neither an ELF program nor a script with #!".into());
    }
    if head.get(4..6) != Some(&[2, 1]) || u16_at(head, 18) != Some(X86_64) {
        return Err("is not a program for x86-64, the one machine whose programs can be served".into());
    }
    let cut = || "is cut short".to_string();
    let headers = u64_at(head, 32).ok_or_else(cut)?;
    let (size, count) = (u16_at(head, 54).ok_or_else(cut)?, u16_at(head, 56).ok_or_else(cut)?);
    for i in 0..u64::from(count) {
        let mut header = [0; 56];
        let at = headers.saturating_add(i * u64::from(size));
        file.read_exact_at(&mut header, at).map_err(|_| cut())?;
        if u32_at(&header, 0) != Some(PT_INTERP) {
            continue;
        }
        let (offset, len) = (u64_at(&header, 8).ok_or_else(cut)?, u64_at(&header, 32).ok_or_else(cut)?);
        let mut name = vec![0; len.min(4096) as usize];
        file.read_exact_at(&mut name, offset).map_err(|_| cut())?;
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_string();
        return match name.rsplit('/').next() {
            Some(file) if file.starts_with("ld-linux") => Ok(()),
            _ => Err(format!("its loader is {name}; only programs of the GNU C library can be served")),
        };
    }
    Err("is statically linked: nothing can be loaded into it. Link it dynamically".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8], mode: u32) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        check(&path).unwrap_err().to_string()
    }

    #[test]
    fn each_program_that_cannot_be_served_has_its_reason() {
        assert!(refusal(b"text", 0o755).contains("neither an ELF"));
        assert!(refusal(b"", 0o755).contains("neither an ELF"));
        assert!(refusal(b"\x7fELF\x01\x01", 0o755).contains("x86-64"));
        assert!(refusal(b"#!/nowhere/at all\n", 0o755).contains("/nowhere/at: No such file"));
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(refusal(&this, 0o4755).contains("setuid"));
        // In the middle of the second program header: where the loader's name lies is up to the
        // linker.
        assert!(refusal(&this[..140], 0o755).contains("cut short"));
        // Without its program headers there is none that names a loader.
        let mut stripped = this.clone();
        stripped[56..58].fill(0);
        assert!(refusal(&stripped, 0o755).contains("statically"));
        let mut other = this;
        let at = other.windows(10).position(|w| w == b"/ld-linux-").unwrap();
        other[at + 1..at + 9].copy_from_slice(b"ld-other");
        assert!(refusal(&other, 0o755).contains("its loader is"));
    }

    #[test]
    fn programs_are_found() {
        assert!(find(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert!(find(OsStr::new("no-such-program-anywhere")).is_err_and(|e| e.to_string().contains("PATH")));
        assert!(find(OsStr::new("/etc/passwd")).is_err_and(|e| e.to_string().contains("not executable")));
        check(&find(OsStr::new("sh")).unwrap()).unwrap();
    }
}
