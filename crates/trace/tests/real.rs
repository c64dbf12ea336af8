//! The readers on real traces. They are not part of the repository: where they are absent, tests
//! say so.

use refault_testing::{oracle, reports, traces};
use refault_trace::{Format, LoadOptions, ObjectKind, OpenOptions, RecordSource, Trace, TraceError, open, read_header};
use std::path::{Path, PathBuf};

/// A file of those that are shared: `traces/…` or `oracle/…`.
fn shared(name: &str) -> Option<PathBuf> {
    match name.split_once('/') {
        Some(("traces", rest)) => Some(traces()?.join(rest)),
        Some(("oracle", rest)) => Some(oracle()?.join(rest)),
        _ => panic!("{name} is no shared file"),
    }
}

fn load(path: &Path, opts: &OpenOptions) -> Result<Trace, TraceError> {
    Trace::load(&mut open(path, opts)?, &LoadOptions::default())
}

#[track_caller]
fn counts(name: &str, opts: &OpenOptions, format: Format, accesses: usize, distinct: u32) {
    let Some(path) = shared(name) else { return };
    let source = open(&path, opts).expect("opens");
    assert_eq!(source.header().format, format, "{name}");
    // A trace that is read as it was meant is not doubted.
    assert_eq!(read_header(&path, opts).expect("reads").doubts, [""; 0], "{name}");
    let trace = load(&path, opts).expect("loads");
    assert_eq!((trace.accesses.len(), trace.footprint_pages()), (accesses, distinct), "{name}");
}

#[test]
fn arc() {
    let opts = OpenOptions::default();
    counts("traces/arc/OLTP.lis.zst", &opts, Format::Arc, 914_145, 186_880);
}

#[test]
fn lirs() {
    let opts = OpenOptions { format: Some(Format::Lirs), ..OpenOptions::default() };
    for (name, accesses, distinct) in [
        ("loop", 505_500, 1_011),
        ("2_pools", 100_000, 9_939),
        ("sprite", 133_996, 7_075),
        ("zigzag", 52_001, 2_001),
        ("cpp", 9_047, 1_223),
        ("ps", 10_448, 3_083),
    ] {
        let name = format!("traces/lirs/{name}.trace.gz");
        counts(&name, &opts, Format::Lirs, accesses, distinct);
        // Without being told, a number a line is plain text, which reads the same.
        counts(&name, &OpenOptions::default(), Format::Plain, accesses, distinct);
    }
}

#[test]
fn oracle_general_raw() {
    let opts = OpenOptions { raw_ids: true, ..OpenOptions::default() };
    let name = "traces/block/cloudPhysicsIO.oracleGeneral.bin";
    counts(name, &opts, Format::OracleGeneral, 113_872, 48_974);
}

#[test]
fn sectors_fold_into_pages() {
    let opts = OpenOptions::default();
    let name = "traces/block/cloudPhysicsIO.oracleGeneral.bin";
    counts(name, &opts, Format::OracleGeneral, 1_182_153, 268_270);
    let name = "traces/block/cloudPhysicsIO.vscsi";
    counts(name, &opts, Format::Vscsi, 1_141_869, 269_210);
}

#[test]
fn the_same_disk_in_two_formats() {
    let (Some(oracle), Some(vscsi)) =
        (shared("traces/block/cloudPhysicsIO.oracleGeneral.bin"), shared("traces/block/cloudPhysicsIO.vscsi"))
    else {
        return;
    };
    let opts = OpenOptions::default();
    // The sizes of the two differ for a part of the requests; sectors and order do not.
    let starts = |path: &Path| {
        let mut source = open(path, &opts).expect("opens");
        let (mut chunk, mut pages) = (Vec::new(), Vec::new());
        while source.next_chunk(&mut chunk).expect("reads") {
            pages.extend(chunk.iter().map(|record| record.page));
        }
        pages
    };
    assert!(starts(&oracle) == starts(&vscsi));
}

#[test]
fn addresses() {
    let opts = OpenOptions::default();
    counts("traces/address/gcc.trace.gz", &opts, Format::Address, 515_683, 294);
    counts("traces/address/mcf.trace.gz", &opts, Format::Address, 727_230, 1_442);
}

#[test]
fn drmemtrace() {
    let opts = OpenOptions::default();
    let name = "traces/drmemtrace/simple_app.trace.zip";
    counts(name, &opts, Format::Drmemtrace, 43_845, 84);
}

#[test]
fn pgtrace() {
    for (name, file, anon) in
        [("loop-1.25x", true, false), ("readers-uneven-anon", true, true), ("anon-zipf", false, true)]
    {
        let Some(path) = shared(&format!("oracle/traces/{name}.trace.zst")) else {
            return;
        };
        let trace = load(&path, &OpenOptions::default()).expect("loads");
        let touched = |kind| {
            let mut objects = trace.objects.iter();
            objects.any(|o| o.kind == kind && !o.indices.is_empty())
        };
        assert_eq!(touched(ObjectKind::File), file, "{name}");
        assert_eq!(touched(ObjectKind::Anon), anon, "{name}");
        assert_eq!(trace.name, name);
    }
}

/// Samples of formats: those that are read, and whether their units are in doubt.
#[test]
fn regression_samples_of_reports_are_read_doubted_or_named() {
    let Some(reports) = reports() else { return };
    let honest = [
        "biosnoop.txt",
        "blkparse-D.txt",
        "blkparse.txt",
        "block.oracleGeneral",
        "drcachesim-view.txt",
        "fio-v2.log",
        "fio-v3.log",
        "foo.csv",
        "ftrace-filemap.txt",
        "ids-crlf.txt",
        "ids.txt",
        "lackey.txt",
        "lcs-alpha.csv",
        "lcs-num.csv",
        "meta-kv-2022.csv",
        "meta-kv-old.csv",
        "msr-crlf.csv",
        "msr-header.csv",
        "msr-lower.csv",
        "msr-space.csv",
        "msr.csv",
        "msr.csv.zst",
        "msr.tar",
        "msr.tar.gz",
        "msr.tar.zst",
        "perf-script.txt",
        "perf-trace-F.txt",
        "sda.blktrace.0",
        "strace.txt",
        "systor17.csv",
        "trace-cmd-block.txt",
        "v1.vscsi",
        "v2.vscsi",
    ];
    let doubted = ["ids-hash64.txt", "kv20k.oracleGeneral.zst", "kvsmall.oracleGeneral"];
    let mut files = 0;
    for entry in std::fs::read_dir(reports.join("formats")).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let header = read_header(&path, &OpenOptions::default());
        let strict = read_header(&path, &OpenOptions { strict: true, ..OpenOptions::default() });
        files += 1;
        match header {
            Ok(header) => {
                assert_eq!(header.doubts.is_empty(), honest.contains(&&*name), "{name}: {:?}", header.doubts);
                assert_eq!(!header.doubts.is_empty(), doubted.contains(&&*name), "{name}: {:?}", header.doubts);
                assert_eq!(strict.is_err(), doubted.contains(&&*name), "{name}");
            }
            // Keys beyond sectors.
            Err(error) if name == "kv.oracleGeneral" => assert!(error.to_string().contains("--raw-ids"), "{error}"),
            // Words are keys.
            Err(error) if name == "ids-str.txt" => assert!(error.to_string().contains("'columns:key'"), "{error}"),
            Err(error) => assert!(error.to_string().contains("not recognised: it looks like "), "{error}"),
        }
    }
    assert!(files >= 50, "{files}");
}
