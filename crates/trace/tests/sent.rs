//! Samples that people sent, which are not in the repository: each is read, and its accesses, pages
//! and writes are those that a script in Python found, which shares nothing with the readers.

use refault_testing::reports;
use refault_trace::{LoadOptions, OpenOptions, Trace, open};

/// Files, the format where nothing in them says it, and accesses, distinct pages and writes.
const SAMPLES: [(&str, &str, [usize; 3]); 43] = [
    ("alibaba-block.csv", "alibaba", [60, 25, 18]),
    ("biosnoop.txt", "", [120, 30, 36]),
    ("blkparse-D.txt", "", [137, 35, 37]),
    ("blkparse.txt", "", [137, 35, 37]),
    ("camelab.txt", "camelab", [60, 17, 18]),
    ("dinero.din", "dinero", [60, 17, 18]),
    ("drcachesim-view.txt", "", [60, 17, 18]),
    ("fio-v2.log", "", [60, 17, 18]),
    ("fio-v3.log", "", [60, 17, 18]),
    ("fio_lat.1.log", "fio-log", [60, 17, 18]),
    ("fiu.blkparse", "fiu", [60, 17, 18]),
    ("ftrace-filemap.txt", "", [60, 17, 0]),
    ("ibm-cos.txt", "ibm-cos", [60, 17, 18]),
    ("ids-crlf.txt", "", [60, 17, 0]),
    ("ids-hash64.txt", "", [60, 17, 0]),
    ("ids-str.txt", "libcachesim-txt", [60, 17, 0]),
    ("ids.txt", "", [60, 17, 0]),
    ("lcs-alpha.csv", "", [60, 13, 0]),
    ("lcs-num.csv", "", [60, 17, 0]),
    ("meta-kv-2022.csv", "", [60, 17, 18]),
    ("meta-kv-old.csv", "", [60, 17, 18]),
    ("mqsim.trace", "mqsim", [60, 17, 18]),
    ("msr-crlf.csv", "", [60, 17, 18]),
    ("msr-header.csv", "", [60, 17, 18]),
    ("msr-lower.csv", "", [60, 17, 18]),
    ("msr-space.csv", "", [60, 17, 18]),
    ("msr.csv", "", [60, 17, 18]),
    ("msr.csv.zst", "", [60, 17, 18]),
    ("msr.tar", "", [60, 17, 18]),
    ("msr.tar.gz", "", [60, 17, 18]),
    ("msr.tar.zst", "", [60, 17, 18]),
    ("perf-script.txt", "", [60, 17, 0]),
    ("perf-trace-F.txt", "", [60, 17, 0]),
    ("pinatrace.out", "pinatrace", [60, 17, 18]),
    ("prospero.txt", "prospero", [60, 17, 18]),
    ("ramulator.trace", "ramulator", [60, 17, 18]),
    ("sda.blktrace.0", "", [60, 17, 0]),
    ("strace.txt", "", [60, 17, 0]),
    ("systor17.csv", "", [60, 17, 18]),
    ("tencent-cbs.csv", "tencent", [60, 25, 18]),
    ("trace-cmd-block.txt", "", [120, 30, 36]),
    ("twitter.csv", "twitter", [60, 17, 18]),
    ("umass-spc.csv", "spc", [60, 25, 18]),
];

#[test]
fn samples_have_the_accesses_that_were_counted() {
    let Some(reports) = reports() else { return };
    for (file, format, want) in SAMPLES {
        let mut opts = OpenOptions::default();
        if !format.is_empty() {
            opts.set_format(format).expect("a format");
        }
        let mut source = open(&reports.join("formats").join(file), &opts).unwrap_or_else(|e| panic!("{e}"));
        let trace = Trace::load(&mut source, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let writes = trace.accesses.iter().filter(|access| access.is_write()).count();
        assert_eq!([trace.accesses.len(), trace.footprint_pages() as usize, writes], want, "{file}");
    }
}

/// Files without an order of accesses are refused in a line that says what they are.
#[test]
fn samples_without_accesses_are_refused() {
    let Some(reports) = reports() else { return };
    for (file, what) in [("damo-raw.txt", "DAMON"), ("mincore-fincore.txt", "fincore"), ("perf-mem.txt", "perf mem")] {
        let error = open(&reports.join("formats").join(file), &OpenOptions::default()).err().expect(file).to_string();
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    }
}
