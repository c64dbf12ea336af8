//! Threads, and the processes whose faults they serve.
//!
//! The kernel wakes a thread that waits for the faults of a process, whatever processor it is on.
//! So threads wait in *lanes*, as a rule one for each processor. A process is in the lane of the
//! processor on which it faults ([`ServingCpu`]); threads of the lane are bound to it. A lane has
//! two threads, so that one serves while the other waits for a device.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::control::{ServingCpu, ServingCpuStep};

use super::Shared;
use super::core::Core;
use super::epoll::{Epoll, Ready};
use crate::placement::{Cpus, cpu_of, own_number};

/// Threads of a lane.
pub(super) const THREADS: usize = 2;

/// All of them.
pub(super) struct Lanes {
    lanes: Vec<Epoll>,
    /// Where threads were at first, and the numbers of these processors.
    all: Cpus,
    cpus: Vec<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The threads of each lane, and the processor to which they are bound.
    threads: Vec<Vec<u32>>,
    bound: Vec<Option<usize>>,
    /// State of each process, by its number.
    processes: Vec<Process>,
}

/// State of a process, and the lane that it is in.
struct Process {
    serial: u32,
    lane: usize,
    rule: ServingCpu,
}

impl Lanes {
    /// At most `most` lanes, and at most one for each processor.
    pub(super) fn new(most: usize) -> io::Result<Lanes> {
        let all = Cpus::here();
        let cpus = all.numbers();
        let n = most.clamp(1, cpus.len().max(1));
        let lanes = (0..n).map(|_| Epoll::new()).collect::<io::Result<Vec<_>>>()?;
        let state = State { threads: vec![Vec::new(); n], bound: vec![None; n], processes: Vec::new() };
        Ok(Lanes { lanes, all, cpus, state: Mutex::new(state) })
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread is of a lane from now on: of the one with the fewest.
    pub(super) fn join(&self) -> usize {
        let mut s = self.state();
        let lane = (0..self.len()).min_by_key(|&lane| s.threads[lane].len()).unwrap_or(0);
        s.threads[lane].push(own_number());
        lane
    }

    /// Next thing to be done in a lane.
    pub(super) fn wait(&self, lane: usize) -> io::Result<Option<Ready>> {
        self.lanes[lane].wait()
    }

    /// All threads are told to stop.
    pub(super) fn stop(&self) {
        self.lanes.iter().for_each(Epoll::stop);
    }

    /// The descriptor of a process is waited for.
    pub(super) fn add_faults(&self, fd: RawFd, index: usize, serial: u32) -> io::Result<()> {
        let mut s = self.state();
        // Where it runs will be seen.
        let lane = index % self.len();
        let none = || Process { serial, lane, rule: ServingCpu::default() };
        while s.processes.len() <= index {
            s.processes.push(none());
        }
        s.processes[index] = none();
        self.lanes[lane].add_faults(fd, index)
    }

    /// The end of an agent is waited for.
    pub(super) fn add_agent(&self, fd: RawFd, index: usize, serial: u32) -> io::Result<()> {
        self.lanes[index % self.len()].add_agent(fd, index, serial)
    }

    /// Its answer is waited for, too, or no longer.
    pub(super) fn watch_answer(&self, fd: RawFd, index: usize, serial: u32, waits: bool) -> io::Result<()> {
        self.lanes[index % self.len()].watch_answer(fd, index, serial, waits)
    }

    /// Takes note of a fault of a thread; `fd` is the descriptor that tells faults of its process.
    fn fault_of(&self, s: &mut State, (index, serial): (usize, u32), fd: RawFd, thread: u32) {
        let Some(process) = s.processes.get_mut(index).filter(|p| p.serial == serial) else { return };
        let cpu = match process.rule.fault_of(thread) {
            None => return,
            Some(ServingCpuStep::Anywhere) => None,
            Some(ServingCpuStep::Look(thread)) => match cpu_of(thread) {
                Some(cpu) if process.rule.runs_on(cpu) => Some(cpu),
                _ => return,
            },
        };
        let rank = cpu.and_then(|cpu| self.cpus.iter().position(|&c| c == cpu));
        let lane = rank.map_or(process.lane, |rank| rank % self.len());
        // Events from before are told in the new lane once more. If it cannot be waited for there,
        // it stays where it is.
        if lane != process.lane && self.lanes[lane].add_faults(fd, index).is_ok() {
            self.lanes[process.lane].remove(fd);
            process.lane = lane;
        }
        if process.lane == lane && s.bound[lane] != cpu {
            s.bound[lane] = cpu;
            let cpus = cpu.map_or(self.all, Cpus::only);
            s.threads[lane].iter().for_each(|&thread| cpus.bind(thread));
        }
    }
}

impl Shared {
    /// The threads whose faults were read are followed to their processors.
    pub(super) fn follow_threads(&self, core: &mut Core) {
        let mut s = self.lanes.state();
        for (index, thread) in std::mem::take(&mut core.threads) {
            let Some(space) = core.space(index) else { continue };
            self.lanes.fault_of(&mut s, (index, space.serial), space.uffd.as_fd().as_raw_fd(), thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn a_process_is_served_on_the_processor_of_the_thread_that_faults() {
        let lanes = Lanes::new(usize::MAX).unwrap();
        let counts: Vec<usize> = (0..lanes.len() * THREADS).map(|_| lanes.join()).collect();
        assert!((0..lanes.len()).all(|lane| counts.iter().filter(|&&l| l == lane).count() == THREADS));
        // They are this thread, all of them, which is bound with them: that is undone.
        let before = Cpus::here();
        // SAFETY: the call makes a new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(1, libc::EFD_NONBLOCK)) };
        lanes.add_faults(fd.as_raw_fd(), 0, 7).unwrap();
        for (rank, &cpu) in lanes.cpus.iter().enumerate().rev() {
            Cpus::only(cpu).bind(own_number());
            let mut s = lanes.state();
            // A look comes with the first window, and then with each fourth.
            (0..5 * 64).for_each(|_| lanes.fault_of(&mut s, (0, 7), fd.as_raw_fd(), own_number()));
            let lane = rank % lanes.len();
            assert_eq!((s.processes[0].lane, s.bound[lane]), (lane, Some(cpu)));
            drop(s);
            assert_eq!(lanes.wait(lane).unwrap(), Some(Ready::Faults(0)), "what is there is told in lane {lane}");
        }
        let mut s = lanes.state();
        (0..64).for_each(|i| lanes.fault_of(&mut s, (0, 7), fd.as_raw_fd(), i));
        assert_eq!(s.bound[s.processes[0].lane], None, "several threads are served anywhere");
        let lane = s.processes[0].lane;
        (0..5 * 64).for_each(|_| lanes.fault_of(&mut s, (0, 6), fd.as_raw_fd(), own_number()));
        assert_eq!((s.processes[0].lane, s.bound[lane]), (lane, None), "another process had this number");
        drop(s);
        before.bind(own_number());
    }
}
