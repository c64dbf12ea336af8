//! The pages of `refault run --json`.

use crate::model::{Body, Cell, Colour, Figure, Page, Point, RangeRow, Ranges, Table};
use refault::document::run::RunDocument;
use refault::units::{Unit, bytes};

const DOC: &str = "crates/run/docs/run.md#json";

/// The pages.
pub(super) fn pages(d: &RunDocument) -> Vec<Page> {
    vec![memory(d), waits(d), figures(d)]
}

fn memory(d: &RunDocument) -> Page {
    let (max, taken, out) = (d.get("memory_max_bytes"), d.get("peak_bytes"), d.get("peak_swap_bytes"));
    let mut answer = format!("With {} it took at most {}", bytes(max), bytes(taken));
    answer += &match out {
        0.0 => ", and nothing had to leave memory: the limit was not met.".to_owned(),
        out => format!(
            ", and {} were out of memory at the worst, before compression: without the limit it would have wanted about {}.",
            bytes(out),
            bytes(taken + out)
        ),
    };
    let names = [
        ("memory_max_bytes", "the limit"),
        ("peak_bytes", "counted against it, peak"),
        ("peak_resident_bytes", "in place, peak"),
        ("peak_taken_bytes", "with what was on its way out, peak"),
        ("peak_swap_bytes", "out of memory, peak"),
        ("peak_pool_bytes", "the pool and the stores, peak"),
        ("peak_file_bytes", "in the swap file, peak"),
        ("manager_bytes", "the pager itself"),
    ];
    let row = |&(name, label): &(&str, &str)| RangeRow {
        label: label.into(),
        band: None,
        points: vec![Point {
            name: "bytes".into(),
            colour: if name == "memory_max_bytes" { Colour::Ink } else { Colour::Blue },
            shape: "dot",
            value: d.get(name),
            spread: None,
        }],
        verdict: None,
    };
    let rows = names.iter().filter(|(name, _)| d.figures.contains_key(*name)).map(row).collect();
    let legend = vec![(Colour::Ink, "dot", "the limit".into()), (Colour::Blue, "dot", "what was taken".into())];
    let meaning = "The most of each, which need not have been at the same time.";
    let ranges = Body::Ranges(Ranges { unit: Unit::Bytes, share: false, log: false, rows, legend });
    Page::new("memory", "How much memory did it take?", answer).with(Figure::new("Memory", meaning, DOC, ranges))
}

fn waits(d: &RunDocument) -> Page {
    let share = |name: &str| 100.0 * d.get(name);
    let answer = format!(
        "It ran for {}. Some thread waited for memory {} of that time, and nobody worked instead {}.",
        Unit::Seconds.text(d.get("wall_s")),
        Unit::Percent.text(share("stall_some_share")),
        Unit::Percent.text(share("stall_full_share"))
    );
    let names = [
        ("wall_s", "the whole run", Colour::Ink),
        ("stall_some_s", "some thread waited", Colour::Orange),
        ("stall_full_s", "nobody worked instead", Colour::Vermillion),
        ("throttled_s", "put to sleep by --memory-high", Colour::Purple),
    ];
    let row = |&(name, label, colour): &(&str, &str, Colour)| RangeRow {
        label: label.into(),
        band: None,
        points: vec![Point { name: "seconds".into(), colour, shape: "dot", value: d.get(name), spread: None }],
        verdict: None,
    };
    let rows = names.iter().filter(|(name, ..)| d.figures.contains_key(*name)).map(row).collect();
    let legend = names.iter().map(|&(_, label, colour)| (colour, "dot", label.to_owned())).collect();
    let meaning = "What the limit cost in time, with the meanings of /proc/pressure/memory.";
    let ranges = Body::Ranges(Ranges { unit: Unit::Seconds, share: false, log: false, rows, legend });
    Page::new("waits", "What did it cost?", answer).with(Figure::new("Waiting", meaning, DOC, ranges))
}

fn figures(d: &RunDocument) -> Page {
    let rows =
        d.figures.iter().map(|(name, &n)| vec![Cell::Text(name.clone()), Cell::Number(n, RunDocument::unit(name))]);
    let table = Table { heads: vec!["figure".into(), "value".into()], rows: rows.collect(), searchable: true };
    let answer = format!(
        "{} faults were served; {} pages were written, {} read back, and {} of these refaulted.",
        Unit::Count.text(d.get("faults")),
        Unit::Count.text(d.get("swapped_out")),
        Unit::Count.text(d.get("swapped_in")),
        Unit::Count.text(d.get("refaults"))
    );
    let meaning = "All of them, by the names that the reference page explains.";
    Page::new("figures", "What happened?", answer).with(Figure::new("All figures", meaning, DOC, Body::Table(table)))
}
