//! Invariants of the core at any time.

use std::collections::HashSet;
use std::ops::Range;

use super::operations::Operations;
use super::state::State;
use super::swap_core::Core;

impl<O: Operations> Core<O> {
    /// Checks the invariants of the engine, and that states, places, counts and folios agree.
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.engine.validate()?;
        self.memory.validate()?;
        self.validate_folios()
    }

    /// The states of pages of a folio belong together.
    pub(crate) fn validate_folios(&self) -> Result<(), String> {
        let m = &self.memory;
        if !m.folios.to_map.is_empty() || !m.folios.failed.is_empty() {
            return Err(format!("pages {:?} {:?} were mapped, and are not in place", m.folios.to_map, m.folios.failed));
        }
        let mut at = 0;
        while at < m.len() as u32 {
            let unit = self.unit(at);
            at = unit.end;
            if unit.len() > 1 {
                self.validate_folio(unit)?;
            }
        }
        let named: HashSet<u32> =
            m.staged.iter().filter(|(p, place)| m.place[*p as usize] == *place).map(|(p, _)| *p).collect();
        for page in (0..m.len() as u32).filter(|&p| m.state(p) == State::Staged) {
            let unit = self.unit(page);
            let moving = unit.clone().any(|p| m.state(p) == State::Leaving);
            if !moving && !unit.clone().any(|p| named.contains(&p)) {
                return Err(format!("page {page} is staged, and nobody will write it"));
            }
        }
        match m.leaving.iter().find(|&&p| m.state(p) != State::Leaving) {
            Some(page) => Err(format!("page {page} is to leave and is {:?}", m.state(*page))),
            None => Ok(()),
        }
    }

    fn validate_folio(&self, unit: Range<u32>) -> Result<(), String> {
        let m = &self.memory;
        let states = || unit.clone().map(|p| m.state(p)).filter(|&s| s != State::Poisoned);
        let Some(first) = states().next() else { return Ok(()) };
        let alike = |s: State| s == first || [s, first].iter().all(|s| matches!(s, State::Leaving | State::Staged));
        if !states().all(alike) {
            let all: Vec<_> = unit.clone().map(|p| m.state(p)).collect();
            return Err(format!("the pages {unit:?} of a folio are {all:?}"));
        }
        let in_swap = matches!(first, State::Leaving | State::Staged | State::Writing | State::Written);
        let slot = |p: u32| m.slot[p as usize];
        match unit.clone().find(|&p| in_swap && slot(p) != slot(unit.start) + (p - unit.start)) {
            Some(page) => Err(format!("page {page} of a folio has slot {}", slot(page))),
            None => Ok(()),
        }
    }
}
