//! Streams of accesses of a task over its objects, in the order that the scenario gives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use refault_mm::{AccessAdvice, PageId, Readahead};
use refault_trace::Via;
use refault_trace::generate::{Normal, Probability, Rng, Zipf};

use crate::scenario::{AccessPattern, Action, Share, StreamSpec, Sync};

/// A permutation of 0 .. n without a table: a Feistel network over the next even number of bits,
/// walked until it stays inside.
#[derive(Clone, Debug)]
struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(n: u64, rng: &mut Rng) -> Permutation {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    fn once(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for key in self.keys {
            // The mixing function is the finalizer of SplitMix64, shortened.
            let mixed = (right ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 29)) >> 7 & mask));
        }
        left << self.half_bits | right
    }

    fn at(&self, mut x: u64) -> u64 {
        loop {
            x = self.once(x);
            if x < self.n {
                return x;
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Order {
    Sequential {
        next: u64,
    },
    /// One position for all copies of the task.
    Queue {
        shared: Rc<Shared>,
    },
    Uniform,
    Zipf {
        zipf: Zipf,
        skew: f64,
        permutation: Option<Permutation>,
    },
    Normal {
        normal: Normal,
        sigma: f64,
    },
}

/// State that the copies of a task share in a stream.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where copies are that take turns; not started: the largest number.
    next: Cell<u64>,
    /// Zipf distribution, shared because its table is large.
    zipf: RefCell<Option<Zipf>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { next: Cell::new(u64::MAX), zipf: RefCell::new(None) }
    }
}

impl Shared {
    /// The distribution of one copy.
    fn zipf(&self, blocks: u64, skew: f64) -> Zipf {
        let blocks = blocks.min(u64::from(u32::MAX)) as u32;
        let mut known = self.zipf.borrow_mut();
        match &*known {
            Some(zipf) if zipf.is_of(blocks, skew) => zipf.clone(),
            _ => known.insert(Zipf::new(blocks, skew)).clone(),
        }
    }
}

/// One stream of one copy of a task.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The object instance.
    pub(crate) extent: usize,
    /// The page table, of what is mapped.
    pub(crate) space: Option<usize>,
    pub(crate) mapped: bool,
    pub(crate) action: Action,
    pub(crate) sync: Sync,
    pub(crate) readahead: Readahead,
    write_chance: Probability,
    first: u32,
    pages: u64,
    block_pages: u64,
    blocks: u64,
    order: Order,
    times: u32,
    /// The present block of the stream, and how often it is to be accessed again.
    current: Option<(Block, u32)>,
}

/// Consecutive pages that are accessed one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    pub(crate) direction: Direction,
}

/// Whether a block is written. As wide as its neighbours, so that a block is copied as whole words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Direction {
    #[default]
    Read,
    Write,
}

impl Stream {
    /// The stream of copy `copy` of `copies` over an object whose first page is `first`. Streams of
    /// one specification share what they permute, so `rng` must be the same for all copies.
    pub(crate) fn new(
        spec: &StreamSpec,
        extent: usize,
        first: PageId,
        copy: (u32, u32),
        (rng, shared): (&mut Rng, &Rc<Shared>),
    ) -> Stream {
        let block_pages = u64::from(spec.block_pages.max(1));
        let (mut from, mut pages) = (spec.first_page, spec.pages);
        if spec.share == Share::Split {
            let slice = (pages / u64::from(copy.1)).max(1);
            from += (slice * u64::from(copy.0)).min(pages - slice);
            pages = slice;
        }
        let blocks = pages.div_ceil(block_pages);
        let offset = if spec.share == Share::Staggered { blocks * u64::from(copy.0) / u64::from(copy.1) } else { 0 };
        let start = (spec.start_page / block_pages + offset) % blocks;
        let order = match spec.pattern {
            AccessPattern::Sequential if spec.share == Share::Queue => {
                shared.next.set(if shared.next.get() == u64::MAX { start } else { shared.next.get() });
                Order::Queue { shared: shared.clone() }
            }
            AccessPattern::Sequential => Order::Sequential { next: start },
            AccessPattern::Uniform => Order::Uniform,
            AccessPattern::Normal { sigma } => Order::Normal { normal: Normal::new(blocks, sigma), sigma },
            AccessPattern::Zipf { skew, permute } => Order::Zipf {
                zipf: shared.zipf(blocks, skew),
                skew,
                permutation: permute.then(|| Permutation::new(blocks, rng)),
            },
        };
        Stream {
            extent,
            space: None,
            mapped: spec.via == Via::Map,
            action: spec.action,
            sync: spec.sync,
            readahead: Readahead::advised(spec.advice),
            write_chance: Probability::new(spec.write_share),
            first: first.0 + from as u32,
            pages,
            block_pages,
            blocks,
            order,
            times: spec.times,
            current: None,
        }
    }

    /// Makes the stream of one object of a replayed trace. Accesses come from the trace, not from
    /// here.
    pub(crate) fn of_trace(extent: usize, first: PageId, pages: u64, advice: AccessAdvice) -> Stream {
        Stream {
            extent,
            space: None,
            mapped: false,
            action: Action::Access,
            sync: Sync::None,
            readahead: Readahead::advised(advice),
            write_chance: Probability::new(0.0),
            first: first.0,
            pages,
            block_pages: 1,
            blocks: pages,
            order: Order::Uniform,
            times: 1,
            current: None,
        }
    }

    /// The pages that it uses.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Calls `add` with each page and the probability that it is accessed next.
    pub(crate) fn weigh(&self, mut add: impl FnMut(PageId, f64)) {
        let blocks = self.blocks;
        let total: f64 = (0..blocks).map(|rank| self.density(rank, blocks)).sum();
        for rank in 0..blocks {
            let block = match &self.order {
                Order::Zipf { permutation: Some(p), .. } => p.at(rank),
                _ => rank,
            };
            let at = block * self.block_pages;
            let share = self.density(rank, blocks) / total / self.block_pages as f64;
            (at..(at + self.block_pages).min(self.pages)).for_each(|p| add(PageId(self.first + p as u32), share));
        }
    }

    /// The density of a block, by rank where there are ranks; not normalised.
    fn density(&self, rank: u64, blocks: u64) -> f64 {
        match &self.order {
            Order::Zipf { skew, .. } => (rank as f64 + 1.0).powf(-skew),
            Order::Normal { sigma, .. } => {
                let z = ((rank as f64 + 0.5) / blocks as f64 - 0.5) / sigma;
                (-z * z / 2.0).exp()
            }
            Order::Sequential { .. } | Order::Queue { .. } | Order::Uniform => 1.0,
        }
    }

    /// Whether each block depends on random draws alone, not on a position.
    pub(crate) fn is_drawn(&self) -> bool {
        let has_position = matches!(self.order, Order::Sequential { .. } | Order::Queue { .. });
        !has_position && self.times == 1
    }

    /// Whether hits of it are likely to be plain ones, of one page each: touches through page
    /// tables, or reads by descriptor for which nothing is read ahead.
    pub(crate) fn has_plain_hits(&self) -> bool {
        let reads_at_random = self.readahead.advice() == AccessAdvice::Random && self.write_chance.is_none();
        self.block_pages == 1 && self.action == Action::Access && (self.mapped || reads_at_random)
    }

    /// Draws the next block of a stream without a position ([`Self::is_drawn`]).
    #[inline(never)]
    pub(crate) fn draw_next(&mut self, rng: &mut Rng, block: &mut Block) {
        *block = self.another(rng);
    }

    /// Draws the next blocks of the stream, and notes for each the generator as it was before.
    pub(crate) fn draw_each<'b>(&mut self, rng: &mut Rng, blocks: impl Iterator<Item = (&'b mut Block, &'b mut Rng)>) {
        if let Order::Normal { normal, .. } = self.order {
            for (block, before) in blocks {
                before.clone_from(rng);
                let place = normal.place(rng);
                *block = self.block_at(place, rng);
            }
            return;
        }
        for (block, before) in blocks {
            before.clone_from(rng);
            *block = self.another(rng);
        }
    }

    /// The next block, or the same again.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> Block {
        let (block, left) = match self.current.take() {
            Some((block, left)) if left > 0 => (block, left - 1),
            _ => (self.another(rng), self.times - 1),
        };
        self.current = Some((block, left));
        block
    }

    #[inline(always)]
    fn another(&mut self, rng: &mut Rng) -> Block {
        let blocks = self.blocks;
        let block = match &mut self.order {
            Order::Sequential { next } => {
                let block = *next;
                *next = if block + 1 >= blocks { 0 } else { block + 1 };
                block
            }
            Order::Queue { shared } => {
                let block = shared.next.get();
                shared.next.set(if block + 1 >= blocks { 0 } else { block + 1 });
                block
            }
            Order::Uniform => rng.below(blocks),
            Order::Zipf { zipf, permutation, .. } => {
                let rank = u64::from(zipf.rank(|| rng.unit())) - 1;
                permutation.as_ref().map_or(rank, |p| p.at(rank))
            }
            Order::Normal { normal, .. } => normal.place(rng),
        };
        self.block_at(block, rng)
    }

    /// The block at a place, and whether it is written.
    #[inline(always)]
    fn block_at(&self, place: u64, rng: &mut Rng) -> Block {
        let at = place * self.block_pages;
        let write = !self.write_chance.is_none() && self.write_chance.happens(rng);
        let pages = self.block_pages.min(self.pages - at) as u32;
        let direction = if write { Direction::Write } else { Direction::Read };
        Block { first: PageId(self.first + at as u32), pages, direction }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_meets_every_number_once() {
        for n in [1u64, 2, 3, 64, 1000, 4097] {
            let p = Permutation::new(n, &mut Rng::new(1, &[n]));
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|x| assert!(!std::mem::replace(&mut seen[p.at(x) as usize], true)));
        }
    }
}
