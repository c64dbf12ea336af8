//! Memory cgroups over time: which are there, which task is in which, and what was of those that are gone.

use refault_mm::{Engine, MemcgId};

use super::hardware::Hardware;
use super::pressure::Mood;
use super::{Machine, MemcgResult, State, Work};
use crate::scenario::Scenario;

/// A group of the scenario.
#[derive(Clone, Debug)]
pub(super) enum Group {
    /// No event has made it yet.
    Absent,
    There {
        id: MemcgId,
        made_ns: u64,
    },
    /// What there was to say when it was removed.
    Removed(Box<MemcgResult>),
}

/// The groups, and where the tasks are.
#[derive(Debug)]
pub(super) struct Groups {
    /// By their number in the scenario.
    all: Vec<Group>,
    /// By task specification: its group, and whether it has begun.
    tasks: Vec<(Option<usize>, bool)>,
}

impl Groups {
    /// Those that are there from the start.
    pub(super) fn new(spec: &Scenario, engine: &mut Engine, hw: &mut Hardware) -> Result<Groups, String> {
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
        self.all[n] = Group::There { id, made_ns: now_ns };
        Ok(id)
    }

    pub(super) fn get(&self, n: usize) -> &Group {
        &self.all[n]
    }

    /// Its number in the engine, if it is there.
    pub(super) fn id(&self, n: usize) -> Option<MemcgId> {
        match self.all[n] {
            Group::There { id, .. } => Some(id),
            Group::Absent | Group::Removed(_) => None,
        }
    }

    /// That of a group, or of the root.
    pub(super) fn id_or_root(&self, n: Option<usize>) -> Option<MemcgId> {
        n.map_or(Some(MemcgId::ROOT), |n| self.id(n))
    }

    /// The group, or the nearest above it that is there.
    pub(super) fn nearest(&self, spec: &Scenario, n: Option<usize>) -> MemcgId {
        let up = std::iter::successors(n, |&n| spec.memcgs[n].parent);
        up.filter_map(|n| self.id(n)).next().unwrap_or(MemcgId::ROOT)
    }

    /// The group of a task.
    pub(super) fn of_task(&self, task: usize) -> Option<usize> {
        self.tasks[task].0
    }
}

impl Machine {
    /// The copies of a task: threads.
    pub(super) fn threads_of(&self, task: usize) -> std::ops::Range<usize> {
        let first: usize = self.spec.tasks[..task].iter().map(|t| t.count as usize).sum();
        first..first + self.spec.tasks[task].count as usize
    }

    /// The machine, and the groups from the root down to this one.
    pub(super) fn groups_of(&self, memcg: Option<usize>) -> Vec<usize> {
        let up = std::iter::successors(memcg, |&m| self.spec.memcgs[m].parent);
        std::iter::once(0).chain(up.map(|m| m + 1)).collect()
    }

    /// A task begins: its group must be there.
    pub(super) fn enter_group(&mut self, task: usize) -> Result<(), String> {
        let memcg = self.groups.tasks[task].0;
        self.groups.tasks[task].1 = true;
        let Some(n) = memcg.filter(|&n| self.groups.id(n).is_none()) else { return Ok(()) };
        let (name, path, at) = (&self.spec.tasks[task].name, &self.spec.memcgs[n].path, self.now_ns as f64 / 1e9);
        let why = match self.groups.get(n) {
            Group::Removed(_) => "was removed",
            _ => "is not there yet",
        };
        Err(format!("task {name} starts at {at} s in the group {path}, which {why}; change event or start"))
    }

    /// Makes a group. What is charged to it by the scenario moves there.
    pub(super) fn create_group(&mut self, n: usize) -> Result<(), String> {
        if !matches!(self.groups.get(n), Group::Absent) {
            return Err("it is there already".into());
        }
        let spec = self.spec.clone();
        let id = self.groups.make(&spec, n, (&mut self.engine, &mut self.hw), self.now_ns)?;
        let instances: Vec<usize> = (0..self.instances.len()).filter(|&i| self.instances[i].memcg == Some(n)).collect();
        for i in instances {
            self.engine.move_mapping(&mut self.hw, self.instances[i].mapping, id)?;
        }
        Ok(())
    }

    /// Removes a group without tasks and children.
    pub(super) fn remove_group(&mut self, n: usize) -> Result<(), String> {
        let id = self.groups.id(n).ok_or("it is not there")?;
        let inside = |&task: &usize| self.groups.tasks[task] == (Some(n), true) && self.is_alive(task);
        if let Some(task) = (0..self.spec.tasks.len()).find(inside) {
            return Err(format!("busy: task {} runs in it", self.spec.tasks[task].name));
        }
        let below = |&m: &usize| self.spec.memcgs[m].parent == Some(n) && self.groups.id(m).is_some();
        if let Some(m) = (0..self.spec.memcgs.len()).find(below) {
            return Err(format!("busy: {} is below it", self.spec.memcgs[m].path));
        }
        let mut last = self.memcg_result(n + 1);
        last.removed_ns = Some(self.now_ns);
        self.engine.remove_memcg(id)?;
        self.groups.all[n] = Group::Removed(Box::new(last));
        Ok(())
    }

    /// Whether a copy of a task that has begun has not ended.
    fn is_alive(&self, task: usize) -> bool {
        self.threads_of(task).any(|t| self.threads[t].state != State::Off && !self.threads[t].killed)
    }

    /// A task moves to another group, and with it what is charged for it, if that is wanted.
    pub(super) fn move_task(&mut self, task: usize, to: Option<usize>, charges: bool) -> Result<(), String> {
        let from = self.groups.tasks[task].0;
        let Some(id) = self.groups.id_or_root(to) else {
            return Err(format!("{} is not there", to.map_or("/", |n| &self.spec.memcgs[n].path)));
        };
        if self.copies_left[task] == 0 {
            return Err(format!("task {} has ended", self.spec.tasks[task].name));
        }
        self.groups.tasks[task].0 = to;
        let groups = self.groups_of(to);
        for t in self.threads_of(task) {
            let mood = self.threads[t].mood;
            self.pressure.change(self.now_ns, &self.threads[t].groups, mood, Mood::Idle);
            self.pressure.change(self.now_ns, &groups, Mood::Idle, mood);
            self.threads[t].groups.clone_from(&groups);
            self.split_results(t, from);
        }
        if charges && from != to {
            for i in self.instances_of(task) {
                if self.instances[i].memcg == from && !self.has_other_users(i, task) {
                    self.instances[i].memcg = to;
                    self.engine.move_mapping(&mut self.hw, self.instances[i].mapping, id)?;
                }
            }
        }
        Ok(())
    }

    /// What a copy of a task did so far it did in the group that it leaves.
    fn split_results(&mut self, t: usize, from: Option<usize>) {
        let over = self.threads[t].state == State::Off;
        let Some(Work::Task(task)) = &mut self.threads[t].work else { return };
        if task.done.first_ns.is_none() {
            return;
        }
        let measured = self.spec.tasks[task.spec].phases.get(task.phase).is_some_and(|phase| phase.measured);
        task.past.push((from, std::mem::take(&mut task.done)));
        task.done.first_ns = (measured && !over).then_some(self.now_ns);
    }

    /// What the copies of a task access.
    fn instances_of(&self, task: usize) -> Vec<usize> {
        (0..self.instances.len()).filter(|&i| self.uses(task, i)).collect()
    }

    fn uses(&self, task: usize, instance: usize) -> bool {
        let t = &self.spec.tasks[task];
        match self.instances[instance].of {
            Owner::Trace(of) => of == task,
            Owner::Object(object) => t.phases.iter().flat_map(|p| &p.streams).any(|s| s.object == object),
        }
    }

    /// Whether another task that has not ended uses it.
    fn has_other_users(&self, instance: usize, task: usize) -> bool {
        (0..self.spec.tasks.len()).any(|t| t != task && self.copies_left[t] > 0 && self.uses(t, instance))
    }
}

/// What an instance is one of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// An object of the scenario.
    Object(usize),
    /// The trace of this task.
    Trace(usize),
}
