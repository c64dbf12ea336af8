//! Needs of a test that a machine may not meet, and what becomes of the test where it does not.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::Mutex;

/// Need that a machine may lack. Without it a test says `skipped: NAME: why` and passes; with
/// `REFAULT_REQUIRE=NAME,NAME,…` (or `all`) each skip of these names is a failure.
///
/// | name | what |
/// |---|---|
/// | `uffd` | userfaultfd with all that the pager asks of it: regions, mapped files, `refault run` |
/// | `uffd-kernel` | faults of the kernel are served, too: memory can be handed to system calls |
/// | `refault-run` | the program `refault-run` beside the command, as `cargo test --workspace` builds it |
/// | `oracle` | `../shared/oracle`, the recordings of real kernels |
/// | `traces` | `../shared/traces`, public traces and published miss ratios |
/// | `recordings` | `../shared/recordings`, recordings of real programs by `refault record` |
/// | `reports` | `../shared/reports`, scenarios and samples of formats after public reports |
/// | `cc` | a C compiler |
/// | `python` | `python3` |
/// | `browser` | `chromium`, `node`, and the packages of `crates/report/tests/browser` |
/// | `prometheus` | `prometheus_client` of Python, a parser of OpenMetrics |
/// | `mount` | the right to mount a file system in a namespace of one's own |
/// | `mlock` | the right to lock memory (`mlockall`) |
/// | `guards` | `MADV_GUARD_INSTALL`, Linux 6.13 |
/// | `io-uring` | io_uring |
/// | `pagemap` | `PAGEMAP_SCAN`, Linux 6.7 |
/// | `tracefs` | tracepoints of the page cache by `perf_event_open`: root, and Linux 6.12 or later |
/// | `latency` | the right to open `/dev/cpu_dma_latency` |
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the table above says what they are")]
pub enum Need {
    Uffd,
    UffdKernel,
    RefaultRun,
    Oracle,
    Traces,
    Recordings,
    Reports,
    Cc,
    Python,
    Browser,
    Prometheus,
    Mount,
    Mlock,
    Guards,
    IoUring,
    Pagemap,
    Latency,
    Tracefs,
}

impl Need {
    /// All of them.
    pub const ALL: [Need; 18] = [
        Need::Uffd,
        Need::UffdKernel,
        Need::RefaultRun,
        Need::Oracle,
        Need::Traces,
        Need::Recordings,
        Need::Reports,
        Need::Cc,
        Need::Python,
        Need::Browser,
        Need::Prometheus,
        Need::Mount,
        Need::Mlock,
        Need::Guards,
        Need::IoUring,
        Need::Pagemap,
        Need::Latency,
        Need::Tracefs,
    ];

    /// As in `REFAULT_REQUIRE`.
    pub fn name(self) -> &'static str {
        match self {
            Need::Uffd => "uffd",
            Need::UffdKernel => "uffd-kernel",
            Need::RefaultRun => "refault-run",
            Need::Oracle => "oracle",
            Need::Traces => "traces",
            Need::Recordings => "recordings",
            Need::Reports => "reports",
            Need::Cc => "cc",
            Need::Python => "python",
            Need::Browser => "browser",
            Need::Prometheus => "prometheus",
            Need::Mount => "mount",
            Need::Mlock => "mlock",
            Need::Guards => "guards",
            Need::IoUring => "io-uring",
            Need::Pagemap => "pagemap",
            Need::Latency => "latency",
            Need::Tracefs => "tracefs",
        }
    }
}

/// Needs that a list such as `uffd,oracle` requires; the error names a word that is none of the
/// names.
fn required(list: &str) -> Result<BTreeSet<Need>, String> {
    let mut all = BTreeSet::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match Need::ALL.into_iter().find(|need| need.name() == word) {
            Some(need) => _ = all.insert(need),
            None if word == "all" => all.extend(Need::ALL),
            None => {
                let names = Need::ALL.map(Need::name).join(", ");
                return Err(format!("REFAULT_REQUIRE: {word:?} is none of: all, {names}"));
            }
        }
    }
    Ok(all)
}

/// Says that a test is skipped, once for each need: past the harness, which shows nothing of tests
/// that pass.
///
/// # Panics
///
/// If `REFAULT_REQUIRE` names the need, or what is none.
#[track_caller]
pub fn absent(need: Need, why: impl Display) {
    static SAID: Mutex<BTreeSet<Need>> = Mutex::new(BTreeSet::new());
    let list = std::env::var("REFAULT_REQUIRE").unwrap_or_default();
    let required = required(&list).unwrap_or_else(|e| panic!("{e}"));
    let name = need.name();
    assert!(!required.contains(&need), "REFAULT_REQUIRE has {name}, and it is absent: {why}");
    let is_new = SAID.lock().is_ok_and(|mut said| said.insert(need));
    if is_new {
        // A closed standard error is no reason to fail.
        _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
    }
}

/// Unwraps what was found; `None`: the need is absent, as was said, and the test is to return.
///
/// # Panics
///
/// As [`absent`].
#[track_caller]
#[must_use = "without it the test has nothing to test"]
pub fn require<T>(need: Need, found: Result<T, impl Display>) -> Option<T> {
    found.map_err(|why| absent(need, why)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_is_what_is_required() {
        assert_eq!(required("").unwrap(), BTreeSet::new());
        assert_eq!(required("uffd, oracle,").unwrap(), BTreeSet::from([Need::Uffd, Need::Oracle]));
        assert_eq!(required("all").unwrap(), BTreeSet::from(Need::ALL));
        let error = required("uffd,orakel").unwrap_err();
        assert!(error.contains("\"orakel\"") && error.contains("uffd-kernel"), "{error}");
    }
}
