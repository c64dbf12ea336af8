//! Counts of a window of time, by part of the sample, and the errors that come from them.

/// Parts of a sample.
pub(crate) const PARTS: usize = 32;

/// Pieces that a window is counted in: the oldest goes when a new one begins.
const PIECES: usize = 12;

/// The part to which a unit belongs.
pub(crate) fn part_of(dev: u32, ino: u64, unit: u64) -> usize {
    let mixed = (ino ^ u64::from(dev) << 40).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ unit;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize % PARTS
}

/// Counts of a piece of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    from_ns: u64,
    /// Pages that each page of the sample stood for, at most.
    pub(crate) one_in: u64,
    /// Touches for reading of all pages, where these are counted.
    pub(crate) whole: u64,
    /// Touches for reading of the sample, by part.
    pub(crate) accesses: [u32; PARTS],
    /// Pages among them that the kernel had to read.
    pub(crate) kernel: [u32; PARTS],
    /// Pages among them that a size had to read; by size.
    pub(crate) misses: Vec<[u32; PARTS]>,
    /// Pages that the kernel read.
    pub(crate) kernel_reads: u64,
    /// Pages that a size read; by size.
    pub(crate) reads: Vec<u64>,
    /// Events lost, and events.
    pub(crate) lost: u64,
    pub(crate) events: u64,
}

impl Piece {
    fn new(from_ns: u64, sizes: usize, one_in: u64) -> Piece {
        Piece { from_ns, one_in, misses: vec![[0; PARTS]; sizes], reads: vec![0; sizes], ..Piece::default() }
    }

    /// Counts as a sample of another rate would have them.
    fn set_rate(&mut self, before: u64, one_in: u64) {
        let of = |parts: &mut [u32; PARTS]| {
            parts.iter_mut().for_each(|n| *n = rescaled(u64::from(*n), before, one_in).min(u64::from(u32::MAX)) as u32);
        };
        of(&mut self.accesses);
        of(&mut self.kernel);
        self.misses.iter_mut().for_each(of);
        self.reads.iter_mut().for_each(|n| *n = rescaled(*n, before, one_in));
        self.kernel_reads = rescaled(self.kernel_reads, before, one_in);
    }

    fn add(&mut self, other: &Piece) {
        let sum = |a: &mut [u32; PARTS], b: &[u32; PARTS]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = a.saturating_add(*b));
        };
        sum(&mut self.accesses, &other.accesses);
        sum(&mut self.kernel, &other.kernel);
        self.misses.iter_mut().zip(&other.misses).for_each(|(a, b)| sum(a, b));
        self.reads.iter_mut().zip(&other.reads).for_each(|(a, b)| *a += b);
        self.one_in = self.one_in.max(other.one_in);
        self.whole += other.whole;
        self.kernel_reads += other.kernel_reads;
        (self.lost, self.events) = (self.lost + other.lost, self.events + other.events);
    }
}

/// Counts of a window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    window_ns: u64,
    sizes: usize,
    one_in: u64,
    pieces: Vec<Piece>,
}

impl Window {
    pub(crate) fn new(window_ns: u64, sizes: usize, one_in: u64, now_ns: u64) -> Window {
        Window { window_ns: window_ns.max(1), sizes, one_in, pieces: vec![Piece::new(now_ns, sizes, one_in)] }
    }

    /// Another rate from now on: what was counted goes on as that of the new one, and keeps the
    /// noise that it has.
    pub(crate) fn set_rate(&mut self, one_in: u64) {
        let before = std::mem::replace(&mut self.one_in, one_in);
        self.pieces.iter_mut().for_each(|piece| piece.set_rate(before, one_in));
        if let Some(now) = self.pieces.last_mut() {
            now.one_in = now.one_in.max(one_in);
        }
    }

    /// The piece that is counted in. The time may stand still, but does not go back.
    pub(crate) fn now(&mut self, now_ns: u64) -> &mut Piece {
        let last = self.pieces.last().map_or(now_ns, |piece| piece.from_ns);
        if now_ns.saturating_sub(last) >= self.window_ns / PIECES as u64 && !self.pieces.is_empty() {
            self.pieces.push(Piece::new(now_ns, self.sizes, self.one_in));
            let first = now_ns.saturating_sub(self.window_ns);
            self.pieces.retain(|piece| piece.from_ns >= first);
        }
        if self.pieces.is_empty() {
            self.pieces.push(Piece::new(now_ns, self.sizes, self.one_in));
        }
        let at = self.pieces.len() - 1;
        &mut self.pieces[at]
    }

    /// The sum of it.
    pub(crate) fn sum(&self) -> Piece {
        let mut sum = Piece::new(self.pieces.first().map_or(0, |piece| piece.from_ns), self.sizes, self.one_in);
        self.pieces.iter().for_each(|piece| sum.add(piece));
        sum
    }

    /// Nanoseconds from its first piece to now.
    pub(crate) fn span_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.pieces.first().map_or(now_ns, |piece| piece.from_ns))
    }
}

/// A count of a sample, as one of another rate would have it.
pub(crate) fn rescaled(n: u64, before: u64, one_in: u64) -> u64 {
    ((u128::from(n) * u128::from(before) + u128::from(one_in / 2)) / u128::from(one_in.max(1))) as u64
}

/// Sum of the parts.
pub(crate) fn all(parts: &[u32; PARTS]) -> u64 {
    parts.iter().map(|&n| u64::from(n)).sum()
}

/// Accesses that a share of misses is of, of the size of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Accesses {
    /// Accesses of the sample: it may lack pages that are used all the time.
    Sampled(u64),
    /// Accesses of all pages, counted, for each page of the sample.
    Counted(f64),
}

impl Accesses {
    /// Share of them that are hits.
    pub(crate) fn hit_rate(self, misses: u64) -> f64 {
        let all = match self {
            Accesses::Sampled(all) => all as f64,
            Accesses::Counted(all) => all,
        };
        if all > 0.0 { (1.0 - misses as f64 / all).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Distance of a part from the others: of its `own` misses of `all`, by its accesses, and by
    /// its share of the units. Where accesses are counted, misses go by the units: a sample has a
    /// fixed number of a large file's.
    fn off(self, own: f64, all: f64, accesses: u32, units: f64) -> f64 {
        match self {
            Accesses::Sampled(sampled) => (own - all * f64::from(accesses) / sampled as f64) / sampled as f64,
            Accesses::Counted(counted) => (own - all * units) / counted,
        }
    }

    fn is_none(self) -> bool {
        matches!(self, Accesses::Sampled(0)) || matches!(self, Accesses::Counted(all) if all <= 0.0)
    }
}

/// Sizes of the parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartSizes {
    /// Pages that were touched.
    pub(crate) pages: [u32; PARTS],
    /// Units that these are of.
    pub(crate) units: [u32; PARTS],
    /// Standard error of the number of all units, as a share of it.
    pub(crate) units_error: f64,
}

impl PartSizes {
    fn used(&self) -> f64 {
        self.pages.iter().filter(|&&n| n > 0).count() as f64
    }

    fn share(parts: &[u32; PARTS], at: usize) -> f64 {
        f64::from(parts[at]) / (all(parts) as f64).max(1.0)
    }
}

/// Standard error of a share of misses (delete-a-group jackknife, in its linear form). Parts differ
/// in their misses, and in their pages: a sample with more pages than its share is a smaller
/// memory. `slope` is the change of the hit rate with the logarithm of the size.
pub(crate) fn standard_error(
    of: Accesses,
    accesses: &[u32; PARTS],
    misses: &[u32; PARTS],
    sizes: &PartSizes,
    slope: f64,
) -> Option<f64> {
    let (m, used) = (all(misses) as f64, sizes.used());
    if of.is_none() || used < 2.0 {
        return None;
    }
    let off = |at: usize| {
        if sizes.pages[at] == 0 && accesses[at] == 0 {
            return 0.0;
        }
        let units = PartSizes::share(&sizes.units, at);
        let fair = if matches!(of, Accesses::Counted(_)) { units } else { 1.0 / used };
        of.off(f64::from(misses[at]), m, accesses[at], units) + slope * (PartSizes::share(&sizes.pages, at) - fair)
    };
    let by_parts = (used / (used - 1.0) * (0..PARTS).map(|at| off(at).powi(2)).sum::<f64>()).sqrt();
    match of {
        Accesses::Sampled(_) => Some(by_parts),
        Accesses::Counted(counted) => Some(by_parts.hypot(m / counted * sizes.units_error)),
    }
}

/// Standard error of the difference of the shares of misses in two counts.
pub(crate) fn error_of_difference(
    of: Accesses,
    accesses: &[u32; PARTS],
    counts: [&[u32; PARTS]; 2],
    sizes: &PartSizes,
) -> Option<f64> {
    let used = sizes.used();
    if of.is_none() || used < 2.0 {
        return None;
    }
    let apart = all(counts[0]) as f64 - all(counts[1]) as f64;
    let off = |at: usize| {
        let own = f64::from(counts[0][at]) - f64::from(counts[1][at]);
        of.off(own, apart, accesses[at], PartSizes::share(&sizes.units, at))
    };
    Some((used / (used - 1.0) * (0..PARTS).map(|at| off(at).powi(2)).sum::<f64>()).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_forgets_what_is_older() {
        let mut window = Window::new(1200, 1, 64, 0);
        for now in 0..10_000u64 {
            let piece = window.now(now);
            piece.accesses[0] += 1;
            assert!(window.pieces.len() <= PIECES + 1);
        }
        let kept = all(&window.sum().accesses);
        assert!((1100..=1300).contains(&kept), "{kept}");
        // A machine that slept, or a clock that jumped.
        window.now(u64::MAX / 2).accesses[0] += 1;
        assert_eq!(all(&window.sum().accesses), 1);
        window.now(5).accesses[0] += 1;
        assert_eq!(all(&window.sum().accesses), 2);
    }

    #[test]
    fn the_error_grows_with_what_parts_differ_in() {
        let even = [100; PARTS];
        let sizes = PartSizes { pages: [10; PARTS], units: [1; PARTS], units_error: 0.0 };
        for of in [Accesses::Sampled(all(&even)), Accesses::Counted(5000.0)] {
            let error = |misses: &_, sizes: &_, slope| standard_error(of, &even, misses, sizes, slope);
            assert!(error(&[7; PARTS], &sizes, 0.1).is_some_and(|error| error < 1e-12));
            let mut misses = [7; PARTS];
            (misses[0], misses[1]) = (14, 0);
            let by_misses = error(&misses, &sizes, 0.0).expect("an error");
            assert!(by_misses > 0.0);
            let mut uneven = sizes.clone();
            (uneven.pages[0], uneven.pages[2]) = (15, 5);
            assert!(error(&misses, &uneven, 0.2).expect("an error") > by_misses);
            let apart = error_of_difference(of, &even, [&misses, &[7; PARTS]], &sizes).expect("an error");
            assert!(apart > 0.0 && apart <= by_misses * 1.01);
        }
        assert_eq!(standard_error(Accesses::Sampled(0), &[0; PARTS], &[0; PARTS], &sizes, 0.0), None);
        // Parts with many hits say nothing against a count of all accesses.
        let mut hits = even;
        hits[0] = 10_000;
        let error = |of| standard_error(of, &hits, &[7; PARTS], &sizes, 0.0).expect("an error");
        assert!(error(Accesses::Sampled(all(&hits))) > 0.01 && error(Accesses::Counted(5000.0)) < 1e-12);
    }

    #[test]
    fn hits_are_of_what_was_counted() {
        assert_eq!(Accesses::Sampled(10).hit_rate(4), 0.6);
        assert_eq!(Accesses::Counted(16.0).hit_rate(4), 0.75);
        assert_eq!((Accesses::Counted(2.0).hit_rate(4), Accesses::Counted(0.0).hit_rate(0)), (0.0, 1.0));
    }

    #[test]
    fn units_are_spread_over_all_parts() {
        let mut counts = [0; PARTS];
        for file in 0..40 {
            (0..80).for_each(|unit| counts[part_of(8, 1000 + file, unit * 64 + file % 64)] += 1);
        }
        assert!(counts.iter().all(|&n| (50..150).contains(&n)), "{counts:?}");
    }
}
