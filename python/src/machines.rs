//! Machines in virtual time: scenarios and published benchmarks, as typed requests of the library.

use crate::error::exception;
use crate::work;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use refault::Failure;
use refault::bench::Bench;
use refault::replay::policy::PolicyList;
use refault::runner::parse_scale;
use refault::scenario::{NamedScenario, ScenarioRequest};
use refault_cli::api;
use refault_lab::scenario::Scenario;
use std::ops::RangeInclusive;

/// Numbers of threads that can be asked for.
const THREADS: RangeInclusive<i64> = 1..=1024;
/// Numbers of seeds that a benchmark runs with.
const SEEDS: RangeInclusive<i64> = 1..=1000;
/// Seeds: those that TOML has, too.
const SEED: RangeInclusive<i64> = 0..=i64::MAX;

/// A number in its range, as the command says it.
fn ranged<T: TryFrom<i64>>(name: &str, value: Option<i64>, range: &RangeInclusive<i64>) -> PyResult<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let number = Some(value).filter(|value| range.contains(value)).and_then(|value| T::try_from(value).ok());
    let wrong = || format!("{name}: {value} is not in {}..={}", range.start(), range.end());
    number.map(Some).ok_or_else(|| PyValueError::new_err(wrong()))
}

/// A scale of 1 or more.
fn scale_of(scale: f64) -> PyResult<f64> {
    parse_scale(&scale.to_string()).map_err(|e| PyValueError::new_err(format!("scale: {e}")))
}

/// Settings that scenarios and benchmarks have in common.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunSettings {
    scale: Option<f64>,
    seed: Option<i64>,
    check: bool,
    threads: Option<i64>,
}

/// Reports of benchmarks, a JSON object each.
#[pyfunction]
pub(crate) fn bench(
    py: Python<'_>,
    names: Vec<String>,
    seeds: Option<i64>,
    settings: RunSettings,
) -> PyResult<Vec<String>> {
    if seeds.is_some() && settings.seed.is_some() {
        return Err(PyValueError::new_err("seeds: does not go with seed; give one of them"));
    }
    let request = Bench {
        names,
        scale: settings.scale.map(scale_of).transpose()?,
        seed: ranged("seed", settings.seed, &SEED)?,
        seeds: ranged("seeds", seeds, &SEEDS)?,
        check: settings.check,
        threads: ranged("threads", settings.threads, &THREADS)?,
        ..Bench::default()
    };
    work::run(py, |stop| {
        let reports = refault::bench(&Bench { watch: api::shown(stop), ..request })?;
        reports.iter().map(|report| Ok(serde_json::to_string(report)?)).collect()
    })
}

/// The scenario of a file, or else of a text.
fn read(path: Option<&str>, text: &str) -> Result<NamedScenario, Failure> {
    let name = path.unwrap_or("scenario").to_owned();
    let scenario = match path {
        Some(path) => Scenario::load(path)?,
        None => Scenario::parse(&name, text)?,
    };
    Ok(NamedScenario { name, scenario })
}

/// An error if a file or a text is no scenario.
#[pyfunction]
pub(crate) fn check_scenario(path: Option<&str>, text: &str) -> PyResult<()> {
    read(path, text).map(drop).map_err(|e| exception(&e))
}

/// Runs of a scenario, a JSON object each, and the time series of each as CSV. Policies are names,
/// none: its own.
#[pyfunction]
pub(crate) fn scenario(
    py: Python<'_>,
    path: Option<&str>,
    text: &str,
    policies: Option<&str>,
    settings: RunSettings,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let policies = policies.map(str::parse::<PolicyList>).transpose();
    let request = ScenarioRequest {
        scale: settings.scale.map_or(Ok(1.0), scale_of)?,
        policies: policies.map_err(|e| PyValueError::new_err(format!("policy: {e}")))?.map(|list| list.0),
        seed: ranged("seed", settings.seed, &SEED)?,
        threads: ranged("threads", settings.threads, &THREADS)?,
        check: settings.check,
        swap_map: true,
        ..ScenarioRequest::default()
    };
    work::run(py, |stop| {
        let request = ScenarioRequest { scenarios: vec![read(path, text)?], ..request };
        let runs = refault::run_scenario(&request, &api::shown(stop))?;
        request.scenarios.iter().for_each(|named| api::note_traces(&named.scenario));
        let json = runs.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        Ok((json, runs.iter().map(|run| run.result().series.csv()).collect()))
    })
}
