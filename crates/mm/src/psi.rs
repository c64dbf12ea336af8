//! Pressure-stall information: the share of time that is lost to waiting for memory.
//!
//! Linux has a run queue for each CPU and weighs them; here is one queue for the machine or group.
//! `threads` is the number of tasks that are not idle, at most the number of CPUs. `some` is the
//! share of `threads` that is stalled, `full` the share that is stalled and not replaced by a
//! productive task. So four CPUs with three productive tasks and a stalled one lose 25 %.

use std::fmt::Write;

/// The tasks whose stalls count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PsiKind {
    /// Some task is stalled.
    Some,
    /// Tasks are stalled and none is productive instead.
    Full,
}

/// One line of the pressure file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PsiLine {
    /// Percent of the last 10 seconds, as an exponential average.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// Percent of the last five minutes.
    pub avg300: f64,
    /// Microseconds since the beginning.
    pub total_us: u64,
}

/// The averages take a sample every two seconds.
const PERIOD_NS: u64 = 2_000_000_000;
/// Fraction bits of averages: they are in units of 1/2048 percent.
const SHIFT: u32 = 11;
/// Share of an average of 10, 60 and 300 s that is left after a period, of 2048.
const DECAY: [u64; 3] = [1677, 1981, 2034];
/// Fraction bits of lost time: it is in units of 2^-16 ns, being a fraction of the time that
/// passed.
const FRACTION: u32 = 16;

/// The time lost and the averages, of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Time lost up to `summed_ns`, in units of 2^-16 ns.
    lost: u128,
    /// `lost` at the start of the current period.
    lost_before: u128,
    averages: [u64; 3],
    /// The highest value of each average so far.
    peaks: [u64; 3],
    /// Tasks of `threads` whose time is lost now.
    of_threads: u32,
}

/// The stalls of the machine or of one group.
///
/// Reading changes nothing: the averages depend on the calls of [`Psi::set`] alone.
#[derive(Clone, Debug)]
pub struct Psi {
    cpus: u32,
    now_ns: u64,
    /// Time up to which `lost` is summed: the last change of state or end of a period.
    summed_ns: u64,
    period_start_ns: u64,
    /// Tasks that could run at once; 0 if all are idle.
    threads: u32,
    /// Some, full.
    lines: [Line; 2],
}

impl Psi {
    /// A machine or group without tasks at time 0, on `cpus` CPUs (at least one).
    pub fn new(cpus: u32) -> Psi {
        Psi { cpus: cpus.max(1), now_ns: 0, summed_ns: 0, period_start_ns: 0, threads: 0, lines: [Line::default(); 2] }
    }

    /// Sets the tasks that from `now_ns` on are `stalled` on memory, and those that are
    /// `productive`: they run or could run. All other tasks are idle. A `now_ns` earlier than the
    /// last one counts as the last one.
    pub fn set(&mut self, now_ns: u64, stalled: u32, productive: u32) {
        self.now_ns = self.now_ns.max(now_ns);
        let threads = stalled.saturating_add(productive).min(self.cpus);
        let some = stalled.min(threads);
        let full = threads - productive.min(threads);
        if (threads, some, full) == (self.threads, self.lines[0].of_threads, self.lines[1].of_threads) {
            return;
        }
        self.catch_up(now_ns);
        self.sum_to(self.now_ns);
        self.threads = threads;
        self.lines[0].of_threads = some;
        self.lines[1].of_threads = full;
    }

    /// The line of one kind: averages as of the end of the last full period, and the total up to
    /// now.
    pub fn read(&mut self, now_ns: u64, kind: PsiKind) -> PsiLine {
        self.catch_up(now_ns);
        let [avg10, avg60, avg300] = self.line(kind).averages.map(percent);
        PsiLine { avg10, avg60, avg300, total_us: self.total_us(kind) }
    }

    /// The highest that the averages of one kind ever were, in percent: of 10, 60 and 300 seconds.
    /// Linux does not keep them; a reader that reads the file often enough does.
    pub fn peaks(&mut self, now_ns: u64, kind: PsiKind) -> [f64; 3] {
        self.catch_up(now_ns);
        self.line(kind).peaks.map(percent)
    }

    /// Both lines, as Linux prints them in `/proc/pressure/memory` and `memory.pressure`.
    pub fn text(&mut self, now_ns: u64) -> String {
        self.catch_up(now_ns);
        let mut text = String::new();
        for (name, kind) in [("some", PsiKind::Some), ("full", PsiKind::Full)] {
            text.push_str(name);
            for (label, average) in ["avg10", "avg60", "avg300"].iter().zip(self.line(kind).averages) {
                let hundredths = (average * 100) >> SHIFT;
                let _ = write!(text, " {label}={}.{:02}", hundredths / 100, hundredths % 100);
            }
            let _ = writeln!(text, " total={}", self.total_us(kind));
        }
        text
    }

    fn line(&self, kind: PsiKind) -> &Line {
        &self.lines[kind as usize]
    }

    fn total_us(&self, kind: PsiKind) -> u64 {
        let line = self.line(kind);
        let total = line.lost + line.lost_in(self.now_ns - self.summed_ns, self.threads);
        u64::try_from((total >> FRACTION) / 1000).unwrap_or(u64::MAX)
    }

    /// Ends the periods that are over.
    fn catch_up(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let periods = (self.now_ns - self.period_start_ns) / PERIOD_NS;
        if periods == 0 {
            return;
        }
        // The state may have changed within the first period; in the later periods it is as it is
        // now.
        self.sum_to(self.period_start_ns + PERIOD_NS);
        for line in &mut self.lines {
            line.sample(1);
            line.lost_before = line.lost;
            line.lost += line.lost_in(PERIOD_NS, self.threads);
            line.sample(periods - 1);
            let whole = line.lost - line.lost_before;
            line.lost = line.lost_before + whole * u128::from(periods - 1);
            line.lost_before = line.lost;
        }
        self.period_start_ns += periods * PERIOD_NS;
        self.summed_ns = self.period_start_ns;
    }

    fn sum_to(&mut self, to_ns: u64) {
        let passed = to_ns - self.summed_ns;
        for line in &mut self.lines {
            line.lost += line.lost_in(passed, self.threads);
        }
        self.summed_ns = to_ns;
    }
}

impl Line {
    /// Lost part of `ns` nanoseconds in the present state, in units of 2^-16 ns.
    fn lost_in(&self, ns: u64, threads: u32) -> u128 {
        match threads {
            0 => 0,
            _ => (u128::from(ns) << FRACTION) * u128::from(self.of_threads) / u128::from(threads),
        }
    }

    /// Takes the time lost since `lost_before` as the sample of each of `periods` periods. An
    /// average that has met the sample stays, so a gap of any length takes some thousand steps at
    /// most.
    fn sample(&mut self, periods: u64) {
        let percent = ((self.lost - self.lost_before) * 100) << SHIFT;
        let sample = (percent / (u128::from(PERIOD_NS) << FRACTION)) as u64;
        for ((average, peak), decay) in self.averages.iter_mut().zip(&mut self.peaks).zip(DECAY) {
            for _ in 0..periods {
                let next = decayed(*average, decay, sample);
                if next == *average {
                    break;
                }
                *average = next;
                *peak = next.max(*peak);
            }
        }
    }
}

/// An average in percent.
fn percent(average: u64) -> f64 {
    average as f64 / (1 << SHIFT) as f64
}

/// One step of an exponential average. Rounded towards the sample, so that it is reached from below
/// and from above: a machine that is always stalled shows 100 %.
fn decayed(average: u64, decay: u64, sample: u64) -> u64 {
    let mixed = average * decay + sample * ((1 << SHIFT) - decay);
    let round = if sample >= average { (1 << SHIFT) - 1 } else { 0 };
    (mixed + round) >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn both(psi: &mut Psi, now_ns: u64) -> (PsiLine, PsiLine) {
        (psi.read(now_ns, PsiKind::Some), psi.read(now_ns, PsiKind::Full))
    }

    #[test]
    fn one_of_four_stalled_on_four_cpus_is_a_quarter() {
        let mut psi = Psi::new(4);
        psi.set(0, 1, 3);
        let (some, full) = both(&mut psi, 3600 * SECOND);
        assert_eq!(some, full);
        assert_eq!(some, PsiLine { avg10: 25.0, avg60: 25.0, avg300: 25.0, total_us: 900_000_000 });
        assert_eq!(
            psi.text(3600 * SECOND),
            "some avg10=25.00 avg60=25.00 avg300=25.00 total=900000000\n\
             full avg10=25.00 avg60=25.00 avg300=25.00 total=900000000\n"
        );
    }

    #[test]
    fn productive_tasks_take_the_cpus_of_stalled_ones() {
        let mut psi = Psi::new(1);
        psi.set(0, 1, 1);
        let (some, full) = both(&mut psi, 10 * SECOND);
        assert_eq!((some.total_us, full.total_us), (10_000_000, 0));
        psi.set(10 * SECOND, 1, 0);
        let (some, full) = both(&mut psi, 11 * SECOND);
        assert_eq!((some.total_us, full.total_us), (11_000_000, 1_000_000));
    }

    #[test]
    fn nobody_stalled_is_no_pressure() {
        let mut psi = Psi::new(2);
        for now in 0..100 {
            psi.set(now * SECOND, 0, (now % 5) as u32);
        }
        let none = PsiLine { avg10: 0.0, avg60: 0.0, avg300: 0.0, total_us: 0 };
        assert_eq!(both(&mut psi, 200 * SECOND), (none, none));
        assert!(psi.text(200 * SECOND).starts_with("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00"));
    }

    #[test]
    fn averages_rise_and_fall_with_their_constants() {
        let mut psi = Psi::new(1);
        psi.set(0, 1, 0);
        let line = psi.read(10 * SECOND, PsiKind::Some);
        // 1 - e^-1, 1 - e^(-1/6), 1 - e^(-1/30), of a decay that is rounded to 1/2048.
        for (measured, expected) in [(line.avg10, 63.2), (line.avg60, 15.35), (line.avg300, 3.28)] {
            assert!((measured - expected).abs() < 0.3, "{measured} is not {expected}");
        }
        psi.set(10 * SECOND, 0, 1);
        let later = psi.read(20 * SECOND, PsiKind::Some);
        assert!((later.avg10 - line.avg10 * 0.3679).abs() < 0.3);
        assert_eq!(later.total_us, line.total_us);
    }

    #[test]
    fn peaks_are_the_highest_averages() {
        let mut psi = Psi::new(1);
        psi.set(0, 1, 0);
        let at_10 = psi.read(10 * SECOND, PsiKind::Some);
        psi.set(10 * SECOND, 0, 1);
        // Read once, long after: stalls in between are not forgotten.
        assert_eq!(psi.peaks(10_000 * SECOND, PsiKind::Some), [at_10.avg10, at_10.avg60, at_10.avg300]);
        assert_eq!(psi.read(10_000 * SECOND, PsiKind::Some).avg10, 0.0);
        assert_eq!(Psi::new(4).peaks(10 * SECOND, PsiKind::Full), [0.0; 3]);
    }

    #[test]
    fn a_gap_of_centuries_is_crossed_at_once() {
        let mut psi = Psi::new(1);
        psi.set(0, 1, 0);
        psi.set(SECOND, 0, 0);
        let line = psi.read(u64::MAX, PsiKind::Full);
        assert_eq!(line, PsiLine { avg10: 0.0, avg60: 0.0, avg300: 0.0, total_us: 1_000_000 });
        let mut psi = Psi::new(1);
        psi.set(0, 1, 0);
        assert_eq!(psi.read(u64::MAX, PsiKind::Some).total_us, u64::MAX / 1000);
    }

    #[test]
    fn time_does_not_go_back() {
        let mut psi = Psi::new(1);
        psi.set(5 * SECOND, 1, 0);
        psi.set(SECOND, 0, 1);
        assert_eq!(psi.read(0, PsiKind::Some).total_us, 0);
    }

    /// Numbers with no pattern, without a dependency.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn full_is_never_more_than_some_and_reading_changes_nothing() {
        for seed in 0..200 {
            let mut state = seed;
            let cpus = 1 + (random(&mut state) % 8) as u32;
            let (mut read, mut unread) = (Psi::new(cpus), Psi::new(cpus));
            let (mut now, mut last) = (0, 0);
            for _ in 0..200 {
                now += random(&mut state) % (1 << (random(&mut state) % 36));
                let (stalled, productive) = ((random(&mut state) % 10) as u32, (random(&mut state) % 10) as u32);
                let (some, full) = both(&mut read, now);
                assert!(full.avg10 <= some.avg10 && full.avg60 <= some.avg60 && full.avg300 <= some.avg300);
                assert!(full.total_us <= some.total_us && some.total_us <= now / 1000 && some.avg10 <= 100.0);
                assert!(some.total_us >= last);
                last = some.total_us;
                read.set(now, stalled, productive);
                unread.set(now, stalled, productive);
            }
            assert_eq!(read.text(now), unread.text(now));
        }
    }

    #[test]
    fn a_step_at_a_time_is_the_same_as_all_at_once() {
        let (mut steps, mut jump) = (Psi::new(3), Psi::new(3));
        steps.set(SECOND / 3, 1, 2);
        jump.set(SECOND / 3, 1, 2);
        for now in 0..5000 {
            steps.read(now * SECOND / 7, PsiKind::Some);
        }
        assert_eq!(steps.text(1000 * SECOND), jump.text(1000 * SECOND));
    }
}
