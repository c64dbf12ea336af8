//! A bound on the memory of a program that would rather end with a line than be killed.
//!
//! The heap counts each block before it takes it. A thread adds up small ones by itself and tells
//! the others of them in portions, so that counting costs no shared cache line a block. Memory that
//! the process had when the bound was set counts, too: its program, its stacks, its tables.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Bytes that the process may have; `usize::MAX`: nobody set a bound.
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bytes that it has, but for what threads have not told yet.
static TAKEN: AtomicIsize = AtomicIsize::new(0);

/// The advice for who meets the bound, beside that of giving more.
static ADVICE: Mutex<&str> = Mutex::new("");

/// Bytes that a thread takes or gives back before it tells of them.
const PORTION: isize = 16 << 10;

/// The exit status of a program that its memory does not suffice for.
const NO_MEMORY: i32 = 2;

thread_local! {
    /// Bytes that this thread took, less those that it gave back, since it last told of them.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
}

/// From now on the process ends with one line and status 2 when it would have more than so many
/// bytes, program and all, or when the system refuses it memory.
///
/// For programs that leave nothing behind when they end at any place.
pub fn bound_heap(bytes: usize) {
    let resident = signed(resident_bytes());
    // The heap is a part of what is resident, or is not touched yet.
    let beside_heap = (resident - TAKEN.load(Relaxed)).max(0);
    let taken = TAKEN.fetch_add(beside_heap, Relaxed) + beside_heap;
    if taken.unsigned_abs() > bytes {
        end(Wanted::Itself(taken.unsigned_abs()), bytes);
    }
    // The largest number says that there is no bound.
    BOUND.store(bytes.min(usize::MAX - 1), Relaxed);
}

/// Sets the advice that the line gives at the end, beside giving more memory.
pub fn advise_when_full(advice: &'static str) {
    if let Ok(mut of_line) = ADVICE.lock() {
        *of_line = advice;
    }
}

/// Runs something that leaves things behind if it is ended at any place: without a bound.
pub fn without_bound<T>(run: impl FnOnce() -> T) -> T {
    struct Restored(usize);
    impl Drop for Restored {
        fn drop(&mut self) {
            BOUND.store(self.0, Relaxed);
        }
    }
    let _restored = Restored(BOUND.swap(usize::MAX, Relaxed));
    run()
}

/// Bytes of this process in memory; 0: the system does not tell.
pub fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * crate::machine::page_bytes() as usize
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

/// Counts a block that is wanted; ends the process if it is too much.
#[inline]
pub(crate) fn take(bytes: usize) {
    let untold = UNTOLD.get().saturating_add(signed(bytes));
    if untold < PORTION {
        return UNTOLD.set(untold);
    }
    tell_taken(untold);
}

#[cold]
fn tell_taken(untold: isize) {
    UNTOLD.set(0);
    let taken = TAKEN.fetch_add(untold, Relaxed);
    let bound = BOUND.load(Relaxed);
    let (taken, untold) = (taken.max(0).unsigned_abs(), untold.unsigned_abs());
    if bound != usize::MAX && taken.saturating_add(untold) > bound {
        end(Wanted::More(untold, taken), bound);
    }
}

/// Counts a block again that was given back only for the reckoning.
pub(crate) fn note(bytes: usize) {
    TAKEN.fetch_add(signed(bytes), Relaxed);
}

/// Counts a block that is no more.
#[inline]
pub(crate) fn give_back(bytes: usize) {
    let untold = UNTOLD.get().saturating_sub(signed(bytes));
    if untold > -PORTION {
        return UNTOLD.set(untold);
    }
    UNTOLD.set(0);
    TAKEN.fetch_add(untold, Relaxed);
}

/// A block as the system gave it; ends the process if it gave none and there is a bound.
#[inline]
pub(crate) fn given(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        give_back(bytes);
        if BOUND.load(Relaxed) != usize::MAX {
            end(Wanted::Refused(bytes, TAKEN.load(Relaxed).max(0).unsigned_abs()), 0);
        }
    }
    block
}

/// Why there is no memory, with bytes.
enum Wanted {
    /// Before any input is read.
    Itself(usize),
    /// So much more than is taken.
    More(usize, usize),
    /// The same, and the system has no more.
    Refused(usize, usize),
}

/// Says it in one line, without the heap, and ends the process.
#[cold]
fn end(wanted: Wanted, bound: usize) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    while ENDS.swap(true, Relaxed) {
        // Another thread has said it, and ends this one, too.
        // SAFETY: the call waits for a signal, and touches nothing.
        unsafe { libc::pause() };
    }
    let mut line = MapsLine { text: [0; 400], length: 0 };
    line.push("error: out of memory: ");
    match wanted {
        Wanted::Itself(bytes) => {
            line.push("refault itself has ");
            line.mebibytes(bytes);
            line.push(" before it reads anything, and --max-memory is ");
            line.mebibytes(bound);
            line.push("; give it more\n");
        }
        Wanted::More(bytes, taken) => {
            line.push("at least ");
            line.mebibytes(bytes.saturating_add(taken));
            line.push(" are needed, and --max-memory is ");
            line.mebibytes(bound);
            line.push(" (what was available, unless it was given)");
        }
        Wanted::Refused(bytes, taken) => {
            line.mebibytes(bytes);
            line.push(" more are wanted beside ");
            line.mebibytes(taken);
            line.push(", which the system refuses (ulimit -v)");
        }
    }
    if !matches!(wanted, Wanted::Itself(_)) {
        // A thread that ends here may hold the lock.
        let advice = ADVICE.try_lock().map_or("", |advice| *advice);
        line.push("; ");
        if !advice.is_empty() {
            line.push(advice);
            line.push(", or ");
        }
        line.push("give it more\n");
    }
    // SAFETY: the bytes are there; the descriptor is that of standard error, open or not. `_exit`
    // runs nothing of this process any more.
    unsafe {
        libc::write(2, line.text.as_ptr().cast(), line.length);
        libc::_exit(NO_MEMORY)
    }
}

/// A line that is written without memory.
struct MapsLine {
    text: [u8; 400],
    length: usize,
}

impl MapsLine {
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

/// Held by tests that take memory of the heap, so that one counts no blocks of another.
#[cfg(test)]
pub(crate) static COUNT: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_need_no_heap() {
        let mut line = MapsLine { text: [0; 400], length: 0 };
        for bytes in [0, 1, 10 << 20, usize::MAX] {
            line.mebibytes(bytes);
            line.push(", ");
        }
        let text = std::str::from_utf8(&line.text[..line.length]).unwrap();
        assert_eq!(text, "0 MiB, 1 MiB, 10 MiB, 17592186044416 MiB, ");
        line.push(&"x".repeat(1000));
        assert_eq!(line.length, line.text.len());
    }

    /// Small blocks that a thread took and gave back are told of, but for less than a portion.
    #[test]
    fn small_blocks_are_counted() {
        let _alone = COUNT.lock();
        let before = TAKEN.load(Relaxed);
        let blocks = 10_000;
        let taken = std::thread::spawn(move || {
            (0..blocks).for_each(|_| take(1000));
            let taken = TAKEN.load(Relaxed);
            (0..blocks).for_each(|_| give_back(1000));
            taken - before
        });
        let taken = taken.join().unwrap();
        let others = 1 << 20;
        assert!((taken - 1000 * blocks).abs() <= PORTION + others, "{taken}");
        assert!((TAKEN.load(Relaxed) - before).abs() <= 2 * PORTION + others);
    }

    #[test]
    fn what_runs_without_a_bound_has_it_again_afterwards() {
        assert_eq!(without_bound(|| BOUND.load(Relaxed)), usize::MAX);
        assert!(resident_bytes() > 100_000);
    }
}
