//! As much of Rust's grammar as imports need: words, `::`, braces, `use` trees, modules, and what
//! only tests have.

/// A word, or a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Path,
    Sign(char),
}

use Token::{Path, Sign, Word};

/// The tokens of a text without comments, strings, and what stands under `#[cfg(test)]` in braces.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    without_tests(&lex(text))
}

fn lex(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut tokens, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let c = at(i);
        if c == '/' && at(i + 1) == '/' {
            i = skip_to(&chars, i, "\n");
        } else if c == '/' && at(i + 1) == '*' {
            i = skip_to(&chars, i + 2, "*/");
        } else if c == '"' {
            i = skip_string(&chars, i);
        } else if let Some(hashes) = raw_string(&chars, i) {
            i = skip_to(&chars, i, "\"");
            i = skip_to(&chars, i, &format!("\"{}", "#".repeat(hashes)));
        } else if c == '\'' {
            i = skip_quote(&chars, i);
        } else if c.is_alphanumeric() || c == '_' {
            let end = (i..).find(|&j| !(at(j).is_alphanumeric() || at(j) == '_')).unwrap_or(chars.len());
            tokens.push(Word(chars[i..end].iter().collect()));
            i = end;
        } else if c == ':' && at(i + 1) == ':' {
            tokens.push(Path);
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(Sign(c));
            }
            i += 1;
        }
    }
    tokens
}

/// Behind the next place of `end`.
fn skip_to(chars: &[char], from: usize, end: &str) -> usize {
    let end: Vec<char> = end.chars().collect();
    let found = (from..chars.len()).find(|&i| chars[i..].starts_with(&end));
    found.map_or(chars.len(), |i| i + end.len())
}

fn skip_string(chars: &[char], from: usize) -> usize {
    let mut i = from + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// How many `#` a raw string that begins here has.
fn raw_string(chars: &[char], from: usize) -> Option<usize> {
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let inside_word = from > 0 && (at(from - 1).is_alphanumeric() || at(from - 1) == '_');
    let r = if at(from) == 'b' { from + 1 } else { from };
    if inside_word || at(r) != 'r' {
        return None;
    }
    let hashes = (r + 1..).take_while(|&i| at(i) == '#').count();
    (at(r + 1 + hashes) == '"').then_some(hashes)
}

/// Behind a character in quotes, or behind the quote of a lifetime.
fn skip_quote(chars: &[char], from: usize) -> usize {
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    match (at(from + 1), at(from + 2)) {
        ('\\', _) => skip_to(chars, from + 3, "'"),
        (_, '\'') => from + 3,
        _ => from + 1,
    }
}

/// Tokens behind `#[cfg(test)]`, if the tokens begin with it.
fn behind_cfg_test(tokens: &[Token]) -> Option<&[Token]> {
    let word = |at: usize, text: &str| matches!(tokens.get(at), Some(Word(word)) if word == text);
    let is =
        tokens.first() == Some(&Sign('#')) && word(2, "cfg") && word(4, "test") && tokens.get(5) == Some(&Sign(')'));
    is.then(|| &tokens[7..])
}

/// Without what stands in braces behind `#[cfg(test)]`; a `mod x;` stays, with its mark.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let (mut out, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if let Some(rest) = behind_cfg_test(&tokens[i..]) {
            let end = rest.iter().position(|t| matches!(t, Sign('{' | ';'))).unwrap_or(rest.len());
            if rest.get(end) == Some(&Sign('{')) {
                i = tokens.len() - rest.len() + end;
                i = closing(tokens, i) + 1;
                continue;
            }
        }
        out.push(tokens[i].clone());
        i += 1;
    }
    out
}

/// The place of the brace that closes the one at `from`.
fn closing(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(from) {
        match token {
            Sign('{') => depth += 1,
            Sign('}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len() - 1
}

/// The modules with a file of their own that only tests have.
pub(crate) fn test_modules(module: &[String], tokens: &[Token]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for i in 0..tokens.len() {
        let Some(rest) = behind_cfg_test(&tokens[i..]) else { continue };
        let Some(at) = rest.iter().take(5).position(|t| *t == Word("mod".into())) else { continue };
        if let (Some(Word(name)), Some(Sign(';'))) = (rest.get(at + 1), rest.get(at + 2)) {
            all.push(module.iter().cloned().chain([name.clone()]).collect());
        }
    }
    all
}

/// The paths of all `use` items of a file, each with the name that it gets: of `use a::{b as c, d}`
/// it is (a::b, c), (a::d, d).
pub(crate) fn uses(tokens: &[Token]) -> Vec<(Vec<String>, String)> {
    let mut all = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if *token == Word("use".into()) {
            tree(&tokens[i + 1..], &mut Vec::new(), &mut all);
        }
    }
    all
}

/// Without the `pub use` items, which only hand on what others have.
pub(crate) fn without_faces(tokens: &[Token]) -> Vec<Token> {
    let (mut out, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        let is_face = tokens[i] == Word("pub".into()) && tokens.get(i + 1) == Some(&Word("use".into()));
        match tokens[i..].iter().position(|t| *t == Sign(';')).filter(|_| is_face) {
            Some(end) => i += end,
            None => out.push(tokens[i].clone()),
        }
        i += 1;
    }
    out
}

/// A `use` tree; how many tokens it takes.
fn tree(tokens: &[Token], prefix: &mut Vec<String>, all: &mut Vec<(Vec<String>, String)>) -> usize {
    let (depth, mut i) = (prefix.len(), 0);
    loop {
        match tokens.get(i) {
            Some(Word(word)) if word == "as" => {
                if let (Some(Word(name)), Some((_, last))) = (tokens.get(i + 1), all.last_mut()) {
                    last.clone_from(name);
                }
                i += 2;
            }
            Some(Word(word)) => {
                prefix.push(word.clone());
                if tokens.get(i + 1) != Some(&Path) {
                    all.push(named(prefix));
                }
                i += 1;
            }
            Some(Path) => i += 1,
            Some(Sign('*')) => {
                all.push((prefix.clone(), "*".into()));
                i += 1;
            }
            Some(Sign('{')) => {
                i += 1;
                while !matches!(tokens.get(i), Some(Sign('}')) | None) {
                    i += tree(&tokens[i..], prefix, all);
                    i += usize::from(tokens.get(i) == Some(&Sign(',')));
                }
                i += 1;
            }
            _ => break,
        }
    }
    prefix.truncate(depth);
    i
}

/// A path and its last word; `self` stands for the module before it.
fn named(path: &[String]) -> (Vec<String>, String) {
    let path = path.strip_suffix(&["self".to_owned()]).filter(|rest| !rest.is_empty()).unwrap_or(path);
    (path.to_vec(), path.last().cloned().unwrap_or_default())
}

/// Every path of a file that begins with `crate`, `self` or `super`, in a `use` or elsewhere, from
/// the root of the crate on.
pub(crate) fn paths(module: &[String], tokens: &[Token]) -> Vec<Vec<String>> {
    let (mut all, mut inside, mut depth) = (Vec::new(), module.to_vec(), 0);
    // The depths at which modules in braces begin.
    let mut begun: Vec<usize> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token {
            Sign('{') => {
                depth += 1;
                if let [.., Word(key), Word(name)] = &tokens[..i]
                    && key == "mod"
                {
                    inside.push(name.clone());
                    begun.push(depth);
                }
            }
            Sign('}') => {
                if begun.last() == Some(&depth) {
                    begun.pop();
                    inside.pop();
                }
                depth -= 1;
            }
            Word(word) if word == "use" => {
                let mut found = Vec::new();
                tree(&tokens[i + 1..], &mut Vec::new(), &mut found);
                all.extend(found.iter().filter_map(|(path, _)| absolute(&inside, path)));
            }
            Word(word) if matches!(word.as_str(), "crate" | "self" | "super") && tokens.get(i + 1) == Some(&Path) => {
                let in_path = i > 0 && tokens[i - 1] == Path;
                all.extend(Some(path_at(&tokens[i..])).filter(|_| !in_path).and_then(|path| absolute(&inside, &path)));
            }
            _ => {}
        }
    }
    all
}

fn path_at(tokens: &[Token]) -> Vec<String> {
    let mut path = Vec::new();
    for pair in tokens.chunks(2) {
        let Word(word) = &pair[0] else { break };
        path.push(word.clone());
        if pair.get(1) != Some(&Path) {
            break;
        }
    }
    path
}

/// A path from the root of the crate; none: it begins outside, or leads nowhere.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (base, rest) = (Vec::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                base.pop()?;
                rest = &rest[1..];
            }
        }
        _ => return None,
    }
    base.extend(rest.iter().cloned());
    Some(base).filter(|path| !path.is_empty())
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = r##"
        //! crate::comment::x
        use crate::a::{self, b::{C as D, E}, *};
        pub(super) use super::f::G;
        mod inner { use super::h::I; fn x() { crate::j::k(); } }
        fn y<'a>(s: &'a str) -> crate::l::M<'a> { let _ = ("crate::n::o", '"', '\'', r#"crate::p::q"#); self::r::s() }
        #[cfg(test)]
        mod tests { use crate::t::u; }
    "##;
    let module = ["m".to_owned(), "n".to_owned()];
    let mut found: Vec<String> = paths(&module, &tokens(text)).iter().map(|path| path.join("::")).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, ["a", "a::b::C", "a::b::E", "j::k", "l::M", "m::f::G", "m::n::h::I", "m::n::r::s"]);
}
