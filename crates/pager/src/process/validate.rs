//! What must be so at any time.

use super::core::Core;
use super::memory::State;

impl Core {
    /// The invariants: those of the engine, and that states, places and counts agree.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.engine.validate()?;
        let m = &self.memory;
        let count = |state| m.states().iter().filter(|&&s| s == state).count() as u64;
        if (count(State::Writing) + count(State::Reading) > 0) != m.is_under_way() {
            return Err("pages that are read or written are counted otherwise".into());
        }
        if count(State::Staged) != m.staged_pages {
            return Err(format!("{} pages are staged, {} counted", count(State::Staged), m.staged_pages));
        }
        let resident = count(State::Mapped) + count(State::Leaving);
        if resident != m.resident.iter().sum::<u64>() {
            return Err(format!("{resident} pages are in place, {:?} counted", m.resident));
        }
        let held = count(State::Staged) + count(State::Writing) + count(State::Written);
        if m.staging.in_use() < held + m.discards.len() as u64 {
            return Err(format!("{held} pages have a place, but {} are in use", m.staging.in_use()));
        }
        if count(State::CowSwap) != m.cow_swaps.len() as u64 {
            return Err(format!("{} pages are lent, {} cow_swaps", count(State::CowSwap), m.cow_swaps.len()));
        }
        if m.counts.inconsistent > 0 {
            return Err(format!("{} orders did not fit the state of their page", m.counts.inconsistent));
        }
        for (i, space) in self.spaces.iter().enumerate() {
            let pages = space.iter().flat_map(|s| s.table.pages(&(0..usize::MAX)));
            for (address, page) in pages {
                let (owner, there) = (m.owner[page as usize] as usize, m.address[page as usize]);
                if (owner, there) != (i, address) {
                    return Err(format!("page {page} is at {i}:{address:#x} and says {owner}:{there:#x}"));
                }
            }
        }
        Ok(())
    }
}
