//! Recordings that were made elsewhere, of one program at several limits each: from each of them
//! all others are promised.

use crate::judge;
use crate::machine::at;
use crate::promise;
use crate::table::Line;
use crate::truth::Truth;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of one program, by limit in MiB and repeat.
type Files = BTreeMap<u64, BTreeMap<u64, PathBuf>>;

/// `NAME-LIMIT.parquet` and `NAME-LIMIT.REPEAT.parquet` of a folder, by name.
fn found(folder: &Path) -> Result<BTreeMap<String, Files>, String> {
    let mut all = BTreeMap::<String, Files>::new();
    for entry in fs::read_dir(folder).map_err(at(folder.display()))?.flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((name, of)) = name.strip_suffix(".parquet").and_then(|stem| stem.rsplit_once('-')) else { continue };
        let (limit, repeat) = of.split_once('.').unwrap_or((of, "0"));
        if let (Ok(mib), Ok(repeat)) = (limit.parse(), repeat.parse()) {
            all.entry(name.to_owned()).or_default().entry(mib).or_default().insert(repeat, path);
        }
    }
    Ok(all)
}

/// The lines of all of them.
pub fn lines(folder: &Path) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (name, files) in found(folder)? {
        let run = |files: &BTreeMap<u64, PathBuf>| files.values().map(|file| Truth::of(file, None)).collect();
        let truths: Vec<Vec<Truth>> = files.values().map(run).collect::<Result<_, _>>()?;
        for (base, file) in files.values().filter_map(|runs| runs.values().next()).enumerate() {
            for (at, truth) in truths.iter().enumerate() {
                let (promise, limit) = (promise::at(file, truth[0].limit_bytes), truth[0].limit_bytes);
                lines.push(Line {
                    row: name.clone(),
                    program: name.clone(),
                    how: "elsewhere",
                    recorded_bytes: truths[base][0].limit_bytes,
                    limit_bytes: Some(limit),
                    why: if at == base { "recorded" } else { "further" }.to_owned(),
                    cells: judge::cells(&promise, truth),
                    promise: Some(promise),
                    truth: truth.clone(),
                    failed: None,
                });
            }
        }
    }
    Ok(lines)
}
