//! Open questions of a recording, and what would settle them, in words.

use super::recording::{PAGE_SIZE, RecordingSubject};
use super::sizing::Point;
use crate::memory_size::human;
use crate::recording::Estimate;

impl RecordingSubject<'_> {
    /// Remark on smaller limits than that of a warm service, which begin with a guess.
    fn estimated_start(&self, points: &[Point]) -> Option<String> {
        let start = &self.loaded.start;
        let recorded = self.settings.memory_pages.filter(|_| start.is_warm)?;
        points.iter().find(|point| point.failed.is_none() && point.pages < recorded)?;
        let first = start.pages.iter().filter(|page| page.touches > 0).count();
        Some(format!(
            "below {} memory at the start is an estimate, by how often pages are used: {:.1} % of the accesses are first \
             touches of pages that were there; record longer, or in the limit that you choose, to be certain",
            human(recorded * PAGE_SIZE),
            100.0 * first as f64 / self.loaded.accesses.max(1) as f64,
        ))
    }

    /// Remarks on what the recording leaves open, and what would settle it.
    pub(super) fn notes(&self, points: &[Point]) -> Vec<String> {
        let mut notes: Vec<_> = self.doubts.iter().map(|doubt| doubt.note.clone()).collect();
        let tried = self.tried.lock().map(|tried| tried.clone()).unwrap_or_default();
        let mut open = points.iter().filter(|point| point.failed.is_none()).filter_map(|point| {
            let estimate = Estimate::of(tried.get(&point.pages)?);
            (estimate.first_touches > 0).then_some((point.pages, estimate))
        });
        let of = |pages: u64| human(pages * PAGE_SIZE);
        if let Some((pages, estimate)) = open.next_back() {
            let first = 100.0 * estimate.first_touches as f64 / estimate.accesses.max(1) as f64;
            let settled = match estimate.settled {
                0.0 => "it was never full".to_owned(),
                settled => format!("it was full after {:.0} % of the accesses", 100.0 * (1.0 - settled)),
            };
            notes.push(format!(
                "the service was attached to in {}: with {} {first:.1} % of the accesses are first touches of pages that \
                 may have been in memory, and {settled}; record longer, or with a limit of {} meanwhile, for nearer \
                 bounds",
                self.settings.memory_pages.map_or_else(|| "no limit".to_owned(), of),
                of(pages),
                of(pages),
            ));
        }
        let unstable = points.iter().filter_map(|point| Some((point.pages, self.states(point.pages, &tried)?)));
        if let Some((pages, (low, high))) = unstable.max_by(|a, b| (a.1.1 - a.1.0).total_cmp(&(b.1.1 - b.1.0))) {
            let metric = self.target.metric();
            notes.push(format!(
                "multi-gen LRU has two states near {}: sizes within 4 % of it have {} to {}, and which of them a kernel \
                 ends in depends on a single aging; choose a size whose bounds are near, or record in it",
                of(pages),
                metric.show(low),
                metric.show(high),
            ));
        }
        notes.extend(self.estimated_start(points));
        notes.extend(self.mapped_in_words(points));
        if self.counts_faults {
            notes.push(
                "many of the misses are faults on mapped files, and how many faults there are depends on the limit: a \
                 part of all accesses says nothing of other sizes; ask for misses, read_bytes or refaults_per_s"
                    .to_owned(),
            );
        }
        notes.extend(self.loaded.direct_io_in_words());
        if self.rests_on_others() {
            notes.push(format!(
                "{:.0} % of the pages of these files that came into memory were brought in by others, outside of {}: the \
                 answer holds as long as they go on as they did; record all of them together (--cgroup of a parent, \
                 --all) to know it without them",
                100.0 * self.loaded.others_part(),
                self.loaded.recording.group.as_deref().unwrap_or("the group"),
            ));
        }
        notes
    }
}
