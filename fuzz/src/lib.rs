//! Use of the bytes by every fuzz target.

pub mod assembled;

use refault_trace::{Format, Input, LoadOptions, OpenOptions, Trace, TraceError, open_input};
use std::io::Cursor;

/// Enough accesses to reach every state of a reader, few enough to stay fast.
const ACCESSES: u64 = 1 << 16;

/// Loads bytes as a format (or finds out which); what comes out must hold together.
pub fn load(bytes: &[u8], format: Option<Format>) {
    for folded in [false, true] {
        let opts = OpenOptions {
            format,
            raw_ids: folded,
            instructions: folded,
            block_bytes: folded.then_some(512),
            ..OpenOptions::default()
        };
        match read_as(bytes, &opts) {
            Ok(trace) => check(&trace),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
}

/// Reads text of the format that its first line names, or in the columns that it describes.
pub fn columns(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |b| *b == b'\n');
    let (first, rest) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    let described = std::str::from_utf8(first).unwrap_or("_");
    let mut opts = OpenOptions::default();
    let read = opts.set_format(described).or_else(|_| opts.set_format(&format!("columns:{described}")));
    match read.and_then(|()| read_as(rest, &opts)) {
        Ok(trace) => check(&trace),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

fn read_as(bytes: &[u8], opts: &OpenOptions) -> Result<Trace, TraceError> {
    let input = Input::from_reader("t", Box::new(Cursor::new(bytes.to_vec())))?;
    let mut source = open_input(input, opts)?;
    let limits = LoadOptions {
        keep_time: true,
        keep_task: true,
        keep_memcg: true,
        max_accesses: Some(ACCESSES),
        ..LoadOptions::default()
    };
    Trace::load(&mut source, &limits)
}

/// Checks that page ids are dense and every one is touched.
pub fn check(trace: &Trace) {
    let accesses = trace.accesses.len();
    assert!(accesses > 0 && accesses as u64 <= ACCESSES);
    let mut next = 0;
    for object in &trace.objects {
        assert_eq!(object.first_page, next);
        assert!(object.indices.is_sorted_by(|a, b| a < b));
        next += object.indices.len() as u32;
    }
    assert_eq!(next, trace.footprint_pages());
    let mut touched = vec![false; next as usize];
    for access in &trace.accesses {
        touched[access.page() as usize] = true;
        assert!(!access.continues() || (!access.is_map() && !access.is_write()));
    }
    assert!(touched.iter().all(|t| *t));
    assert_eq!(trace.time_ns.as_ref().map(Vec::len), Some(accesses));
    assert_eq!(trace.task.as_ref().map(Vec::len), Some(accesses));
    assert_eq!(trace.memcg.as_ref().map(Vec::len), Some(accesses));
}
