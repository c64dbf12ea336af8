//! A task at run time: its phase, its operation, and what it has done.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod` | [`Task`]: a copy of a task, which is asked for its next turn and told how that went |
//! | `step` | the next thing a task does; what a task has done |
//! | `stream` | what is accessed next: patterns over an object |
//! | `choices` | which stream is next, and its blocks drawn ahead |
//! | `hits` | accesses in a row that are hits |
//! | `recent` | latencies since the last sample |
//! | `script` | the same from a trace |
//!
//! It calls `scenario` for what a task is and `metric` for latencies. It knows no engine, no device
//! and no CPU: `on_cpu` runs it, `machine` makes it.

mod choices;
mod hits;
mod recent;
mod script;
mod step;
mod stream;

use refault_mm::PageId;
use refault_trace::generate::Rng;

use crate::scenario::{Action, PhaseLimit, PhaseSpec, Sync, TaskSpec};
use choices::{Choice, Choices};
pub(crate) use hits::Hits;
pub(crate) use recent::RecentLatency;
pub(crate) use script::Script;
pub(crate) use step::{Access, AdviseStep, Direct, PhaseEnd, SyncStep, TaskStep, TaskTotals, WAITS};
pub(crate) use stream::{Block, Direction, Shared, Stream};

/// One copy of a task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The specification, an index, and which of its copies.
    pub(crate) spec: usize,
    pub(crate) copy: u32,
    /// The program whose thread it is.
    pub(crate) program: u32,
    pub(crate) phase: usize,
    pub(crate) streams: Vec<Stream>,
    /// Its page tables of files: extent and number.
    pub(crate) spaces: Vec<(usize, usize)>,
    phase_start_ns: u64,
    accesses_left: u64,
    block: Option<Choice>,
    /// The first page of the block.
    block_first: PageId,
    /// Pages that the task wrote and whose write to the device it waits for.
    pub(crate) syncing: Option<SyncStep>,
    /// The block of the task is on its way between memory and a device.
    pub(crate) is_direct_sent: bool,
    /// The block of the task was dropped, and is accessed now.
    renewed: bool,
    /// Times that its loop was gone through.
    iteration: u64,
    /// Sizes of this iteration, from the least (0) to the most (1).
    draw: f64,
    /// The access under way was counted already: it waited.
    pub(crate) counted: bool,
    op_accesses: u32,
    op_start_ns: Option<u64>,
    /// The access under way ends later than it seems: its thread has yet to reclaim, or to wait.
    pub(crate) is_held_up: bool,
    /// Start of the operation whose last access was held up.
    held_up_since_ns: Option<u64>,
    /// Time before which think time or rate do not let the task go on.
    not_before_ns: u64,
    /// Time at which the next operation is due, by rate.
    due_ns: u64,
    choices: Choices,
    /// Hits of its current phase follow one another, and nothing else follows them.
    rows_of_hits: bool,
    /// Its current phase counts.
    is_measured: bool,
    pub(crate) script: Option<Script>,
    /// CPU time that it has had, and up to which no pages are to be marked on its behalf.
    pub(crate) cpu_ns: u64,
    pub(crate) next_scan_ns: u64,
    pub(crate) done: TaskTotals,
    /// Latencies since the last sample of the time series.
    pub(crate) recent: RecentLatency,
    /// Results in groups that it left.
    pub(crate) past: Vec<(Option<usize>, TaskTotals)>,
}

impl Task {
    pub(crate) fn new(spec: usize, copy: u32, program: u32, seed: u64) -> Task {
        Task {
            spec,
            copy,
            program,
            phase: 0,
            streams: Vec::new(),
            spaces: Vec::new(),
            phase_start_ns: 0,
            accesses_left: u64::MAX,
            block: None,
            block_first: PageId(0),
            syncing: None,
            is_direct_sent: false,
            renewed: false,
            iteration: 0,
            draw: 0.0,
            counted: false,
            op_accesses: 0,
            op_start_ns: None,
            is_held_up: false,
            held_up_since_ns: None,
            not_before_ns: 0,
            due_ns: 0,
            choices: Choices::new(Rng::new(seed, &[spec as u64, u64::from(copy)])),
            rows_of_hits: false,
            is_measured: false,
            script: None,
            cpu_ns: 0,
            next_scan_ns: 0,
            done: TaskTotals::default(),
            recent: RecentLatency::default(),
            past: Vec::new(),
        }
    }

    /// Results in all groups.
    pub(crate) fn all_done(&self) -> impl Iterator<Item = &TaskTotals> {
        self.past.iter().map(|(_, done)| done).chain([&self.done])
    }

    /// Enters its current phase with these streams.
    pub(crate) fn start_phase(&mut self, spec: &PhaseSpec, streams: Vec<Stream>, now_ns: u64) {
        self.choices.start(spec.streams.iter().map(|s| s.weight).collect(), &streams);
        self.streams = streams;
        self.rows_of_hits = self.has_rows_of_hits(spec);
        self.is_measured = spec.measured;
        self.phase_start_ns = now_ns;
        self.accesses_left = self.accesses_of(spec);
        (self.block, self.counted, self.op_accesses, self.op_start_ns) = (None, false, 0, None);
        self.renewed = false;
        (self.syncing, self.is_direct_sent) = (None, false);
        (self.not_before_ns, self.due_ns) = (now_ns, now_ns);
        if spec.measured {
            self.done.first_ns.get_or_insert(now_ns);
        }
    }

    /// Accesses after which the phase ends.
    fn accesses_of(&self, spec: &PhaseSpec) -> u64 {
        match spec.until {
            PhaseLimit::Accesses(n) => n,
            PhaseLimit::Passes(times) => {
                let pages = self.streams.first().map_or(1, Stream::pages);
                (times * pages as f64).round().max(1.0) as u64
            }
            _ => u64::MAX,
        }
    }

    /// Draws anew where sizes are, if that is for the current phase to do: the first of a loop, or
    /// one outside of loops.
    pub(crate) fn draw(&mut self, spec: &TaskSpec) {
        let inside = spec.loops.iter().find(|l| l.phases.contains(&self.phase));
        let phases = inside.map_or(self.phase..self.phase + 1, |l| l.phases.clone());
        let varies = |p: &PhaseSpec| p.streams.iter().any(|s| s.least_pages < s.pages);
        if self.phase == phases.start && spec.phases[phases].iter().any(varies) {
            self.draw = self.choices.unit();
        }
    }

    /// The pages of a stream that are used this time: evenly spread on a logarithmic scale.
    pub(crate) fn drawn_pages(&self, least: u64, most: u64) -> u64 {
        if least == most {
            return most;
        }
        let pages = least as f64 * (most as f64 / least as f64).powf(self.draw);
        (pages.round() as u64).clamp(least, most)
    }

    /// The end of the current phase, if time sets it.
    fn ends_ns(&self, spec: &PhaseSpec) -> Option<u64> {
        match spec.until {
            PhaseLimit::Duration(ns) => Some(self.phase_start_ns.saturating_add(ns)),
            PhaseLimit::Time(ns) => Some(ns),
            PhaseLimit::Accesses(_) | PhaseLimit::Passes(_) | PhaseLimit::End => None,
        }
    }

    /// Next turn at `now_ns`.
    pub(crate) fn next_step(&mut self, spec: &PhaseSpec, now_ns: u64) -> TaskStep {
        if let Some(syncing) = self.syncing {
            return TaskStep::Sync(syncing);
        }
        let end = self.ends_ns(spec).unwrap_or(u64::MAX);
        if self.accesses_left == 0 || (now_ns >= end && !self.counted && !self.is_direct_sent) {
            return TaskStep::PhaseOver;
        }
        if let Some(script) = &self.script {
            self.op_start_ns.get_or_insert(now_ns);
            return script.next_step(now_ns);
        }
        if self.streams.is_empty() {
            return TaskStep::SleepUntil(end);
        }
        if self.block.is_none() {
            if self.not_before_ns > now_ns {
                return TaskStep::SleepUntil(self.not_before_ns.min(end));
            }
            if let Some(on) = self.rests_until(spec, now_ns) {
                return TaskStep::SleepUntil(on.min(end));
            }
            let choice = self.choices.next(&mut self.streams);
            self.block_first = choice.block.first;
            self.block = Some(choice);
        }
        self.op_start_ns.get_or_insert(now_ns);
        let Choice { stream, block } = self.block.expect("it was just set");
        let stream = stream as usize;
        let action = self.streams[stream].action;
        if action == Action::Direct {
            let write = block.direction == Direction::Write;
            return TaskStep::Direct(Direct { first: block.first, pages: block.pages, write });
        }
        if action != Action::Access && !self.renewed {
            let (first, pages) = (block.first, block.pages);
            return TaskStep::Advise(AdviseStep { stream, first, pages, page_out: action == Action::PageOut });
        }
        let mapped = self.streams[stream].mapped;
        TaskStep::Access(Access {
            stream,
            page: block.first,
            left: block.pages,
            write: block.direction == Direction::Write,
            mapped,
            continues: false,
        })
    }

    /// Whether its next blocks can be drawn ahead and none is left.
    #[inline]
    pub(crate) fn is_dry(&self) -> bool {
        self.choices.is_dry()
    }

    /// Draws its next blocks: the first page of each, and its page table if it is mapped.
    pub(crate) fn look_ahead(&mut self) -> impl Iterator<Item = (PageId, Option<usize>)> + Clone {
        let ahead = self.choices.look_ahead(&mut self.streams);
        let streams = &self.streams;
        ahead.map(|(stream, page)| (page, streams[stream].space.filter(|_| streams[stream].mapped)))
    }

    /// End of the pause between two bursts, if the task is in one.
    fn rests_until(&self, spec: &PhaseSpec, now_ns: u64) -> Option<u64> {
        let burst = spec.burst?;
        let cycle = burst.on_ns + burst.off_ns;
        let at = (now_ns - self.phase_start_ns) % cycle;
        (at >= burst.on_ns && self.op_accesses == 0).then(|| now_ns + cycle - at)
    }

    /// The access under way was met for the first time.
    pub(crate) fn count(&mut self, spec: &PhaseSpec, hit: bool) {
        if !std::mem::replace(&mut self.counted, true) && spec.measured {
            self.done.accesses += 1;
            self.done.hits += u64::from(hit);
        }
    }

    /// CPU time that it took.
    pub(crate) fn spend(&mut self, spec: &PhaseSpec, user_ns: u64, system_ns: u64) {
        if spec.measured {
            self.done.user_ns += user_ns;
            self.done.system_ns += system_ns;
        }
    }

    /// Adds nanoseconds of direct reclaim, a part of the CPU time that the task
    /// [spent](Self::spend).
    pub(crate) fn reclaim(&mut self, ns: u64) {
        if self.is_measured {
            self.done.reclaim_ns += ns;
        }
    }

    /// Time that it waited, of one kind.
    pub(crate) fn wait(&mut self, kind: usize, ns: u64) {
        if self.is_measured {
            self.done.waited_ns[kind] += ns;
        }
    }

    /// The access under way is over.
    pub(crate) fn finish_access(&mut self, spec: &PhaseSpec, now_ns: u64, ok: bool) {
        self.counted = false;
        self.accesses_left -= 1;
        self.op_accesses += 1;
        if let Some(script) = &mut self.script {
            script.at += 1;
        }
        if let Some(Choice { block, stream }) = &mut self.block {
            block.first.0 += 1;
            block.pages -= 1;
            if block.pages == 0 {
                let (wrote, pages) = (block.direction == Direction::Write, block.first.0 - self.block_first.0);
                let stream = *stream as usize;
                self.block = None;
                self.renewed = false;
                if wrote && self.streams[stream].sync != Sync::None {
                    self.syncing = Some(SyncStep { stream, first: self.block_first, pages, waits_from: None });
                }
            }
        }
        if spec.measured {
            self.done.errors += u64::from(!ok);
            self.done.last_ns = now_ns;
        }
        if self.op_accesses >= spec.accesses_per_op.max(1) && self.syncing.is_none() {
            self.finish_op(spec, now_ns);
        }
    }

    /// Ends a sync: its pages have been given to their device.
    pub(crate) fn finish_sync(&mut self, spec: &PhaseSpec, now_ns: u64) {
        self.syncing = None;
        if spec.measured {
            self.done.last_ns = now_ns;
        }
        if self.op_accesses >= spec.accesses_per_op.max(1) {
            self.finish_op(spec, now_ns);
        }
    }

    /// Its block was read or written past the page cache.
    pub(crate) fn finish_direct(&mut self, spec: &PhaseSpec, pages: u32, now_ns: u64, ok: bool) {
        self.is_direct_sent = false;
        self.block = None;
        self.accesses_left = self.accesses_left.saturating_sub(u64::from(pages));
        self.op_accesses = self.op_accesses.saturating_add(pages);
        if spec.measured {
            self.done.accesses += u64::from(pages);
            self.done.errors += u64::from(!ok);
            self.done.last_ns = now_ns;
        }
        if self.op_accesses >= spec.accesses_per_op.max(1) {
            self.finish_op(spec, now_ns);
        }
    }

    /// Notes that the pages of the block were dropped or paged out. If the block is also to be
    /// accessed, that comes next.
    pub(crate) fn finish_advice(&mut self, spec: &PhaseSpec, now_ns: u64) {
        let Some(Choice { stream, block }) = self.block else { return };
        if self.streams[stream as usize].action == Action::Renew {
            self.renewed = true;
            return;
        }
        self.block = None;
        self.accesses_left = self.accesses_left.saturating_sub(u64::from(block.pages));
        self.op_accesses = self.op_accesses.saturating_add(block.pages);
        if spec.measured {
            self.done.last_ns = now_ns;
        }
        if self.op_accesses >= spec.accesses_per_op.max(1) {
            self.finish_op(spec, now_ns);
        }
    }

    fn finish_op(&mut self, spec: &PhaseSpec, now_ns: u64) {
        self.op_accesses = 0;
        let start = self.op_start_ns.take().unwrap_or(now_ns);
        if spec.measured {
            self.done.ops += 1;
            match self.is_held_up {
                true => self.held_up_since_ns = Some(start),
                false => self.record_latency(now_ns - start, 1),
            }
        }
        self.not_before_ns = now_ns + spec.think_ns;
        if let Some(rate) = spec.rate_per_s {
            // A task that fell behind does not catch up more than one operation.
            self.due_ns = (self.due_ns + (1e9 / rate) as u64).max(start);
            self.not_before_ns = self.not_before_ns.max(self.due_ns);
        }
    }

    #[inline]
    fn record_latency(&mut self, ns: u64, count: u64) {
        self.done.latency.record(ns, count);
        self.recent.record(ns, count);
    }

    /// Goes on after an operation that was held up in the end: that is over now.
    pub(crate) fn close_op(&mut self, now_ns: u64) {
        if let Some(start) = self.held_up_since_ns.take() {
            self.record_latency(now_ns - start, 1);
            self.done.last_ns = now_ns;
        }
    }

    /// Share of the current phase that is over, 0 to 1; 0 in a phase that ends with the scenario.
    pub(crate) fn phase_share(&self, spec: &PhaseSpec, now_ns: u64) -> f64 {
        let share = match spec.until {
            PhaseLimit::Accesses(_) | PhaseLimit::Passes(_) => {
                1.0 - self.accesses_left as f64 / self.accesses_of(spec).max(1) as f64
            }
            PhaseLimit::Duration(ns) => now_ns.saturating_sub(self.phase_start_ns) as f64 / ns.max(1) as f64,
            PhaseLimit::Time(ns) => now_ns as f64 / ns.max(1) as f64,
            PhaseLimit::End => 0.0,
        };
        share.clamp(0.0, 1.0)
    }

    /// Calls `add` with each page and the probability that the task touches it next in its current
    /// phase.
    pub(crate) fn weigh(&self, phase: &PhaseSpec, add: &mut dyn FnMut(PageId, f64)) {
        if let Some(script) = &self.script {
            return script.weigh(add);
        }
        let total: f64 = phase.streams.iter().map(|s| s.weight).sum();
        for (stream, spec) in self.streams.iter().zip(&phase.streams) {
            let weight = spec.weight / total;
            stream.weigh(|page, share| add(page, weight * share));
        }
    }

    /// Its phase is over: goes on to what comes then.
    pub(crate) fn next_phase(&mut self, spec: &TaskSpec, now_ns: u64) -> PhaseEnd {
        if spec.phases[self.phase].measured {
            self.done.last_ns = now_ns;
        }
        self.phase += 1;
        let more = self.phase < spec.phases.len();
        let ended = spec.loops.iter().position(|l| l.phases.end == self.phase);
        let Some((at, l)) = ended.map(|at| (at, &spec.loops[at])) else {
            return if more { PhaseEnd::Phase } else { PhaseEnd::End };
        };
        self.iteration += 1;
        if self.iteration >= l.times {
            self.iteration = 0;
            return PhaseEnd::Leave(at, more);
        }
        self.phase = l.phases.start;
        PhaseEnd::Repeat(at)
    }

    /// Times that the loop which it is in was gone through; 0 outside of loops.
    pub(crate) fn iteration(&self) -> u64 {
        self.iteration
    }
}
