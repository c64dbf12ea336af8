//! Names of public types: one name has one meaning in the workspace.

use super::crates::{crates, root, rust_files};
use super::rust::{Token, tokens};
use std::collections::BTreeMap;
use std::fs;

/// Crates whose types others do not import: a name there may mean something else.
pub(super) const APART: [(&str, &str); 4] = [
    ("capi", "C's side of the pager"),
    ("pager", "serves userfaultfd, and no other library imports it"),
    ("preload", "is loaded into other programs"),
    ("testing", "of tests alone"),
];

/// Folders whose types stand for those of others.
const MIRRORS: [(&str, &str); 1] = [("refault/src/document", "what the command's JSON holds, read again")];

/// Names that may be defined twice, and why.
const EXCEPTIONS: [(&str, &str); 1] = [("Error", "each library has one of its own")];

/// Words that define a type.
const DEFINES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Names of the public types of a file, outside of tests and of `impl` blocks.
pub(super) fn public_types(text: &str) -> Vec<String> {
    visible_types(text).into_iter().filter(|(_, is_public)| *is_public).map(|(name, _)| name).collect()
}

/// The same with those that only a part of the crate sees; whether each is public.
fn visible_types(text: &str) -> Vec<(String, bool)> {
    let tokens = tokens(text);
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.as_str(),
        _ => "",
    };
    let mut depth = 0;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            _ if depth == 0 && word(at) == "pub" => {
                // `pub(crate)`, `pub(super)`: a word in brackets.
                let (is_public, at) = match tokens.get(at + 1) {
                    Some(Token::Sign('(')) => (false, at + 4),
                    _ => (true, at + 1),
                };
                if DEFINES.contains(&word(at)) {
                    found.push((word(at + 1).to_owned(), is_public));
                }
            }
            _ => {}
        }
    }
    found
}

/// Names of two places, with these.
fn doubled(defined: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, place) in defined {
        places.entry(name).or_default().push(place);
    }
    let is_excepted = |name: &str| EXCEPTIONS.iter().any(|(known, _)| *known == name);
    let doubled = places.into_iter().filter(|(name, places)| places.len() > 1 && !is_excepted(name));
    doubled.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// Types of a crate, with the file of each, as `of` finds them in a file.
fn types_of<T>(name: &str, of: impl Fn(&str) -> Vec<T>) -> Vec<(T, String)> {
    let mut defined = Vec::new();
    for path in rust_files(&root().join("crates").join(name).join("src")) {
        let place = path.strip_prefix(root().join("crates")).expect("a crate's file").display().to_string();
        if MIRRORS.iter().any(|(folder, _)| place.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{place}: {e}"));
        defined.extend(of(&text).into_iter().map(|name| (name, place.clone())));
    }
    defined
}

/// The crates whose names are held to the vocabulary.
fn checked_crates() -> Vec<String> {
    crates().into_iter().filter(|name| !APART.iter().any(|(apart, _)| apart == name)).collect()
}

#[test]
fn visible_types_of_one_name_are_defined_once_in_a_crate() {
    let names = |text: &str| visible_types(text).into_iter().map(|(name, _)| name).collect();
    let doubled: Vec<String> = checked_crates().iter().flat_map(|name| doubled(types_of(name, names))).collect();
    assert!(doubled.is_empty(), "one name, one meaning in a crate:\n  {}", doubled.join("\n  "));
}

#[test]
fn public_types_of_one_name_are_defined_once() {
    let defined: Vec<_> = checked_crates().iter().flat_map(|name| types_of(name, public_types)).collect();
    assert!(defined.len() > 300, "{} public types are few", defined.len());
    let doubled = doubled(defined);
    assert!(doubled.is_empty(), "one name, one meaning; rename, or except it and say why:\n  {}", doubled.join("\n  "));
}

#[test]
fn a_second_type_of_a_name_is_found() {
    let text = "pub struct Burst { pub a: u8 }\nimpl Burst { pub type X = u8; }\npub(crate) enum Turn {}\n\
                #[cfg(test)]\nmod tests { pub struct Planted; }\npub trait Walk {}\n";
    assert_eq!(public_types(text), ["Burst", "Walk"]);
    let all: Vec<String> = visible_types(text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(all, ["Burst", "Turn", "Walk"]);
    let at = |name: &str, place: &str| (name.to_owned(), place.to_owned());
    let all = [at("Burst", "a.rs"), at("Walk", "a.rs"), at("Burst", "b.rs"), at("Error", "a.rs"), at("Error", "b.rs")];
    assert_eq!(doubled(all), ["Burst: a.rs, b.rs"]);
}
