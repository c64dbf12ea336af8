//! Limits of groups from a file, in place of a scenario's own.

use crate::Failure;
use crate::memory_size::Size;
use refault_lab::scenario::{GroupLimits, Scenario};
use std::path::Path;

/// Bytes of a page.
const PAGE: u32 = 4096;

/// Sets the limits of the groups that a file names; percent are of the machine's memory.
pub fn limit(scenario: &mut Scenario, file: &Path) -> Result<(), Failure> {
    let memory = scenario.machine.memory_pages;
    let size = |text: &str| Ok(Size::parse(text, "the machine's memory")?.pages(PAGE, memory));
    for given in GroupLimits::load(file, &size)? {
        let Some(memcg) = scenario.memcgs.iter_mut().find(|memcg| memcg.path == given.path) else {
            let paths: Vec<_> = scenario.memcgs.iter().map(|memcg| memcg.path.as_str()).collect();
            let known = if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
            let (file, line, path, name) = (file.display(), given.line, &given.path, &scenario.name);
            return Err(
                format!("{file}:{line}: group {path:?} is not in the scenario {name}, which has {known}").into()
            );
        };
        memcg.limits = given.limits;
    }
    Ok(())
}
