//! Faults injected at every call: a scenario is run once to count its calls, and then once for each
//! call and each way in which it can fail. The program gets right bytes or an explicit error: an
//! error value, a lost page (`SIGBUS`, or `EFAULT` of a system call) with a line on standard error,
//! or the end of the process with such a line. Never other bytes, never a hang: each run is a
//! process of its own, with a watchdog. Allocations fail likewise, and pairs of calls that a seed
//! chooses.
//!
//! By default some of the failures are tried, each at one call: with `REFAULT_LONG=all` about 800,
//! with `REFAULT_LONG=1` a quarter of these, without it a twentieth. `REFAULT_INJECT=small` tries
//! every failure of every call of the small scenarios, one by one (an hour); `REFAULT_INJECT=each`
//! tries all failures of all scenarios, `REFAULT_INJECT=all` at every call (hours to days),
//! `REFAULT_INJECT=all/7` at every seventh. The outcomes of each failure are in a table in
//! `outcomes.md`; a call that is not in it fails the test, and with `REFAULT_INJECT` so does an
//! outcome that is not. `REFAULT_INJECT_WRITE=1` writes the table anew, `REFAULT_INJECT_WRITE=add`
//! adds to it. Arguments that are no options name the scenarios and the calls that are to be run;
//! `REFAULT_INJECT_COUNTS=1` says how many calls of each kind they make,
//! `REFAULT_INJECT_AT_A_TIME=N` has N runs at a time, and `REFAULT_INJECT_PART=2/8` takes the
//! second eighth of all runs.

mod catalogue;
mod file;
mod group;
mod heap;
mod region;
mod runner;
mod small;
mod table;
mod tree;

use std::collections::BTreeMap;
use std::time::Instant;

use refault_pager::calls::{AgentFault, Call, CallFault, CallPlan};
use refault_testing::{Need, absent, is_whole, short_or_long};
use runner::{AT_A_TIME, Done, Inject, Job, Planned, Report, Run, SMALL_AT_A_TIME, run_all};
use table::{Cells, SCENARIOS};

#[global_allocator]
static HEAP: heap::FailingHeap = heap::FailingHeap;

/// Program, with one injected fault or none; the rest of the plan is the scenario's own.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    /// The column of the table.
    column: usize,
    /// Calls that it is about.
    calls: Calls,
    /// Whether its allocations fail, too.
    allocations: bool,
    /// How many pairs of failures are tried by default.
    pairs: u64,
    body: fn(&'static Report),
}

#[derive(Clone, Copy)]
enum Calls {
    All,
    /// All, and few enough that each of them can fail in each way.
    Small,
    Only(&'static [Call]),
}

/// Failures of a small scenario that are tried by default.
const SAMPLED: u64 = 24;
/// Allocations of a scenario that fail: if there are more, every second, third and so on.
const MOST_ALLOCATIONS: u64 = 4000;
/// Results of failures that are always tried, in scenarios of that column.
const ALWAYS: &[(usize, Planned, u32)] = &[
    (3, (Call::Wake, 0, CallFault::Fails(libc::ENOENT)), runner::RIGHT),
    (3, (Call::Wake, 0, CallFault::Fails(libc::ESRCH)), runner::RIGHT),
    (3, (Call::Wake, 0, CallFault::Fails(libc::EAGAIN)), runner::RIGHT),
    (3, (Call::Wake, 0, CallFault::Fails(libc::EINVAL)), runner::ENDED),
    // The word to a process that its memory is served now, for which it waits.
    (3, (Call::SendOrder, 1, CallFault::Fails(libc::EPIPE)), runner::ENDED),
];
/// Calls of a kind that each fail in one way, not in all.
const MANY: u64 = 150;
/// A small scenario is run so often without a fault: its threads take turns as they like, and so
/// make more calls or fewer.
const BASES: usize = 5;

const RING: Calls = Calls::Only(&[Call::RingSetup, Call::RingEnter, Call::RingResult]);
const POISON: Calls = Calls::Only(&[Call::Poison]);
const WAKE: Calls = Calls::Only(&[Call::Wake]);

const fn of(name: &'static str, column: usize, calls: Calls, pairs: u64, body: fn(&'static Report)) -> Scenario {
    Scenario { name, column, calls, allocations: matches!(calls, Calls::All | Calls::Small), pairs, body }
}

const fn small(name: &'static str, column: usize, body: fn(&'static Report)) -> Scenario {
    of(name, column, Calls::Small, 1, body)
}

const ALL: &[Scenario] = &[
    of("region", 0, Calls::All, 12, region::plain),
    of("region-ring", 0, RING, 6, region::ring),
    of("region-lossy", 0, POISON, 6, region::lossy),
    of("region-high", 0, WAKE, 0, region::high),
    of("region-tiers", 0, Calls::Only(&[]), 12, region::tiers),
    of("signal", 1, Calls::All, 8, region::signal),
    of("signal-lossy", 1, POISON, 0, region::signal_lossy),
    of("file", 2, Calls::All, 12, file::plain),
    of("file-lossy", 2, POISON, 6, file::lossy),
    of("run", 3, Calls::All, 4, tree::plain),
    of("run-lossy", 3, POISON, 0, tree::lossy),
    of("run-failing-writes", 3, Calls::Only(&[]), 0, tree::failing_writes),
    of("run-refused-zeros", 3, Calls::Only(&[]), 0, tree::refused_zeros),
    small("small-pool", 0, small::pool),
    small("small-file", 0, small::file),
    small("small-both", 0, small::both),
    small("small-folios-2", 0, small::folios_2),
    small("small-folios-4", 0, small::folios_4),
    small("small-mapped-file", 2, file::small),
    small("small-run", 3, tree::small),
    small("small-signal-pool", 1, small::signal_pool),
    small("small-signal-file", 1, small::signal_file),
    small("small-signal-both", 1, small::signal_both),
    small("small-signal-folios-3", 1, small::signal_folios_3),
    small("small-signal-folios-4", 1, small::signal_folios_4),
];

/// How thorough it is to be: `None`: as by default, else every n-th.
fn step() -> Option<u64> {
    match std::env::var("REFAULT_INJECT").as_deref() {
        Ok("all" | "small") => Some(1),
        Ok("each") => None,
        Ok(word) => Some(
            word.strip_prefix("all/")
                .and_then(|n| n.parse().ok())
                .expect("REFAULT_INJECT is small, each, all or all/N"),
        ),
        Err(_) => None,
    }
}

fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

/// Calls of a kind that are tried: all, every n-th, or one.
fn tried(made: u64, fault: CallFault, salt: u64) -> Vec<u64> {
    match step() {
        _ if fault == CallFault::Stalls(catalogue::TEN_SECONDS) => (made / 2..made).take(1).collect(),
        // The first ones set things up.
        Some(step) => (0..made).filter(|&n| n < 4 || n % step == salt % step).collect(),
        None if mixed(salt).is_multiple_of(3) => (0..made).take(1).collect(),
        None => (0..made).skip((mixed(salt ^ 0x33) % made.max(1)) as usize).take(1).collect(),
    }
}

impl Scenario {
    /// Result without an injected fault.
    fn healthy(&self) -> Run {
        // The whole program is ended by the signal; others ask by system calls, or are looked at.
        match self.name {
            "run-lossy" => Run::Fine(runner::ENDED),
            name if name.ends_with("lossy") => Run::Fine(runner::LOST),
            _ => Run::Fine(runner::RIGHT),
        }
    }

    /// Runs the scenario without a fault, to know its calls. `None`: this machine does not allow
    /// it.
    fn base(&self) -> Option<Done> {
        let is_repeated =
            self.is_small() && step().is_some() || matches!(self.calls, Calls::Only([])) && self.column == 3;
        let runs = if is_repeated { BASES } else { 1 };
        let mut all = run_all((0..runs).map(|_| self.job("without a fault".into(), Inject::None)).collect(), AT_A_TIME);
        if let Some(skipped) = all.iter().find(|r| r.run == Run::Skipped) {
            absent(Need::Uffd, format_args!("{}: {}", self.name, skipped.stderr.trim()));
            return None;
        }
        for run in &all {
            // Where a write of a forked child's page fails twice, an error with a line is right,
            // too.
            let may_be_explicit = self.name == "run-failing-writes" && matches!(run.run, Run::Fine(_));
            assert!(may_be_explicit || run.run == self.healthy(), "{}: {:?}\n{}", self.name, run.run, run.stderr);
        }
        let mut most = all.remove(0);
        for run in all {
            most.counts.iter_mut().zip(&run.counts).for_each(|(most, n)| *most = (*most).max(*n));
            most.allocations = most.allocations.max(run.allocations);
        }
        Some(most)
    }

    fn job(&self, what: String, inject: Inject) -> Job {
        Job { title: format!("{}: {what}", self.name), inject, body: self.body }
    }

    /// By default only some of the failures are tried: others of a region by threads than of one by
    /// signal.
    fn is_kept(&self, salt: u64) -> bool {
        let one_in = if self.column == 3 { 8 } else { 3 };
        std::env::var_os("REFAULT_INJECT").is_some()
            || mixed(salt) % one_in == self.column as u64 % one_in
            || self.calls_are_few()
    }

    fn calls_are_few(&self) -> bool {
        matches!(self.calls, Calls::Only(_)) && self.column != 3
    }

    fn is_small(&self) -> bool {
        matches!(self.calls, Calls::Small)
    }

    fn failing(&self, (call, n, fault): Planned, made: u64) -> Job {
        let what = format!("{} {n} of {made}: {}", call.name(), catalogue::name(fault));
        self.job(what, Inject::Call((call, n, fault)))
    }

    /// Some of all failures of all calls, always the same.
    fn sample(&self, base: &Done) -> Vec<Job> {
        let mut all = Vec::new();
        for (&call, &made) in Call::ALL.iter().zip(&base.counts) {
            let faults = catalogue::faults(call);
            let short = faults.into_iter().filter(|f| *f != CallFault::Stalls(catalogue::TEN_SECONDS));
            all.extend(short.flat_map(|fault| (0..made).map(move |n| ((call, n, fault), made))));
        }
        let always = ALWAYS.iter().filter(|a| a.0 == self.column).map(|a| self.failing(a.1, 1));
        let chosen = (0..SAMPLED).map(|i| all[mixed(i << 8 | self.name.len() as u64) as usize % all.len()]);
        always.chain(chosen.map(|(planned, made)| self.failing(planned, made))).collect()
    }

    fn single_calls(&self, base: &Done) -> Vec<Job> {
        let mut jobs = Vec::new();
        if self.is_small() && step().is_none() {
            return self.sample(base);
        }
        let is_about = |call: &Call| match self.calls {
            Calls::All | Calls::Small => true,
            Calls::Only(these) => these.contains(call),
        };
        for &call in Call::ALL.iter().filter(|c| is_about(c)) {
            let made = base.counts[call as usize];
            let faults = catalogue::faults(call);
            let of_many = faults.len() as u64;
            for (i, fault) in faults.into_iter().enumerate() {
                if !self.is_kept(call as u64 * 64 + i as u64) {
                    continue;
                }
                let all = tried(made, fault, (call as u64) << 8 | i as u64);
                // Each call fails, and the failures take turns.
                let is_turn = |n: &u64| !self.is_small() || made <= MANY || n % of_many == i as u64;
                for n in all.into_iter().filter(is_turn) {
                    jobs.push(self.failing((call, n, fault), made));
                }
            }
        }
        jobs
    }

    /// A call that is made, one as often as the other, and a failure of it.
    fn random_call(&self, base: &Done, seed: u64) -> Planned {
        let made: Vec<Call> = Call::ALL.iter().copied().filter(|&c| base.counts[c as usize] > 0).collect();
        let call = made[mixed(seed) as usize % made.len()];
        let mut faults = catalogue::faults(call);
        faults.retain(|f| *f != CallFault::Stalls(catalogue::TEN_SECONDS));
        let fault = faults[mixed(seed ^ 0x55) as usize % faults.len()];
        (call, mixed(seed ^ 0xAAAA) % base.counts[call as usize], fault)
    }

    fn pairs(&self, base: &Done) -> Vec<Job> {
        let n = self.pairs * if step().is_some() { 20 } else { 1 } * if self.is_small() { 5 } else { 1 };
        let pair = |seed: u64| {
            let (a, b) = (self.random_call(base, seed * 2), self.random_call(base, seed * 2 + 1));
            let name = |c: Planned| format!("{} {}: {}", c.0.name(), c.1, catalogue::name(c.2));
            self.job(format!("pair {seed}: {}, and {}", name(a), name(b)), Inject::Two(a, b))
        };
        (0..n).map(pair).collect()
    }

    fn agents(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let agents = if self.name == "run" { catalogue::agents() } else { Vec::new() };
        for (i, (name, call, request, errnos)) in agents.into_iter().enumerate() {
            for errno in errnos.into_iter().filter(|&e| self.is_kept(i as u64 * 64 + e as u64)) {
                let of_seed = mixed(i as u64 * 1000 + errno as u64) as u32 % 40;
                let all: &[u32] =
                    if step().is_some() { &[0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233] } else { &[0, of_seed] };
                for &n in all {
                    let fault = AgentFault { call, request, n, errno: errno as u8 };
                    jobs.push(self.job(format!("{name} {n}: error {errno}"), Inject::Agent(fault)));
                }
            }
        }
        jobs
    }

    fn allocations(&self, base: &Done) -> Vec<Job> {
        let made = if self.allocations { base.allocations } else { 0 };
        let chosen: Vec<u64> = match step() {
            Some(step) if !self.is_small() => (0..made).filter(|n| n % step == 0 || *n < 300).collect(),
            // A program under `refault run` has the pager allocate as long as it runs, most of it
            // again and again.
            Some(step) => (0..made).step_by((step * made.div_ceil(MOST_ALLOCATIONS)) as usize).collect(),
            // Most places allocate early, and some often.
            None if self.is_small() => (0..8).map(|i| mixed(i) % made.max(1)).collect(),
            None => (0..).map(|i| i * i * i * (1 + self.column as u64) / 2 + i).take_while(|&n| n < made).collect(),
        };
        chosen.into_iter().map(|n| self.job(format!("allocation {n} of {made} fails"), Inject::Allocation(n))).collect()
    }
}

/// `REFAULT_INJECT_AT_A_TIME=N` says how many runs at a time.
fn at_a_time(s: &Scenario) -> usize {
    let usual = if s.is_small() { SMALL_AT_A_TIME } else { AT_A_TIME };
    std::env::var("REFAULT_INJECT_AT_A_TIME")
        .map_or(usual, |n| n.parse().expect("REFAULT_INJECT_AT_A_TIME is a number"))
}

/// Part of the runs with `REFAULT_LONG=all` that is run by default, and with `REFAULT_LONG=1`.
const PARTS: [&str; 2] = ["1/20", "1/4"];

/// Whether a run is of the part that is asked for. Which part it is of depends on nothing but what
/// fails in it, so that the parts together are all.
fn is_in_part(job: &Job) -> bool {
    let part = match std::env::var("REFAULT_INJECT_PART") {
        Ok(part) => part,
        Err(_) if is_whole() || std::env::var_os("REFAULT_INJECT").is_some() => return true,
        Err(_) => short_or_long(PARTS[0], PARTS[1]).to_owned(),
    };
    let numbers = part.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    let (k, n): (u64, u64) = numbers.expect("REFAULT_INJECT_PART is K/N");
    let text = format!("{:?}", job.inject);
    text.bytes().fold(0, |hash, byte| mixed(hash ^ u64::from(byte))) % n == k - 1
}

fn is_against_the_rule(s: &Scenario, planned: Planned, outcome: u32) -> bool {
    let rule = ALWAYS.iter().find(|a| a.0 == s.column && a.1 == planned);
    s.is_small() && rule.is_some_and(|a| a.2 != outcome)
}

fn main() {
    if let Ok(pages) = std::env::var(tree::ROLE) {
        tree::program(pages.parse().expect("a number of pages"));
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let are_calls = |w: &&String| Call::ALL.iter().any(|c| c.name() == w.as_str());
    let (only, words): (Vec<_>, Vec<_>) = words.iter().partition(are_calls);
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|w| name == w.as_str());
    let (mut found, mut bad, mut runs, mut met) = (Cells::default(), 0, 0, 0);
    let began = Instant::now();
    let only_small = std::env::var("REFAULT_INJECT").is_ok_and(|how| how == "small");
    for s in ALL.iter().filter(|s| is_wanted(s.name) && (s.is_small() || !only_small)) {
        // How many calls it makes differs from run to run, and so does what is tried; not all of
        // what may come of that is in the table yet.
        if s.name == "small-run" && std::env::var_os("REFAULT_INJECT").is_none() && words.is_empty() {
            println!("small-run: skipped; it is run with REFAULT_INJECT, or by name");
            continue;
        }
        let Some(base) = s.base() else { continue };
        let mut jobs: Vec<Job> =
            [s.single_calls(&base), s.pairs(&base), s.allocations(&base), s.agents()].into_iter().flatten().collect();
        jobs.retain(|job| is_in_part(job) && (only.is_empty() || only.iter().any(|call| job.is_about(call))));
        let mut classes: BTreeMap<String, u64> = BTreeMap::new();
        for r in run_all(jobs, at_a_time(s)) {
            runs += 1;
            *classes.entry(format!("{:?}", r.run)).or_default() += 1;
            match (r.run, r.inject) {
                // The call was not made this time: threads take turns as they like.
                (Run::Fine(_), Inject::Call(_)) if !r.met && r.run == s.healthy() => {}
                (Run::Fine(outcome), Inject::Call(planned)) if is_against_the_rule(s, planned, outcome) => {
                    bad += 1;
                    println!("BAD {}: another outcome than there must be: {outcome}\n{}", r.title, r.stderr);
                }
                (Run::Fine(outcome), Inject::Call((call, _, fault))) => {
                    met += 1;
                    found.add(call.name(), catalogue::name(fault), s.column, outcome);
                }
                (Run::Fine(outcome), Inject::Allocation(_)) => {
                    let (what, how) = catalogue::ALLOCATION;
                    met += u64::from(r.run != s.healthy());
                    if r.run != s.healthy() {
                        found.add(what, how.into(), s.column, outcome);
                    }
                }
                (Run::Fine(outcome), Inject::Agent(f)) if r.met => {
                    met += 1;
                    let row = catalogue::agents().into_iter().find(|a| (a.1, a.2) == (f.call, f.request));
                    let how = catalogue::name(CallFault::Fails(f.errno.into()));
                    found.add(row.expect("it is from there").0, how, s.column, outcome);
                }
                (Run::Fine(_), _) => met += u64::from(r.met),
                _ => {
                    bad += 1;
                    let said: Vec<&str> = r.stderr.lines().take(60).collect();
                    println!("BAD {}: {:?}\n{}", r.title, r.run, said.join("\n"));
                }
            }
        }
        if std::env::var_os("REFAULT_INJECT_COUNTS").is_some() {
            let made = Call::ALL.iter().filter(|&&c| base.counts[c as usize] > 0);
            made.for_each(|&c| println!("{}: {} {}", s.name, base.counts[c as usize], c.name()));
        }
        let (calls, seconds) = (base.counts.iter().sum::<u64>(), began.elapsed().as_secs_f64());
        println!("{} ({calls} calls, {} allocations): {classes:?}, {seconds:.1} s so far", s.name, base.allocations);
    }
    println!("{runs} runs, {met} met their fault, {bad} bad");
    let settled = table::settle(&found, &SCENARIOS);
    assert!(bad == 0, "{bad} runs were neither right nor an explicit error");
    if let Err(news) = settled {
        panic!("{news}");
    }
}

/// The plan of a run: counts, and fails the call that is to fail.
pub(crate) fn plan(report: &'static Report, base: fn(Call, u64) -> Option<CallFault>) -> CallPlan {
    let plan = CallPlan::new(move |call, n| {
        report.count(call);
        report.injected(call, n).or_else(|| base(call, n))
    });
    match report.of_agents() {
        Some(fault) => plan.with_agents(fault),
        None => plan,
    }
}
