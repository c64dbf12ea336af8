//! Waits of CPUs for each other.

/// Locks of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct LockResult {
    /// Name of the kind of lock.
    pub name: &'static str,
    /// Times that locks of this kind were taken.
    pub acquisitions: u64,
    /// Times that a CPU had to wait for a lock.
    pub contended: u64,
    /// Seconds that all locks of this kind were held, summed.
    pub hold_seconds: f64,
    /// Seconds that CPUs waited for locks of this kind, summed.
    pub wait_seconds: f64,
}

/// Locks and interrupts between CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentionResult {
    /// Figures of locks, by kind.
    pub locks: Vec<LockResult>,
    /// Flushes of TLBs that interrupted other CPUs.
    pub flushes: u64,
    /// Interrupts that these flushes sent, one for each CPU.
    pub interrupts: u64,
    /// Seconds that CPUs waited for flushes they asked for.
    pub flush_seconds: f64,
    /// Seconds that interrupted CPUs lost to interrupts.
    pub interrupted_seconds: f64,
}

impl ContentionResult {
    /// Figures of each kind of lock.
    pub(crate) const LOCK_METRICS: [&str; 4] = ["acquisitions", "contended", "hold_seconds", "wait_seconds"];
    /// Figures of interrupts.
    pub(crate) const METRICS: [&str; 4] = ["flushes", "interrupts", "flush_seconds", "interrupted_seconds"];

    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        match name.split_once('.') {
            Some((lock, field)) => {
                let lock = self.locks.iter().find(|l| l.name == lock)?;
                Some(match field {
                    "acquisitions" => lock.acquisitions as f64,
                    "contended" => lock.contended as f64,
                    "hold_seconds" => lock.hold_seconds,
                    "wait_seconds" => lock.wait_seconds,
                    _ => return None,
                })
            }
            None => Some(match name {
                "flushes" => self.flushes as f64,
                "interrupts" => self.interrupts as f64,
                "flush_seconds" => self.flush_seconds,
                "interrupted_seconds" => self.interrupted_seconds,
                _ => return None,
            }),
        }
    }
}
