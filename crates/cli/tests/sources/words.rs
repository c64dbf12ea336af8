//! Words of names: those of `docs/glossary.md`, and never one of the synonyms below.

use super::crates::{crates, root, rust_files};
use super::rust::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Words that no name has, each with the one to use.
const BANNED: [(&str, &str); 46] = [
    ("ageing", "aging"),
    ("alike", "bulk"),
    ("astray", "wrong"),
    ("bill", "cost"),
    ("bio", "request"),
    ("birth", "lru_gen_folio_seq"),
    ("bury", "remove"),
    ("census", "the noun that is counted"),
    ("condemn", "kill"),
    ("doomed", "discarded"),
    ("door", "socket"),
    ("driven", "locked"),
    ("dump", "trace"),
    ("elsewhere", "other"),
    ("evictee", "victim"),
    ("evicts", "evictor"),
    ("forgive", "clear"),
    ("front", "page_io"),
    ("gate", "new_memory"),
    ("ghost", "shadow"),
    ("hear", "receive"),
    ("helper", "the verb that it does"),
    ("helpers", "the verb that they do"),
    ("hugepage", "folio"),
    ("kick", "wake"),
    ("misc", "the noun that it has"),
    ("orphans", "child_processes"),
    ("owe", "uncharged"),
    ("owed", "eligible"),
    ("pageframe", "frame"),
    ("pageout", "page_out"),
    ("pagevec", "batch"),
    ("paging", "reclaim"),
    ("purge", "reclaim"),
    ("rung", "woken"),
    ("shield", "protection"),
    ("sim", "lab"),
    ("simulation", "replay"),
    ("simulator", "lab"),
    ("steer", "control"),
    ("steers", "control"),
    ("strangers", "unserved"),
    ("superpage", "folio"),
    ("swapper", "kswapd"),
    ("thrash", "refault"),
    ("timeslice", "slice"),
];

/// Names that have a banned word all the same, by folder, and why.
const EXCEPTIONS: [(&str, &str, &str); 1] =
    [("pager/src", "simulation", "a kernel is simulated there; nothing is replayed")];

/// Words that say too little to name a type alone.
const VAGUE_TYPES: [&str; 13] =
    ["Act", "Bill", "Done", "Known", "Level", "Look", "Next", "Orders", "Part", "Served", "Step", "Turn", "What"];

/// How many words the vocabulary has.
const VOCABULARY: std::ops::RangeInclusive<usize> = 60..=80;

/// The words of a name in either style.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && after_lower {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("a word").extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Names that are wrong, each with the words to use.
fn wrong(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for name in names {
        let words = words_of(&name);
        let banned = BANNED.iter().filter(|(word, _)| words.iter().any(|own| own == word));
        found.extend(banned.map(|(word, instead)| format!("{name}: for \"{word}\" write {instead}")));
        if VAGUE_TYPES.contains(&name.as_str()) {
            found.push(format!("{name}: say of what"));
        }
    }
    found
}

/// Names that a file defines outside of its tests: types, functions, constants, modules.
fn defined(text: &str) -> Vec<String> {
    let defines =
        |word: &str| ["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"].contains(&word);
    let tokens = tokens(text);
    let pairs = tokens.windows(2).filter_map(|pair| match pair {
        [Token::Word(word), Token::Word(name)] if defines(word) => Some(name.clone()),
        _ => None,
    });
    pairs.collect()
}

/// Types that a file defines for other crates: `pub` without a bound.
fn public_types(text: &str) -> Vec<String> {
    let is_type = |word: &str| ["enum", "struct", "trait", "type", "union"].contains(&word);
    let tokens = tokens(text);
    let triples = tokens.windows(3).filter_map(|triple| match triple {
        [Token::Word(public), Token::Word(word), Token::Word(name)] if public == "pub" && is_type(word) => {
            Some(name.clone())
        }
        _ => None,
    });
    triples.collect()
}

/// Identifiers that a page sets as code: keys, flags, columns.
fn keys(page: &str) -> BTreeSet<String> {
    let is_key = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_key).map(str::to_owned).collect()
}

#[test]
fn names_are_made_of_the_vocabulary() {
    let mut all = Vec::new();
    for name in crates() {
        for path in rust_files(&root().join("crates").join(&name).join("src")) {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let file = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let is_excepted = |name: &String| {
                let is_here = |folder: &str| path.starts_with(root().join("crates").join(folder));
                EXCEPTIONS.iter().any(|(folder, known, _)| known == name && is_here(folder))
            };
            let names = defined(&text).into_iter().chain([file]);
            let found = wrong(names.filter(|name| !is_excepted(name)));
            all.extend(found.into_iter().map(|wrong| format!("{}: {wrong}", path.display())));
        }
    }
    let folders = ["docs/reference", "crates/run/docs"].map(|folder| fs::read_dir(root().join(folder)).expect(folder));
    let paths = folders.into_iter().flatten().map(|entry| entry.expect("a page").path());
    for path in paths.filter(|path| path.extension().is_some()) {
        let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        all.extend(wrong(keys(&page)).into_iter().map(|wrong| format!("{}: {wrong}", path.display())));
    }
    assert!(all.is_empty(), "words of docs/glossary.md, one for each thing:\n  {}", all.join("\n  "));
}

#[test]
fn a_public_type_has_its_name_in_one_crate() {
    let mut crates_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // No crate that people use has the types of tests.
    for name in crates().into_iter().filter(|name| name != "testing") {
        for path in rust_files(&root().join("crates").join(&name).join("src")) {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            for public in public_types(&text) {
                crates_of.entry(public).or_default().insert(name.clone());
            }
        }
    }
    let twice: Vec<_> = crates_of.iter().filter(|(_, crates)| crates.len() > 1).collect();
    assert!(twice.is_empty(), "types of one name in two crates: {twice:?}");
}

#[test]
fn a_public_type_is_told_from_one_of_its_crate() {
    let text = "pub struct Seen; pub(crate) enum Inner {} pub type Short = u8; struct Own;\n\
                #[cfg(test)]\nmod tests { pub struct Rng; }";
    assert_eq!(public_types(text), ["Seen", "Short"]);
}

#[test]
fn the_vocabulary_is_short_and_has_no_synonyms() {
    let page = fs::read_to_string(root().join("docs/glossary.md")).expect("docs/glossary.md");
    let (_, words) = page.split_once("## Words").expect("the words");
    let rows = words.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let rows: Vec<_> = rows.filter(|row| *row != "word").collect();
    assert!(VOCABULARY.contains(&rows.len()), "{} words", rows.len());
    for row in rows {
        let banned = BANNED.iter().find(|(word, _)| row.split([' ', ',']).any(|own| own == *word));
        assert_eq!(banned, None, "a word of the vocabulary is banned: {row}");
    }
}

#[test]
fn a_banned_word_is_found_in_each_style() {
    assert_eq!(words_of("ScanControl"), ["scan", "control"]);
    assert_eq!(words_of("MAX_LRU_GENS"), ["max", "lru", "gens"]);
    let text = "struct PageCensus; fn bury_memcg() {} mod ghost_list;\n\
                const KICK_MS: u64 = 1; enum What {} fn census_taker() {}\n\
                #[cfg(test)]\nmod tests { fn shield() {} }\nfn similar() {}";
    let found = wrong(defined(text));
    let names: Vec<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["PageCensus", "bury_memcg", "ghost_list", "KICK_MS", "What", "census_taker"]);
    assert_eq!(found[1], "bury_memcg: for \"bury\" write remove");
    assert_eq!(wrong(keys("| `dump_pages` | of `memory` | `--flag` |")), ["dump_pages: for \"dump\" write trace"]);
}
