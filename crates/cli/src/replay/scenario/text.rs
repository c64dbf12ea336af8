//! The result for people.

use crate::flags::size::human;
use crate::replay::swap_map;
use crate::table::Table;
use refault::runner::{ending_text, policy_text};
use refault::scenario::{ScenarioRun, bytes, device_numbers, per_second};
use refault::words::{counted, duration, grouped, number, printable, times};
use refault_lab::machine::{CpuResult, LockResult, RunResult, TaskResult};
use refault_mm::{Lru, PsiLine};
use std::fmt::Write as _;

/// Caption of the runs below.
pub(super) fn caption(outcome: &ScenarioRun) -> String {
    let s = &outcome.scenario;
    let about = if s.about.is_empty() { String::new() } else { format!(": {}", printable(&s.about)) };
    let memory = human(s.machine.memory_pages * 4096);
    let scale = if outcome.scale == 1.0 { String::new() } else { format!(", scale {}", outcome.scale) };
    let settings: Vec<_> = s.settings.iter().filter_map(shown).collect();
    let settings = if settings.is_empty() { String::new() } else { format!("; {}", settings.join(", ")) };
    let m = &s.machine;
    let raised = m.min_free_kbytes.is_none() && m.thp.runs_khugepaged();
    let marks = match raised {
        true => format!("min_free_kbytes {}, to which khugepaged raises it\n", grouped(m.min_free_kbytes())),
        false => String::new(),
    };
    let cpus = counted(u64::from(m.cpus), "CPU", "CPUs");
    format!("{}{about}\n{cpus}, {memory} of memory, seed {}{scale}{settings}\n{marks}", s.name, s.seed)
}

/// A setting of the machine as the file has it, but for those that the line has anyway.
fn shown((key, value): &(String, String)) -> Option<String> {
    let name = key.strip_prefix("machine.").or(key.starts_with("zswap.").then_some(key))?;
    let is_there = ["cpus", "memory"].contains(&name);
    (!is_there).then(|| format!("{name} {}", printable(value.trim_matches('"'))))
}

/// Letters of a policy that stand above the names of tasks.
const LONGEST_NAME: usize = 20;

/// The table of the tasks of a run.
pub(super) fn tasks(outcome: &ScenarioRun) -> String {
    let policy = policy_text(&outcome.policy);
    let heads = [
        "copies",
        "ops/s",
        "MB/s",
        "accesses",
        "hit\nrate",
        "latency\np50",
        "\np99",
        "seconds",
        "CPU\nuser",
        "\nsystem",
        "I/O\nwait",
        "errors",
    ];
    // A long name of a policy has a line of its own.
    let (above, first) = match policy.chars().count() {
        0..=LONGEST_NAME => (String::new(), format!("{policy}\ntask")),
        _ => (format!("{policy}\n"), "task".to_owned()),
    };
    let heads = std::iter::once(first).chain(heads.map(str::to_owned));
    let mut table = Table::new(heads, 1).sparse(12..13).spare([4, 1]);
    for task in &outcome.result().tasks {
        table.row(vec![
            match task.oom_kills {
                0 if outcome.is_victim(&task.name) => format!("{} (killed)", task.name),
                0 => task.name.clone(),
                _ => format!("{} (OOM-killed)", task.name),
            },
            task.count.to_string(),
            number(per_second(task, task.ops as f64)),
            number(per_second(task, bytes(task) / 1e6)),
            grouped(task.accesses),
            format!("{:.2}%", 100.0 * task.hit_rate()),
            duration(task.latency.p50_ns()),
            duration(task.latency.p99_ns()),
            format!("{:.3}", task.seconds),
            seconds(task.user_seconds),
            seconds(task.system_seconds),
            seconds(task.iowait_seconds),
            grouped(task.errors),
        ]);
    }
    above + &table.render()
}

/// A line for each task that was killed, of which rates alone look fast.
pub(super) fn killed(outcome: &ScenarioRun) -> String {
    let killed = outcome.result().tasks.iter().filter(|task| task.oom_kills > 0 || outcome.is_victim(&task.name));
    let line = |task: &TaskResult| {
        if task.oom_kills == 0 {
            return format!("{}: it was killed by an event; its figures are of the time before\n", task.name);
        }
        let (name, count, kills) = (&task.name, u64::from(task.count), task.oom_kills);
        let before = "its figures are of the time before";
        match kills {
            _ if count == 1 => format!("{name}: it was killed for want of memory {}; {before}\n", times(kills)),
            _ if kills >= count => format!("{name}: all {count} were killed for want of memory; {before}\n"),
            _ => format!("{name}: {kills} of {count} killed for want of memory; figures are of all of them\n"),
        }
    };
    killed.map(line).collect()
}

/// Two lines for the machine: its time and pressure, and its memory.
pub(super) fn machine(outcome: &ScenarioRun) -> String {
    let result = outcome.result();
    let [refaults, ins, outs, free, some, full, kills] = outcome.machine().map(|(_, n)| n);
    format!(
        "machine: {:.3} s virtual, {}, {}, pressure some {} full {}\n\
         memory: {}, {} swapped in, {} out, {} of {} pages free\n",
        result.seconds,
        ending_text(result.ending),
        counted(kills, "OOM kill", "OOM kills"),
        duration(some * 1000),
        duration(full * 1000),
        counted(refaults, "refault", "refaults"),
        grouped(ins),
        grouped(outs),
        grouped(free),
        grouped(result.node.managed_pages),
    )
}

/// Pages in zswap, if the scenario has it.
pub(super) fn zswap(outcome: &ScenarioRun) -> String {
    let count = |name: &str| {
        let machine = outcome.result().memcgs.first().into_iter().flat_map(|machine| &machine.counters);
        machine.filter(|(counter, _)| *counter == name).map(|(_, n)| *n).sum::<u64>()
    };
    match outcome.scenario.zswap {
        None => String::new(),
        Some(_) => format!(
            "zswap: {} stored, {} loaded, {} written back; at the end {} in {}\n",
            grouped(count("zswpout")),
            grouped(count("zswpin")),
            grouped(count("zswpwb")),
            counted(count("zswapped"), "page", "pages"),
            human(count("zswap_bytes")),
        ),
    }
}

/// CPU time: of the threads of the kernel that had some, of tasks, of the reclaim that they did.
pub(super) fn cpu(outcome: &ScenarioRun) -> String {
    let cpu = &outcome.result().cpu;
    let mut text = "CPU time: ".to_owned();
    for thread in cpu.kthreads.iter().filter(|thread| thread.seconds > 0.0) {
        let _ = write!(
            text,
            "{} {} ({:.1} % of a CPU, at most {:.1} %), ",
            thread.name,
            seconds(thread.seconds),
            thread.percent,
            thread.highest_percent
        );
    }
    let _ = writeln!(
        text,
        "tasks {}, of that direct reclaim {}",
        seconds(cpu.tasks_seconds),
        seconds(cpu.direct_reclaim_seconds)
    );
    text
}

/// A time in seconds, for people.
fn seconds(seconds: f64) -> String {
    duration((seconds * 1e9) as u64)
}

/// Waits of CPUs for each other, if the scenario has contention: a line, each kind of lock that was
/// waited for in it.
pub(super) fn waits(outcome: &ScenarioRun) -> String {
    let Some(waits) = &outcome.result().contention else { return String::new() };
    let lock = |lock: &LockResult| format!("{} {} ({})", lock.name, seconds(lock.wait_seconds), times(lock.contended));
    let locks: Vec<_> = waits.locks.iter().filter(|lock| lock.contended > 0).map(lock).collect();
    format!(
        "waits: for locks {}; for {} of TLBs {}; {} lost {}\n",
        if locks.is_empty() { "none".to_owned() } else { locks.join(", ") },
        counted(waits.flushes, "flush", "flushes"),
        seconds(waits.flush_seconds),
        counted(waits.interrupts, "interrupted CPU", "interrupted CPUs"),
        seconds(waits.interrupted_seconds),
    )
}

/// Counters, sizes and pressure of the machine and its groups, and what the devices did.
pub(super) fn vmstat(outcome: &ScenarioRun) -> String {
    let (name, policy) = (&outcome.scenario.name, outcome.policy.policy);
    let mut text = String::new();
    for group in &outcome.result().memcgs {
        let _ = writeln!(text, "\n# {name} {policy} {}: counters and sizes", printable(&group.path));
        for (counter, value) in &group.counters {
            let _ = writeln!(text, "{counter} {value}");
        }
        let _ = writeln!(text, "# {name} {policy} {}: memory.pressure", printable(&group.path));
        for (kind, line) in ["some", "full"].into_iter().zip(&group.psi) {
            text += &pressure(kind, line);
        }
        if !group.events.is_empty() {
            let _ = writeln!(text, "# {name} {policy} {}: memory.events", printable(&group.path));
        }
        for (event, count) in &group.events {
            let _ = writeln!(text, "{event} {count}");
        }
        if !group.swap_events.is_empty() {
            let _ = writeln!(text, "# {name} {policy} {}: memory.swap.events", printable(&group.path));
        }
        for (event, count) in &group.swap_events {
            let _ = writeln!(text, "{event} {count}");
        }
    }
    let _ = writeln!(text, "\n# {name} {policy}: counters of folios by size, of swap slots, and CPU time");
    for (counter, value) in more_counters(outcome.result()) {
        let _ = writeln!(text, "{counter} {value}");
    }
    for device in &outcome.result().devices {
        let _ = writeln!(text, "\n# {name} {policy} device {}", device.name);
        for (what, value) in device_numbers(device) {
            let _ = writeln!(text, "{what} {value}");
        }
    }
    for (name, map) in outcome.swap() {
        text += &swap_map::occupancy(map, Some(&printable(name)));
    }
    text
}

/// Counters of a run beside those of groups and devices: by the names that `series` and rows
/// of benchmarks have for it.
pub(super) fn more_counters(result: &RunResult) -> Vec<(String, f64)> {
    let sizes = result.sizes.iter().map(|(name, &n)| (name.clone(), n as f64));
    let swap = ["calls", "clusters", "probes", "reclaimed"].map(|name| format!("swap.{name}"));
    let threads = result.cpu.kthreads.iter().map(|thread| &thread.name);
    let of_thread = |name: &String| CpuResult::THREAD_METRICS.map(|what| format!("cpu.{name}.{what}"));
    let cpu = CpuResult::METRICS.map(|name| format!("cpu.{name}")).into_iter().chain(threads.flat_map(of_thread));
    let named = swap.into_iter().chain(cpu).filter_map(|name| result.metric(&name).map(|n| (name, n)));
    sizes.chain(named).collect()
}

/// A line of `/proc/pressure/memory`.
fn pressure(kind: &str, line: &PsiLine) -> String {
    let PsiLine { avg10, avg60, avg300, total_us } = line;
    format!("{kind} avg10={avg10:.2} avg60={avg60:.2} avg300={avg300:.2} total={total_us}\n")
}

/// How full the swap devices are, where there are several or one of them was full.
pub(super) fn swaps(outcome: &ScenarioRun) -> String {
    let several = outcome.scenario.swap.len() > 1;
    let worth_it = outcome.swap().filter(|(_, map)| several || map.device.peak_pages == map.device.usable_pages);
    worth_it.map(|(name, map)| swap_map::occupancy(map, Some(&printable(name)))).collect()
}

/// The swap devices when the last task had done its work.
pub(super) fn swap_map(outcome: &ScenarioRun) -> String {
    let head = format!("\n# {} {}: swap\n", outcome.scenario.name, outcome.policy.policy);
    if outcome.scenario.swap.is_empty() {
        return head + swap_map::NONE;
    }
    outcome.swap().fold(head, |text, (name, map)| text + &swap_map::text(map, Some(&printable(name))))
}

/// The generations at the end.
pub(super) fn lru_gen(outcome: &ScenarioRun) -> String {
    match outcome.policy.config().lru.kind {
        Lru::MultiGen => {
            format!("\n# {} {}: lru_gen\n{}", outcome.scenario.name, outcome.policy.policy, outcome.result().lru_gen)
        }
        _ => String::new(),
    }
}
