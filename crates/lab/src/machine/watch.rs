//! Events on conditions: whether they hold, and since when.

use refault_mm::PsiKind;

use super::state::Machine;
use crate::scenario::{Condition, EventAction, MemoryAmount, Victim, WatchSpec};
use crate::sched::{Event, Resource};

/// State of the watch of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchState {
    /// Since when the conditions hold.
    since_ns: Option<u64>,
    /// Time before which the event does not happen again.
    not_before_ns: u64,
    times: u64,
    /// At the last look: stalls in microseconds and counters, by condition.
    seen: Vec<u64>,
    /// By group: pages that reclaim had scanned at the last look.
    pub(super) scanned: Vec<u64>,
}

impl Machine {
    /// The time of a look at conditions: the event happens if they have held for long enough.
    pub(super) fn look(&mut self, i: usize) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        let Some(watch) = self.spec.events[i].watch.clone() else { return Ok(()) };
        let holds = self.holds(i, &watch);
        let state = &mut self.watching[i];
        state.since_ns = if holds { state.since_ns.or(Some(now_ns)) } else { None };
        let is_due = state.since_ns.is_some_and(|since| now_ns - since >= watch.hold_ns);
        if is_due && now_ns >= state.not_before_ns {
            state.times += 1;
            (state.since_ns, state.not_before_ns) = (None, now_ns + watch.cooldown_ns);
            self.begin_event(i)?;
        }
        if matches!(self.spec.events[i].action, EventAction::Kill { victim: Victim::ScannedGroup, .. }) {
            let groups = 0..self.spec.memcgs.len();
            let on_cpu = self.on_cpu().0;
            let scanned = groups.map(|g| on_cpu.scanned(g)).collect();
            self.watching[i].scanned = scanned;
        }
        // A watch keeps no machine going in which nothing else happens.
        if self.watching[i].times < watch.times && !self.clock.is_idle() {
            self.clock.push(now_ns + watch.poll_ns, Event::Look(i));
        }
        Ok(())
    }

    fn holds(&mut self, i: usize, watch: &WatchSpec) -> bool {
        let (mut any, mut at) = (false, 0);
        for list in &watch.any {
            let mut all = true;
            for condition in list {
                // Each is looked at: what it was is what the next look compares with.
                all &= self.does_hold(i, at, condition);
                at += 1;
            }
            any |= all;
        }
        any
    }

    fn does_hold(&mut self, i: usize, at: usize, condition: &Condition) -> bool {
        let memory = self.kernel.engine.managed_pages();
        let group = |memcg: &Option<usize>| memcg.map_or(0, |m| m + 1);
        match condition {
            Condition::AvailableBelow(amount) => self.available_pages() < amount.pages(memory),
            Condition::NodeAvailableBelow(amount) => self.node_available_pages() < amount.pages(memory),
            Condition::FreeSwapBelow(amount) => self.is_swap_low(*amount),
            Condition::Avg10Above { memcg, kind, percent } => {
                let now_ns = self.clock.now_ns();
                self.threads.pressure.read(group(memcg), now_ns, Resource::Memory, *kind).avg10 > *percent
            }
            Condition::StallAbove { memcg, kind, ns } => {
                let total_us = self.stalled_us(group(memcg), *kind);
                self.rise(i, at, total_us) * 1000 > *ns
            }
            Condition::CounterRises { counter, above } => {
                let n = self.kernel.engine.vmstat().get(*counter);
                self.rise(i, at, n) > *above
            }
        }
    }

    fn stalled_us(&mut self, group: usize, kind: PsiKind) -> u64 {
        let now_ns = self.clock.now_ns();
        self.threads.pressure.read(group, now_ns, Resource::Memory, kind).total_us
    }

    /// Rise of a number since the last look at it; 0 at the first look.
    fn rise(&mut self, i: usize, at: usize, now: u64) -> u64 {
        let seen = &mut self.watching[i].seen;
        if seen.len() <= at {
            seen.resize(at + 1, now);
        }
        now - std::mem::replace(&mut seen[at], now)
    }

    fn gauge(&self, name: &str) -> u64 {
        self.kernel.engine.node_gauges().iter().find(|g| g.name == name).map_or(0, |g| g.value)
    }

    /// `MemAvailable` in pages: free pages beyond the high marks, and the cache without the part
    /// that stays (half of it, or the low marks).
    fn available_pages(&self) -> u64 {
        let engine = &self.kernel.engine;
        let (mut high, mut low) = (0, 0);
        engine.zones().for_each(|(.., marks)| (high, low) = (high + marks.high, low + marks.low));
        let cache = self.gauge("active_file") + self.gauge("inactive_file");
        engine.free_pages().saturating_sub(high) + cache - (cache / 2).min(low)
    }

    /// `memory.available` of the kubelet.
    fn node_available_pages(&self) -> u64 {
        self.kernel.engine.free_pages() + self.gauge("inactive_file")
    }

    /// Without swap there is none free.
    fn is_swap_low(&self, below: MemoryAmount) -> bool {
        let maps = self.kernel.engine.swap_maps();
        let all: u64 = maps.iter().map(|map| map.device.usable_pages).sum();
        let free = all.saturating_sub(self.kernel.engine.swap_used_pages());
        free < below.pages(all) || all == 0
    }
}
