//! The curve of one group: engines of several sizes, fed with what its programs touch.

use crate::counts::{Accesses, PARTS, PartSizes, Window, all, error_of_difference, part_of, rescaled, standard_error};
use crate::size_engine::{PageTouch, SizeEngine, UNIT, part};
use crate::units::{Place, UnitKey, Units};
use refault::recording::units_error;
use refault_mm::Config;
use refault_record::Inode;
use refault_trace::{SpaceSample, Via};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Sizes, in percent of the limit.
pub const PERCENT: [u64; 15] = [2, 5, 12, 25, 35, 50, 63, 75, 90, 100, 110, 125, 150, 200, 400];

/// Index of the limit itself among them.
pub const AT_LIMIT: usize = 9;

/// Threads whose last page is remembered.
const MOST_THREADS: usize = 4096;

/// Settings of a curve.
#[derive(Clone, Debug)]
pub struct CurveSettings {
    /// Rules of the kernel, of a whole memory.
    pub config: Config,
    /// Pages that each page of the sample stands for.
    pub one_in: u64,
    /// Nanoseconds that counts are of.
    pub window_ns: u64,
    /// Units of 64 pages that are kept at most.
    pub most_units: usize,
    /// Somebody counts all touches for reading, and says so by [`GroupCurve::counted`].
    pub is_counted: bool,
}

/// An access to pages of one unit of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The file.
    pub inode: Inode,
    /// Its pages.
    pub pages: Range<u64>,
    /// How they are touched.
    pub via: Via,
    /// Whether they are written.
    pub write: bool,
    /// The thread.
    pub tid: u32,
}

/// Counts since the start, but for one of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Touches for reading of all pages, where these are counted.
    pub whole: u64,
    /// Touches for reading.
    pub accesses: u64,
    /// Pages among them that the kernel had to read.
    pub misses: u64,
    /// Pages that the kernel read.
    pub reads: u64,
}

impl Totals {
    /// The same, as a sample of another rate would have it.
    pub(crate) fn at_rate(self, before: u64, one_in: u64) -> Totals {
        let of = |n| rescaled(n, before, one_in);
        Totals { whole: self.whole, accesses: of(self.accesses), misses: of(self.misses), reads: of(self.reads) }
    }
}

/// A size of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The size in bytes.
    pub bytes: u64,
    /// Share of touches that meet their page in memory, 0 to 1.
    pub hit_rate: f64,
    /// Its standard error, by the choice of pages; none: too little was seen.
    pub error: Option<f64>,
    /// Bytes read from disks each second.
    pub read_bytes_per_s: f64,
    /// Whether it has room for what the group has besides files.
    pub fits: bool,
    /// Whether it has been full: what it lacks is then known.
    pub is_filled: bool,
}

/// The curve of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its sizes, ascending.
    pub points: Vec<CurvePoint>,
    /// Touches of the sample that it rests on.
    pub sampled: u64,
    /// Touches of all pages, if they were counted.
    #[serde(default)]
    pub counted: Option<u64>,
    /// Touches each second, of the whole.
    pub accesses_per_s: f64,
    /// Hit rate of the kernel in the same window, page by page; none: no touch.
    pub kernel_hit_rate: Option<f64>,
    /// Standard error of the difference of the engine at the limit and the kernel.
    pub error_of_difference: Option<f64>,
    /// Bytes that the kernel read each second.
    pub kernel_read_bytes_per_s: f64,
    /// Share of the events that were lost, 0 to 1.
    pub lost: f64,
    /// Pages of the sample at the limit.
    pub sample_pages: u64,
    /// Pages that each page of the sample stands for.
    pub one_in: u64,
    /// The most that it was in the window.
    pub most_one_in: u64,
    /// Seconds that it is of.
    pub span_s: f64,
    /// Units that gave way to others for want of room: the largest sizes know less than they
    /// should.
    pub given_up: u64,
}

impl Curve {
    /// Whether it has all its sizes, and shares are shares: one that was read may have anything.
    pub(crate) fn is_whole(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        self.points.len() == PERCENT.len()
            && self.points.iter().all(|point| is_share(point.hit_rate))
            && is_share(self.lost)
    }
}

/// Engines of a group.
#[derive(Debug)]
pub struct GroupCurve {
    settings: CurveSettings,
    sizes: Vec<SizeEngine>,
    units: Units,
    window: Window,
    /// The last page that a thread read.
    last: FxHashMap<u32, u32>,
    now_ns: u64,
    /// Counts since the start.
    pub totals: Totals,
}

impl GroupCurve {
    /// Engines around a limit, in pages.
    ///
    /// # Errors
    /// A configuration that is impossible.
    pub fn new(settings: CurveSettings, limit_pages: u64, now_ns: u64) -> Result<GroupCurve, String> {
        let engine = |percent: u64| SizeEngine::new(&settings.config, settings.one_in, size(limit_pages, percent));
        let sizes = PERCENT.into_iter().map(engine).collect::<Result<_, String>>()?;
        Ok(GroupCurve {
            sizes,
            units: Units::new(settings.most_units),
            window: Window::new(settings.window_ns, PERCENT.len(), settings.one_in, now_ns),
            last: FxHashMap::default(),
            now_ns,
            totals: Totals::default(),
            settings,
        })
    }

    /// The limit in pages that the sizes are of.
    pub fn limit_pages(&self) -> u64 {
        self.sizes[AT_LIMIT].pages
    }

    /// Another limit.
    ///
    /// # Errors
    /// A size that is impossible.
    pub fn set_limit(&mut self, limit_pages: u64) -> Result<(), String> {
        if limit_pages == self.limit_pages() {
            return Ok(());
        }
        for (engine, percent) in self.sizes.iter_mut().zip(PERCENT) {
            engine.set_pages(size(limit_pages, percent))?;
        }
        // Counts so far are of other sizes.
        self.window = Window::new(self.settings.window_ns, PERCENT.len(), self.settings.one_in, self.now_ns);
        Ok(())
    }

    /// Pages that the group has besides files.
    pub fn set_besides(&mut self, pages: u64) {
        self.sizes.iter_mut().for_each(|engine| engine.set_besides(pages));
    }

    /// Another bound on units: it holds for new ones.
    pub fn set_most_units(&mut self, most: usize) {
        self.units.set_most(most);
    }

    /// A sample of another rate: one of two has all pages of the other. Pages of both go on.
    ///
    /// # Errors
    /// A size that is impossible.
    pub fn set_sample(&mut self, sample: &SpaceSample) -> Result<(), String> {
        let before = std::mem::replace(&mut self.settings.one_in, sample.one_in);
        let is_left = |&(inode, unit): &UnitKey| sample.has(inode.ino, unit * u64::from(UNIT));
        for slot in self.units.retain(is_left) {
            self.sizes.iter_mut().for_each(|engine| engine.clear_unit(slot));
        }
        self.sizes.iter_mut().try_for_each(|engine| engine.set_one_in(sample.one_in))?;
        self.window.set_rate(sample.one_in);
        self.totals = self.totals.at_rate(before, sample.one_in);
        self.last.clear();
        Ok(())
    }

    /// The time, in nanoseconds; one that goes back is ignored.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        if now_ns <= self.now_ns {
            return;
        }
        self.now_ns = now_ns;
        self.sizes.iter_mut().for_each(|engine| engine.set_now_ns(self.now_ns));
    }

    /// Events were lost, of so many.
    pub fn lost(&mut self, lost: u64, events: u64) {
        let piece = self.window.now(self.now_ns);
        (piece.lost, piece.events) = (piece.lost + lost, piece.events + events);
    }

    /// So many pages were touched for reading, of the sample or not.
    pub fn counted(&mut self, touches: u64) {
        self.window.now(self.now_ns).whole += touches;
        self.totals.whole += touches;
    }

    /// A program touches pages.
    ///
    /// # Errors
    /// An engine has no room for more pages.
    pub fn touch(&mut self, touched: &Touched) -> Result<(), String> {
        let Touched { inode, ref pages, via, write, tid } = *touched;
        let unit = pages.start / u64::from(UNIT);
        let slot = self.slot((inode, unit))?;
        let of = part_of(inode.dev, inode.ino, unit);
        let window = self.window.now(self.now_ns);
        for page in pages.clone().take_while(|page| page / u64::from(UNIT) == unit) {
            let offset = (page % u64::from(UNIT)) as u32;
            let (bit, kernel) = (1u64 << offset, self.units.pages(slot));
            let (is_known, is_fresh) = (kernel.seen & bit != 0, kernel.fresh & bit != 0);
            kernel.seen |= bit;
            kernel.fresh &= !bit;
            kernel.note_touch(bit, via, write);
            // A page that is met in memory, and was not seen before, may have come at any time.
            let counts = !write && (is_known || is_fresh);
            let id = slot * UNIT + offset;
            let goes_on = via == Via::Fd && !write && self.last.insert(tid, id) == Some(id);
            if counts {
                window.accesses[of] += 1;
                window.kernel[of] += u32::from(is_fresh);
                self.totals.accesses += 1;
                self.totals.misses += u64::from(is_fresh);
            }
            let asked = (pages.end - page) as u32;
            let touch = PageTouch { page: id, asked, via, write, goes_on };
            for (at, engine) in self.sizes.iter_mut().enumerate().filter(|(_, engine)| engine.fits()) {
                let before = engine.read_pages();
                let missed = engine.touch(touch);
                if counts {
                    window.misses[at][of] += u32::from(missed);
                    window.reads[at] += engine.read_pages() - before;
                }
            }
        }
        if self.last.len() > MOST_THREADS {
            self.last.clear();
        }
        Ok(())
    }

    /// The kernel added pages to its cache. Pages of files that the group does not use are none of
    /// it.
    ///
    /// # Errors
    /// An engine has no room for more pages.
    pub fn add(&mut self, inode: Inode, pages: Range<u64>, is_own: bool) -> Result<(), String> {
        let key = (inode, pages.start / u64::from(UNIT));
        let Some(slot) = (if is_own { Some(self.slot(key)?) } else { self.units.find(key) }) else { return Ok(()) };
        let bits = bits(&pages);
        let kernel = self.units.pages(slot);
        let (written, faulted) = (kernel.written & bits, kernel.faulted & bits);
        kernel.written &= !bits;
        kernel.faulted &= !bits;
        kernel.seen |= bits;
        kernel.fresh |= bits & !written & !faulted;
        let window = self.window.now(self.now_ns);
        let part = part_of(inode.dev, inode.ino, key.1);
        if is_own {
            let reads = u64::from((bits & !written).count_ones());
            window.kernel_reads += reads;
            self.totals.reads += reads;
            let misses = faulted.count_ones().min(window.accesses[part] - window.kernel[part]);
            window.kernel[part] += misses;
            self.totals.misses += u64::from(misses);
        }
        Ok(())
    }

    /// The kernel removed pages from its cache.
    pub fn delete(&mut self, inode: Inode, pages: Range<u64>) {
        if let Some(slot) = self.units.find((inode, pages.start / u64::from(UNIT))) {
            let (bits, kernel) = (bits(&pages), self.units.pages(slot));
            kernel.fresh &= !bits;
            kernel.written &= !bits;
            kernel.faulted &= !bits;
        }
    }

    /// A file is deleted: its pages are gone in every size.
    pub fn freed(&mut self, inode: Inode) {
        for slot in self.units.of_file(inode) {
            *self.units.pages(slot) = Default::default();
            self.sizes.iter_mut().for_each(|engine| engine.clear_unit(slot));
        }
    }

    /// The place of a unit, which gets one.
    fn slot(&mut self, key: (Inode, u64)) -> Result<u32, String> {
        match self.units.place(key) {
            Place::Known(slot) => Ok(slot),
            Place::New(slot) => {
                self.sizes.iter_mut().try_for_each(SizeEngine::add_unit)?;
                Ok(slot)
            }
            Place::Taken(slot) => {
                self.sizes.iter_mut().for_each(|engine| engine.clear_unit(slot));
                Ok(slot)
            }
        }
    }

    /// The curve as it is now.
    pub fn curve(&self) -> Curve {
        let sum = self.window.sum();
        let accesses = all(&sum.accesses);
        let span_s = (self.window.span_ns(self.now_ns) as f64 / 1e9).max(1e-9);
        let whole = self.settings.one_in as f64;
        let sizes = self.sizes_of_parts();
        let is_counted = self.settings.is_counted;
        let of = if is_counted { Accesses::Counted(sum.whole as f64 / whole) } else { Accesses::Sampled(accesses) };
        let rates: Vec<_> = sum.misses.iter().map(|misses| of.hit_rate(all(misses))).collect();
        let point = |at: usize| {
            let engine = &self.sizes[at];
            CurvePoint {
                bytes: engine.pages.saturating_mul(4096),
                hit_rate: rates[at],
                error: standard_error(of, &sum.accesses, &sum.misses[at], &sizes, self.slope(&rates, at)),
                read_bytes_per_s: sum.reads[at] as f64 * whole * 4096.0 / span_s,
                fits: engine.fits(),
                is_filled: engine.is_filled(),
            }
        };
        Curve {
            points: (0..self.sizes.len()).map(point).collect(),
            sampled: accesses,
            counted: is_counted.then_some(sum.whole),
            accesses_per_s: if is_counted { sum.whole as f64 } else { accesses as f64 * whole } / span_s,
            kernel_hit_rate: (accesses > 0).then(|| of.hit_rate(all(&sum.kernel))),
            error_of_difference: error_of_difference(of, &sum.accesses, [&sum.misses[AT_LIMIT], &sum.kernel], &sizes),
            kernel_read_bytes_per_s: sum.kernel_reads as f64 * whole * 4096.0 / span_s,
            lost: sum.lost as f64 / (sum.lost + sum.events).max(1) as f64,
            sample_pages: part(self.limit_pages(), self.settings.one_in),
            one_in: self.settings.one_in,
            most_one_in: sum.one_in,
            span_s,
            given_up: self.units.given_up,
        }
    }

    /// SizeChange of the hit rate with the logarithm of the size, at a size.
    fn slope(&self, rates: &[f64], at: usize) -> f64 {
        let fits = |at: &usize| self.sizes.get(*at).is_some_and(SizeEngine::fits);
        let (below, above) = (at.checked_sub(1).filter(fits).unwrap_or(at), Some(at + 1).filter(fits).unwrap_or(at));
        let apart = (self.sizes[above].pages as f64 / self.sizes[below].pages as f64).ln();
        if apart > 0.0 { (rates[above] - rates[below]) / apart } else { 0.0 }
    }

    /// Pages that were touched, and their units, by part.
    fn sizes_of_parts(&self) -> PartSizes {
        let (mut sizes, mut files) = (PartSizes::default(), FxHashMap::default());
        for ((inode, unit), touched) in self.units.touched() {
            *files.entry(inode).or_insert(0) += u32::from(touched > 0);
            let part = part_of(inode.dev, inode.ino, unit);
            sizes.pages[part] += touched;
            sizes.units[part] += u32::from(touched > 0);
        }
        sizes.units_error = units_error(files.into_values());
        sizes
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.units.memory_bytes() + self.sizes.iter().map(SizeEngine::memory_bytes).sum::<usize>()
    }

    /// Units that it has.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Checks the invariants.
    ///
    /// # Errors
    /// The one that does not hold.
    pub fn validate(&self) -> Result<(), String> {
        self.units.validate()?;
        self.sizes.iter().try_for_each(|engine| engine.validate(self.units.len()))?;
        let sum = self.window.sum();
        for part in 0..PARTS {
            let most = sum.accesses[part];
            if sum.kernel[part] > most || sum.misses.iter().any(|misses| misses[part] > most) {
                return Err(format!("part {part} has more misses than accesses"));
            }
        }
        Ok(())
    }
}

/// Pages of one size in percent of a limit.
fn size(limit_pages: u64, percent: u64) -> u64 {
    (u128::from(limit_pages) * u128::from(percent) / 100).clamp(1, 1 << 50) as u64
}

/// Bits of pages of one unit.
fn bits(pages: &Range<u64>) -> u64 {
    let first = pages.start % u64::from(UNIT);
    let count = (pages.end - pages.start).min(u64::from(UNIT) - first);
    if count == 64 { u64::MAX } else { ((1 << count) - 1) << first }
}

#[cfg(test)]
mod tests;
