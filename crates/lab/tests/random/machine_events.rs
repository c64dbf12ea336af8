//! Events of the machine as a whole, and daemons that watch it.

use super::Dice;
use refault_lab::scenario::{
    Condition, EventAction, EventSpec, MemoryAmount, Scenario, SysctlChanges, Victim, WatchSpec,
};
use refault_mm::{Counter, PsiKind};
use refault_trace::generate::Rng;

/// Adds events of the machine as a whole, at a time or on conditions. Drawn from numbers of their
/// own: other machines stay what they were.
pub(super) fn add(seed: u64, s: &mut Scenario) {
    let d = &mut Dice(Rng::new(seed, &[80]));
    let n = if d.one_in(2) { 0 } else { d.within(1, 8) };
    s.swap.iter_mut().for_each(|swap| swap.enabled = n == 0 || !d.one_in(3));
    for _ in 0..n {
        let group = |d: &mut Dice, s: &Scenario| {
            (!s.memcgs.is_empty() && d.one_in(2)).then(|| d.below(s.memcgs.len() as u64) as usize)
        };
        let swap = |d: &mut Dice| d.below(s.swap.len().max(1) as u64) as usize;
        let action = match d.below(8) {
            0 | 1 => EventAction::Sysctl(SysctlChanges {
                swappiness: d.one_in(2).then(|| d.below(201) as u32),
                min_free_kbytes: d.one_in(3).then(|| d.of(&[4, 1000, 4000, 1_000_000])),
                watermark_scale_factor: d.one_in(3).then(|| d.within(1, 3000) as u32),
                drop_caches: d.one_in(2),
            }),
            2 | 3 if !s.swap.is_empty() => EventAction::Swapoff(swap(d)),
            4 if !s.swap.is_empty() => EventAction::Swapon(swap(d)),
            5 => EventAction::AddMemory(d.within(1, 2000)),
            _ => EventAction::Kill { within: group(d, s), victim: d.of(&Victim::ALL).1 },
        };
        let condition = match d.below(5) {
            0 => Condition::AvailableBelow(MemoryAmount::Percent(d.below(101) as f64)),
            1 => Condition::FreeSwapBelow(MemoryAmount::Pages(d.below(4000))),
            2 => Condition::StallAbove { memcg: group(d, s), kind: PsiKind::Some, ns: d.below(2_000_000) },
            3 => Condition::Avg10Above { memcg: group(d, s), kind: PsiKind::Full, percent: 1.0 },
            _ => Condition::CounterRises { counter: Counter::PgscanDirect, above: d.below(1000) },
        };
        let watch = WatchSpec {
            daemon: None,
            any: vec![vec![condition]],
            poll_ns: d.of(&[1_000_000, 100_000_000]),
            hold_ns: d.of(&[0, 0, 50_000_000]),
            cooldown_ns: d.of(&[0, 100_000_000]),
            times: d.of(&[1, 3]),
        };
        let at_ns = d.of(&[0, 20_000_000, 100_000_000, 300_000_000]) + d.below(1_000_000);
        s.events.push(EventSpec { at_ns, after: None, watch: d.one_in(2).then_some(watch), action });
    }
}
