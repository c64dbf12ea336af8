//! Choice of the thread that was served least, with ticks, as EEVDF has it (Linux since 6.6) for
//! threads of one weight.
//!
//! A thread counts the CPU time that it had. A thread that had no more than the mean of all that
//! may run is owed a turn: it takes the CPU when it is woken, and a turn that ends ends in favour
//! of the one that had least. Time that a thread is owed when it falls asleep it is owed still when
//! it is woken (lag); time that it had too much it sleeps off (delayed dequeue).
//!
//! Mechanism: `docs/mechanisms.md#ticks`.

use refault_mm::Kernel;

use super::{TICK_NS, Threads};
use crate::scenario::Scenario;
use crate::sched::Thread;

/// Settings of EEVDF on a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eevdf {
    /// `CONFIG_PREEMPT_LAZY`: in the kernel a thread gives way at a tick only, and first at the one
    /// after it was asked to.
    is_lazy: bool,
}

impl Eevdf {
    /// Kernels before EEVDF have none. Debian's of 6.18 and later preempt lazily.
    pub(super) fn new(spec: &Scenario) -> Option<Eevdf> {
        let kernel = spec.policy.kernel;
        let is_old = matches!(kernel, Kernel::V2022V14 | Kernel::V6_1);
        let is_lazy = !matches!(kernel, Kernel::V6_6Rc | Kernel::V6_6 | Kernel::V6_12);
        (spec.machine.tick_ns > 0 && !is_old).then_some(Eevdf { is_lazy })
    }
}

impl Threads {
    /// Number of the other threads that may run, and the sum of their CPU time.
    fn others(&self, t: usize, now_ns: u64) -> (i64, i64) {
        let queued = self.queue.iter().map(|&o| self.all[o].vruntime_ns);
        let running = (0..self.cpus.len()).filter(|&c| self.cpus[c].running.is_some_and(|o| o != t));
        let all = queued.chain(running.map(|c| self.vruntime_on(c, now_ns)));
        all.fold((0, 0), |(n, sum), ns| (n + 1, sum + ns))
    }

    /// CPU time of the thread on a CPU.
    fn vruntime_on(&self, cpu: usize, now_ns: u64) -> i64 {
        let c = &self.cpus[cpu];
        c.running.map_or(0, |t| self.all[t].vruntime_ns + now_ns.saturating_sub(c.since_ns) as i64)
    }

    /// A thread falls asleep.
    pub(super) fn dequeue_entity(&mut self, t: usize, now_ns: u64) {
        let ((n, sum), own) = (self.others(t, now_ns), self.all[t].vruntime_ns);
        let most = TICK_NS as i64;
        let thread = &mut self.all[t];
        thread.vlag_ns = ((sum + own) / (n + 1) - own).clamp(-most, most);
        thread.wants_resched = false;
    }

    /// A thread is woken, and not in the queue yet.
    pub(super) fn enqueue_entity(&mut self, t: usize, now_ns: u64) {
        let (n, sum) = self.others(t, now_ns);
        let thread = &mut self.all[t];
        if n == 0 {
            return;
        }
        if thread.vlag_ns >= 0 {
            // With this value the mean is such that the thread's lag is what it was.
            thread.vruntime_ns = sum / n - thread.vlag_ns * (n + 1) / n;
        } else if sum / n >= thread.vruntime_ns {
            thread.vruntime_ns = sum / n;
        }
    }

    /// Whether a thread that is woken is owed the CPU.
    pub(super) fn is_eligible(&self, t: usize, now_ns: u64) -> bool {
        let (n, sum) = self.others(t, now_ns);
        self.eevdf.is_none() || self.all[t].vruntime_ns * n <= sum
    }

    /// Whether all waiting threads were served more than the thread on a CPU; else the thread
    /// served least is put next.
    pub(super) fn keeps_running(&mut self, cpu: usize, now_ns: u64) -> bool {
        let own = self.vruntime_on(cpu, now_ns);
        let least = (0..self.queue.len()).min_by_key(|&i| self.all[self.queue[i]].vruntime_ns);
        let next = least.filter(|&i| self.all[self.queue[i]].vruntime_ns <= own).and_then(|i| self.queue.remove(i));
        next.inspect(|&t| self.queue.push_front(t)).is_none()
    }

    /// A worker of the kernel takes the CPU of a thread. It runs for next to no time, but then who
    /// goes on is chosen anew.
    pub(crate) fn resched(&mut self, t: usize) {
        self.all[t].wants_resched = self.eevdf.is_some();
    }

    /// Whether the thread is to give way as soon as it can.
    pub(super) fn must_resched_now(&self, t: usize) -> bool {
        self.eevdf.is_some_and(|f| !f.is_lazy) && self.all[t].wants_resched
    }

    /// When the turn of a thread ends that has had a CPU since then, and would have it until the
    /// end of its slice.
    pub(super) fn slice_end_ns(&self, thread: &Thread, since_ns: u64, slice_ends_ns: u64) -> u64 {
        let (Some(eevdf), Some(ticks)) = (self.eevdf, self.ticks) else { return slice_ends_ns };
        match thread.wants_resched {
            _ if !eevdf.is_lazy || !thread.is_of_kernel => slice_ends_ns,
            true => ticks.next(since_ns),
            false => ticks.next(slice_ends_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A task has a CPU to itself for 20 ms, and then kswapd is woken; where it runs.
    fn with_kswapd(kernel: &str) -> (Threads, usize) {
        let text = format!(
            r#"name = "t"
machine = {{ memory = "64M", cpus = 1, tick = "4ms" }}
policy = {{ name = "lru", kernel = "{kernel}" }}
device.disk = {{ preset = "hdd" }}
object.file = {{ kind = "file", size = "1M", device = "disk" }}
[[task]]
name = "reader"
phase = [{{ read = "file", passes = 4 }}]
"#
        );
        let spec = Scenario::parse("t", &text).unwrap();
        let task = Thread::new(crate::sched::ThreadWork::Flusher, vec![0]);
        let mut threads = Threads::new(&spec, vec![Thread { is_of_kernel: false, ..task }]);
        let kswapd = threads.kswapd(refault_mm::NodeId(0));
        threads.start(0);
        threads.make_runnable(0, 0);
        assert_eq!(threads.give_cpu(0, 0), Some((0, true)));
        threads.make_runnable(kswapd, 20 * MS);
        threads.preempt(kswapd, 20 * MS);
        let place = threads.place(0, 20 * MS).unwrap();
        threads.take_cpu(0, 20 * MS);
        threads.queue_again(0, place, 20 * MS);
        assert_eq!(threads.give_cpu(0, 20 * MS), Some((kswapd, true)));
        (threads, kswapd)
    }

    #[test]
    fn a_worker_gives_the_cpu_to_who_was_served_less() {
        for (kernel, at_once, at_tick) in [
            ("6.12", Place::Last, Place::Last),
            ("6.18", Place::First, Place::Last),
            ("6.1", Place::First, Place::Last),
        ] {
            for (after, place) in [(MS, at_once), (4 * MS, at_tick)] {
                let (mut threads, kswapd) = with_kswapd(kernel);
                assert_eq!(threads.place(0, 20 * MS + MS / 2), Some(Place::First), "{kernel}");
                threads.resched(kswapd);
                assert_eq!(threads.place(0, 20 * MS + after), Some(place), "{kernel} {after}");
            }
        }
    }

    /// kswapd had 3 ms more than the task when it fell asleep: it waits until that is made up for.
    #[test]
    fn who_had_too_much_is_not_owed_a_cpu() {
        for (after, is_eligible) in [(MS, false), (4 * MS, true)] {
            let (mut threads, kswapd) = with_kswapd("6.12");
            let asleep = 23 * MS;
            threads.take_cpu(0, asleep);
            threads.block(kswapd, crate::sched::PsiState::Idle, asleep);
            threads.give_cpu(0, asleep);
            threads.make_runnable(kswapd, asleep + after);
            assert_eq!(threads.is_eligible(kswapd, asleep + after), is_eligible, "{after}");
        }
    }
}
