//! Contents of a page, as plain data.

use crate::rounded::Rounded;
use crate::words;
pub(crate) use refault::compare::DifferenceVerdict as Verdict;
use refault::units::Unit;
use serde::Serialize;

/// A question, the sentence that answers it, and what shows it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// For links; no other page of the same input has it.
    pub(crate) id: String,
    /// With several inputs, the one that it is of.
    pub(crate) input: Option<String>,
    pub(crate) question: String,
    pub(crate) answer: String,
    pub(crate) figures: Vec<Figure>,
}

impl Page {
    pub(crate) fn new(id: &str, question: &str, answer: impl Into<String>) -> Page {
        let (question, answer) = (question.into(), answer.into());
        Page { id: id.into(), input: None, question, answer, figures: Vec::new() }
    }

    pub(crate) fn with(mut self, figure: Figure) -> Page {
        self.figures.push(figure);
        self
    }

    pub(crate) fn with_all(mut self, figures: impl IntoIterator<Item = Figure>) -> Page {
        self.figures.extend(figures);
        self
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Meaning, in a sentence or two.
    pub(crate) meaning: String,
    /// The page of the documentation that says more.
    pub(crate) doc: Option<&'static str>,
    pub(crate) body: Body,
}

impl Figure {
    pub(crate) fn new(title: impl Into<String>, meaning: impl Into<String>, doc: &'static str, body: Body) -> Figure {
        Figure { title: title.into(), meaning: meaning.into(), doc: Some(doc), body }
    }
}

/// Contents of a figure.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Chart(Chart),
    Heat(Heat),
    Ranges(Ranges),
    Table(Table),
}

/// A colour of the palette of Okabe and Ito, which people with any colour vision tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Colour {
    /// Black, or white on dark ground.
    Ink,
    Orange,
    Sky,
    Green,
    Yellow,
    Blue,
    Vermillion,
    Purple,
    Grey,
}

impl Colour {
    /// For things without a colour of their own, in this order.
    const MANY: [Colour; 7] =
        [Colour::Blue, Colour::Orange, Colour::Green, Colour::Purple, Colour::Sky, Colour::Vermillion, Colour::Yellow];

    pub(crate) fn number(n: usize) -> Colour {
        Self::MANY[n % Self::MANY.len()]
    }

    /// Colour of a policy, the same on every page.
    pub(crate) fn of_policy(name: &str) -> Colour {
        match name {
            "lru" => Colour::Blue,
            "mglru" => Colour::Vermillion,
            "opt" => Colour::Ink,
            "lru-2013" => Colour::Sky,
            "lru-none" => Colour::Grey,
            "lru-shadow" => Colour::Purple,
            "mglru-shadow" => Colour::Orange,
            _ => Colour::Green,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Colour::Ink => "ink",
            Colour::Orange => "orange",
            Colour::Sky => "sky",
            Colour::Green => "green",
            Colour::Yellow => "yellow",
            Colour::Blue => "blue",
            Colour::Vermillion => "vermillion",
            Colour::Purple => "purple",
            Colour::Grey => "grey",
        }
    }
}

/// How a line is broken: with it lines are told apart without colours, and seen below each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dash {
    Solid,
    Long,
    Dashes,
    Mixed,
    Triple,
    Dots,
}

impl Dash {
    const ALL: [Dash; 6] = [Dash::Solid, Dash::Dashes, Dash::Dots, Dash::Mixed, Dash::Long, Dash::Triple];

    pub(crate) fn number(n: usize) -> Dash {
        Self::ALL[n % Self::ALL.len()]
    }

    fn of_policy(name: &str) -> Option<Dash> {
        Some(match name {
            "lru" => Dash::Solid,
            "mglru" => Dash::Dashes,
            "opt" => Dash::Dots,
            "lru-2013" | "mglru-shadow" => Dash::Mixed,
            "lru-none" => Dash::Long,
            "lru-shadow" => Dash::Triple,
            _ => return None,
        })
    }
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    Lines,
    /// Areas on top of each other.
    Stacked,
    Bars,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit }
    }
}

/// Numbers over one axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) shape: Shape,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    #[serde(serialize_with = "rounded")]
    pub(crate) xs: Vec<f64>,
    pub(crate) series: Vec<Series>,
    /// Lines at places of the x axis, with names.
    pub(crate) marks: Vec<Mark>,
    /// Names of bars; `xs` are then their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    /// Values are percent of the accesses that miss: the page can show those that hit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) share: bool,
    /// Charts of the same time zoom together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<&'static str>,
}

impl Chart {
    pub(crate) fn new(shape: Shape, x: Axis, y: Axis, xs: Vec<f64>, mut series: Vec<Series>) -> Chart {
        if shape == Shape::Lines {
            (0..).zip(&mut series).for_each(|(n, s)| s.dash = s.dash.or(Some(Dash::number(n))));
            // Series with gaps are drawn above those without: of two lines in one place both are
            // seen.
            series.sort_by_key(|s| s.dash);
        }
        Chart { shape, x, y, xs, series, marks: Vec::new(), labels: Vec::new(), share: false, time: None }
    }

    /// The same of values that are percent of the accesses that miss.
    pub(crate) fn of_misses(shape: Shape, x: Axis, xs: Vec<f64>, series: Vec<Series>) -> Chart {
        let y = Axis::new(format!("{}, % of accesses", words::misses()), Unit::Percent);
        Chart { share: true, ..Chart::new(shape, x, y, xs, series) }
    }
}

fn rounded<S: serde::Serializer>(all: &[f64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(|&n| Rounded(n)))
}

/// A line, an area, or the bars of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// A second sign beside the colour; none: its chart gives it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dash: Option<Dash>,
    #[serde(serialize_with = "rounded_or_null")]
    pub(crate) values: Vec<Option<f64>>,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, colour: Colour, values: impl IntoIterator<Item = f64>) -> Series {
        Series { name: name.into(), colour, dash: None, values: values.into_iter().map(Some).collect() }
    }

    /// With the colour and the dash of a policy, the same on every page.
    pub(crate) fn of_policy(policy: &str, values: impl IntoIterator<Item = f64>) -> Series {
        Series { dash: Dash::of_policy(policy), ..Series::new(policy, Colour::of_policy(policy), values) }
    }
}

fn rounded_or_null<S: serde::Serializer>(all: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(|n| n.filter(|n| n.is_finite()).map(Rounded)))
}

/// A line at a place of the x axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mark {
    #[serde(serialize_with = "one_rounded")]
    pub(crate) at: f64,
    pub(crate) label: String,
}

fn one_rounded<S: serde::Serializer>(n: &f64, to: S) -> Result<S::Ok, S::Error> {
    Rounded(*n).serialize(to)
}

/// Numbers by row and column, as colours.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Heat {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) x: Axis,
    /// The begin of each column, and the end of the last.
    #[serde(serialize_with = "rounded")]
    pub(crate) xs: Vec<f64>,
    /// Quantity that is counted.
    pub(crate) what: String,
    /// Row by row, the top one first.
    #[serde(serialize_with = "rounded")]
    pub(crate) cells: Vec<f64>,
    /// Names of the rows.
    pub(crate) labels: Vec<String>,
    /// Rows at which something begins, with its name and how large it is.
    pub(crate) borders: Vec<(usize, String, u64)>,
}

/// Rows of numbers on a scale: points, spans, bands.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    pub(crate) unit: Unit,
    /// Values are percent of the accesses that miss.
    pub(crate) share: bool,
    /// Whether distances on the scale are ratios.
    pub(crate) log: bool,
    pub(crate) rows: Vec<RangeRow>,
    /// The kinds of points that there are, with what they mean.
    pub(crate) legend: Vec<(Colour, &'static str, String)>,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct RangeRow {
    pub(crate) label: String,
    /// Band that it must be within; open at the top if there is no end.
    pub(crate) band: Option<(f64, Option<f64>)>,
    pub(crate) points: Vec<Point>,
    /// Conclusion, such as `ok`.
    pub(crate) verdict: Option<(bool, &'static str)>,
}

/// A number, with how far it spreads.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// `dot`, `ring` or `diamond`: a second sign beside the colour.
    pub(crate) shape: &'static str,
    pub(crate) value: f64,
    pub(crate) spread: Option<(f64, f64)>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Long: it has a field to search, and headings that sort.
    pub(crate) searchable: bool,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    Number(f64, Unit),
    /// A difference: which of both is better, if either is.
    Difference(f64, Unit, Verdict),
    /// Accesses that miss, and those that hit.
    Either(f64, f64, Unit),
    /// A difference of what misses; of what hits it has the other sign.
    EitherDifference(f64, Unit, Verdict),
    None,
}

impl Cell {
    /// Percent of the accesses that miss, or that hit.
    pub(crate) fn share(percent: f64) -> Cell {
        Cell::Either(percent, 100.0 - percent, Unit::Percent)
    }

    /// Accesses that miss, or that hit.
    pub(crate) fn misses(misses: u64, accesses: u64) -> Cell {
        Cell::Either(misses as f64, accesses.saturating_sub(misses) as f64, Unit::Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_without_colours_and_what_has_no_gaps_lies_below() {
        let lines = |series: Vec<Series>| {
            let axis = || Axis::new("", Unit::Count);
            let chart = Chart::new(Shape::Lines, axis(), axis(), vec![0.0], series);
            chart.series.into_iter().map(|s| (s.name, s.dash.expect("a dash"))).collect::<Vec<_>>()
        };
        let policies = lines(["opt", "mglru", "lru"].map(|name| Series::of_policy(name, [1.0])).into());
        assert_eq!(policies, [("lru".into(), Dash::Solid), ("mglru".into(), Dash::Dashes), ("opt".into(), Dash::Dots)]);
        let mut six: Vec<_> = lines((0..6).map(|n| Series::new("", Colour::number(n), [1.0])).collect());
        six.dedup();
        assert_eq!(six.len(), 6);
    }
}
