//! Threads of the kernel: kswapd, the flusher, and the worker of zswap.

use refault_mm::{FlushStep, KswapdStep, NodeId, ZswapStep};

use super::context::OnCpu;
use crate::kernel::LabKernel;
use crate::sched::{Clock, PsiState, Stop, Threads};

impl OnCpu<'_> {
    /// Runs one pass of kswapd. If kswapd finds that the working set cannot be kept (`min_ttl`), a
    /// task is killed.
    pub(crate) fn run_kswapd(&mut self, node: NodeId, start_ns: u64) -> (u64, Stop) {
        self.kernel.set_now_ns(start_ns);
        let t = self.threads.kswapd(node);
        let kernel = &mut *self.kernel;
        let step = kernel.engine.kswapd_node_step(&mut kernel.hw, node);
        if let Some(memcg) = self.kernel.take_oom() {
            self.kill_for(memcg);
        }
        let end = start_ns + self.settle(start_ns).worker_ns();
        if let Some((reason, max_wait_ns)) = self.kernel.take_throttle() {
            self.threads.wait_throttled(t, reason, end + max_wait_ns, self.clock);
            return (end, Stop::Blocked(PsiState::Stalled));
        }
        match step {
            KswapdStep::Again => (end, Stop::Preempted),
            KswapdStep::Sleep => {
                self.threads[t].begin_wait();
                (end, Stop::Blocked(PsiState::Idle))
            }
        }
    }

    /// Runs the flusher: it writes everything it was woken for at once, and a chunk of an old file.
    /// It waits for room where the device has all the requests that it takes.
    pub(crate) fn run_flusher(&mut self, start_ns: u64) -> (u64, Stop) {
        self.kernel.set_now_ns(start_ns);
        let kernel = &mut *self.kernel;
        kernel.engine.flush(&mut kernel.hw);
        let step = match self.spec.machine.dirty_expire_ns {
            0 => FlushStep::Sleep,
            _ => kernel.engine.flush_expired_step(&mut kernel.hw),
        };
        let end = start_ns + self.settle(start_ns).worker_ns();
        let t = self.threads.flusher();
        match step {
            FlushStep::Again => return (end, Stop::Preempted),
            FlushStep::Wait => self.threads.wait_for_room(t, true, end, self.clock),
            FlushStep::Sleep => _ = self.threads[t].begin_wait(),
        }
        (end, Stop::Blocked(PsiState::Idle))
    }
}

/// The worker of zswap: a step of it.
pub(crate) fn zswap(start_ns: u64, kernel: &mut LabKernel, clock: &mut Clock, threads: &mut Threads) -> (u64, Stop) {
    kernel.set_now_ns(start_ns);
    let step = kernel.engine.zswap_step(&mut kernel.hw);
    // Waits that reclaim for its pages would have had do not hold it up.
    kernel.skip_throttle();
    let end = start_ns + kernel.settle(start_ns, clock, threads).worker_ns();
    match step {
        ZswapStep::Again => (end, Stop::Preempted),
        ZswapStep::Sleep => {
            let t = threads.zswap();
            threads[t].begin_wait();
            (end, Stop::Blocked(PsiState::Idle))
        }
    }
}
