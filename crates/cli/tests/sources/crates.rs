//! The sources of a crate: its files, and the module that each of them is.

use super::rust::{self, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the workspace")
}

/// The names of the crates.
pub(crate) fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates/").map(|entry| entry.expect("an entry").path());
    let with_sources = entries.filter(|path| path.join("src").is_dir());
    let mut all: Vec<_> = with_sources.map(|path| path.file_name().expect("a name").to_string_lossy().into()).collect();
    all.sort();
    all
}

/// All Rust files under a folder, by path.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.is_dir() {
            true => all.extend(rust_files(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => all.push(path),
            false => {}
        }
    }
    all.sort();
    all
}

/// One file: what it is called as a module, and what is in it outside of tests.
pub(crate) struct File {
    pub(crate) module: Vec<String>,
    tokens: Vec<Token>,
}

/// A crate.
pub(crate) struct Sources {
    files: Vec<File>,
    modules: BTreeSet<Vec<String>>,
    /// By the name that the crate root hands on: the path that it has.
    faces: BTreeMap<String, Vec<String>>,
}

impl Sources {
    /// Reads a crate, without modules that only its tests have.
    pub(crate) fn read(name: &str) -> Sources {
        let src = root().join("crates").join(name).join("src");
        let paths = rust_files(&src);
        let mut files: Vec<File> = paths.iter().map(|path| File::read(&src, path)).collect();
        let tests: Vec<Vec<String>> =
            files.iter().flat_map(|file| rust::test_modules(&file.module, &file.tokens)).collect();
        files.retain(|file| !tests.iter().any(|test| file.module.starts_with(test)));
        // Imports of `main` are imports from outside.
        files.retain(|file| file.module != ["main"]);
        let modules = files.iter().map(|file| file.module.clone()).collect();
        let mut sources = Sources { files, modules, faces: BTreeMap::new() };
        sources.faces = sources.root_faces();
        sources
    }

    fn root_faces(&self) -> BTreeMap<String, Vec<String>> {
        let Some(root) = self.files.iter().find(|file| file.module.is_empty()) else { return BTreeMap::new() };
        let absolute = |path: Vec<String>| match path.first().map(String::as_str) {
            Some("crate" | "self") => path[1..].to_vec(),
            _ => path,
        };
        let uses = rust::uses(&root.tokens).into_iter().map(|(path, name)| (name, absolute(path)));
        uses.filter(|(name, path)| path.first().is_some_and(|first| self.is_module(first)) && name != "*").collect()
    }

    fn is_module(&self, name: &str) -> bool {
        self.modules.contains(&vec![name.to_owned()])
    }

    /// By room, the rooms that it imports; a room is a folder of the crate, or a file beside its
    /// root, or what is defined in the root (`lib`). A name that the root only hands on (`pub use`)
    /// is no import.
    pub(crate) fn arrows(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in &self.files {
            let from = file.module.first().cloned().unwrap_or_else(|| "lib".to_owned());
            let to: BTreeSet<_> = self.imports(file).into_iter().filter(|room| *room != from).collect();
            if from != "lib" || !to.is_empty() {
                arrows.entry(from).or_default().extend(to);
            }
        }
        arrows
    }

    fn imports(&self, file: &File) -> Vec<String> {
        let mut paths = rust::paths(&file.module, &file.tokens);
        if file.module.is_empty() {
            let own = rust::without_faces(&file.tokens);
            let children = rust::uses(&own).into_iter().map(|(path, _)| path);
            paths = rust::paths(&[], &own);
            paths.extend(children.filter(|path| path.first().is_some_and(|first| self.is_module(first))));
        }
        paths.iter().filter_map(|path| self.room(path)).collect()
    }

    /// The room of a path from the crate root; none: it does not lead into this crate.
    fn room(&self, path: &[String]) -> Option<String> {
        let first = path.first()?;
        if self.is_module(first) {
            return Some(first.clone());
        }
        match self.faces.get(first) {
            Some(face) => Some(face[0].clone()),
            // Items that are defined in the root.
            None => Some("lib".to_owned()),
        }
    }
}

impl File {
    fn read(src: &Path, path: &Path) -> File {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let inside = path.strip_prefix(src).expect("a file of the crate").with_extension("");
        let mut module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
            module.pop();
        }
        File { module, tokens: rust::tokens(&text) }
    }
}
