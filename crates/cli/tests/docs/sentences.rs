//! Sentences and headings of pages begin with a noun or a verb. Questions are free in prose.

use super::{none, pages};

/// First words that leave the reader without a noun or a verb to begin with.
const VAGUE: [&str; 6] = ["What", "Who", "Whose", "Of", "Those", "That"];

/// The beginning of a text that is such a word.
fn vague(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['*', '-', ' ', '"', '[', '(']);
    let word = &text[..text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len())];
    VAGUE.contains(&word).then_some(text)
}

/// Sentences of a page, of each paragraph or cell of a table, with the line at which that begins.
fn sentences(text: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (n, line) in text.iter().filter(|(_, line)| !line.starts_with('#')) {
        let line = line.trim();
        if line.starts_with('|') {
            paragraphs.extend(line.split('|').map(|cell| (*n, cell.trim().to_owned())));
            goes_on = false;
            continue;
        }
        match paragraphs.last_mut() {
            Some((_, paragraph)) if goes_on && !line.starts_with("- ") => *paragraph += &format!(" {line}"),
            _ => paragraphs.push((*n, line.to_owned())),
        }
        goes_on = !line.is_empty();
    }
    let split = |(n, text): (usize, String)| {
        let ends: Vec<usize> = text.match_indices(['.', '?', '!']).map(|(at, _)| at + 1).collect();
        let is_end = |at: &usize| text[*at..].starts_with(' ') || *at == text.len();
        let mut from = 0;
        let mut found = Vec::new();
        for end in ends.into_iter().filter(is_end).chain([text.len()]) {
            found.push((n, text[from..end].trim().to_owned()));
            from = end;
        }
        found
    };
    paragraphs.into_iter().flat_map(split).filter(|(_, sentence)| !sentence.is_empty()).collect()
}

#[test]
fn headings_begin_with_a_noun_or_a_verb() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (n, line) in page.text.iter().filter(|(_, line)| line.starts_with('#')) {
            if let Some(heading) = vague(line.trim_start_matches('#')) {
                complaints.push(format!("{}:{n}: {heading}", page.name));
            }
        }
    }
    none(&complaints);
}

#[test]
fn sentences_begin_with_a_noun_or_a_verb() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (n, sentence) in sentences(&page.text).iter().filter(|(_, sentence)| !sentence.contains('?')) {
            if let Some(said) = vague(sentence) {
                complaints.push(format!("{}:{n}: {said}", page.name));
            }
        }
    }
    none(&complaints);
}

#[test]
fn vague_sentences_are_found() {
    let text =
        "# Page\nA fault. Of\nthese one. What is it?\n\n- That one.\n- A whole.\n| Who asks | Often |\n**Those** go";
    let lines: Vec<(usize, String)> = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
    let all = sentences(&lines);
    let found: Vec<_> = all.iter().filter(|(_, s)| !s.contains('?') && vague(s).is_some()).collect();
    assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2, 5, 7, 8], "{all:?}");
    assert_eq!(vague(" What it takes"), Some("What it takes"));
    assert_eq!(vague("Offsets, thatched"), None);
}
