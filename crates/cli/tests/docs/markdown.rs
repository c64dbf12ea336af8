//! As much of Markdown as the pages use: fenced blocks, headings, links, and what is prose.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// A fenced block.
pub struct Block {
    /// Text behind the three backticks.
    pub info: String,
    /// The line of the fence, from 1.
    pub line: usize,
    /// Lines between the fences.
    pub lines: Vec<String>,
}

/// A page.
pub struct Page {
    /// From the root of the repository: `docs/tutorial.md`.
    pub name: String,
    /// How many lines it has.
    pub lines: usize,
    /// Its fenced blocks, in order.
    pub blocks: Vec<Block>,
    /// Lines outside of blocks, with their numbers.
    pub text: Vec<(usize, String)>,
}

impl Page {
    /// Reads one.
    pub fn read(root: &Path, name: String) -> Page {
        let text = std::fs::read_to_string(root.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut page = Page { name, lines: text.lines().count(), blocks: Vec::new(), text: Vec::new() };
        let mut open: Option<Block> = None;
        for (n, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            open = match (open, fence) {
                (Some(block), Some(_)) => {
                    page.blocks.push(block);
                    None
                }
                (Some(mut block), None) => {
                    block.lines.push(line.to_owned());
                    Some(block)
                }
                (None, Some(info)) => Some(Block { info: info.trim().to_owned(), line: n + 1, lines: Vec::new() }),
                (None, None) => {
                    page.text.push((n + 1, line.to_owned()));
                    None
                }
            };
        }
        assert!(open.is_none(), "{}: a block has no end", page.name);
        page
    }

    /// Blocks of commands and what they say.
    pub fn consoles(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.info.split(' ').next() == Some("console"))
    }

    /// Lines that are neither in a block nor in a table, nor code by indentation, nor comments.
    pub fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_prose = |line: &str| {
            let start = line.trim_start();
            !start.starts_with('|') && !start.starts_with("<!--") && !line.starts_with("    ")
        };
        self.text.iter().map(|(n, line)| (*n, line.as_str())).filter(move |(_, line)| is_prose(line))
    }

    /// Texts between backticks outside of blocks, each with its line.
    pub fn code_spans(&self) -> Vec<(usize, String)> {
        let spans =
            self.text.iter().map(|(n, line)| line.split('`').skip(1).step_by(2).map(move |s| (*n, s.to_owned())));
        spans.flatten().collect()
    }

    /// The anchors of its headings, as GitHub makes them.
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut times: HashMap<String, usize> = HashMap::new();
        let mut anchors = BTreeSet::new();
        for (_, line) in &self.text {
            let Some(title) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
            let Some(title) = title.strip_prefix(' ') else { continue };
            let plain: String = title
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let seen = times.entry(plain.clone()).or_default();
            anchors.insert(if *seen == 0 { plain } else { format!("{plain}-{seen}") });
            *seen += 1;
        }
        anchors
    }

    /// Targets of its links, with the line where each ends.
    pub fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (n, line) in &self.text {
            let line = without_code(line);
            for part in line.split("](").skip(1) {
                if let Some((target, _)) = part.split_once(')') {
                    links.push((*n, target.to_owned()));
                }
            }
        }
        links
    }
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Whether a line cannot be wrapped: a link or a word alone.
pub fn is_one_word(line: &str) -> bool {
    line.trim().trim_start_matches(['-', '#', ' ']).split_whitespace().count() <= 1
}

/// The path of a link from the root of the repository.
pub fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Pages that a line of source names, with their anchors. `#anchor` itself stands for any.
pub fn pages_named(line: &str) -> Vec<(String, Option<String>)> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let mut named = Vec::new();
    for (at, _) in line.match_indices("docs/") {
        // A page of a crate is named from the root: `crates/run/docs/run.md`.
        let before = &line[at - line[..at].chars().rev().take_while(|&c| is_path(c)).count()..at];
        let rest = &line[at - before.rfind("crates/").map_or(0, |lead| before.len() - lead)..];
        let path: &str = &rest[..rest.find(|c: char| !is_path(c)).unwrap_or(rest.len())];
        let Some(end) = path.find(".md") else { continue };
        let path = &path[..end + 3];
        let anchor = rest[path.len()..].strip_prefix('#').map(|rest| {
            let is_anchor = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            rest[..rest.find(|c: char| !is_anchor(c)).unwrap_or(rest.len())].to_owned()
        });
        named.push((path.to_owned(), anchor.filter(|a| !a.is_empty() && a != "anchor")));
    }
    named
}

/// Whether a flag stands in a text, and not as the beginning of a longer one.
pub fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
    })
}
