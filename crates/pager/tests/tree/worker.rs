//! A thread of the program that does all that can be done to memory.

use std::os::fd::RawFd;

use super::segment::{PAGE, RW, Segment, map};
use refault_testing::Rng;

/// A thread of the program.
pub struct Worker {
    rng: Rng,
    pub segments: Vec<Segment>,
    /// Pages of a segment at the start: about as many remain.
    usual: usize,
    next: u64,
    pipe: [RawFd; 2],
    last: &'static str,
    /// A tenth of all steps moves memory, changes sizes, or forks; as many fill memory.
    churns: bool,
}

impl Worker {
    pub fn new(seed: u64, pages: usize, churns: bool) -> Worker {
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let segments: Vec<_> = (0..8).map(|_| Segment::new(pages / 8)).collect();
        Worker { rng: Rng(seed), segments, usual: pages / 8, next: seed << 32 | 1, pipe, last: "the start", churns }
    }

    pub fn step(&mut self) {
        let s = self.rng.below(self.segments.len());
        let pages = self.segments[s].versions.len();
        let page = self.rng.below(pages);
        let run = 1 + self.rng.below((pages - page).min(24));
        let mut choice = self.rng.below(1000);
        if self.churns && self.rng.below(10) == 0 {
            // Changes of which the kernel tells after they were done, so that others may have taken
            // the addresses.
            choice = 970 + self.rng.below(30);
        }
        match choice {
            0..100 if self.churns => {
                for p in page..page + run {
                    self.next += 1;
                    self.segments[s].write(p, self.next);
                }
            }
            0..500 => {
                self.segments[s].check(page, self.last);
                self.next += 1;
                self.segments[s].write(page, self.next);
            }
            500..900 => (page..page + run).for_each(|p| self.segments[s].check(p, self.last)),
            900..930 => self.through_a_pipe(s, page),
            930..950 => self.discard(s, page, run),
            950..960 => self.map_anew(s, page, run),
            960..970 => self.protect(s, page, run),
            970..980 => self.move_elsewhere(s),
            980..985 => self.resize(s),
            985..990 => self.read_a_file(s, page),
            990 => self.fork(),
            _ => self.on_the_heap(),
        }
    }

    /// The kernel reads one page and writes another.
    fn through_a_pipe(&mut self, s: usize, page: usize) {
        self.last = "a pipe";
        let other = self.rng.below(self.segments.len());
        let to = self.rng.below(self.segments[other].versions.len());
        let (from, at) = (self.segments[s].at + page * PAGE, self.segments[other].at + to * PAGE);
        // SAFETY: pages of segments of this thread.
        unsafe {
            assert_eq!(libc::write(self.pipe[1], from as *const _, PAGE), PAGE as isize);
            assert_eq!(libc::read(self.pipe[0], at as *mut _, PAGE), PAGE as isize);
        }
        self.segments[other].versions[to] = self.segments[s].versions[page];
        self.segments[other].check(to, "a pipe");
    }

    fn discard(&mut self, s: usize, page: usize, run: usize) {
        self.last = "MADV_DONTNEED";
        let segment = &mut self.segments[s];
        // SAFETY: pages of a segment of this thread, whose content is given up.
        let done = unsafe { libc::madvise((segment.at + page * PAGE) as *mut _, run * PAGE, libc::MADV_DONTNEED) };
        assert_eq!(done, 0);
        segment.versions[page..page + run].fill(0);
        if self.rng.below(2) == 0 {
            segment.check(page, self.last);
        }
    }

    fn map_anew(&mut self, s: usize, page: usize, run: usize) {
        self.last = "mapping anew";
        let segment = &mut self.segments[s];
        segment.is_one = false;
        let at = segment.at + page * PAGE;
        if self.rng.below(2) == 0 {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::munmap(at as *mut _, run * PAGE) }, 0);
            // Another thread may take the place in between: then the kernel says so.
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: nothing is replaced.
            let got = unsafe { libc::mmap(at as *mut _, run * PAGE, RW, flags, -1, 0) };
            if got as usize != at {
                let rest = segment.versions.split_off(page);
                let after = segment.at + (page + run) * PAGE;
                let rest = Segment { at: after, versions: rest[run..].to_vec(), is_one: false };
                if page == 0 {
                    self.segments.swap_remove(s);
                }
                if !rest.versions.is_empty() {
                    self.segments.push(rest);
                }
                return;
            }
        } else {
            map(at, run, RW, true);
        }
        segment.versions[page..page + run].fill(0);
        self.next += 1;
        segment.write(page, self.next);
    }

    fn protect(&mut self, s: usize, page: usize, run: usize) {
        self.last = "mprotect";
        let segment = &mut self.segments[s];
        // The kernel may not join again what it splits.
        segment.is_one = false;
        let at = (segment.at + page * PAGE) as *mut libc::c_void;
        let protect = |protection| {
            // SAFETY: pages of a segment of this thread, which does not touch them meanwhile but as
            // they allow.
            assert_eq!(unsafe { libc::mprotect(at, run * PAGE, protection) }, 0);
        };
        if self.rng.below(2) == 0 {
            protect(libc::PROT_READ);
            (page..page + run).for_each(|p| segment.check(p, "mprotect to read"));
        } else {
            protect(libc::PROT_NONE);
            std::thread::yield_now();
        }
        protect(RW);
        segment.check(page, self.last);
    }

    fn move_elsewhere(&mut self, s: usize) {
        self.last = "mremap";
        let segment = &mut self.segments[s];
        if !segment.is_one {
            // SAFETY: a segment of this thread is given up for a new one.
            unsafe { libc::munmap(segment.at as *mut _, segment.versions.len() * PAGE) };
            *segment = Segment::new(self.usual);
            return;
        }
        let bytes = segment.versions.len() * PAGE;
        let to = map(0, segment.versions.len(), libc::PROT_NONE, false);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: a segment of this thread goes to a place that was just made for it.
        let got = unsafe { libc::mremap(segment.at as *mut _, bytes, bytes, flags, to as *mut libc::c_void) };
        if got == libc::MAP_FAILED {
            // It grew while it was watched, so it is two mappings for a moment. Its outcome is not
            // known.
            *segment = Segment::new(segment.versions.len());
            return;
        }
        segment.at = to;
        let page = self.rng.below(segment.versions.len());
        segment.check(page, self.last);
    }

    fn resize(&mut self, s: usize) {
        self.last = "a change of size";
        let segment = &mut self.segments[s];
        if !segment.is_one {
            return;
        }
        let old = segment.versions.len();
        let new = (self.usual / 2 + self.rng.below(self.usual)).max(4);
        // SAFETY: a segment of this thread; what is cut off is given up.
        let got = unsafe { libc::mremap(segment.at as *mut _, old * PAGE, new * PAGE, libc::MREMAP_MAYMOVE) };
        if got == libc::MAP_FAILED {
            return;
        }
        segment.at = got as usize;
        segment.versions.resize(new, 0);
        segment.check(new - 1, self.last);
        segment.check(0, self.last);
    }

    /// The kernel writes into pages from a file, past the page cache if it can.
    fn read_a_file(&mut self, s: usize, page: usize) {
        use std::os::fd::AsRawFd;
        self.last = "read";
        let file = std::fs::File::open("/proc/self/exe").expect("it runs");
        let segment = &mut self.segments[s];
        let at = segment.at + page * PAGE;
        let mut expected = [0u8; PAGE];
        // SAFETY: a page of a segment of this thread, and a buffer.
        unsafe {
            assert_eq!(libc::pread(file.as_raw_fd(), at as *mut _, PAGE, PAGE as i64), PAGE as isize);
            assert_eq!(libc::pread(file.as_raw_fd(), expected.as_mut_ptr().cast(), PAGE, PAGE as i64), PAGE as isize);
            assert_eq!(std::slice::from_raw_parts(at as *const u8, PAGE), expected);
        }
        self.next += 1;
        segment.write(page, self.next);
    }

    /// A child must find what its parent had, and its parent what it had, whatever the child
    /// writes.
    fn fork(&mut self) {
        self.last = "fork";
        let (s, value) = (self.rng.below(self.segments.len()), self.next + 1);
        self.next += 2;
        // SAFETY: the child reads and writes memory, and ends without a word.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let segment = &mut self.segments[s];
            let before = segment.wrong().is_some();
            let n = segment.versions.len();
            (0..n).step_by(3).for_each(|page| segment.write(page, value));
            let after = segment.wrong().is_some();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(before) + 2 * i32::from(after)) };
        }
        let n = self.segments[s].versions.len();
        for page in (0..n).step_by(5) {
            self.segments[s].write(page, value + 1);
        }
        let mut status = 0;
        // SAFETY: the child that was just made.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        if status != 0 {
            eprintln!("a forked child found something else than its parent had: status {status:#x}");
            std::process::exit(1);
        }
        if let Some((page, i, found)) = self.segments[s].wrong() {
            eprintln!("after fork: page {page} word {i} is {found:#x}");
            std::process::exit(1);
        }
    }

    fn on_the_heap(&mut self) {
        self.last = "the heap";
        let n = 1 + self.rng.below(60_000);
        let mut list: Vec<u64> = Vec::new();
        (0..n as u64).for_each(|i| list.push(i ^ 0x5555));
        assert!(list.iter().enumerate().all(|(i, &v)| v == i as u64 ^ 0x5555), "the heap");
    }
}
