//! Changes of mappings in a known order: a program with one thread waits after each change until it
//! was read.

use std::ops::Range;

use super::order::{Change, Outcome, Piece};

/// Outcome of one change that follows all that was read before: nothing is to be found out. The
/// place that a move left is unmapped by a change of its own, if it is.
pub(super) fn outcome_of_one(change: &Change) -> Outcome {
    let piece = |at: Range<usize>, origin, watched| Piece { at, origin, watched };
    let mut now = match change {
        Change::Unmap(range) => vec![piece(range.clone(), None, Some(false))],
        Change::Remove(range) => vec![piece(range.clone(), None, None)],
        &Change::Remap { from, to, len } => {
            vec![piece(from..from + len, None, Some(true)), piece(to..to + len, Some(from), Some(true))]
        }
        &Change::Fork(n) => return Outcome { now: Vec::new(), forks: vec![(n, Vec::new())] },
    };
    now.retain(|piece| !piece.at.is_empty());
    now.sort_unstable_by_key(|piece| piece.at.start);
    Outcome { now, forks: Vec::new() }
}
