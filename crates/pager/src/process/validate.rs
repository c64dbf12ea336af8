//! Invariants of the processes at any time.

use super::core::Core;
use crate::core::State;

impl Core {
    /// Checks the invariants of the engine, and that states, places and counts agree.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.engine.validate()?;
        self.memory.validate()?;
        let m = &self.memory;
        if m.all_resident() != m.page_counts.of.iter().sum::<u64>() {
            return Err(format!("{} pages are in place, {:?} counted", m.all_resident(), m.page_counts.of));
        }
        if m.count(State::CowSwap) != m.cow_swaps.len() as u64 {
            return Err(format!("{} pages are lent, {} cow_swaps", m.count(State::CowSwap), m.cow_swaps.len()));
        }
        for (i, space) in self.spaces.iter().enumerate() {
            let pages = space.iter().flat_map(|s| s.table.pages(&(0..usize::MAX)));
            for (address, page) in pages {
                let (owner, there) = m.place_of(page);
                if (owner, there) != (i, address) {
                    return Err(format!("page {page} is at {i}:{address:#x} and says {owner}:{there:#x}"));
                }
            }
        }
        Ok(())
    }
}
