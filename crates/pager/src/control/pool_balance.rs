//! Size of a compressed pool in front of a swap device: what the pool saves, against what its
//! memory would save by holding pages in place.
//!
//! The kernel has nothing like it: `max_pool_percent` of zswap is a constant. A pool is worth its
//! memory where it holds several pages for each that it takes and the device is slow; where the
//! device is fast, more pages in place are worth more, for they cost nothing at all.
//!
//! Every page that comes back has a *distance*: the number of pages that left memory since it did.
//! With that many more pages in memory it would not have left (the refault distance of working-set
//! detection, in a clock of evictions). The distances of a window of loads, and the recent costs of
//! loads and stores, give the cost of the same loads with a pool of any other size:
//!
//! - a pool that is smaller by n pages leaves n more in place: loads up to distance n would not
//!   have been;
//! - a pool of q pages reaches back over q × (evictions that a page of pool holds now): what is
//!   nearer comes from the pool, the rest from the device;
//! - a pool that is larger by n pages takes them from what is in place. The loss by that is not to
//!   be seen; it is held to be as dense as the loads of the nearest step.
//!
//! The size then moves by one step towards the cheapest. There is no clock and no I/O here: costs
//! are measured by the driver.

/// Steps from no pool to the largest one; a move is one step.
const STEPS: u64 = 8;
/// Step to begin with, a quarter: a run that is best without a pool loses little until it has none,
/// and a run that is best with the largest pool has it after some windows.
const START: u64 = 2;
/// A window has a load for each page of a step, within these bounds.
const WINDOW: std::ops::RangeInclusive<u64> = 256..=4096;
/// Least gain of another size, one part in this many of the present cost,
const MARGIN: u64 = 16;
/// and the number of windows in a row that must show it.
const AGREE: u32 = 2;
/// Samples that an average spans, and the largest multiple of the average that a sample counts as:
/// a thread that lost its processor says nothing about a device.
const WEIGHT: u64 = 64;
const OUTLIER: u64 = 8;
/// Samples from which on an average is known; before, one page in `TRIAL` tries the tier.
const KNOWN: u64 = 8;
const TRIAL: u64 = 16;
/// Longest time of a page that counts, in nanoseconds: a hundred seconds.
const MAX_NS: u64 = 100_000_000_000;
/// Scale of shares: this many parts are the whole.
const ONE: u64 = 1 << 16;

/// Where a page is that is not in memory as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolTier {
    /// Compressed, in memory.
    Pool,
    /// On the device behind it.
    Device,
}

/// Extent of the pool when its size is decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolExtent {
    /// Pages of memory that it takes.
    pub pages: u64,
    /// Number of pages that left memory since the coldest page of the pool did.
    pub reach: u64,
}

/// A running average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Average {
    /// Times [`WEIGHT`].
    scaled: u64,
    samples: u64,
}

impl Average {
    fn add(&mut self, sample: u64) {
        self.samples = (self.samples + 1).min(WEIGHT);
        // Mean of all samples, until there are enough to forget old ones.
        let towards = sample.min(u64::MAX / WEIGHT) * WEIGHT;
        self.scaled = match towards > self.scaled {
            true => self.scaled + (towards - self.scaled) / self.samples,
            false => self.scaled - (self.scaled - towards) / self.samples,
        };
    }

    /// Times of `n` pages, which came to `total` together.
    fn add_times(&mut self, total: u64, n: u64) {
        for _ in 0..n.min(WEIGHT) {
            let most = if self.is_known() { (self.get() + 1).saturating_mul(OUTLIER).min(MAX_NS) } else { MAX_NS };
            self.add((total / n).min(most));
        }
    }

    fn get(&self) -> u64 {
        self.scaled / WEIGHT
    }

    fn is_known(&self) -> bool {
        self.samples >= KNOWN
    }
}

/// Mean times of a tier, to load and to store a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    load: Average,
    store: Average,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    distance: u64,
    tier: PoolTier,
}

/// Counts of decisions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolBalanceStats {
    /// Windows that were looked at.
    pub windows: u64,
    /// Times that the pool was made smaller.
    pub shrunk: u64,
    /// Times that it was made larger.
    pub grown: u64,
}

/// The size of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolBalance {
    max_pages: u64,
    /// Size of the pool, in steps.
    step: u64,
    costs: [Cost; 2],
    /// A fault on a page that was away, with all that belongs to it.
    fault: Average,
    /// Faults, and pages that were loaded, in this window.
    faults: u64,
    loads: u64,
    /// The share of pages that the pool takes, of [`ONE`], and the bytes that it makes of a page.
    taken: Average,
    packed: Average,
    window: Vec<Load>,
    /// Stores since the last trial.
    since_trial: u64,
    /// The way that was better lately, and in how many windows.
    towards: std::cmp::Ordering,
    agreed: u32,
    stats: PoolBalanceStats,
}

impl PoolBalance {
    /// A pool of at most `max_pages` pages; it begins with a quarter.
    pub fn new(max_pages: u64) -> PoolBalance {
        PoolBalance {
            max_pages,
            step: START,
            costs: [Cost::default(); 2],
            fault: Average::default(),
            faults: 0,
            loads: 0,
            taken: Average::default(),
            packed: Average::default(),
            window: Vec::new(),
            since_trial: 0,
            towards: std::cmp::Ordering::Equal,
            agreed: 0,
            stats: PoolBalanceStats::default(),
        }
    }

    /// Another limit. The share of it stays.
    pub fn set_max_pages(&mut self, max_pages: u64) {
        self.max_pages = max_pages;
        self.window.clear();
    }

    /// Pages of memory that the pool may take now.
    pub fn target_pages(&self) -> u64 {
        self.size(self.step)
    }

    /// Pages go to the device without being tried for the pool.
    pub fn is_off(&self) -> bool {
        self.step == 0
    }

    /// Counts of its decisions so far.
    pub fn stats(&self) -> PoolBalanceStats {
        self.stats
    }

    /// Bytes that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.window.capacity() * size_of::<Load>()
    }

    /// A page came back from a tier, after `ns` nanoseconds by itself. `distance`: pages that left
    /// memory since it did.
    pub fn loaded(&mut self, tier: PoolTier, distance: u64, ns: u64) {
        self.costs[tier as usize].load.add_times(ns, 1);
        self.loads += 1;
        if !self.is_due() {
            self.window.push(Load { distance, tier });
        }
    }

    /// Pages were stored in a tier, in `ns` nanoseconds together.
    pub fn stored(&mut self, tier: PoolTier, pages: u64, ns: u64) {
        self.costs[tier as usize].store.add_times(ns, pages);
    }

    /// A page was compressed to this many bytes; none: to nothing worth keeping. A trial of the
    /// compressor counts as well.
    pub fn packed(&mut self, bytes: Option<u64>) {
        self.taken.add(if bytes.is_some() { ONE } else { 0 });
        if let Some(bytes) = bytes {
            self.packed.add(bytes);
        }
    }

    /// A fault on a page that was away was served, in `ns` nanoseconds in all.
    pub fn fault_served(&mut self, ns: u64) {
        self.fault.add_times(ns, 1);
        self.faults += 1;
    }

    /// Whether the page to be stored next is to try the tier of which too little is known. While
    /// the pool is on, the page goes to the device; while it is off, the page is compressed to see
    /// the result.
    pub fn tries_other(&mut self) -> bool {
        if !self.is_off() && self.costs[PoolTier::Device as usize].load.is_known() {
            return false;
        }
        self.since_trial = (self.since_trial + 1) % TRIAL;
        self.since_trial == 0
    }

    /// The window is full, and [`PoolBalance::decide`] is to be called.
    pub fn is_due(&self) -> bool {
        self.window.len() as u64 >= self.window_loads()
    }

    /// The device takes no more pages: the pool gets all that it may have.
    pub fn device_is_full(&mut self) {
        self.step = STEPS;
        self.agreed = 0;
        self.window.clear();
    }

    /// Looks at the window, if it is full, and begins another. Whether the target has changed.
    pub fn decide(&mut self, pool: PoolExtent) -> bool {
        if !self.is_due() {
            return false;
        }
        self.stats.windows += 1;
        let towards = self.direction(pool);
        self.agreed = if towards == self.towards { self.agreed.saturating_add(1) } else { 1 };
        self.towards = towards;
        self.window.clear();
        (self.faults, self.loads) = (0, 0);
        if towards == std::cmp::Ordering::Equal || self.agreed < AGREE {
            return false;
        }
        let before = self.target_pages();
        match towards {
            std::cmp::Ordering::Less => (self.step, self.stats.shrunk) = (self.step - 1, self.stats.shrunk + 1),
            _ => (self.step, self.stats.grown) = (self.step + 1, self.stats.grown + 1),
        }
        self.target_pages() != before
    }

    fn window_loads(&self) -> u64 {
        (self.max_pages / STEPS).clamp(*WINDOW.start(), *WINDOW.end())
    }

    fn size(&self, step: u64) -> u64 {
        self.max_pages * step / STEPS
    }

    /// The way to the cheapest size, if that is better than the present one by the margin.
    fn direction(&self, pool: PoolExtent) -> std::cmp::Ordering {
        let [pool_cost, device] = &self.costs;
        if !device.load.is_known() || !device.store.is_known() || !pool_cost.store.is_known() || !self.packed.is_known()
        {
            return std::cmp::Ordering::Equal;
        }
        let now = self.cost_at(self.step, pool);
        let costs = (0..=STEPS).map(|step| (self.cost_at(step, pool), step.abs_diff(self.step), step));
        let (best, _, step) = costs.min().expect("there are steps");
        match best < now - now / MARGIN {
            true => step.cmp(&self.step),
            false => std::cmp::Ordering::Equal,
        }
    }

    /// Cost of the window's loads with a pool of `step` steps, in nanoseconds.
    fn cost_at(&self, step: u64, pool: PoolExtent) -> u64 {
        let mut size = self.size(step);
        let is_full = pool.pages + self.size(1) / 2 >= self.target_pages();
        if size > pool.pages && (step <= self.step || !is_full) {
            // A larger pool would not be filled.
            size = pool.pages;
        }
        let (in_pool, on_device) = self.page_costs(step > 0);
        let reach = if step > 0 { self.reach(size, pool) } else { 0 };
        let taken = self.taken.get();
        let mixed = (in_pool * taken + on_device * (ONE - taken)) / ONE;
        let (more, less) = (pool.pages.saturating_sub(size), size.saturating_sub(pool.pages));
        let of_load = |load: &Load| match (load.distance <= more, load.distance - load.distance.min(more) + less) {
            (true, _) => 0,
            (false, distance) if distance > reach => on_device,
            // A page on the device now may be there because the pool does not take it.
            _ if load.tier == PoolTier::Device => mixed,
            _ => in_pool,
        };
        let nearest = self.size(1).max(1);
        let near = self.window.iter().filter(|load| load.distance <= nearest).count() as u64;
        self.window.iter().map(of_load).sum::<u64>() + near * less / nearest * in_pool
    }

    /// A page that leaves memory and comes back, by way of the pool and of the device: what is
    /// found on the device went through the pool, if there is one.
    fn page_costs(&self, through_pool: bool) -> (u64, u64) {
        let [mut pool, device] = self.costs.map(|c| (c.load.get(), c.store.get()));
        if !self.costs[PoolTier::Pool as usize].load.is_known() {
            // Nothing came back from it: decompressing takes less than compressing.
            pool.0 = pool.1;
        }
        let loads: u64 = self.window.iter().map(|load| self.costs[load.tier as usize].load.get()).sum();
        let loads = loads / (self.window.len() as u64).max(1);
        // Time of a fault beside the load, for each page that is loaded: some are read ahead.
        let rest = (self.fault.get().saturating_mul(self.faults) / self.loads.max(1)).saturating_sub(loads).min(MAX_NS);
        let passage = if through_pool { pool.1 + pool.0 * self.taken.get() / ONE } else { 0 };
        (rest + pool.0 + pool.1, rest + device.0 + device.1 + passage)
    }

    /// Number of evictions that a pool of this size reaches back over.
    fn reach(&self, size: u64, pool: PoolExtent) -> u64 {
        if pool.pages * STEPS >= self.size(1) && pool.reach > 0 {
            return (u128::from(pool.reach) * u128::from(size) / u128::from(pool.pages)) as u64;
        }
        // The pool holds next to nothing: count the pages that would fit, and the evictions in
        // between of pages that it does not take.
        let bytes = u128::from(size) * 4096 * u128::from(ONE);
        let each = u128::from(self.packed.get().max(1)) * u128::from(self.taken.get().max(1));
        u64::try_from(bytes / each).unwrap_or(u64::MAX)
    }

    /// The invariants: it is a step between none and all, and a window is no longer than it may be.
    pub fn validate(&self) -> Result<(), String> {
        if self.step > STEPS || self.target_pages() > self.max_pages {
            return Err(format!("a pool of {} steps, {} pages, of {}", self.step, self.target_pages(), self.max_pages));
        }
        if self.window.len() as u64 > self.window_loads() {
            return Err(format!("a window of {} loads, at most {}", self.window.len(), self.window_loads()));
        }
        if self.taken.get() > ONE {
            return Err(format!("the pool takes {} of {ONE}", self.taken.get()));
        }
        let moves = self.stats.shrunk + self.stats.grown;
        if moves > self.stats.windows {
            return Err(format!("{moves} moves in {} windows", self.stats.windows));
        }
        Ok(())
    }
}
