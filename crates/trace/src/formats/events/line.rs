//! Lines of events, as perf script, trace-cmd report and tracefs print them.
//!
//! Definition: perf-script(1), fields `comm,pid,tid,cpu,time,period,event,trace`;
//! trace-cmd-report(1); `Documentation/trace/ftrace.rst`, "Output format".

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventLine<'l> {
    /// Number of the process, where the line has both that and the thread.
    pub(super) process: Option<&'l [u8]>,
    /// Number of the thread.
    pub(super) thread: &'l [u8],
    /// Seconds.
    pub(super) time: &'l [u8],
    /// Its name, without the subsystem and modifiers.
    pub(super) event: &'l [u8],
    /// Fields of the event.
    pub(super) fields: &'l [u8],
}

/// Words of a line, each with where it begins.
fn words_at(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let is_blank = |b: &u8| *b == b' ' || *b == b'\t';
    let words = line.split(is_blank).filter(|word| !word.is_empty());
    words.map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

fn are_digits(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// Seconds and a colon.
fn is_time(word: &[u8]) -> bool {
    let Some(text) = word.strip_suffix(b":") else { return false };
    let mut parts = text.split(|b| *b == b'.');
    parts.next().is_some_and(are_digits) && parts.next().is_some_and(are_digits) && parts.next().is_none()
}

/// Takes a line apart; none: it is no event.
pub(super) fn parse(line: &[u8]) -> Option<EventLine<'_>> {
    let (at, time) = words_at(line).find(|(at, word)| *at > 0 && is_time(word))?;
    let (process, thread) = task(&line[..at])?;
    let rest = line[at + time.len()..].trim_ascii_start();
    // The period of a sample.
    let rest = match words_at(rest).next() {
        Some((_, word)) if are_digits(word) => rest[word.len()..].trim_ascii_start(),
        _ => rest,
    };
    let (event, fields) = event(rest)?;
    Some(EventLine { process, thread, time: &time[..time.len() - 1], event, fields })
}

/// The process and the thread in front of the time.
fn task(front: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let mut words: Vec<&[u8]> = words_at(front).map(|(_, word)| word).collect();
    let is_cpu = |word: &[u8]| word.starts_with(b"[") && word.ends_with(b"]");
    if let [.., cpu, flags] = words[..] {
        let are_flags = flags.len() >= 4 && flags.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'.' || *b == b'#');
        if is_cpu(cpu) && are_flags {
            words.pop();
        }
    }
    if words.last().is_some_and(|word| is_cpu(word)) {
        words.pop();
    }
    // The thread group of ftrace, `(  123)`.
    if words.last().is_some_and(|word| word.ends_with(b")")) {
        while let Some(word) = words.pop() {
            if word.starts_with(b"(") {
                break;
            }
        }
    }
    let word = *words.last()?;
    if are_digits(word) {
        return Some((None, word));
    }
    let mut parts = word.splitn(2, |b| *b == b'/');
    let (process, thread) = (parts.next()?, parts.next());
    if let Some(thread) = thread.filter(|thread| are_digits(thread) && are_digits(process)) {
        return Some((Some(process), thread));
    }
    let dash = memchr::memrchr(b'-', word)?;
    are_digits(&word[dash + 1..]).then_some((None, &word[dash + 1..]))
}

/// The name of the event, and its fields.
fn event(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, word) = words_at(rest).next()?;
    // ftrace prints system calls as `sys_pread64(fd: 3, ...)`.
    if let Some(open) = memchr::memchr(b'(', word).filter(|open| *open > 0) {
        return Some((&rest[..open], &rest[open + 1..]));
    }
    let name = word.strip_suffix(b":")?;
    let parts: Vec<&[u8]> = name.split(|b| *b == b':').collect();
    let name = match parts[..] {
        [only] => only,
        // `filemap:mm_filemap_fault`, and `page-faults:u`.
        [first, second, ..] if second.len() <= 4 && !second.contains(&b'_') => first,
        [_, second, ..] => second,
        [] => return None,
    };
    Some((name, rest[word.len()..].trim_ascii_start()))
}

/// Whether a line is of the stack that perf prints behind an event: an address and a symbol.
pub(super) fn is_stack(line: &[u8]) -> bool {
    let mut words = words_at(line).map(|(_, word)| word);
    let address = words.next().unwrap_or(b"");
    let is_indented = line.starts_with(b" ") || line.starts_with(b"\t");
    is_indented && address.len() >= 4 && address.iter().all(u8::is_ascii_hexdigit) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<[String; 4]> {
        let EventLine { process, thread, event, fields, .. } = parse(line.as_bytes())?;
        Some([process.unwrap_or(b""), thread, event, fields].map(|part| String::from_utf8_lossy(part).into_owned()))
    }

    #[test]
    fn lines_of_three_programs() {
        for (line, want) in [
            ("   cat-7 [001] ..... 7.1: mm_filemap_fault: dev=8:1", ["", "7", "mm_filemap_fault", "dev=8:1"]),
            ("   my-prog-7 [001] 7.1: block_rq_issue:   8,16 R", ["", "7", "block_rq_issue", "8,16 R"]),
            (" a b-7 (   7) [001] d..1. 7.1: block_rq_issue: x", ["", "7", "block_rq_issue", "x"]),
            (" <...>-7     [001] 7.1: block_bio_queue: x", ["", "7", "block_bio_queue", "x"]),
            ("  Web Content  8 [003] 7.1: filemap:mm_filemap_fault: x", ["", "8", "mm_filemap_fault", "x"]),
            ("  app 8/9 7.1:  33 page-faults:u:  7f00", ["8", "9", "page-faults", "7f00"]),
            ("  app 8 7.1:  33 cpu/mem-loads,ldlat=30/P:  7f00", ["", "8", "cpu/mem-loads,ldlat=30/P", "7f00"]),
            ("  app-8 [000] 7.1: sys_pread64(fd: 3, count: 10)", ["", "8", "sys_pread64", "fd: 3, count: 10)"]),
        ] {
            assert_eq!(parsed(line), Some(want.map(str::to_owned)), "{line}");
        }
        for line in ["", "7.1: a: b", "cat-7 [001] 7: a: b", "cat-7 [001] 7.1:", "cat [001] 7.1: a: b", "(: 7.1: a:"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
