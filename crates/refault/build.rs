//! Compiles the published benchmarks into the command: every `scenarios/*.toml` of the repository,
//! which a link has here for packages of this crate.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("scenarios");
    println!("cargo:rerun-if-changed={}", dir.display());
    let mut files: Vec<PathBuf> = match fs::read_dir(&dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?,
        Err(_) => Vec::new(),
    };
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    // By name: a hyphen comes before the dot of the extension.
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.file_stem().and_then(|stem| stem.to_str()).ok_or("the name of a scenario is not UTF-8")?;
        writeln!(list, "    ({name:?}, include_str!({file:?})),")?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scenarios.rs"), list)?;
    Ok(())
}
