//! Recordings of a sample of pages: each page stands for a number of pages of the kernel.
//!
//! Memory and the kernel's batches are divided by that number, counts are multiplied by it.
//! Mechanism: `docs/mechanisms.md#a-sample-of-a-larger-memory`.
//!
//! A sample may lack pages that are used all the time: it has their misses, which are few, and not
//! their hits. Where the kernel counted all touches, the difference is hits.
//!
//! A stream that comes into a unit of the sample from pages that are left out was read ahead by the
//! kernel before it came: there the first page is no miss, and the unit is read ahead as a whole.

use super::count::Compared;
use super::load::LoadedRecording;
use super::run::Run;
use crate::replay::cell::Cell;
use refault_mm::{Config, PageId};
use refault_trace::{Record, RecordKind, SpaceSample, Via};
use std::collections::HashMap;

/// Parts of a sample whose spread is its error.
pub(super) const PARTS: usize = 32;

/// One part of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplePart {
    /// Units that were accessed.
    pub units: u64,
    /// Accesses.
    pub accesses: u64,
    /// Misses of the lab.
    pub misses: u64,
    /// Misses of the kernel.
    pub kernel_misses: u64,
}

/// The sample of a header that may be anything.
pub(super) fn of_header(name: &str, sample: Option<SpaceSample>) -> Result<Option<SpaceSample>, String> {
    match sample.filter(|sample| !sample.is_possible()) {
        Some(sample) => Err(format!("{name}: its sample is none that this version knows: {sample}")),
        None => Ok(sample),
    }
}

/// Part to which a unit belongs.
pub(super) fn part_of(object: u32, unit: u64) -> usize {
    let mixed = (u64::from(object) << 40 ^ unit).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 59) as usize % PARTS
}

/// Standard error of the share of so many accesses that miss (delete-a-group jackknife): misses of
/// a part are compared with its weight.
pub(super) fn standard_error(parts: &[(u64, f64)], accesses: f64) -> Option<f64> {
    let (weights, missed) = parts.iter().fold((0, 0.0), |(a, m), part| (a + part.0, m + part.1));
    let used = parts.iter().filter(|part| part.0 > 0).count() as f64;
    if used < 2.0 {
        return None;
    }
    let off = parts.iter().map(|&(weight, misses)| (misses - missed / weights as f64 * weight as f64).powi(2));
    Some((used / (used - 1.0) * off.sum::<f64>()).sqrt() / accesses.max(1.0))
}

/// Standard error of the number of units in a sample, as a share of it, by how many there are of
/// each file: of a large file one more or less, of a small file one or none.
pub fn units_error(files: impl Iterator<Item = u32>) -> f64 {
    let (all, variance) = files.fold((0.0, 0.0), |(all, variance), units| {
        (all + f64::from(units), variance + if units > 1 { 0.25 } else { f64::from(units) })
    });
    if all > 0.0 { variance.sqrt() / all } else { 0.0 }
}

/// Rows that come into a unit from in front of it, and go on in it, by number.
pub(super) fn streams(records: &[Record], sample: SpaceSample) -> Vec<bool> {
    let mut streams = vec![false; records.len()];
    // The last read of each task in a file: its number, and the page behind it.
    let mut last: HashMap<(u32, u32), (usize, u64)> = HashMap::new();
    let is_read = |r: &Record| r.kind.is_touch() && r.kind != RecordKind::Sampled && !r.op.write;
    for (at, record) in records.iter().enumerate().filter(|(_, r)| is_read(r) && r.op.via != Some(Via::Map)) {
        let end = record.page + u64::from(record.pages);
        let key = (record.object, record.task);
        if let Some((before, behind)) = last.insert(key, (at, end))
            && behind == record.page
        {
            streams[before] |= comes_in(&records[before], sample);
        }
        streams[at] |= u64::from(record.pages) == sample.unit_pages && comes_in(record, sample);
    }
    streams
}

/// Whether a row begins where a unit does, and not with its file.
fn comes_in(record: &Record, sample: SpaceSample) -> bool {
    record.page > 0 && record.page.is_multiple_of(sample.unit_pages)
}

impl LoadedRecording {
    /// Pages that each page of the recording stands for.
    pub fn one_in(&self) -> u64 {
        self.recording.sample.map_or(1, |sample| sample.one_in)
    }

    /// Pages of the recording that stand for so many.
    pub(super) fn part(&self, pages: u64) -> u64 {
        let one_in = self.one_in();
        if one_in == 1 || pages == u64::MAX { pages } else { (pages.saturating_add(one_in / 2) / one_in).max(1) }
    }

    /// The configuration of a memory of so many pages.
    pub(super) fn scaled(&self, config: Config, pages: u64) -> Config {
        match self.one_in() {
            1 => config,
            one_in => config.sampled(one_in, self.part(pages)),
        }
    }
}

impl Compared {
    /// Standard error of the hit rate of the lab that comes from the choice of pages; none: all
    /// pages were recorded.
    pub fn sampling_error(&self) -> Option<f64> {
        self.error_of(|part| part.misses as f64)
    }

    /// Standard error of the difference of lab and kernel.
    pub fn error_of_difference(&self) -> Option<f64> {
        self.error_of(|part| part.misses as f64 - part.kernel_misses as f64)
    }

    /// Where all accesses are counted, a part has misses by its units, of which there are about as
    /// many as the rate says; else it is the rate of a part that counts, and its accesses are the
    /// weight.
    fn error_of(&self, misses: fn(&SamplePart) -> f64) -> Option<f64> {
        let sampled = self.parts.iter().map(|part| part.accesses).sum::<u64>() as f64;
        let parts = |weight: fn(&SamplePart) -> u64| -> Vec<_> {
            self.parts.iter().map(|part| (weight(part), misses(part))).collect()
        };
        let Some(counted) = self.counted else { return standard_error(&parts(|part| part.accesses), sampled) };
        let missed = self.parts.iter().map(misses).sum::<f64>() / counted.max(1.0);
        let by_parts = standard_error(&parts(|part| part.units), counted)?;
        Some(by_parts.hypot(missed * self.units_error))
    }

    /// Multiplies all counts: each page stands for so many.
    pub(super) fn stand_for(&mut self, one_in: u64) {
        if one_in == 1 {
            return;
        }
        let all = [&mut self.total, &mut self.by_descriptor, &mut self.by_mapping, &mut self.sampled];
        for both in all.into_iter().chain(&mut self.windows).chain(&mut self.objects) {
            for count in [&mut both.accesses, &mut both.kernel_misses, &mut both.lab_misses, &mut both.same] {
                *count *= one_in;
            }
        }
        let (open, kernel, lab) = (&mut self.open, &mut self.kernel_reads, &mut self.lab_reads);
        let counts = [
            &mut self.added,
            &mut self.evicted,
            &mut self.dropped,
            &mut self.warm,
            &mut self.replayed,
            &mut self.settled.0,
            &mut self.settled.1,
            &mut open.misses,
            &mut open.refaults,
            &mut open.read_pages,
            &mut open.reads,
        ];
        counts.into_iter().chain(self.ours.values_mut()).for_each(|count| *count *= one_in);
        for reads in [kernel, lab] {
            for count in [&mut reads.read_pages, &mut reads.reads, &mut reads.metadata_pages] {
                *count *= one_in;
            }
        }
        if let Some(inside) = &mut self.inside {
            inside.counters = inside.counters.times(one_in);
            inside.gauges.iter_mut().for_each(|gauge| gauge.value *= one_in);
        }
    }
}

impl Run<'_> {
    /// Touches of pages that are not in the sample are hits, as many as the kernel counted; in a
    /// part of the time the share that the sample has of them.
    pub(super) fn add_counted(&mut self) {
        let (one_in, recording) = (self.loaded.one_in(), &self.loaded.recording);
        let Some(counted) = recording.counted.filter(|_| recording.sample.is_some()) else { return };
        // A file may say anything: no machine makes so many touches.
        let counted = counted.min(1 << 50);
        let is_read = |r: &&Record| !r.op.write && r.kind.is_touch() && r.kind != RecordKind::Sampled;
        let (mut all, mut measured, mut mapped) = (0, 0, 0);
        for record in self.loaded.records.iter().filter(is_read) {
            let pages = u64::from(record.pages);
            let counts = if record.time_ns >= self.warm_up_ns { pages } else { 0 };
            (all, measured) = (all + pages, measured + counts);
            mapped += if record.op.via == Some(Via::Map) { counts } else { 0 };
        }
        if all == 0 || measured == 0 {
            return;
        }
        let more = counted as f64 * (measured as f64 / all as f64) - (measured * one_in) as f64;
        let of_mapped = more * (mapped as f64 / measured as f64);
        let compared = &mut self.compared;
        let both = [&mut compared.by_descriptor, &mut compared.by_mapping];
        for (agreement, more) in both.into_iter().zip([more - of_mapped, of_mapped]) {
            agreement.add_hits(more.round() as i64);
        }
        compared.total.add_hits(more.round() as i64);
        compared.counted = Some(compared.total.accesses as f64 / one_in as f64);
        let mut units: HashMap<u32, u32> = HashMap::new();
        self.units.iter().for_each(|(object, _)| *units.entry(*object).or_insert(0) += 1);
        compared.units_error = units_error(units.into_values());
    }

    /// A stream comes into a unit: what the kernel had read ahead there by then is read ahead.
    pub(super) fn enter_unit(&mut self, record: &Record) {
        let Some(sample) = self.loaded.recording.sample else { return };
        let pages = self.ids(record.object, record.page..record.page + sample.unit_pages);
        let Cell { engine, machine, .. } = &mut self.cell;
        if !pages.is_empty() {
            engine.will_need(machine, PageId(pages.start), pages.end - pages.start);
        }
    }

    /// Counts an access for the error of the sample.
    pub(super) fn count_part(&mut self, record: &Record, page: u64, kernel: bool, lab: bool) {
        let Some(sample) = self.loaded.recording.sample.filter(|_| self.compared.is_measured) else { return };
        self.compared.parts.resize(PARTS, SamplePart::default());
        let unit = page / sample.unit_pages;
        let is_new = self.units.insert((record.object, unit));
        let part = &mut self.compared.parts[part_of(record.object, unit)];
        part.units += u64::from(is_new);
        part.accesses += 1;
        part.misses += u64::from(lab);
        part.kernel_misses += u64::from(kernel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    fn read(page: u64, pages: u32) -> Record {
        Record { kind: RecordKind::Hit, pages, ..Record::touch(page, Op { write: false, via: Some(Via::Fd) }) }
    }

    #[test]
    fn a_stream_is_told_from_a_read_at_random() {
        let sample = SpaceSample::new(4, 0).expect("a sample");
        let records = [read(64, 1), read(65, 1), read(320, 4), read(64, 1), read(576, 64), read(0, 64)];
        assert_eq!(streams(&records, sample), [true, false, false, false, true, false]);
    }

    #[test]
    fn a_large_file_has_its_share_of_units_and_small_ones_have_not() {
        assert_eq!(units_error([16].into_iter()), 0.5 / 16.0);
        assert_eq!(units_error([1; 16].into_iter()), 0.25);
        assert_eq!(units_error([].into_iter()), 0.0);
    }

    #[test]
    fn the_error_is_the_spread_of_the_parts() {
        assert_eq!(standard_error(&[(10, 1.0); 8], 80.0), Some(0.0));
        assert_eq!(standard_error(&[(10, 1.0), (0, 0.0)], 10.0), None);
        // Twice the misses of twice the weight is no difference.
        assert_eq!(standard_error(&[(10, 1.0), (20, 2.0), (30, 3.0)], 600.0), Some(0.0));
        // Half of the parts miss always, the others never: n parts of one access each.
        let parts: Vec<_> = (0..100).map(|i| (1, f64::from(i % 2))).collect();
        let error = standard_error(&parts, 100.0).expect("an error");
        assert!((error - 0.5 / 99f64.sqrt()).abs() < 1e-12, "{error}");
    }
}
