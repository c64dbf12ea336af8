//! Runs on threads; what comes out does not depend on how many there are.

use crate::threads::on_threads;
use crate::watch::{MachineMeter, MachineState, STOPPED};
use crate::{Failure, Watch};
use refault_lab::machine::{Ending, Machine, RunResult};
use refault_lab::scenario::{PolicySpec, Scenario};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One run: a scenario under one policy.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name in errors.
    pub name: String,
    /// The scenario, scaled, with its seed.
    pub scenario: Scenario,
    /// The policy.
    pub policy: PolicySpec,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct FinishedRun {
    /// Its result.
    pub result: RunResult,
    /// Real seconds that the run took.
    pub real_seconds: f64,
}

/// How often progress of a run is told.
const EVERY: Duration = Duration::from_millis(100);

/// Settings of the runs.
#[derive(Clone, Debug)]
pub struct Runner {
    threads: usize,
    check: bool,
    watch: Watch,
}

impl Runner {
    /// `threads`: one a core if not given; `check`: with the checks of conservation; `watch` ends
    /// the runs.
    pub fn new(threads: Option<u16>, check: bool, watch: &Watch) -> Runner {
        Runner { threads: crate::threads(threads), check, watch: watch.clone() }
    }

    /// Runs all; results are in the order of the jobs. The first job that fails is the error.
    pub fn run(&self, what: &str, jobs: &[Job]) -> Result<Vec<FinishedRun>, Failure> {
        let progress = self.watch.machines(what, jobs.len());
        let failed = AtomicBool::new(false);
        let places: Vec<usize> = (0..jobs.len()).collect();
        // A run that fails is a result here: others that it stops must not be taken for the reason.
        let done = on_threads(self.threads, &places, &|at| {
            let result = self.one(&jobs[at], at, progress.as_deref(), &failed);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            Ok(result)
        })?;
        drop(progress);
        self.watch.check()?;
        // A run that was only stopped is not the reason.
        let stopped = |e: &String| e == STOPPED;
        if let Some((job, e)) = jobs.iter().zip(&done).find_map(|(job, d)| match d {
            Err(e) if !stopped(e) => Some((job, e)),
            _ => None,
        }) {
            return Err(format!("{}: {e}", job.name).into());
        }
        let all: Result<Vec<_>, _> = done.into_iter().collect();
        all.map_err(Into::into)
    }

    fn one(
        &self,
        job: &Job,
        at: usize,
        progress: Option<&dyn MachineMeter>,
        failed: &AtomicBool,
    ) -> Result<FinishedRun, String> {
        let started = Instant::now();
        let mut machine = Machine::new(&job.scenario, &job.policy)?;
        if self.check {
            machine = machine.checked();
        }
        let mut shown_at = started;
        let result = machine.run_watched(&mut |machine| {
            if let Some(progress) = progress.filter(|_| shown_at.elapsed() >= EVERY) {
                shown_at = Instant::now();
                let (virtual_ns, events) = (machine.now_ns(), machine.events());
                progress.set(at, MachineState { virtual_ns, events, share: machine.done_share() });
            }
            !failed.load(Ordering::Relaxed) && !self.watch.is_stopped()
        })?;
        if let Some(progress) = progress {
            let virtual_ns = (result.seconds * 1e9) as u64;
            progress.set(at, MachineState { virtual_ns, events: result.events, share: Some(1.0) });
        }
        Ok(FinishedRun { result, real_seconds: started.elapsed().as_secs_f64() })
    }
}

/// How a run ended, as a word.
pub fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::TasksDone => "tasks-done",
        Ending::Time => "time",
        Ending::Stuck => "stuck",
    }
}

/// The same for people.
pub fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::TasksDone => "all tasks done",
        Ending::Time => "at the end of the scenario",
        Ending::Stuck => "STUCK: tasks wait for what never comes",
    }
}
