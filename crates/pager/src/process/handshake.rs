//! Agents that come: of programs that have just been loaded, and of children of `fork`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;
use super::abi::{self, AgentHello, BELL_BYTES, CALLS, CAUGHT_ALL, WINDOW};
use super::address_space::AddressSpace;
use super::agent::{Agent, Link};
use super::maps;
use super::new_memory;
use crate::pagemap::Pagemap;
use crate::uffd::{PAGE, Uffd, UffdFeature};

/// Features of an agent's userfaultfd.
const FEATURES: [UffdFeature; 10] = [
    UffdFeature::PAGEFAULT_FLAG_WP,
    UffdFeature::WP_UNPOPULATED,
    UffdFeature::EVENT_FORK,
    UffdFeature::EVENT_REMAP,
    UffdFeature::EVENT_REMOVE,
    UffdFeature::EVENT_UNMAP,
    UffdFeature::THREAD_ID,
    UffdFeature::POISON,
    UffdFeature::WP_ASYNC,
    UffdFeature::MOVE,
];
/// Time without a word after which an agent is given up.
const PATIENCE: Duration = Duration::from_secs(5);

impl Shared {
    /// The greeter's thread.
    pub(super) fn handshakes(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok(link) => {
                    let pid = link.pid();
                    let result = pid.and_then(|pid| self.admit(link, pid).inspect_err(|e| self.tell(pid, e)));
                    if let Err(e) = result
                        && !self.stop.load(Ordering::Relaxed)
                        && e.kind() == std::io::ErrorKind::Other
                    {
                        eprintln!("refault: {e}");
                    }
                }
                Err(_) if self.stop.load(Ordering::Relaxed) => return,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// A process could not be admitted. The program itself must not run without a limit; of others
    /// it is said.
    fn tell(&self, pid: i32, why: &std::io::Error) {
        if why.kind() == std::io::ErrorKind::PermissionDenied || !is_descendant(pid) {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.is_none() {
            *first = Some(Err(format!("its memory cannot be served: {why}")));
            // SAFETY: the process is the one that was started.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            self.arrived.notify_all();
        } else if why.kind() != std::io::ErrorKind::Other && !maps::has_ended(pid) {
            eprintln!("refault: process {pid} is not served, if it is still there: {why}");
        }
    }

    fn admit(&self, link: Link, pid: i32) -> std::io::Result<()> {
        if !is_descendant(pid) {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        let (hello, fd) = link.greeting()?;
        match (hello.kind, fd) {
            (abi::FORKED, _) => self.admit_forked(link, pid, &hello),
            (_, Some(fd)) if hello.error == 0 => {
                let uffd = Arc::new(Uffd::of_other(fd, &FEATURES));
                self.admit_new(link, pid, &hello, uffd)
            }
            _ => {
                self.refuse(&link, pid, &hello);
                Ok(())
            }
        }
    }

    /// There is no userfaultfd for this process.
    fn refuse(&self, link: &Link, pid: i32, hello: &AgentHello) {
        let why = std::io::Error::from_raw_os_error(hello.error as i32);
        let what = match hello.at {
            abi::AT_FEATURES if hello.error as i32 == libc::EPERM => {
                "following forks takes CAP_SYS_PTRACE, which it has not: run it as root, or give it that capability"
                    .to_string()
            }
            abi::AT_FEATURES => format!("the kernel has not all that is needed ({why}); Linux 6.8 or later has it"),
            _ => format!("userfaultfd cannot be used by it ({why})"),
        };
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.is_none() {
            // The program itself: it has not begun.
            *first = Some(Err(format!("{what}; refault doctor tells more")));
            // SAFETY: the process is the one that was started, and waits.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        } else {
            eprintln!("refault: process {pid} runs without a limit: {what}");
            _ = link.order(abi::LEAVE, 0, &[]);
        }
        self.arrived.notify_all();
    }

    fn admit_new(&self, link: Link, pid: i32, hello: &AgentHello, uffd: Arc<Uffd>) -> std::io::Result<()> {
        let mut space = AddressSpace::new(pid, uffd.clone(), hello.bell as usize, 0);
        space.arena = arena(hello);
        space.watched.insert(space.arena.clone());
        space.watched.insert(space.bell..space.bell + BELL_BYTES);
        space.calls = calls(hello);
        let agent = Agent::new(link)?;
        // SAFETY: all are the agent's own, which touches the scratch pages only when something is
        // in them, and never the bell.
        unsafe {
            uffd.register(space.calls.start, space.calls.len())?;
            uffd.register(hello.scratch as usize, WINDOW * PAGE)?;
            uffd.register(hello.bell as usize, PAGE)?;
        }
        let mut core = self.lock_now();
        space.since_ns = core.now_ns;
        core.processes += 1;
        core.uncaught += u64::from(hello.caught != CAUGHT_ALL);
        core.missed |= CAUGHT_ALL & !hello.caught;
        let index = core.insert_space(space);
        self.install(core, index, agent, None)?;
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(Ok(()));
        self.arrived.notify_all();
        Ok(())
    }

    /// The child is known by its userfaultfd already, which came with the fork: it rings its bell,
    /// so it is known which is its.
    fn admit_forked(&self, link: Link, pid: i32, hello: &AgentHello) -> std::io::Result<()> {
        self.lock().last_bell = None;
        link.order(abi::RING, 0, &[])?;
        let since = Instant::now();
        let index = loop {
            if let Some(index) = self.lock().last_bell.take() {
                break index;
            }
            if since.elapsed() > PATIENCE {
                // It would wait for ever.
                // SAFETY: the process is the one that just came.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                return Err(std::io::Error::other(format!("process {pid} was forked, but rang no bell; it is killed")));
            }
            std::thread::sleep(Duration::from_micros(50));
        };
        let agent = Agent::new(link)?;
        let mut core = self.lock();
        let Some(s) = core.space_mut(index) else { return Err(std::io::ErrorKind::NotFound.into()) };
        if s.is_undecided {
            // It was forked while it was not known where the memory of its parent is.
            // SAFETY: the process is the one that just came.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        s.pid = pid;
        s.pagemap = Pagemap::of(pid).ok().map(Arc::new);
        s.arena = arena(hello);
        s.watched.insert(arena(hello));
        s.calls = calls(hello);
        let (uffd, calls, pagemap) = (s.uffd.clone(), s.calls.clone(), s.pagemap.clone());
        core.memory.written.set_pagemap(index, pagemap);
        // SAFETY: the scratch pages and those of calls are the agent's own.
        unsafe {
            uffd.register(hello.scratch as usize, WINDOW * PAGE)?;
            uffd.register(calls.start, calls.len())?;
        }
        self.install(core, index, agent, Some(uffd))
    }

    fn install(
        &self,
        mut core: crate::sync::MutexGuard<'_, super::core::Core>,
        index: usize,
        agent: Agent,
        uffd: Option<Arc<Uffd>>,
    ) -> std::io::Result<()> {
        let serial = core.space(index).map_or(0, |s| s.serial);
        self.lanes.add_agent(agent.link.raw(), index, serial)?;
        let is_active = core.space(index).is_some_and(|s| s.active);
        agent.allow((!is_active).then_some(new_memory::FREE));
        let go = agent.go(uffd.as_ref().map(|u| u.as_fd()));
        if let Some(s) = core.space_mut(index) {
            s.agent = Some(agent);
        }
        let told = go.map_err(|e| {
            // If it is still there, it waits for that word, with all that it has.
            let pid = core.pid_of(index);
            core.kill(index);
            // Said whether it is still there or not: nobody can tell any more who ended it.
            std::io::Error::other(format!("process {pid} cannot be told that it is served ({e}); it is killed"))
        });
        self.after(core);
        told
    }
}

fn arena(hello: &AgentHello) -> std::ops::Range<usize> {
    hello.arena as usize..(hello.arena + hello.arena_bytes) as usize
}

fn calls(hello: &AgentHello) -> std::ops::Range<usize> {
    hello.calls as usize..hello.calls as usize + CALLS * PAGE
}

/// Steps from a process to its parent that are made at most, where processes go on ending.
const STEPS: u32 = 10_000;

/// Whether a process was started by this one, or by one that was.
pub(super) fn is_descendant(pid: i32) -> bool {
    descends(pid, std::process::id() as i32, maps::parent)
}

/// The same of any process. A parent that is gone has left its children to another one: they are
/// asked again.
fn descends(pid: i32, from: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let mut at = pid;
    for _ in 0..STEPS {
        if at == from {
            return true;
        }
        at = match parent(at) {
            Some(above) if above > 1 => above,
            None if at != pid => pid,
            _ => return false,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parent ended between two looks: what it had forked was taken for a stranger, and ended.
    #[test]
    fn regression_a_parent_that_is_gone_left_its_children_to_another() {
        let has_ended = std::cell::Cell::new(false);
        let parent = |pid| match pid {
            12 if has_ended.get() => Some(10),
            12 => Some(11),
            11 => {
                has_ended.set(true);
                None
            }
            10 => Some(5),
            _ => Some(1),
        };
        assert!(descends(12, 10, parent));
        assert!(!descends(12, 7, parent), "of 10, 5 and 1");
        assert!(!descends(13, 10, |_| None), "it is gone itself");
    }
}
