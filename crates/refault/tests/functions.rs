//! The product as functions: a size of a trace in memory, a recording beside its kernel.

use refault::recording::LoadedRecording;
use refault::scenario::ScenarioRequest;
use refault::size::{Limit, SizeRequest, SizeVerdict, Subject};
use refault::verify::Verify;
use refault::{Failure, Watch, size, verify};
use refault_lab::scenario::Scenario;
use refault_trace::{Header, OpenOptions, Records, Trace};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

fn request(target: &str) -> Result<SizeRequest, String> {
    Ok(SizeRequest { target: Some(target.parse()?), ..SizeRequest::default() })
}

#[test]
fn a_trace_in_memory_is_sized_as_its_file_is() -> Result<(), Failure> {
    let path = data("sqlite.parquet");
    let (trace, page_size) = refault::load(&path)?;
    for target in ["hit_rate>95%", "misses<5k", "refaults_per_access<1%"] {
        let request = request(target)?;
        let in_memory = size(Subject::Trace { trace: &trace, page_size }, &request, &Watch::default())?;
        let mut file = refault_trace::open(&path, &OpenOptions::default())?;
        let in_file = size(Subject::Source(&mut file), &request, &Watch::default())?;
        assert_eq!(serde_json::to_value(&in_memory)?, serde_json::to_value(&in_file)?, "{target}");
        assert!(in_memory.answer().is_some_and(|pages| pages < u64::from(trace.footprint_pages())), "{target}");
    }
    Ok(())
}

#[test]
fn without_a_target_a_trace_in_memory_has_a_summary() -> Result<(), Failure> {
    let (trace, page_size) = refault::load(&data("sqlite.parquet"))?;
    let sizing = size(Subject::Trace { trace: &trace, page_size }, &SizeRequest::default(), &Watch::default())?;
    let summary = sizing.summary.ok_or("no summary")?;
    assert!(summary.knee.is_some() && sizing.points.len() > 20 && sizing.warnings().is_empty());
    let json = serde_json::to_value(&sizing)?;
    assert!(json.get("answer_bytes").is_none() && json["knee_bytes"].is_u64());
    Ok(())
}

#[test]
fn a_request_that_cannot_be_met_says_why() -> Result<(), Failure> {
    let (trace, page_size) = refault::load(&data("sqlite.parquet"))?;
    let error = |request: &SizeRequest| {
        let subject = Subject::Trace { trace: &trace, page_size };
        size(subject, request, &Watch::default()).map_or_else(|e| e.to_string(), |_| "met".to_owned())
    };
    assert!(error(&request("refaults_per_s<5")?).contains("has no times; ask for refaults_per_access"));
    assert!(error(&request("p99<5ms")?).contains("a trace has no p99"));
    let of_group = SizeRequest { group: Some("/web".to_owned()), ..request("hit_rate>9%")? };
    assert!(error(&of_group).contains("is not a group of the trace, which has none"));
    let watch = Watch::default();
    watch.stop();
    let stopped = size(Subject::Trace { trace: &trace, page_size }, &request("hit_rate>9%")?, &watch);
    assert!(stopped.is_err_and(|e| e.to_string() == "interrupted"));
    Ok(())
}

#[test]
fn a_group_of_a_scenario_is_sized() -> Result<(), Failure> {
    let scenario = Scenario::load(data("tenants.toml"))?;
    let request =
        SizeRequest { group: Some("/web".to_owned()), limit: Limit::Min, scale: 2.0, ..request("p99<200us")? };
    let sizing = size(Subject::Scenario { scenario: &scenario, file: "tenants" }, &request, &Watch::default())?;
    assert_eq!((sizing.limit.file(), &*sizing.group, sizing.scale), ("memory.min", "/web", 2.0));
    assert!(sizing.points.iter().all(|point| point.value.is_some()));
    let stated = SizeRequest { group: None, ..request };
    let error = size(Subject::Scenario { scenario: &scenario, file: "tenants" }, &stated, &Watch::default());
    assert!(error.is_err_and(|e| e.to_string().starts_with("tenants: --group PATH is missing")));
    Ok(())
}

#[test]
fn a_recording_is_sized_and_compared_with_its_kernel() -> Result<(), Failure> {
    let mut source = refault_trace::open(&data("orders.parquet"), &OpenOptions::default())?;
    let mut records = Records::read(&mut source)?;
    let sizing = size(Subject::Source(&mut records.clone()), &request("hit_rate>90%")?, &Watch::default())?;
    assert!(matches!(sizing.verdict, SizeVerdict::Found(_)) && sizing.baseline.is_some() && sizing.recorded.is_some());
    let recording = LoadedRecording::read(&mut records)?;
    let verified = verify(&recording, &Verify::default(), &Watch::default())?;
    assert!(verified.verdict.text.starts_with("trust it for"), "{}", verified.verdict.text);
    assert_eq!(verified.compared.total.accesses, serde_json::to_value(&verified)?["accesses"]);
    let tight = Verify { memory: Some("1p".parse()?), ..Verify::default() };
    let verified = verify(&recording, &tight, &Watch::default())?;
    assert!(!verified.verdict.is_within);
    let nothing = Verify { memory: Some("1".parse()?), ..Verify::default() };
    let error = verify(&recording, &nothing, &Watch::default());
    assert!(error.is_err_and(|e| e.to_string().starts_with("--memory 1: is less than one page")));
    Ok(())
}

#[test]
fn a_trace_is_no_recording() -> Result<(), Failure> {
    let mut none = Records::new("nothing", Header::new(refault_trace::Format::Generated), Vec::new());
    assert!(Trace::load(&mut none.clone(), &refault_trace::LoadOptions::default()).is_err());
    assert!(LoadedRecording::read(&mut none).is_err_and(|e| e.starts_with("nothing: is no recording of a kernel")));
    Ok(())
}

#[test]
fn a_scenario_that_is_stopped_is_no_result() -> Result<(), Failure> {
    let watch = Watch::default();
    watch.stop();
    let request = ScenarioRequest::default().with_file(&data("oomd-pressure.toml"))?;
    let stopped = refault::run_scenario(&request, &watch);
    assert!(stopped.is_err_and(|e| e.to_string() == "interrupted"));
    Ok(())
}
