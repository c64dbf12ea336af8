//! Samples of a trace in space: the accesses to a few of its pages, and all of these.
//!
//! A sample is one file and one anonymous region, whatever objects there were: pages lie in them as
//! close together as in the whole trace (`shape`), so that tree nodes and page tables are as full.

use crate::dense::{LoadOptions, Loader, Object, Trace};
use crate::error::TraceError;
use crate::open::empty;
use crate::record::{CHUNK, ObjectKind, RecordKind, RecordSource, Via};
use crate::sample::{Sample, SampleUnit};
use crate::shape::Shape;

/// Samples of one trace, and what the whole trace is.
#[derive(Clone, Debug)]
pub struct Samples {
    /// A trace for each sample. One without any access has no objects.
    pub traces: Vec<Trace>,
    /// Accesses of the whole trace.
    pub accesses: u64,
    /// Distinct pages of the whole trace, within a hundredth of a percent.
    pub footprint_pages: u64,
    /// Accesses to files by mapping.
    pub mapped: u64,
}

impl Samples {
    /// Reads a source to its end, once for all samples. An empty trace is an error. Times, tasks
    /// and memory cgroups of accesses are not kept.
    pub fn load(source: &mut dyn RecordSource, opts: &LoadOptions, samples: &[Sample]) -> Result<Samples, TraceError> {
        let opts = LoadOptions { keep_time: false, keep_task: false, keep_memcg: false, ..opts.clone() };
        let mut loaders: Vec<_> = samples.iter().map(|&sample| Loader::new(source, &opts, Some(sample))).collect();
        let (mut shape, mut mapped) = (Shape::default(), 0);
        let (mut room, mut chunk) = (opts.max_accesses.unwrap_or(u64::MAX), Vec::with_capacity(CHUNK));
        while room > 0 && source.next_chunk(&mut chunk)? {
            loaders.iter_mut().for_each(|loader| loader.load_new_objects(source));
            let name = source.name();
            for record in &chunk {
                if record.kind == RecordKind::Drop {
                    loaders.iter_mut().for_each(|loader| loader.drop_pages(record));
                }
                if !record.kind.is_touch() || room == 0 {
                    continue;
                }
                loaders.iter_mut().try_for_each(|loader| loader.add(name, record))?;
                let pages = u64::from(record.pages).min(room);
                room -= pages;
                let kind = source.header().objects[record.object as usize].kind;
                let by_mapping = record.op.via.unwrap_or(opts.default_via) == Via::Map;
                mapped += if kind == ObjectKind::File && by_mapping { pages } else { 0 };
                (record.page..record.page + pages).for_each(|page| shape.note(kind, record.object, page));
            }
        }
        let accesses = loaders.first().map_or(0, |loader| loader.seen);
        if accesses == 0 {
            return Err(empty(source.name(), source.header().passed_over.as_deref()));
        }
        let packed = |(loader, sample): (Loader, &Sample)| match sample.one_in() {
            1 => loader.finish(source),
            _ => pack(loader, sample.unit(), &shape),
        };
        let traces: Vec<_> = loaders.into_iter().zip(samples).map(packed).collect();
        let whole = samples.iter().zip(&traces).find(|(sample, _)| sample.one_in() == 1);
        let footprint_pages = whole.map_or_else(|| shape.pages(), |(_, trace)| trace.footprint_pages().into());
        Ok(Samples { traces, accesses, footprint_pages, mapped })
    }
}

/// The trace of a sample: its units in the order of objects and places, as close together as the
/// shape says.
fn pack(mut loader: Loader, unit: SampleUnit, shape: &Shape) -> Trace {
    let mut renamed = vec![0u32; loader.distinct as usize];
    let mut next_page = 0;
    for (kind, name) in [(ObjectKind::File, "files"), (ObjectKind::Anon, "anon")] {
        let layout = shape.layout(kind, unit.shift());
        let (first_page, mut indices) = (next_page, Vec::new());
        let (mut rank, mut last) = (0u64, None);
        for (number, object) in loader.loading.iter_mut().enumerate().filter(|(_, object)| object.kind == kind) {
            let mut seen = std::mem::take(&mut object.pages.by_first_access);
            seen.sort_unstable();
            for (page, provisional) in seen {
                let place = (number, page >> unit.shift());
                rank += u64::from(last.replace(place).is_some_and(|last| last != place));
                indices.push((layout.index(rank) << unit.shift()) | (page & ((1 << unit.shift()) - 1)));
                renamed[provisional as usize] = next_page;
                next_page += 1;
            }
        }
        loader.trace.objects.push(Object { name: name.into(), kind, first_page, indices, group: 0 });
    }
    loader.renamed(&renamed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, Stream, Workload};

    fn zipf(pages: u32, accesses: u64) -> impl RecordSource {
        let stream = Stream::new("set", Pattern::Zipf { skew: 1.0, permute: true }, pages);
        Workload::single(stream, accesses, 1).generator("zipf").expect("a workload")
    }

    #[test]
    fn one_in_one_is_the_trace() {
        let opts = LoadOptions::default();
        let whole = Trace::load(&mut zipf(5000, 50_000), &opts).expect("a trace");
        let sample = Sample::new(1, SampleUnit::Page, 3);
        let samples = Samples::load(&mut zipf(5000, 50_000), &opts, &[sample]).expect("samples");
        assert_eq!(samples.traces, std::slice::from_ref(&whole));
        assert_eq!(samples.footprint_pages, u64::from(whole.footprint_pages()));
        assert_eq!((samples.accesses, samples.mapped), (50_000, 0));
    }

    #[test]
    fn all_accesses_of_a_page_are_kept_or_none() {
        let opts = LoadOptions { max_accesses: Some(60_000), ..LoadOptions::default() };
        let whole = Trace::load(&mut zipf(5000, 90_000), &opts).expect("a trace");
        for unit in [SampleUnit::Page, SampleUnit::Node] {
            let sample = Sample::new(7, unit, 5);
            let samples = Samples::load(&mut zipf(5000, 90_000), &opts, &[sample]).expect("samples");
            let index = |page: u32| whole.objects[0].indices[page as usize];
            let kept: Vec<_> = whole.accesses.iter().map(|a| index(a.page())).filter(|&i| sample.has(0, i)).collect();
            let trace = &samples.traces[0];
            assert_eq!(trace.accesses.len(), kept.len(), "{unit:?}");
            // Pages keep their order, so each has one index in the sample.
            let place = |a: &crate::PackedAccess| trace.objects[0].indices[a.page() as usize];
            let mut pairs: Vec<_> = kept.into_iter().zip(trace.accesses.iter().map(place)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len() as u32, trace.footprint_pages());
            assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].1), "{unit:?}");
        }
    }

    /// Pages 0, 10, 20, … of a file: seven to a node, as in the whole.
    #[test]
    fn nodes_and_tables_are_as_full() {
        let text: String = (0..40_000).map(|n| format!("{}\n", n * 10)).collect();
        let input = crate::Input::from_reader("t", Box::new(std::io::Cursor::new(text.into_bytes()))).expect("text");
        let mut source = crate::open_input(input, &crate::OpenOptions::default()).expect("a trace");
        let sample = Sample::new(10, SampleUnit::Page, 1);
        let samples = Samples::load(source.as_mut(), &LoadOptions::default(), &[sample]).expect("samples");
        let indices = &samples.traces[0].objects[0].indices;
        for (shift, want) in [(6, 6.4), (9, 51.2)] {
            let mut nodes: Vec<_> = indices.iter().map(|index| index >> shift).collect();
            nodes.dedup();
            let fill = indices.len() as f64 / nodes.len() as f64;
            assert!((fill - want).abs() < 0.1 * want, "{fill} pages in 2^{shift}");
        }
    }

    #[test]
    fn a_read_goes_on_only_where_the_whole_trace_does() {
        // Pages 1 and 2 in turn, then 1 twice in a row.
        let text = "1\n2\n1\n2\n1\n1\n";
        let read = |salt| {
            let input = crate::Input::from_reader("t", Box::new(text.as_bytes())).expect("text");
            let mut source = crate::open_input(input, &crate::OpenOptions::default()).expect("a trace");
            let sample = [Sample::new(2, SampleUnit::Page, salt)];
            (Samples::load(source.as_mut(), &LoadOptions::default(), &sample).expect("samples"), sample[0])
        };
        let (samples, _) = (0..100)
            .map(read)
            .find(|(_, sample)| sample.has(0, 1) && !sample.has(0, 2))
            .expect("a salt that keeps page 1 alone");
        let continues: Vec<_> = samples.traces[0].accesses.iter().map(|a| a.continues()).collect();
        assert_eq!(continues, [false, false, false, true]);
    }
}
