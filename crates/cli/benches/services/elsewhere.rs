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

/// `NAME-LIMIT.parquet` of a folder, by name and limit in MiB.
fn found(folder: &Path) -> Result<BTreeMap<String, BTreeMap<u64, PathBuf>>, String> {
    let mut all = BTreeMap::<String, BTreeMap<u64, PathBuf>>::new();
    for entry in fs::read_dir(folder).map_err(at(folder.display()))?.flatten() {
        let path = entry.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some((name, limit)) = stem.rsplit_once('-') else { continue };
        let is_one = path.extension().is_some_and(|extension| extension == "parquet");
        if let (true, Ok(mib)) = (is_one, limit.parse()) {
            all.entry(name.to_owned()).or_default().insert(mib, path);
        }
    }
    Ok(all)
}

/// The lines of all of them.
pub fn lines(folder: &Path) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (name, files) in found(folder)? {
        let truths: Vec<_> = files.values().map(|file| Truth::of(file, None)).collect::<Result<_, _>>()?;
        for (file, base) in files.values().zip(&truths) {
            for truth in &truths {
                let promise = promise::at(file, truth.limit_bytes);
                let is_base = truth.limit_bytes == base.limit_bytes;
                lines.push(Line {
                    row: name.clone(),
                    program: name.clone(),
                    how: "elsewhere",
                    recorded_bytes: base.limit_bytes,
                    limit_bytes: Some(truth.limit_bytes),
                    why: if is_base { "recorded" } else { "further" }.to_owned(),
                    cells: judge::cells(&promise, truth),
                    promise: Some(promise),
                    truth: Some(truth.clone()),
                    failed: None,
                });
            }
        }
    }
    Ok(lines)
}
