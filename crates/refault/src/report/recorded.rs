//! A recording of a kernel: curves and details of the machine that was recorded, as `replay`,
//! `verify` and `size` have them.

use super::detail::Samples;
use super::request::ReportRequest;
use super::trace::Policies;
use crate::document::trace::TraceDetail;
use crate::on_threads;
use crate::recording::{self, CellSettings, MachineFacts, RecordedCell};
use crate::replay::Row;
use crate::replay::policy::RowPolicy;
use refault_mm::{Config, PageId, Policy};
use refault_trace::{Header, ObjectKind, Record, RecordKind, RecordSource, Trace, TraceError};

/// The machine that was recorded, and what of it the request changes.
pub(super) struct MachineReplay<'a> {
    pub(super) machine: &'a recording::RecordedMachine,
    pub(super) request: &'a ReportRequest,
}

impl MachineReplay<'_> {
    pub(super) fn about(&self) -> &MachineFacts {
        self.machine.about()
    }

    fn cell(&self, policy: Policy, memory_pages: u64, bits: bool) -> RecordedCell<'_> {
        let (kernel, seed) = (self.request.kernel, self.request.seed);
        let settings = CellSettings { kernel, seed, bits, ..CellSettings::default() };
        RecordedCell { policy, plug_in: None, memory_pages, settings }
    }

    /// Rows by size, then by policy, of the policies that the engine runs.
    pub(super) fn rows(&self, sizes: &[u64], policies: &Policies) -> Result<Vec<Row>, String> {
        let linux = || {
            policies.iter().filter_map(|(policy, _)| match policy {
                RowPolicy::Linux(policy) => Some(*policy),
                RowPolicy::Opt => None,
            })
        };
        let cells: Vec<_> =
            sizes.iter().flat_map(|&pages| linux().map(move |policy| self.cell(policy, pages, false))).collect();
        let jobs: Vec<&RecordedCell<'_>> = cells.iter().collect();
        let total = self.about().accesses * jobs.len() as u64;
        let progress = self.request.watch.accesses(format!("replaying {}", self.about().name), Some(total));
        on_threads(self.request.threads(), &jobs, &|cell| {
            let row = self.machine.run(cell)?.0;
            progress.add(self.about().accesses);
            Ok(row)
        })
    }

    /// One policy with that memory, window by window.
    pub(super) fn detail(
        &self,
        trace: &Trace,
        windows: &[u64],
        (object_of, objects): (&[u16], usize),
        (policy, cfg): (Policy, &Config),
        pages: u64,
    ) -> Result<TraceDetail, String> {
        let mut samples = Samples::new(objects, cfg);
        let slots = self.slots(trace, object_of);
        let mut window = 1;
        let cell = self.cell(policy, pages, true);
        let (row, bits) = self.machine.run_watched(&cell, &mut |engine, group, accesses| {
            while windows.get(window).is_some_and(|&end| end <= accesses) {
                let mut resident = vec![0; objects];
                for (page, slot) in (0..).map(PageId).zip(&slots) {
                    if let Some(slot) = slot.filter(|_| engine.is_resident(page)) {
                        resident[usize::from(slot)] += 1;
                    }
                }
                samples.take(engine, group, &resident);
                window += 1;
            }
        })?;
        let mut detail = samples.into_detail();
        (detail.accesses, detail.misses, detail.oom_at) = (row.accesses, row.misses, row.oom_at);
        let counters = row.inside.iter().flat_map(|inside| inside.counters.iter());
        detail.counters = counters.filter(|&(_, n)| n > 0).map(|(name, n)| (name.into(), n)).collect();
        let bits = bits.map(|bits| bits.0).unwrap_or_default();
        let missed = |at: u64| bits.get((at / 8) as usize).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
        detail.object_misses = vec![0; objects];
        for window in windows.windows(2) {
            let misses = (window[0]..window[1]).filter(|&at| missed(at));
            let mut all = 0;
            for at in misses {
                all += 1;
                detail.object_misses[usize::from(object_of[trace.accesses[at as usize].page() as usize])] += 1;
            }
            detail.window_misses.push(all);
        }
        Ok(detail)
    }

    /// Place of the page's object in the report, by page of the recorded machine.
    fn slots(&self, trace: &Trace, object_of: &[u16]) -> Vec<Option<u16>> {
        let mut all = Vec::new();
        for (object, &pages) in self.machine.object_pages().iter().enumerate() {
            let touched = trace.objects.get(object).filter(|object| !object.indices.is_empty());
            let slot = touched.map(|object| object_of[object.first_page as usize]);
            all.extend(std::iter::repeat_n(slot, pages as usize));
        }
        all
    }
}

/// The accesses that the recorded machine makes: of files, and no samples of accessed bits.
pub(super) struct OfFiles(pub(super) Box<dyn RecordSource>);

impl RecordSource for OfFiles {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn header(&self) -> &Header {
        self.0.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let is_recording = self.0.header().recording.is_some();
        while self.0.next_chunk(out)? {
            if is_recording {
                let objects = &self.0.header().objects;
                let is_file = |record: &Record| objects[record.object as usize].kind == ObjectKind::File;
                out.retain(|record| record.kind != RecordKind::Sampled && is_file(record));
            }
            if !out.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
