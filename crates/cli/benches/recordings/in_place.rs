//! Touches of mapped pages in place, which the kernel tells nobody of: those of a program that goes
//! through a known sequence are added to its recording.

use refault_trace::{
    Format, Header, NativeWriter, OpenOptions, Record, RecordKind, RecordSource as _, TouchMethod, Touches, Via, open,
};
use std::collections::HashMap;
use std::path::Path;

/// The pages that `mapped.c` touches.
#[derive(Clone, Copy)]
pub struct Sequence {
    pub pattern: &'static str,
    pub pages: u64,
    pub touches: u64,
    pub threads: u64,
}

impl Sequence {
    /// Number of a thread; the first is 1.
    fn of_thread(self, number: u64) -> impl Iterator<Item = u64> {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..self.touches / self.threads).map(move |i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let x = (state >> 11) as f64 / 9_007_199_254_740_992.0;
            match self.pattern {
                "uniform" => (x * self.pages as f64) as u64,
                "skewed" => (x * x * x * self.pages as f64) as u64,
                "sequential" => i % self.pages,
                _ => i * 37 % self.pages,
            }
        })
    }
}

/// A thread, and how far it has come.
struct Thread {
    pages: Vec<u64>,
    at: usize,
}

/// Writes the recording anew, with what its threads touched from one fault to the next. Faults that
/// are not in the sequence are an error.
pub fn add(from: &Path, to: &Path, object: &str, sequence: Sequence) -> Result<(), String> {
    let mut source = open(from, &OpenOptions::default()).map_err(|e| e.to_string())?;
    let mut header: Header = source.header().clone();
    let object = header.objects.iter().position(|o| o.name.ends_with(object)).ok_or("the file was not touched")? as u32;
    let (mut records, mut chunk) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk).map_err(|e| e.to_string())? {
        records.extend_from_slice(&chunk);
    }
    let mut threads: HashMap<u32, Thread> = HashMap::new();
    let mut all = Vec::new();
    for record in &records {
        if record.object == object
            && matches!(record.kind, RecordKind::Hit | RecordKind::Miss)
            && record.op.via == Some(Via::Map)
        {
            let number = threads.len() as u64 + 1;
            let new = || Thread { pages: sequence.of_thread(number).collect(), at: 0 };
            let thread = threads.entry(record.task).or_insert_with(new);
            let ahead = thread.pages[thread.at..].iter().position(|&page| page == record.page);
            let ahead = ahead.ok_or_else(|| format!("page {} is not in the sequence", record.page))?;
            let passed = &thread.pages[thread.at..thread.at + ahead];
            all.extend(passed.iter().map(|&page| Record { page, kind: RecordKind::Sampled, ..*record }));
            thread.at += ahead + 1;
        }
        all.push(*record);
    }
    let last = *records.last().ok_or("the recording is empty")?;
    for (&task, thread) in &threads {
        let op = refault_trace::Op { write: false, via: Some(Via::Map) };
        let rest = thread.pages[thread.at..].iter();
        all.extend(rest.map(|&page| Record { page, task, object, op, pages: 1, kind: RecordKind::Sampled, ..last }));
    }
    header.format = Format::Native;
    if let Some(recording) = &mut header.recording {
        recording.touches = Some(Touches { by: TouchMethod::Idle, interval_ns: 1 });
    }
    let mut writer = NativeWriter::create(to).map_err(|e| e.to_string())?;
    writer.write(&all).map_err(|e| e.to_string())?;
    writer.finish(&header).map(|_| ()).map_err(|e| e.to_string())
}
