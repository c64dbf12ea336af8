//! Imports between the rooms of each crate, beside those that `crates/arrows.txt` allows.

use super::crates::{Sources, crates, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Rooms that import each other in a circle although they should not: the rooms, or `CRATE/*` for
/// whatever is in a crate; and why that is so.
const CIRCLES: [(&str, &str); 1] =
    [("preload/agent preload/link", "until the names of symbols stand apart from the agent that looks them up")];

fn document() -> PathBuf {
    root().join("crates/arrows.txt")
}

/// The imports of all crates, as the sources have them.
fn computed() -> Arrows {
    let mut all = Arrows::new();
    for name in crates() {
        for (from, to) in Sources::read(&name).arrows() {
            all.insert(format!("{name}/{from}"), to.iter().map(|room| format!("{name}/{room}")).collect());
        }
    }
    all
}

fn parsed(text: &str) -> Arrows {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(from, to)| (from.trim().to_owned(), to.split_whitespace().map(str::to_owned).collect())).collect()
}

fn written(arrows: &Arrows) -> String {
    let mut text = String::new();
    for (from, to) in arrows {
        let to: String = to.iter().map(|room| format!(" {room}")).collect();
        let _ = writeln!(text, "{from}:{to}");
    }
    text
}

#[test]
fn rooms_import_what_the_list_allows() {
    let computed = computed();
    assert!(computed.values().map(BTreeSet::len).sum::<usize>() > 50, "the sources were not read: {computed:?}");
    if std::env::var_os("REFAULT_WRITE_ARROWS").is_some() {
        fs::write(document(), written(&computed)).expect("crates/arrows.txt");
    }
    let allowed = parsed(&fs::read_to_string(document()).expect("crates/arrows.txt"));
    let mut wrong = Vec::new();
    let rooms: BTreeSet<_> = computed.keys().chain(allowed.keys()).collect();
    for room in rooms {
        match (computed.get(room), allowed.get(room)) {
            (Some(has), Some(may)) => {
                wrong.extend(has.difference(may).map(|to| format!("{room} imports {to}, which is not allowed")));
                wrong.extend(may.difference(has).map(|to| format!("{room} is allowed to import {to}, and does not")));
            }
            (Some(_), None) => wrong.push(format!("{room} has no line")),
            (None, _) => wrong.push(format!("{room} has a line, and does not exist")),
        }
    }
    assert!(
        wrong.is_empty(),
        "crates/arrows.txt:\n  {}\nChange the code, or the list (REFAULT_WRITE_ARROWS=1 writes it anew)",
        wrong.join("\n  ")
    );
}

#[test]
fn rooms_import_downward() {
    let arrows = computed();
    let circles = circles(&arrows);
    let is_named = |circle: &[String], names: &str| {
        let in_crate =
            |name: &str| name.strip_suffix('*').is_some_and(|of| circle.iter().all(|room| room.starts_with(of)));
        names.split_whitespace().any(in_crate) || circle.iter().map(String::as_str).eq(names.split_whitespace())
    };
    let new: Vec<_> =
        circles.iter().filter(|circle| !CIRCLES.iter().any(|(names, _)| is_named(circle, names))).collect();
    assert!(new.is_empty(), "these import each other in a circle: {new:?}");
    let gone: Vec<_> =
        CIRCLES.iter().filter(|(names, _)| !circles.iter().any(|circle| is_named(circle, names))).collect();
    assert!(gone.is_empty(), "these are circles no more; take them off the list: {gone:?}");
}

/// Rooms that reach each other, by circle.
fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = arrows.keys().map(|from| (from, reached(arrows, from))).collect();
    let mut circles = Vec::new();
    let mut known: BTreeSet<&String> = BTreeSet::new();
    for room in arrows.keys().filter(|room| reach[room].contains(room)) {
        if known.contains(room) {
            continue;
        }
        let circle: Vec<&String> =
            reach[room].iter().copied().filter(|to| reach.get(to).is_some_and(|back| back.contains(room))).collect();
        known.extend(&circle);
        circles.push(circle.into_iter().cloned().collect());
    }
    circles
}

fn reached<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeSet<&'a String> {
    let (mut all, mut rest) = (BTreeSet::new(), vec![from]);
    while let Some(room) = rest.pop() {
        let next = arrows.get(room).into_iter().flatten();
        rest.extend(next.filter(|to| all.insert(*to)));
    }
    all
}

#[test]
fn a_circle_is_found() {
    let arrows = parsed("x/a: x/b\nx/b: x/c x/d\nx/c: x/a\nx/d:\n");
    assert_eq!(circles(&arrows), [["x/a", "x/b", "x/c"]]);
    assert_eq!(parsed(&written(&arrows)), arrows);
}
