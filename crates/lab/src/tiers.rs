//! Tiers of memory on the machine: marking pages on behalf of tasks, and what came of the hint
//! faults.
//!
//! `on_cpu` has pages marked when a task's CPU time says so, `machine` makes it and asks for
//! figures. It calls `hardware` for page tables and nodes, and the engine for what it would
//! promote.

use refault_mm::tiering::{MmScan, NodeTier, PteRange, TaskScan, TieringConfig, Tiers};
use refault_mm::{Engine, NodeConfig, NodeId, NumaConfig};

use crate::hardware::NodeUse;
use crate::kernel::LabKernel;
use crate::programs::{Programs, objects_of};
use crate::results::{TierResult, TiersResult};
use crate::scenario::{NodeSpec, PolicySpec, Scenario};
use crate::task::Task;

/// Pages that a run of reclaim aims at.
const SWAP_CLUSTER_MAX: u64 = 32;

/// The address space of a program, whose threads are the copies of a task.
#[derive(Clone, Debug)]
struct Mm {
    scan: MmScan,
    /// Page tables with their lengths, one after the other.
    spaces: Vec<(usize, u64)>,
}

/// Tiers of the machine and their counters.
#[derive(Clone, Debug)]
pub(crate) struct Tiering {
    cfg: TieringConfig,
    /// By node: whether it is in the top tier.
    pub(crate) top: Vec<bool>,
    /// By thread: its program, an index of `mms`. Empty: no page is ever marked.
    mm_of: Vec<usize>,
    mms: Vec<Mm>,
    /// By thread: the CPU time at which it next marks pages.
    scans: Vec<TaskScan>,
    /// The thread that ran last, and the number of pages promoted before it ran.
    last: (usize, u64),
    /// Counters when the first phase that counts began.
    before: Option<Snapshot>,
    /// Entries that marking looked at, and pages that it marked.
    scanned_ptes: u64,
    marked_pages: u64,
}

/// Counters at a time.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    at_ns: u64,
    nodes: Vec<NodeUse>,
    promoted: u64,
    demoted: u64,
}

/// The nodes of a scenario for the engine; none: it has one.
pub(crate) fn numa_config(spec: &Scenario, policy: &PolicySpec) -> Result<Option<(NumaConfig, Tiers)>, String> {
    let m = &spec.machine;
    if m.nodes.is_empty() {
        return Ok(None);
    }
    let tiers = tiers_of(spec)?;
    let tiering = policy.tiering.config(m.scale)?;
    // A zone whose watermarks are less than one reclaim (32 pages) apart is balanced or not by
    // chance: on a divided machine it becomes part of Normal.
    let gap = |pages: u64| pages * u64::from(m.watermark_scale_factor) / 10_000;
    let zone = |pages: u64| if gap(pages) >= SWAP_CLUSTER_MAX { pages } else { 0 };
    let node = |(i, n): (usize, &NodeSpec)| NodeConfig {
        pages: n.pages,
        min_free_kbytes: m.min_free_kbytes,
        khugepaged: m.thp.runs_khugepaged(),
        watermark_scale_factor: m.watermark_scale_factor,
        // Low memory is on the first node.
        low_zones: if i == 0 { [m.dma_pages, m.dma32_pages].map(zone) } else { [0, 0] },
        init_pages: if i == 0 { m.init_pages } else { 0 },
        per_cpu_lists: m.per_cpu_lists,
        page_blocks: m.page_blocks,
        watermark_boost_factor: m.watermark_boost_factor,
        buffer_heads: m.buffer_heads,
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
fn tiers_of(spec: &Scenario) -> Result<Tiers, String> {
    let nodes: Vec<_> = spec.machine.nodes.iter().map(|n| NodeTier { perf: n.perf, cpus: n.cpus > 0 }).collect();
    Tiers::new(&nodes, |a, b| if a == b { 10 } else { 20 })
}

impl Tiering {
    /// Tiers of a machine that has no threads and page tables yet.
    pub(crate) fn new(cfg: TieringConfig, tiers: &Tiers) -> Tiering {
        let top = (0..tiers.len()).map(|n| tiers.is_toptier(n)).collect();
        Tiering {
            cfg,
            top,
            mm_of: Vec::new(),
            mms: Vec::new(),
            scans: Vec::new(),
            last: (0, 0),
            before: None,
            scanned_ptes: 0,
            marked_pages: 0,
        }
    }

    /// Whether pages are marked to be promoted.
    pub(crate) fn promotes(&self) -> bool {
        self.cfg.promotes()
    }

    /// Sorts tasks into programs: the copies of a task share one, unless one of their objects is
    /// private.
    pub(crate) fn add_programs(&mut self, spec: &Scenario, programs: &Programs, kernel: &LabKernel) {
        if !self.promotes() {
            return;
        }
        for t in &spec.tasks {
            let objects = objects_of(t);
            let private = objects.iter().any(|&o| spec.objects[o].private);
            for copy in 0..t.count {
                if copy == 0 || private {
                    let instances = objects.iter().map(|&o| programs.instance(spec, o, copy));
                    let anon = instances.filter(|&i| programs.instances[i].anon);
                    let tables = &kernel.hw.tables;
                    let spaces = anon.map(|i| (tables.first_space(i), u64::from(tables.extents[i].pages))).collect();
                    self.mms.push(Mm { scan: MmScan::default(), spaces });
                }
                self.mm_of.push(self.mms.len() - 1);
                self.scans.push(TaskScan::default());
            }
        }
    }

    /// A page table that a task has got later, of a file: part of its program, too.
    pub(crate) fn add_space(&mut self, spec: &Scenario, task: &Task, space: usize, pages: u64) {
        let before: u32 = spec.tasks[..task.spec].iter().map(|t| t.count).sum();
        let Some(&mm) = self.mm_of.get((before + task.copy) as usize) else { return };
        let mm = &mut self.mms[mm];
        if !mm.spaces.iter().any(|s| s.0 == space) {
            mm.spaces.push((space, pages));
        }
    }

    /// A turn of a thread begins: pages that were promoted since the one before began are of the
    /// thread that had it.
    pub(crate) fn turn_begins(&mut self, t: usize, now_ns: u64, kernel: &LabKernel) {
        let ([promoted, _], (last, before)) = (kernel.hw.nodes.moved, self.last);
        self.last = (t, promoted);
        if promoted == before {
            return;
        }
        let (Some(scan), Some(&mm)) = (self.scans.get_mut(last), self.mm_of.get(last)) else { return };
        let Mm { scan: mm, spaces, .. } = &mut self.mms[mm];
        scan.note_promoted(&self.cfg, mm, now_ns, || spaces.iter().map(|s| kernel.hw.tables.mapped_in(s.0)).sum());
    }

    /// Marks pages on behalf of a task, if its CPU time says that it is due (`task_numa_work`).
    /// Returns the nanoseconds that takes.
    pub(crate) fn scan_for_hints(&mut self, t: usize, task: &mut Task, now_ns: u64, kernel: &mut LabKernel) -> u64 {
        let (Some(scan), Some(&mm)) = (self.scans.get_mut(t), self.mm_of.get(t)) else { return 0 };
        let (cfg, mm) = (&self.cfg, &mut self.mms[mm]);
        let (tables, spaces) = (&mut kernel.hw.tables, &mm.spaces);
        let due = scan.due(cfg, task.cpu_ns, || spaces.iter().map(|s| tables.mapped_in(s.0)).sum());
        task.next_scan_ns = scan.next_ns(cfg);
        let Some(period_ms) = due else { return 0 };
        if !mm.scan.begins(cfg, now_ns, period_ms) {
            return 0;
        }
        kernel.engine.set_now_ns(now_ns);
        let (engine, marks_top, top) = (&mut kernel.engine, cfg.marks_toptier(), &self.top);
        let mut scanned = 0;
        let marked = mm.scan.scan(cfg, spaces.iter().map(|s| s.1), |range| {
            let mut marked = 0;
            for (space, range) in parts(spaces, range) {
                let wanted = |page, node: usize| (marks_top || !top[node]) && engine.hint_mark(page);
                let [of_them, mapped] = tables.mark(space, range, wanted);
                (marked, scanned) = (marked + of_them, scanned + mapped);
            }
            marked
        });
        self.scanned_ptes += scanned;
        self.marked_pages += marked;
        // A divided machine has as many scans in a time that is as much shorter.
        let flush_ns = if marked > 0 { kernel.costs.unmap_page_ns / cfg.scale } else { 0 };
        let ns = scanned * kernel.costs.pte_walk_ns + flush_ns;
        scan.took(ns);
        task.next_scan_ns = scan.next_ns(cfg);
        ns
    }

    /// A task enters a phase that counts.
    pub(crate) fn note_measured(&mut self, spec: &Scenario, kernel: &LabKernel, now_ns: u64) {
        self.before.get_or_insert_with(|| Snapshot::take(spec, kernel, now_ns));
    }

    /// The tiers at the end; none: the scenario has none.
    pub(crate) fn result(&self, spec: &Scenario, kernel: &LabKernel, now_ns: u64) -> Option<TiersResult> {
        let tiers = tiers_of(spec).ok()?;
        let (now, before) = (Snapshot::take(spec, kernel, now_ns), self.before.clone().unwrap_or_default());
        let ns = (now.at_ns - before.at_ns) as f64;
        let of = |n: usize| before.nodes.get(n).copied().unwrap_or_default();
        let accesses = |n: usize| (0..2).map(|k| now.nodes[n].accesses[k] - of(n).accesses[k]).sum::<u64>();
        let all: u64 = (0..now.nodes.len()).map(accesses).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let node = |(n, spec): (usize, &NodeSpec)| TierResult {
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
            free_pages: kernel.engine.node_free_pages(NodeId(n as u8)),
        };
        Some(TiersResult {
            nodes: spec.machine.nodes.iter().enumerate().map(node).collect(),
            seconds: ns / 1e9,
            promoted: now.promoted - before.promoted,
            demoted: now.demoted - before.demoted,
            hot_threshold_ms: self.hot_threshold_ms(&kernel.engine),
            best_share: kernel.hw.hottest.best_share(),
            scanned_ptes: self.scanned_ptes,
            marked_pages: self.marked_pages,
        })
    }

    /// The threshold of the first node of the top tier.
    fn hot_threshold_ms(&self, engine: &Engine) -> u64 {
        let top = self.top.iter().position(|&top| top);
        top.and_then(|n| engine.promoter(NodeId(n as u8))).map_or(0, |p| p.threshold_ms())
    }

    /// Columns of the nodes in a row of the time series.
    pub(crate) fn columns(&self, kernel: &LabKernel) -> [f64; 5] {
        let stats = kernel.engine.vmstat();
        let get = |name: &str| stats.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, v)| v as f64);
        let [promoted, demoted] = kernel.hw.nodes.moved;
        [
            self.hot_threshold_ms(&kernel.engine) as f64,
            get("pgpromote_candidate"),
            promoted as f64,
            demoted as f64,
            get("numa_hint_faults"),
        ]
    }

    /// Pages of the top tier that could hold anything: for the oracle.
    pub(crate) fn top_capacity(&self, engine: &Engine) -> usize {
        let free = self.top.iter().zip(0u8..).filter(|(top, _)| **top).map(|(_, n)| engine.node_free_pages(NodeId(n)));
        free.sum::<u64>() as usize
    }
}

impl Snapshot {
    /// Takes the counters of the nodes up to now.
    fn take(spec: &Scenario, kernel: &LabKernel, now_ns: u64) -> Snapshot {
        let [promoted, demoted] = kernel.hw.nodes.moved;
        let nodes = (0..spec.machine.nodes.len()).map(|n| kernel.hw.nodes.used(n)).collect();
        Snapshot { at_ns: now_ns, nodes, promoted, demoted }
    }
}

/// Splits a range over consecutive page tables into a range for each page table.
fn parts(spaces: &[(usize, u64)], range: PteRange) -> impl Iterator<Item = (usize, PteRange)> + '_ {
    let mut base = 0;
    spaces.iter().filter_map(move |&(space, pages)| {
        let (first, last) = (range.first.max(base), (range.first + range.pages).min(base + pages));
        let part = (first < last).then(|| (space, PteRange { first: first - base, pages: last - first }));
        base += pages;
        part
    })
}
