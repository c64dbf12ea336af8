//! Output of strace: reads and writes of files by system calls.
//!
//! Definition: strace(1). Files are known by `open` and `openat`, or by the names that `-y` prints;
//! places by `pread64` and its kin, and else by what was read before and `lseek`. Touches of mapped
//! files are not seen. Content is passed over is counted in notes: calls on descriptors that were
//! opened before, `O_DIRECT`, asynchronous I/O.
//!
//! | file | |
//! |---|---|
//! | `call` | a line taken apart |
//! | `files` | descriptors, open files, and where they are |

mod call;
mod files;

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition};
use call::{CallTime, Content, arguments, descriptor, number, string};
use files::{Descriptor, Files, OpenFile};
use std::collections::HashMap;

/// Note of strace on a new process, and bytes that lines may have that it took apart.
const NOTE: &[u8] = b"strace: Process ";
const MAX_JOINED: usize = 64 * 1024;

/// Files that have no pages in the page cache.
const NO_PAGES: [&[u8]; 9] = [
    b"/proc/",
    b"/sys/",
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/random",
    b"/dev/urandom",
    b"/dev/tty",
    b"/dev/pts/",
];

/// Calls that make descriptors without pages.
const MAKE_OTHERS: [&[u8]; 13] = [
    b"socket",
    b"accept",
    b"accept4",
    b"eventfd",
    b"eventfd2",
    b"epoll_create",
    b"epoll_create1",
    b"timerfd_create",
    b"signalfd",
    b"signalfd4",
    b"inotify_init1",
    b"memfd_create",
    b"perf_event_open",
];

/// Content was passed over.
#[derive(Default)]
struct Passed {
    unknown: u64,
    direct: u64,
    asynchronous: u64,
    mapped: u64,
    appended: u64,
}

pub(crate) struct Strace {
    header: Header,
    files: Files,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
    now_ns: u64,
    /// First part of a line that a note of strace ended, where both go to one place.
    held: Vec<u8>,
    /// First parts of calls, by process.
    begun: HashMap<u64, Vec<u8>>,
    passed: Passed,
}

/// A read or a write.
#[derive(Clone, Copy)]
struct Transfer {
    process: u64,
    write: bool,
    bytes: u64,
    /// The first byte, where the call says it.
    place: Option<u64>,
}

/// Whether a line is a call that returned, of a name that strace has.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let known = |name: &[u8]| {
        matches!(name, b"execve" | b"openat" | b"open" | b"close" | b"brk" | b"mmap")
            || name.starts_with(b"read")
            || name.starts_with(b"pread")
            || name.starts_with(b"pwrite")
            || name.starts_with(b"write")
    };
    match call::parse(line).map(|line| line.content) {
        Ok(Content::Call { name, .. } | Content::Begun { name, .. } | Content::Resumed { name, .. }) => known(name),
        _ => false,
    }
}

impl Strace {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Strace);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::SystemCalls);
        Self {
            header,
            files: Files::default(),
            objects: ObjectNames::default(),
            tasks: TaskNames::default(),
            clock: Clock::default(),
            now_ns: 0,
            held: Vec::new(),
            begun: HashMap::new(),
            passed: Passed::default(),
        }
    }

    /// Does a call that returned.
    fn call(&mut self, process: u64, name: &[u8], args: &[u8], result: &[u8]) -> Result<Vec<Record>, String> {
        let args = arguments(args);
        let arg = |at: usize| args.get(at).copied().unwrap_or(b"");
        // Calls that failed, and calls that did not return.
        let Some(returned) = number(result) else {
            if matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork") {
                self.files.created(process, None, false);
            }
            return Ok(Vec::new());
        };
        let place = |at: usize| number(arg(at)).ok_or_else(|| format!("{} is no place in a file", quote(arg(at))));
        let transfer = |write, place| Transfer { process, write, bytes: returned, place };
        match name {
            b"open" | b"creat" | b"openat" | b"openat2" => self.open(process, name, &args, result),
            b"read" | b"readv" => return self.transfer(arg(0), transfer(false, None)),
            b"write" | b"writev" => return self.transfer(arg(0), transfer(true, None)),
            b"pread64" | b"pread" | b"preadv" | b"preadv2" => {
                return self.transfer(arg(0), transfer(false, Some(place(3)?)));
            }
            b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => {
                return self.transfer(arg(0), transfer(true, Some(place(3)?)));
            }
            b"sendfile" | b"sendfile64" => return self.copy(process, [arg(1), arg(2)], [arg(0), b"NULL"], returned),
            b"copy_file_range" | b"splice" => {
                return self.copy(process, [arg(0), arg(1)], [arg(2), arg(3)], returned);
            }
            b"mmap" | b"mmap2" if descriptor(arg(4)).is_some_and(|(fd, _)| fd >= 0) => self.passed.mapped += 1,
            b"io_submit" | b"io_uring_enter" => self.passed.asynchronous += 1,
            _ => self.descriptors(process, name, &args, result),
        }
        Ok(Vec::new())
    }

    /// Calls that change descriptors.
    fn descriptors(&mut self, process: u64, name: &[u8], args: &[&[u8]], result: &[u8]) {
        let arg = |at: usize| args.get(at).copied().unwrap_or(b"");
        let fd = |at: usize| descriptor(arg(at)).map(|(fd, _)| fd);
        let new = descriptor(result).map(|(fd, _)| fd);
        match (name, fd(0), new) {
            (b"close", Some(fd), _) => self.files.close(process, fd, fd),
            (b"close_range", Some(first), _) => self.files.close(process, first, fd(1).unwrap_or(i64::MAX)),
            (b"lseek" | b"_llseek", Some(fd), Some(_)) => {
                if let Some(Descriptor::File(file)) = self.files.get(process, fd) {
                    self.files.file(file).position = number(result).unwrap_or(0);
                }
            }
            (b"dup" | b"dup2" | b"dup3", Some(old), Some(new)) => self.duplicate(process, old, new),
            (b"fcntl" | b"fcntl64", Some(old), Some(new)) if arg(1).starts_with(b"F_DUPFD") => {
                self.duplicate(process, old, new);
            }
            (b"pipe" | b"pipe2" | b"socketpair", ..) => {
                let pair = args.iter().rev().find_map(|arg| arg.strip_prefix(b"[")?.strip_suffix(b"]"));
                for fd in arguments(pair.unwrap_or(b"")).into_iter().filter_map(descriptor) {
                    self.files.set(process, fd.0, Descriptor::Other);
                }
            }
            (b"clone" | b"clone3" | b"fork" | b"vfork", ..) => {
                let is_thread = args.iter().any(|arg| memchr::memmem::find(arg, b"CLONE_FILES").is_some());
                self.files.created(process, number(result), is_thread);
            }
            (_, _, Some(new)) if MAKE_OTHERS.contains(&name) => self.files.set(process, new, Descriptor::Other),
            _ => {}
        }
    }

    fn duplicate(&mut self, process: u64, old: i64, new: i64) {
        match self.files.get(process, old) {
            Some(descriptor) => self.files.set(process, new, descriptor),
            None => self.files.close(process, new, new),
        }
    }

    fn open(&mut self, process: u64, name: &[u8], args: &[&[u8]], result: &[u8]) {
        let is_at = name.starts_with(b"openat");
        let path = args.get(usize::from(is_at)).and_then(|arg| string(arg)).unwrap_or(b"");
        let flags = args.get(1 + usize::from(is_at)).copied().unwrap_or(b"");
        let has = |flag: &[u8]| memchr::memmem::find(flags, flag).is_some();
        let Some((fd, named)) = descriptor(result) else { return };
        let path = match named {
            Some(named) => named.to_owned(),
            None => self.absolute(process, path, args.first().filter(|_| is_at).copied()),
        };
        let (appends, is_direct) = (has(b"O_APPEND"), has(b"O_DIRECT") && !has(b"O_DIRECTORY"));
        let file = OpenFile { path, position: 0, appends, is_direct };
        self.files.opened(process, fd, file);
    }

    /// A path below the directory that a call names, where that is known.
    fn absolute(&mut self, process: u64, path: &[u8], directory: Option<&[u8]>) -> Vec<u8> {
        if path.starts_with(b"/") {
            return path.to_owned();
        }
        let found = directory.and_then(descriptor);
        let base = match found {
            Some((_, Some(named))) => Some(named.to_owned()),
            Some((fd, None)) => match self.files.get(process, fd) {
                Some(Descriptor::File(file)) => Some(self.files.file(file).path.clone()),
                _ => None,
            },
            None => None,
        };
        base.map_or_else(|| path.to_owned(), |base| [&base, &b"/"[..], path].concat())
    }

    /// The open file of an argument; none: it has no pages, or is not known.
    fn open_file(&mut self, process: u64, arg: &[u8]) -> Option<usize> {
        let (fd, named) = descriptor(arg)?;
        let known = self.files.get(process, fd);
        if let Some(named) = named {
            if !named.starts_with(b"/") {
                return None;
            }
            // Kinds of devices stand in brackets behind their names.
            let is_characters = memchr::memmem::find(named, b"<char ").is_some();
            let end = memchr::memmem::find(named, b"<").unwrap_or(named.len());
            let path = named[..end].strip_suffix(b" (deleted)").unwrap_or(&named[..end]);
            let is_same = |files: &mut Files| match known {
                Some(Descriptor::File(file)) => files.file(file).path.starts_with(path).then_some(file),
                _ => None,
            };
            if is_characters {
                return None;
            }
            if let Some(file) = is_same(&mut self.files) {
                return Some(file);
            }
            let file = OpenFile { path: path.to_owned(), position: 0, appends: false, is_direct: false };
            self.files.opened(process, fd, file);
            return match self.files.get(process, fd) {
                Some(Descriptor::File(file)) => Some(file),
                _ => None,
            };
        }
        match known {
            Some(Descriptor::File(file)) => Some(file),
            Some(Descriptor::Other) => None,
            None => {
                self.passed.unknown += 1;
                None
            }
        }
    }

    /// Bytes that a call moved between a file and memory.
    fn transfer(&mut self, arg: &[u8], of: Transfer) -> Result<Vec<Record>, String> {
        let Transfer { process, write, bytes, place } = of;
        let Some(file) = self.open_file(process, arg).filter(|_| bytes > 0) else { return Ok(Vec::new()) };
        let OpenFile { path, position, appends, is_direct } = self.files.file(file).clone();
        let to_end = write && appends && place.is_none();
        self.passed.appended += u64::from(to_end);
        let start = if to_end { self.files.end(&path) } else { place.unwrap_or(position) };
        let end = start.checked_add(bytes).ok_or_else(|| format!("{bytes} bytes at {start} are beyond 64 bits"))?;
        if place.is_none() {
            self.files.file(file).position = end;
        }
        self.files.reaches(&path, end);
        if NO_PAGES.iter().any(|start| path.starts_with(start)) {
            return Ok(Vec::new());
        }
        if is_direct {
            self.passed.direct += 1;
            return Ok(Vec::new());
        }
        let (page, pages) = pages::of_bytes(start, bytes, self.header.page_size)?;
        let object = self.objects.number(&path, ObjectKind::File, &mut self.header)?;
        let task = self.tasks.number(process.to_string().as_bytes())?;
        let op = Op { write, via: Some(Via::Fd) };
        let time_ns = self.clock.since_first(self.now_ns);
        Ok(vec![Record { time_ns, object, task, pages, ..Record::touch(page, op) }])
    }

    /// Bytes from one file to another: each side is a descriptor and where its place is, in
    /// brackets, or NULL.
    fn copy(&mut self, process: u64, from: [&[u8]; 2], to: [&[u8]; 2], bytes: u64) -> Result<Vec<Record>, String> {
        // The place is shown before, and with an arrow after, the call.
        let place = |arg: &[u8]| number(arg.strip_prefix(b"[")?.split(|b| *b == b']').next()?);
        let mut all = self.transfer(from[0], Transfer { process, write: false, bytes, place: place(from[1]) })?;
        all.extend(self.transfer(to[0], Transfer { process, write: true, bytes, place: place(to[1]) })?);
        Ok(all)
    }

    fn remarks(&self) -> Vec<String> {
        let Passed { unknown, direct, asynchronous, mapped, appended } = self.passed;
        let of = |n: u64, what: &str| (n > 0).then(|| format!("{n} {what}"));
        let all = [
            of(unknown, "calls on descriptors that were opened before are passed over; strace -y names their files"),
            of(direct, "calls on files opened with O_DIRECT are passed over: the page cache is bypassed"),
            of(asynchronous, "calls of io_uring or io_submit are passed over: strace does not say what they read"),
            of(mapped, "files were mapped, and touches of these are not seen"),
            of(appended, "writes with O_APPEND are put behind what was seen of the file"),
        ];
        all.into_iter().flatten().collect()
    }
}

impl LineFormat for Strace {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.header.remarks = self.remarks();
        let none = self.header.objects.is_empty() && !self.header.remarks.is_empty();
        self.header.passed_over = none.then(|| self.header.remarks.join("; "));
    }

    fn line(&mut self, text: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let whole = [&std::mem::take(&mut self.held), text].concat();
        let note = memchr::memmem::find(&whole, NOTE).filter(|_| whole.ends_with(b" attached"));
        if let Some(at) = note.filter(|at| *at > 0 && whole.len() <= MAX_JOINED) {
            self.held = whole[..at].to_owned();
            return Ok(());
        }
        let text = &whole[..];
        let line = call::parse(text).map_err(|what| at.error(format!("{}: {what}", quote(text.trim_ascii()))))?;
        match line.time {
            Some(CallTime::At(ns)) => self.now_ns = ns,
            Some(CallTime::After(ns)) => self.now_ns = self.now_ns.saturating_add(ns),
            None => {}
        }
        let process = line.process;
        let done = match line.content {
            Content::Call { name, args, result } => self.call(process, name, args, result),
            Content::Begun { name, args } => {
                if matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork") {
                    let is_thread = memchr::memmem::find(args, b"CLONE_FILES").is_some();
                    self.files.creating(process, is_thread);
                }
                self.begun.insert(process, args.to_owned());
                Ok(Vec::new())
            }
            Content::Resumed { name, args, result } => {
                // The first part may be from before the trace began.
                let Some(mut whole) = self.begun.remove(&process) else { return Ok(()) };
                whole.extend_from_slice(args);
                self.call(process, name, &whole, result)
            }
            Content::Exited => {
                self.files.exited(process);
                Ok(Vec::new())
            }
            Content::Other => Ok(Vec::new()),
        };
        out.extend(done.map_err(|what| at.error(what))?);
        Ok(())
    }
}
