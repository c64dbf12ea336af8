//! Threads of the kernel: kswapd, the flusher, and the worker of zswap.

use refault_mm::{KswapdStep, NodeId, ZswapStep};

use crate::kernel::Kernel;
use crate::sched::{Clock, PsiState, Stop, Threads};

/// kswapd, one pass of it.
pub(crate) fn kswapd(
    node: NodeId,
    start_ns: u64,
    kernel: &mut Kernel,
    clock: &mut Clock,
    threads: &mut Threads,
) -> (u64, Stop) {
    kernel.set_now_ns(start_ns);
    let t = threads.kswapd(node);
    let step = kernel.engine.kswapd_node_step(&mut kernel.hw, node);
    let end = start_ns + kernel.settle(start_ns, clock, threads).worker_ns();
    if let Some((reason, max_wait_ns)) = kernel.take_throttle() {
        threads.wait_throttled(t, reason, end + max_wait_ns, clock);
        return (end, Stop::Blocked(PsiState::Idle));
    }
    match step {
        KswapdStep::Again => (end, Stop::Preempted),
        KswapdStep::Sleep => {
            threads[t].begin_wait();
            (end, Stop::Blocked(PsiState::Idle))
        }
    }
}

/// The flusher: everything that it was woken for, at once.
pub(crate) fn flusher(start_ns: u64, kernel: &mut Kernel, clock: &mut Clock, threads: &mut Threads) -> (u64, Stop) {
    kernel.set_now_ns(start_ns);
    kernel.engine.flush(&mut kernel.hw);
    let bill = kernel.settle(start_ns, clock, threads);
    let t = threads.flusher();
    threads[t].begin_wait();
    (start_ns + bill.worker_ns(), Stop::Blocked(PsiState::Idle))
}

/// The worker of zswap: a step of it.
pub(crate) fn zswap(start_ns: u64, kernel: &mut Kernel, clock: &mut Clock, threads: &mut Threads) -> (u64, Stop) {
    kernel.set_now_ns(start_ns);
    let step = kernel.engine.zswap_step(&mut kernel.hw);
    // What reclaim for its pages would have had to wait for does not hold it up.
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
