//! Memory cgroups over time: which groups exist, which task is in which group, and the last figures
//! of removed groups.
//!
//! `machine` makes, removes and moves as the scenario's events say; `on_cpu` asks who is in which
//! group. It calls the engine through `kernel`, and tells `sched` whose pressure a thread is part
//! of.

use refault_mm::{Engine, MemcgId};

use crate::hardware::Hardware;
use crate::kernel::LabKernel;
use crate::programs::Programs;
use crate::results::MemcgResult;
use crate::scenario::Scenario;
use crate::sched::{ThreadState, Threads};

/// A group of the scenario.
#[derive(Clone, Debug)]
pub(crate) enum Group {
    /// No event has made it yet.
    Absent,
    There {
        id: MemcgId,
        made_ns: u64,
    },
    /// Results of the group when it was removed.
    Removed(Box<MemcgResult>),
}

/// The groups, and where the tasks are.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Groups by their number in the scenario.
    all: Vec<Group>,
    /// By task specification: its group, and whether the task has begun.
    tasks: Vec<(Option<usize>, bool)>,
}

impl Groups {
    /// Makes the groups that are there from the start.
    pub(crate) fn new(spec: &Scenario, engine: &mut Engine, hw: &mut Hardware) -> Result<Groups, String> {
        let tasks = spec.tasks.iter().map(|t| (t.memcg, false)).collect();
        let mut groups = Groups { all: vec![Group::Absent; spec.memcgs.len()], tasks };
        for n in 0..spec.memcgs.len() {
            if !spec.memcgs[n].made_by_event {
                groups.make(spec, n, (engine, hw), 0)?;
            }
        }
        Ok(groups)
    }

    /// Makes a group. The one above it must be there.
    fn make(
        &mut self,
        spec: &Scenario,
        n: usize,
        (engine, hw): (&mut Engine, &mut Hardware),
        now_ns: u64,
    ) -> Result<MemcgId, String> {
        let m = &spec.memcgs[n];
        let parent = match m.parent {
            None => MemcgId::ROOT,
            Some(p) => self.id(p).ok_or_else(|| format!("{} is not there", spec.memcgs[p].path))?,
        };
        let id = engine.add_memcg(parent, &m.path, m.limits.max, m.limits.swap_max)?;
        engine.set_memcg_limits(hw, id, &m.limits)?;
        if let Some(policy) = m.cache_ext {
            engine.attach_cache_ext(id, &*policy.ops())?;
        }
        self.all[n] = Group::There { id, made_ns: now_ns };
        Ok(id)
    }

    pub(crate) fn get(&self, n: usize) -> &Group {
        &self.all[n]
    }

    /// Number of the group in the engine, if the group exists.
    pub(crate) fn id(&self, n: usize) -> Option<MemcgId> {
        match self.all[n] {
            Group::There { id, .. } => Some(id),
            Group::Absent | Group::Removed(_) => None,
        }
    }

    /// Number of a group in the engine, or of the root.
    pub(crate) fn id_or_root(&self, n: Option<usize>) -> Option<MemcgId> {
        n.map_or(Some(MemcgId::ROOT), |n| self.id(n))
    }

    /// The group, or the nearest above it that is there.
    pub(crate) fn nearest(&self, spec: &Scenario, n: Option<usize>) -> MemcgId {
        let up = std::iter::successors(n, |&n| spec.memcgs[n].parent);
        up.filter_map(|n| self.id(n)).next().unwrap_or(MemcgId::ROOT)
    }

    /// The group of a task.
    pub(crate) fn of_task(&self, task: usize) -> Option<usize> {
        self.tasks[task].0
    }

    /// A task begins: its group must be there.
    pub(crate) fn enter(&mut self, spec: &Scenario, task: usize, now_ns: u64) -> Result<(), String> {
        let memcg = self.tasks[task].0;
        self.tasks[task].1 = true;
        let Some(n) = memcg.filter(|&n| self.id(n).is_none()) else { return Ok(()) };
        let (name, path, at) = (&spec.tasks[task].name, &spec.memcgs[n].path, now_ns as f64 / 1e9);
        let why = match self.get(n) {
            Group::Removed(_) => "was removed",
            _ => "is not there yet",
        };
        Err(format!("task {name} starts at {at} s in the group {path}, which {why}; change event or start"))
    }

    /// Makes a group. Objects and tasks that the scenario charges to it move there.
    pub(crate) fn create(
        &mut self,
        spec: &Scenario,
        n: usize,
        now_ns: u64,
        programs: &Programs,
        kernel: &mut LabKernel,
    ) -> Result<(), String> {
        if !matches!(self.get(n), Group::Absent) {
            return Err("it is there already".into());
        }
        let id = self.make(spec, n, (&mut kernel.engine, &mut kernel.hw), now_ns)?;
        for i in programs.charged_to(n) {
            kernel.engine.move_mapping(&mut kernel.hw, programs.instances[i].mapping, id)?;
        }
        Ok(())
    }

    /// The number in the engine of a group that can be removed. Error: it does not exist, or has
    /// tasks or children.
    pub(crate) fn removable(&self, spec: &Scenario, n: usize, threads: &Threads) -> Result<MemcgId, String> {
        let id = self.id(n).ok_or("it is not there")?;
        let inside = |&task: &usize| self.tasks[task] == (Some(n), true) && threads.is_alive(spec, task);
        if let Some(task) = (0..spec.tasks.len()).find(inside) {
            return Err(format!("busy: task {} runs in it", spec.tasks[task].name));
        }
        let below = |&m: &usize| spec.memcgs[m].parent == Some(n) && self.id(m).is_some();
        match (0..spec.memcgs.len()).find(below) {
            Some(m) => Err(format!("busy: {} is below it", spec.memcgs[m].path)),
            None => Ok(id),
        }
    }

    /// Notes that a group was removed; `last`: its results at the end.
    pub(crate) fn set_removed(&mut self, n: usize, last: MemcgResult) {
        debug_assert!(matches!(self.all[n], Group::There { .. }), "group {n} is not there");
        self.all[n] = Group::Removed(Box::new(last));
    }

    /// Moves a task to another group; with `charges` also the memory charged for the task.
    pub(crate) fn move_task(
        &mut self,
        spec: &Scenario,
        (task, to, charges): (usize, Option<usize>, bool),
        now_ns: u64,
        (threads, programs, kernel): (&mut Threads, &mut Programs, &mut LabKernel),
    ) -> Result<(), String> {
        let from = self.tasks[task].0;
        let Some(id) = self.id_or_root(to) else {
            return Err(format!("{} is not there", to.map_or("/", |n| &spec.memcgs[n].path)));
        };
        if programs.copies_left(task) == 0 {
            return Err(format!("task {} has ended", spec.tasks[task].name));
        }
        self.tasks[task].0 = to;
        let groups = groups_of(spec, to);
        for t in Threads::of_task(spec, task) {
            threads.set_groups(t, &groups, now_ns);
            split_results(spec, threads, t, from, now_ns);
        }
        if charges && from != to {
            for i in programs.of_task(spec, task) {
                if programs.instances[i].memcg == from && !programs.has_other_users(spec, i, task) {
                    programs.instances[i].memcg = to;
                    kernel.engine.move_mapping(&mut kernel.hw, programs.instances[i].mapping, id)?;
                }
            }
        }
        Ok(())
    }
}

/// The machine, and the groups from the root down to this one.
pub(crate) fn groups_of(spec: &Scenario, memcg: Option<usize>) -> Vec<usize> {
    let up = std::iter::successors(memcg, |&m| spec.memcgs[m].parent);
    std::iter::once(0).chain(up.map(|m| m + 1)).collect()
}

/// Books the work of a copy of a task so far in the group that it leaves.
fn split_results(spec: &Scenario, threads: &mut Threads, t: usize, from: Option<usize>, now_ns: u64) {
    let over = threads[t].state == ThreadState::Off;
    let Some(task) = threads[t].task_mut() else { return };
    if task.done.first_ns.is_none() {
        return;
    }
    let measured = spec.tasks[task.spec].phases.get(task.phase).is_some_and(|phase| phase.measured);
    task.past.push((from, std::mem::take(&mut task.done)));
    task.done.first_ns = (measured && !over).then_some(now_ns);
}
