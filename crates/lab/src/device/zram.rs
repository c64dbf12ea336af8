//! Content of a zram device: which slots hold a page, how much of the page is stored, and the
//! memory that takes.
//!
//! A page of one word over and over takes its entry of the table and nothing else. Any other takes
//! an object of the pool, as long as what the page is compressed to, or of a whole page where
//! compressing gains nothing: such a page is stored as it is. Pages of which the scenario says no
//! content take 1/`compression_ratio` of a page each.

use refault_mm::{Content, ZsPool};

use super::PAGE_BYTES;

/// The figures of `mm_stat`, under their names there. Compaction is not counted: the pool is always
/// compact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZramStats {
    /// Bytes of the pages that the device holds, pages of one word included.
    pub orig_data_size: u64,
    /// Bytes of these pages after compression; 0 for a page of one word.
    pub compr_data_size: u64,
    /// Bytes of memory that the device takes.
    pub mem_used_total: u64,
    /// Most bytes of memory that the device may take; 0: no limit.
    pub mem_limit: u64,
    /// Most bytes of memory that the device took so far.
    pub mem_used_max: u64,
    /// Pages of one word over and over.
    pub same_pages: u64,
    /// Pages that are stored as they are.
    pub huge_pages: u64,
}

impl ZramStats {
    /// All figures by name.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("orig_data_size", self.orig_data_size),
            ("compr_data_size", self.compr_data_size),
            ("mem_used_total", self.mem_used_total),
            ("mem_limit", self.mem_limit),
            ("mem_used_max", self.mem_used_max),
            ("same_pages", self.same_pages),
            ("huge_pages", self.huge_pages),
        ]
    }
}

/// Content of a slot, in two bytes: 0 is nothing, 1 a page of unknown content, 2 a page of one
/// word, and n + 2 an object of n bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry(u16);

impl Entry {
    const EMPTY: Entry = Entry(0);
    const PLAIN: Entry = Entry(1);
    const SAME: Entry = Entry(2);

    /// The size of its object.
    fn object(self) -> Option<u32> {
        (self.0 > 2).then(|| u32::from(self.0 - 2))
    }
}

/// The pages in a zram device.
#[derive(Clone, Debug)]
pub struct Zram {
    table: Vec<Entry>,
    pool: ZsPool,
    huge_bytes: u32,
    ratio: f64,
    limit_pages: u64,
    plain: u64,
    same: u64,
    huge: u64,
    most_pages: u64,
}

impl Zram {
    /// An empty one. Pages without content shrink to 1/`ratio`; it takes no more than `limit_pages`
    /// of memory, if that is given.
    pub fn new(ratio: f64, limit_pages: Option<u64>) -> Zram {
        let pool = ZsPool::new();
        Zram {
            table: Vec::new(),
            huge_bytes: pool.huge_bytes(),
            pool,
            ratio,
            limit_pages: limit_pages.unwrap_or(u64::MAX),
            plain: 0,
            same: 0,
            huge: 0,
            most_pages: 0,
        }
    }

    /// Pages of memory that it takes.
    pub fn memory_pages(&self) -> u64 {
        self.plain_pages(self.plain) + self.pool.pages()
    }

    fn plain_pages(&self, plain: u64) -> u64 {
        (plain as f64 / self.ratio).ceil() as u64
    }

    /// A page is written to a slot. `false`: the limit does not allow it, and the slot holds what
    /// it held.
    pub fn store(&mut self, slot: u64, content: Option<Content>) -> bool {
        let entry = self.entry(content);
        // The old object of the slot goes after the new page is stored, as in Linux, so both count
        // for the limit.
        let growth = match entry {
            Entry::PLAIN => self.plain_pages(self.plain + 1) - self.plain_pages(self.plain),
            _ => entry.object().map_or(0, |bytes| self.pool.growth(bytes)),
        };
        let takes_memory = entry != Entry::SAME;
        if takes_memory && self.memory_pages() + growth > self.limit_pages {
            return false;
        }
        self.count(entry, true);
        self.most_pages = self.most_pages.max(self.memory_pages());
        let at = slot as usize;
        if self.table.len() <= at {
            self.table.resize(at + 1, Entry::EMPTY);
        }
        let held = std::mem::replace(&mut self.table[at], entry);
        self.count(held, false);
        true
    }

    /// The slot is free: what it held, if anything, is forgotten. Whether there was something.
    pub fn free(&mut self, slot: u64) -> bool {
        let Some(entry) = self.table.get_mut(slot as usize) else { return false };
        let held = std::mem::take(entry);
        self.count(held, false);
        held != Entry::EMPTY
    }

    /// Whether a slot holds a page.
    pub fn holds(&self, slot: u64) -> bool {
        self.table.get(slot as usize).is_some_and(|&entry| entry != Entry::EMPTY)
    }

    fn entry(&self, content: Option<Content>) -> Entry {
        match content {
            None => Entry::PLAIN,
            Some(Content::Zero | Content::SameFilled) => Entry::SAME,
            Some(Content::Compressed { bytes }) if bytes >= self.huge_bytes => Entry(PAGE_BYTES as u16 + 2),
            Some(Content::Compressed { bytes }) => Entry(bytes.max(1) as u16 + 2),
        }
    }

    /// One page more or less.
    fn count(&mut self, entry: Entry, more: bool) {
        let add = |n: &mut u64| *n = if more { *n + 1 } else { *n - 1 };
        match (entry, entry.object()) {
            (Entry::EMPTY, _) => {}
            (Entry::PLAIN, _) => add(&mut self.plain),
            (Entry::SAME, _) => add(&mut self.same),
            (_, Some(bytes)) => {
                if u64::from(bytes) == PAGE_BYTES {
                    add(&mut self.huge);
                }
                match more {
                    true => self.pool.insert(bytes),
                    false => self.pool.remove(bytes),
                }
            }
            (_, None) => unreachable!("an entry above 2 has an object"),
        }
    }

    /// Pages that the device holds and memory that it takes.
    pub fn stats(&self) -> ZramStats {
        let limit = if self.limit_pages == u64::MAX { 0 } else { self.limit_pages };
        ZramStats {
            orig_data_size: (self.plain + self.same + self.pool.objects()) * PAGE_BYTES,
            compr_data_size: (self.plain as f64 * PAGE_BYTES as f64 / self.ratio) as u64 + self.pool.bytes(),
            mem_used_total: self.memory_pages() * PAGE_BYTES,
            mem_limit: limit * PAGE_BYTES,
            mem_used_max: self.most_pages * PAGE_BYTES,
            same_pages: self.same,
            huge_pages: self.huge,
        }
    }

    /// Checks that counts and pool agree with the table, and that the limit holds.
    pub fn validate(&self) -> Result<(), String> {
        let mut again = Zram::new(self.ratio, None);
        for &entry in &self.table {
            again.count(entry, true);
        }
        let (known, real) = ([self.plain, self.same, self.huge], [again.plain, again.same, again.huge]);
        if known != real || self.pool != again.pool {
            return Err(format!("zram counts {known:?} without content, of one word and raw; its table has {real:?}"));
        }
        // The old object of a slot counts beside the new one, for a moment.
        let most = self.most_pages;
        if most > self.limit_pages || self.memory_pages() > most {
            return Err(format!("zram takes {} pages, {most} at most, of {}", self.memory_pages(), self.limit_pages));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::generate::Rng;

    fn of(bytes: u32) -> Option<Content> {
        Some(Content::Compressed { bytes })
    }

    #[test]
    fn a_page_of_one_word_takes_its_entry_only() {
        let mut z = Zram::new(2.2, Some(0));
        assert!(z.store(5, Some(Content::SameFilled)) && z.store(6, Some(Content::Zero)), "no limit keeps it out");
        let s = z.stats();
        assert_eq!((s.same_pages, s.orig_data_size, s.compr_data_size, s.mem_used_total), (2, 8192, 0, 0));
        z.free(5);
        assert_eq!(z.stats().same_pages, 1);
        z.validate().unwrap();
    }

    #[test]
    fn what_compressing_gains_nothing_on_is_stored_raw() {
        let mut z = Zram::new(2.2, None);
        z.store(0, of(3624));
        assert_eq!((z.stats().huge_pages, z.stats().compr_data_size), (0, 3624), "the largest size that shares pages");
        z.free(0);
        z.store(0, of(3625));
        z.store(1, of(4096));
        let s = z.stats();
        assert_eq!((s.huge_pages, s.compr_data_size, s.mem_used_total), (2, 8192, 8192));
        z.validate().unwrap();
    }

    #[test]
    fn the_limit_refuses_a_write_and_the_slot_holds_what_it_held() {
        let mut z = Zram::new(2.2, Some(2));
        assert!(z.store(0, of(2040)) && z.store(1, of(2040)) && z.store(2, of(4096)));
        assert!(!z.store(3, of(100)), "a class of its own needs a third page");
        assert!(!z.store(0, of(4096)), "the old content is there until the new is stored");
        assert!(!z.holds(3) && z.holds(0));
        assert_eq!(z.stats().mem_used_total, 2 * 4096);
        z.free(2);
        assert!(z.store(3, of(4096)), "a free slot makes room");
        assert_eq!((z.stats().mem_limit, z.stats().mem_used_max), (8192, 8192));
        z.validate().unwrap();
    }

    #[test]
    fn pages_without_content_take_the_ratio() {
        let mut z = Zram::new(2.2, Some(10));
        assert_eq!((0..30).filter(|&slot| z.store(slot, None)).count(), 22);
        assert_eq!((z.memory_pages(), z.stats().compr_data_size), (10, 40_960));
        (0..30).for_each(|slot| assert_eq!(z.free(slot), slot < 22));
        assert_eq!((z.memory_pages(), z.stats().orig_data_size), (0, 0));
        z.validate().unwrap();
    }

    #[test]
    fn any_writes_and_frees_keep_its_counts() {
        let mut rng = Rng::new(4, &[]);
        let mut z = Zram::new(3.0, Some(60));
        let (mut held, mut refused) = (vec![false; 200], 0);
        for _ in 0..20_000 {
            let slot = rng.below(200);
            if rng.below(3) == 0 {
                z.free(slot);
                held[slot as usize] = false;
            } else {
                let content = match rng.below(4) {
                    0 => None,
                    1 => Some(Content::SameFilled),
                    _ => of(rng.below(5000) as u32),
                };
                match z.store(slot, content) {
                    true => held[slot as usize] = true,
                    false => refused += 1,
                }
            }
            z.validate().unwrap();
        }
        assert!((0..200).all(|slot| z.holds(slot) == held[slot as usize]));
        assert!(refused > 100, "{refused}");
        (0..200).for_each(|slot| _ = z.free(slot));
        assert_eq!((z.memory_pages(), z.stats().orig_data_size), (0, 0));
    }
}
