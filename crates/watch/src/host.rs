//! A machine: its groups, which come and go, and the events of all of them.

use crate::advice::{CurveTrust, LimitAdvice};
use crate::figures::Figures;
use crate::group::{CurveSettings, GroupCurve, Totals};
use crate::rate::{self, Budget, RateControl, Taken};
use crate::select::Select;
use crate::state::State;
use crate::stream::{EventTask, PageEvent, PageStream};
use crate::watched::{GroupReport, ReportSettings, Watched, report};
use refault::recording::Settings;
use refault_mm::Config;
use refault_record::{
    Cgroup, Event, EventFeed, RuntimeNames, SamplerChoice, group_label, lru_gen, release, swappiness,
};
use refault_trace::{Recording, SpaceSample};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that a unit takes in all sizes of a group, about.
const UNIT_BYTES: usize = 25 << 10;

/// Share of the budget of memory that is left to engines, whatever else the watcher takes.
const LEAST_SHARE: u64 = 4;

/// Groups whose sizes are looked at each second, about: a look costs some 100 microseconds.
const LOOKS_EACH_S: usize = 20;

/// Seconds from one look at the sizes of a group to the next, at least.
const LOOK_S: usize = 5;

/// Events between two polls from which on the next comes soon.
const MANY_EVENTS: u64 = 200;

/// Events of a group before it gets engines: many are gone before.
const LEAST_EVENTS: u32 = 20;

/// Groups that are counted and have no engines.
const MOST_CANDIDATES: usize = 1 << 14;

/// Nanoseconds after which names of containers are read again.
const NAMES_NS: u64 = 30_000_000_000;

/// The least memory that sizes are of, in pages: 4 MiB.
const LEAST_PAGES: u64 = 1 << 10;

/// Settings of a watcher.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Groups.
    pub select: Select,
    /// Pages whose events are taken, at first.
    pub sample: SpaceSample,
    /// Part of the kernel that takes the sample.
    pub sampler: SamplerChoice,
    /// The time that curves are of.
    pub window: Duration,
    /// Processor time and memory, for which the rate of the sample is chosen.
    pub budget: Budget,
    /// Groups at most.
    pub most_groups: usize,
    /// Share by which misses may grow in a smaller limit.
    pub growth: f64,
    /// Bytes of the ring of each CPU.
    pub ring_bytes: usize,
    /// Where tracefs is, if not where it is by custom.
    pub tracefs: Option<PathBuf>,
    /// Curves of a watcher before.
    pub state: Option<State>,
}

/// Counts of a watcher.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostCounts {
    /// Events that were read, and lost.
    pub events: u64,
    /// See `events`.
    pub lost: u64,
    /// Groups that are watched.
    pub groups: usize,
    /// Touches of groups that there was no room for.
    pub unwatched: u64,
    /// Bytes that engines take.
    pub engine_bytes: usize,
    /// Pages that each page of the sample stands for now.
    pub one_in: u64,
    /// Changes of the rate.
    pub rate_changes: u64,
    /// Time and memory that the watcher took in the last ten seconds.
    pub taken: Taken,
}

/// A machine that is watched.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    config: Config,
    feed: EventFeed,
    stream: PageStream,
    groups: BTreeMap<String, Watched>,
    candidates: FxHashMap<String, u32>,
    /// Names of containers and pods, and when they were read.
    names: RuntimeNames,
    named_ns: Option<u64>,
    counts: HostCounts,
    /// Events of the last poll.
    more: u64,
    sample: SpaceSample,
    rate: RateControl,
    /// Processor time so far in nanoseconds, and when it was looked at.
    cpu_ns: (u64, u64),
    /// Memory of engines at most, in bytes, about.
    most_bytes: usize,
    now_ns: u64,
    looked_ns: u64,
    /// When counts of all accesses were taken last.
    counted_ns: u64,
    events: Vec<Event>,
    pages: Vec<(EventTask, PageEvent)>,
}

impl Host {
    /// Begins to watch.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn open(options: HostOptions) -> Result<Host, String> {
        let feed = EventFeed::open(options.tracefs.as_deref(), options.sample, options.sampler, options.ring_bytes)?;
        let (cpu_ns, resident) = rate::own();
        let memory = options.budget.memory_bytes;
        let mut host = Host {
            config: config(),
            stream: PageStream::new(options.sample),
            feed,
            more: 0,
            sample: options.sample,
            rate: RateControl::new(options.budget),
            cpu_ns: (cpu_ns, 0),
            most_bytes: memory.saturating_sub(resident).max(memory / LEAST_SHARE) as usize,
            groups: BTreeMap::new(),
            candidates: FxHashMap::default(),
            counts: HostCounts {
                one_in: options.sample.one_in,
                taken: Taken { cpu: 0.0, memory_bytes: resident },
                ..HostCounts::default()
            },
            options,
            names: RuntimeNames::default(),
            named_ns: None,
            now_ns: 0,
            looked_ns: 0,
            counted_ns: 0,
            events: Vec::new(),
            pages: Vec::new(),
        };
        // The time is known from here on.
        host.poll()?;
        host.begin_known()?;
        Ok(host)
    }

    /// Makes engines for the groups of the state: they are shown from the start.
    fn begin_known(&mut self) -> Result<(), String> {
        let known: Vec<_> = self.options.state.iter().flat_map(|state| state.curves.keys().cloned()).collect();
        for path in known {
            if self.groups.len() < self.options.most_groups && self.options.select.of(&path) == Some(&path) {
                self.begin(&path)?;
            }
        }
        Ok(())
    }

    /// Takes the events that came: to be called several times a second.
    ///
    /// # Errors
    /// An engine that cannot go on.
    pub fn poll(&mut self) -> Result<(), String> {
        self.events.clear();
        self.pages.clear();
        let until_ns = self.feed.take(&mut self.events);
        let own = std::process::id();
        let Host { feed, stream, events, pages, .. } = self;
        for event in events.iter().filter(|event| event.pid != own) {
            stream.take(event, &mut |inode, pid| feed.pages(inode, pid, until_ns), pages);
        }
        stream.settle(until_ns, pages);
        self.now_ns = self.now_ns.max(until_ns);
        for (who, event) in std::mem::take(&mut self.pages) {
            self.take(who, event)?;
        }
        self.note_lost();
        self.note_counted();
        if self.now_ns.saturating_sub(self.looked_ns) >= 1_000_000_000 {
            self.looked_ns = self.now_ns;
            self.look()?;
        }
        self.keep_budget()
    }

    /// Looks at what the watcher takes, and changes the rate by it.
    fn keep_budget(&mut self) -> Result<(), String> {
        let (before, since_ns) = self.cpu_ns;
        let span_ns = self.now_ns.saturating_sub(since_ns);
        if since_ns > 0 && span_ns < rate::PERIOD_NS {
            return Ok(());
        }
        let (cpu_ns, memory_bytes) = rate::own();
        self.cpu_ns = (cpu_ns, self.now_ns);
        // A watcher that was stopped for long, or has just begun, says nothing of its costs.
        if since_ns == 0 || span_ns > 3 * rate::PERIOD_NS {
            return Ok(());
        }
        self.counts.taken = Taken { cpu: cpu_ns.saturating_sub(before) as f64 / span_ns as f64, memory_bytes };
        match self.rate.next(self.sample.one_in, self.counts.taken) {
            Some(one_in) => self.set_rate(one_in),
            None => Ok(()),
        }
    }

    /// Another rate: curves go on with what both samples have.
    fn set_rate(&mut self, one_in: u64) -> Result<(), String> {
        let before = self.sample.one_in;
        self.sample = SpaceSample::new(one_in, self.options.sample.salt & (one_in - 1))?;
        self.feed.set_sample(self.sample)?;
        self.stream.set_sample(self.sample);
        for watched in self.groups.values_mut() {
            watched.curve.set_sample(&self.sample)?;
            watched.before.0 = watched.before.0.at_rate(before, one_in);
        }
        (self.counts.one_in, self.counts.rate_changes) = (one_in, self.counts.rate_changes + 1);
        Ok(())
    }

    /// Time to wait before the next poll: a quiet machine is looked at less often.
    pub fn pause(&self) -> Duration {
        Duration::from_millis(if self.more > MANY_EVENTS { 100 } else { 250 })
    }

    /// Reason why filters of perf events take the sample, and nobody counts all accesses, if
    /// programs in the kernel were wanted, too.
    pub fn why_filters(&self) -> Option<&str> {
        self.feed.why_filters()
    }

    /// Takes the counts of all accesses.
    fn note_counted(&mut self) {
        for (id, touches) in self.feed.accesses().unwrap_or_default() {
            let Some(path) = self.feed.group(0, id, self.now_ns) else { continue };
            let watched = self.options.select.of(path).and_then(|key| self.groups.get_mut(key));
            // Counts from before the group had engines are not of its window.
            if let Some(watched) = watched.filter(|watched| watched.begun_ns <= self.counted_ns) {
                watched.curve.counted(touches);
            }
        }
        self.counted_ns = self.now_ns;
    }

    fn note_lost(&mut self) {
        let (events, lost) = self.feed.counts();
        let (more, gone) = (events - self.counts.events, lost - self.counts.lost);
        (self.counts.events, self.counts.lost, self.more) = (events, lost, more);
        if more + gone > 0 {
            self.groups.values_mut().for_each(|watched| watched.curve.lost(gone, more));
        }
    }

    fn take(&mut self, who: EventTask, event: PageEvent) -> Result<(), String> {
        match event {
            // The page may be charged to any group.
            PageEvent::Delete(inode, pages) => {
                self.groups.values_mut().for_each(|watched| watched.curve.delete(inode, pages.clone()));
            }
            PageEvent::Freed(inode) => self.groups.values_mut().for_each(|watched| watched.curve.freed(inode)),
            PageEvent::Add(inode, pages) => {
                let Some(key) = self.watched(who)? else { return Ok(()) };
                for (path, watched) in &mut self.groups {
                    watched.curve.add(inode, pages.clone(), *path == key)?;
                }
            }
            PageEvent::Touch(touched) => {
                let Some(key) = self.watched(who)? else { return Ok(()) };
                if let Some(watched) = self.groups.get_mut(&key) {
                    watched.used_ns = self.now_ns;
                    watched.curve.set_now_ns(self.now_ns);
                    watched.curve.touch(&touched)?;
                }
            }
        }
        Ok(())
    }

    /// Group that an event counts for, which gets engines when it is new.
    fn watched(&mut self, who: EventTask) -> Result<Option<String>, String> {
        let Some(path) = self.feed.group(who.pid, who.cgroup, self.now_ns) else { return Ok(None) };
        let Some(key) = self.options.select.of(path).map(str::to_owned) else { return Ok(None) };
        if self.groups.contains_key(&key) {
            return Ok(Some(key));
        }
        if self.candidates.len() >= MOST_CANDIDATES {
            self.candidates.clear();
        }
        let seen = self.candidates.entry(key.clone()).or_insert(0);
        *seen += 1;
        if *seen < LEAST_EVENTS {
            return Ok(None);
        }
        if !self.has_room() {
            self.counts.unwatched += 1;
            return Ok(None);
        }
        self.candidates.remove(&key);
        Ok(self.begin(&key)?.then_some(key))
    }

    /// Whether there is room for one more group: one that did nothing for a window gives way.
    fn has_room(&mut self) -> bool {
        if self.groups.len() < self.options.most_groups {
            return true;
        }
        let idle = self.groups.iter().min_by_key(|(_, watched)| watched.used_ns);
        let idle = idle.filter(|(_, w)| self.now_ns.saturating_sub(w.used_ns) > self.options.window.as_nanos() as u64);
        let Some(path) = idle.map(|(path, _)| path.clone()) else { return false };
        self.groups.remove(&path);
        true
    }

    /// Makes engines for a group. False: it is gone.
    fn begin(&mut self, path: &str) -> Result<bool, String> {
        let Ok(cgroup) = Cgroup::open(Path::new(path)) else { return Ok(false) };
        let Some(figures) = Figures::read(&cgroup) else { return Ok(false) };
        let settings = CurveSettings {
            config: self.config.clone(),
            one_in: self.sample.one_in,
            window_ns: self.options.window.as_nanos() as u64,
            most_units: self.most_units(self.groups.len() + 1),
            is_counted: self.feed.is_counted(),
        };
        let mut curve = GroupCurve::new(settings, around(&figures, 0), self.now_ns)?;
        curve.set_besides(figures.besides_bytes / 4096);
        let before = (Totals::default(), self.now_ns);
        let (used_ns, begun_ns) = (self.now_ns, self.now_ns);
        self.groups.insert(
            path.to_owned(),
            Watched { cgroup, curve, figures, before, used_ns, begun_ns, looked_ns: begun_ns },
        );
        Ok(true)
    }

    /// Units that each of so many groups may have.
    fn most_units(&self, groups: usize) -> usize {
        (self.most_bytes / UNIT_BYTES / groups.max(4)).max(16)
    }

    /// Looks at sizes and limits, of many groups not of all at a time. Groups that are gone go
    /// here, too.
    fn look(&mut self) -> Result<(), String> {
        let most = self.most_units(self.groups.len());
        let mut gone = Vec::new();
        let age_ns = LOOK_S.max(self.groups.len() / LOOKS_EACH_S) as u64 * 1_000_000_000;
        let now_ns = self.now_ns;
        let old = |watched: &&mut Watched| now_ns.saturating_sub(watched.looked_ns) >= age_ns;
        let due = self.groups.iter_mut().filter(|(_, watched)| old(watched)).take(2 * LOOKS_EACH_S);
        for (path, watched) in due {
            watched.looked_ns = now_ns;
            watched.curve.set_now_ns(now_ns);
            let Some(figures) = Figures::read(&watched.cgroup) else {
                gone.push(path.clone());
                continue;
            };
            watched.figures = figures;
            let curve = &mut watched.curve;
            curve.set_limit(around(&figures, curve.limit_pages()))?;
            curve.set_besides(figures.besides_bytes / 4096);
            curve.set_most_units(most);
        }
        gone.iter().for_each(|path| _ = self.groups.remove(path));
        self.counts.groups = self.groups.len();
        self.counts.engine_bytes = self.groups.values().map(|watched| watched.curve.memory_bytes()).sum();
        Ok(())
    }

    /// Counts so far.
    pub fn counts(&self) -> HostCounts {
        self.counts
    }

    /// All groups, those with most memory first.
    pub fn report(&mut self) -> Vec<GroupReport> {
        self.groups.values_mut().for_each(|watched| watched.curve.set_now_ns(self.now_ns));
        let (now_ns, one_in) = (self.now_ns, self.sample.one_in);
        let asked = ReportSettings { growth: self.options.growth, state: self.options.state.as_ref() };
        let all = self.groups.iter_mut();
        let mut all: Vec<_> = all.map(|(path, watched)| report(path, watched, asked, one_in, now_ns)).collect();
        if self.named_ns.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) > NAMES_NS) {
            (self.names, self.named_ns) = (RuntimeNames::read(), Some(now_ns));
        }
        all.iter_mut().for_each(|group| group.name = group_label(&group.path, &self.names));
        all.sort_by(|a, b| b.figures.usage_bytes.cmp(&a.figures.usage_bytes).then_with(|| a.path.cmp(&b.path)));
        all
    }

    /// The curves, for the next watcher: those of the one before where there are none yet.
    pub fn state(&self) -> State {
        let mut state = self.options.state.clone().unwrap_or_default();
        let is_there = |path: &String| Cgroup::open(Path::new(path)).is_ok();
        state.curves.retain(|path, _| is_there(path));
        for (path, watched) in &self.groups {
            let curve = watched.curve.curve();
            if LimitAdvice::of(&curve, &watched.figures, 0.0).trust > CurveTrust::NotYet {
                state.curves.insert(path.clone(), curve);
            }
        }
        State::new(state.curves, self.sample.one_in)
    }
}

/// Pages that sizes are around: the limit, or without one what the group has, unless that is near
/// to what it was.
fn around(figures: &Figures, before: u64) -> u64 {
    let pages = figures.limit_bytes.unwrap_or(figures.usage_bytes) / 4096;
    let is_near = pages <= before.saturating_mul(2) && pages.saturating_mul(2) >= before;
    if figures.limit_bytes.is_none() && before > 0 && is_near { before } else { pages.max(LEAST_PAGES) }
}

/// Rules of the kernel of this machine.
fn config() -> Config {
    let recording =
        Recording { kernel: release(), lru_gen: lru_gen(), swappiness: swappiness(), ..Recording::default() };
    let mut config = Settings::of(&recording, None, None, true).config;
    // The kernel's own memory is among what a group has besides files.
    config.memcg.charge_kernel = false;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_around_the_limit_or_what_there_is() {
        let figures = |usage: u64, limit: Option<u64>| Figures {
            usage_bytes: usage << 20,
            limit_bytes: limit.map(|mib| mib << 20),
            ..Figures::default()
        };
        assert_eq!(around(&figures(10, Some(64)), 5), 64 << 8);
        assert_eq!(around(&figures(100, None), 0), 100 << 8);
        assert_eq!(around(&figures(100, None), 120 << 8), 120 << 8, "near");
        assert_eq!(around(&figures(300, None), 120 << 8), 300 << 8);
        assert_eq!(around(&figures(0, None), 0), LEAST_PAGES);
    }
}
