//! Nothing that is written as a test is left out, and nothing that ships depends on what tests
//! share.

use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The crates of the workspace, each with its manifest.
fn crates() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the crates");
    let manifest = |dir: PathBuf| Some((dir.clone(), fs::read_to_string(dir.join("Cargo.toml")).ok()?));
    entries.filter_map(|entry| manifest(entry.expect("an entry").path())).collect()
}

/// Where Cargo does not look for tests by itself, a file that no other names would never be run.
#[test]
fn every_file_of_tests_is_run() {
    let mut found = 0;
    for (dir, manifest) in crates().iter().filter(|(_, manifest)| manifest.contains("autotests = false")) {
        let all = read(&dir.join("tests/all.rs"));
        for entry in fs::read_dir(dir.join("tests")).expect("tests") {
            let path = entry.expect("an entry").path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let is_named = match name.strip_suffix(".rs") {
                Some(module) => {
                    all.contains(&format!("mod {module};\n")) || manifest.contains(&format!("tests/{name}\""))
                }
                None if path.join("main.rs").exists() => manifest.contains(&format!("tests/{name}/main.rs\"")),
                None => continue,
            };
            assert!(is_named, "{}: neither tests/all.rs nor Cargo.toml names it", path.display());
            found += 1;
        }
    }
    assert!(found > 50, "{found} files");
}

#[test]
fn nothing_that_ships_depends_on_this_crate() {
    for (dir, manifest) in crates() {
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let is_shipped = section.contains("dependencies") && !section.contains("dev-dependencies");
            assert!(!(is_shipped && line.starts_with("refault-testing")), "{}: {section}", dir.display());
        }
    }
}
