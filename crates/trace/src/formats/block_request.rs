//! Requests to block devices as the kernel's tracers print them: RWBS flags, and
//! `sector + sectors`.
//!
//! Definition: blkparse(1), "RWBS DESCRIPTION", and `Documentation/trace/events` of the block
//! events: R reads, W writes, D discards, F flushes (before or behind a W: flush and FUA), N
//! nothing, then A ahead, S synchronous, M metadata.

use crate::error::quote;

/// A request that moves data.
pub(super) struct Request {
    pub(super) sector: u64,
    pub(super) sectors: u64,
    pub(super) write: bool,
}

/// Whether flags are of a write; none: of neither a read nor a write.
pub(super) fn is_write(flags: &[u8]) -> Option<bool> {
    match flags {
        [b'D', ..] => None,
        _ if flags.contains(&b'W') => Some(true),
        _ if flags.contains(&b'R') => Some(false),
        _ => None,
    }
}

/// Reads `sector + sectors`, which may stand behind other fields; none: a request without data.
pub(super) fn read(flags: &[u8], rest: &[&[u8]]) -> Result<Option<Request>, String> {
    let Some(write) = is_write(flags) else { return Ok(None) };
    let Some(plus) = rest.iter().position(|word| *word == b"+") else {
        // A flush names the process alone; what begins with a number is cut.
        return match rest.first() {
            Some(word) if word.starts_with(b"[") => Ok(None),
            Some(word) => Err(format!("{} is not followed by + and a number of sectors", quote(word))),
            None => Err("the line is cut: it has no sector".into()),
        };
    };
    let [Some(sector), Some(sectors)] = [plus.checked_sub(1), Some(plus + 1)].map(|at| rest.get(at?)) else {
        return Err("the line is cut: it has no number of sectors".into());
    };
    let (sector, sectors) = (number(sector, "sector")?, number(sectors, "number of sectors")?);
    Ok((sectors > 0).then_some(Request { sector, sectors, write }))
}

fn number(word: &[u8], what: &str) -> Result<u64, String> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| format!("{what} {} is not a number", quote(word)))
}
