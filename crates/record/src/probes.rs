//! Probes of its own on functions of the kernel, where it lacks the events that are made for it.
//!
//! They are written into `kprobe_events`, which outlives this process: a shell waits for its end,
//! whatever that is, and removes them. Probes that are left all the same are removed by the next
//! recorder.

use crate::btf::Btf;
use crate::event::{release, wants_probes};
use crate::tracefs::Tracefs;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The functions, and the names of the events on them.
const FUNCTIONS: [(&str, &str); 3] =
    [("filemap_read", "read"), ("filemap_fault", "fault"), ("filemap_map_pages", "around")];

/// The name of a group of probes begins so; the number of a process follows.
const PREFIX: &str = "refault_";

/// Removes the events named behind the file, once nobody holds the other end of its input any more.
/// Events are in use until the kernel has closed what the recorder had open.
const GUARD: &str = "read -r _; file=$0; for event; do for i in 1 2 3 4 5 6 7 8 9 10; do \
     echo \"-:$event\" >>\"$file\" && break; sleep 0.2; done; done";

/// Probes that are there until this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct Probes {
    group: String,
    guard: Child,
}

impl Probes {
    /// Sets them.
    pub(crate) fn set(tracefs: &Tracefs) -> Result<Probes, String> {
        let file = file(tracefs)?;
        let group = format!("{PREFIX}{}", std::process::id());
        let lines = definitions(&group)?;
        sweep(&file);
        let names = FUNCTIONS.iter().map(|(_, event)| format!("{group}/{event}"));
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .arg(&file)
            .args(names)
            // Ctrl-C is for the recorder, which says when it is done.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("sh: cannot be started, and nobody would remove the probes: {e}"))?;
        let probes = Probes { group, guard };
        for line in lines {
            append(&file, &line).map_err(|e| format!("{}: takes no probe: {e}: {line}", file.display()))?;
        }
        Ok(probes)
    }

    /// The group of their events.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Sets the probes that stand for what the kernel lacks, if it does.
pub(crate) fn needed(tracefs: &Tracefs) -> Result<Option<Probes>, String> {
    if !wants_probes(tracefs)? {
        return Ok(None);
    }
    let lacks = |e| {
        format!(
            "this kernel has no event filemap/mm_filemap_get_pages, as Linux 6.12 or later has, and takes no probes in \
             its place: {e} (uname -r: {})",
            release()
        )
    };
    Probes::set(tracefs).map(Some).map_err(lacks)
}

/// Whether probes can be set here.
pub fn probes_possible(tracefs: &Tracefs) -> Result<(), String> {
    file(tracefs)?;
    definitions(PREFIX)?;
    let symbols = fs::read_to_string("/proc/kallsyms").map_err(|e| format!("/proc/kallsyms: cannot be read: {e}"))?;
    let known = |name: &str| symbols.lines().any(|line| line.split_whitespace().nth(2) == Some(name));
    match FUNCTIONS.iter().find(|(function, _)| !known(function)) {
        Some((function, _)) => Err(format!("this kernel has no function {function}")),
        None => Ok(()),
    }
}

fn file(tracefs: &Tracefs) -> Result<PathBuf, String> {
    let file = tracefs.root().join("kprobe_events");
    match file.exists() {
        true => Ok(file),
        false => Err(format!("{}: is not there (CONFIG_KPROBE_EVENTS)", file.display())),
    }
}

fn append(file: &PathBuf, line: &str) -> std::io::Result<()> {
    fs::File::options().append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}

/// Texts that are written to set them, by where this kernel's structures have their fields.
fn definitions(group: &str) -> Result<[String; 3], String> {
    let btf = Btf::of_kernel()?;
    // The value of a field of what `pointer` leads to.
    let of = |structure: &str, field: &str, pointer: &str| {
        Ok::<_, String>(format!("+{}({pointer})", btf.offset(structure, field)?))
    };
    let file_of = |file: &str| {
        let inode = of("address_space", "host", &of("file", "f_mapping", file)?)?;
        let number = of("inode", "i_ino", &inode)?;
        let device = of("super_block", "s_dev", &of("inode", "i_sb", &inode)?)?;
        Ok::<_, String>((format!("i_ino={number}:u64 s_dev={device}:u32"), inode))
    };
    let (inode, host) = file_of(&of("kiocb", "ki_filp", "$arg1")?)?;
    let size = of("inode", "i_size", &host)?;
    let (position, count) = (of("kiocb", "ki_pos", "$arg1")?, of("iov_iter", "count", "$arg2")?);
    let (mapped, _) = file_of(&of("vm_area_struct", "vm_file", &of("vm_fault", "vma", "$arg1")?)?)?;
    let page = of("vm_fault", "pgoff", "$arg1")?;
    let arguments = [
        format!("{inode} pos={position}:u64 bytes={count}:u64 size={size}:u64"),
        format!("{mapped} index={page}:u64"),
        format!("{mapped} index=$arg2:u64 last_index=$arg3:u64"),
    ];
    let line = |i: usize| format!("p:{group}/{} {} {}", FUNCTIONS[i].1, FUNCTIONS[i].0, arguments[i]);
    Ok([line(0), line(1), line(2)])
}

/// Removes probes of recorders that are gone.
fn sweep(file: &PathBuf) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for event in text.lines().filter_map(left) {
        let _ = append(file, &format!("-:{event}"));
    }
}

/// The event of a line of `kprobe_events` that a process of ours has left.
fn left(line: &str) -> Option<&str> {
    let event = line.split_whitespace().next()?.split_once(':')?.1;
    let pid: u32 = event.strip_prefix(PREFIX)?.split_once('/')?.0.parse().ok()?;
    (!fs::exists(format!("/proc/{pid}")).unwrap_or(true)).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_left_is_told_from_what_is_in_use() {
        let own = format!("p:kprobes/refault_{0} f a=1", std::process::id());
        assert_eq!(left(&own), None);
        assert_eq!(left(&format!("p:refault_{}/read filemap_read", std::process::id())), None);
        assert_eq!(left("p:refault_4194303/read filemap_read i_ino=+1($arg1):u64"), Some("refault_4194303/read"));
        assert_eq!(left("r4:refault_x/read filemap_read"), None);
        assert_eq!(left(""), None);
    }

    #[test]
    fn the_guard_removes_what_it_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("kprobe_events");
        fs::write(&file, "").expect("writable");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD]).arg(&file).args(["g/a", "g/b"]).stdin(Stdio::piped());
        let mut guard = command.spawn().expect("a shell");
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(fs::read_to_string(&file).expect("there"), "");
        drop(guard.stdin.take());
        assert!(guard.wait().expect("it ends").success());
        assert_eq!(fs::read_to_string(&file).expect("there"), "-:g/a\n-:g/b\n");
    }
}
