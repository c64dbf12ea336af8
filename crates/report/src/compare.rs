//! The page that shows the differences between results.
//!
//! The library compares; the crate's root calls this.

use crate::model::{Axis, Body, Cell, Chart, Dash, Figure, Page, Shape, Table, Verdict};
use crate::pages::memory::{series, title};
use crate::words;
use refault::compare::{ComparedNumber, Difference, OtherResult, compare};
use refault::curve::{CurveLine, Curves};
use refault::document::{Document, Source};
use refault::units::{Unit, counted};

/// The page that compares; none of one result alone.
pub(crate) fn pages(sources: &[Source]) -> Vec<Page> {
    let [first, others @ ..] = sources else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let comparison = compare(first, others);
    let mut answer: Vec<_> = comparison.others.iter().map(|other| in_words(&first.name, other)).collect();
    // A column without a number would only take room.
    let shown: Vec<usize> = (0..others.len()).filter(|&n| comparison.others[n].common() > 0).collect();
    if shown.is_empty() {
        answer = vec!["The inputs have no number in common: each has its own pages below.".to_owned()];
    }
    let mut heads = vec!["what".to_owned(), first.name.clone()];
    for &n in &shown {
        heads.extend([others[n].name.clone(), "difference".into()]);
    }
    let rows: Vec<_> = comparison.rows.iter().map(|of| row(of, &shown)).collect();
    let mut page = Page::new("compare", "What is different?", answer.join(" "));
    if let Some(chart) = curves(sources) {
        let meaning = "The curves of all inputs on the same axes.";
        page = page.with(Figure::new(title(), meaning, "reference/report.md#comparison", Body::Chart(chart)));
    }
    if !rows.is_empty() {
        let meaning = "Blue is better, orange is worse, and the word says it, too. Of counters neither is: they say how \
                       something came about. Nor is a difference within the spread, which is how far 2 % less or more memory, \
                       or another seed, is from the number. Differences of percents are points.";
        let table = Table { heads, rows, searchable: true };
        page = page.with(Figure::new("Differences", meaning, "reference/report.md#comparison", Body::Table(table)));
    }
    vec![page]
}

fn in_words(first: &str, other: &OtherResult) -> String {
    let OtherResult { name, apart, differs, better, worse, neither, within, .. } = other;
    let all = counted(other.common() as u64, "number");
    match apart {
        _ if other.common() == 0 => nothing_in_common(first, other),
        Some(why) => format!(
            "{name} has {all} in common with {first}, but is of other work ({why}): no difference is called better or worse."
        ),
        None => {
            format!(
                "{name} has {all} in common with {first}: {better} better, {worse} worse, {neither} the same or neither{}.{}{}",
                if *within > 0 { format!(" ({within} within their spread)") } else { String::new() },
                match differs.as_slice() {
                    [] => String::new(),
                    all => format!(" It differs in {}.", all.join("; ")),
                },
                of_policies(other)
            )
        }
    }
}

/// Why nothing of both stands beside each other.
fn nothing_in_common(first: &str, other: &OtherResult) -> String {
    let OtherResult { name, apart, commands, .. } = other;
    match (commands, apart) {
        (Some((of_first, of_other)), _) => format!(
            "{name} cannot be compared with {first}: it is a result of {of_other}, and {first} of {of_first}; their figures \
             have no rows in common."
        ),
        (None, Some(why)) => format!("{name} cannot be compared with {first}: it is of other work ({why})."),
        (None, None) => format!("{name} has no number in common with {first}."),
    }
}

/// The rows that stand beside each other of results with one policy each.
fn of_policies(other: &OtherResult) -> String {
    other.own_policies.as_ref().map_or(String::new(), |(of_first, own)| {
        format!(" Rows of {own} stand beside those of {of_first} with the same memory.")
    })
}

/// Row of the table: a number of the first input, and of each other input that is shown.
fn row(row: &ComparedNumber, shown: &[usize]) -> Vec<Cell> {
    // Misses in percent can be read as hits.
    let share = row.name.strip_suffix("misses").filter(|_| row.unit == Unit::Percent);
    let number = |value: f64| if share.is_some() { Cell::share(value) } else { Cell::Number(value, row.unit) };
    let name = share.map_or(row.name.clone(), |head| format!("{head}{}", words::misses()));
    let mut cells = vec![Cell::Text(name), number(row.value)];
    for &n in shown {
        cells.extend(match row.others[n] {
            Some(Difference { value, unit, verdict, .. }) => match share {
                Some(_) => [number(value), Cell::EitherDifference(value - row.value, unit, verdict)],
                None => [Cell::Number(value, unit), Cell::Difference(value - row.value, row.unit, verdict)],
            },
            None => [Cell::None, Cell::None],
        });
    }
    cells
}

/// The curves of all inputs, if all have some.
fn curves(sources: &[Source]) -> Option<Chart> {
    let of = |source: &Source| match &source.document {
        Document::Trace(d) => Some(Curves::of_trace(d)),
        Document::Replay(d) => Some(d.traces().first().map_or(Curves::default(), |trace| Curves::of_replay(d, trace))),
        _ => None,
    };
    let all: Vec<Curves> = sources.iter().map(of).collect::<Option<_>>()?;
    if all.iter().any(|c| c.sizes().len() < 2) {
        return None;
    }
    let mut xs: Vec<f64> = all.iter().flat_map(Curves::sizes).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut all_series = Vec::new();
    let common = common_policy(&all);
    for (n, (curves, source)) in all.iter().zip(sources).enumerate() {
        let of_common = || curves.all.iter().find(|line| Some(line.policy.as_str()) == common);
        let main: Vec<CurveLine> = of_common().or(curves.main()).cloned().into_iter().collect();
        let one = Curves { all: main, ..curves.clone() };
        for mut s in series(&one, &xs, &format!(", {}", source.name)) {
            s.dash = Some(Dash::number(n));
            s.colour = crate::model::Colour::number(n);
            all_series.push(s);
        }
    }
    Some(Chart::of_misses(Shape::Lines, Axis::new("memory", Unit::Bytes), xs, all_series))
}

/// Settings in which the results differ, for the head of the page; none: nothing of them can be
/// compared, and what they say of settings is not the same.
pub(crate) fn difference(sources: &[Source]) -> Option<String> {
    let [first, others @ ..] = sources else { return None };
    let others_beside = compare(first, others).others;
    if others_beside.iter().all(|other| other.common() == 0 && other.commands.is_some()) {
        return None;
    }
    let one = |other: OtherResult| {
        let head = if others.len() > 1 { format!("{}: ", other.name) } else { String::new() };
        (!other.differs.is_empty()).then(|| format!("{head}{}", other.differs.join("; ")))
    };
    let all: Vec<_> = others_beside.into_iter().filter_map(one).collect();
    Some(match all.is_empty() {
        true => "No setting that is known differs.".to_owned(),
        false => format!("Differs in {}.", all.join(". ")),
    })
}

/// Comparison in a line: how many outcomes are better and worse, and the largest of each kind.
pub(crate) fn in_a_line(sources: &[Source]) -> Option<String> {
    let [first, others @ ..] = sources else { return None };
    let comparison = compare(first, others);
    let of = |(n, other): (usize, &OtherResult)| {
        let OtherResult { name, apart, own_policies, better, worse, within, .. } = other;
        if other.common() == 0 {
            return nothing_in_common(&first.name, other);
        }
        if apart.is_some() {
            return format!("{name} cannot be compared with {}: it is of other work.", first.name);
        }
        let (name, beside) = match own_policies {
            Some((of_first, own)) => (format!("{name} ({own})"), format!("{} ({of_first})", first.name)),
            None => (name.clone(), first.name.clone()),
        };
        let most = |verdict: Verdict| comparison.largest(n, verdict).map_or(String::new(), in_brackets);
        let spread = if *within > 0 { format!("; {within} within their spread") } else { String::new() };
        match (better, worse) {
            (0, 0) => {
                format!("{name} is neither better nor worse than {beside} in anything{spread}.{}", of_policies(other))
            }
            _ => format!(
                "{name} is better than {beside} in {}{} and worse in {worse}{}{spread}.{}",
                counted(*better as u64, "number"),
                most(Verdict::Better),
                most(Verdict::Worse),
                of_policies(other)
            ),
        }
    };
    Some(comparison.others.iter().enumerate().map(of).collect::<Vec<_>>().join(" "))
}

/// A number and its difference, in brackets.
fn in_brackets((row, to): (&ComparedNumber, Difference)) -> String {
    let name = row.name.strip_suffix("misses").filter(|_| row.unit == Unit::Percent);
    let (name, change) = match name {
        Some(head) => (format!("{head}{}", words::misses()), words::change(to.value - row.value)),
        None => (row.name.clone(), row.unit.difference(to.value - row.value)),
    };
    format!(" (most: {name} {change})")
}

/// A policy of Linux that all have: the one that pages tell most of, if it is.
fn common_policy(all: &[Curves]) -> Option<&str> {
    let first = all.first()?;
    let has = |policy: &str| all.iter().all(|curves| curves.all.iter().any(|line| line.policy == policy));
    let mut policies = first.main().into_iter().chain(&first.all).map(|line| line.policy.as_str());
    policies.find(|policy| *policy != "opt" && has(policy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::compare::DifferenceVerdict as Verdict;
    use refault::document::trace::{CurveFacts, TraceDocument, TraceFacts};

    fn trace(name: &str, accesses: u64, misses: [f64; 3]) -> Source {
        let curve = |policy: &str, part: f64| CurveFacts {
            policy: policy.into(),
            pages: vec![100, 200, 300],
            miss_ratio: misses.map(|m| Some(m * part)).to_vec(),
            read_pages: Vec::new(),
        };
        let facts = TraceFacts { page_size: 4096, accesses, footprint_pages: 300, ..TraceFacts::default() };
        let curves = vec![curve("lru", 1.0), curve("opt", 0.5)];
        Source::new(name, Document::Trace(Box::new(TraceDocument { trace: facts, curves, ..TraceDocument::default() })))
    }

    fn differences(page: &Page) -> (Vec<String>, Vec<(String, Verdict)>) {
        let Body::Table(table) = &page.figures.last().expect("a figure").body else { panic!("a table") };
        let of = |row: &Vec<Cell>| match (&row[0], row.last()) {
            (Cell::Text(name), Some(Cell::Difference(_, _, verdict) | Cell::EitherDifference(_, _, verdict))) => {
                (words::plain(name), *verdict)
            }
            other => panic!("{other:?}"),
        };
        (table.heads.clone(), table.rows.iter().map(of).collect())
    }

    #[test]
    fn only_outcomes_are_better_or_worse() {
        let pages = pages(&[trace("a", 9, [0.8, 0.3, 0.1]), trace("b", 9, [0.8, 0.7, 0.05])]);
        let (_, rows) = differences(&pages[0]);
        let of = |name: &str| rows.iter().find(|(known, _)| known == name).map(|(_, verdict)| *verdict);
        assert_eq!(of("lru, 800 KiB: misses"), Some(Verdict::Worse));
        assert_eq!(of("lru, 1.17 MiB: misses"), Some(Verdict::Better));
        assert_eq!((of("opt, 800 KiB: misses"), of("lru: knee")), (Some(Verdict::Neither), Some(Verdict::Neither)));
        assert!(of("opt: knee").is_none());
        assert!(
            pages[0].answer.contains("b has 9 numbers in common with a: 1 better, 1 worse, 7"),
            "{}",
            pages[0].answer
        );
    }

    #[test]
    fn other_work_is_neither_better_nor_worse_and_what_has_nothing_in_common_has_no_column() {
        let size = Document::Size(Box::default());
        let sources = [trace("a", 9, [0.8, 0.3, 0.1]), trace("b", 1, [0.8, 0.7, 0.05]), Source::new("c", size)];
        let pages = pages(&sources);
        let (heads, rows) = differences(&pages[0]);
        assert_eq!(heads, ["what", "a", "b", "difference"]);
        assert!(rows.len() > 6 && rows.iter().all(|(_, verdict)| *verdict == Verdict::Neither));
        let answer = &pages[0].answer;
        assert!(
            answer.contains(
                "b has 9 numbers in common with a, but is of other work (9 accesses to 300 pages in a, \
                                 1 access to 300 pages in b)"
            ),
            "{answer}"
        );
        assert!(answer.contains("c cannot be compared with a: it is a result of refault size,"), "{answer}");
    }

    #[test]
    fn regression_pages_of_one_policy_each_name_the_policies_and_compare_their_rows() {
        let only = |name: &str, policy: &str, misses| {
            let mut source = trace(name, 9, misses);
            if let Document::Trace(d) = &mut source.document {
                d.curves.truncate(1);
                d.curves[0].policy = policy.into();
            }
            source
        };
        let both = [only("a", "lru", [0.8, 0.3, 0.1]), only("b", "mglru", [0.7, 0.3, 0.1])];
        assert_eq!(difference(&both).as_deref(), Some("Differs in policy lru in a, mglru in b."));
        let line = words::plain(&in_a_line(&both).expect("a line"));
        assert_eq!(
            line,
            "b (mglru) is better than a (lru) in 1 number (most: own policy, 400 KiB: misses −10.0 points) and worse in 0. \
             Rows of mglru stand beside those of lru with the same memory."
        );
        assert!(pages(&both)[0].answer.ends_with(&of_policies(&compare(&both[0], &both[1..]).others[0])));
    }

    #[test]
    fn regression_results_of_other_commands_are_not_said_to_be_of_other_work() {
        let both = [trace("a", 9, [0.8, 0.3, 0.1]), Source::new("w", Document::WhatIf(Box::default()))];
        assert_eq!(difference(&both), None);
        assert_eq!(
            in_a_line(&both).as_deref(),
            Some(
                "w cannot be compared with a: it is a result of refault whatif, and a of refault report of a trace; their \
                 figures have no rows in common."
            )
        );
    }
}
