//! The rows that miss their bands, by the mechanism that is missing: the only place that names
//! them.

use super::report::Report;

/// What the lab does not have, and the rows that miss for want of it.
#[derive(Debug)]
pub struct Missing {
    /// A name for it.
    pub name: &'static str,
    /// What it is, and how it shows.
    pub what: &'static str,
    /// The rows, as `BENCHMARK: LABEL`, with `, VARIANT` or `, OF / TO` if there are more than two.
    pub rows: &'static [&'static str],
}

/// At the default scales and seeds.
pub const KNOWN: &[Missing] = &[
    Missing {
        name: "one-run",
        what: "the published figure is of one sequence of random numbers, ours the mean of eight: \
            of 158 such bands of 95 % eight miss by chance, and neighbours in a sequence do so \
            together",
        rows: &[
            "thp-swap-a: iteration 1, before",
            "thp-swap-a: iteration 1, before-cached",
            "thp-swap-a-s: iteration 98, after-cached",
            "thp-swap-a-s: iteration 99, after",
            "thp-swap-none: iteration 1, before",
            "thp-swap-none: iteration 1, before-cached",
            "thp-swap-none: iteration 4, after-cached",
            "thp-swap-none: iteration 7, after-cached",
            "thp-swap-none: iteration 8, after",
            "thp-swap-s: iteration 2, after",
            "thp-swap-s: iteration 6, after",
            "thp-swap-s: iteration 6, after-cached",
            "thp-swap-s: iteration 7, after",
            "thp-swap-s: iteration 7, after-cached",
            "thp-swap-s: iteration 8, after-cached",
            "thp-swap-s: iteration 12, after-cached",
        ],
    },
    Missing {
        name: "slot-caches",
        what: "without the per-CPU caches of slots that Linux had then, single pages leave fewer \
            clusters in use; with them two of three figures are met, and the third comes near",
        rows: &[
            "thp-swap-a-s: iterations with any of 100, after",
            "thp-swap-a-s: iterations with any of 100, after-cached",
            "thp-swap-a-s: mean of 1 to 100, after",
        ],
    },
    Missing {
        name: "6.6-rc",
        what: "the published kernel is older than December 2023: where cold file pages are born, and \
            which are protected in sorting, was another rule. Under that of 6.12 pages that are read \
            several times let the side before swap, too, and little is left to gain",
        rows: &[
            "stock-level: transactions",
            "stock-level: vmstat.workingset_activate_file",
            "stock-level: vmstat.workingset_restore_file",
            "stock-level: share of file refaults restored",
            "stock-level: vmstat.workingset_refault_anon",
            "stock-level: vmstat.workingset_activate_anon",
            "stock-level: vmstat.workingset_restore_anon",
            "stock-level: swap used (0 and 1652 MB)",
        ],
    },
    Missing {
        name: "third-kernel",
        what: "which rule coupled deactivation to reclaim is not published; here active file pages \
            go in proportion with every scan, and that follows the warm set as refaults do",
        rows: &[
            "fileserver: warm, coupled / before",
            "fileserver: cold, coupled / before",
            "fileserver: real, coupled / before",
        ],
    },
    Missing {
        name: "other-files",
        what: "far more had been read on the published machine than the data: 47,860 nodes of \
            shadows are 11.7 GiB evicted; the loading of the data, and other programs, are not \
            in the scenario",
        rows: &[
            "stock-level: vmstat.workingset_nodes",
            "stock-level: vmstat.workingset_nodereclaim",
            "stock-level: free (790 and 283 MB)",
        ],
    },
    Missing {
        name: "disk",
        what: "the disk of the scenario is as fast before and after; the published one was 2 % \
            slower after, between other work",
        rows: &["stock-level: vmstat.workingset_refault_file"],
    },
    Missing {
        name: "cost-of-a-miss",
        what: "what a read that misses takes of a CPU beside one that hits is an estimate here; \
            reads in flight are none on a RAM disk, which is done when it is asked",
        rows: &["fio-zipf-2g: IOPS", "fio-zipf-4g: IOPS"],
    },
    Missing {
        name: "v14",
        what: "the published kernel is the posting of August 2022 (v14), whose reclaim over \
            groups had neither of the backoffs of 6.1; and locks, which a scanning kswapd \
            holds",
        rows: &[
            "mixed-memcg: fio, without / classic",
            "mixed-memcg: fio, with / classic",
            "mixed-memcg: memcached, without / classic",
            "mixed-memcg: memcached, with / classic",
        ],
    },
    Missing {
        name: "hot-pages",
        what: "how many pages were candidates on the published machine (its heap, its time, how \
            fast its page tables were scanned) is not known; here the threshold keeps more \
            away",
        rows: &[
            "pmbench: score, auto / limit",
            "pmbench: promoted, latency / base",
            "pmbench: promoted, limit / latency",
            "pmbench: promoted, auto / limit",
        ],
    },
    Missing {
        name: "five-builds",
        what: "the published counters of before are of five builds in a row, as their sum says, \
            those of after of one; here both are of one",
        rows: &["swap-build-mthp: 64 KiB whole", "swap-build-mthp: 512 KiB whole", "swap-build-mthp: 2048 KiB whole"],
    },
    Missing {
        name: "the-build",
        what: "the mixture of folios that a compiler makes is not published: areas and heaps are \
            chosen, and the smallest and the largest sizes depend on them",
        rows: &[
            "swap-build-mthp: 16 KiB split",
            "swap-build-mthp: 32 KiB split",
            "swap-build-mthp: 64 KiB split",
            "swap-build-mthp: 128 KiB split",
            "swap-build-mthp: 256 KiB split",
            "swap-build-mthp: 1024 KiB split",
            "swap-build-mthp: 2048 KiB split",
        ],
    },
    Missing {
        name: "locks",
        what: "CPUs do not wait for each other here: no lock of the swap device, no interrupts \
            between processors. That is most of the published time, and what the change \
            removes of it",
        rows: &["swap-build-mthp: real", "swap-build-4k: real", "swap-build-4k: system", "swap-build-2zram: system"],
    },
    Missing {
        name: "the-ssd",
        what: "what the published SSD gained is not known: neither the device nor its load is \
            described",
        rows: &["swap-build-ssd: real"],
    },
];

/// What is missing for this row, if that is known.
pub(super) fn missing(row: &str) -> Option<&'static Missing> {
    KNOWN.iter().find(|missing| missing.rows.contains(&row))
}

/// Where the known misses are not what came out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Differences {
    /// Rows that miss, of which it is not known.
    pub(super) new: Vec<String>,
    /// Rows that are known to miss, and are met or not there.
    pub(super) met_again: Vec<String>,
}

impl Differences {
    pub(super) fn of(reports: &[Report]) -> Differences {
        let mut found = Differences::default();
        for report in reports {
            let missed: Vec<String> = report.verdicts().filter(|(_, within)| !within).map(|(row, _)| row).collect();
            // Other scales and seeds give other numbers, so that some miss less.
            if report.is_default {
                let lead = format!("{}: ", report.name);
                let known = KNOWN.iter().flat_map(|missing| missing.rows).filter(|row| row.starts_with(&lead));
                found
                    .met_again
                    .extend(known.filter(|row| !missed.iter().any(|m| m == *row)).map(|&row| row.to_owned()));
            }
            found.new.extend(missed.into_iter().filter(|row| missing(row).is_none()));
        }
        found
    }

    pub(super) fn is_none(&self) -> bool {
        self.new.is_empty() && self.met_again.is_empty()
    }
}
