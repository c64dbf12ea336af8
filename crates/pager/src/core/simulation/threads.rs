//! Threads of the program, and what the pages that they write to should hold.

use super::random::Random;
use crate::store::PageBuf;

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thread {
    Runs,
    /// It waits in a fault.
    Waits {
        page: u32,
        write: bool,
    },
    /// It was woken, and tries again.
    Retries {
        page: u32,
        write: bool,
    },
}

/// All of them.
pub(crate) struct Threads(Vec<Thread>);

impl Threads {
    pub(crate) fn new(n: usize) -> Threads {
        Threads(vec![Thread::Runs; n])
    }

    pub(crate) fn all(&self) -> &[Thread] {
        &self.0
    }

    pub(crate) fn set(&mut self, thread: usize, to: Thread) {
        self.0[thread] = to;
    }

    pub(crate) fn block(&mut self, thread: usize, page: u32, write: bool) {
        self.0[thread] = Thread::Waits { page, write };
    }

    pub(crate) fn wake(&mut self, page: u32) {
        for thread in &mut self.0 {
            if let Thread::Waits { page: p, write } = *thread
                && p == page
            {
                *thread = Thread::Retries { page, write };
            }
        }
    }

    /// Wakes one of the waiting threads, whether its page is there or not.
    pub(crate) fn wake_one(&mut self, random: &mut Random) {
        let i = random.below(self.0.len() as u64) as usize;
        if let Thread::Waits { page, write } = self.0[i] {
            self.0[i] = Thread::Retries { page, write };
        }
    }

    /// Whether any thread is at a page of the range.
    pub(crate) fn are_at(&self, pages: &std::ops::Range<u32>) -> bool {
        self.0.iter().any(|t| match t {
            Thread::Runs => false,
            Thread::Waits { page, .. } | Thread::Retries { page, .. } => pages.contains(page),
        })
    }
}

/// Content that each page should hold: the number of the last write to it; 0: zeros.
pub(crate) struct Model {
    of_page: Vec<u32>,
    writes: u32,
}

impl Model {
    pub(crate) fn new(pages: u32) -> Model {
        Model { of_page: vec![0; pages as usize], writes: 0 }
    }

    /// A page is written once more.
    pub(crate) fn write(&mut self, page: u32, frame: &mut PageBuf) {
        self.writes += 1;
        self.of_page[page as usize] = self.writes;
        fill(page, self.writes, frame);
    }

    /// A page was given up.
    pub(crate) fn forget(&mut self, page: u32) {
        self.of_page[page as usize] = 0;
    }

    /// Whether a page holds what it should.
    pub(crate) fn check(&self, page: u32, frame: &PageBuf) -> Result<(), String> {
        let mut expected = PageBuf::default();
        fill(page, self.of_page[page as usize], &mut expected);
        match frame.0.iter().zip(&expected.0).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => Err(format!(
                "byte {at} of page {page} is {:#04x} and should be {:#04x} (write {})",
                frame.0[at], expected.0[at], self.of_page[page as usize]
            )),
        }
    }
}

/// Content of a page after `version` writes: of some, one word repeated.
fn fill(page: u32, version: u32, frame: &mut PageBuf) {
    if version == 0 {
        frame.0.fill(0);
        return;
    }
    let mut random = Random::new(u64::from(page) << 32 | u64::from(version));
    let first = random.next();
    for word in frame.0.chunks_exact_mut(8) {
        let value = if version.is_multiple_of(5) { first } else { random.next() };
        word.copy_from_slice(&value.to_le_bytes());
    }
}
