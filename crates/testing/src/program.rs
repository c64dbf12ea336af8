//! Tests that start themselves: as a program under `refault run`, or to be alone in a process.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Says to a test what it is to do as a program.
const ROLE: &str = "REFAULT_TEST_ROLE";
/// Says to a test that it is alone in its process.
const ALONE: &str = "REFAULT_TEST_ALONE";

/// The name by which the harness knows a test of the module that calls this:
/// `test_name!(the_program)`.
#[macro_export]
macro_rules! test_name {
    ($test:ident) => {{
        let _: fn() = $test;
        $crate::test_name(module_path!(), stringify!($test))
    }};
}

/// The name of a test as the harness knows it: without the name of the crate. See the macro.
pub fn test_name(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, inner)) => format!("{inner}::{test}"),
        None => test.to_owned(),
    }
}

/// Role of this process as a program; `None`: it is a test.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This executable, started anew to run one test that takes the part of a program.
#[derive(Clone, Debug)]
pub struct Program {
    test: String,
    variables: Vec<(String, OsString)>,
}

impl Program {
    /// The test of this name (see [`test_name!`]), in a role. More than one word may be said with
    /// it.
    pub fn new(test: String, role: &str) -> Program {
        Program { test, variables: vec![(ROLE.into(), role.into())] }
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Program {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The same in the words of a command line, of which the first is the program: `env`, with the
    /// variables before the executable.
    ///
    /// # Panics
    ///
    /// If this executable is not there any more.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from("/usr/bin/env")];
        for (name, value) in &self.variables {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(value);
            words.push(word);
        }
        words.push(std::env::current_exe().expect("it runs").into());
        let flags = ["--exact", self.test.as_str(), "--nocapture", "-q", "--test-threads=1"];
        words.extend(flags.map(OsString::from));
        words
    }

    /// A command that starts it.
    pub fn command(&self) -> Command {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// For tests that look at their whole process, or change it: whether this one is alone in it. If it
/// is not, it was started anew in a process of its own, and has passed there.
///
/// ```ignore
/// if !is_alone(test_name!(this_test)) { return }
/// ```
///
/// # Panics
///
/// If it failed there.
pub fn is_alone(test: String) -> bool {
    if std::env::var_os(ALONE).is_some_and(|name| *name == *test) {
        return true;
    }
    let program = Program { test: test.clone(), variables: vec![(ALONE.into(), (&test).into())] };
    // Its words go where this test's words go: past the harness.
    let status = program.command().stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.unwrap_or_else(|e| panic!("{test} cannot be started: {e}"));
    assert!(status.success(), "{test}, alone in a process: {status}");
    false
}
