//! No policy beats OPT, whatever the trace and the size.

use crate::common::{opt_misses, replay};
use proptest::prelude::*;
use refault_mm::{Config, Policy};
use refault_testing::short_or_long;
use refault_trace::generate::{Interleave, Pattern, Phase, Stream, Workload};
use refault_trace::{LoadOptions, ObjectKind, Trace, Via};

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Uniform),
        (0.3..2.0f64).prop_map(|skew| Pattern::Zipf { skew, permute: true }),
        Just(Pattern::Sequential),
        Just(Pattern::Loop),
    ]
}

prop_compose! {
    fn stream()(
        object in 0..3u8,
        pattern in pattern(),
        pages in 1..600u32,
        base in 0..400u64,
        weight in 1..5u32,
        write in prop::bool::weighted(0.3),
        mapped in any::<bool>(),
        task in 0..3u32,
    ) -> Stream {
        let mut stream = Stream::new(format!("object{object}"), pattern, pages);
        (stream.base, stream.weight, stream.write, stream.task) = (base, weight, write, task);
        // An object keeps its kind: the last of the three is anonymous memory.
        stream.kind = if object == 2 { ObjectKind::Anon } else { ObjectKind::File };
        stream.via = Some(if mapped || object == 2 { Via::Map } else { Via::Fd });
        stream
    }
}

prop_compose! {
    fn workload()(
        phases in prop::collection::vec((200..3000u64, prop::collection::vec(stream(), 1..4), any::<bool>()), 1..4),
        seed in any::<u64>(),
    ) -> Workload {
        let phase = |(accesses, streams, round)| Phase {
            accesses,
            streams,
            interleave: if round { Interleave::Round } else { Interleave::Random },
        };
        Workload { phases: phases.into_iter().map(phase).collect(), seed }
    }
}

/// The trace of a workload; none if its streams end before its phases do.
fn trace(workload: &Workload) -> Option<Trace> {
    let mut source = workload.generator("random").ok()?;
    Trace::load(&mut source, &LoadOptions::default()).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: short_or_long(64, 512), ..ProptestConfig::default() })]

    #[test]
    fn opt_is_never_beaten(
        workload in workload(),
        percent in 2..=100u64,
        charge_kernel in any::<bool>(),
        batches in any::<bool>(),
        synchronous in any::<bool>(),
    ) {
        let Some(trace) = trace(&workload) else { return Ok(()) };
        let pages = (u64::from(trace.footprint_pages()) * percent / 100).max(1);
        let least = opt_misses(&trace, pages);
        for policy in Policy::ALL {
            let mut cfg = Config::new(policy);
            cfg.memcg.charge_kernel = charge_kernel;
            cfg.swap.synchronous = synchronous;
            if !batches {
                (cfg.lru.batch_folios, cfg.memcg.charge_batch) = (0, 1);
            }
            let cell = replay(&trace, cfg, pages);
            prop_assert!(cell.engine.validate().is_ok(), "{policy}: {:?}", cell.engine.validate());
            // Out of memory, the trace was not replayed to its end.
            if cell.oom_at.is_none() {
                prop_assert!(cell.misses >= least, "{policy} in {pages} pages: {} misses, OPT {least}", cell.misses);
            }
        }
    }
}
