//! Tasks and groups of a scenario over time, each a line; and whom the out-of-memory killer took.

use super::scenario::{PAGE, rate, shared, timed};
use crate::model::{Axis, Body, Cell, Colour, Figure, Series, Shape, Table};
use crate::words;
use refault::document::scenario::Run;
use refault::scenario::{group_column, task_column};
use refault::units::Unit;

const DOC: &str = "reference/replay-scenario.md#columns";
/// Lines of a chart at most: the largest.
const LINES: usize = 7;

/// Values over time; none where there is nothing.
type Values = Vec<Option<f64>>;

/// Names of tasks, or paths of groups, that have such a column.
fn owners<'a>(run: &'a Run, name: &str, of: fn(&str) -> Option<(&str, &str)>) -> Vec<&'a str> {
    run.series.keys().filter_map(|column| of(column)).filter(|(_, own)| *own == name).map(|(owner, _)| owner).collect()
}

/// A chart of a line for each owner, the largest first; none: there are none, or all are 0.
fn chart(run: &Run, n: usize, y: Axis, owners: &[&str], of: impl Fn(&str) -> Option<Values>) -> Option<Body> {
    let sum = |values: &Values| values.iter().flatten().sum::<f64>();
    let mut all: Vec<(&str, Values)> = owners.iter().filter_map(|&owner| Some((owner, of(owner)?))).collect();
    all.retain(|(_, values)| sum(values) > 0.0);
    all.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
    let line =
        |(n, (owner, values)): (usize, (&str, Values))| Series { values, ..Series::new(owner, Colour::number(n), []) };
    timed(run, n, Shape::Lines, y, all.into_iter().take(LINES).enumerate().map(line).collect())
}

fn figure(title: impl Into<String>, meaning: &str, body: Option<Body>) -> Option<Figure> {
    Some(Figure::new(title, meaning, DOC, body?))
}

/// Work, misses and latencies of the tasks.
pub(super) fn of_tasks(run: &Run, n: usize) -> Vec<Figure> {
    let tasks = owners(run, "ops", task_column);
    let column = |task: &str, name: &str| format!("task.{task}.{name}");
    let ops = chart(run, n, Axis::new("ops/s", Unit::Count), &tasks, |task| rate(run, &column(task, "ops")));
    let misses =
        chart(run, n, Axis::new(format!("{}, % of accesses", words::misses()), Unit::Percent), &tasks, |task| {
            let (hits, all) = (rate(run, &column(task, "hits"))?, rate(run, &column(task, "accesses"))?);
            let share = |(hits, all): (&Option<f64>, &Option<f64>)| {
                let (hits, all) = ((*hits)?, (*all)?);
                (all > 0.0).then(|| (100.0 - 100.0 * hits / all).clamp(0.0, 100.0))
            };
            Some(hits.iter().zip(&all).map(share).collect())
        });
    let latency = |name: &'static str| {
        let of = |task: &str| {
            let values = run.series.get(&column(task, name))?;
            Some(values.iter().map(|&ns| (ns > 0.0).then_some(ns)).collect())
        };
        chart(run, n, Axis::new("latency", Unit::Nanoseconds), &tasks, of)
    };
    let since = "Of the operations that ended since the sample before, to an eighth. A gap: none ended.";
    let title = words::either("Miss rate by task", "Hit rate by task");
    [
        figure("Work by task", "Operations a second of each task, all copies together.", ops),
        figure(title, "The share of the accesses of each task.", shared(misses)),
        figure("Latency by task: p99", &format!("99 of 100 operations took no longer. {since}"), latency("p99_ns")),
        figure("Latency by task: p50", &format!("Half of the operations took no longer. {since}"), latency("p50_ns")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Memory, pressure and refaults of the groups.
pub(super) fn of_groups(run: &Run, n: usize) -> Vec<Figure> {
    let column = |path: &str, name: &str| format!("memcg.{path}.{name}");
    let values = |name: &'static str, factor: f64| {
        move |path: &str| Some(run.series.get(&column(path, name))?.iter().map(|n| Some(n * factor)).collect())
    };
    let paths = |name: &str| owners(run, name, group_column);
    let memory = paths("memory.current");
    let memory = chart(run, n, Axis::new("memory", Unit::Bytes), &memory, values("memory.current", PAGE));
    let pressure = paths("some_avg10");
    let pressure = chart(run, n, Axis::new("%", Unit::Percent), &pressure, values("some_avg10", 1.0));
    let refaults = paths("workingset_refault_file");
    let refaults = chart(run, n, Axis::new("pages a second", Unit::Count), &refaults, |path| {
        let file = rate(run, &column(path, "workingset_refault_file"))?;
        let anon = rate(run, &column(path, "workingset_refault_anon"));
        let both = |(at, file): (usize, &Option<f64>)| {
            Some((*file)? + anon.as_ref().and_then(|all| *all.get(at)?).unwrap_or(0.0))
        };
        Some(file.iter().enumerate().map(both).collect())
    });
    let stalled = "avg10 of memory.pressure: the share of the last ten seconds in which some task of the group waited.";
    [
        figure("Memory by group", "What is charged to each group and those below it.", memory),
        figure("Pressure by group", stalled, pressure),
        figure("Refaults by group", "Pages of each group that came back after they had been evicted.", refaults),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Table of the victims of the out-of-memory killer; none: it took nobody.
pub(super) fn victims(run: &Run) -> Option<Figure> {
    let row = |victim: &refault::document::scenario::VictimFacts| {
        vec![
            Cell::Text(victim.task.clone()),
            Cell::Number(victim.at_seconds, Unit::Seconds),
            Cell::Text(victim.group.clone()),
            Cell::Text(victim.within.clone()),
        ]
    };
    let rows: Vec<_> = run.oom_victims.iter().map(row).collect();
    let heads = ["task", "when", "its group", "out of memory"].map(str::to_owned).to_vec();
    let meaning =
        "Copies of tasks in the order in which they were killed, and the group (/ is the machine) that had no memory.";
    let is_any = !rows.is_empty();
    is_any.then(|| {
        let table = Table { heads, rows, searchable: true };
        Figure::new("Whom the OOM killer took", meaning, DOC, Body::Table(table))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_and_groups_have_lines_and_times_without_operations_are_gaps() {
        let mut run = Run::default();
        let columns: [(&str, &[f64]); 6] = [
            ("seconds", &[1.0, 2.0, 3.0]),
            ("task.web.ops", &[10.0, 10.0, 30.0]),
            ("task.web.accesses", &[10.0, 10.0, 30.0]),
            ("task.web.hits", &[5.0, 5.0, 20.0]),
            ("task.web.p99_ns", &[90.0, 0.0, 80.0]),
            ("memcg./a.memory.current", &[1.0, 2.0, 3.0]),
        ];
        run.series = columns.iter().map(|&(name, values)| (name.to_owned(), values.to_vec())).collect();
        let charts = |figures: Vec<Figure>| {
            let one = |figure: Figure| match figure.body {
                Body::Chart(chart) => (chart.series[0].name.clone(), chart.series[0].values.clone()),
                other => panic!("{other:?}"),
            };
            figures.into_iter().map(one).collect::<Vec<_>>()
        };
        let tasks = charts(of_tasks(&run, 0));
        assert_eq!(tasks[1].1, [Some(50.0), None, Some(25.0)]);
        assert_eq!(tasks[2], ("web".into(), vec![Some(90.0), None, Some(80.0)]));
        assert_eq!(charts(of_groups(&run, 0)), [("/a".to_owned(), [1.0, 2.0, 3.0].map(|n| Some(n * PAGE)).to_vec())]);
    }
}
