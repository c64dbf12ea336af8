//! The grammar of workloads; what parses is run if it is small.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_trace::generate::Workload;
use refault_trace::{LoadOptions, Trace};

fuzz_target!(|text: &str| {
    let phases: Vec<_> = text.split('\n').collect();
    let Ok(workload) = Workload::parse(&phases, 1) else {
        return;
    };
    let streams = workload.phases.iter().flat_map(|phase| &phase.streams);
    let pages: u64 = streams.map(|stream| u64::from(stream.pages)).sum();
    if pages > 1 << 20 || workload.accesses() > 1 << 16 {
        return;
    }
    let opts = LoadOptions { keep_time: true, keep_task: true, keep_memcg: true, ..LoadOptions::default() };
    let Ok(mut generator) = workload.generator("t") else {
        return;
    };
    let trace = Trace::load(&mut generator, &opts).expect("a workload that is checked runs");
    assert_eq!(trace.accesses.len() as u64, workload.accesses());
    refault_fuzz::check(&trace);
});
