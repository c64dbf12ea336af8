//! The constants of contention, and where they are from.

/// Costs of an interrupt between CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptCosts {
    /// Nanoseconds that a CPU waits which asks one other for a flush.
    pub wait_ns: u64,
    /// Nanoseconds more for each further CPU that it asks.
    pub each_ns: u64,
    /// Nanoseconds that a CPU loses for each flush interrupt.
    pub lost_ns: u64,
}

impl InterruptCosts {
    /// In a virtual machine whose interrupts between CPUs go through the hypervisor. Measured on
    /// two CPUs (Linux 6.18, AMD EPYC of family 26): `munmap` of a page takes 11,662 ns more while
    /// another CPU runs a thread of the program; two flushes by `mprotect` 23,860 ns, of which that
    /// CPU loses 14,587. With two CPUs a further one cannot be measured: two cache lines that go
    /// to another CPU, 129 ns each, are what queuing a request there takes at least.
    pub const VIRTUAL: InterruptCosts = InterruptCosts { wait_ns: 11_662, each_ns: 258, lost_ns: 7_294 };
    /// Without a hypervisor. Cited, not measured: 1 us, and 200 ns for each CPU
    /// (<https://unseel.com/cs/tlb-shootdown>; 1 to 3 us in
    /// <https://newsletter.onedfrk.com/archive/b71d2c16-a8e5-450d-8eca-25d216781df7>). The loss of
    /// the other CPU is the share of it that was measured in the virtual machine.
    pub const BARE_METAL: InterruptCosts = InterruptCosts { wait_ns: 1_000, each_ns: 200, lost_ns: 625 };

    /// Both sets of costs, by name.
    pub const NAMED: [(&str, InterruptCosts); 2] =
        [("virtual", InterruptCosts::VIRTUAL), ("bare-metal", InterruptCosts::BARE_METAL)];
}

/// Constants of the waits of CPUs for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionSpec {
    /// Interrupts to flush TLBs.
    pub interrupts: InterruptCosts,
    /// From the end of one hold of a lock to the beginning of the next, by another CPU that waits.
    /// Measured: 240 ns, a ticket lock between two CPUs that each want it all the time.
    pub handover_ns: u64,
    /// Nanoseconds that one fault keeps the counter of its lock from others: it goes up and down.
    /// Estimate: two cache lines, 129 ns each as measured. (Two threads of a program that do
    /// nothing but fault and free take 890 ns more for each page than one, of which this is a
    /// part.)
    pub mmap_lock_ns: u64,
    /// Nanoseconds that the pool of zsmalloc is locked for an object. Estimate: a handover. (Two
    /// threads that do nothing but store on a zram device take 1,110 ns more for each page than
    /// one.)
    pub zsmalloc_ns: u64,
}

impl Default for ContentionSpec {
    fn default() -> Self {
        ContentionSpec { interrupts: InterruptCosts::VIRTUAL, handover_ns: 240, mmap_lock_ns: 258, zsmalloc_ns: 240 }
    }
}
