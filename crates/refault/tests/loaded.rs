//! Replays of traces in memory: what they do not say, a recording says.

use refault::loaded::{LoadedReplay, LoadedTrace};
use refault::replay::Replay;
use refault::report::{ReportRequest, of_trace};
use refault::{Failure, Watch};
use refault_trace::{Input, LoadOptions, OpenOptions, RecordSource, Via, open, open_input};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

fn source(name: &str) -> Result<Box<dyn RecordSource>, Failure> {
    Ok(open(&data(name), &OpenOptions::default())?)
}

#[test]
fn a_stopped_replay_is_no_result() -> Result<(), Failure> {
    let (go, stop) = (Watch::default(), Watch::default());
    stop.stop();
    let options = LoadOptions { max_accesses: Some(20_000), ..LoadOptions::default() };
    let loaded = LoadedTrace::read(source("sqlite.parquet")?, &options, &go)?;
    let policies = vec!["lru".parse()?, "opt".parse()?];
    let memory = vec!["25%".parse()?];
    let request = Replay { policies, memory, bits: true, ..Replay::default() };
    let replay = LoadedReplay { request, has_policies: true, has_sizes: true, ..LoadedReplay::default() };
    let rows = replay.run(&loaded, "t")?.cells;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|(row, bits)| row.accesses == 20_000 && bits.is_some()));
    let stopped = LoadedReplay { request: Replay { watch: stop.clone(), ..replay.request.clone() }, ..replay };
    assert_eq!(stopped.run(&loaded, "t").expect_err("stopped").to_string(), "t: interrupted");
    assert!(LoadedTrace::read(source("sqlite.parquet")?, &LoadOptions::default(), &stop).is_err());
    Ok(())
}

/// Found by a test of the Python package: the last page table of all overflowed.
#[test]
fn regression_the_last_pages_of_all_are_replayed() -> Result<(), Failure> {
    let text = "0\n18446744073709551614\n0\n";
    let source = open_input(Input::from_reader("far", Box::new(text.as_bytes()))?, &OpenOptions::default())?;
    let options = LoadOptions { default_via: Via::Map, ..LoadOptions::default() };
    let loaded = LoadedTrace::read(source, &options, &Watch::default())?;
    let memory = vec!["100p".parse()?];
    let request = Replay { memory, beyond_footprint: true, ..Replay::default() };
    let rows = LoadedReplay { request, has_sizes: true, ..LoadedReplay::default() }.run(&loaded, "far")?.cells;
    assert!(rows.len() == 3 && rows.iter().all(|(row, _)| (row.accesses, row.misses) == (3, 2)));
    Ok(())
}

#[test]
fn a_recording_says_what_was_not_chosen() -> Result<(), Failure> {
    let loaded = LoadedTrace::read(source("orders.parquet")?, &LoadOptions::default(), &Watch::default())?;
    let recorded = LoadedReplay::default().run(&loaded, "orders")?.cells;
    let limit = loaded.recording.as_ref().and_then(|recording| recording.memory_max);
    assert_eq!((recorded.len(), Some(recorded[0].0.memory_bytes)), (1, limit), "one limit, one policy");
    let pages = LoadedReplay { page_by_page: true, ..LoadedReplay::default() }.run(&loaded, "orders")?.cells;
    assert!(recorded[0].0.misses < pages[0].0.misses, "the machine reads ahead");
    let foreign = LoadedReplay { foreign: Some("via"), ..LoadedReplay::default() };
    let error = foreign.run(&loaded, "orders").expect_err("refused").to_string();
    assert!(error.starts_with("--via: orders is a recording"), "{error}");
    Ok(())
}

#[test]
fn a_report_on_a_recording_has_its_kernel_beside_it() -> Result<(), Failure> {
    let report = of_trace(&ReportRequest::default(), "orders", &|| source("orders.parquet"))?;
    let verify = report.verify.as_ref().ok_or("no kernel")?;
    assert!(report.facts().contains("orders") && verify.agreement > 0.5 && !verify.windows.is_empty());
    let cut = ReportRequest { max_accesses: Some(1000), ..ReportRequest::default() };
    assert!(of_trace(&cut, "orders", &|| source("orders.parquet"))?.verify.is_none(), "of the whole alone");
    Ok(())
}
