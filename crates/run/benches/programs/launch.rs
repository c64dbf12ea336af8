//! How a program is started: as it is, or under `refault run`, in a cgroup or not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Starts programs, and knows how the last one fared.
pub struct Launcher {
    prefix: Vec<String>,
    json: Option<PathBuf>,
    /// Seconds of the last program, from its start to its end.
    pub wall_s: f64,
    pid: Pid,
}

/// The process that was started last.
#[derive(Clone, Default)]
pub struct Pid(Arc<AtomicU32>);

impl Pid {
    /// Ends it.
    pub fn end(&self) {
        let pid = self.0.load(Ordering::Relaxed);
        if pid > 0 {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }
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
    pub fn plain(cgroup: Option<&Path>) -> Launcher {
        let prefix = cgroup.map_or_else(Vec::new, |cgroup| {
            let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
            ["sh", "-c", enter, cgroup.to_str().expect("plain text")].map(str::to_owned).to_vec()
        });
        Launcher { prefix, json: None, wall_s: 0.0, pid: Pid::default() }
    }

    /// The program under `refault run` with these flags; its figures go into `dir`.
    pub fn refault(cgroup: Option<&Path>, flags: &[&str], dir: &Path) -> Launcher {
        let json = dir.join("run.json");
        let mut launcher = Launcher::plain(cgroup);
        let start = [env!("CARGO_BIN_EXE_refault-run"), "--quiet", "--json", json.to_str().expect("plain text")];
        launcher.prefix.extend(start.iter().chain(flags).chain(&["--"]).map(ToString::to_string));
        Launcher { json: Some(json), ..launcher }
    }

    /// Process id of the program that it starts.
    pub fn pid(&self) -> Pid {
        self.pid.clone()
    }

    fn spawn(&self, program: &str, command: &mut Command) -> Result<Child, String> {
        let child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
        self.pid.0.store(child.id(), Ordering::Relaxed);
        Ok(child)
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
        let mut command = self.command(program, args);
        command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = self.spawn(program, &mut command)?.wait_with_output().map_err(|e| format!("{program}: {e}"))?;
        self.wall_s = start.elapsed().as_secs_f64();
        finished(program, &output)?;
        String::from_utf8(output.stdout).map_err(|e| format!("{program}: {e}"))
    }

    /// Starts a server, and leaves it to its owner.
    pub fn server(&self, dir: &Path, program: &str, args: &[&str]) -> Result<Server, String> {
        let mut command = self.command(program, args);
        command.current_dir(dir).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Server { child: self.spawn(program, &mut command)?, name: program.to_owned(), start: Instant::now() })
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

    /// Tries until it works, or the server ends, for four minutes.
    pub fn wait_for<T>(&mut self, mut what: impl FnMut() -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + Duration::from_secs(240);
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
