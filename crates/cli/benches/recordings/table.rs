//! A program under a limit: recorded, verified, a row of the table.

use crate::machine;
use crate::programs::Program;
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
    let verified = machine::refault(&["verify".as_ref(), "--json".as_ref(), file.as_os_str()], folder)?;
    let json: Value = serde_json::from_str(&verified).map_err(|e| format!("verify: {e}"))?;
    let part = |name: &str| {
        let part = &json[name];
        format!("{} | {}", grouped(&part["accesses"]), alike(&part["same"], &part["accesses"]))
    };
    Ok(format!(
        "| {}: {} | {limit_mib} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {load} |",
        program.name,
        program.what,
        grouped(&json["accesses"]),
        grouped(&json["lost"]),
        percent(&json["kernel_hit_rate"]),
        percent(&json["lab_hit_rate"]),
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
