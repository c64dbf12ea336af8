//! How much smaller than published a scenario runs.

use crate::Failure;
use refault_lab::scenario::Scenario;

/// Memory at the default scale: seconds for what takes minutes in full.
const DEFAULT_PAGES: u64 = 512 << (20 - 12);

/// The smallest power of two that brings memory to 512 MiB or less, or the largest below it that
/// the scenario permits.
pub fn default_scale(scenario: &Scenario) -> f64 {
    let wanted = scenario.machine.memory_pages.div_ceil(DEFAULT_PAGES).next_power_of_two();
    let down = std::iter::successors(Some(wanted), |k| (*k > 1).then_some(k / 2));
    let permitted = down.map(|k| k as f64).find(|&k| scenario.scale(k).is_ok());
    permitted.unwrap_or(1.0)
}

/// The scenario at that scale; `file` is what errors call it.
pub fn scaled(scenario: &Scenario, file: &str, scale: f64) -> Result<Scenario, Failure> {
    scenario.scale(scale).map_err(|e| format!("{file}: --{e}").into())
}

/// Reads a scale: 1 or more.
pub fn parse_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|k: &f64| k.is_finite() && *k >= 1.0);
    scale.ok_or_else(|| format!("{text:?} is not a scale; write 1 (full size) or more"))
}
