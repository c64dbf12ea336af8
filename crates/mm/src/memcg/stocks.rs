//! Pages that groups charged ahead. A CPU keeps them for one group, or for few: another group that
//! charges there takes the place, and what is left goes back.
//!
//! Mechanism: `docs/mechanisms.md#charging`.

use crate::ids::MemcgId;
use crate::memcg::group::Memcgs;

impl Memcgs {
    /// Puts `nr` pages that were charged ahead into the stock. A stock of more than a batch is
    /// uncharged.
    pub(crate) fn refill_stock(&mut self, id: MemcgId, nr: u64) {
        self.make_place(id);
        let batch = self.charge_batch;
        let m = self.get_mut(id);
        m.stock += nr;
        if m.stock > batch {
            self.drain_stock(id);
        }
    }

    /// Lets a group keep a stock. If all places are taken, the group that has had one longest loses
    /// it.
    fn make_place(&mut self, id: MemcgId) {
        if self.stocked.contains(&id) {
            return;
        }
        if self.stocked.len() >= self.max_stocked {
            self.drain_stock(self.stocked[0]);
        }
        self.stocked.push(id);
    }

    /// Gives the stock back to the counter.
    pub(crate) fn drain_stock(&mut self, id: MemcgId) {
        self.stocked.retain(|&m| m != id);
        let stock = std::mem::take(&mut self.get_mut(id).stock);
        debug_assert!(stock <= self.get(id).usage, "the stock is charged");
        self.uncharge(id, stock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LruvecId;
    use crate::memcg::group::Memcg;

    fn groups(nr: u16, max_stocked: usize) -> Memcgs {
        let mut t = Memcgs::new(64, true);
        t.max_stocked = max_stocked;
        for i in 1..=nr {
            t.all.push(Memcg::new(None, "/g", LruvecId(0), u64::MAX, u64::MAX));
            t.link(MemcgId(i), MemcgId::ROOT);
        }
        t
    }

    /// Two groups that charge a page by turns on one CPU charge a batch each time.
    #[test]
    fn regression_a_cpu_keeps_the_stock_of_one_group() {
        let mut t = groups(2, 1);
        let [a, b] = [1, 2].map(MemcgId);
        for page in 1..=3 {
            for id in [a, b] {
                t.try_charge(id, 1, true).unwrap();
                assert_eq!((t.get(id).usage, t.get(id).stock), (page + 63, 63));
            }
            assert_eq!((t.get(a).usage, t.get(a).stock), (page, 0), "it went back when the other one charged");
        }
    }

    #[test]
    fn seven_groups_keep_theirs() {
        let mut t = groups(8, 7);
        for _ in 0..2 {
            (1..=7).for_each(|i| t.try_charge(MemcgId(i), 1, true).unwrap());
        }
        assert!((1..=7).all(|i| t.get(MemcgId(i)).stock == 62));
        t.try_charge(MemcgId(8), 1, true).unwrap();
        assert_eq!(t.get(MemcgId(1)).usage, 2, "the first one made place");
        assert!((2..=7).all(|i| t.get(MemcgId(i)).usage == 64));
    }
}
