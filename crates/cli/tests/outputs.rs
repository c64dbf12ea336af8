//! Every command that writes a file, against all that can be where it writes: a link, a file with
//! rights of its own, no folder, a full disk, an end in the middle.

use crate::common::command::{Sandbox, ok};
use refault_testing::{Need, absent, one_in, require};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A command that writes `OUT`; `main.rs` has a test that each flag and word for a file of results
/// is here.
struct Writes {
    words: &'static [&'static str],
    /// Need that the machine may not meet.
    need: Option<Need>,
    /// Whether the file is for nobody else.
    private: bool,
}

const fn writes(words: &'static [&'static str]) -> Writes {
    Writes { words, need: None, private: false }
}

const ALL: &[Writes] = &[
    writes(&["replay", "loop.parquet", "--policy", "lru", "--memory", "20%", "--output", "OUT"]),
    writes(&["replay", "loop.parquet", "--policy", "lru", "--memory", "20%", "--html", "OUT"]),
    writes(&["replay", "loop.parquet", "--policy", "lru", "--memory", "20%", "--metrics", "OUT"]),
    writes(&["replay", "loop.parquet", "--policy", "lru", "--memory", "20%", "--miss-bits", "OUT"]),
    writes(&["replay", "tiny.toml", "--policy", "lru", "--series", "OUT"]),
    writes(&["size", "loop.parquet", "--target", "hit_rate>10%", "--output", "OUT"]),
    writes(&["whatif", "loop.parquet", "--memory", "20%", "--kernel", "6.18", "--output", "OUT"]),
    writes(&["explain", "before", "after", "--output", "OUT"]),
    writes(&["report", "loop.parquet", "--output", "OUT"]),
    writes(&["bench", "tiny.toml", "--output", "OUT"]),
    writes(&["verify", "recording.parquet", "--output", "OUT"]),
    writes(&["trace", "generate", "OUT", "--phase", "900: A:loop:300"]),
    writes(&["trace", "convert", "loop.parquet", "OUT"]),
    Writes {
        need: Some(Need::Uffd),
        ..writes(&["run", "--memory-max", "32M", "--json", "OUT", "--", "sleep", "0.123"])
    },
    Writes { need: Some(Need::Uffd), ..writes(&["run", "--memory-max", "32M", "--metrics", "OUT", "--", "true"]) },
    Writes {
        need: Some(Need::Tracefs),
        private: true,
        words: &["record", "--output", "OUT", "--", "cat", "tiny.toml"],
    },
    Writes {
        need: Some(Need::Uffd),
        private: true,
        words: &[
            "run",
            "--memory-max",
            "8M",
            "--swap-max",
            "256M",
            "--record",
            "OUT",
            "--",
            "sh",
            "-c",
            "head -c 30000000 /dev/zero | tr '\\0' x | sort",
        ],
    },
];

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.generate("loop.parquet", &["900: A:loop:300"]);
    s.write("before", b"nr_free_pages 9\npgfault 1\n");
    s.write("after", b"nr_free_pages 9\npgfault 2\n");
    s.write("tiny.toml", include_str!("data/tiny.toml").as_bytes());
    crate::verify::made_up(&s.path("recording.parquet"), 200, |i| i < 100);
    s
}

impl Writes {
    /// The command with this name for its file.
    fn at(&self, s: &Sandbox, out: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
        let words = self.words.iter().map(|word| if *word == "OUT" { out } else { word });
        command.args(words).current_dir(s.path(".")).stdin(Stdio::null());
        command
    }

    fn run(&self, s: &Sandbox, out: &str) -> Output {
        self.at(s, out).output().expect("it runs")
    }

    /// Whether the machine can do it.
    fn is_possible(&self, s: &Sandbox) -> bool {
        let Some(need) = self.need else { return true };
        let done = self.run(s, "tried");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let _ = fs::remove_file(s.path("tried"));
        if !done.status.success() {
            absent(need, said.trim());
        }
        done.status.success()
    }
}

/// Checks each command that writes and that the machine can do, or one of five where tests are
/// short, in a folder of its own with its inputs.
fn each(check: impl Fn(&Writes, &Sandbox)) {
    for command in ALL.iter().step_by(one_in(5)) {
        println!("{:?}", command.words); // shown when it fails
        let s = sandbox();
        if command.is_possible(&s) {
            check(command, &s);
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// The one line that a refused command ends in.
#[track_caller]
fn refused(done: &Output, want: &str) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("error: ") && line.contains(want)), "{said}");
}

#[test]
fn regression_a_link_stays_and_rights_are_kept() {
    each(|command, s| {
        fs::write(s.path("real"), "old").expect("ours");
        fs::set_permissions(s.path("real"), fs::Permissions::from_mode(0o600)).expect("ours");
        symlink("real", s.path("link")).expect("ours");
        let before = s.files();
        ok(&command.run(s, "link"));
        assert!(s.path("link").is_symlink() && s.path("real").is_file());
        assert_eq!((mode(&s.path("real")), s.files()), (0o600, before));
        assert_ne!(fs::read(s.path("real")).expect("there"), b"old");
        ok(&command.run(s, "new"));
        assert_eq!(mode(&s.path("new")) & 0o077 == 0, command.private, "{:o}", mode(&s.path("new")));
    });
}

#[test]
fn regression_links_of_others_are_not_followed_where_everybody_may_lay_them() {
    each(|command, s| {
        fs::create_dir(s.path("all")).expect("ours");
        fs::set_permissions(s.path("all"), fs::Permissions::from_mode(0o1777)).expect("ours");
        fs::write(s.path("secret"), "secret").expect("ours");
        symlink("../secret", s.path("all/link")).expect("ours");
        fs::write(s.path("all/file"), "").expect("ours");
        if chown(s.path("all/file"), Some(65_534), None).is_err() {
            return; // Only root can be fooled.
        }
        lchown(s.path("all/link"), Some(65_534), None).expect("root");
        refused(&command.run(s, "all/link"), "is not followed");
        refused(&command.run(s, "all/file"), "is a file of user 65534");
        assert_eq!(fs::read(s.path("secret")).expect("there"), b"secret");
        assert!(fs::read(s.path("all/file")).expect("there").is_empty());
    });
}

#[test]
fn no_folder_a_device_and_a_folder_are_refused() {
    each(|command, s| {
        let before = s.files();
        refused(&command.run(s, "no/such/file"), "no/such/file: cannot be written: No such file or directory");
        refused(&command.run(s, "/dev/full"), "/dev/full: is not a regular file");
        refused(&command.run(s, "."), "is a directory");
        assert_eq!(s.files(), before);
    });
}

/// The limit of a file's size, which needs no rights.
#[test]
fn regression_a_file_that_cannot_grow_is_an_error_and_leaves_nothing() {
    each(|command, s| {
        let before = s.files();
        let whole = command.at(s, "out");
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\""]).arg(whole.get_program()).args(whole.get_args());
        let done = limited.current_dir(s.path(".")).stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        // A program that is served cannot even start then.
        refused(&done, if said.contains("ulimit -f") { "raise that limit" } else { "File too large" });
        assert_eq!(s.files(), before);
    });
}

/// A file system of 64 KiB that is full, or nearly so.
#[test]
fn regression_a_full_disk_is_an_error_of_one_line_and_leaves_nothing() {
    let mounted = |s: &Sandbox, script: &str| {
        let script = format!("mount -t tmpfs -o size=64k none small && {script}");
        Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(s.path(".")).stdin(Stdio::null()).output()
    };
    let s = sandbox();
    fs::create_dir(s.path("small")).expect("ours");
    let can = match mounted(&s, "true") {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(e) => Err(format!("unshare: {e}")),
    };
    if require(Need::Mount, can).is_none() {
        return;
    }
    each(|command, s| {
        fs::create_dir(s.path("small")).expect("ours");
        for taken in [64, 60] {
            let words = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
            let whole = command.at(s, "small/out");
            let line: Vec<_> = whole.get_args().map(|word| words(word.to_str().expect("text"))).collect();
            let (refault, line) = (env!("CARGO_BIN_EXE_refault"), line.join(" "));
            let fill = format!("head -c {taken}K /dev/zero >small/fill; rm -f left");
            let script = format!("{fill}; {refault} {line}; code=$?; ls -A small >left; exit $code");
            let done = mounted(s, &script).expect("it runs");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let left = fs::read_to_string(s.path("left")).expect("listed");
            if done.status.success() && taken < 64 {
                assert_eq!(left, "fill\nout\n", "{said}");
                continue;
            }
            refused(&done, "small/out: cannot be written: No space left on device");
            assert!(!said.contains("os error") && said.matches("error: ").count() == 1, "{said}");
            // A recorder keeps what it has, and says so.
            let is_kept = left == "fill\nout.part\n" && command.words[0] == "record" && said.contains("small/out.part");
            assert!(left == "fill\n" || is_kept, "{left}: {said}");
        }
    });
}

#[test]
fn regression_an_end_in_the_middle_leaves_nothing() {
    each(|command, s| {
        for (i, signal) in ["TERM", "INT", "HUP", "KILL"].into_iter().enumerate() {
            let before = s.files();
            let mut child = command.at(s, "out").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
            std::thread::sleep(Duration::from_millis(3 + 10 * i as u64));
            let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(kill.is_ok());
            child.wait().expect("ours");
            let mut after = s.files();
            // It may have been done already; and what a recorder has is worth keeping.
            after.retain(|name| name != "out" && !(name == "out.part" && command.words[0] == "record"));
            assert_eq!(after, before, "{signal}");
            _ = (fs::remove_file(s.path("out")), fs::remove_file(s.path("out.part")));
        }
    });
}

/// A name that steers the terminal, in each message that has it.
#[test]
fn regression_names_of_files_do_not_steer_the_terminal() {
    const NAME: &str = "\x1b[31mred\u{9b}7m\u{202e}";
    each(|command, s| {
        let clean = |done: &Output| {
            let said = [&done.stdout[..], &done.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains(['\x1b', '\u{9b}', '\u{202e}']), "{said:?}");
        };
        clean(&command.run(s, &format!("{NAME}/{NAME}")));
        clean(&command.run(s, NAME));
        for input in ["loop.parquet", "tiny.toml", "recording.parquet"] {
            fs::copy(s.path(input), s.path(&format!("{NAME}{input}"))).expect("ours");
        }
        // The words of a program are its own affair.
        let ours = command.words.iter().position(|word| *word == "--").unwrap_or(command.words.len());
        let words = |change: &dyn Fn(&str) -> String| -> Vec<String> {
            let one = |(i, word): (usize, &&str)| match *word {
                "OUT" => "out".into(),
                word if i < ours => change(word),
                word => word.to_owned(),
            };
            command.words.iter().enumerate().map(one).collect()
        };
        let is_input = |word: &str| s.path(word).is_file();
        clean(&s.run(&words(&|word| if is_input(word) { format!("{NAME}{word}") } else { word.into() })));
        clean(&s.run(&words(&|word| if is_input(word) { NAME.into() } else { word.into() })));
        clean(&s.run(&words(&|word| {
            if word.starts_with("--") && word != "--" { format!("{word}{NAME}") } else { word.into() }
        })));
    });
}

/// The program would have been told that its figures are there.
#[test]
fn regression_metrics_that_cannot_be_written_are_an_error() {
    let s = sandbox();
    let Some(command) = ALL.iter().find(|command| command.words.contains(&"--metrics") && command.need.is_some())
    else {
        return;
    };
    if command.is_possible(&s) {
        fs::create_dir(s.path("gone")).expect("ours");
        let mut late = s.path(".").display().to_string();
        late.push_str("/gone/out");
        let words = ["run", "--memory-max", "32M", "--metrics", &late, "--", "rmdir", "gone"];
        refused(&s.run(&words), "--metrics ");
    }
}

/// A folder for temporary files that is not there was made, as root.
#[test]
fn regression_a_folder_for_temporary_files_that_is_not_there_is_not_made() {
    let s = sandbox();
    for command in ALL.iter().filter(|command| command.need.is_some()) {
        if command.is_possible(&s) {
            let gone = s.path("gone");
            let mut command = command.at(&s, "out");
            let done = command.env("TMPDIR", &gone).env_remove("XDG_RUNTIME_DIR").output().expect("it runs");
            assert!(!gone.exists());
            refused(&done, "gone: is not there; make that folder, or name another");
            assert!(!s.path("out").exists());
        }
    }
}

/// Arguments may be passwords.
#[test]
fn regression_files_of_a_run_have_its_programs_name_alone_unless_asked() {
    let s = sandbox();
    for command in ALL.iter().filter(|command| command.words[0] == "run" && command.is_possible(&s)) {
        let split = command.words.iter().position(|word| *word == "--").expect("a program");
        let words: Vec<_> = command.words.iter().map(|word| if *word == "OUT" { "out" } else { word }).collect();
        let secret = words[split + 1..].last().expect("a word").to_string();
        if words.len() < split + 3 {
            continue;
        }
        for (flags, shown) in [(&[][..], false), (&["--command-line"][..], true)] {
            ok(&s.run(&[&words[..1], flags, &words[1..]].concat()));
            let text = String::from_utf8_lossy(&fs::read(s.path("out")).expect("there")).into_owned();
            assert_eq!(text.contains(&secret.replace('\\', "\\\\")) || text.contains(&secret), shown, "{words:?}");
        }
    }
}

/// Files are written and lines are said by the two functions that do it as it is to be done.
#[test]
fn nothing_is_written_or_said_beside_the_two_ways() {
    fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).expect("there") {
            let path = entry.expect("readable").path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut all = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    assert!(all.len() > 50);
    all.retain(|path| path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs"));
    for path in all {
        let text = fs::read_to_string(&path).expect("text");
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (words, instead) in [
            ("eprintln!", "crate::say"),
            ("println!", "crate::print"),
            (" File::create", "AtomicFile"),
            ("fs::File::create", "AtomicFile"),
            ("fs::write(", "AtomicFile"),
            ("create(true)", "AtomicFile"),
        ] {
            // The history of a watcher grows by whole lines; an empty file holds the folder of
            // runs.
            let appends = words == "create(true)" && path.ends_with("watch/mod.rs");
            let holds = words.ends_with("File::create") && path.ends_with("src/live.rs");
            let is_there = shipped.contains(words) && !path.ends_with("src/lib.rs") && !appends && !holds;
            assert!(!is_there, "{}: has {words}; use {instead}", path.display());
        }
    }
}

/// A page of a private recording could be read by everybody, names of files and all.
#[test]
fn regression_what_is_made_of_a_private_input_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let s = Sandbox::new();
    s.generate("trace.parquet", &["900: A:loop:300"]);
    for mode in [0o600, 0o644] {
        std::fs::set_permissions(s.path("trace.parquet"), std::fs::Permissions::from_mode(mode)).expect("ours");
        for words in [
            &["report", "trace.parquet", "-o", "out"][..],
            &["replay", "trace.parquet", "--memory", "20%", "--output", "out"],
            &["replay", "trace.parquet", "--memory", "20%", "--output", "other", "--html", "out"],
            &["size", "trace.parquet", "--output", "out"],
        ] {
            ok(&s.run(words));
            let of_output = std::fs::metadata(s.path("out")).expect("there").permissions().mode();
            assert_eq!(of_output & 0o077 == 0, mode == 0o600, "{words:?}: {of_output:o}");
            std::fs::remove_file(s.path("out")).expect("there");
        }
    }
}
