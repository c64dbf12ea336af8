//! LIRS: near folios, whose last two accesses were close together, have almost all of the memory.
//! Other folios pass a short queue, and take the place of a near one when they come back soon.
//!
//! The paper keeps a stack by recency that ends at the oldest near folio. Here one time a folio
//! replaces the stack: a folio is on it if its last access is younger than that of the oldest near
//! folio.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// Folios in memory for each folio of the queue.
const QUEUE_SHARE: u64 = 100;

/// Oldest at the heads. The paper's names: LIR blocks, and the list Q of resident HIR blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lirs {
    near: ListId,
    queue: ListId,
    /// Folios that were evicted from the queue while they were on the stack: at most as many as
    /// memory has room for.
    ghosts: ListId,
    /// Clock: accesses so far.
    now: u64,
    /// Clock at the last access of each folio, also of one that has left memory; 0: none.
    last: FolioMap<u64>,
    /// Folios that the largest request so far wanted: the queue must have room for them.
    batch: u64,
    /// Folios in memory at the last eviction: fewer than the limit where other pages take a part of
    /// it.
    room: Option<u64>,
}

impl CacheExtOps for Lirs {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.near, self.queue, self.ghosts] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        if cache.lists.len(self.near) < self.near_share(cache) || self.is_on_stack(cache, folio) {
            self.bring_near(cache, folio);
        } else {
            cache.lists.move_tail(self.queue, folio);
        }
        self.note(folio);
        while cache.lists.len(self.ghosts) > cache.limit
            && let Some(oldest) = cache.lists.head(self.ghosts)
        {
            cache.lists.del(oldest);
            self.last.set(oldest, 0);
        }
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        if cache.lists.is_on(self.near, folio) {
            cache.lists.move_tail(self.near, folio);
        } else if self.is_on_stack(cache, folio) {
            self.bring_near(cache, folio);
        } else {
            cache.lists.move_tail(self.queue, folio);
        }
        self.note(folio);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        let stays = evicted && cache.lists.is_on(self.queue, folio) && self.is_on_stack(cache, folio);
        cache.lists.del(folio);
        match stays {
            true => cache.lists.add_tail(self.ghosts, folio),
            false => self.last.set(folio, 0),
        }
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        self.batch = self.batch.max(eviction.wanted() as u64);
        self.room = Some(cache.resident);
        while cache.lists.len(self.near) > self.near_share(cache).max(1) {
            self.push_out(cache);
        }
        for list in [self.queue, self.near] {
            for _ in 0..cache.lists.len(list) {
                let Some(folio) = cache.lists.head(list).filter(|_| !eviction.is_full()) else { break };
                cache.lists.move_tail(list, folio);
                eviction.propose(folio);
            }
        }
    }
}

impl Lirs {
    fn near_share(&self, cache: &Cache<'_>) -> u64 {
        let room = self.room.unwrap_or(cache.limit).min(cache.limit);
        room.saturating_sub((room / QUEUE_SHARE).max(self.batch).max(1))
    }

    fn is_on_stack(&self, cache: &Cache<'_>, folio: FolioId) -> bool {
        let last = self.last.get(folio);
        last > 0 && cache.lists.head(self.near).is_some_and(|bottom| last > self.last.get(bottom))
    }

    /// Makes a folio near; if there are too many, the oldest near one goes to the queue.
    fn bring_near(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        cache.lists.move_tail(self.near, folio);
        if cache.lists.len(self.near) > self.near_share(cache) {
            self.push_out(cache);
        }
    }

    fn push_out(&self, cache: &mut Cache<'_>) {
        if let Some(bottom) = cache.lists.head(self.near) {
            cache.lists.move_tail(self.queue, bottom);
        }
    }

    fn note(&mut self, folio: FolioId) {
        self.now += 1;
        self.last.set(folio, self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_loop_that_is_too_large_keeps_what_fits() {
        let mut cache = Plain::new(Box::new(Lirs::default()), 70);
        let pass: Vec<u32> = (0..100).collect();
        assert_eq!(cache.misses(&pass), 100);
        for _ in 0..3 {
            assert_eq!(cache.misses(&pass), 31, "69 are near, one is the queue");
        }
    }

    #[test]
    fn what_comes_back_soon_takes_the_place_of_the_oldest() {
        let mut cache = Plain::new(Box::new(Lirs::default()), 4);
        // 1, 2 and 3 are near; 4 passes the queue, comes back while it is on the stack, and 1 goes
        // to the queue, and from there.
        assert_eq!(cache.misses(&[1, 2, 3, 4, 5, 4, 6]), 7);
        assert_eq!(cache.resident(), [2, 3, 4, 6]);
    }
}
