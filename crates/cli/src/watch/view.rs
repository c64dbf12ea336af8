//! The table of groups.

use super::WatchArgs;
use crate::flags::size::human;
use crate::table::Table;
use refault::words::{counted, grouped, printable};
use refault_watch::{AT_LIMIT, CurveTrust, GroupReport, HostCounts, PERCENT, SizeChange, Taken};
use std::fmt::Write as _;

/// Letters of the name of a group that are shown: its end.
const NAME: usize = 40;

/// Sizes of the curve that are shown, in percent of the limit.
const SHOWN: [u64; 4] = [50, 75, 150, 200];

/// All groups, a row each, and what speaks against some.
pub(super) fn table(groups: &[GroupReport], counts: &HostCounts, args: &WatchArgs) -> String {
    let shown = SHOWN.map(|percent| format!("hits at\n{percent}%"));
    let fixed = ["group", "memory", "limit", "hits\nnow", "disk\nper s", "hits at\nlimit"].map(str::to_owned);
    let misses = [format!("smallest for\n+{}% misses", args.growth), "10% less".to_owned(), "10% more".to_owned()];
    let heads = fixed.into_iter().chain(shown).chain(misses).chain(["trust".to_owned()]);
    let mut table = Table::new(heads, 1).folded(1);
    groups.iter().for_each(|group| table.row(row(group)));
    let mut text = table.render();
    let (events, lost) = (counted(counts.events, "event", "events"), grouped(counts.lost));
    let engines = human(counts.engine_bytes as u64);
    let _ =
        writeln!(text, "{}; {events}, {lost} lost; engines {engines}", counted(groups.len() as u64, "group", "groups"));
    let Taken { cpu, memory_bytes } = counts.taken;
    let _ = writeln!(
        text,
        "rate 1/{}; the watcher takes {:.2} % of one CPU and {}",
        counts.one_in,
        100.0 * cpu,
        human(memory_bytes)
    );
    if counts.unwatched > 0 {
        let _ = writeln!(text, "{} of groups beyond --groups", counted(counts.unwatched, "event", "events"));
    }
    for (group, remarks) in groups.iter().map(|group| (group, group.remarks())).filter(|(_, all)| !all.is_empty()) {
        let _ = writeln!(text, "{}: {}", printable(&name(group)), printable(&remarks.join("; ")));
    }
    text
}

fn row(group: &GroupReport) -> Vec<String> {
    let figures = &group.figures;
    let percent = |rate: f64| format!("{:.1}%", 100.0 * rate);
    let is_known = group.advice.trust > CurveTrust::NotYet;
    let at = |at: usize| match group.curve.points.get(at).filter(|point| is_known && point.fits) {
        Some(point) => format!("{} ±{:.1}", percent(point.hit_rate), 200.0 * point.error.unwrap_or(0.0)),
        None => "-".to_owned(),
    };
    let shown = SHOWN.map(|percent| PERCENT.iter().position(|&known| known == percent).map_or("-".to_owned(), at));
    let change = |change: Option<SizeChange>| {
        change.map_or("-".to_owned(), |c| format!("{:+.1} ±{:.1}", 100.0 * c.hit_rate, 100.0 * c.bar))
    };
    let fixed = vec![
        printable(&name(group)),
        human(figures.usage_bytes),
        figures.limit_bytes.map_or("none".to_owned(), human),
        group.hit_rate_now.map_or("-".to_owned(), percent),
        human(group.read_bytes_per_s_now as u64),
        at(AT_LIMIT),
    ];
    let smallest = group.advice.smallest.map_or("-".to_owned(), |smallest| {
        let bound = if smallest.is_at_most { "<=" } else { "" };
        format!("{bound}{} ({}..{})", human(smallest.bytes), human(smallest.low_bytes), human(smallest.high_bytes))
    });
    let changes = [smallest, change(group.advice.less), change(group.advice.more)];
    let trust = group.advice.trust.name().to_owned();
    fixed.into_iter().chain(shown).chain(changes).chain([trust]).collect()
}

/// The name of its container or pod, or its path.
fn name(group: &GroupReport) -> String {
    group.name.clone().unwrap_or_else(|| short(&group.path))
}

/// The end of a long name: what tells groups apart stands there.
fn short(path: &str) -> String {
    let letters = path.chars().count();
    match letters > NAME {
        true => format!("..{}", path.chars().skip(letters - NAME + 2).collect::<String>()),
        false => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_their_beginning() {
        assert_eq!(short("/a"), "/a");
        let long = format!("/kubepods/{}/end", "x".repeat(60));
        assert!(short(&long).ends_with("x/end") && short(&long).chars().count() == NAME);
    }
}
