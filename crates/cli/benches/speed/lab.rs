//! Virtual seconds a real second of each scenario, one thread.

use std::path::Path;
use std::time::Instant;

use refault_lab::machine::Machine;
use refault_lab::scenario::Scenario;

use crate::rows::{Row, Rows, flag, is_wanted, number};

/// Scenarios of the repository, by name.
fn scenarios() -> Result<Vec<Scenario>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().map(|path| Scenario::load(path).map_err(|e| e.to_string())).collect()
}

/// The scenario at that scale, or the next half of it that it permits.
fn scaled(scenario: &Scenario, mut scale: f64) -> Result<(Scenario, f64), String> {
    loop {
        match scenario.scale(scale) {
            Ok(smaller) => return Ok((smaller, scale)),
            Err(e) if scale <= 1.0 => return Err(format!("{}: {e}", scenario.name)),
            Err(_) => scale = (scale / 2.0).max(1.0),
        }
    }
}

/// A run of a machine; its virtual seconds.
pub fn machine(scenario: &Scenario) -> Result<f64, String> {
    Ok(Machine::new(scenario, &scenario.policy)?.run()?.seconds)
}

/// Every scenario.
pub fn run(rows: &mut Rows) -> Result<(), String> {
    let scale = flag("--scale").map_or(Ok(32.0), |v| v.parse()).map_err(|e| format!("--scale: {e}"))?;
    let runs = number("--runs", 3);
    println!("scenarios at scale {scale} or the nearest that they permit; virtual seconds a second, best of {runs}");
    for scenario in scenarios()?.iter().filter(|scenario| is_wanted(&scenario.name)) {
        let (scenario, scale) = scaled(scenario, scale)?;
        let mut values = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            let seconds = machine(&scenario)?;
            values.push(seconds / start.elapsed().as_secs_f64());
        }
        let row = Row { name: format!("lab {}", scenario.name), unit: "virtual s/s".into(), values };
        println!("  {:24} {scale:>5} {:10.2}", scenario.name, row.best());
        rows.rows.push(row);
    }
    Ok(())
}
