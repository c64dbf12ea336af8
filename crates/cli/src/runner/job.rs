//! Runs on threads; what comes out does not depend on how many there are.

use super::progress::Progress;
use crate::flags;
use crate::stop::STOPPED;
use crate::{Failure, Stop};
use refault_lab::machine::{Ending, Machine, RunResult};
use refault_lab::scenario::{PolicySpec, Scenario};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// One run: a scenario under one policy.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// What errors call it.
    pub(crate) name: String,
    /// The scenario, scaled, with its seed.
    pub(crate) scenario: Scenario,
    /// The policy.
    pub(crate) policy: PolicySpec,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// What it says.
    pub(crate) result: RunResult,
    /// How long it took.
    pub(crate) real_seconds: f64,
}

/// How to run.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    threads: usize,
    check: bool,
    stop: Stop,
}

impl Runner {
    /// With so many threads, one a core if not given; `check`: with the checks of conservation;
    /// `stop` ends them.
    pub(crate) fn new(threads: Option<u16>, check: bool, stop: &Stop) -> Runner {
        Runner { threads: flags::threads(threads), check, stop: stop.clone() }
    }

    /// Runs all; results are in the order of the jobs. The first job that fails is the error.
    pub(crate) fn run(&self, what: &str, jobs: &[Job]) -> Result<Vec<Done>, Failure> {
        let progress = Progress::new(what, jobs.len());
        let (taken, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let done: Mutex<Vec<Option<Result<Done, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(jobs.len()) {
                scope.spawn(|| {
                    loop {
                        let at = taken.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(at) else { return };
                        let result = self.one(job, at, &progress, &failed);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        if let Ok(mut done) = done.lock() {
                            done[at] = Some(result);
                        }
                    }
                });
            }
        });
        drop(progress);
        self.stop.check()?;
        let done = done.into_inner().unwrap_or_default();
        // What was only stopped is not the reason.
        let stopped = |e: &String| e == STOPPED;
        if let Some((job, e)) = jobs.iter().zip(&done).find_map(|(job, d)| match d {
            Some(Err(e)) if !stopped(e) => Some((job, e)),
            _ => None,
        }) {
            return Err(format!("{}: {e}", job.name).into());
        }
        let all: Result<Vec<_>, _> = done.into_iter().map(|d| d.unwrap_or(Err(STOPPED.into()))).collect();
        all.map_err(Into::into)
    }

    fn one(&self, job: &Job, at: usize, progress: &Progress, failed: &AtomicBool) -> Result<Done, String> {
        let started = Instant::now();
        let mut machine = Machine::new(&job.scenario, &job.policy)?;
        if self.check {
            machine = machine.checked();
        }
        let mut meter = progress.meter(at);
        let result = machine.run_watched(&mut |machine| {
            meter.show(machine);
            !failed.load(Ordering::Relaxed) && !self.stop.is_set()
        })?;
        meter.end(&result);
        Ok(Done { result, real_seconds: started.elapsed().as_secs_f64() })
    }
}

/// How a run ended, as a word.
pub(crate) fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::TasksDone => "tasks-done",
        Ending::Time => "time",
        Ending::Stuck => "stuck",
    }
}

/// The same for people.
pub(crate) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::TasksDone => "all tasks done",
        Ending::Time => "at the end of the scenario",
        Ending::Stuck => "STUCK: tasks wait for what never comes",
    }
}
