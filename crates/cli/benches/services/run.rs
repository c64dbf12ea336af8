//! One run of a row in a limit, recorded.

use crate::disk::Disk;
use crate::group::Group;
use crate::machine::{self, at};
use crate::rows::{How, Row};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The longest that one step of a run may take.
const STEP_S: u64 = 900;

/// Where a row has its things.
pub struct Place {
    /// Images, and folders with recordings.
    pub folder: PathBuf,
    /// Divides sizes and counts.
    pub scale: u64,
}

impl Place {
    /// The image with the data of a script, made the first time.
    pub fn image(&self, row: &Row) -> Result<PathBuf, String> {
        let image = self.folder.join(format!("{}.img", row.script));
        let done = image.with_extension("made");
        if !done.exists() {
            Disk::make(&image, row.disk_mib)?;
            let disk = Disk::mount(&image, &self.mount())?;
            self.command(row, "prepare", None)?.finish()?;
            drop(disk);
            fs::write(&done, "").map_err(at(done.display()))?;
        }
        Ok(image)
    }

    fn mount(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    /// For logs, sockets and the like.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// A verb of the script, in a group or outside.
    fn command(&self, row: &Row, verb: &str, group: Option<&Group>) -> Result<Step, String> {
        fs::create_dir_all(self.work()).map_err(at(self.work().display()))?;
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/services/rows");
        let mut command = Command::new("sh");
        if let Some(group) = group {
            // Joins before it becomes the program.
            command.args(["-c", "echo 0 >\"$GROUP\" && exec sh \"$@\"", "sh"]);
            command.env("GROUP", group.processes());
        }
        command.arg(scripts.join(format!("{}.sh", row.script))).args(verb.split(' '));
        command.current_dir(self.mount()).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("HERE", &scripts).env("WORK", self.work()).env("SCALE", self.scale.to_string());
        command.envs(row.variables.iter().copied());
        Ok(Step { command, name: format!("{} {verb}", row.name) })
    }

    /// Runs it; the recording is the file. Bytes that were read from the device meanwhile.
    pub fn record(&self, row: &Row, limit_bytes: u64, file: &Path) -> Result<u64, String> {
        let mut image = self.image(row)?;
        if row.changes {
            let copy = self.folder.join("run.img");
            let _ = fs::remove_file(&copy);
            machine::run("cp", &["--sparse=always", &image.to_string_lossy(), &copy.to_string_lossy()])?;
            image = copy;
        }
        machine::run("sync", &[])?;
        let disk = Disk::mount(&image, &self.mount())?;
        let group = Group::new("refault-services", limit_bytes)?;
        match row.how {
            How::Attached => self.attached(row, &disk, &group, file),
            How::FromStart => self.whole(row, &disk, &group, file),
            How::Shared => {
                let other = Group::new("refault-services-2", row.recorded_mib[0] << 20)?;
                let mut beside = self.command(row, "other", Some(&other))?.start()?;
                machine::pause_ms(3000);
                let read = self.whole(row, &disk, &group, file);
                drop(other);
                machine::wait(&mut beside, "the second group", 60)?;
                read
            }
        }
    }

    fn attached(&self, row: &Row, disk: &Disk, group: &Group, file: &Path) -> Result<u64, String> {
        let mut server = self.command(row, "serve", Some(group))?.start()?;
        self.command(row, "ready", None)?.finish_beside(&mut server)?;
        self.command(row, "load warm", None)?.finish_beside(&mut server)?;
        let mut recorder = recorder(group, file).command.spawn().map_err(at("refault record"))?;
        let part = PathBuf::from(format!("{}.part", file.display()));
        while !part.exists() && recorder.try_wait().map_err(at("refault record"))?.is_none() {
            machine::pause_ms(20);
        }
        machine::pause_ms(1500);
        let before = disk.read_bytes();
        self.command(row, "load measure", None)?.finish()?;
        let read = disk.read_bytes() - before;
        machine::run("kill", &["-INT", &recorder.id().to_string()])?;
        machine::wait(&mut recorder, "refault record", STEP_S)?;
        self.command(row, "stop", None)?.finish()?;
        machine::wait(&mut server, row.name, STEP_S)?;
        Ok(read)
    }

    fn whole(&self, row: &Row, disk: &Disk, group: &Group, file: &Path) -> Result<u64, String> {
        let serve = self.command(row, "serve", None)?.command;
        let mut step = recorder(group, file);
        step.command.arg("--").arg(serve.get_program()).args(serve.get_args());
        step.command.current_dir(self.mount());
        step.command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let before = disk.read_bytes();
        let mut recorder = step.start()?;
        if row.has_load {
            self.command(row, "ready", None)?.finish_beside(&mut recorder)?;
            self.command(row, "load measure", None)?.finish_beside(&mut recorder)?;
            self.command(row, "stop", None)?.finish()?;
        }
        machine::wait(&mut recorder, row.name, STEP_S)?;
        Ok(disk.read_bytes() - before)
    }
}

fn recorder(group: &Group, file: &Path) -> Step {
    let _ = fs::remove_file(file);
    let _ = fs::remove_file(format!("{}.part", file.display()));
    let mut command = machine::command();
    command.arg("record").arg("--cgroup").arg(&group.path).arg("-o").arg(file);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Step { command, name: "refault record".to_owned() }
}

/// A command with a name for messages.
struct Step {
    command: Command,
    name: String,
}

impl Step {
    fn start(mut self) -> Result<Child, String> {
        self.command.spawn().map_err(at(self.name))
    }

    fn finish(mut self) -> Result<(), String> {
        let mut child = self.command.spawn().map_err(at(&self.name))?;
        machine::wait(&mut child, &self.name, STEP_S)?;
        self.ended(&mut child)
    }

    /// The same, as long as another process runs.
    fn finish_beside(mut self, other: &mut Child) -> Result<(), String> {
        let mut child = self.command.spawn().map_err(at(&self.name))?;
        while child.try_wait().map_err(at(&self.name))?.is_none() {
            if let Some(status) = other.try_wait().map_err(at(&self.name))? {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{}: the program has ended ({status})", self.name));
            }
            machine::pause_ms(50);
        }
        self.ended(&mut child)
    }

    fn ended(&self, child: &mut Child) -> Result<(), String> {
        let status = child.wait().map_err(at(&self.name))?;
        if status.success() { Ok(()) } else { Err(format!("{}: {status}", self.name)) }
    }
}
