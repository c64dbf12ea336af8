//! A file system of its own for the data of a row, on a loop device: its cache is cold with each
//! mount, and its reads are counted.

use crate::machine::{self, at};
use std::fs;
use std::path::{Path, PathBuf};

/// A mounted image. It is unmounted when it goes.
pub struct Disk {
    pub folder: PathBuf,
    /// Such as `/dev/loop0`.
    device: String,
}

impl Disk {
    /// Makes an empty image.
    pub fn make(image: &Path, mib: u64) -> Result<(), String> {
        let file = fs::File::create(image).map_err(at(image.display()))?;
        file.set_len(mib << 20).map_err(at(image.display()))?;
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        machine::run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", lazy, &image.to_string_lossy()]).map(drop)
    }

    /// Mounts an image: direct I/O below, and the readahead that devices have by default.
    pub fn mount(image: &Path, folder: &Path) -> Result<Disk, String> {
        forget(image, folder);
        fs::create_dir_all(folder).map_err(at(folder.display()))?;
        let image = image.to_string_lossy();
        let device = machine::run("losetup", &["--find", "--show", "--direct-io=on", &image])?;
        let disk = Disk { folder: folder.to_owned(), device };
        let knob = format!("/sys/block/{}/queue/read_ahead_kb", disk.name());
        fs::write(&knob, "128").map_err(at(knob))?;
        machine::run("mount", &["-o", "noatime", &disk.device, &folder.to_string_lossy()])?;
        Ok(disk)
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Bytes that were read from the device since it is there.
    pub fn read_bytes(&self) -> u64 {
        let stat = machine::text(format!("/sys/block/{}/stat", self.name()));
        stat.split_whitespace().nth(2).and_then(|sectors| sectors.parse::<u64>().ok()).unwrap_or(0) * 512
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let folder = self.folder.to_string_lossy().into_owned();
        for _ in 0..50 {
            if machine::run("umount", &[&folder]).is_ok() {
                break;
            }
            machine::pause_ms(200);
        }
        if let Err(e) = machine::run("losetup", &["--detach", &self.device]) {
            eprintln!("warning: {e}");
        }
    }
}

/// Undoes the mount that an earlier run left.
fn forget(image: &Path, folder: &Path) {
    let _ = machine::run("umount", &[&folder.to_string_lossy()]);
    let left = machine::run("losetup", &["--noheadings", "--output", "NAME", "--associated", &image.to_string_lossy()]);
    for device in left.unwrap_or_default().lines() {
        let _ = machine::run("losetup", &["--detach", device.trim()]);
    }
}
