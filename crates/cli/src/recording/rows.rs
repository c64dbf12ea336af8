//! Rows of `refault replay` of a recording: the machine that was recorded, with other policies and
//! sizes.

use super::run::run_with;
use super::settings::Keep;
use super::{Compared, Estimate, Loaded, Settings};
use crate::replay::cell::MissBits;
use crate::replay::policy::RowPolicy;
use crate::replay::{About, After, DiskReads, Recorded, RecordedCell, Row};
use refault_mm::{Engine, Policy};
use refault_trace::RecordSource;
use std::path::Path;
use std::time::Instant;

const PAGE_SIZE: u64 = 4096;

/// A recording that is replayed as often as there are rows.
#[derive(Debug)]
struct Machine {
    loaded: Loaded,
    about: About,
}

/// Reads a recording, or its first accesses.
pub(crate) fn read(source: &mut dyn RecordSource, max_accesses: Option<u64>) -> Result<Box<dyn Recorded>, String> {
    let mut loaded = Loaded::read(source)?;
    if let Some(most) = max_accesses {
        cut(&mut loaded, most);
    }
    let name = Path::new(&loaded.name).file_stem().map_or_else(|| loaded.name.clone(), |s| s.to_string_lossy().into());
    let about = About {
        name,
        recording: loaded.recording.clone(),
        accesses: loaded.accesses,
        footprint_pages: loaded.footprint_pages(),
        besides_pages: loaded.besides_files_pages(),
    };
    Ok(Box::new(Machine { loaded, about }))
}

/// Leaves the first accesses.
fn cut(loaded: &mut Loaded, most: u64) {
    let mut left = most;
    let mut end = loaded.records.len();
    for (at, record) in loaded.records.iter_mut().enumerate().filter(|(_, record)| record.act.is_touch()) {
        if record.act == refault_trace::Act::Sampled {
            continue;
        }
        if left <= u64::from(record.pages) {
            record.pages = left as u32;
            end = at + 1;
            left = 0;
            break;
        }
        left -= u64::from(record.pages);
    }
    loaded.records.truncate(end);
    loaded.accesses = most - left;
}

impl Recorded for Machine {
    fn about(&self) -> &About {
        &self.about
    }

    fn object_pages(&self) -> Vec<u64> {
        self.loaded.files.iter().map(|file| file.indices().count() as u64).collect()
    }

    fn run_watched(&self, cell: &RecordedCell<'_>, after: &mut After<'_>) -> Result<(Row, Option<MissBits>), String> {
        let started = Instant::now();
        let settings = self.settings(cell)?;
        let attach = |engine: &mut Engine, group| match cell.plug_in {
            Some(plug_in) => engine.attach_cache_ext(group, &*plug_in.ops),
            None => Ok(()),
        };
        let compared = run_with(&self.loaded, &settings, &attach, after)?;
        let mut row = self.row(cell, &compared);
        row.seconds = started.elapsed().as_secs_f64();
        Ok((row, compared.bits))
    }
}

impl Machine {
    fn settings(&self, cell: &RecordedCell<'_>) -> Result<Settings, String> {
        let mut settings = Settings::of(&self.loaded.recording, Some(cell.policy), cell.kernel, false);
        settings.config.seed = cell.seed;
        settings.config.swappiness = cell.swappiness.unwrap_or(settings.config.swappiness);
        cell.set.iter().for_each(|set| set.apply(&mut settings.config));
        settings.config.check().map_err(|e| format!("--set: {e}; --set help lists what there is"))?;
        settings.memory_pages = Some(cell.memory_pages);
        let windows = cell.windows.map_or(Keep::default().windows, |n| n as u64);
        settings.keep = Keep { windows, bits: cell.bits, lru_gen: cell.lru_gen };
        Ok(settings)
    }

    fn row(&self, cell: &RecordedCell<'_>, compared: &Compared) -> Row {
        let is_over = compared.is_out_of_memory;
        let estimate = Estimate::of(compared);
        let reads =
            DiskReads { read_pages: estimate.read_pages.best, reads: estimate.reads.best, ..compared.lab_reads };
        let windows = || compared.windows.iter().map(|window| window.lab_misses).collect();
        Row {
            trace: self.about.name.clone(),
            policy: RowPolicy::Linux(if cell.plug_in.is_some() { Policy::Lru } else { cell.policy }),
            plug_in: cell.plug_in.map(|plug_in| plug_in.name.clone()),
            memory_pages: cell.memory_pages,
            memory_bytes: cell.memory_pages.saturating_mul(PAGE_SIZE),
            page_size: PAGE_SIZE,
            footprint_pages: self.about.footprint_pages,
            trace_accesses: self.about.accesses,
            seed: cell.seed,
            accesses: if is_over { compared.replayed } else { compared.total.accesses },
            misses: estimate.misses.best,
            reads: Some(reads),
            oom_at: is_over.then_some(compared.replayed),
            seconds: 0.0,
            window_misses: cell.windows.map(|_| windows()),
            inside: compared.inside.clone(),
        }
    }
}
