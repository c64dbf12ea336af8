//! What is wrong with a command line, in one line.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The mistake that clap found, with its hints, without its usage.
pub fn complaint(e: &clap::Error) -> String {
    if let Some(number) = negative_number(e) {
        return format!("{number}: no flag takes a negative number; --help says more");
    }
    let text = e.to_string();
    // Clap advises to write what begins with a dash as a file.
    let text = text.split("\n\n  tip: to pass '-").next().unwrap_or_default();
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    let line = one_line(&text[..end.unwrap_or(text.len())]);
    format!("{}; --help says more", line.strip_prefix("error: ").unwrap_or(&line))
}

/// The negative number that clap took for an unknown flag, and would advise to write as a file.
fn negative_number(e: &clap::Error) -> Option<&str> {
    match e.get(ContextKind::InvalidArg)? {
        ContextValue::String(arg) if e.kind() == ErrorKind::UnknownArgument => {
            let digits = arg.strip_prefix('-')?;
            digits.starts_with(|c: char| c.is_ascii_digit()).then_some(arg)
        }
        _ => None,
    }
}

/// The lines of a message in one.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line() {
        assert_eq!(one_line("a:\n  b\n\n  tip: c"), "a: b; tip: c");
    }
}
