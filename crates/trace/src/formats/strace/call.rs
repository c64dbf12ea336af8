//! Lines of strace taken apart: process, time, name, arguments, result.
//!
//! Definition: strace(1), "OUTPUT FORMAT", and its options -f, -t, -tt, -ttt, -r, -T, -y, -yy, -Y.

/// A line.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'l> {
    /// Number of the process; 0 where the line has none.
    pub(super) process: u64,
    pub(super) time: Option<CallTime>,
    pub(super) content: Content<'l>,
}

/// A time as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallTime {
    /// Nanoseconds of a day, or since 1970.
    At(u64),
    /// Nanoseconds since the line before (`-r`).
    After(u64),
}

/// Kinds of lines.
#[derive(Debug, PartialEq)]
pub(super) enum Content<'l> {
    /// A call that returned: its name, what is between the parentheses, and behind the equal sign.
    Call { name: &'l [u8], args: &'l [u8], result: &'l [u8] },
    /// The first part of a call, which another process interrupts.
    Begun { name: &'l [u8], args: &'l [u8] },
    /// The rest of such a call.
    Resumed { name: &'l [u8], args: &'l [u8], result: &'l [u8] },
    /// The process ended.
    Exited,
    /// A signal, or a note of strace.
    Other,
}

/// Seconds below this are no time since 1970, so that they are relative.
const RELATIVE_S: u64 = 100_000_000;

/// Takes a line apart; an error is why it is none.
pub(super) fn parse(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let mut rest = line.trim_ascii();
    // Notes of strace, stacks (-k), and notes on the mode of a process.
    let notes = [&b"strace: "[..], b"/usr/bin/strace: ", b"> ", b"[ "];
    if notes.iter().any(|mark| rest.starts_with(mark)) {
        return Ok(Line { process: 0, time: None, content: Content::Other });
    }
    let mut process = 0;
    if let Some(inner) = rest.strip_prefix(b"[pid") {
        let end = memchr::memchr(b']', inner).ok_or("[pid is not closed")?;
        process = leading_number(inner[..end].trim_ascii()).ok_or("[pid has no number")?;
        rest = inner[end + 1..].trim_ascii_start();
    } else if let Some((number, behind)) = leading_process(rest) {
        (process, rest) = (number, behind);
    }
    let mut time = None;
    while let Some((found, behind)) = leading_time(rest) {
        // With -r and -t together the absolute time is behind.
        time = Some(found);
        rest = behind;
    }
    let content = content(rest)?;
    Ok(Line { process, time, content })
}

fn leading_number(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

/// A number without a point and without a colon, perhaps with the command in `<...>`.
fn leading_process(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().position(|b| !b.is_ascii_digit())?;
    let number = leading_number(&text[..digits])?;
    match text[digits] {
        b' ' => Some((number, text[digits..].trim_ascii_start())),
        b'<' => {
            let end = memchr::memmem::find(&text[digits..], b"> ")?;
            Some((number, text[digits + end + 2..].trim_ascii_start()))
        }
        _ => None,
    }
}

/// A time in front: `12:01:02.5`, `1690000000.123456`, `0.000021`, or `(+ 0.000021)`.
fn leading_time(text: &[u8]) -> Option<(CallTime, &[u8])> {
    if let Some(inner) = text.strip_prefix(b"(+") {
        let end = memchr::memchr(b')', inner)?;
        let ns = seconds(inner[..end].trim_ascii())?;
        return Some((CallTime::After(ns), inner[end + 1..].trim_ascii_start()));
    }
    let end = text.iter().position(|b| *b == b' ')?;
    let (word, behind) = (&text[..end], text[end..].trim_ascii_start());
    if word.contains(&b':') {
        let mut parts = word.split(|b| *b == b':');
        let whole = |part: &[u8]| std::str::from_utf8(part).ok()?.parse::<u64>().ok();
        let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
        let second = seconds(parts.next()?).filter(|_| parts.next().is_none() && hour < 24 && minute < 60)?;
        return Some((CallTime::At((hour * 60 + minute) * 60_000_000_000 + second), behind));
    }
    let ns = word.contains(&b'.').then(|| seconds(word))??;
    let is_relative = ns / 1_000_000_000 < RELATIVE_S;
    Some((if is_relative { CallTime::After(ns) } else { CallTime::At(ns) }, behind))
}

fn seconds(text: &[u8]) -> Option<u64> {
    super::super::columns::time(text, 1_000_000_000).ok().map(|time| time.ns)
}

fn content(text: &[u8]) -> Result<Content<'_>, &'static str> {
    if text.starts_with(b"+++ ") {
        return Ok(if text.starts_with(b"+++ exited") || text.starts_with(b"+++ killed") {
            Content::Exited
        } else {
            Content::Other
        });
    }
    if text.starts_with(b"--- ") {
        return Ok(Content::Other);
    }
    if let Some(inner) = text.strip_prefix(b"<... ") {
        let end = memchr::memmem::find(inner, b" resumed>").ok_or("a resumed call has no name")?;
        let behind = &inner[end + b" resumed>".len()..];
        let (args, result) = result(behind).ok_or("the line is cut: a resumed call has no result")?;
        return Ok(Content::Resumed { name: &inner[..end], args, result });
    }
    let open = memchr::memchr(b'(', text).ok_or("is no call, such as read(3, ...) = 5")?;
    let name = &text[..open];
    if name.is_empty() || !name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') {
        return Err("is no call, such as read(3, ...) = 5");
    }
    let behind = &text[open + 1..];
    for mark in [&b"<unfinished ...>"[..], b"<detached ...>"] {
        if let Some(args) = behind.strip_suffix(mark) {
            return Ok(Content::Begun { name, args });
        }
    }
    // A resumed call may end with a mark of its own.
    let (args, result) = result(behind).ok_or("the line is cut: the call has no result")?;
    Ok(Content::Call { name, args, result })
}

/// Arguments and result: what is before and behind the last `) = `.
fn result(text: &[u8]) -> Option<(&[u8], &[u8])> {
    // strace pads with blanks before the equal sign.
    let equal = memchr::memmem::rfind(text, b" = ")?;
    let before = text[..equal].trim_ascii_end();
    let args = before.strip_suffix(b")")?;
    Some((args, text[equal + 3..].trim_ascii()))
}

/// The arguments, between commas that are in no string, bracket or name of a file.
pub(super) fn arguments(text: &[u8]) -> Vec<&[u8]> {
    let (mut all, mut start, mut depth, mut at) = (Vec::new(), 0, 0usize, 0);
    while at < text.len() {
        match text[at] {
            b'"' => at = end_of_string(text, at),
            b'<' if at > 0 && (text[at - 1].is_ascii_digit() || text[at - 1] == b'D') => at = end_of_name(text, at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                all.push(text[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = text[start.min(text.len())..].trim_ascii();
    if !last.is_empty() || !all.is_empty() {
        all.push(last);
    }
    all
}

/// Place of the quote that ends a string.
fn end_of_string(text: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// Place of the bracket that ends the name of a descriptor: some have brackets of their own, as in
/// `<TCP:[1.2.3.4:80->5.6.7.8:9]>`.
fn end_of_name(text: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.iter().enumerate().skip(open) {
        match byte {
            b'<' => depth += 1,
            // An arrow is no end.
            b'>' if text[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The text of a string, as it is written between its quotes.
pub(super) fn string(arg: &[u8]) -> Option<&[u8]> {
    let inner = arg.strip_prefix(b"\"")?;
    let end = end_of_string(arg, 0) - 1;
    inner.get(..end)
}

/// A descriptor, and its name where strace -y prints it.
pub(super) fn descriptor(arg: &[u8]) -> Option<(i64, Option<&[u8]>)> {
    let end = arg.iter().position(|b| *b == b'<' || *b == b' ').unwrap_or(arg.len());
    let number = match &arg[..end] {
        b"AT_FDCWD" => -100,
        digits => std::str::from_utf8(digits).ok()?.parse().ok()?,
    };
    let name = arg.get(end..).filter(|rest| rest.starts_with(b"<"));
    let name = name.map(|rest| &rest[1..end_of_name(rest, 0).min(rest.len())]);
    Some((number, name))
}

/// A number in front of a result or an argument; none: it failed, or is no number.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = text.split(|b| *b == b' ' || *b == b'<').next()?;
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_of_lines() {
        let of = |text: &'static str| parse(text.as_bytes()).map(|line| (line.process, line.time));
        let at = |ns| Some(CallTime::At(ns));
        for (text, want) in [
            ("close(3) = 0", (0, None)),
            ("7 close(3) = 0", (7, None)),
            ("[pid    7] close(3)     = 0", (7, None)),
            ("7<a b> 00:00:01 close(3) = 0", (7, at(1_000_000_000))),
            ("7 01:00:00.5 close(3) = 0", (7, at(3_600_500_000_000))),
            ("7 1690000000.5 close(3) = 0", (7, at(1_690_000_000_500_000_000))),
            ("     0.000021 close(3) = 0", (0, Some(CallTime::After(21_000)))),
            ("7 00:00:01 (+     0.000021) close(3) = 0", (7, Some(CallTime::After(21_000)))),
        ] {
            assert_eq!(of(text), Ok(want), "{text}");
        }
        for text in ["x", "7 read(3, ", "read(3, \"\", 5) = ", "<... read resumed>", "1,2", "(3) = 4"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn commas_of_strings_and_names_are_none_of_arguments() {
        let split = |text: &'static str| {
            arguments(text.as_bytes())
                .into_iter()
                .map(|arg| String::from_utf8_lossy(arg).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(split(""), Vec::<String>::new());
        assert_eq!(split(r#"3</a,b>, "x,\",y"..., 5"#), ["3</a,b>", r#""x,\",y"..."#, "5"]);
        assert_eq!(split("4<TCP:[1:2->3:4]>, [{a=1, b=2}, {c}], 7"), ["4<TCP:[1:2->3:4]>", "[{a=1, b=2}, {c}]", "7"]);
        assert_eq!(string(br#""/a\"b"..."#), Some(&br#"/a\"b"#[..]));
        assert_eq!(descriptor(b"3</a b>"), Some((3, Some(&b"/a b"[..]))));
        assert_eq!(descriptor(b"AT_FDCWD"), Some((-100, None)));
        assert_eq!(descriptor(b"{x}"), None);
    }
}
