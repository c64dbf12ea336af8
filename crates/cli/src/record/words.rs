//! A command line whose `-o` or `--` is missing, as it was meant.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Advice on words that are neither behind a flag nor behind `--`; none: there are none.
pub(super) fn correct(words: &[OsString], command: &[OsString], output: Option<&Path>) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let text = |words: &[OsString]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    Some(match (output, command.is_empty()) {
        (Some(output), true) => {
            format!("the program goes behind --: refault record -o {} -- {}", quoted(output.as_os_str()), text(words))
        }
        (Some(output), false) => format!(
            "{}: is neither behind a flag nor part of the program, which goes behind --: refault record -o {} -- {}",
            quoted(first),
            quoted(output.as_os_str()),
            text(command)
        ),
        (None, false) => {
            format!("the file goes behind -o: refault record -o {} -- {}", quoted(first), text(command))
        }
        (None, true) if rest.is_empty() || is_program(first) => {
            let (file, program) = match is_program(first) {
                true => ("job.parquet".to_owned(), text(words)),
                false => (quoted(first), "COMMAND".to_owned()),
            };
            format!("the file goes behind -o, and the program behind --: refault record -o {file} -- {program}")
        }
        (None, true) => format!(
            "the file goes behind -o, and the program behind --: refault record -o {} -- {}",
            quoted(first),
            text(rest)
        ),
    })
}

/// Whether a word can be run: by its path, or by where programs are.
fn is_program(word: &OsStr) -> bool {
    let can_run = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if word.as_encoded_bytes().contains(&b'/') {
        return can_run(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| can_run(&folder.join(word)))
}

/// As a shell takes it.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str], command: &[&str], output: Option<&str>) -> Option<String> {
        let own = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        correct(&own(words), &own(command), output.map(Path::new))
    }

    #[test]
    fn what_is_missing_is_said_with_the_line_that_was_meant() {
        let ends = |told: Option<String>, line: &str| {
            let told = told.expect("a mistake");
            assert!(told.ends_with(&format!(": refault record {line}")), "{told}");
        };
        assert_eq!(told(&[], &["sh"], Some("x")), None);
        ends(told(&["x.parquet", "sleep", "1"], &[], None), "-o x.parquet -- sleep 1");
        ends(told(&["x.parquet"], &["sleep", "1"], None), "-o x.parquet -- sleep 1");
        ends(told(&["sh", "a b"], &[], Some("x.parquet")), "-o x.parquet -- sh 'a b'");
        ends(told(&["sh", "it's"], &[], None), "-o job.parquet -- sh 'it'\\''s'");
        ends(told(&["x.parquet"], &[], None), "-o x.parquet -- COMMAND");
        ends(told(&["y"], &["sh"], Some("x.parquet")), "-o x.parquet -- sh");
    }
}
