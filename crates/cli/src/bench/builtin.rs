//! The benchmarks inside of the command: the files of `scenarios/`, compiled in.

/// Name and text of each, by name.
pub const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

#[cfg(test)]
mod tests {
    use super::*;
    use refault_sim::scenario::Scenario;
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
    }
}
