//! A bound on the memory of a program that would rather end with a line than be killed.
//!
//! The heap asks before it maps a large block. Only those are counted: tables of a replay are, and
//! all else is small beside them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that large blocks may take together; `usize::MAX`: nobody set a bound.
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bytes that they take.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The exit status of a program that its memory does not suffice for.
const NO_MEMORY: i32 = 2;

/// From now on the process ends with one line and status 2 when its heap would take more than so
/// many bytes, or when the system refuses it memory.
///
/// For programs that leave nothing behind when they end at any place.
pub fn bound_heap(bytes: usize) {
    // The largest number says that there is no bound.
    BOUND.store(bytes.min(usize::MAX - 1), Relaxed);
}

/// Counts a large block that is to be mapped; ends the process if it is too much.
pub(crate) fn take(bytes: usize) {
    let taken = TAKEN.fetch_add(bytes, Relaxed);
    let bound = BOUND.load(Relaxed);
    if bound != usize::MAX && taken.saturating_add(bytes) > bound {
        end(bytes, taken, Some(bound));
    }
}

/// Counts a block again that was given back only for the reckoning.
pub(crate) fn note(bytes: usize) {
    TAKEN.fetch_add(bytes, Relaxed);
}

/// Counts a large block that is no more.
pub(crate) fn give_back(bytes: usize) {
    TAKEN.fetch_sub(bytes, Relaxed);
}

/// A block as the system gave it; ends the process if it gave none and there is a bound.
#[inline]
pub(crate) fn given(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() && BOUND.load(Relaxed) != usize::MAX {
        end(bytes, TAKEN.load(Relaxed), None);
    }
    block
}

/// Says it in one line, without the heap, and ends the process.
#[cold]
fn end(bytes: usize, taken: usize, bound: Option<usize>) -> ! {
    let mut line = Line { text: [0; 320], length: 0 };
    line.push("error: out of memory: ");
    line.mebibytes(bytes);
    line.push(" more are wanted beside ");
    line.mebibytes(taken);
    match bound {
        Some(bound) => {
            line.push(", and --max-memory is ");
            line.mebibytes(bound);
            line.push(" (what was available, unless it was given)");
        }
        None => line.push(", which the system refuses (ulimit -v)"),
    }
    line.push("; take fewer sizes and policies at a time, --stream or --sample, or give it more\n");
    // SAFETY: the bytes are there; the descriptor is that of standard error, open or not. `_exit`
    // runs nothing of this process any more.
    unsafe {
        libc::write(2, line.text.as_ptr().cast(), line.length);
        libc::_exit(NO_MEMORY)
    }
}

/// A line that is written without memory.
struct Line {
    text: [u8; 320],
    length: usize,
}

impl Line {
    /// Adds a text, as far as there is room.
    fn push(&mut self, text: &str) {
        for &byte in text.as_bytes() {
            if let Some(to) = self.text.get_mut(self.length) {
                *to = byte;
                self.length += 1;
            }
        }
    }

    fn mebibytes(&mut self, bytes: usize) {
        let mut digits = [0; 20];
        let (mut left, mut at) = (bytes.div_ceil(1 << 20), digits.len());
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.push(std::str::from_utf8(&digits[at..]).unwrap_or_default());
        self.push(" MiB");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_need_no_heap() {
        let mut line = Line { text: [0; 320], length: 0 };
        for bytes in [0, 1, 10 << 20, usize::MAX] {
            line.mebibytes(bytes);
            line.push(", ");
        }
        let text = std::str::from_utf8(&line.text[..line.length]).unwrap();
        assert_eq!(text, "0 MiB, 1 MiB, 10 MiB, 17592186044416 MiB, ");
        line.push(&"x".repeat(1000));
        assert_eq!(line.length, line.text.len());
    }
}
