//! Every effect of the engine is missed where the machine does not carry it out.

use super::change::changes;
use super::tests::{base, data, is_excepted, numbers_of, reasons};
use crate::machine::Machine;
use crate::scenario::Scenario;
use refault_mm::Effect;
use refault_testing::one_in;

/// Result of a run whose machine ignores an effect: numbers, an error, or a defect that the engine
/// finds. `None`: it ignores no effect.
fn run(text: &str, deaf_to: Option<&'static str>) -> String {
    let scenario = Scenario::parse("s.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let run = std::panic::catch_unwind(|| {
        let mut machine = Machine::new(&scenario, &scenario.policy)?;
        machine.set_deaf_to(deaf_to);
        machine.run().map(numbers_of)
    });
    format!("{:?}", run.map_err(|_| "a defect"))
}

#[test]
fn every_effect_is_missed() {
    let exceptions = data("effects.txt");
    let reasons = reasons(&exceptions);
    let lines = data("effect-scenarios.txt");
    let texts: Vec<String> =
        changes(&lines).iter().map(|c| c.applied_to(&base(&c.base))).map(|[_, after]| after).collect();
    let heard: Vec<String> = texts.iter().map(|text| run(text, None)).collect();
    assert!(heard.iter().all(|result| result.starts_with("Ok(Ok(")), "{heard:?}");
    let is_missed = |name: &'static str| texts.iter().zip(&heard).any(|(text, heard)| run(text, Some(name)) != *heard);
    let tried = Effect::NAMES.iter().step_by(one_in(3));
    let wrong: Vec<_> = tried.filter(|name| is_missed(name) == is_excepted(&reasons, name)).collect();
    assert!(wrong.is_empty(), "not missed, or missed although it has a reason not to be: {wrong:?}");
}
