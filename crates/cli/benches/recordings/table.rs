//! A program under a limit: recorded, verified, a row of the table.

use crate::programs::Program;
use crate::{in_place, machine};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

pub const HEADER: &str = "\
| program | limit, MiB | accesses | lost | kernel hits | lab hits | alike | by descriptor: accesses | alike \
| by mapping: accesses | alike | evicted, kernel | lab | load |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

pub fn row(program: &Program, limit_mib: u64, folder: &Path) -> Result<String, String> {
    machine::sh(program.before, folder, &[])?;
    machine::cool(folder)?;
    let load = machine::load();
    let file = folder.with_file_name(format!("{}-{limit_mib}.parquet", program.name));
    let memory = format!("{limit_mib}M");
    let record = ["record", "--json", "--memory", &memory, "-o"].map(OsStr::new);
    let command = ["--", "sh", "-ec", program.run].map(OsStr::new);
    let words: Vec<_> = record.into_iter().chain([file.as_os_str()]).chain(command).collect();
    machine::refault(&words, folder)?;
    let mut rows = verified(program, &file, limit_mib, &load)?;
    if let Some(sequence) = program.sequence {
        let all = folder.with_file_name(format!("{}-{limit_mib}-all.parquet", program.name));
        in_place::add(&file, &all, "/data", sequence)?;
        rows += &format!("\n{}", verified(program, &all, limit_mib, &load)?);
    }
    Ok(rows)
}

/// The row of a recording. Touches in place that it has are accesses.
fn verified(program: &Program, file: &Path, limit_mib: u64, load: &str) -> Result<String, String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let verified = machine::refault(&["verify".as_ref(), "--json".as_ref(), file.as_os_str()], folder)?;
    let json: Value = serde_json::from_str(&verified).map_err(|e| format!("verify: {e}"))?;
    let part = |name: &str| {
        let part = &json[name];
        format!("{} | {}", grouped(&part["accesses"]), alike(&part["same"], &part["accesses"]))
    };
    let in_place = json["sampled"]["touches"].as_u64().unwrap_or(0);
    let all = |rate: &Value, missed: u64| {
        let accesses = json["accesses"].as_f64().unwrap_or(0.0);
        let misses = accesses * (1.0 - rate.as_f64().unwrap_or(0.0)) + missed as f64;
        percent(&(1.0 - misses / (accesses + in_place as f64)).into())
    };
    let (what, accesses) = match in_place {
        0 => (program.what.to_owned(), grouped(&json["accesses"])),
        n => (format!("{}, all touches", program.what), grouped(&(json["accesses"].as_u64().unwrap_or(0) + n).into())),
    };
    Ok(format!(
        "| {}: {} | {limit_mib} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {load} |",
        program.name,
        what,
        accesses,
        grouped(&json["lost"]),
        all(&json["kernel_hit_rate"], 0),
        all(&json["lab_hit_rate"], json["sampled"]["lab_misses"].as_u64().unwrap_or(0)),
        percent(&json["agreement"]),
        part("by_descriptor"),
        part("by_mapping"),
        grouped(&json["kernel_pages"]["evicted"]),
        grouped(&json["lab_counters"]["pgsteal_file"]),
    ))
}

fn percent(rate: &Value) -> String {
    rate.as_f64().map_or("-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn alike(same: &Value, accesses: &Value) -> String {
    match (same.as_u64(), accesses.as_u64()) {
        (Some(same), Some(accesses @ 1..)) => format!("{:.2} %", 100.0 * same as f64 / accesses as f64),
        _ => "-".to_owned(),
    }
}

/// 1234567 as 1,234,567.
pub fn grouped(number: &Value) -> String {
    let digits = number.as_u64().map_or("-".to_owned(), |n| n.to_string());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
