//! The rows that miss their bands, by the mechanism that is missing: the only place that names
//! them.

use super::result::BenchReport;

/// Mechanism that the lab lacks, and the rows that miss for want of it.
#[derive(Debug)]
pub struct MissingMechanism {
    /// A name for it.
    pub name: &'static str,
    /// Description of the mechanism, and how its absence shows.
    pub what: &'static str,
    /// The rows, as `BENCHMARK: LABEL`, with `, VARIANT` or `, OF / TO` if there are more than two.
    pub rows: &'static [&'static str],
}

/// At the default scales and seeds.
pub const KNOWN: &[MissingMechanism] = &[
    MissingMechanism {
        name: "first-rounds",
        what: "with single pages beside, the share of folios that are split grows a point faster in \
            the first sixteen iterations than in the published run; why is not known",
        rows: &["thp-swap-s: mean of 1 to 16, after", "thp-swap-s: median of 1 to 16, after"],
    },
    MissingMechanism {
        name: "read-again",
        what: "after the change more refaults are restored than before it, for four of five blocks are \
            read five times in every round. They were read otherwise: with all blocks read so \
            71 % of refaults are restored before, where 79 % are published",
        rows: &[
            "stock-level: vmstat.workingset_activate_file",
            "stock-level: vmstat.workingset_restore_file",
            "stock-level: share of file refaults restored",
        ],
    },
    MissingMechanism {
        name: "idle-heaps",
        what: "idle are seven eighths of the secondaries here, and nothing of them comes back. Where the \
            cache of the primary is not written anew in order, but touched at random as often, 88,000 \
            pages do, five times as many as published",
        rows: &[
            "stock-level: vmstat.workingset_refault_anon",
            "stock-level: vmstat.workingset_activate_anon",
            "stock-level: vmstat.workingset_restore_anon",
        ],
    },
    MissingMechanism {
        name: "third-kernel",
        what: "which rule coupled deactivation to reclaim is not published; here active file pages \
            go in proportion with every scan, and that follows the warm set as refaults do",
        rows: &[
            "fileserver: warm, coupled / before",
            "fileserver: cold, coupled / before",
            "fileserver: real, coupled / before",
        ],
    },
    MissingMechanism {
        name: "other-files",
        what: "far more had been read on the published machine than the data: 47,860 nodes of shadows are \
            11.7 GiB evicted. 3.95 GB of files for each secondary give 48,000 before, and 20,000 are \
            reclaimed after; but then half of the data is found before, too",
        rows: &[
            "stock-level: vmstat.workingset_nodes",
            "stock-level: vmstat.workingset_nodereclaim",
            "stock-level: free (790 and 283 MB)",
        ],
    },
    MissingMechanism {
        name: "6.6-rc",
        what: "the change goes by the active memory of the group, which is fio's own: without it nothing \
            changes, with it and the published rates before a quarter of the misses are gone. Why \
            fewer were on the published kernel is not known",
        rows: &["fio-zipf-2g: IOPS", "fio-zipf-4g: IOPS"],
    },
    MissingMechanism {
        name: "old-loop",
        what: "with the published rate and refaults before, both loops keep the same pages: refaults \
            are x1.00 with a skew of 0.1, x1.01 with 0.3, x1.04 with 0.6. 32 threads in reclaim \
            beside each other, and two nodes, are not in the lab",
        rows: &[
            "mongodb-ycsb: operations",
            "mongodb-ycsb: refaults of an operation",
            "mongodb-ycsb: bytes read for an operation",
        ],
    },
    MissingMechanism {
        name: "cheap-swap",
        what: "fio has twice the published rate before, whatever an interrupt between CPUs costs: 2.43 \
            M with 0.6 us, 2.45 M with 4 us (memcached pays), 2.39 M with a wait of 20 us; a lock \
            that is handed over in 4 us gives 2.60 M. On the published machine fio alone reads a \
            third less by two lists than by generations, here as much. It is not the time that a \
            list is locked for a page: with the 200 ns measured where it is in no cache, 2.46 M",
        rows: &[
            "mixed-memcg: fio, without / classic",
            "mixed-memcg: fio, with / without",
            "mixed-memcg: fio, with / classic",
            "mixed-memcg: memcached, without / classic",
            "mixed-memcg: memcached, with / without",
        ],
    },
    MissingMechanism {
        name: "hot-pages",
        what: "with as many CPUs as have the published score before, the threshold alone keeps two of \
            three pages away where one of four is published, and the fewer pages it lets by, the \
            less is left for the limit and its adjustment: 12 CPUs pass 21 %, 23 pass 37 %",
        rows: &[
            "pmbench: score, limit / latency",
            "pmbench: score, auto / limit",
            "pmbench: score, auto / base",
            "pmbench: promoted, latency / base",
        ],
    },
    MissingMechanism {
        name: "five-builds",
        what: "the published counters of before are of five builds in a row, as their sum says, \
            those of after of one; here both are of one",
        rows: &["swap-build-mthp: 512 KiB whole", "swap-build-mthp: 2048 KiB whole"],
    },
    MissingMechanism {
        name: "the-build",
        what: "the mixture of folios that a compiler makes is not published: areas and heaps are \
            chosen, and the smallest and the largest sizes depend on them",
        rows: &[
            "swap-build-mthp: 16 KiB split",
            "swap-build-mthp: 32 KiB split",
            "swap-build-mthp: 64 KiB split",
            "swap-build-mthp: 128 KiB split",
            "swap-build-mthp: 256 KiB split",
            "swap-build-mthp: 512 KiB split",
            "swap-build-mthp: 1024 KiB split",
            "swap-build-mthp: 2048 KiB split",
        ],
    },
    MissingMechanism {
        name: "locks",
        what: "locks and interrupts are a tenth of system time here, and system time a tenth of what \
            was published. Hold times are those of one CPU, without the cache misses on what \
            another CPU wrote under the lock; and what a build asks of the kernel beside memory is \
            not in the scenario",
        rows: &["swap-build-mthp: real", "swap-build-4k: real", "swap-build-4k: system", "swap-build-2zram: system"],
    },
    MissingMechanism {
        name: "the-ssd",
        what: "what the published SSD gained is not known: neither the device nor its load is \
            described",
        rows: &["swap-build-ssd: real"],
    },
];

/// Missing mechanism that explains this row, if it is known.
pub fn missing(row: &str) -> Option<&'static MissingMechanism> {
    KNOWN.iter().find(|missing| missing.rows.contains(&row))
}

/// Missing mechanisms of all rows that miss, each once.
pub fn all_missing(reports: &[BenchReport]) -> Vec<&'static MissingMechanism> {
    let mut all: Vec<&'static MissingMechanism> = Vec::new();
    for (row, _) in reports.iter().flat_map(BenchReport::verdicts).filter(|(_, within)| !within) {
        all.extend(missing(&row).filter(|one| !all.iter().any(|known| known.name == one.name)));
    }
    all
}

/// Rows of a report that miss for want of one mechanism.
#[derive(Clone, Debug)]
pub struct Missed {
    /// The name of the mechanism; `?`: it is not known.
    pub name: &'static str,
    /// Description of the mechanism.
    pub what: &'static str,
    /// The rows, without the name of the benchmark.
    pub rows: Vec<String>,
}

impl BenchReport {
    /// Missing mechanisms where bands are missed, each with its rows.
    pub fn missed(&self) -> Vec<Missed> {
        let mut found: Vec<Missed> = Vec::new();
        for (row, _) in self.verdicts().filter(|(_, within)| !within) {
            let short = row.strip_prefix(&format!("{}: ", self.name)).unwrap_or(&row).to_owned();
            let (name, what) = missing(&row).map_or(("?", "not known"), |missing| (missing.name, missing.what));
            match found.iter_mut().find(|known| known.name == name) {
                Some(known) => known.rows.push(short),
                None => found.push(Missed { name, what, rows: vec![short] }),
            }
        }
        found
    }
}

/// Where the known misses are not what came out.
#[derive(Debug, Default, PartialEq)]
pub struct Differences {
    /// Rows that miss and are not in the list of known misses.
    pub new: Vec<String>,
    /// Rows that are known to miss, and are met or not there.
    pub met_again: Vec<String>,
}

impl Differences {
    /// Compares all bands of some reports with the known misses.
    pub fn of(reports: &[BenchReport]) -> Differences {
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

    /// Whether everything came out as is known.
    pub fn is_none(&self) -> bool {
        self.new.is_empty() && self.met_again.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(name: &str) -> String {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// The lines of the table of what is missing, as the documentation has them.
    fn table() -> String {
        let line = |missing: &MissingMechanism| {
            let mut parts: Vec<String> = Vec::new();
            let mut last = "";
            for (bench, label) in missing.rows.iter().filter_map(|row| row.split_once(": ")) {
                let label = label.trim_start_matches("vmstat.workingset_");
                parts.push(if bench == last { label.to_owned() } else { format!("`{bench}`: {label}") });
                last = bench;
            }
            let rows = parts.join(", ").replace(", `", "; `");
            format!("| `{}` | {} | {rows} |\n", missing.name, missing.what)
        };
        KNOWN.iter().map(line).collect()
    }

    #[test]
    fn the_table_of_the_documentation_is_that_of_the_known_misses() {
        let (page, table) = (doc("benchmarks.md"), table());
        assert!(page.contains(&table), "docs/benchmarks.md is to have this table:\n{table}");
    }

    #[test]
    fn the_stored_summary_misses_what_is_known_to_miss() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/data/bench-summary.txt");
        let summary = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let missed = summary.lines().filter_map(|line| line.split_once("  MISS "));
        let mut found: Vec<(String, &str)> = missed
            .map(|(line, name)| (line.split("   ").next().unwrap_or_default().trim().to_owned(), name.trim()))
            .collect();
        let of = |m: &'static MissingMechanism| m.rows.iter().map(|row| ((*row).to_owned(), m.name));
        let mut known: Vec<(String, &str)> = KNOWN.iter().flat_map(of).collect();
        found.sort();
        known.sort();
        assert_eq!(found, known);
        let met = summary.lines().filter(|line| line.ends_with("  ok")).count();
        let all = met + found.len();
        assert!(summary.contains(&format!("{met} of {all} bands are met")), "{met} of {all} lines of the summary");
        let sentence = format!("{met} of {all} are met; the other {} miss:", found.len());
        assert!(doc("benchmarks.md").contains(&sentence), "docs/benchmarks.md is to say: {sentence}");
        // README said the figures of the month before.
        for page in ["../README.md", "benchmarks.md", "explanation/how-the-lab-keeps-time.md"] {
            let words = doc(page).split_whitespace().collect::<Vec<_>>().join(" ");
            let of_all = format!(" of {all} ");
            let said: Vec<_> = words.match_indices(&of_all).map(|(at, _)| words[..at].rsplit(' ').next()).collect();
            let is_met = |n: &Option<&str>| *n == Some(met.to_string().as_str());
            assert!(!said.is_empty() && said.iter().all(is_met), "{page} is to say {met} of {all}, not {said:?}");
        }
    }
}
