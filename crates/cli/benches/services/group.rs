//! A memory cgroup of version 1 or 2 with a limit.

use crate::machine::{self, at};
use std::fs;
use std::path::{Path, PathBuf};

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// A group below the root. It is removed when it goes; its processes are killed.
pub struct Group {
    pub path: PathBuf,
}

impl Group {
    pub fn new(name: &str, limit_bytes: u64) -> Result<Group, String> {
        let v1 = Path::new(V1).join("memory.limit_in_bytes").exists();
        if !v1 {
            let switch = format!("{V2}/cgroup.subtree_control");
            fs::write(&switch, "+memory").map_err(at(switch))?;
        }
        let group = Group { path: Path::new(if v1 { V1 } else { V2 }).join(name) };
        group.clear();
        fs::create_dir(&group.path).map_err(at(group.path.display()))?;
        let knob = group.path.join(if v1 { "memory.limit_in_bytes" } else { "memory.max" });
        fs::write(&knob, limit_bytes.to_string()).map_err(at(knob.display()))?;
        Ok(group)
    }

    /// The file that takes the number of a process.
    pub fn processes(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    fn clear(&self) {
        for _ in 0..50 {
            let all = machine::text(self.processes());
            if all.is_empty() {
                break;
            }
            for process in all.lines() {
                let _ = machine::run("kill", &["-KILL", process]);
            }
            machine::pause_ms(100);
        }
        for _ in 0..50 {
            if !self.path.exists() || fs::remove_dir(&self.path).is_ok() {
                return;
            }
            machine::pause_ms(100);
        }
        eprintln!("warning: {}: is left", self.path.display());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.clear();
    }
}
