//! The evictor: what its thread does next. It makes no call that takes time; who has the thread
//! does.

use super::operations::Operations;
use super::state::State;
use super::swap_core::Core;

/// Nanoseconds between two looks round while there is nothing to do.
const IDLE_NS: u64 = 100_000_000;

/// Next task of the evictor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Nothing, for at most this many nanoseconds, or until someone tells of work.
    Sleep(u64),
    /// A step of background reclaim, and all that follows from it.
    Reclaim,
    /// Pages are to be written, and the results booked.
    Write,
    /// The store does some of what can wait.
    Tend,
    /// The store gives up memory for faults that find none.
    GiveRoom,
    /// Others are at work on what is waited for.
    Yield,
}

/// Calls of the evictor to a core.
pub(crate) trait EvictorCore {
    /// Lets threads go on whose sleep is over; returns the nanoseconds until the next sleep ends.
    fn wake_sleepers(&mut self) -> Option<u64>;
    /// Whether there is work for the evictor. `alone`: nobody else does what background reclaim
    /// asks for.
    fn has_work(&self, alone: bool) -> bool;
    /// Whether it is the evictor who reclaims.
    fn reclaims(&self) -> bool;
    /// Whether any fault waits for a frame.
    fn is_waiting_for_frame(&self) -> bool;
    /// Whether the step that was made is to be followed by a pause.
    fn yields(&self) -> bool {
        self.is_waiting_for_frame()
    }
    /// Whether the store wants to do what can wait.
    fn wants_tending(&self) -> bool {
        false
    }
    /// Whether the store is asked for memory.
    fn is_asked_for_room(&self) -> bool {
        false
    }
    /// The evictor sleeps from now on.
    fn sleeps(&mut self);
    /// The evictor sleeps no more. Returns whether nobody told it of work.
    fn woke(&mut self) -> bool;
}

/// Step of the evictor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Look,
    Asleep,
    Stepped,
    Tended,
    GaveRoom,
}

/// The loop of the evictor, a task at a time.
#[derive(Debug)]
pub(crate) struct Evictor {
    phase: Phase,
    /// Nobody else may be at work on background reclaim: it was not asked for anything, and looks
    /// round.
    alone: bool,
}

impl Evictor {
    pub(crate) fn new() -> Evictor {
        Evictor { phase: Phase::Look, alone: true }
    }

    /// The next task. The task before it was done.
    pub(crate) fn next(&mut self, core: &mut impl EvictorCore) -> Task {
        loop {
            match self.phase {
                Phase::Look => {
                    let next = core.wake_sleepers();
                    if !core.has_work(self.alone) {
                        core.sleeps();
                        self.phase = Phase::Asleep;
                        return Task::Sleep(next.map_or(IDLE_NS, |next| next.min(IDLE_NS)));
                    }
                    let reclaims = std::mem::take(&mut self.alone) || core.reclaims();
                    self.phase = Phase::Stepped;
                    return if reclaims { Task::Reclaim } else { Task::Write };
                }
                Phase::Asleep => {
                    self.alone = core.woke();
                    self.phase = Phase::Look;
                }
                Phase::Stepped => {
                    self.phase = Phase::Tended;
                    // Nobody waits for it.
                    if core.wants_tending() && !core.is_waiting_for_frame() {
                        return Task::Tend;
                    }
                }
                Phase::Tended => {
                    self.phase = Phase::GaveRoom;
                    if core.is_asked_for_room() {
                        return Task::GiveRoom;
                    }
                }
                Phase::GaveRoom => {
                    self.phase = Phase::Look;
                    // Room comes from threads that are at work, or not at all: either takes a
                    // moment.
                    if core.yields() {
                        return Task::Yield;
                    }
                }
            }
        }
    }
}

impl<O: Operations> EvictorCore for Core<O> {
    fn wake_sleepers(&mut self) -> Option<u64> {
        Core::wake_sleepers(self)
    }

    /// Background reclaim is done by who serves faults, unless there is nobody.
    fn has_work(&self, alone: bool) -> bool {
        self.has_work() || alone && self.memory.kswapd_awake
    }

    fn reclaims(&self) -> bool {
        self.is_waiting_for_frame() || self.is_left_behind()
    }

    fn is_waiting_for_frame(&self) -> bool {
        Core::is_waiting_for_frame(self)
    }

    fn wants_tending(&self) -> bool {
        self.memory.area.wants_tending()
    }

    fn is_asked_for_room(&self) -> bool {
        self.memory.area.is_asked_for_room()
    }

    fn sleeps(&mut self) {
        self.evictor_sleeps = true;
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.evictor_sleeps)
    }
}

impl<O: Operations> Core<O> {
    /// Whether there is work for the evictor, beside background reclaim.
    pub(crate) fn has_work(&self) -> bool {
        let m = &self.memory;
        self.is_left_behind()
            || m.count(State::Staged) > self.pages_to_keep
            || self.has_discards()
            || self.is_waiting_for_frame()
            || m.high.new_sleepers
            || m.area.wants_tending()
    }
}
