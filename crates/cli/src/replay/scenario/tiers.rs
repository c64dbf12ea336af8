//! Tiers of memory in the phases that count, as a table.

use crate::flags::size::human;
use crate::table::Table;
use refault::scenario::ScenarioRun;
use refault::words::{grouped, number, printable};
use refault_lab::machine::TiersResult;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The table of the nodes, and what went up and down; nothing if there are none.
pub(super) fn table(outcome: &ScenarioRun) -> String {
    let Some(tiers) = &outcome.result().tiers else { return String::new() };
    let heads = [
        "node",
        "tier",
        "size",
        "accesses",
        "served",
        "mean\nns",
        "promoted\nMB/s",
        "demoted\nMB/s",
        "bandwidth\nused",
    ];
    let mut table = Table::new(heads.map(str::to_owned), 1);
    for n in &tiers.nodes {
        let rate = |pages: u64| number(per_s(tiers, pages) / 1e6);
        let (promoted, demoted) = if n.top { (n.pages_in, n.pages_out) } else { (n.pages_out, n.pages_in) };
        table.row(vec![
            printable(&n.name),
            n.tier.to_string(),
            human(n.pages * PAGE),
            grouped(n.accesses() as u64),
            format!("{:.2}%", 100.0 * n.share),
            format!("{:.0}", n.mean_access_ns),
            rate(promoted),
            rate(demoted),
            format!("{:.1}%", 100.0 * n.utilization),
        ]);
    }
    let best = tiers
        .best_share
        .map_or(String::new(), |s| format!(", at best {:.2}% of accesses from the top tier", 100.0 * s));
    table.render()
        + &format!(
            "tiers: mean access {:.1} ns, {} MB/s promoted, {} demoted, threshold {} ms{best}\n",
            tiers.mean_access_ns(),
            number(tiers.promoted_bytes_per_s() / 1e6),
            number(tiers.demoted_bytes_per_s() / 1e6),
            tiers.hot_threshold_ms,
        )
}

fn per_s(tiers: &TiersResult, pages: u64) -> f64 {
    if tiers.seconds > 0.0 { (pages * PAGE) as f64 / tiers.seconds } else { 0.0 }
}
