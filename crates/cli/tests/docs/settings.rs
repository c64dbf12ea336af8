//! Pages and stubs that are written from the tables of settings.

use super::root;
use refault_lab::scenario::{MACHINE_KEYS, PolicySpec};
use refault_mm::{Kernel, KernelRule, Policy, SUBJECTS, Setting, THP, TIERING, Values, ZSWAP, settings};
use std::fmt::Write as _;

/// The lines of a file between `NAME: begin` and `NAME: end` are this text; with
/// `REFAULT_DOCS=overwrite` they are written.
fn between(file: &str, name: &str, comment: &str, want: &str) -> Option<String> {
    let path = root().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mark = |end: &str| {
        let mark = format!("{comment} {name}: {end}");
        lines.iter().position(|line| line.trim().starts_with(&mark)).unwrap_or_else(|| panic!("{file}: no line {mark}"))
    };
    let (begin, end) = (mark("begin") + 1, mark("end"));
    if lines[begin..end].concat() == want {
        return None;
    }
    if std::env::var("REFAULT_DOCS").is_ok_and(|how| how == "overwrite") {
        std::fs::write(&path, lines[..begin].concat() + want + &lines[end..].concat()).expect("written");
        return None;
    }
    Some(format!("{file}: {name} is not as the table of settings says; REFAULT_DOCS=overwrite writes it"))
}

fn page(file: &str, name: &str, want: &str) -> Option<String> {
    between(file, name, "<!--", want)
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Names of kernels.
fn kernels(of: &[Kernel]) -> String {
    of.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ")
}

/// A table of the settings: `[policy]` of scenarios.
fn policy_table() -> String {
    let mut text = String::from("| key | values | default | effect |\n|---|---|---|---|\n");
    for (subject, settings) in SUBJECTS {
        let alone =
            if settings.iter().all(|s| !s.in_scenarios) { "; not in scenarios, whose machine says it" } else { "" };
        let _ = writeln!(text, "| *{subject}{alone}* | | | |");
        settings.iter().for_each(|setting| text += &row(setting));
    }
    text
}

fn row(setting: &Setting) -> String {
    let of = |policy| setting.value(&PolicySpec::new(policy).config()).to_string();
    let (usual, shadow) = (of(Policy::Lru), of(Policy::LruShadow));
    let default = if usual == shadow { format!("`{usual}`") } else { format!("`{usual}`; `{shadow}` with RFC v3") };
    format!("| `{}` | {} | {default} | {}; {} |\n", setting.name, values(setting), setting.about, rule(setting))
}

/// A table of the settings of a part of a machine; equal rows are one.
fn part_table<C: Default>(settings: &[Setting<C>]) -> String {
    let cells = |setting: &Setting<C>| {
        let kernels = if setting.kernels.is_empty() { String::new() } else { format!(" ({})", setting.kernels) };
        let default = setting.value(&C::default());
        format!("{} | `{default}` | {}{kernels}; {} |", values(setting), setting.about, rule(setting))
    };
    let mut rows: Vec<(Vec<String>, String)> = Vec::new();
    for setting in settings {
        let name = format!("`{}`", setting.name);
        match rows.iter_mut().find(|(_, rest)| *rest == cells(setting)) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], cells(setting))),
        }
    }
    let mut text = String::from("| key | values | default | effect |\n|---|---|---|---|\n");
    rows.iter().for_each(|(names, rest)| text += &format!("| {} | {rest}\n", names.join(", ")));
    text
}

/// Possible values and their unit.
fn values<C>(setting: &Setting<C>) -> String {
    let values = match setting.values {
        Values::Range(least, most) if setting.values == Values::NUMBER => format!("{least} to 2^{}", most.ilog2()),
        Values::Range(least, most) => format!("{least} to {most}"),
        other => other.to_string().split('|').map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
    };
    if setting.unit.is_empty() { values } else { format!("{values} {}", setting.unit) }
}

/// A link to the rule.
fn rule<C>(setting: &Setting<C>) -> String {
    format!("[{}](../mechanisms.md#{})", setting.heading, anchor(setting.heading))
}

/// The keys of `[machine]` that are flags and numbers.
fn machine_table() -> String {
    let mut text = String::from("| key | default | |\n|---|---|---|\n");
    for key in MACHINE_KEYS {
        let default = key.default_text();
        let quoted = if default.ends_with(char::is_alphabetic) && default.starts_with(|c: char| c.is_ascii_digit()) {
            format!("`\"{default}\"`")
        } else {
            format!("`{default}`")
        };
        let range = key.range_text();
        let range = if range.is_empty() { range } else { format!("{range}: ") };
        let _ = writeln!(text, "| `{}` | {quoted} | {range}{} |", key.name, key.about);
    }
    text
}

/// Rules of kernels, those that 6.12 has or those that it has not.
fn rules_table(newer: bool) -> String {
    let mut text =
        format!("| rule | since | {} in | key |\n|---|---|---|---|\n", if newer { "newer" } else { "older" });
    for rule in KernelRule::all().into_iter().filter(|rule| rule.is_newer_than_6_12() == newer) {
        let key = |(setting, value): (&Setting, refault_mm::Value)| {
            format!("[`{}={value}`](mechanisms.md#{})", setting.name, anchor(setting.heading))
        };
        let keys: Vec<_> = rule.settings().map(key).collect();
        let _ =
            writeln!(text, "| {} | {} | {} | {} |", rule.change, rule.since, kernels(rule.kernels), keys.join(", "));
    }
    text
}

/// The keywords of Python.
fn keywords() -> String {
    let annotation = |values: Values| match values {
        Values::Flag => "bool".to_owned(),
        Values::Range(..) | Values::OneOf(_) => "int".to_owned(),
        Values::Words(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", quoted.join(", "))
        }
    };
    settings().map(|setting| format!("    {}: {}\n", setting.name, annotation(setting.values))).collect()
}

#[test]
fn pages_and_stubs_have_the_table_of_settings() {
    let complaints: Vec<String> = [
        page("docs/reference/scenario-keys.md", "settings", &policy_table()),
        page("docs/reference/scenario-keys.md", "machine", &machine_table()),
        page("docs/reference/scenario-keys.md", "thp", &part_table(THP)),
        page("docs/reference/scenario-keys.md", "zswap", &part_table(ZSWAP)),
        page("docs/reference/scenario-keys.md", "tiers", &part_table(TIERING)),
        page("docs/kernels.md", "older", &rules_table(false)),
        page("docs/kernels.md", "newer", &rules_table(true)),
        between("python/refault/_settings.py", "settings", "#", &keywords()),
    ]
    .into_iter()
    .flatten()
    .collect();
    super::none(&complaints);
}
