//! Data that is not part of the repository, in `../shared` beside it.

use std::path::{Path, PathBuf};

use crate::{Need, require};

fn shared(need: Need, name: &str, marker: &str) -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    let found = match directory.join(marker).exists() {
        true => Ok(directory),
        false => Err(format!("there is no {}", directory.join(marker).display())),
    };
    require(need, found)
}

/// The recordings of real kernels; `None`: they are not here, as was said.
pub fn oracle() -> Option<PathBuf> {
    shared(Need::Oracle, "oracle", "cases.json")
}

/// Public traces, and miss ratios that were published of them; `None`: they are not here.
pub fn traces() -> Option<PathBuf> {
    shared(Need::Traces, "traces", "golden_miss_ratios.csv")
}

/// Scenarios and samples of formats after public reports; `None`: they are not here.
pub fn reports() -> Option<PathBuf> {
    shared(Need::Reports, "reports", "README.md")
}

/// Recordings of real programs; `None`: they are not here.
pub fn recordings() -> Option<PathBuf> {
    shared(Need::Recordings, "recordings", "README.md")
}
