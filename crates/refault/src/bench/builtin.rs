//! The benchmarks of the repository: the files of `scenarios/`, compiled in.

use crate::runner;
use refault_lab::scenario::Scenario;

/// Name and text of each, by name.
pub const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Default scales that are not by the rule.
const SCALES: [(&str, f64); 6] = [
    // The rule says 64, where the ratio is x2.9; it is x4.1 at 32, x4.7 at 16, x4.6 at 8 and x3.9
    // in full size.
    ("stock-level", 16.0),
    // Millions of accesses a second, which no scale makes fewer.
    ("lru-fio-zipf", 128.0),
    // Heaps that are smaller than a few areas have no large folios, and a device has a cluster for
    // each CPU and size.
    ("swap-build-mthp", 4.0),
    ("swap-build-2zram", 8.0),
    ("swap-build-4k", 8.0),
    ("swap-build-ssd", 8.0),
];

/// The scale at which a benchmark runs if nothing else is said: one takes seconds.
pub fn default_scale(scenario: &Scenario) -> f64 {
    let chosen = SCALES.iter().find(|(name, _)| *name == scenario.name);
    let chosen = chosen.map(|(_, scale)| *scale).filter(|&scale| scenario.scale(scale).is_ok());
    chosen.unwrap_or_else(|| runner::default_scale(scenario))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_scenario_of_the_repository_is_here_and_in_order() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()))
            .collect();
        names.sort();
        assert_eq!(BUILTIN.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        for (name, text) in BUILTIN {
            let scenario = Scenario::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(scenario.name, *name);
        }
        // The list of scales names what there is.
        assert!(BUILTIN.is_empty() || SCALES.iter().all(|(name, _)| names.iter().any(|known| known == name)));
    }
}
