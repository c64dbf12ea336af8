//! The pages of runs of scenarios.

use super::by_owner;
use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Page, Series, Shape, Table};
use crate::words;
use refault::document::scenario::{Run, ScenarioDocument, Swap};
use refault::units::{Unit, bytes, counted};

const DOC: &str = "reference/replay-scenario.md#columns";
pub(super) const PAGE: f64 = 4096.0;

/// The pages of all runs.
pub(super) fn pages(d: &ScenarioDocument) -> Vec<Page> {
    let many = d.runs.len() > 1;
    let mut all = Vec::new();
    for (n, run) in d.runs.iter().enumerate() {
        let head = if many { format!("{}, {}: ", run.scenario, run.policy) } else { String::new() };
        let named = |page: Page| Page {
            id: format!("r{}-{}", n + 1, page.id),
            question: format!("{head}{}", page.question),
            ..page
        };
        all.extend([tasks(run, n), groups(run, n)].map(named));
        all.extend(when(run, n).map(named));
        all.extend(inside(run, n).map(named));
        all.extend(super::counters::page(run, n).map(named));
    }
    all
}

fn tasks(run: &Run, n: usize) -> Page {
    let mut answer =
        format!("The run took {} of virtual time and {}", Unit::Seconds.text(run.virtual_seconds), run.end());
    if run.oom_kills > 0 {
        answer += &format!(", after {}", counted(run.oom_kills, "OOM kill"));
    }
    let killed: u64 = run.tasks.iter().map(|t| t.killed).sum();
    if killed > 0 {
        let and = if run.oom_kills > 0 { " and" } else { ", after" };
        answer += &format!("{and} {} by events", counted(killed, "kill"));
    }
    answer += ".";
    if let Some(t) = run.slowest_task() {
        answer += &format!(
            " {} waits longest: 99 % of its operations take less than {}.",
            t.name,
            Unit::Nanoseconds.text(t.latency_ns.p99 as f64)
        );
    }
    let heads = [
        "task",
        "copies",
        "ops/s",
        "bytes/s",
        "accesses",
        &words::either("miss rate", "hit rate"),
        "p50",
        "p99",
        "longest",
        "errors",
        "OOM kills",
        "killed by events",
    ];
    let rows = run.tasks.iter().map(|t| {
        vec![
            Cell::Text(t.name.clone()),
            Cell::Number(t.count as f64, Unit::Count),
            Cell::Number(t.ops_per_s, Unit::Number),
            Cell::Number(t.bytes_per_s, Unit::Bytes),
            Cell::Number(t.accesses as f64, Unit::Count),
            t.hit_rate.map_or(Cell::None, |rate| Cell::share(100.0 - 100.0 * rate)),
            Cell::Number(t.latency_ns.p50 as f64, Unit::Nanoseconds),
            Cell::Number(t.latency_ns.p99 as f64, Unit::Nanoseconds),
            Cell::Number(t.latency_ns.max as f64, Unit::Nanoseconds),
            Cell::Number(t.errors as f64, Unit::Count),
            Cell::Number(t.oom_kills as f64, Unit::Count),
            Cell::Number(t.killed as f64, Unit::Count),
        ]
    });
    let table = Table { heads: heads.map(str::to_owned).to_vec(), rows: rows.collect(), searchable: true };
    let meaning = "Phases that count, over all copies of a task. Operations a second, and how long one takes.";
    let tasks = Figure::new("Tasks", meaning, DOC, Body::Table(table));
    Page::new("tasks", "How do the tasks fare?", answer)
        .with_all(rates(run))
        .with(tasks)
        .with_all(by_owner::victims(run))
        .with_all(events(run))
        .with_all(by_owner::of_tasks(run, n))
}

/// Outcomes of the events of the scenario; none if it has none.
fn events(run: &Run) -> Option<Figure> {
    let heads = ["event", "first", "last", "times", "killed", "victims", "failed"];
    let seconds = |at: Option<f64>| at.map_or(Cell::None, |at| Cell::Number(at, Unit::Seconds));
    let rows: Vec<_> = run
        .timeline
        .iter()
        .map(|event| {
            vec![
                Cell::Text(event.event.clone()),
                seconds(event.at_seconds),
                seconds(event.last_at_seconds),
                Cell::Number(event.times as f64, Unit::Count),
                Cell::Number(event.killed as f64, Unit::Count),
                Cell::Text(event.victims.join(", ")),
                Cell::Text(event.failed.clone().unwrap_or_default()),
            ]
        })
        .collect();
    let meaning = "What came of the events of the scenario, daemons among them: when each happened first and last, and whom it killed.";
    let is_any = !rows.is_empty();
    let table = Table { heads: heads.map(str::to_owned).to_vec(), rows, searchable: true };
    is_any.then(|| Figure::new("Events", meaning, DOC, Body::Table(table)))
}

fn rates(run: &Run) -> Option<Figure> {
    if run.tasks.is_empty() || run.tasks.len() > 30 {
        return None;
    }
    let values = run.tasks.iter().map(|t| t.ops_per_s);
    let mut chart = Chart::new(
        Shape::Bars,
        Axis::new("task", Unit::Number),
        Axis::new("operations a second", Unit::Count),
        (0..run.tasks.len()).map(|n| n as f64).collect(),
        vec![Series::new("ops/s", Colour::Blue, values)],
    );
    chart.labels = run.tasks.iter().map(|t| t.name.clone()).collect();
    Some(Figure::new("Operations a second", "What each task got done, all copies together.", DOC, Body::Chart(chart)))
}

fn groups(run: &Run, n: usize) -> Page {
    let below = run.groups.iter().filter(|g| g.path != "/");
    let most = below.max_by_key(|g| g.peak_bytes).or(run.groups.first());
    let mut answer = String::new();
    if let Some(g) = most.filter(|g| g.peak_bytes.is_some()) {
        answer += &format!("{} had most at one time: {}. ", g.path, bytes(g.peak_bytes.unwrap_or(0) as f64));
    }
    if let Some(g) = run.most_stalled_group() {
        let stalled = Unit::Percent.text(run.percent_of_time(g.pressure.some.total_us));
        answer += &match g.path.as_str() {
            "/" => format!("Some task waited for memory {stalled} of the time. There is one group, the machine."),
            path => format!("{path} waited for memory most: some task of it {stalled} of the time."),
        };
    }
    // The kernel counts none for the machine.
    let has_peaks = run.groups.iter().any(|g| g.peak_bytes.is_some());
    let mut heads = vec!["group".to_owned()];
    heads.extend(has_peaks.then(|| "memory, peak".to_owned()));
    heads.extend(
        ["refaults", "reclaimed", "swapped in", "swapped out", "stalled, some", "stalled, full"].map(String::from),
    );
    let rows = run.groups.iter().map(|g| {
        let count = |name: &str| Cell::Number(g.counters.get(name).copied().unwrap_or(0) as f64, Unit::Count);
        let stalled = |us: u64| Cell::Number(run.percent_of_time(us), Unit::Percent);
        let mut cells = vec![Cell::Text(g.path.clone())];
        cells.extend(has_peaks.then(|| g.peak_bytes.map_or(Cell::None, |n| Cell::Number(n as f64, Unit::Bytes))));
        cells.extend([
            Cell::Number(g.refaults as f64, Unit::Count),
            Cell::Number(g.reclaimed_pages as f64 * PAGE, Unit::Bytes),
            count("pswpin"),
            count("pswpout"),
            stalled(g.pressure.some.total_us),
            stalled(g.pressure.full.total_us),
        ]);
        cells
    });
    let table = Table { heads, rows: rows.collect(), searchable: true };
    let meaning = "The machine (/), of which there is no peak, and each memory cgroup. Stalled: the share of the time in which some task of it, or every \
                   task that had work, waited for memory.";
    Page::new("groups", "Who takes the memory, who waits?", answer)
        .with(Figure::new("Groups", meaning, DOC, Body::Table(table)))
        .with_all(by_owner::of_groups(run, n))
}

/// The name that charts of the time of a run share; of other runs it is another.
fn time(n: usize) -> &'static str {
    const NAMES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];
    NAMES[n % NAMES.len()]
}

/// Rate a second of a column that counts from the start. A last sample that came soon after the one
/// before it has none.
pub(super) fn rate(run: &Run, name: &str) -> Option<Vec<Option<f64>>> {
    let (all, seconds) = (run.series.get(name)?, run.series.get("seconds")?);
    let before = |column: &[f64], n: usize| if n == 0 { 0.0 } else { column.get(n - 1).copied().unwrap_or(0.0) };
    let passed = |n: usize| seconds.get(n).copied().unwrap_or(0.0) - before(seconds, n);
    let usual = passed(seconds.len() / 2);
    let step = |n: usize| (passed(n) > 0.5 * usual).then(|| (all[n] - before(all, n)).max(0.0) / passed(n));
    Some((0..all.len()).map(step).collect())
}

pub(super) fn timed(run: &Run, n: usize, shape: Shape, y: Axis, series: Vec<Series>) -> Option<Body> {
    if series.is_empty() {
        return None;
    }
    let xs = run.series.get("seconds")?.clone();
    let mut chart = Chart::new(shape, Axis::new("virtual time", Unit::Seconds), y, xs, series);
    chart.time = Some(time(n));
    Some(Body::Chart(chart))
}

pub(super) fn columns(
    run: &Run,
    names: &[(&str, &str, Colour)],
    of: impl Fn(&str) -> Option<Vec<Option<f64>>>,
) -> Vec<Series> {
    let one = |&(name, column, colour): &(&str, &str, Colour)| {
        let values = of(column)?;
        let shown = run.series.get(column)?.iter().any(|&n| n > 0.0);
        shown.then(|| Series { values, ..Series::new(name, colour, []) })
    };
    names.iter().filter_map(one).collect()
}

/// The same, of values that are percent of the accesses that miss.
pub(super) fn shared(body: Option<Body>) -> Option<Body> {
    match body? {
        Body::Chart(chart) => Some(Body::Chart(Chart { share: true, ..chart })),
        other => Some(other),
    }
}

/// When most gets done, if it is not the same all the time.
fn busiest(ops: &[Option<f64>], seconds: &[f64]) -> Option<String> {
    let known: Vec<(usize, f64)> = ops.iter().enumerate().filter_map(|(n, ops)| Some((n, (*ops)?))).collect();
    let mean = known.iter().map(|(_, ops)| ops).sum::<f64>() / known.len().max(1) as f64;
    let &(top, most) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if known.iter().all(|(_, ops)| (ops - mean).abs() <= 0.05 * mean) {
        return Some(format!(
            "As much gets done all the time: about {} operations a second.",
            Unit::Count.text(mean.round())
        ));
    }
    Some(format!(
        "Most gets done around {}: {} operations a second; over the whole run it is {}.",
        Unit::Seconds.text(seconds.get(top).copied().unwrap_or(0.0)),
        Unit::Count.text(most.round()),
        Unit::Count.text(mean.round())
    ))
}

const SERIES_DOC: &str = "reference/replay-scenario.md#columns";

/// CPU time that was reclaimed for.
fn reclaim_cpu(run: &Run, n: usize) -> Option<Body> {
    let busy = [("kswapd", "kswapd_us", Colour::Vermillion), ("direct reclaim", "direct_reclaim_us", Colour::Orange)];
    let percent = |name: &str| Some(rate(run, name)?.into_iter().map(|us| Some(us? / 1e4)).collect());
    timed(run, n, Shape::Lines, Axis::new("% of a CPU", Unit::Percent), columns(run, &busy, percent))
}

/// Percent of the accesses of all tasks that miss.
fn miss_rate(run: &Run, n: usize) -> Option<Body> {
    let (hits, all) = (rate(run, "hits")?, rate(run, "accesses")?);
    let values = hits.iter().zip(&all).map(|(hits, all)| {
        let (hits, all) = ((*hits)?, (*all)?);
        (all > 0.0).then(|| 100.0 - (100.0 * hits / all).min(100.0))
    });
    let series = Series { values: values.collect(), ..Series::new(words::misses(), Colour::Green, []) };
    let y = Axis::new(format!("{}, % of accesses", words::misses()), Unit::Percent);
    shared(timed(run, n, Shape::Lines, y, vec![series]))
}

fn when(run: &Run, n: usize) -> Option<Page> {
    let Some(seconds) = run.series.get("seconds") else {
        let answer = "This JSON has no time series: refault wrote none at that time. Give the scenario itself, or run it \
                      again with --json.";
        return Some(Page::new("when", "When?", answer));
    };
    let answer = busiest(&rate(run, "ops")?, seconds)?;
    let rate_of = |name: &str| rate(run, name);
    let work = columns(run, &[("operations", "ops", Colour::Blue)], rate_of);
    let memory = [
        ("anonymous", "anon_pages", Colour::Vermillion),
        ("files", "file_pages", Colour::Blue),
        ("free", "free_pages", Colour::Grey),
    ];
    let pages = |name: &str| Some(run.series.get(name)?.iter().map(|n| Some(n * PAGE)).collect());
    let moves = [("refaults", "refaults", Colour::Vermillion), ("swapped out", "pswpout", Colour::Orange)];
    let pressure = [("some", "some_avg10", Colour::Orange), ("full", "full_avg10", Colour::Vermillion)];
    let raw = |name: &str| Some(run.series.get(name)?.iter().copied().map(Some).collect());
    let swap = [("in swap", "swap_pages", Colour::Purple), ("dirty", "dirty_pages", Colour::Green)];
    let figures = [
        (
            "Work",
            "Operations a second of all tasks.",
            timed(run, n, Shape::Lines, Axis::new("ops/s", Unit::Count), work),
        ),
        (&words::either("Miss rate", "Hit rate"), "The share of the accesses of all tasks.", miss_rate(run, n)),
        (
            "Memory",
            "What memory is used for.",
            timed(run, n, Shape::Stacked, Axis::new("memory", Unit::Bytes), columns(run, &memory, pages)),
        ),
        (
            "Refaults and swap",
            "Pages a second that came back after they had been evicted, and that went to swap.",
            timed(run, n, Shape::Lines, Axis::new("pages a second", Unit::Count), columns(run, &moves, rate_of)),
        ),
        (
            "Swap and dirty pages",
            "What is in swap, and what has to be written.",
            timed(run, n, Shape::Lines, Axis::new("size", Unit::Bytes), columns(run, &swap, pages)),
        ),
        (
            "Pressure",
            "avg10 of memory.pressure: the share of the last ten seconds in which some task, or every task, waited.",
            timed(run, n, Shape::Lines, Axis::new("%", Unit::Percent), columns(run, &pressure, raw)),
        ),
        (
            "CPU time of reclaim",
            "Percent of one CPU, as top has it: kswapd of all nodes, and reclaim that tasks do themselves.",
            reclaim_cpu(run, n),
        ),
    ];
    let figures =
        figures.into_iter().filter_map(|(title, meaning, body)| Some(Figure::new(title, meaning, SERIES_DOC, body?)));
    Some(Page::new("when", "When?", answer).with_all(figures))
}

fn inside(run: &Run, n: usize) -> Option<Page> {
    let mut figures = Vec::new();
    let tiers = [
        ("promoted", "pgpromote_success", Colour::Green),
        ("candidates", "pgpromote_candidate", Colour::Sky),
        ("demoted", "pgdemote", Colour::Vermillion),
    ];
    let promoted = columns(run, &tiers, |name| rate(run, name));
    if let Some(body) = timed(run, n, Shape::Lines, Axis::new("pages a second", Unit::Count), promoted) {
        let meaning =
            "Pages that moved to faster memory, that were hot enough to be tried, and that moved to slower memory.";
        figures.push(Figure::new("Promotions", meaning, "how-to/memory-tiers.md", body));
    }
    let raw = |name: &str| Some(run.series.get(name)?.iter().copied().map(Some).collect());
    let generations = [("youngest", "max_seq", Colour::Vermillion), ("oldest of files", "min_seq_file", Colour::Blue)];
    let generations = columns(run, &generations, raw);
    if let Some(body) = timed(run, n, Shape::Lines, Axis::new("sequence number", Unit::Count), generations) {
        let meaning = "Generations of the root group: each step of the youngest is an aging, each of the oldest an eviction \
                       that took a whole generation.";
        figures.push(Figure::new("Generations", meaning, "mechanisms.md#generations", body));
    }
    figures.extend(run.swap.iter().filter_map(clusters));
    let answer = swap_answer(run);
    (!figures.is_empty()).then(|| Page::new("inside", "What goes on inside?", answer).with_all(figures))
}

fn swap_answer(run: &Run) -> String {
    let used = |swap: &Swap| swap.clusters_by_usage.iter().skip(1).sum::<u64>();
    match run.swap.iter().max_by_key(|s| (s.peak_pages, s.used_pages, used(s))) {
        None => "There is no swap.".into(),
        Some(swap) if swap.peak_pages > 0 => format!(
            "At most {} of {} were in use on {}.",
            bytes(swap.peak_pages as f64 * PAGE),
            bytes(swap.usable_pages as f64 * PAGE),
            swap.device
        ),
        Some(swap) if swap.used_pages > 0 => {
            format!("{} are in use on {} in the end.", bytes(swap.used_pages as f64 * PAGE), swap.device)
        }
        Some(swap) if used(swap) > 0 => {
            "Nothing went to swap: the one cluster in use holds the header of the device, its first page.".into()
        }
        Some(_) => "Nothing went to swap.".into(),
    }
}

fn clusters(swap: &Swap) -> Option<Figure> {
    let all = &swap.clusters_by_usage;
    if all.iter().sum::<u64>() == 0 {
        return None;
    }
    let label = |n: usize| if n == 0 { "none".into() } else { format!("≤ {n}/{}", all.len() - 1) };
    let mut chart = Chart::new(
        Shape::Bars,
        Axis::new("part of the cluster in use", Unit::Number),
        Axis::new("clusters", Unit::Count),
        (0..all.len()).map(|n| n as f64).collect(),
        vec![Series::new("clusters", Colour::Purple, all.iter().map(|&n| n as f64))],
    );
    chart.labels = (0..all.len()).map(label).collect();
    let meaning =
        "Clusters of the swap device by how full they are. Many that are half full leave no room for large folios.";
    Some(Figure::new(
        format!("Clusters of {}", swap.device),
        meaning,
        "how-to/read-the-swap-map.md",
        Body::Chart(chart),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::document::scenario::Group;

    fn series(all: &[(&str, &[f64])]) -> Run {
        let series = all.iter().map(|&(name, values)| (name.to_owned(), values.to_vec())).collect();
        Run { series, ending: "time".into(), virtual_seconds: 4.0, ..Run::default() }
    }

    #[test]
    fn the_end_of_the_last_sample_is_no_drop_to_nothing() {
        let run = series(&[("seconds", &[1.0, 2.0, 3.0, 3.01]), ("ops", &[100.0, 200.0, 302.0, 302.0])]);
        assert_eq!(rate(&run, "ops"), Some(vec![Some(100.0), Some(100.0), Some(102.0), None]));
    }

    #[test]
    fn where_as_much_gets_done_all_the_time_no_time_is_named() {
        let flat = busiest(&[Some(100.0), Some(102.0), None], &[1.0, 2.0, 2.0]).unwrap();
        assert_eq!(flat, "As much gets done all the time: about 101 operations a second.");
        let steep = busiest(&[Some(100.0), Some(200.0)], &[1.0, 2.0]).unwrap();
        assert!(steep.starts_with("Most gets done around 2 s: 200 operations a second"), "{steep}");
    }

    #[test]
    fn a_machine_without_groups_is_no_group_that_waits_most() {
        let mut run = series(&[]);
        run.groups = vec![Group { path: "/".into(), ..Group::default() }];
        let page = groups(&run, 0);
        assert_eq!(page.answer, "Some task waited for memory 0.0 % of the time. There is one group, the machine.");
        let Body::Table(table) = &page.figures[0].body else { panic!("a table") };
        assert!(!table.heads.contains(&"memory, peak".to_owned()), "{:?}", table.heads);
        assert!(tasks(&run, 0).answer.contains("and ended at the time that the scenario sets."));
    }

    #[test]
    fn the_header_of_a_swap_device_is_nothing_that_went_to_swap() {
        let mut run = series(&[]);
        assert_eq!(swap_answer(&run), "There is no swap.");
        run.swap = vec![Swap { clusters_by_usage: vec![7, 1], ..Swap::default() }];
        assert!(swap_answer(&run).starts_with("Nothing went to swap: the one cluster in use holds the header"));
        run.swap[0].peak_pages = 256;
        assert!(swap_answer(&run).starts_with("At most 1 MiB of"));
    }
}
