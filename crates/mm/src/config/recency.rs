//! Access patterns that programs advise, and since when reclaim listens to them.

/// Access pattern that a program advised for a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessAdvice {
    /// No advice.
    #[default]
    Normal,
    /// `MADV_RANDOM`, `POSIX_FADV_RANDOM`.
    Random,
    /// `MADV_SEQUENTIAL`, `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_NOREUSE`.
    NoReuse,
}

impl AccessAdvice {
    /// All kinds of advice, with their names in settings.
    pub const ALL: [(&str, AccessAdvice); 4] = [
        ("normal", AccessAdvice::Normal),
        ("random", AccessAdvice::Random),
        ("sequential", AccessAdvice::Sequential),
        ("noreuse", AccessAdvice::NoReuse),
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// Effect of advice on reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdviceRecency {
    /// Accessed bits through mappings that were advised random, sequential or not to be used again
    /// are ignored, wherever reclaim asks for them (since Linux 6.3).
    Ignored,
    /// Before Linux 6.3: the reference check ignores accessed bits in sequential mappings only.
    /// Faults and walks of multi-gen LRU ignore them in random mappings as well.
    SequentialOnly,
}
