//! Idle page tracking: a bit for each frame, which is cleared when the frame is touched.
//!
//! Reading a bit asks the page tables, and what they say is kept for reclaim, which does not see
//! less by it. Only the first frame of a large folio has a bit.

use rustc_hash::FxHashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";
const FLAGS: &str = "/proc/kpageflags";

/// Flag of a frame: it is of a large folio, and not the first one.
const TAIL: u64 = 1 << 16;

/// The most frames of a folio.
const LARGEST: u64 = 1 << 10;

#[derive(Debug)]
pub(super) struct Idle {
    bitmap: File,
    flags: File,
}

impl Idle {
    pub(super) fn open() -> Result<Idle, String> {
        let bitmap = OpenOptions::new().read(true).write(true).open(BITMAP);
        let bitmap = bitmap.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => "no idle page tracking in this kernel (CONFIG_IDLE_PAGE_TRACKING)".to_owned(),
            _ => format!("{BITMAP}: cannot be opened: {e}"),
        })?;
        let flags = File::open(FLAGS).map_err(|e| format!("{FLAGS}: cannot be opened: {e}"))?;
        Ok(Idle { bitmap, flags })
    }

    /// Frames of these that were touched since they were marked last; marks them all.
    pub(super) fn take(&self, frames: &[u64]) -> io::Result<FxHashMap<u64, bool>> {
        let firsts = self.firsts(frames)?;
        let mut words: Vec<u64> = firsts.values().map(|first| first / 64).collect();
        words.sort_unstable();
        words.dedup();
        let mut idle: FxHashMap<u64, u64> = FxHashMap::default();
        for &word in &words {
            idle.insert(word, read(&self.bitmap, word)?);
        }
        let mut marks: FxHashMap<u64, u64> = FxHashMap::default();
        firsts.values().for_each(|first| *marks.entry(first / 64).or_default() |= 1 << (first % 64));
        for (word, bits) in marks {
            self.bitmap.write_all_at(&bits.to_ne_bytes(), word * 8)?;
        }
        let is_touched = |first: u64| idle.get(&(first / 64)).is_some_and(|bits| bits >> (first % 64) & 1 == 0);
        Ok(firsts.into_iter().map(|(frame, first)| (frame, is_touched(first))).collect())
    }

    /// The first frame of the folio of each.
    fn firsts(&self, frames: &[u64]) -> io::Result<FxHashMap<u64, u64>> {
        let mut firsts: FxHashMap<u64, u64> = FxHashMap::default();
        for &frame in frames {
            if firsts.contains_key(&frame) {
                continue;
            }
            let mut first = frame;
            while frame - first < LARGEST && first > 0 && read(&self.flags, first)? & TAIL != 0 {
                first -= 1;
            }
            firsts.insert(frame, first);
        }
        Ok(firsts)
    }
}

fn read(file: &File, word: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    match file.read_at(&mut bytes, word * 8)? {
        8 => Ok(u64::from_ne_bytes(bytes)),
        // Beyond the last frame.
        _ => Ok(0),
    }
}
