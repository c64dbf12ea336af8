//! The page of `refault watch`: what each group needs, its curve, and what it was like before.
//!
//! It makes `model`, and calls `render`; the command calls it with what the watcher reports.

use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Mark, Page, Series, Shape, Table};
use crate::render::{self, Made};
use refault::units::{Unit, bytes};

/// Groups with charts of their own at most: the largest.
const MOST_GROUPS: usize = 50;

/// A group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchedGroup {
    /// Its name.
    pub name: String,
    /// Memory now, in bytes.
    pub usage_bytes: f64,
    /// Its limit, if it has one.
    pub limit_bytes: Option<f64>,
    /// The smallest size that is enough: most likely, with both bounds.
    pub smallest_bytes: Option<[f64; 3]>,
    /// Smaller sizes were not tried.
    pub is_at_most: bool,
    /// Trust in a word.
    pub trust: String,
    /// Reasons against it, in words.
    pub why: Vec<String>,
    /// Pages that a page of the sample stands for.
    pub one_in: u64,
    /// Sizes in bytes, hit rates there, and two standard errors of these, of 1.
    pub sizes: Vec<[f64; 3]>,
    /// Moments since the watcher began, the first one first.
    pub moments: Vec<WatchedMoment>,
}

/// A group at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WatchedMoment {
    /// Seconds since the watcher began.
    pub at_s: f64,
    /// Memory in bytes.
    pub usage_bytes: f64,
    /// The smallest size that is enough, in bytes.
    pub smallest_bytes: Option<f64>,
    /// Hit rate of the kernel, of 1.
    pub hit_rate: Option<f64>,
}

/// The page of some groups.
pub fn watch_html(groups: &[WatchedGroup], made: &Made) -> String {
    let mut pages = vec![summary(groups)];
    pages.extend(groups.iter().enumerate().take(MOST_GROUPS).map(|(n, group)| page(n, group)));
    render::html("watch", &pages, &[], made)
}

fn summary(groups: &[WatchedGroup]) -> Page {
    let trusted = groups.iter().filter(|group| group.trust == "good").count();
    let answer = match groups.len() {
        0 => "No group has used files yet.".to_owned(),
        all => format!("{all} groups are watched; the answers for {trusted} of them can be trusted as they are."),
    };
    let heads = ["group", "memory", "limit", "smallest", "at least", "at most", "rate", "trust", "why"];
    let size = |n: Option<f64>| n.map_or(Cell::None, |n| Cell::Number(n, Unit::Bytes));
    let row = |group: &WatchedGroup| {
        let smallest = |at: usize| size(group.smallest_bytes.map(|all| all[at]));
        vec![
            Cell::Text(group.name.clone()),
            size(Some(group.usage_bytes)),
            size(group.limit_bytes),
            smallest(0),
            if group.is_at_most { Cell::None } else { smallest(1) },
            smallest(2),
            Cell::Text(format!("1/{}", group.one_in)),
            Cell::Text(group.trust.clone()),
            Cell::Text(group.why.join("; ")),
        ]
    };
    let heads = heads.map(str::to_owned).into();
    let table = Table { heads, rows: groups.iter().map(row).collect(), searchable: true };
    let meaning = "The smallest limit at which misses grow by no more than was asked for, with the bounds that the choice \
                   of pages leaves.";
    Page::new("groups", "What does each group need?", answer).with(figure("Groups", meaning, Body::Table(table)))
}

fn figure(title: &str, meaning: &str, body: Body) -> Figure {
    Figure { title: title.into(), meaning: meaning.into(), doc: None, body }
}

fn page(number: usize, group: &WatchedGroup) -> Page {
    let question = format!("How much memory does {} need?", group.name);
    let page = Page::new(&format!("group-{}", number + 1), &question, answer(group));
    let figures = [(!group.sizes.is_empty()).then(|| curve(group)), (group.moments.len() > 1).then(|| sizes(group))];
    page.with_all(figures.into_iter().flatten()).with_all((group.moments.len() > 1).then(|| rates(group)))
}

fn answer(group: &WatchedGroup) -> String {
    let size = match group.smallest_bytes {
        Some([best, ..]) if group.is_at_most => format!("At most {}", bytes(best)),
        Some([best, low, high]) => format!("About {} ({} to {})", bytes(best), bytes(low), bytes(high)),
        None => "It is not known yet".to_owned(),
    };
    let why = if group.why.is_empty() { String::new() } else { format!(": {}", group.why.join("; ")) };
    format!("{size}. Trust: {}{why}.", group.trust)
}

fn curve(group: &WatchedGroup) -> Figure {
    let xs = group.sizes.iter().map(|of| of[0]).collect();
    let line = |name: &str, colour, by: f64| {
        let at = |of: &[f64; 3]| 100.0 * (of[1] + by * of[2]).clamp(0.0, 1.0);
        Series::new(name, colour, group.sizes.iter().map(at))
    };
    let series = vec![
        line("hit rate", Colour::Blue, 0.0),
        line("upper bound", Colour::Grey, 1.0),
        line("lower bound", Colour::Grey, -1.0),
    ];
    let axes = (Axis::new("memory", Unit::Bytes), Axis::new("hit rate", Unit::Percent));
    let mut chart = Chart::new(Shape::Lines, axes.0, axes.1, xs, series);
    let marks = [(group.limit_bytes, "limit"), (group.smallest_bytes.map(|all| all[0]), "smallest")];
    let marks = marks.into_iter().filter_map(|(at, label)| Some(Mark { at: at?, label: label.into() }));
    chart.marks.extend(marks);
    let meaning =
        format!("An engine for each size, fed with 1 in {} units of pages. Bounds: two standard errors.", group.one_in);
    figure("Hit rate against memory", &meaning, Body::Chart(chart))
}

fn over_time(group: &WatchedGroup, label: &str, unit: Unit, series: Vec<Series>) -> Body {
    let times = group.moments.iter().map(|of| of.at_s).collect();
    let mut chart = Chart::new(Shape::Lines, Axis::new("time", Unit::Seconds), Axis::new(label, unit), times, series);
    chart.time = Some("time");
    Body::Chart(chart)
}

fn sizes(group: &WatchedGroup) -> Figure {
    let smallest = group.moments.iter().map(|of| of.smallest_bytes).collect();
    let series = vec![
        Series::new("memory", Colour::Blue, group.moments.iter().map(|of| of.usage_bytes)),
        Series { values: smallest, ..Series::new("smallest", Colour::Vermillion, []) },
    ];
    let body = over_time(group, "memory", Unit::Bytes, series);
    figure("Memory over time", "Memory that the group has, and the smallest that is enough.", body)
}

fn rates(group: &WatchedGroup) -> Figure {
    let rates = group.moments.iter().map(|of| of.hit_rate.map(|rate| 100.0 * rate)).collect();
    let series = vec![Series { values: rates, ..Series::new("hit rate", Colour::Blue, []) }];
    figure("Hit rate over time", "Hit rate of this kernel.", over_time(group, "hit rate", Unit::Percent, series))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> WatchedGroup {
        WatchedGroup {
            name: "/<web>".into(),
            usage_bytes: 2e8,
            limit_bytes: Some(256e6),
            smallest_bytes: Some([1e8, 9e7, 1.2e8]),
            trust: "good".into(),
            one_in: 64,
            sizes: vec![[1e8, 0.5, 0.1], [2e8, 0.95, 0.1]],
            moments: vec![WatchedMoment::default(), WatchedMoment { at_s: 10.0, ..WatchedMoment::default() }],
            ..WatchedGroup::default()
        }
    }

    #[test]
    fn bounds_stay_shares_and_marks_are_named() {
        let Body::Chart(chart) = &curve(&group()).body else { panic!("a chart") };
        let values: Vec<_> = chart.series.iter().map(|series| series.values[1]).collect();
        assert!(
            values.contains(&Some(100.0)) && values.contains(&Some(95.0)) && values.contains(&Some(85.0)),
            "{values:?}"
        );
        assert_eq!(chart.marks.iter().map(|mark| mark.label.as_str()).collect::<Vec<_>>(), ["limit", "smallest"]);
    }

    #[test]
    fn a_page_says_the_answer_and_carries_no_results() {
        let html = watch_html(&[group(), WatchedGroup { is_at_most: true, ..group() }], &Made::default());
        assert!(html.contains("About 95.4M (85.8M to 114M)") || html.contains("Trust: good"), "an answer");
        assert!(html.contains("At most ") && html.contains("/&lt;web&gt;") && !html.contains("/<web>"));
        assert!(crate::read_back(&html).is_some_and(|read| read.is_err_and(|e| e.contains("refault watch"))));
        assert!(watch_html(&[], &Made::default()).contains("No group has used files yet."));
    }
}
