//! Swap devices at the end of a run: how full they are, and how fragmented (`--swap-map`).

use refault::words::{counted, grouped};
use refault_mm::{SwapList, SwapMap};
use std::fmt::Write as _;

/// Clusters in a line of the picture, and lines of it.
const COLUMNS: usize = 64;
const LINES: usize = 16;

/// Text shown without a device.
pub(super) const NONE: &str = "no swap device\n";

/// One line about how full a device is.
pub(super) fn occupancy(map: &SwapMap, name: Option<&str>) -> String {
    let d = &map.device;
    let name = name.map_or(String::new(), |n| format!(" {n}"));
    let share = 100.0 * d.used_pages as f64 / d.usable_pages.max(1) as f64;
    let (used, all) = (grouped(d.used_pages), grouped(d.usable_pages));
    let peak = 100.0 * d.peak_pages as f64 / d.usable_pages.max(1) as f64;
    let first =
        d.higher_used_percent.map_or(String::new(), |p| format!(", first used with {p:.1}% of higher ones in use"));
    format!(
        "swap {}{name}: {used} of {all} pages used ({share:.1}%), at most {peak:.1}%, priority {}{first}\n",
        d.number, d.priority
    )
}

/// A device for people: lists by order, clusters by how much of them is used, and a picture of the
/// clusters.
pub(super) fn text(map: &SwapMap, name: Option<&str>) -> String {
    let mut text = occupancy(map, name);
    let clusters = map.clusters.len() as u64 + u64::from(map.untouched);
    let _ = writeln!(text, "{} of {} pages", counted(clusters, "cluster", "clusters"), map.cluster_pages);
    let lists = map.lists();
    let of = |list: SwapList| lists.iter().find(|l| l.0 == list).map_or(0, |l| l.1);
    if map.has_lists {
        let (free, full, discard) = (of(SwapList::Free), of(SwapList::Full), of(SwapList::Discard));
        let _ = writeln!(text, "free {}, full {}, to be discarded {}", grouped(free), grouped(full), grouped(discard));
    }
    let _ = writeln!(text, "{:>7} {:>10} {:>10} {:>14}", "order", "nonfull", "frag", "free places");
    for order in 0..10u8 {
        let (nonfull, frag) = (of(SwapList::Nonfull(order)), of(SwapList::Frag(order)));
        let places = map.free_places[usize::from(order)];
        let _ = writeln!(text, "{order:>7} {:>10} {:>10} {:>14}", grouped(nonfull), grouped(frag), grouped(places));
    }
    let _ = write!(text, "clusters by use, none to all:");
    map.usage_histogram().iter().for_each(|&n| _ = write!(text, " {}", grouped(n)));
    text.push('\n');
    text + &picture(map)
}

/// A character a cluster, or for several of them if there are many: how much of it is used.
fn picture(map: &SwapMap) -> String {
    if map.clusters.is_empty() {
        return String::new();
    }
    let each = map.clusters.len().div_ceil(COLUMNS * LINES);
    let mut text = format!("{each} to a character; . free, 1 to 8 eighths used, # full, d to be discarded");
    if map.untouched > 0 {
        let _ = write!(text, "; {} more were never used", grouped(u64::from(map.untouched)));
    }
    for (i, group) in map.clusters.chunks(each).enumerate() {
        if i % COLUMNS == 0 {
            text += "\n  ";
        }
        let used: u64 = group.iter().map(|c| u64::from(c.used)).sum();
        let all = group.len() as u64 * u64::from(map.cluster_pages);
        text.push(match used {
            0 if group.iter().all(|c| c.list == SwapList::Discard) => 'd',
            0 => '.',
            used if used == all => '#',
            used => char::from(b'0' + (used * 8).div_ceil(all) as u8),
        });
    }
    text + "\n"
}
