//! Workloads that the guests of the recordings played, as a generator makes them from a seed.

use std::path::Path;

use refault_trace::generate::Workload;
use refault_trace::{NativeWriter, ObjectKind, Record, RecordSource};

/// The name of a workload, the size that it was made for in pages, its seed and its phases.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) seed: u64,
    pub(super) phases: &'static [&'static str],
}

/// Three tenths of the memory, written once.
macro_rules! idle {
    ($pages:literal) => {
        concat!($pages, ": idle:seq:", $pages, ":kind=anon,op=w,via=map")
    };
}

macro_rules! half {
    () => {
        "372736: heap:zipf:37273:skew=0.8,permute=yes,kind=anon,op=w,via=map,weight=2; data:uniform:47923:weight=3"
    };
}

macro_rules! quarter {
    () => {
        "186368: heap:zipf:18636:skew=0.8,permute=yes,kind=anon,op=w,via=map,weight=2; data:uniform:23961:weight=3"
    };
}

/// *L* is 106,496 pages on guests of 512 MiB, 45,056 on those of 256 MiB, 237,568 on those of
/// 1 GiB, and 495,616 on those of 2 GiB.
pub(super) const CASES: [Case; 23] = [
    Case { name: "idle-uniform-512", seed: 19, phases: &[idle!("31948"), "931840: data:uniform:133120"] },
    Case { name: "idle-uniform-256", seed: 19, phases: &[idle!("13516"), "563200: data:uniform:56320"] },
    Case { name: "idle-uniform-1024", seed: 19, phases: &[idle!("71270"), "1187840: data:uniform:296960"] },
    Case { name: "idle-uniform-2048", seed: 19, phases: &[idle!("148685"), "1982464: data:uniform:619520"] },
    Case {
        name: "idle-zipf-512",
        seed: 20,
        phases: &[idle!("31948"), "798720: data:zipf:266240:skew=0.8,permute=yes"],
    },
    Case { name: "idle-loop-512", seed: 25, phases: &[idle!("31948"), "798720: data:loop:133120"] },
    Case {
        name: "idle-readers-512",
        seed: 26,
        phases: &[
            idle!("31948"),
            "798720: interleave=round; data:loop:133120:weight=4; data:loop:133120:start=33280,weight=3; \
             data:loop:133120:start=66560,weight=2; data:loop:133120:start=99840",
        ],
    },
    Case {
        name: "idle-return-512",
        seed: 27,
        phases: &[
            idle!("31948"),
            "399360: data:zipf:266240:skew=0.8,permute=yes",
            "63896: idle:loop:31948:kind=anon,op=w,via=map",
            "266240: data:zipf:266240:skew=0.8,permute=yes",
        ],
    },
    Case {
        name: "writers-512",
        seed: 21,
        phases: &["665600: data:uniform:133120:weight=7; data:uniform:133120:weight=3,op=w"],
    },
    Case {
        name: "anon-zipf-512",
        seed: 22,
        phases: &["638976: heap:zipf:170393:skew=0.9,permute=yes,kind=anon,op=w,via=map"],
    },
    Case {
        name: "two-sets-512",
        seed: 23,
        phases: &["399360: data:uniform:79872", "399360: data:uniform:79872:base=79872"],
    },
    Case {
        name: "mixed-512",
        seed: 24,
        phases: &[
            "745472: heap:zipf:74547:skew=0.8,permute=yes,kind=anon,op=w,via=map,weight=2; data:uniform:95846:weight=3",
        ],
    },
    Case {
        name: "burst-512",
        seed: 28,
        phases: &[
            "399360: data:zipf:266240:skew=0.8,permute=yes",
            "42598: burst:seq:42598:kind=anon,op=w,via=map",
            "266240: data:zipf:266240:skew=0.8,permute=yes",
        ],
    },
    Case {
        name: "mixed-2048",
        seed: 24,
        phases: &[
            "1982464: heap:zipf:346931:skew=0.8,permute=yes,kind=anon,op=w,via=map,weight=2; data:uniform:446054:weight=3",
        ],
    },
    Case {
        name: "writers-2048",
        seed: 21,
        phases: &["1486848: data:uniform:619520:weight=7; data:uniform:619520:weight=3,op=w"],
    },
    // Threads of one program, each with a file and a heap of its own: a half or a quarter of mixed.
    Case { name: "half-a-512", seed: 31, phases: &[half!()] },
    Case { name: "half-b-512", seed: 32, phases: &[half!()] },
    Case { name: "quarter-a-512", seed: 33, phases: &[quarter!()] },
    Case { name: "quarter-b-512", seed: 34, phases: &[quarter!()] },
    Case { name: "quarter-c-512", seed: 35, phases: &[quarter!()] },
    Case { name: "quarter-d-512", seed: 36, phases: &[quarter!()] },
    // The two of a pair run at once, each in a group of its own.
    Case { name: "pair-file-512", seed: 29, phases: &["532480: data:zipf:133120:skew=0.8,permute=yes"] },
    Case {
        name: "pair-anon-512",
        seed: 30,
        phases: &["425984: heap:zipf:63898:skew=0.8,permute=yes,kind=anon,op=w,via=map"],
    },
];

impl Case {
    fn records(&self) -> (Vec<Record>, refault_trace::Header) {
        let workload = Workload::parse(self.phases, self.seed).expect("a workload");
        let mut source = workload.generator(self.name).expect("a generator");
        let (mut all, mut chunk) = (Vec::new(), Vec::new());
        while source.next_chunk(&mut chunk).expect("records") {
            all.extend_from_slice(&chunk);
        }
        (all, source.header().clone())
    }

    /// Writes the trace as the lab reads it.
    pub(super) fn write_native(&self, path: &Path) {
        let (records, header) = self.records();
        let mut writer = NativeWriter::create(path).expect("a trace");
        writer.write(&records).expect("a trace");
        writer.finish(&header).expect("a trace");
    }

    /// Writes the trace as the program that plays it in a guest reads it: `PGTRACE1`, with bit 30
    /// set for a write to the file.
    pub(super) fn write_pgtrace(&self, path: &Path) {
        let (records, header) = self.records();
        let is_anon = |r: &Record| header.objects[r.object as usize].kind == ObjectKind::Anon;
        let word = |r: &Record, page: u64| match (is_anon(r), r.op.write) {
            (true, _) => page as u32 | 1 << 31,
            (false, write) => page as u32 | u32::from(write) << 30,
        };
        let words: Vec<u32> =
            records.iter().flat_map(|r| (r.page..r.page + u64::from(r.pages)).map(move |p| word(r, p))).collect();
        let pages =
            |anon: bool| records.iter().filter(|r| is_anon(r) == anon).map(|r| r.page + u64::from(r.pages)).max();
        let mut ends = Vec::new();
        for phase in Workload::parse(self.phases, self.seed).expect("a workload").phases {
            ends.push(ends.last().copied().unwrap_or(0) + phase.accesses as u32);
        }
        let nr_phases = ends.len() as u32;
        ends.resize(16, 0);
        let mut name = self.name.as_bytes().to_vec();
        name.resize(32, 0);
        let sizes = [0, pages(false).unwrap_or(0) as u32, pages(true).unwrap_or(0) as u32, self.seed as u32];
        let header = sizes.into_iter().chain([words.len() as u32, nr_phases]).chain(ends);
        let mut bytes = [b"PGTRACE1".to_vec(), name].concat();
        bytes.extend(header.chain(words).flat_map(u32::to_le_bytes));
        std::fs::write(path, bytes).expect("a trace");
    }
}
