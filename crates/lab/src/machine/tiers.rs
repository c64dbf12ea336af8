//! Tiers of memory on the machine: marking pages on behalf of tasks, hint faults, and what comes of them.

use refault_mm::tiering::{MmScan, NodeTier, Range, TaskScan, TieringConfig, Tiers};
use refault_mm::{NodeConfig, NodeId, NumaConfig};

use super::Machine;
use super::memory::NodeUse;
use super::task::Task;
use crate::device::PAGE_BYTES;
use crate::scenario::{PolicySpec, Scenario};

/// Pages that a reclaim aims at.
const SWAP_CLUSTER_MAX: u64 = 32;

/// The address space of a program, whose threads are the copies of a task.
#[derive(Clone, Debug)]
pub(super) struct Mm {
    scan: MmScan,
    /// Page tables with their lengths, one after the other.
    spaces: Vec<(usize, u64)>,
    pages: u64,
}

/// What the machine knows of its tiers.
#[derive(Clone, Debug)]
pub(super) struct Tiering {
    pub(super) cfg: TieringConfig,
    /// By node.
    pub(super) top: Vec<bool>,
    /// By thread: its program. Empty: no page is ever marked.
    mm_of: Vec<usize>,
    mms: Vec<Mm>,
    /// By thread: when it marks pages next, by its CPU time.
    scans: Vec<TaskScan>,
    /// What had happened when the first phase that counts began.
    before: Option<Snapshot>,
    /// Entries that marking looked at, and pages that it marked.
    pub(super) scanned_ptes: u64,
    pub(super) marked_pages: u64,
}

/// Counters at a time.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    at_ns: u64,
    nodes: Vec<NodeUse>,
    promoted: u64,
    demoted: u64,
}

/// A node of memory in the phases that count.
#[derive(Clone, Debug)]
pub struct TierResult {
    /// Its name.
    pub name: String,
    /// Its size.
    pub pages: u64,
    /// Its tier; lower is faster.
    pub tier: u64,
    /// Abstract distance.
    pub abstract_distance: u64,
    /// It is of the top tier.
    pub top: bool,
    /// Accesses that read, and that wrote.
    pub accesses: [u64; 2],
    /// Mean of an access, waiting for the node included.
    pub mean_access_ns: f64,
    /// Of the accesses of all nodes.
    pub share: f64,
    /// Pages that came from other nodes and went to others.
    pub pages_in: u64,
    /// Pages that went to other nodes.
    pub pages_out: u64,
    /// Share of its bandwidth that was used.
    pub utilization: f64,
    /// Free at the end.
    pub free_pages: u64,
}

/// Tiers in the phases that count.
#[derive(Clone, Debug)]
pub struct TiersResult {
    /// Nodes, in the order of the scenario.
    pub nodes: Vec<TierResult>,
    /// Their length.
    pub seconds: f64,
    /// Pages that went up and down.
    pub promoted: u64,
    /// Pages that went down.
    pub demoted: u64,
    /// The threshold at the end, of the first node of the top tier.
    pub hot_threshold_ms: u64,
    /// The share of accesses that the top tier would have served if it held the hottest pages of the last phases.
    pub best_share: Option<f64>,
    /// Page-table entries that marking looked at, and pages that it marked, in the whole run.
    pub scanned_ptes: u64,
    /// Pages that it marked.
    pub marked_pages: u64,
}

impl TiersResult {
    /// Mean of all accesses.
    pub fn mean_access_ns(&self) -> f64 {
        let sum = |of: fn(&TierResult) -> f64| self.nodes.iter().map(of).sum::<f64>();
        let accesses = sum(TierResult::accesses);
        if accesses > 0.0 { sum(|n| n.accesses() * n.mean_access_ns) / accesses } else { 0.0 }
    }

    fn per_s(&self, pages: u64) -> f64 {
        if self.seconds > 0.0 { (pages * PAGE_BYTES) as f64 / self.seconds } else { 0.0 }
    }

    /// Promoted bytes a second.
    pub fn promoted_bytes_per_s(&self) -> f64 {
        self.per_s(self.promoted)
    }

    /// Demoted bytes a second.
    pub fn demoted_bytes_per_s(&self) -> f64 {
        self.per_s(self.demoted)
    }

    /// A number of a node: `NAME.share`.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let (node, what) = name.rsplit_once('.')?;
        let node = self.nodes.iter().find(|n| n.name == node)?;
        Some(match what {
            "accesses" => node.accesses(),
            "share" => node.share,
            "mean_access_ns" => node.mean_access_ns,
            "promoted_bytes_per_s" => self.per_s(if node.top { node.pages_in } else { node.pages_out }),
            "demoted_bytes_per_s" => self.per_s(if node.top { node.pages_out } else { node.pages_in }),
            "utilization" => node.utilization,
            _ => return None,
        })
    }

    /// A number of all nodes.
    pub(super) fn total(&self, name: &str) -> Option<f64> {
        Some(match name {
            "promoted_bytes_per_s" => self.promoted_bytes_per_s(),
            "demoted_bytes_per_s" => self.demoted_bytes_per_s(),
            "mean_access_ns" => self.mean_access_ns(),
            _ => return None,
        })
    }
}

impl TierResult {
    /// Reads and writes.
    pub fn accesses(&self) -> f64 {
        (self.accesses[0] + self.accesses[1]) as f64
    }
}

/// The nodes of a scenario for the engine; none: it has one.
pub(super) fn numa_config(spec: &Scenario, policy: &PolicySpec) -> Result<Option<(NumaConfig, Tiers)>, String> {
    let m = &spec.machine;
    if m.nodes.is_empty() {
        return Ok(None);
    }
    let tiers = tiers_of(spec)?;
    let tiering = policy.tiering.config(m.scale)?;
    // A zone whose marks are closer than what one reclaim frees is balanced or not by chance: on a machine that was made small it is
    // part of Normal.
    let gap = |pages: u64| pages * u64::from(m.watermark_scale_factor) / 10_000;
    let zone = |pages: u64| if gap(pages) >= SWAP_CLUSTER_MAX { pages } else { 0 };
    let node = |(i, n): (usize, &crate::scenario::NodeSpec)| NodeConfig {
        pages: n.pages,
        min_free_kbytes: m.min_free_kbytes,
        watermark_scale_factor: m.watermark_scale_factor,
        // Low memory is on the first node.
        low_zones: if i == 0 { [m.dma_pages, m.dma32_pages].map(zone) } else { [0, 0] },
    };
    let mut numa = NumaConfig::new(m.nodes.iter().enumerate().map(node).collect());
    let ids = |nodes: &[usize]| nodes.iter().map(|&n| NodeId(n as u8)).collect::<Vec<_>>();
    numa.cpu_nodes = m.nodes.iter().zip(0u8..).flat_map(|(n, id)| (0..n.cpus).map(move |_| NodeId(id))).collect();
    numa.demotion_targets = (0..tiers.len()).map(|n| ids(tiers.demotion_targets(n))).collect();
    numa.demotion_allowed = (0..tiers.len()).map(|n| ids(&tiers.demotion_fallbacks(n))).collect();
    numa.top_tier = (0..tiers.len()).map(|n| tiers.is_toptier(n)).collect();
    numa.tiering = tiering;
    Ok(Some((numa, tiers)))
}

/// The tiers of a scenario: every node is as far from every other.
pub(super) fn tiers_of(spec: &Scenario) -> Result<Tiers, String> {
    let nodes: Vec<_> = spec.machine.nodes.iter().map(|n| NodeTier { perf: n.perf, cpus: n.cpus > 0 }).collect();
    Tiers::new(&nodes, |a, b| if a == b { 10 } else { 20 })
}

impl Tiering {
    /// For a machine of which the threads and page tables are not there yet.
    pub(super) fn new(cfg: TieringConfig, tiers: &Tiers) -> Tiering {
        let top = (0..tiers.len()).map(|n| tiers.is_toptier(n)).collect();
        Tiering {
            cfg,
            top,
            mm_of: Vec::new(),
            mms: Vec::new(),
            scans: Vec::new(),
            before: None,
            scanned_ptes: 0,
            marked_pages: 0,
        }
    }
}

impl Machine {
    /// Sorts tasks into programs: the copies of a task share one, unless one of their objects is private.
    pub(super) fn add_programs(&mut self) {
        let spec = self.spec.clone();
        if self.tiering.as_ref().is_none_or(|t| !t.cfg.promotes()) {
            return;
        }
        let (mut mms, mut mm_of, mut scans) = (Vec::new(), Vec::new(), Vec::new());
        for t in &spec.tasks {
            let mut objects: Vec<usize> = t.phases.iter().flat_map(|p| &p.streams).map(|s| s.object).collect();
            objects.sort_unstable();
            objects.dedup();
            let private = objects.iter().any(|&o| spec.objects[o].private);
            for copy in 0..t.count {
                if copy == 0 || private {
                    let instances = objects
                        .iter()
                        .map(|&o| self.first_instance[o] + if spec.objects[o].private { copy as usize } else { 0 });
                    mms.push(self.program(instances.collect(), t.start_ns));
                }
                mm_of.push(mms.len() - 1);
                scans.push(TaskScan::default());
            }
        }
        if let Some(tiering) = &mut self.tiering {
            (tiering.mms, tiering.mm_of, tiering.scans) = (mms, mm_of, scans);
        }
    }

    fn program(&self, instances: Vec<usize>, start_ns: u64) -> Mm {
        let anon = instances.into_iter().filter(|&i| self.instances[i].anon);
        let spaces: Vec<_> = anon.map(|i| (self.hw.first_space(i), u64::from(self.hw.extents[i].pages))).collect();
        let pages = spaces.iter().map(|s| s.1).sum();
        let cfg = self.tiering.as_ref().map(|t| t.cfg.clone()).unwrap_or_default();
        Mm { scan: MmScan::new(&cfg, start_ns), spaces, pages }
    }

    /// A page table that a task has got later, of a file: part of its program, too.
    pub(super) fn add_space_to_program(&mut self, task: &Task, space: usize, pages: u64) {
        let Some(t) = self.thread_of(task) else { return };
        let Some(tiering) = &mut self.tiering else { return };
        let Some(&mm) = tiering.mm_of.get(t) else { return };
        let mm = &mut tiering.mms[mm];
        if !mm.spaces.iter().any(|s| s.0 == space) {
            mm.spaces.push((space, pages));
            mm.pages += pages;
        }
    }

    fn thread_of(&self, task: &Task) -> Option<usize> {
        let before: u32 = self.spec.tasks.get(..task.spec)?.iter().map(|t| t.count).sum();
        Some((before + task.copy) as usize)
    }

    /// Marks pages on behalf of a task, if its CPU time says that it is due (`task_numa_work`). What that takes.
    pub(super) fn scan_for_hints(&mut self, t: usize, task: &mut Task, now_ns: u64) -> u64 {
        let Some(tiering) = &mut self.tiering else { return 0 };
        let (Some(scan), Some(&mm)) = (tiering.scans.get_mut(t), tiering.mm_of.get(t)) else { return 0 };
        let (cfg, mm) = (tiering.cfg.clone(), &mut tiering.mms[mm]);
        let (hw, spaces) = (&mut self.hw, mm.spaces.clone());
        let rss = || spaces.iter().map(|s| hw.mapped_in(s.0)).sum();
        let due = scan.due(&cfg, task.cpu_ns, rss);
        task.next_scan_ns = scan.next_ns(&cfg);
        let Some(period_ms) = due else { return 0 };
        if !mm.scan.begins(&cfg, now_ns, period_ms) {
            return 0;
        }
        self.engine.set_now_ns(now_ns);
        let (engine, marks_top) = (&mut self.engine, cfg.marks_toptier());
        let (mut looked, top) = (0, tiering.top.as_slice());
        let marked = mm.scan.scan(&cfg, mm.pages, |range| {
            looked += range.pages;
            let mut marked = 0;
            for (space, range) in parts(&spaces, range) {
                marked += self.hw.mark(space, range, |page, node| (marks_top || !top[node]) && engine.hint_mark(page));
            }
            marked
        });
        tiering.scanned_ptes += looked;
        tiering.marked_pages += marked;
        looked * self.costs.pte_walk_ns + if marked > 0 { self.costs.unmap_page_ns } else { 0 }
    }

    /// What nodes did up to now.
    fn snapshot(&self) -> Snapshot {
        let [promoted, demoted] = self.hw.moved;
        let nodes = (0..self.spec.machine.nodes.len()).map(|n| self.hw.memory.used(n)).collect();
        Snapshot { at_ns: self.now_ns, nodes, promoted, demoted }
    }

    /// A task enters a phase that counts.
    pub(super) fn note_measured(&mut self) {
        if self.tiering.as_ref().is_some_and(|t| t.before.is_none()) {
            let before = self.snapshot();
            if let Some(tiering) = &mut self.tiering {
                tiering.before = Some(before);
            }
        }
    }

    /// Which pages are hottest changes: a task leaves or enters a phase.
    pub(super) fn count_hottest(&mut self, task: &Task, sign: f64) {
        let spec = self.spec.clone();
        self.hw.hottest.count(task, &spec.tasks[task.spec].phases[task.phase], sign);
    }

    /// The tiers at the end; none: there are none.
    pub(super) fn tiers_result(&self) -> Option<TiersResult> {
        let tiering = self.tiering.as_ref()?;
        let tiers = tiers_of(&self.spec).ok()?;
        let (now, before) = (self.snapshot(), tiering.before.clone().unwrap_or_default());
        let ns = (now.at_ns - before.at_ns) as f64;
        let of = |n: usize| before.nodes.get(n).copied().unwrap_or_default();
        let accesses = |n: usize| (0..2).map(|k| now.nodes[n].accesses[k] - of(n).accesses[k]).sum::<u64>();
        let all: u64 = (0..now.nodes.len()).map(accesses).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let node = |(n, spec): (usize, &crate::scenario::NodeSpec)| TierResult {
            name: spec.name.clone(),
            pages: spec.pages,
            tier: tiers.tier(n),
            abstract_distance: tiers.abstract_distance(n),
            top: tiers.is_toptier(n),
            accesses: std::array::from_fn(|k| now.nodes[n].accesses[k] - of(n).accesses[k]),
            mean_access_ns: share((now.nodes[n].access_ns - of(n).access_ns) as f64, accesses(n) as f64),
            share: share(accesses(n) as f64, all as f64),
            pages_in: now.nodes[n].pages_in - of(n).pages_in,
            pages_out: now.nodes[n].pages_out - of(n).pages_out,
            utilization: share(now.nodes[n].busy_ns - of(n).busy_ns, ns),
            free_pages: self.engine.node_free_pages(NodeId(n as u8)),
        };
        Some(TiersResult {
            nodes: self.spec.machine.nodes.iter().enumerate().map(node).collect(),
            seconds: ns / 1e9,
            promoted: now.promoted - before.promoted,
            demoted: now.demoted - before.demoted,
            hot_threshold_ms: self.hot_threshold_ms(),
            best_share: self.hw.hottest.best_share(),
            scanned_ptes: tiering.scanned_ptes,
            marked_pages: tiering.marked_pages,
        })
    }

    /// The threshold of the first node of the top tier.
    pub(super) fn hot_threshold_ms(&self) -> u64 {
        let top = self.tiering.as_ref().and_then(|t| t.top.iter().position(|&top| top));
        top.and_then(|n| self.engine.promoter(NodeId(n as u8))).map_or(0, |p| p.threshold_ms())
    }

    /// What of the nodes is in a row of the time series.
    pub(super) fn tier_columns(&self) -> [f64; 5] {
        let stats = self.engine.vmstat();
        let get = |name: &str| stats.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, v)| v as f64);
        let [promoted, demoted] = self.hw.moved;
        [
            self.hot_threshold_ms() as f64,
            get("pgpromote_candidate"),
            promoted as f64,
            demoted as f64,
            get("numa_hint_faults"),
        ]
    }

    /// Pages of the top tier that could hold anything: for the oracle.
    pub(super) fn top_capacity(&self) -> usize {
        let top = self.tiering.as_ref().map_or(&[][..], |t| &t.top);
        let free = top.iter().zip(0u8..).filter(|(top, _)| **top).map(|(_, n)| self.engine.node_free_pages(NodeId(n)));
        free.sum::<u64>() as usize
    }
}

/// A range over page tables that follow each other, as ranges of each.
fn parts(spaces: &[(usize, u64)], range: Range) -> impl Iterator<Item = (usize, Range)> + '_ {
    let mut base = 0;
    spaces.iter().filter_map(move |&(space, pages)| {
        let (first, last) = (range.first.max(base), (range.first + range.pages).min(base + pages));
        let part = (first < last).then(|| (space, Range { first: first - base, pages: last - first }));
        base += pages;
        part
    })
}
