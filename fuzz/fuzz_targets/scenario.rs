//! Scenario files: what is wrong is one line; what is right can be scaled.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_lab::scenario::Scenario;

fuzz_target!(|text: &str| {
    match Scenario::parse("f.toml", text) {
        Ok(scenario) => {
            assert!(scenario.policy.config().check().is_ok());
            for k in [1.0, 1.5, 64.0, 1e6] {
                if let Err(error) = scenario.scale(k) {
                    assert_eq!(error.lines().count(), 1, "{error}");
                }
            }
        }
        Err(error) => {
            let line = error.to_string();
            assert!(line.lines().count() == 1 && line.starts_with("f.toml:"), "{line}");
        }
    }
});
