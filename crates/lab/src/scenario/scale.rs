//! The same scenario on a smaller machine: memory, sets, limits, amounts of work and times divided
//! by one factor; latencies, thread counts, skews and the constants of the kernel as they are.

use super::types::{
    AccessPattern, Action, Condition, EventAction, MemoryAmount, PhaseLimit, Scenario, StreamSpec, WatchSpec,
};
use super::units::size_text;

/// Pages of the smallest memory or limit: 50 batches of reclaim and more in each list.
pub const MIN_SCALED_PAGES: u64 = 3200;
/// Pages of the smallest swap: 32 clusters.
pub const MIN_SCALED_SWAP_PAGES: u64 = 32 * 512;

/// Accesses (of a page) from which on an operation is a scan.
const MIN_SCANNED_PAGES: u32 = 4096;

impl Scenario {
    /// Divides sizes, amounts of work and times by `k` >= 1; what would become too small is an
    /// error.
    ///
    /// Divided are: memory, what the kernel takes, `min_free_kbytes`, swap, limits of groups and of
    /// zram, objects and the parts of them that are used; accesses; the end, starts, phases,
    /// bursts, samples, `min_ttl`, events, and when and how long a device is stuck. Everything else
    /// stays: CPUs, tasks, operations, blocks, rates, latencies, skews, the constants of reclaim.
    pub fn scale(&self, k: f64) -> Result<Scenario, String> {
        if !(k.is_finite() && k >= 1.0) {
            return Err(format!("scale {k}: a scale is 1 or more"));
        }
        if k == 1.0 {
            return Ok(self.clone());
        }
        if let Some(task) = self.tasks.iter().find(|t| t.trace.is_some()) {
            return Err(format!("scale {k}: task {} replays a trace, which cannot be scaled; use 1", task.name));
        }
        if !self.machine.nodes.is_empty() && k.fract() != 0.0 {
            return Err(format!("scale {k}: the periods of tiering are divided by whole numbers; use {}", k.round()));
        }
        let scale = Scale(k);
        let mut scaled = self.clone();
        scale.machine(self, &mut scaled)?;
        for object in &mut scaled.objects {
            object.pages = scale.some(object.pages);
        }
        scaled.end_ns = self.end_ns.map(|ns| scale.some(ns));
        scaled.sample_ns = scale.some(self.sample_ns);
        for n in 0..scaled.events.len() {
            scale.event(&mut scaled, n)?;
        }
        for task in &mut scaled.tasks {
            task.start_ns = scale.of(task.start_ns);
            task.stagger_ns = scale.of(task.stagger_ns);
            for phase in &mut task.phases {
                phase.until = scale.until(phase.until);
                // An operation that scans shrinks with what it scans; one of a few pages does not.
                if phase.accesses_per_op >= MIN_SCANNED_PAGES {
                    phase.accesses_per_op = scale.some(u64::from(phase.accesses_per_op)) as u32;
                }
                if let Some(burst) = &mut phase.burst {
                    (burst.on_ns, burst.off_ns) = (scale.some(burst.on_ns), scale.some(burst.off_ns));
                }
                for stream in &mut phase.streams {
                    let object = &scaled.objects[stream.object];
                    scale.stream(stream, object.pages, task.count).map_err(|what| {
                        format!("scale {k}: task {}: object {}: {what}; use a smaller scale", task.name, object.name)
                    })?;
                }
            }
        }
        Ok(scaled)
    }
}

struct Scale(f64);

impl Scale {
    fn of(&self, n: u64) -> u64 {
        (n as f64 / self.0).round() as u64
    }

    /// Scales a number; one above 0 stays above 0.
    fn some(&self, n: u64) -> u64 {
        self.of(n).max(n.min(1))
    }

    fn limited(&self, what: &str, pages: u64, least: u64) -> Result<u64, String> {
        let scaled = self.of(pages);
        if scaled >= least {
            return Ok(scaled);
        }
        let k = self.0;
        let most = (pages as f64 / least as f64).max(1.0);
        // The largest scale that is enough, rounded down.
        let most = if most >= 10.0 { most.floor() } else { (most * 10.0).floor() / 10.0 };
        Err(format!(
            "scale {k}: {what} of {} becomes {scaled} pages, and {least} are the least; use {most} or less",
            size_text(pages)
        ))
    }

    fn machine(&self, full: &Scenario, scaled: &mut Scenario) -> Result<(), String> {
        let machine = &mut scaled.machine;
        machine.kernel_pages = self.of(machine.kernel_pages);
        machine.init_pages = self.of(machine.init_pages);
        (machine.dma_pages, machine.dma32_pages) = (self.of(machine.dma_pages), self.of(machine.dma32_pages));
        let usable = full.machine.memory_pages.saturating_sub(full.machine.kernel_pages);
        self.limited("memory less kernel", usable, MIN_SCALED_PAGES)?;
        machine.memory_pages = self.of(machine.memory_pages);
        if !machine.nodes.is_empty() {
            for node in &mut machine.nodes {
                node.pages = self.limited(&format!("node {}", node.name), node.pages, MIN_SCALED_PAGES)?;
            }
            machine.memory_pages = machine.nodes.iter().map(|n| n.pages).sum();
            machine.scale *= self.0 as u64;
        }
        // The formula of the kernel goes by the root of the size: a small machine would keep a
        // larger share free.
        let kb = full.machine.min_free_kbytes();
        machine.min_free_kbytes = Some(self.some(kb));
        // Batches of per-CPU lists and blocks of 512 pages would stand for `k` times as much
        // memory.
        let is_given = |key: &&str| machine.given.contains(key);
        machine.per_cpu_lists &= is_given(&"per_cpu_lists");
        if !machine.nodes.is_empty() && !is_given(&"tick") {
            // Time is divided, ticks are not: kswapd would wait for a tick `k` times as long, and
            // promotions would wait for the room that kswapd makes.
            machine.tick_ns = 0;
        }
        machine.page_blocks &= ["page_blocks", "watermark_boost_factor"].iter().any(is_given);
        machine.min_ttl_ns = self.some(machine.min_ttl_ns);
        machine.dirty_expire_ns = self.some(machine.dirty_expire_ns);
        machine.dirty_writeback_ns = self.some(machine.dirty_writeback_ns);
        // Things that fill in a time are smaller, too.
        machine.stat_flush_interval_ns = self.some(machine.stat_flush_interval_ns);
        for swap in &mut scaled.swap {
            swap.pages = self.limited("swap", swap.pages, MIN_SCALED_SWAP_PAGES)?;
            swap.bad_pages.retain(|&p| p < swap.pages);
        }
        for memcg in &mut scaled.memcgs {
            let limits = &mut memcg.limits;
            for (what, limit) in [("max", &mut limits.max), ("high", &mut limits.high)] {
                if *limit != u64::MAX {
                    *limit = self.limited(&format!("memcg {}: {what}", memcg.path), *limit, MIN_SCALED_PAGES)?;
                }
            }
            for limit in
                [&mut limits.min, &mut limits.low, &mut limits.swap_high, &mut limits.swap_max, &mut limits.zswap_max]
            {
                if *limit != u64::MAX {
                    *limit = self.of(*limit);
                }
            }
        }
        for device in &mut scaled.devices {
            let o = &mut device.overrides;
            o.mem_limit_pages = o.mem_limit_pages.map(|pages| self.some(pages));
            o.stuck_at_ns = o.stuck_at_ns.map(|ns| self.of(ns));
            o.stuck_for_ns = o.stuck_for_ns.map(|ns| self.some(ns));
        }
        Ok(())
    }

    fn event(&self, scaled: &mut Scenario, n: usize) -> Result<(), String> {
        let event = &mut scaled.events[n];
        event.at_ns = self.of(event.at_ns);
        if let Some(watch) = &mut event.watch {
            self.watch(watch);
        }
        match &mut event.action {
            EventAction::Set { memcg, limits } => {
                for (what, limit) in [("max", &mut limits.max), ("high", &mut limits.high)] {
                    if let Some(pages) = limit.as_mut().filter(|pages| **pages != u64::MAX) {
                        let what = format!("event[{}]: memcg {}: {what}", n + 1, scaled.memcgs[*memcg].path);
                        *pages = self.limited(&what, *pages, MIN_SCALED_PAGES)?;
                    }
                }
                let others = [
                    &mut limits.min,
                    &mut limits.low,
                    &mut limits.swap_high,
                    &mut limits.swap_max,
                    &mut limits.zswap_max,
                ];
                for pages in others.into_iter().flatten().filter(|pages| **pages != u64::MAX) {
                    *pages = self.of(*pages);
                }
            }
            EventAction::Reclaim { pages, every_ns, until_ns, .. } => {
                *pages = self.some(*pages);
                for ns in [every_ns, until_ns].into_iter().flatten() {
                    *ns = self.some(*ns);
                }
            }
            EventAction::Sysctl(changes) => {
                changes.min_free_kbytes = changes.min_free_kbytes.map(|kb| self.some(kb));
            }
            EventAction::AddMemory(pages) => *pages = self.some(*pages),
            EventAction::Create(_)
            | EventAction::Move { .. }
            | EventAction::Remove(_)
            | EventAction::Swapon(_)
            | EventAction::Swapoff(_)
            | EventAction::Kill { .. } => {}
        }
        Ok(())
    }

    /// Looks are as frequent as what they look at is fast; averages of pressure stay.
    fn watch(&self, watch: &mut WatchSpec) {
        for ns in [&mut watch.poll_ns, &mut watch.hold_ns, &mut watch.cooldown_ns] {
            *ns = self.some(*ns);
        }
        for condition in watch.any.iter_mut().flatten() {
            match condition {
                Condition::AvailableBelow(MemoryAmount::Pages(pages))
                | Condition::NodeAvailableBelow(MemoryAmount::Pages(pages))
                | Condition::FreeSwapBelow(MemoryAmount::Pages(pages)) => *pages = self.some(*pages),
                Condition::StallAbove { ns, .. } => *ns = self.some(*ns),
                Condition::CounterRises { above, .. } => *above = self.of(*above),
                _ => {}
            }
        }
    }

    fn until(&self, until: PhaseLimit) -> PhaseLimit {
        match until {
            PhaseLimit::Accesses(n) => PhaseLimit::Accesses(self.some(n)),
            PhaseLimit::Duration(ns) => PhaseLimit::Duration(self.some(ns)),
            PhaseLimit::Time(ns) => PhaseLimit::Time(self.some(ns)),
            // The pages to go through are divided already.
            PhaseLimit::Passes(_) | PhaseLimit::End => until,
        }
    }

    fn stream(&self, stream: &mut StreamSpec, object_pages: u64, count: u32) -> Result<(), String> {
        stream.first_page = self.of(stream.first_page).min(object_pages.saturating_sub(1));
        stream.pages = self.some(stream.pages).min(object_pages.saturating_sub(stream.first_page));
        stream.least_pages = self.some(stream.least_pages).min(stream.pages);
        stream.start_page = self.of(stream.start_page).min(stream.pages.saturating_sub(1));
        // Blocks that are scans shrink with their object, as operations do.
        if stream.block_pages >= MIN_SCANNED_PAGES {
            stream.block_pages = self.some(u64::from(stream.block_pages)) as u32;
        }
        // The number of steps in which a range is walked does not matter.
        if matches!(stream.action, Action::Drop | Action::PageOut) && stream.pattern == AccessPattern::Sequential {
            stream.block_pages = u64::from(stream.block_pages).min(stream.least_pages).max(1) as u32;
        }
        let parts = if stream.share == super::Share::Split { u64::from(count) } else { 1 };
        let (slice, block) = (stream.least_pages / parts, u64::from(stream.block_pages));
        match slice < block {
            true => Err(format!("{slice} pages are left, less than a block of {block}")),
            false => Ok(()),
        }
    }
}
