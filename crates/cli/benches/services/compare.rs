//! A row: recorded, promised, tried.

use crate::judge;
use crate::machine::at;
use crate::promise::{self, Promise};
use crate::rows::Row;
use crate::run::Place;
use crate::table::{self, Line};
use crate::truth::Truth;
use std::fs;
use std::path::PathBuf;

/// Targets: misses, in percent of those of the recording.
const TARGETS: [u64; 2] = [80, 120];

/// A row that is measured.
pub struct Subject<'a> {
    pub row: &'a Row,
    pub place: &'a Place,
    /// Runs in each limit.
    pub repeats: usize,
    /// The only limit that is sized.
    pub recorded_mib: Option<u64>,
    /// Recordings that are there are taken.
    pub keep: bool,
}

impl Subject<'_> {
    /// All that is promised from each recorded limit, beside the truth.
    pub fn lines(&self) -> Result<Vec<Line>, String> {
        let folder = self.place.folder.join(self.row.name);
        if !self.keep {
            let _ = fs::remove_dir_all(&folder);
        }
        fs::create_dir_all(&folder).map_err(at(folder.display()))?;
        let mut lines = Vec::new();
        for &mib in self.row.recorded_mib.iter().filter(|mib| self.recorded_mib.is_none_or(|only| only == **mib)) {
            for line in self.from(self.scaled(mib))? {
                println!("{}", table::row(&line));
                lines.push(line);
            }
        }
        Ok(lines)
    }

    fn scaled(&self, mib: u64) -> u64 {
        (mib << 20) / self.place.scale
    }

    /// From one recording.
    fn from(&self, recorded_bytes: u64) -> Result<Vec<Line>, String> {
        let base = self.truth(recorded_bytes, 0)?;
        let file = self.file(recorded_bytes, 0);
        let mut lines = vec![self.line(recorded_bytes, "recorded".to_owned(), promise::at(&file, recorded_bytes))];
        for percent in TARGETS {
            let misses = ((1.0 - base.hit_rate()) * percent as f64 / 100.0).min(0.99);
            let target = format!("hit_rate>{:.2}%", 100.0 * (1.0 - misses));
            let answer = promise::sized(&file, target, (recorded_bytes / 2, recorded_bytes * 3));
            lines.push(match answer.promise {
                Ok(promise) => self.line(recorded_bytes, answer.target, promise),
                Err(why) => self.none(recorded_bytes, answer.target, why),
            });
        }
        for &mib in self.row.further_mib.iter().filter(|mib| self.scaled(**mib) != recorded_bytes) {
            lines.push(self.line(recorded_bytes, "further".to_owned(), promise::at(&file, self.scaled(mib))));
        }
        Ok(lines)
    }

    /// A promise beside the truth of a run.
    fn line(&self, recorded_bytes: u64, why: String, promise: Promise) -> Line {
        let limit_bytes = promise.limit_bytes;
        let mut line = self.none(recorded_bytes, why, String::new());
        line.limit_bytes = Some(limit_bytes);
        match (0..self.repeats).map(|repeat| self.truth(limit_bytes, repeat)).collect::<Result<Vec<_>, _>>() {
            Ok(truth) => {
                line.cells = judge::cells(&promise, &truth);
                (line.truth, line.failed) = (truth, None);
            }
            Err(e) => line.failed = Some(e),
        }
        line.promise = Some(promise);
        line
    }

    fn none(&self, recorded_bytes: u64, why: String, failed: String) -> Line {
        Line {
            row: self.row.name.to_owned(),
            program: self.row.what.to_owned(),
            how: self.row.how.text(),
            recorded_bytes,
            limit_bytes: None,
            why,
            promise: None,
            truth: Vec::new(),
            cells: Vec::new(),
            failed: Some(failed),
        }
    }

    fn file(&self, limit_bytes: u64, repeat: usize) -> PathBuf {
        let repeat = if repeat == 0 { String::new() } else { format!(".{repeat}") };
        self.place.folder.join(self.row.name).join(format!("{}K{repeat}.parquet", limit_bytes >> 10))
    }

    /// The figures of a run in this limit, which is made if there is none yet.
    fn truth(&self, limit_bytes: u64, repeat: usize) -> Result<Truth, String> {
        let file = self.file(limit_bytes, repeat);
        let device = file.with_extension("device");
        if !file.exists() {
            let read = self.place.record(self.row, limit_bytes, &file)?;
            fs::write(&device, read.to_string()).map_err(at(device.display()))?;
        }
        let read = fs::read_to_string(&device).ok().and_then(|text| text.trim().parse().ok());
        Truth::of(&file, read)
    }
}
