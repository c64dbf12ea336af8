//! Cost of recording: a program from the cache, with a recorder and without in turn. The program
//! takes its time itself, so that the start and the end of the recorder are not in it.

use crate::programs::Program;
use crate::table::grouped;
use crate::{Chosen, machine};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

pub const HEADER: &str = "\
| program | seconds without | with | ratio, median of the pairs | lowest to highest | events | a second \
| lost | accesses | touches | file, bytes | load |
|---|---|---|---|---|---|---|---|---|---|---|---|";

pub fn row(program: &Program, script: &str, folder: &Path, chosen: &Chosen) -> Result<String, String> {
    let script = format!("date +%s%N >../begun; (\n{script}\n)\ndate +%s%N >../done");
    let file = folder.with_file_name(format!("{}-cost.parquet", program.name));
    let record = ["record", "--json", "--ring", &chosen.ring, "-o"].map(OsStr::new);
    let command = ["--", "sh", "-ec", &script].map(OsStr::new);
    let touches = chosen.touches.iter().flat_map(|every| ["--touches", every]).map(OsStr::new);
    let words: Vec<_> = record.into_iter().chain([file.as_os_str()]).chain(touches).chain(command).collect();
    let timed = |recorded: bool| -> Result<(f64, Value), String> {
        machine::sh(program.before, folder, &[])?;
        let mut said = Value::Null;
        if recorded {
            let text = machine::refault(&words, folder)?;
            // The program's own output comes first.
            said = serde_json::from_str(text.trim()).map_err(|e| format!("record: {e}"))?;
        } else {
            machine::sh(&script, folder, &[])?;
        }
        Ok((seconds(folder)?, said))
    };
    // Into the cache.
    timed(false)?;
    let (mut without, mut with, mut ratios, mut said) = (Vec::new(), Vec::new(), Vec::new(), Value::Null);
    for pair in 0..chosen.pairs.max(1) {
        // Neither is always the first.
        let first = timed(pair % 2 == 1)?;
        let second = timed(pair % 2 == 0)?;
        let (plain, recorded) = if pair % 2 == 1 { (second, first) } else { (first, second) };
        without.push(plain.0);
        with.push(recorded.0);
        ratios.push(recorded.0 / plain.0);
        said = recorded.1;
    }
    let seconds = median(&mut with);
    let ratio = median(&mut ratios);
    let events = said["events"].as_u64().unwrap_or(0) as f64;
    Ok(format!(
        "| {} | {:.2} | {seconds:.2} | {ratio:.2} | {:.2} to {:.2} | {} | {} | {} | {} | {} | {} | {} |",
        program.name,
        median(&mut without),
        ratios[0],
        ratios[ratios.len() - 1],
        grouped(&said["events"]),
        grouped(&((events / seconds) as u64).into()),
        grouped(&said["lost"]),
        grouped(&said["accesses"]),
        grouped(&said["touches"]),
        grouped(&said["bytes"]),
        machine::load(),
    ))
}

/// Seconds that the program took, as it said.
fn seconds(folder: &Path) -> Result<f64, String> {
    let at = |name: &str| -> Result<u64, String> {
        let path = folder.with_file_name(name);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        text.trim().parse().map_err(|e| format!("{}: {e}", path.display()))
    };
    Ok((at("done")?.saturating_sub(at("begun")?)) as f64 / 1e9)
}

/// Sorts them, too.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
