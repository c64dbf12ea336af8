//! `memory.high`: faults that are served, and wait. The engine says for how long.
//!
//! A page is put in its place without waking who faulted on it. When the engine has reclaimed and
//! said how long to sleep, that thread goes on, at once or later. It sleeps in its fault, so no
//! other thread is held up, nor does the pager spend one on it.

/// Pages that may be ordered out for one return: a batch of charges.
pub(crate) const MOST_LEAVING: usize = 64;

/// Threads that are to wait: places of type `P`. With the default, nobody ever.
pub(crate) struct MemoryHigh<P> {
    /// There is a `memory.high`: the thread that faulted goes on when the engine lets it.
    pub(crate) holds: bool,
    /// Pages in place whose faults are served, but whose threads are not let go yet.
    held: Vec<P>,
    /// Nanoseconds that the held threads are to wait, as the engine said last.
    pub(crate) sleep_ns: u64,
    /// Pages whose threads sleep, and the time in nanoseconds at which the sleep ends.
    sleepers: Vec<(u64, Vec<P>)>,
    /// Somebody began to wait since the evictor looked.
    pub(crate) new_sleepers: bool,
    /// Number of pages on their way out at which reclaim stops.
    pub(crate) most_leaving: usize,
}

impl<P> Default for MemoryHigh<P> {
    fn default() -> MemoryHigh<P> {
        let (held, sleepers) = (Vec::new(), Vec::new());
        MemoryHigh { holds: false, held, sleep_ns: 0, sleepers, new_sleepers: false, most_leaving: usize::MAX }
    }
}

/// Threads whose faults were held, and how they go on.
pub(crate) enum Released<P> {
    /// Pages whose threads go on now.
    Now(Vec<P>),
    /// Number of threads that sleep, and for how many nanoseconds.
    Later(u64, u64),
}

impl<P: PartialEq> MemoryHigh<P> {
    /// A page was put in its place, and who asked for it was not woken.
    pub(crate) fn hold(&mut self, place: P) {
        self.held.push(place);
    }

    /// Number of threads that wait.
    pub(crate) fn sleeping(&self) -> usize {
        self.sleepers.iter().map(|(_, places)| places.len()).sum()
    }

    /// Whether faults were served whose threads do not go on yet.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a fault on the page is served, and waits.
    pub(crate) fn is_asleep(&self, place: &P) -> bool {
        self.held.contains(place) || self.sleepers.iter().any(|(_, places)| places.contains(place))
    }

    /// Releases the threads that are held: they go on, or sleep as long as the engine said.
    pub(crate) fn release(&mut self, now_ns: u64) -> Released<P> {
        let places = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.sleep_ns) {
            0 => Released::Now(places),
            ns => {
                let n = places.len() as u64;
                self.sleepers.push((now_ns.saturating_add(ns), places));
                self.new_sleepers = true;
                Released::Later(n, ns)
            }
        }
    }

    /// Takes the pages whose sleep is over; the engine is to be told of each end.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<Vec<P>> {
        self.new_sleepers = false;
        if self.sleepers.is_empty() {
            return Vec::new();
        }
        self.sleepers.extract_if(.., |(until, _)| *until <= now_ns).map(|(_, places)| places).collect()
    }

    /// Nanoseconds until the next sleep ends.
    pub(crate) fn next(&self, now_ns: u64) -> Option<u64> {
        self.sleepers.iter().map(|(until, _)| until.saturating_sub(now_ns)).min()
    }

    /// The time of all has come.
    pub(crate) fn end_all(&mut self) {
        self.sleepers.iter_mut().for_each(|(until, _)| *until = 0);
    }

    pub(crate) fn bytes(&self) -> usize {
        let places = self.held.capacity() + self.sleepers.iter().map(|(_, p)| p.capacity()).sum::<usize>();
        places * size_of::<P>() + self.sleepers.capacity() * size_of::<(u64, Vec<P>)>()
    }
}
