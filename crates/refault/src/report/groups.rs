//! A trace with memory cgroups: what each policy does with the groups at one size.

use super::request::ReportRequest;
use super::trace::Policies;
use crate::document::trace::{GroupFacts, GroupsUnder};
use crate::names::shown;
use crate::replay::groups::{Grouped, Tree, limits_text};
use crate::watch::Progress;
use crate::{Failure, on_threads};
use refault_mm::{Config, Counter};
use refault_trace::Trace;

/// Groups that are named; the others are summed up as one.
const GROUPS: usize = 40;

/// The lists whose pages are a group's own.
const LISTS: [&str; 4] = ["inactive_anon", "active_anon", "inactive_file", "active_file"];

/// Input of the replays of a trace with groups.
struct Replay<'a> {
    trace: &'a Trace,
    tree: &'a Tree,
    windows: &'a [u64],
    /// The places of the groups that are told.
    told: &'a [usize],
    /// Memory in pages; `u64::MAX`: only the groups have limits.
    pages: u64,
    swap_max: u64,
    page_size: u64,
    progress: Progress,
}

/// Sums of one group until now.
#[derive(Clone, Copy, Default)]
struct Sums {
    resident: u64,
    misses: u64,
    refaults: u64,
}

/// Replays under each policy of Linux. Nothing: the trace has one group at most.
pub(super) fn under(
    request: &ReportRequest,
    (trace, tree, page_size): (&Trace, Tree, u32),
    policies: &Policies,
    windows: &[u64],
    detail_pages: u64,
) -> Result<Vec<GroupsUnder>, Failure> {
    if tree.groups.len() <= 2 && request.limits.is_none() {
        return Ok(Vec::new());
    }
    let footprint = u64::from(trace.footprint_pages());
    let tree = match &request.limits {
        Some(file) => tree.with_limits(file, page_size, footprint)?,
        None => tree,
    };
    let own = tree.is_limited() && request.limit.is_none() && request.at.is_none();
    let linux: Vec<_> = policies.iter().filter_map(|(policy, cfg)| Some((policy.name(), cfg.as_ref()?))).collect();
    let total = trace.accesses.len() as u64 * linux.len() as u64;
    let replay = Replay {
        trace,
        tree: &tree,
        windows,
        told: &busiest(trace, &tree),
        pages: if own { u64::MAX } else { detail_pages },
        swap_max: request.swap_max_pages(page_size, footprint),
        page_size: page_size.into(),
        progress: request.watch.accesses(format!("groups of {}", trace.name), Some(total)),
    };
    Ok(on_threads(request.threads(), &linux, &|(policy, cfg)| replay.under(policy, cfg))?)
}

/// The groups with most accesses, in the order of the tree.
fn busiest(trace: &Trace, tree: &Tree) -> Vec<usize> {
    let mut counts = vec![0u64; tree.groups.len()];
    for &group in trace.memcg.iter().flatten() {
        counts[tree.of_trace[usize::from(group)]] += 1;
    }
    let mut order: Vec<usize> = (0..counts.len()).filter(|&at| counts[at] > 0).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(counts[at]));
    order.truncate(GROUPS);
    order.sort_unstable();
    order
}

impl Replay<'_> {
    fn under(&self, policy: &str, cfg: &Config) -> Result<GroupsUnder, String> {
        let mut cell = Grouped::new(self.trace, self.tree, cfg.clone(), self.pages, self.swap_max)?;
        let mut facts: Vec<GroupFacts> = self.told.iter().map(|&at| self.named(at)).collect();
        let mut others = GroupFacts { path: "others".into(), ..GroupFacts::default() };
        let mut before = vec![Sums::default(); self.tree.groups.len()];
        for window in self.windows.windows(2) {
            let runs = cell.run(self.trace, window[0] as usize..window[1] as usize, None);
            others.window_resident.push(0);
            others.window_misses.push(0);
            others.window_refaults.push(0);
            for (at, before) in before.iter_mut().enumerate() {
                let now = sums(&cell, at);
                let (misses, refaults) = (now.misses - before.misses, now.refaults - before.refaults);
                *before = now;
                match self.told.binary_search(&at) {
                    Ok(place) => {
                        facts[place].window_resident.push(now.resident);
                        facts[place].window_misses.push(misses);
                        facts[place].window_refaults.push(refaults);
                    }
                    Err(_) => {
                        add_last(&mut others.window_resident, now.resident);
                        add_last(&mut others.window_misses, misses);
                        add_last(&mut others.window_refaults, refaults);
                    }
                }
            }
            self.progress.add(window[1] - window[0]);
            if !runs {
                break;
            }
        }
        for (facts, &at) in facts.iter_mut().zip(self.told) {
            ends(facts, &cell, at);
        }
        let untold = (0..self.tree.groups.len()).filter(|at| !self.told.contains(at));
        untold.for_each(|at| ends(&mut others, &cell, at));
        facts.extend(Some(others).filter(|others| others.accesses > 0));
        Ok(GroupsUnder {
            policy: policy.into(),
            memory_pages: Some(self.pages).filter(|&pages| pages != u64::MAX),
            oom_at: cell.cell.oom_at,
            groups: facts,
        })
    }

    fn named(&self, at: usize) -> GroupFacts {
        let group = &self.tree.groups[at];
        let limits = limits_text(&group.limits, self.page_size);
        GroupFacts { path: shown(&group.path), limits, ..GroupFacts::default() }
    }
}

fn add_last(all: &mut [u64], n: u64) {
    if let Some(last) = all.last_mut() {
        *last += n;
    }
}

/// Sums of a group itself, without groups below it.
fn sums(cell: &Grouped<'_>, at: usize) -> Sums {
    let (engine, id) = (&cell.cell.engine, cell.cell.groups[at]);
    let gauges = engine.memcg_gauges(id);
    let stats = engine.memcg_stats(id);
    Sums {
        resident: gauges.iter().filter(|gauge| LISTS.contains(&gauge.name)).map(|gauge| gauge.value).sum(),
        misses: cell.counts[at].misses,
        refaults: stats.get(Counter::WorkingsetRefaultAnon) + stats.get(Counter::WorkingsetRefaultFile),
    }
}

/// Adds what a group itself had in the end.
fn ends(facts: &mut GroupFacts, cell: &Grouped<'_>, at: usize) {
    let (count, now) = (cell.counts[at], sums(cell, at));
    facts.accesses += count.accesses;
    facts.misses += now.misses;
    facts.refaults += now.refaults;
    facts.killed_at = facts.killed_at.or(count.killed_at);
}
