//! Rules of a group or the machine: what comes back, what leaves, who reclaims, who waits.

use super::view::{Scope, View, pages_in_words};
use super::{Cause, Finding};
use crate::memory_size::human;
use crate::words::grouped;

/// Pages that come and go in any machine: fewer say nothing.
const FEW: u64 = 256;

/// Part of a list, one in this many, that must come back to say that it does not fit.
const PART: u64 = 100;

/// Least share of time, in percent, in which tasks wait that is worth a sentence.
const WAITS: f64 = 1.0;

/// Sentences on a group or the machine.
pub(super) fn findings(view: &View<'_>) -> Vec<Finding> {
    let rules: [fn(&View<'_>) -> Option<Finding>; 9] = [
        super::limits::limit,
        super::limits::high,
        files,
        anon,
        idle_anon,
        super::limits::swap_full,
        reclaim,
        writeback,
        pressure,
    ];
    let mut all: Vec<Finding> = rules.iter().filter_map(|rule| rule(view)).collect();
    all.iter_mut().for_each(|finding| finding.because.retain(|why| !why.is_empty()));
    all
}

pub(super) fn finding(view: &View<'_>, cause: Cause, sentence: String, because: Vec<String>) -> Finding {
    Finding { cause, scope: view.scope, sentence, because }
}

/// Pages of files that came back; none: too few to speak of.
pub(super) fn file_refaults(view: &View<'_>) -> Option<u64> {
    let refaults = view.grew("workingset_refault_file").or_else(|| view.grew("workingset_refault"))?;
    let listed = view.listed("file").or_else(|| view.pages("file")).unwrap_or(0);
    (refaults >= FEW.max(listed / PART)).then_some(refaults)
}

/// Files come back.
fn files(view: &View<'_>) -> Option<Finding> {
    let refaults = file_refaults(view)?;
    let activated = view.grew("workingset_activate_file").or_else(|| view.grew("workingset_activate"));
    let of_set = view.grew("workingset_restore_file").or_else(|| view.grew("workingset_restore"));
    let (who, what) = (view.scope.words(), pages_in_words(refaults));
    let of_set = of_set.map_or(String::new(), |n| format!(", {} of the working set", none_or(n)));
    let sentence = match activated {
        None => format!(
            "{what} of files came back to {who} after they were reclaimed{of_set}: they do not fit, or are scanned \
             again and again"
        ),
        Some(activated) if activated * 10 < refaults => format!(
            "{what} of files came back to {who} after they were reclaimed, and few of them soon: scans larger than \
             memory, or files that are read once more after long"
        ),
        Some(_) => {
            format!("files that are in use do not fit: {what} came back to {who} after they were reclaimed{of_set}")
        }
    };
    let because = ["workingset_refault_file", "workingset_activate_file", "workingset_restore_file"];
    let sizes = ["inactive_file", "active_file"].map(|name| view.size(name));
    let because = because.iter().map(|name| view.growth(name)).chain(sizes);
    Some(finding(view, Cause::Files, sentence, because.collect()))
}

fn none_or(n: u64) -> String {
    if n == 0 { "none".to_owned() } else { grouped(n) }
}

/// Anonymous memory comes back, or leaves.
fn anon(view: &View<'_>) -> Option<Finding> {
    let back = view.grew("pswpin").or_else(|| view.grew("workingset_refault_anon"))?;
    let out = view.grew("pswpout").unwrap_or(0);
    let because = ["pswpin", "pswpout", "workingset_refault_anon"].map(|name| view.growth(name)).to_vec();
    let who = view.scope.words();
    if back >= FEW && back >= out / 10 {
        let sentence = format!(
            "anonymous memory that is in use does not fit: {} of {who} came back from swap",
            pages_in_words(back)
        );
        return Some(finding(view, Cause::Anon, sentence, because));
    }
    (out >= FEW).then(|| {
        let sentence = format!(
            "idle anonymous memory of {who} left: {} went to swap, and {} came back",
            pages_in_words(out),
            none_or(back)
        );
        finding(view, Cause::SwappedOut, sentence, because)
    })
}

/// Files come back while anonymous memory stays.
fn idle_anon(view: &View<'_>) -> Option<Finding> {
    file_refaults(view)?;
    let out = view.grew("pswpout")?;
    let (anon, file) = (view.listed("anon")?, view.listed("file")?);
    // A quarter of what could be reclaimed.
    if out > 0 || anon * 4 < anon + file {
        return None;
    }
    let why = match (view.now("SwapTotal"), view.now("memory.swap.max"), view.now("memory.swappiness")) {
        (Some(0), ..) => "there is no swap",
        (_, Some(0), _) => "memory.swap.max is 0",
        (.., Some(0)) => "swappiness is 0",
        _ => "why is not known of these counters: no swap, a low swappiness, or it is in use",
    };
    let sentence = format!(
        "{} of anonymous memory stays in {} while files come back, and nothing was swapped out: {why}",
        human(anon * 4096),
        view.scope.words()
    );
    let because = vec![view.growth("pswpout"), view.size("inactive_anon"), view.size("active_anon")];
    Some(finding(view, Cause::IdleAnon, sentence, because))
}

/// Pages that reclaim looked at: of kswapd, and of tasks.
pub(super) fn scanned(view: &View<'_>) -> Option<(u64, u64)> {
    let kswapd = view.grew("pgscan_kswapd").or_else(|| view.grew("pgsteal_kswapd"));
    let direct = view.grew("pgscan_direct").or_else(|| view.grew("pgsteal_direct"));
    match (kswapd, direct) {
        (None, None) => view.grew("pgscan").map(|all| (0, all)),
        (kswapd, direct) => Some((kswapd.unwrap_or(0), direct.unwrap_or(0))),
    }
}

/// Tells who reclaims, and with how much work.
fn reclaim(view: &View<'_>) -> Option<Finding> {
    let (kswapd, direct) = scanned(view)?;
    if kswapd + direct < FEW {
        return None;
    }
    let because: Vec<_> = ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "pgscan", "pgsteal"]
        .iter()
        .map(|name| view.growth(name))
        .chain(["allocstall_normal", "allocstall_movable"].iter().map(|name| view.growth(name)))
        .collect();
    let of_both = || Some(view.grew("pgsteal_kswapd")? + view.grew("pgsteal_direct")?);
    let steal = view.grew("pgsteal").or_else(of_both);
    let effort = match (view.grew("pgscan").or_else(|| view.grew("pgscan_kswapd").map(|_| kswapd + direct)), steal) {
        (Some(scan), Some(steal)) if scan > 4 * steal => {
            format!("; of {} pages looked at one was freed", grouped(scan / steal.max(1)))
        }
        _ => String::new(),
    };
    let is_direct = direct * 10 > kswapd + direct;
    let sentence = match (view.scope, is_direct) {
        (Scope::Group, _) => {
            format!("the group was reclaimed: {} were looked at{effort}", pages_in_words(kswapd + direct))
        }
        (Scope::Machine, true) => format!(
            "tasks had to reclaim themselves, for kswapd did not keep up: {:.0} % of the pages that were looked at{effort}",
            100.0 * direct as f64 / (kswapd + direct) as f64
        ),
        (Scope::Machine, false) => {
            format!(
                "kswapd frees memory in the background, and tasks hardly have to: {}{effort}",
                pages_in_words(kswapd)
            )
        }
    };
    let cause = match (view.scope, is_direct) {
        (Scope::Group, _) => Cause::Limit,
        (Scope::Machine, true) => Cause::DirectReclaim,
        (Scope::Machine, false) => Cause::Machine,
    };
    Some(finding(view, cause, sentence, because))
}

/// Pages that wait to be written.
fn writeback(view: &View<'_>) -> Option<Finding> {
    let (dirty, writeback) = match view.scope {
        Scope::Group => (view.pages("file_dirty")?, view.pages("file_writeback")?),
        Scope::Machine => (view.pages("dirty")?, view.pages("writeback")?),
    };
    let (all, bound) = match view.now("nr_dirty_threshold") {
        Some(threshold) => (dirty + writeback, threshold / 2),
        None => (dirty + writeback, view.listed("file").or_else(|| view.pages("file"))? / 5),
    };
    (all >= FEW.max(bound)).then(|| {
        let sentence = format!(
            "{} of files wait to be written, so much that tasks that write are slowed down soon, and reclaim passes \
             them over",
            pages_in_words(all)
        );
        let names = if view.scope == Scope::Group { ["file_dirty", "file_writeback"] } else { ["dirty", "writeback"] };
        finding(view, Cause::Writeback, sentence, names.map(|name| view.size(name)).to_vec())
    })
}

/// Percent of the time in which a task, or all, waited; none: not known.
pub(super) fn waited(view: &View<'_>, resource: &str, kind: &str) -> Option<f64> {
    Some(view.grew(&format!("{resource}.{kind}_us"))? as f64 / 1e4 / view.seconds?)
}

/// Tasks wait.
fn pressure(view: &View<'_>) -> Option<Finding> {
    let us = view.grew("memory.some_us")?;
    let share = waited(view, "memory", "some");
    let is_much = share.map_or(us > 100_000, |share| share >= WAITS);
    is_much.then(|| {
        let share = share
            .map_or_else(|| format!("for {:.1} s", us as f64 / 1e6), |share| format!("in {share:.1} % of the time"));
        let io = waited(view, "io", "some").filter(|io| *io >= WAITS);
        let io = io.map_or(String::new(), |io| format!(", and for disks in {io:.1} %"));
        let sentence = format!("some task of {} waited for memory {share}{io}", view.scope.words());
        let because = vec![
            format!("memory.pressure some total +{} us", grouped(us)),
            view.grew("memory.full_us").map_or(String::new(), |us| format!("full total +{} us", grouped(us))),
        ];
        finding(view, Cause::Pressure, sentence, because)
    })
}
