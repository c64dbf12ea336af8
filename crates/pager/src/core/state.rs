//! Where the content of a page of anonymous memory is.

/// Where the content of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Nowhere: it was never touched, or given up.
    Empty,
    /// In place.
    Mapped,
    /// In place, but about to be moved to a staging place; in the moment before the move is
    /// acknowledged, there.
    Leaving,
    /// In a staging place; nothing was written yet.
    Staged,
    /// In a staging place, and being written.
    Writing,
    /// In a staging place, and in the swap area.
    Written,
    /// In the swap area.
    Stored,
    /// In the swap area, and on its way from there.
    Reading,
    /// It cannot be had any more; the thread that touches it gets a signal.
    Poisoned,
}

impl State {
    /// Whether someone is at work on the page who will say when that is over.
    pub(crate) fn is_moving(self) -> bool {
        matches!(self, State::Leaving | State::Writing | State::Reading)
    }

    /// Whether its content is in a staging place.
    pub(crate) fn is_in_place(self) -> bool {
        matches!(self, State::Staged | State::Writing | State::Written)
    }

    /// What may come after a state: content never appears, nor does it vanish unless it was given
    /// up or its loss is said.
    pub(crate) fn may_become(self, to: State) -> bool {
        use State::{Empty, Leaving, Mapped, Poisoned, Reading, Staged, Stored, Writing, Written};
        match self {
            Empty => matches!(to, Mapped | Poisoned),
            Mapped => matches!(to, Leaving | Empty | Poisoned),
            Leaving => matches!(to, Staged | Mapped | Poisoned),
            Staged => matches!(to, Writing | Mapped | Empty | Poisoned),
            Writing => matches!(to, Written | Staged),
            Written => matches!(to, Staged | Mapped | Stored | Poisoned),
            Stored => matches!(to, Reading | Empty | Poisoned),
            Reading => matches!(to, Mapped | Stored | Poisoned),
            Poisoned => matches!(to, Empty | Poisoned),
        }
    }
}
