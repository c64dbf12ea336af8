//! Moving folios from one node to another: demotion by reclaim, and the part that promotion has in
//! common with it.
//!
//! A folio that moves is on no list, locked and unmapped; the thread that touches it waits. It
//! keeps its number, its slots, its charge and its flags: only its frames are others afterwards,
//! and with them its lists.
//!
//! Mechanism: `docs/mechanisms.md#demotion`.

use crate::ids::{PageId, ZoneId};
use crate::stat::Counter;

/// Reason of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MigrateReason {
    /// Reclaim demotes the folio; the counter advances if the move succeeds.
    Demotion(Counter),
    /// A hint fault found the folio hot.
    Promotion,
}

/// A folio on its way.
#[derive(Clone, Debug)]
pub(crate) struct Migration {
    /// Frames that are taken for it.
    pub(crate) to: ZoneId,
    pub(crate) reason: MigrateReason,
    /// Its pages that were mapped, and whether they were young.
    pub(crate) mapped: Vec<(PageId, bool)>,
}
