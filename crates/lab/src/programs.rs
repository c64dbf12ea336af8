//! The programs of a scenario: what of their objects the engine knows, and how many copies of each
//! task are left.
//!
//! `groups` moves their charges, `on_cpu` asks where their pages are, `machine` makes them and
//! counts who has ended. It calls `scenario` alone.

use std::collections::HashMap;
use std::rc::Rc;

use refault_mm::MappingId;
use refault_trace::ObjectKind;

use crate::results::OomVictim;
use crate::scenario::{Scenario, TaskSpec};
use crate::task::Shared;

/// Thing that an instance is one of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// An object of the scenario.
    Object(usize),
    /// The trace of this task.
    Trace(usize),
}

/// The program of every copy of every task: a thread each of one program, or one each. Tasks that
/// are threads and share anonymous memory are of the same program. Also how many threads each has.
pub(crate) fn programs_of(spec: &Scenario) -> (Vec<Vec<u32>>, Vec<u32>) {
    let shared = |t: &TaskSpec| -> Vec<usize> {
        let is_shared = |&o: &usize| spec.objects[o].kind == ObjectKind::Anon && !spec.objects[o].private;
        objects_of(t).into_iter().filter(is_shared).collect()
    };
    let mut threads = Vec::new();
    // Programs with several tasks: the number of each, and the objects that its tasks share.
    let mut known: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut of_task = Vec::new();
    for t in &spec.tasks {
        let memory = shared(t);
        if !t.threads.unwrap_or(!memory.is_empty()) {
            let first = threads.len() as u32;
            threads.extend((0..t.count).map(|_| 1));
            of_task.push((first..first + t.count).collect());
            continue;
        }
        let found = known.iter_mut().find(|(_, m)| m.iter().any(|o| memory.contains(o)));
        let program = match found {
            Some((program, m)) => {
                m.extend(memory);
                *program
            }
            None => {
                threads.push(0);
                known.push((threads.len() as u32 - 1, memory));
                threads.len() as u32 - 1
            }
        };
        threads[program as usize] += t.count;
        of_task.push(vec![program; t.count as usize]);
    }
    (of_task, threads)
}

/// An object instance: what of it the engine knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    pub(crate) mapping: MappingId,
    pub(crate) anon: bool,
    pub(crate) of: Owner,
    /// Group that is charged: one of the scenario, or the root. While the group is not there, the
    /// one above it.
    pub(crate) memcg: Option<usize>,
}

/// All programs, their memory, and the copies that are still running.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) instances: Vec<Instance>,
    /// By object: its first instance.
    first_instance: Vec<usize>,
    /// State that the copies of a task share, by task, phase and stream.
    shared: HashMap<(usize, usize, usize), Rc<Shared>>,
    /// Tasks that count and have not ended.
    alive: usize,
    /// By task specification: copies that have not ended.
    copies_left: Vec<u32>,
    pub(crate) oom_kills: u64,
    /// Whom the killer took, the first [`OomVictim::MOST`].
    pub(crate) oom_victims: Vec<OomVictim>,
}

impl Programs {
    pub(crate) fn new(spec: &Scenario, instances: Vec<Instance>, first_instance: Vec<usize>) -> Programs {
        Programs {
            instances,
            first_instance,
            shared: HashMap::new(),
            alive: spec.tasks.iter().filter(|t| !t.background).map(|t| t.count as usize).sum(),
            copies_left: spec.tasks.iter().map(|t| t.count).collect(),
            oom_kills: 0,
            oom_victims: Vec::new(),
        }
    }

    /// The instance of an object that a copy of a task uses.
    pub(crate) fn instance(&self, spec: &Scenario, object: usize, copy: u32) -> usize {
        self.first_instance[object] + if spec.objects[object].private { copy as usize } else { 0 }
    }

    /// Whether anonymous memory that this task uses is that of a program: of one copy, or of
    /// threads. Otherwise it is a file in memory, which programs read by descriptor.
    pub(crate) fn is_memory_of_a_program(&self, spec: &Scenario, instance: usize, task: usize) -> bool {
        match self.instances[instance].of {
            Owner::Object(o) => spec.objects[o].private || spec.tasks[task].threads != Some(false),
            Owner::Trace(_) => true,
        }
    }

    /// State that the copies of a task share in a stream.
    pub(crate) fn shared(&mut self, task: usize, phase: usize, stream: usize) -> &Rc<Shared> {
        self.shared.entry((task, phase, stream)).or_default()
    }

    /// The anonymous mappings of a copy of a task.
    pub(crate) fn anon_of(&self, spec: &Scenario, task: usize, copy: u32) -> Vec<MappingId> {
        let instance = |o: usize| self.instance(spec, o, copy);
        let mut all: Vec<usize> =
            objects_of(&spec.tasks[task]).into_iter().map(instance).filter(|&i| self.instances[i].anon).collect();
        all.sort_unstable();
        all.into_iter().map(|i| self.instances[i].mapping).chain(self.heaps_of_trace(task)).collect()
    }

    /// The anonymous mappings of the trace that a task replays, which its copies share.
    fn heaps_of_trace(&self, task: usize) -> impl Iterator<Item = MappingId> + '_ {
        let is_heap = move |i: &&Instance| i.anon && matches!(i.of, Owner::Trace(t) if t == task);
        self.instances.iter().filter(is_heap).map(|i| i.mapping)
    }

    /// Mappings that nobody will use any more now that a copy of a task has ended.
    pub(crate) fn unused_after(&self, spec: &Scenario, task: usize, copy: u32) -> Vec<MappingId> {
        let wanted = |o: usize| {
            let mut tasks = spec.tasks.iter().enumerate();
            tasks.any(|(i, t)| self.copies_left[i] > 0 && objects_of(t).contains(&o))
        };
        let unused = objects_of(&spec.tasks[task]).into_iter().filter(|&o| spec.objects[o].private || !wanted(o));
        let unused = unused.map(|o| self.instances[self.instance(spec, o, copy)].mapping);
        let last = self.copies_left[task] == 0;
        unused.chain(self.heaps_of_trace(task).filter(|_| last)).collect()
    }

    /// Copies of a task that have not ended.
    pub(crate) fn copies_left(&self, task: usize) -> u32 {
        self.copies_left[task]
    }

    /// A copy of a task has ended.
    pub(crate) fn end_copy(&mut self, task: usize) {
        debug_assert!(self.copies_left[task] > 0, "task {task} has ended already");
        self.copies_left[task] -= 1;
    }

    /// Whether this is the last copy of all tasks that count.
    pub(crate) fn is_last(&self) -> bool {
        self.alive == 1
    }

    /// A copy of a task that counts has ended; whether it was the last of all.
    pub(crate) fn end_counted(&mut self) -> bool {
        debug_assert!(self.alive > 0, "more tasks ended than there were");
        self.alive -= 1;
        self.alive == 0
    }

    /// The instances that are charged to a group of the scenario.
    pub(crate) fn charged_to(&self, memcg: usize) -> Vec<usize> {
        (0..self.instances.len()).filter(|&i| self.instances[i].memcg == Some(memcg)).collect()
    }

    /// Instances that the copies of a task access.
    pub(crate) fn of_task(&self, spec: &Scenario, task: usize) -> Vec<usize> {
        (0..self.instances.len()).filter(|&i| self.uses(spec, task, i)).collect()
    }

    fn uses(&self, spec: &Scenario, task: usize, instance: usize) -> bool {
        match self.instances[instance].of {
            Owner::Trace(of) => of == task,
            Owner::Object(object) => objects_of(&spec.tasks[task]).contains(&object),
        }
    }

    /// Whether another task that has not ended uses it.
    pub(crate) fn has_other_users(&self, spec: &Scenario, instance: usize, task: usize) -> bool {
        (0..spec.tasks.len()).any(|t| t != task && self.copies_left[t] > 0 && self.uses(spec, t, instance))
    }
}

/// The objects that a task uses, each once.
pub(crate) fn objects_of(task: &TaskSpec) -> Vec<usize> {
    let mut objects: Vec<usize> = task.phases.iter().flat_map(|p| &p.streams).map(|s| s.object).collect();
    objects.sort_unstable();
    objects.dedup();
    objects
}
