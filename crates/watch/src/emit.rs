//! LimitAdvice as settings of Kubernetes and systemd: text to review, which nobody applies.

use crate::watched::GroupReport;
use refault::memory_size::human;
use refault::words::printable;

/// System whose settings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Resources of a container.
    K8s,
    /// A drop-in of a unit.
    Systemd,
}

/// Share of the way from the request to the limit at which Kubernetes throttles
/// (`memoryThrottlingFactor`).
const THROTTLING_FACTOR: f64 = 0.9;

/// Room above the smallest size, as a share of it.
const ROOM: f64 = 0.1;

/// Sizes are whole multiples of this.
const STEP: u64 = 1 << 20;

/// Settings for a group, or why there are none.
pub fn emit(group: &GroupReport, to: Emit) -> String {
    let about = group_line(group);
    let Some(smallest) = group.advice.smallest else {
        return format!("{about}# no settings: {}\n", printable(&group.advice.why.join("; ")));
    };
    let request = smallest.high_bytes.div_ceil(STEP) * STEP;
    let limit = ((request as f64 * (1.0 + ROOM)) as u64).div_ceil(STEP) * STEP;
    let high = request + ((limit - request) as f64 * THROTTLING_FACTOR) as u64 / 4096 * 4096;
    let sizes = format!(
        "# smallest: {}{} ({} to {}); room of {:.0} % above its upper bound\n",
        if smallest.is_at_most { "at most " } else { "" },
        human(smallest.bytes),
        human(smallest.low_bytes),
        human(smallest.high_bytes),
        100.0 * ROOM
    );
    let mib = |bytes: u64| format!("{}Mi", bytes >> 20);
    let text = match to {
        Emit::K8s => format!(
            "resources:\n  requests:\n    memory: {}\n  limits:\n    memory: {}\n# memory.high would be {high} with a \
             memoryThrottlingFactor of {THROTTLING_FACTOR}\n",
            mib(request),
            mib(limit)
        ),
        Emit::Systemd => format!("[Service]\nMemoryHigh={request}\nMemoryMax={limit}\n"),
    };
    about + &sizes + &text
}

fn group_line(group: &GroupReport) -> String {
    let trust = group.advice.trust.name();
    let why = if group.advice.why.is_empty() { String::new() } else { format!(": {}", group.advice.why.join("; ")) };
    format!("# {}\n# trust {trust}{}\n# to review: nothing applies it\n", printable(&group.path), printable(&why))
}
