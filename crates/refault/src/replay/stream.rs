//! A trace that is larger than memory: every cell takes the accesses piece by piece, all cells the
//! same piece.

use super::plan::{CellResult, Plan, Running};
use crate::Failure;
use refault_trace::{Piece, Pieces, TraceError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Accesses of a piece: long enough that the cells of a piece are worth their threads, and little
/// memory (4 bytes each, two pieces at a time). A multiple of the steps of a replay, so that the
/// clock is read at the same accesses.
const PIECE: usize = 1 << 20;

/// Replays the cells of a plan whose trace holds no access: accesses come from `pieces`, with pages
/// numbered as in the trace. `has_times`: times of the pieces count.
///
/// # Errors
/// An impossible configuration, a trace that cannot be read, or cancel.
pub fn run_stream(plan: &Plan<'_>, mut pieces: Pieces, has_times: bool) -> Result<Vec<CellResult>, Failure> {
    let begun = plan.cells().into_iter().filter_map(|(pages, policy)| plan.begin(policy, pages));
    let cells: Vec<_> = begun.map(|cell| cell.map(Mutex::new)).collect::<Result<_, _>>()?;
    let progress = plan.progress(cells.len());
    let feed = |cell: &Mutex<Running<'_>>, piece: &Piece| {
        // Nobody else holds the cell: a lock is poisoned only by a panic, which ends the scope.
        if let Ok(mut cell) = cell.lock() {
            let times = piece.time_ns.as_deref().filter(|_| has_times);
            plan.feed(&mut cell, &piece.accesses, times, &progress);
        }
    };
    let (mut now, mut next) = (Piece::default(), Piece::default());
    pieces.next(&mut now, PIECE)?;
    while !now.accesses.is_empty() {
        overlap(&mut pieces, &mut next, plan.threads, &cells, |cell| feed(cell, &now))?;
        plan.watch.check()?;
        std::mem::swap(&mut now, &mut next);
    }
    Ok(cells.into_iter().filter_map(|cell| cell.into_inner().ok()).map(|cell| plan.end(cell)).collect())
}

/// Decodes the next piece in this thread while others do a piece of work for each cell; then it
/// helps them.
fn overlap<C: Sync>(
    pieces: &mut Pieces,
    next: &mut Piece,
    threads: usize,
    cells: &[C],
    work: impl Fn(&C) + Sync,
) -> Result<(), TraceError> {
    let taken = AtomicUsize::new(0);
    let help = || {
        while let Some(cell) = cells.get(taken.fetch_add(1, Ordering::Relaxed)) {
            work(cell);
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(cells.len() + 1)).for_each(|_| _ = scope.spawn(help));
        let decoded = pieces.next(next, PIECE);
        help();
        decoded
    })
}
