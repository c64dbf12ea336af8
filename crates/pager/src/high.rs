//! `memory.high`: faults that are served, and wait. The engine says for how long.
//!
//! A page is put in its place without waking who faulted on it. When the engine has reclaimed and said how long to sleep, that
//! thread goes on, at once or later. It sleeps in its fault, so no other thread is held up, nor does the pager spend one on it.

use std::time::{Duration, Instant};

/// Pages that may be ordered out for one return: a batch of charges.
pub(crate) const MOST_LEAVING: usize = 64;

/// Who is to wait: places of type `P`. With the default, nobody ever.
pub(crate) struct High<P> {
    /// There is a `memory.high`: whoever faulted goes on when the engine lets it.
    pub(crate) holds: bool,
    /// Pages that are in place and whose faults were not let go yet.
    held: Vec<P>,
    /// How long they are to wait: the engine's last word.
    pub(crate) sleep_ns: u64,
    /// Pages whose faults wait, and until when.
    sleepers: Vec<(Instant, Vec<P>)>,
    /// Somebody began to wait since the evictor looked.
    pub(crate) new_sleepers: bool,
    /// Reclaim stops when so many pages are on their way out.
    pub(crate) most_leaving: usize,
}

impl<P> Default for High<P> {
    fn default() -> High<P> {
        let (held, sleepers) = (Vec::new(), Vec::new());
        High { holds: false, held, sleep_ns: 0, sleepers, new_sleepers: false, most_leaving: usize::MAX }
    }
}

/// Whose faults were held, and what becomes of them.
pub(crate) enum Released<P> {
    /// They go on.
    Now(Vec<P>),
    /// So many sleep, for so many nanoseconds.
    Later(u64, u64),
}

impl<P: PartialEq> High<P> {
    /// A page was put in its place, and who asked for it was not woken.
    pub(crate) fn hold(&mut self, place: P) {
        self.held.push(place);
    }

    /// How many wait.
    pub(crate) fn sleeping(&self) -> usize {
        self.sleepers.iter().map(|(_, places)| places.len()).sum()
    }

    /// Faults were served whose threads do not go on yet.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a fault on the page is served, and waits.
    pub(crate) fn is_asleep(&self, place: &P) -> bool {
        self.held.contains(place) || self.sleepers.iter().any(|(_, places)| places.contains(place))
    }

    /// Those that are held go on, or sleep as long as the engine said.
    pub(crate) fn release(&mut self) -> Released<P> {
        let places = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.sleep_ns) {
            0 => Released::Now(places),
            ns => {
                let n = places.len() as u64;
                self.sleepers.push((Instant::now() + Duration::from_nanos(ns), places));
                self.new_sleepers = true;
                Released::Later(n, ns)
            }
        }
    }

    /// Those whose time has come; for each the engine is to be told that it ended.
    pub(crate) fn take_due(&mut self) -> Vec<Vec<P>> {
        self.new_sleepers = false;
        if self.sleepers.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        self.sleepers.extract_if(.., |(until, _)| *until <= now).map(|(_, places)| places).collect()
    }

    /// How long it is until the next one's time comes.
    pub(crate) fn next(&self) -> Option<Duration> {
        let now = Instant::now();
        self.sleepers.iter().map(|(until, _)| until.saturating_duration_since(now)).min()
    }

    /// The time of all has come.
    pub(crate) fn end_all(&mut self) {
        let now = Instant::now();
        self.sleepers.iter_mut().for_each(|(until, _)| *until = now);
    }

    pub(crate) fn bytes(&self) -> usize {
        let places = self.held.capacity() + self.sleepers.iter().map(|(_, p)| p.capacity()).sum::<usize>();
        places * size_of::<P>() + self.sleepers.capacity() * size_of::<(Instant, Vec<P>)>()
    }
}
