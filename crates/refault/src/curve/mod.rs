//! Misses against memory: curves, and where memory is not worth its price.
//!
//! | file | what is in it |
//! |---|---|
//! | `answer` | how much memory is enough, whether more helps, whether another policy does |
//! | `lines` | [`Curves`] and [`CurveLine`]: the curves of a result, by bytes |
//! | `knee` | the size beyond which memory is not worth its price |
//!
//! It replays with `replay`, and reads `document`.

mod answer;
mod knee;
mod lines;

pub use answer::{CurveAnswer, EnoughMemory, MoreMemory, OtherPolicy, TARGET_MISSES_PERCENT};
pub use knee::knee_by_price;
pub use lines::{CurveLine, Curves};

use crate::Failure;
use crate::document::trace::{CurveFacts, TraceDocument, main_of};
use crate::memory_size::Size;
use crate::replay::policy::RowPolicy;
use crate::replay::{Replay, Row};
use refault_trace::Trace;

/// Misses of a trace against memory, a curve for each policy. `page_size` is in bytes; without
/// `threads`, there is one per core.
///
/// # Errors
/// A size or a policy that is impossible.
pub fn curve(
    trace: &Trace,
    page_size: u32,
    policies: &[RowPolicy],
    sizes: &[Size],
    threads: Option<u16>,
) -> Result<Vec<CurveFacts>, Failure> {
    let request = Replay { policies: policies.to_vec(), memory: sizes.to_vec(), threads, ..Replay::default() };
    let rows: Vec<Row> = request.run(trace, page_size)?.into_iter().map(|(row, _)| row).collect();
    Ok(policies.iter().map(|&policy| of_rows(&rows, policy)).collect())
}

/// The curve of a policy among rows by size.
pub fn of_rows(rows: &[Row], policy: RowPolicy) -> CurveFacts {
    let of = || rows.iter().filter(move |row| row.policy == policy);
    let read_pages = |row: &Row| miss_ratio(row).and(row.reads).map(|reads| reads.read_pages);
    CurveFacts {
        policy: policy.name().into(),
        pages: of().map(|row| row.memory_pages).collect(),
        miss_ratio: of().map(miss_ratio).collect(),
        read_pages: match of().any(|row| row.reads.is_some()) {
            true => of().map(read_pages).collect(),
            false => Vec::new(),
        },
    }
}

/// The miss ratio of a row of a curve; none: memory ran out.
pub fn miss_ratio(row: &Row) -> Option<f64> {
    row.oom_at.is_none().then(|| row.misses as f64 / row.accesses.max(1) as f64)
}

/// The knee, in pages, of the curve of the policy that pages tell most of: that of the recorded
/// kernel, if it is `recorded`, multi-gen LRU, or the first.
pub fn knee(curves: &[CurveFacts], recorded: Option<&str>) -> Option<u64> {
    let recorded_policy = recorded.map(str::to_owned);
    let d = TraceDocument { curves: curves.to_vec(), recorded_policy, ..TraceDocument::default() };
    // Without a size of pages, sizes are in pages.
    Curves::of_trace(&d).main()?.knee().map(|(pages, _)| pages as u64)
}

/// The curve of that policy.
pub fn main_curve<'a>(curves: &'a [CurveFacts], recorded: Option<&str>) -> Option<&'a CurveFacts> {
    main_of(curves, |curve| &curve.policy, recorded)
}
