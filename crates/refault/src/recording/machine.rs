//! The machine that was recorded, run with other policies and sizes: a row each.

use super::run::run_with;
use super::settings::KeptParts;
use super::{Compared, Estimate, LoadedRecording, Settings};
use crate::replay::policy::RowPolicy;
use crate::replay::{CellResult, DiskReads, PlugIn, Row};
use crate::settings::Set;
use refault_mm::{Engine, Kernel, MemcgId, Policy};
use refault_trace::{RecordSource, Recording};
use std::path::Path;
use std::time::Instant;

const PAGE_SIZE: u64 = 4096;

/// Observer of a run: the engine, the group, and the accesses so far, after each record.
pub type RecordObserver<'a> = dyn FnMut(&Engine, MemcgId, u64) + 'a;

/// Facts about a recorded machine before it runs.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// The name of the file without its end.
    pub name: String,
    /// How it was recorded.
    pub recording: Recording,
    /// Accesses of files.
    pub accesses: u64,
    /// Pages of files that are touched.
    pub footprint_pages: u64,
    /// The most pages that the group was charged for besides.
    pub besides_pages: u64,
}

/// Settings of one run of a recorded machine.
#[derive(Clone, Debug)]
pub struct RecordedCell<'a> {
    /// The policy.
    pub policy: Policy,
    /// A policy that a program brings, beside it.
    pub plug_in: Option<&'a PlugIn>,
    /// The limit of the group, in pages.
    pub memory_pages: u64,
    /// Settings that all runs share.
    pub settings: CellSettings<'a>,
}

/// Settings of every run of a recorded machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct CellSettings<'a> {
    /// The kernel; none: as recorded.
    pub kernel: Option<Kernel>,
    /// Swappiness, 0 to 200; none: as recorded.
    pub swappiness: Option<u32>,
    /// Settings of the engine on top.
    pub set: &'a [Set],
    /// The seed of the engine.
    pub seed: u64,
    /// Equal windows to count misses in.
    pub windows: Option<usize>,
    /// Keep a bit an access.
    pub bits: bool,
    /// Keep the generations at the end.
    pub lru_gen: bool,
}

/// A recording that is replayed as often as there are rows.
#[derive(Debug)]
pub struct RecordedMachine {
    loaded: LoadedRecording,
    about: MachineFacts,
}

/// Leaves the first accesses.
fn cut(loaded: &mut LoadedRecording, most: u64) {
    let mut left = most;
    let mut end = loaded.records.len();
    for (at, record) in loaded.records.iter_mut().enumerate().filter(|(_, record)| record.kind.is_touch()) {
        if record.kind == refault_trace::RecordKind::Sampled {
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

impl RecordedMachine {
    /// Reads a recording, or its first accesses.
    ///
    /// # Errors
    /// The source is no recording, or holds no access.
    pub fn read(source: &mut dyn RecordSource, max_accesses: Option<u64>) -> Result<RecordedMachine, String> {
        let mut loaded = LoadedRecording::read(source)?;
        if let Some(most) = max_accesses {
            cut(&mut loaded, most);
        }
        let stem = Path::new(&loaded.name).file_stem();
        let about = MachineFacts {
            name: stem.map_or_else(|| loaded.name.clone(), |stem| stem.to_string_lossy().into()),
            recording: loaded.recording.clone(),
            accesses: loaded.accesses * loaded.one_in(),
            footprint_pages: loaded.footprint_pages(),
            besides_pages: loaded.besides_files_pages(),
        };
        Ok(RecordedMachine { loaded, about })
    }

    /// The recording.
    pub fn loaded(&self) -> &LoadedRecording {
        &self.loaded
    }

    /// Facts about it.
    pub fn about(&self) -> &MachineFacts {
        &self.about
    }

    /// Number of pages that exist, by object; their ids follow one another.
    pub fn object_pages(&self) -> Vec<u64> {
        self.loaded.files.iter().map(|file| file.indices().count() as u64).collect()
    }

    /// Runs it once.
    ///
    /// # Errors
    /// An impossible configuration.
    pub fn run(&self, cell: &RecordedCell<'_>) -> Result<CellResult, String> {
        self.run_watched(cell, &mut |_, _, _| {})
    }

    /// Runs it once, under the eyes of `after`.
    ///
    /// # Errors
    /// An impossible configuration.
    pub fn run_watched(&self, cell: &RecordedCell<'_>, after: &mut RecordObserver<'_>) -> Result<CellResult, String> {
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

    fn settings(&self, cell: &RecordedCell<'_>) -> Result<Settings, String> {
        let of = &cell.settings;
        let mut settings = Settings::of(&self.loaded.recording, Some(cell.policy), of.kernel, false);
        settings.config.seed = of.seed;
        settings.config.swappiness = of.swappiness.unwrap_or(settings.config.swappiness);
        of.set.iter().for_each(|set| set.apply(&mut settings.config));
        settings.config.check().map_err(|e| format!("--set: {e}; --set help lists what there is"))?;
        settings.memory_pages = Some(cell.memory_pages);
        let windows = of.windows.map_or(KeptParts::default().windows, |n| n as u64);
        settings.keep = KeptParts { windows, bits: of.bits, lru_gen: of.lru_gen };
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
            seed: cell.settings.seed,
            accesses: if is_over { compared.replayed } else { compared.total.accesses },
            misses: estimate.misses.best,
            sampling_error: compared.sampling_error(),
            reads: Some(reads),
            oom_at: is_over.then_some(compared.replayed),
            seconds: 0.0,
            swap: None,
            window_misses: cell.settings.windows.map(|_| windows()),
            inside: compared.inside.clone(),
        }
    }
}
