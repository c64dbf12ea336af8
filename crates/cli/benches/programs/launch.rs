//! Where a program runs: as it is, or under `refault run`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts programs, and knows how the last one fared.
pub struct Launcher {
    prefix: Vec<String>,
    json: Option<PathBuf>,
    /// Seconds of the last program, from its start to its end.
    pub wall_s: f64,
}

/// How a program under `refault run` fared.
pub struct Finished(serde_json::Value);

impl Finished {
    /// A figure of `--json`.
    pub fn number(&self, key: &str) -> Result<f64, String> {
        self.0[key].as_f64().ok_or_else(|| format!("no {key} in {}", self.0))
    }
}

impl Launcher {
    /// The program as it is.
    pub fn plain() -> Launcher {
        Launcher { prefix: Vec::new(), json: None, wall_s: 0.0 }
    }

    /// The program under `refault run` with these flags; its figures go into `dir`.
    pub fn refault(flags: &[&str], dir: &Path) -> Launcher {
        let json = dir.join("run.json");
        let mut prefix = vec![env!("CARGO_BIN_EXE_refault").to_owned(), "run".to_owned(), "--quiet".to_owned()];
        prefix.extend(["--json".to_owned(), json.to_str().expect("plain text").to_owned()]);
        prefix.extend(flags.iter().map(ToString::to_string));
        prefix.push("--".to_owned());
        Launcher { prefix, json: Some(json), wall_s: 0.0 }
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let words: Vec<&str> =
            self.prefix.iter().map(String::as_str).chain([program]).chain(args.iter().copied()).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end; its standard output.
    pub fn run(&mut self, dir: &Path, program: &str, args: &[&str]) -> Result<String, String> {
        let start = Instant::now();
        let output = self.command(program, args).current_dir(dir).output().map_err(|e| format!("{program}: {e}"))?;
        self.wall_s = start.elapsed().as_secs_f64();
        finished(program, &output)?;
        String::from_utf8(output.stdout).map_err(|e| format!("{program}: {e}"))
    }

    /// Starts a server, and leaves it to whoever gets it.
    pub fn server(&self, dir: &Path, program: &str, args: &[&str]) -> Result<Server, String> {
        let mut command = self.command(program, args);
        command.current_dir(dir).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Server {
            child: command.spawn().map_err(|e| format!("{program}: {e}"))?,
            name: program.to_owned(),
            start: Instant::now(),
        })
    }

    /// The figures of the last run, under `refault run`.
    pub fn finished(&self) -> Option<Finished> {
        let text = std::fs::read(self.json.as_ref()?).ok()?;
        serde_json::from_slice(&text).ok().map(Finished)
    }
}

fn finished(program: &str, output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// A server that is killed if nobody waits for it.
pub struct Server {
    child: Child,
    name: String,
    start: Instant,
}

impl Server {
    /// Asks it to end.
    pub fn terminate(&self) -> Result<(), String> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().map_err(|e| e.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("{} is gone", self.name)) }
    }

    /// Waits until it has ended by itself.
    pub fn end(mut self, launcher: &mut Launcher) -> Result<(), String> {
        let status = self.child.wait().map_err(|e| e.to_string())?;
        launcher.wall_s = self.start.elapsed().as_secs_f64();
        let mut said = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut pipe, &mut said);
        }
        if status.success() { Ok(()) } else { Err(format!("{}: {status}: {said}", self.name)) }
    }

    /// Tries until it works, for 20 s.
    pub fn wait_for<T>(&mut self, mut what: impl FnMut() -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(got) = what() {
                return Ok(got);
            }
            let ended = self.child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > until {
                return Err(format!("{} does not answer ({ended:?})", self.name));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.terminate();
            let _ = self.child.wait();
        }
    }
}
