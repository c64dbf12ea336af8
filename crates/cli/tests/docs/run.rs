//! Runs what pages show, and compares.

use super::markdown::{Block, Page};
use refault_testing::{Need, absent, is_long, is_whole};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A command of a page and what it is to say.
struct Step {
    command: String,
    said: Vec<String>,
}

/// The commands of a block. A line that ends in a backslash goes on.
fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in &block.lines {
        if goes_on {
            let step = steps.last_mut().expect("what goes on has begun");
            step.command.push('\n');
            step.command.push_str(line);
            goes_on = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), said: Vec::new() });
            goes_on = command.ends_with('\\');
        } else {
            steps.last_mut().expect("a block of commands begins with one").said.push(line.clone());
        }
    }
    steps
}

/// Runs all pages, several at a time; a page has a directory of its own, in which its commands
/// follow one another.
pub fn run_all(root: &Path, pages: &[Page]) -> Vec<String> {
    let complaints = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_page(root, page);
                    complaints.lock().expect("nobody panicked").extend(found);
                }
            });
        }
    });
    complaints.into_inner().expect("nobody panicked")
}

/// The command: of this build, or that of `REFAULT_COMMAND`. Pages that show whole benchmarks are
/// through sooner with one that was built for release, and say the same.
fn refault() -> OsString {
    std::env::var_os("REFAULT_COMMAND").unwrap_or_else(|| env!("CARGO_BIN_EXE_refault").into())
}

fn run_page(root: &Path, page: &Page) -> Vec<String> {
    let overwrite = std::env::var_os("REFAULT_DOCS").is_some_and(|v| v == "overwrite");
    let mut complaints = Vec::new();
    let mut changed: Vec<(usize, Vec<String>)> = Vec::new();
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(refault(), dir.path().join("refault")).expect("a link");
    for name in ["data", "scenarios", "examples"] {
        std::os::unix::fs::symlink(root.join(name), dir.path().join(name)).expect("a link");
    }
    for block in page.consoles() {
        let is_due = match block.info.as_str() {
            "console long" => is_long(),
            "console all" => is_whole(),
            _ => true,
        };
        if !is_due {
            continue;
        }
        if block.lines.iter().any(|line| line.contains("refault run")) && !can_run() {
            println!("{}:{}: skipped, this machine does not allow refault run", page.name, block.line);
            continue;
        }
        let mut lines = Vec::new();
        for step in steps(block) {
            let said = say(dir.path(), &step.command);
            let same = compare(&said, &step.said.join("\n"));
            let elided = step.said.iter().any(|line| line.contains("[..]") || line.trim() == "...");
            lines.extend(format!("$ {}", step.command).lines().map(str::to_owned));
            match same {
                Err(difference) if !overwrite || elided => {
                    complaints.push(format!("{}:{}: $ {}\n{difference}", page.name, block.line, step.command));
                    lines.extend(step.said);
                }
                Err(_) => lines.extend(said.lines().map(str::to_owned)),
                Ok(()) => lines.extend(step.said),
            }
        }
        if lines != block.lines {
            changed.push((block.line, lines));
        }
    }
    if overwrite && !changed.is_empty() {
        write(root, page, &changed);
    }
    complaints
}

/// Whether `refault-run` is beside the command. Without it what pages say of it is not compared.
pub fn has_run() -> bool {
    let help = Command::new(refault()).args(["run", "--help"]).output().expect("the command runs");
    if !help.status.success() {
        absent(Need::RefaultRun, String::from_utf8_lossy(&help.stderr).trim());
    }
    help.status.success()
}

/// Whether this machine allows `refault run`. `REFAULT_REQUIRE=uffd`, or `all`, says that it must.
pub fn can_run() -> bool {
    if !has_run() {
        return false;
    }
    let required =
        std::env::var("REFAULT_REQUIRE").is_ok_and(|list| list.split(',').any(|word| ["uffd", "all"].contains(&word)));
    let doctor = Command::new(refault()).arg("doctor").output().expect("the command runs");
    let text = String::from_utf8_lossy(&doctor.stdout);
    let trace = text.lines().any(|line| line.starts_with("capabilities") && line.contains("CAP_SYS_PTRACE"));
    required || doctor.status.success() && trace
}

/// Output of a command: standard output and then, if it fails, standard error.
fn say(dir: &Path, command: &str) -> String {
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let mut text = String::from_utf8(output.stdout).expect("text");
    if !output.status.success() {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    text
}

/// Compares without what differs from run to run. `[..]` is anything in a line, `...` alone any
/// lines.
fn compare(said: &str, shown: &str) -> Result<(), String> {
    let plain = |text: &str| mask(text).trim_end().to_owned() + "\n";
    let assert = snapbox::Assert::new().action(snapbox::assert::Action::Verify);
    let shown = snapbox::IntoData::into_data(plain(shown));
    let said = snapbox::IntoData::into_data(plain(said));
    assert.try_eq(None, said, shown).map_err(|e| e.to_string())
}

/// Takes out what a machine does faster or slower: speeds in the last column, real seconds.
fn mask(text: &str) -> String {
    let mut out = String::new();
    let mut before = "";
    let mut has_speed = false;
    for line in text.lines() {
        has_speed = line.trim_end().ends_with(" per s") && before.trim_end().ends_with(" M acc") || has_speed;
        let columns = line.split_whitespace().count();
        let last = line.split_whitespace().last().unwrap_or_default();
        let is_speed = has_speed && columns >= 7 && last.parse::<f64>().is_ok();
        let line = if is_speed { line[..line.trim_end().len() - last.len()].trim_end() } else { line };
        out.push_str(&seconds(line));
        out.push('\n');
        before = line;
    }
    out
}

/// `103.0 s virtual in 0.3 s` and `the runs took 0.3 s` without the real time, and how large a page
/// is, of which a change of its styles changes the bytes.
fn seconds(line: &str) -> String {
    for lead in [" s virtual in ", "the runs took ", ".html: "] {
        if let Some(at) = line.find(lead).filter(|_| line.trim_end().ends_with(" s")) {
            return line[..at + lead.len()].to_owned();
        }
    }
    line.to_owned()
}

/// Puts what commands said into a page.
fn write(root: &Path, page: &Page, changed: &[(usize, Vec<String>)]) {
    let path = root.join(&page.name);
    let text = std::fs::read_to_string(&path).expect("the page");
    let mut out: Vec<&str> = Vec::new();
    let mut inside: Option<&[String]> = None;
    for (n, line) in text.lines().enumerate() {
        if inside.is_some() && line.trim_start().starts_with("```") {
            inside = None;
        }
        if inside.is_none() {
            out.push(line);
        }
        if let Some((_, lines)) = changed.iter().find(|(at, _)| *at == n + 1) {
            out.extend(lines.iter().map(String::as_str));
            inside = Some(lines);
        }
    }
    std::fs::write(path, out.join("\n") + "\n").expect("writable");
}

/// Output of a command with `--json`, run in a directory.
pub fn json(dir: &Path, args: &[&str]) -> serde_json::Value {
    let output = Command::new(refault()).args(args).current_dir(dir).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}: {text}"))
}

/// The long flags that the help of a command names; none of `refault run` and `top` where these are
/// absent.
pub fn flags(command: &str) -> BTreeSet<String> {
    if ["run", "top"].contains(&command) && !has_run() {
        return BTreeSet::new();
    }
    let mut words: Vec<&str> = command.split(' ').collect();
    words.push("--help");
    let output = Command::new(refault()).args(&words).output().expect("the command runs");
    assert!(output.status.success(), "refault {command} --help");
    let help = String::from_utf8(output.stdout).expect("text");
    let named = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    named
        .flat_map(|line| line.split([' ', ',', '=', '[']).filter(|word| word.starts_with("--")).take(1))
        .map(str::to_owned)
        .collect()
}

/// The commands of a shell text that begin with `refault`, each in one line.
pub fn refault_commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let parts = joined.lines().flat_map(|line| line.split(['|', ';']));
    parts
        .map(|part| part.trim().trim_start_matches("$ "))
        .filter(|p| p.starts_with("refault "))
        .map(str::to_owned)
        .collect()
}
