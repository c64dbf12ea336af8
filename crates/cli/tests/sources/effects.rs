//! Drivers answer every effect of the engine by name: a new one does not compile before somebody
//! has said what becomes of it.

use super::comments::checked_files;

/// The body of each function that carries out effects, with the line at which it begins.
fn bodies(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_answer = |line: &str| {
        let is_effect = ["effect: Effect)", "effect: &Effect)"].iter().any(|end| line.contains(end));
        line.contains("fn ") && is_effect && line.ends_with("-> Ack {")
    };
    let begins = (0..lines.len()).filter(|&at| is_answer(lines[at]));
    let body = |at: usize| {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let rest = lines[at..].iter().take_while(|line| **line != end);
        (at + 1, rest.copied().collect::<Vec<_>>().join("\n"))
    };
    begins.map(body).collect()
}

/// Whether a body passes over effects that it does not name.
fn is_open(body: &str) -> bool {
    body.lines().map(str::trim).any(|line| line.starts_with("_ =>"))
}

#[test]
fn drivers_name_every_effect() {
    let (mut found, mut open) = (0, Vec::new());
    for path in checked_files() {
        let place = path.display().to_string();
        // Stand-ins for a driver in tests and benchmarks may do as they like.
        if !place.contains("/src/") || place.contains("/testing/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let all = bodies(text);
        found += all.len();
        open.extend(all.into_iter().filter(|(_, body)| is_open(body)).map(|(line, _)| format!("{place}:{line}")));
    }
    assert!(found >= 5, "{found} drivers");
    assert!(open.is_empty(), "effects that are not named are passed over:\n  {}", open.join("\n  "));
}

#[test]
fn an_effect_that_is_passed_over_is_found() {
    let driver = |arm: &str| {
        format!(
            "impl World for W {{\n    fn effect(&mut self, effect: Effect) -> Ack {{\n        match effect {{\n            {arm}\n        }}\n    }}\n}}\n"
        )
    };
    for (arm, open) in
        [("_ => Ack::Done,", true), ("Effect::WakeZswap => Ack::Done,", false), ("other => answer(&other),", false)]
    {
        let all = bodies(&driver(arm));
        assert_eq!(all.iter().map(|(line, body)| (*line, is_open(body))).collect::<Vec<_>>(), [(2, open)], "{arm}");
    }
}
