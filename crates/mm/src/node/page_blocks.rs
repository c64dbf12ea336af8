//! Page blocks of a zone: which kind of pages each is for, by counts.
//!
//! Frames that lie together are known of one block of each kind: the one that was broken last. The
//! others are alike: free pages in them, and their pages of other kinds, are spread evenly over
//! them.
//!
//! Mechanism: `docs/mechanisms.md#page-blocks-and-the-watermark-boost`.

/// `pageblock_nr_pages`: 2 MiB.
pub(crate) const PAGEBLOCK_PAGES: u64 = 512;
/// Contiguous free pages (of half the block's order) that a block needs for a movable page to take
/// it over.
const STEALABLE_PAGES: u64 = 1 << 4;

/// `migratetype`: whether pages can be moved, or freed on demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum MigrateType {
    /// Page tables.
    Unmovable,
    /// Folios, and compressed pages of zram and zswap.
    #[default]
    Movable,
    /// Slabs of what reclaim can free: nodes of trees, buffer heads.
    Reclaimable,
}

impl MigrateType {
    pub(crate) const COUNT: usize = 3;
    pub(crate) const ALL: [MigrateType; 3] = [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Migratetypes whose free pages are taken when this one has none, in this order.
    fn fallbacks(self) -> [MigrateType; 2] {
        match self {
            MigrateType::Unmovable => [MigrateType::Reclaimable, MigrateType::Movable],
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
        }
    }
}

type PerKind = [u64; MigrateType::COUNT];

/// The blocks of a zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageBlocks {
    /// Blocks by migratetype: all of them, then the wholly free ones.
    blocks: PerKind,
    whole: PerKind,
    /// Free pages of blocks that are not wholly free, by migratetype of the block.
    loose: PerKind,
    /// Free pages of the block that was broken up last, by its kind: they lie together. Counted in
    /// `loose`, too.
    rest: PerKind,
    /// Pages of that block that are not free: by kind of the block, then of the page.
    rest_used: [PerKind; MigrateType::COUNT],
    /// By kind of the page, then of the block that it lies in: pages that are not free.
    used: [PerKind; MigrateType::COUNT],
    /// State of the generator that draws the block in which a page lay.
    random: u64,
}

impl PageBlocks {
    /// All free, and movable, as after boot.
    pub(crate) fn new(pages: u64, seed: u64) -> PageBlocks {
        let m = MigrateType::Movable.index();
        let mut all = PageBlocks { random: seed, ..PageBlocks::default() };
        all.blocks[m] = pages.div_ceil(PAGEBLOCK_PAGES);
        all.whole[m] = pages / PAGEBLOCK_PAGES;
        all.loose[m] = pages % PAGEBLOCK_PAGES;
        all
    }

    /// Gives the block that is only partly memory to another migratetype, before any page is taken.
    pub(crate) fn set_partial_block_type(&mut self, kind: MigrateType) {
        let (m, to) = (MigrateType::Movable.index(), kind.index());
        if self.blocks[m] > self.whole[m] {
            self.blocks[m] -= 1;
            self.blocks[to] += 1;
            self.loose[to] += std::mem::take(&mut self.loose[m]);
            self.rest[to] = self.loose[to];
        }
    }

    /// Free pages.
    pub(crate) fn free(&self) -> u64 {
        self.whole.iter().map(|n| n * PAGEBLOCK_PAGES).sum::<u64>() + self.loose.iter().sum::<u64>()
    }

    /// So many pages of the zone are free, and a block holds what there is of its kind at most.
    pub(crate) fn validate(&self, free: u64) -> Result<(), String> {
        if self.free() != free {
            return Err(format!("{free} pages are free, and {} in its blocks", self.free()));
        }
        for block in MigrateType::ALL.map(MigrateType::index) {
            let (rest, held) = (self.rest[block], self.rest_used[block]);
            let is_too_much = (0..MigrateType::COUNT).any(|kind| held[kind] > self.used[kind][block]);
            if rest > self.loose[block] || is_too_much || rest + held.iter().sum::<u64>() > PAGEBLOCK_PAGES {
                return Err(format!(
                    "the block that was broken last has {rest} free and {held:?} used pages: {self:?}"
                ));
            }
        }
        Ok(())
    }

    /// Takes a free page; there must be one. True: it came from a block of another migratetype that
    /// was not wholly free, so the watermark is boosted.
    pub(crate) fn take(&mut self, kind: MigrateType) -> bool {
        let own = kind.index();
        let (from, boosts) = match self.loose[own] + self.whole[own] {
            0 => self.fall_back(kind),
            _ => (own, false),
        };
        if self.loose[from] == 0 {
            self.whole[from] -= 1;
            (self.loose[from], self.rest[from]) = (PAGEBLOCK_PAGES, PAGEBLOCK_PAGES);
            self.rest_used[from] = PerKind::default();
        }
        // The smallest piece comes first, but what cannot move takes from the largest elsewhere.
        let splits = from != own && kind != MigrateType::Movable;
        if self.rest[from] > 0 && (splits || self.rest[from] == self.loose[from]) {
            self.rest[from] -= 1;
            self.rest_used[from][own] += 1;
        }
        self.loose[from] -= 1;
        self.used[own][from] += 1;
        boosts
    }

    /// Migratetype of the block that gives a page when the page's own has none left: wholly free
    /// blocks first, which change to the page's migratetype.
    fn fall_back(&mut self, kind: MigrateType) -> (usize, bool) {
        let own = kind.index();
        let others = kind.fallbacks().map(MigrateType::index);
        if let Some(&from) = others.iter().find(|&&b| self.whole[b] > 0) {
            self.whole[from] -= 1;
            self.blocks[from] -= 1;
            self.whole[own] += 1;
            self.blocks[own] += 1;
            return (own, false);
        }
        let largest = others.into_iter().rev().max_by_key(|&b| self.rest[b]).filter(|&b| self.rest[b] > 0);
        let from = largest.or_else(|| others.into_iter().find(|&b| self.loose[b] > 0)).expect("a free page");
        match self.is_worth_taking_over(kind, from) {
            true => {
                self.take_over(own, from);
                (own, true)
            }
            false => (from, true),
        }
    }

    /// The block that gives pages to another kind: the one that was broken last, or an average one.
    /// Returns its free pages, and its used ones by kind.
    fn candidate(&self, block: usize) -> (u64, PerKind) {
        if self.rest[block] > 0 {
            return (self.rest[block], self.rest_used[block]);
        }
        let broken = (self.blocks[block] - self.whole[block]).max(1);
        let free = self.loose[block].div_ceil(broken).min(PAGEBLOCK_PAGES);
        let used = self.used.map(|k| k[block]);
        let all: u64 = used.iter().sum();
        let share = |n: u64| (n * (PAGEBLOCK_PAGES - free)).checked_div(all).unwrap_or(0).min(n);
        (free, used.map(share))
    }

    /// Whether at least half of the block is free or holds pages of a like migratetype.
    fn is_worth_taking_over(&self, kind: MigrateType, from: usize) -> bool {
        let (free, held) = self.candidate(from);
        let movable = held[MigrateType::Movable.index()];
        let alike = match kind {
            MigrateType::Movable if free < STEALABLE_PAGES => return false,
            MigrateType::Movable => movable,
            // Nothing says which is which of two kinds that cannot be moved.
            _ if from != MigrateType::Movable.index() => 0,
            _ => held.iter().sum::<u64>() - movable,
        };
        free + alike >= PAGEBLOCK_PAGES / 2
    }

    /// Gives that block to another kind, with the pages that it holds.
    fn take_over(&mut self, to: usize, from: usize) {
        let (free, shares) = self.candidate(from);
        self.loose[from] -= free;
        self.loose[to] += free;
        (self.rest[to], self.rest_used[to]) = (free, shares);
        (self.rest[from], self.rest_used[from]) = (0, PerKind::default());
        for (held, share) in self.used.iter_mut().zip(shares) {
            held[from] -= share;
            held[to] += share;
        }
        self.blocks[from] -= 1;
        self.blocks[to] += 1;
    }

    /// Frees a page that was allocated for `kind`. Returns the kind of its block, whose free list
    /// gets the page.
    pub(crate) fn free_to_block(&mut self, kind: MigrateType) -> MigrateType {
        let block = self.draw(kind.index());
        if self.lies_in_rest(kind, block) {
            self.rest_used[block.index()][kind.index()] -= 1;
            self.rest_used[block.index()][block.index()] += 1;
        }
        self.used[kind.index()][block.index()] -= 1;
        self.used[block.index()][block.index()] += 1;
        block
    }

    /// A page that was taken for `kind` is free.
    pub(crate) fn give_back(&mut self, kind: MigrateType) {
        let block = self.draw(kind.index());
        if self.lies_in_rest(kind, block) {
            self.rest_used[block.index()][kind.index()] -= 1;
            self.rest[block.index()] += 1;
        }
        self.used[kind.index()][block.index()] -= 1;
        self.loose[block.index()] += 1;
        if self.rest[block.index()] == PAGEBLOCK_PAGES {
            self.loose[block.index()] -= std::mem::take(&mut self.rest[block.index()]);
            self.whole[block.index()] += 1;
        }
    }

    /// Whether a page of a kind that lies in a block of a kind lies in the one that was broken
    /// last: by chance, by how many do.
    fn lies_in_rest(&mut self, kind: MigrateType, block: MigrateType) -> bool {
        let (inside, all) = (self.rest_used[block.index()][kind.index()], self.used[kind.index()][block.index()]);
        inside > 0 && (inside == all || self.random() % all < inside)
    }

    /// Knuth's linear congruential generator; its high bits are the random ones.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// In which kind of block a page of a kind lies: by chance, by how many are in each.
    fn draw(&mut self, kind: usize) -> MigrateType {
        let held = self.used[kind];
        let total: u64 = held.iter().sum();
        debug_assert!(total > 0, "a page of a kind of which none is used");
        if held[kind] == total {
            return MigrateType::ALL[kind];
        }
        let mut at = self.random() % total.max(1);
        for block in MigrateType::ALL {
            match at.checked_sub(held[block.index()]) {
                Some(left) => at = left,
                None => return block,
            }
        }
        MigrateType::ALL[kind]
    }

    /// Resizes the zone by frames: the `more` that come are movable; the `less` that go are free
    /// ones, of any migratetype.
    pub(crate) fn resize(&mut self, more: u64, less: u64) {
        let m = MigrateType::Movable.index();
        self.blocks[m] += more.div_ceil(PAGEBLOCK_PAGES);
        self.whole[m] += more / PAGEBLOCK_PAGES;
        self.loose[m] += more % PAGEBLOCK_PAGES;
        for _ in 0..less {
            let kind = MigrateType::ALL.into_iter().find(|k| self.loose[k.index()] > 0);
            match kind.or_else(|| MigrateType::ALL.into_iter().find(|k| self.whole[k.index()] > 0)) {
                Some(k) if self.loose[k.index()] > 0 => {
                    self.loose[k.index()] -= 1;
                    self.rest[k.index()] = self.rest[k.index()].min(self.loose[k.index()]);
                }
                Some(k) => {
                    self.whole[k.index()] -= 1;
                    self.loose[k.index()] += PAGEBLOCK_PAGES - 1;
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(k: MigrateType) -> usize {
        k as usize
    }

    #[test]
    fn a_kind_takes_whole_blocks_of_another_without_a_boost() {
        let mut b = PageBlocks::new(4 * PAGEBLOCK_PAGES, 0);
        assert!(!(0..600).any(|_| b.take(MigrateType::Reclaimable)));
        assert_eq!(b.blocks, [0, 2, 2]);
        assert_eq!(b.free(), 4 * PAGEBLOCK_PAGES - 600);
    }

    /// With no whole block left, a page comes from a block of another kind, and that is a boost.
    #[test]
    fn a_page_from_a_broken_block_of_another_kind_boosts() {
        let mut b = PageBlocks::new(4 * PAGEBLOCK_PAGES, 0);
        (0..4 * PAGEBLOCK_PAGES - 40).for_each(|_| assert!(!b.take(MigrateType::Movable)));
        assert!(b.take(MigrateType::Reclaimable));
        assert_eq!((b.blocks, b.loose), ([0, 4, 0], [0, 39, 0]), "ten free pages are no block to take over");
        assert_eq!(b.used[of(MigrateType::Reclaimable)], [0, 1, 0]);
        assert!(!b.take(MigrateType::Movable));
        b.give_back(MigrateType::Reclaimable);
        assert_eq!(b.loose, [0, 39, 0], "it is free where it lay");
    }

    /// A block that is half free goes over as a whole.
    #[test]
    fn a_block_that_is_half_free_is_taken_over() {
        let mut b = PageBlocks::new(2 * PAGEBLOCK_PAGES, 0);
        (0..2 * PAGEBLOCK_PAGES).for_each(|_| _ = b.take(MigrateType::Movable));
        (0..600).for_each(|_| b.give_back(MigrateType::Movable));
        assert!(b.take(MigrateType::Unmovable));
        assert_eq!((b.blocks, b.loose), ([1, 1, 0], [297, 302, 0]), "the one that was broken last");
        assert_eq!(b.used[of(MigrateType::Movable)], [214, 210, 0]);
        assert!(!b.take(MigrateType::Unmovable));
    }

    /// The rest of the last block is taken over and back, as in zone DMA of a guest whose file
    /// system takes buffer heads: pages that are free elsewhere are taken first, in between.
    #[test]
    fn the_rest_of_a_block_goes_to_and_fro() {
        let mut b = PageBlocks::new(7 * PAGEBLOCK_PAGES, 0);
        (0..7 * PAGEBLOCK_PAGES - 268).for_each(|_| assert!(!b.take(MigrateType::Movable)));
        (0..10).for_each(|_| b.give_back(MigrateType::Movable));
        assert_eq!((b.loose, b.rest), ([0, 278, 0], [0, 268, 0]), "most blocks are others");
        assert!(b.take(MigrateType::Reclaimable));
        assert_eq!((b.blocks, b.rest), ([0, 6, 1], [0, 0, 267]));
        assert!(!b.take(MigrateType::Reclaimable), "it has the block");
        assert_eq!(b.rest_used[of(MigrateType::Reclaimable)], [0, 244, 2]);
        let alone = b.loose[of(MigrateType::Movable)];
        assert!(!(0..alone).any(|_| b.take(MigrateType::Movable)));
        assert!(b.take(MigrateType::Movable));
        assert_eq!(b.rest_used[of(MigrateType::Movable)], [0, 245, 2], "what it holds goes with it");
        assert_eq!((b.blocks, b.loose[of(MigrateType::Reclaimable)]), ([0, 7, 0], 0));
        // A rest of less than half of a block is split where it lies.
        (0..40).for_each(|_| assert!(!b.take(MigrateType::Movable)));
        assert!(b.take(MigrateType::Unmovable) && b.take(MigrateType::Unmovable));
        assert_eq!(b.blocks, [0, 7, 0]);
    }

    /// Free and used pages are the zone, after any sequence of calls.
    #[test]
    fn pages_are_free_or_used() {
        let pages = 20 * PAGEBLOCK_PAGES + 100;
        let mut b = PageBlocks::new(pages, 7);
        let mut held = [0_u64; 3];
        let mut boosts = 0;
        for i in 0..200_000_u64 {
            let kind = MigrateType::ALL[(i.wrapping_mul(2_654_435_761) >> 7) as usize % 3];
            if (i / 12_000) % 2 == 0 && b.free() > 0 {
                boosts += u64::from(b.take(kind));
                held[of(kind)] += 1;
            } else if held[of(kind)] > 0 {
                b.give_back(kind);
                held[of(kind)] -= 1;
            }
            let used: u64 = b.used.iter().flatten().sum();
            assert_eq!((used, b.validate(pages - used)), (held.iter().sum(), Ok(())));
            assert_eq!(b.blocks.iter().sum::<u64>(), 21);
        }
        assert!(boosts > 0);
    }
}
