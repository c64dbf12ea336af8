//! CPUs that interrupt each other to have entries of their TLBs flushed.

use super::lock::Lock;
use super::spec::InterruptCosts;

/// Counts and times of interrupts, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InterruptStats {
    /// Flushes that had to interrupt someone.
    pub(crate) flushes: u64,
    /// CPUs that were interrupted by them.
    pub(crate) interrupts: u64,
    /// Nanoseconds that CPUs which asked waited, and that interrupted CPUs lost.
    pub(crate) wait_ns: u64,
    pub(crate) lost_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The program whose thread the CPU runs; none: it is idle, or runs the kernel, which leaves
    /// flushes for later (lazy TLB).
    program: Option<u32>,
    /// Times at which the CPU handles interrupts, one at a time.
    handler: Lock,
    lost_ns: u64,
}

/// All CPUs.
#[derive(Clone, Debug)]
pub(super) struct Interrupts {
    cpus: Vec<Cpu>,
    costs: InterruptCosts,
    stats: InterruptStats,
}

impl Interrupts {
    pub(super) fn new(cpus: usize, costs: InterruptCosts) -> Interrupts {
        Interrupts { cpus: vec![Cpu::default(); cpus], costs, stats: InterruptStats::default() }
    }

    pub(super) fn set_running(&mut self, cpu: usize, program: Option<u32>) {
        self.cpus[cpu].program = program;
    }

    pub(super) fn take_lost_ns(&mut self, cpu: usize) -> u64 {
        std::mem::take(&mut self.cpus[cpu].lost_ns)
    }

    /// Flushes the TLBs of CPUs that run these programs. Returns the nanoseconds that the asking
    /// CPU waits until no other CPU can reach the unmapped pages.
    pub(super) fn flush(&mut self, cpu: usize, at_ns: u64, programs: &[u32], floor_ns: u64) -> u64 {
        let costs = self.costs;
        let (mut sent, mut answered) = (0, at_ns);
        for (_, target) in self.cpus.iter_mut().enumerate().filter(|&(number, _)| number != cpu) {
            if !target.program.is_some_and(|p| programs.contains(&p)) {
                continue;
            }
            let reached = at_ns + sent * costs.each_ns;
            target.handler.forget_before(floor_ns);
            answered = answered.max(reached + target.handler.acquire(reached, costs.lost_ns, 0));
            target.lost_ns += costs.lost_ns;
            sent += 1;
        }
        if sent == 0 {
            return 0;
        }
        let wait_ns = answered - at_ns + costs.wait_ns;
        self.stats.flushes += 1;
        self.stats.interrupts += sent;
        self.stats.wait_ns += wait_ns;
        self.stats.lost_ns += sent * costs.lost_ns;
        wait_ns
    }

    pub(super) fn stats(&self) -> InterruptStats {
        self.stats
    }

    /// Checks that only CPUs that run a program were interrupted, and by one interrupt at a time.
    pub(super) fn validate(&self) -> Result<(), String> {
        for (number, cpu) in self.cpus.iter().enumerate() {
            cpu.handler.validate().map_err(|what| format!("CPU {number}: its interrupt handler {what}"))?;
            if cpu.program.is_none() && cpu.lost_ns > 0 {
                return Err(format!("CPU {number} runs no program and lost {} ns to interrupts", cpu.lost_ns));
            }
        }
        Ok(())
    }
}
