//! `[policy]` and the variants of a publication: a policy, a kernel, and settings from the table of
//! the engine.

use super::nodes;
use super::read::{Field, Result, Section};
use super::types::PolicySpec;
use refault_mm::{Chosen, Policy, Setting, TIERING, Value, Values, settings};

/// Reads `[policy]`.
pub(super) fn policy(field: Option<Field<'_>>) -> Result<PolicySpec> {
    let base = PolicySpec::new(Policy::Mglru);
    field.map_or(Ok(base.clone()), |field| overridden(&field, "name", &base))
}

/// A side of a comparison: what it does not say is as in `base`.
pub(super) fn variant(field: &Field<'_>, base: &PolicySpec) -> Result<PolicySpec> {
    overridden(field, "policy", base)
}

/// The settings that a scenario may choose.
fn of_scenarios() -> impl Iterator<Item = &'static Setting> {
    settings().filter(|setting| setting.in_scenarios)
}

fn overridden(field: &Field<'_>, name: &str, base: &PolicySpec) -> Result<PolicySpec> {
    for (key, value) in field.any_section()?.entries() {
        if let Some((_, now)) = Setting::renamed(key) {
            return Err(value.error(format!("is not known; it is {now}")));
        }
    }
    let of_engine = of_scenarios().map(|setting| setting.name);
    let of_tiers = TIERING.iter().map(|setting| setting.name);
    let keys: Vec<&str> = [name, "kernel"].into_iter().chain(of_engine).chain(of_tiers).collect();
    let s = field.section(&keys)?;
    let policies: Vec<_> = Policy::every().map(|p| (p.name(), p)).collect();
    let mut spec = PolicySpec {
        policy: s.or(name, base.policy, |f| f.choice(&policies))?,
        kernel: s.or("kernel", base.kernel, Field::kernel)?,
        settings: base.settings.clone(),
        tiering: nodes::tiering(&s, &base.tiering)?,
    };
    choose(&s, of_scenarios(), &mut spec.settings)?;
    spec.config().check().map_err(|what| s.error(what))?;
    Ok(spec)
}

/// Chooses what a section says of some settings.
pub(super) fn choose<C>(
    s: &Section<'_>,
    settings: impl Iterator<Item = &'static Setting<C>>,
    chosen: &mut Chosen<C>,
) -> Result<()> {
    for setting in settings {
        if let Some(value) = s.opt(setting.name, |field| value(field, setting))? {
            chosen.choose(setting, value);
        }
    }
    Ok(())
}

/// A part of a machine as its section says it; what that leaves out is as in Linux.
pub(super) fn part<C: Default>(s: &Section<'_>, settings: &'static [Setting<C>]) -> Result<C> {
    let mut chosen = Chosen::default();
    choose(s, settings.iter(), &mut chosen)?;
    let mut part = C::default();
    chosen.apply(&mut part);
    Ok(part)
}

/// A value of a setting.
fn value<C>(field: &Field<'_>, setting: &Setting<C>) -> Result<Value> {
    match setting.values {
        Values::Flag => field.boolean().map(Value::Flag),
        Values::Range(least, most) => field.int(least..=most).map(Value::Number),
        Values::OneOf(numbers) => {
            let n = field.int(0..=u64::MAX)?;
            match numbers.contains(&n) {
                true => Ok(Value::Number(n)),
                false => Err(field.bad(&format!("is not one of {}", list(numbers)))),
            }
        }
        Values::Words(words) => {
            let former = field.text().ok().and_then(|text| setting.former.iter().find(|(old, _)| *old == text));
            match former {
                Some((_, now)) => Err(field.bad(&format!("is not known; it is \"{now}\""))),
                None => field.choice(&words.iter().map(|word| (*word, Value::Word(word))).collect::<Vec<_>>()),
            }
        }
    }
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
