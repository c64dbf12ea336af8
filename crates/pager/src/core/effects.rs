//! Orders of the engine in which a pager of anonymous memory in one node has no part.

use refault_mm::{Ack, Effect};

/// The answer to an order that is nobody's.
pub(crate) fn answer(effect: &Effect) -> Ack {
    match effect {
        // There are no files and no other nodes. The pool is the pager's own: zswap is off, and
        // what pages hold is not told.
        Effect::Read { .. }
        | Effect::Write { .. }
        | Effect::Migrate { .. }
        | Effect::ZeroFill { .. }
        | Effect::ZswapStore { .. }
        | Effect::ZswapLoad { .. }
        | Effect::ZswapDrop { .. }
        | Effect::WakeZswap => Ack::Failed,
        // A page stays in place until it is moved out as a whole, and a slot that is free is
        // forgotten as it is. A thread that faults waits until it is served anyway; nothing else is
        // throttled.
        Effect::Unmap { .. }
        | Effect::WriteProtect { .. }
        | Effect::Discard { .. }
        | Effect::WakeFlusher
        | Effect::Throttle { .. }
        | Effect::Unthrottle { .. } => Ack::Done,
        // The driver does these itself.
        Effect::SwapIn { .. }
        | Effect::SwapOut { .. }
        | Effect::Map { .. }
        | Effect::Free { .. }
        | Effect::FreeSlot { .. }
        | Effect::WakeKswapd { .. }
        | Effect::Oom { .. } => Ack::Failed,
    }
}
