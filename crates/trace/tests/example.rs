//! The recorded example of the repository is what its README says it is.

use refault_trace::{LoadOptions, ObjectKind, OpenOptions, Summary, Trace, open};
use std::path::Path;

fn path() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sqlite.parquet"))
}

#[test]
fn the_figures_of_the_readme() {
    let mut source = open(path(), &OpenOptions::default()).expect("opens");
    let summary = Summary::of(&mut source).expect("reads");
    assert_eq!(summary.accesses, 496_081);
    assert_eq!(summary.records, 481_741);
    assert_eq!(summary.distinct_pages, 4_421);
    assert_eq!((summary.reads, summary.writes), (277_985, 218_096));
    assert_eq!(summary.via.map, summary.accesses);
    let collapse = summary.collapse.expect("collapsed");
    assert_eq!((collapse.window, collapse.dropped), (64, 223_350_969));
}

#[test]
fn it_loads() {
    let mut source = open(path(), &OpenOptions::default()).expect("opens");
    let trace = Trace::load(&mut source, &LoadOptions::default()).expect("loads");
    assert_eq!(trace.name, "sqlite");
    assert_eq!(trace.footprint_pages(), 4_421);
    assert_eq!(trace.objects[0].kind, ObjectKind::Anon);
    assert!(trace.accesses.iter().all(|access| access.is_map()));
}
