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
    /// In the swap area, where it is that of the process that this one was forked from, too.
    CowSwap,
    /// The content is lost; a thread that touches the page gets a signal.
    Poisoned,
}

impl State {
    /// All there are.
    pub(crate) const ALL: [State; 10] = {
        use State::{CowSwap, Empty, Leaving, Mapped, Poisoned, Reading, Staged, Stored, Writing, Written};
        [Empty, Mapped, Leaving, Staged, Writing, Written, Stored, Reading, CowSwap, Poisoned]
    };

    /// Whether someone is at work on the page who will say when that is over.
    pub(crate) fn is_moving(self) -> bool {
        matches!(self, State::Leaving | State::Writing | State::Reading)
    }

    /// Whether its content is in a staging place.
    pub(crate) fn is_in_place(self) -> bool {
        matches!(self, State::Staged | State::Writing | State::Written)
    }

    /// Whether a state may come after this one: content never appears, nor does it vanish unless it
    /// was given up or its loss is said. A process gives pages up at any time, and only a child has
    /// some in the swap area that it never had in place.
    pub(crate) fn may_become(self, to: State) -> bool {
        use State::{CowSwap, Empty, Leaving, Mapped, Poisoned, Reading, Staged, Stored, Writing, Written};
        match self {
            Empty => matches!(to, Mapped | CowSwap | Empty | Poisoned),
            Mapped => matches!(to, Leaving | Empty | Poisoned),
            Leaving => matches!(to, Staged | Mapped | Empty | Poisoned),
            Staged => matches!(to, Writing | Mapped | Empty | Poisoned),
            Writing => matches!(to, Written | Staged | Empty),
            Written => matches!(to, Staged | Mapped | Stored | Empty | Poisoned),
            Stored => matches!(to, Reading | Empty | Poisoned),
            Reading => matches!(to, Mapped | Stored | Empty | Poisoned),
            CowSwap => matches!(to, Mapped | Empty | Poisoned),
            Poisoned => matches!(to, Empty | Poisoned),
        }
    }
}
