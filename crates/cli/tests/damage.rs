//! Results that were cut or added to, in every form that a command reads back: an error in one
//! line.

use crate::common::command::{Sandbox, error, ok};

/// Every kind of file that refault writes and reads, and the command that writes it.
fn written(s: &Sandbox) -> Vec<&'static str> {
    s.generate("t.parquet", &["5000: A:zipf:900; B:uniform:300:kind=anon,op=w"]);
    s.write("s.toml", include_bytes!("data/tiny.toml"));
    for words in [
        &["replay", "t.parquet", "--json", "-o", "replay.json"][..],
        &["replay", "s.toml", "--json", "-o", "scenario.json"],
        &["bench", "s.toml", "--seeds", "1", "--json", "-o", "bench.json"],
        &["size", "t.parquet", "-t", "hit_rate>50%", "--json", "-o", "size.json"],
        &["report", "t.parquet", "-o", "page.html"],
    ] {
        let done = s.run(words);
        // A benchmark whose rows are not in their bands ends with 1.
        assert!(
            done.status.code().is_some_and(|code| code < 2),
            "{words:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    vec!["replay.json", "scenario.json", "bench.json", "size.json", "page.html"]
}

#[test]
fn regression_results_that_were_cut_or_added_to_say_so() {
    let s = Sandbox::new();
    for name in written(&s) {
        let whole = std::fs::read(s.path(name)).expect("there");
        ok(&s.run(&["report", name, "-o", "out.html"]));
        let length = whole.trim_ascii_end().len();
        let cuts = (1..12).map(|i| whole[..i * length / 12].to_vec()).chain([whole[..length - 1].to_vec()]);
        let added = [&b"x"[..], b"\0", &whole].map(|more| [&whole[..], more].concat());
        let added = added.into_iter().filter(|bytes| !(name.ends_with(".html") && bytes.len() == 2 * whole.len()));
        let damaged = format!("damaged-{name}");
        for bytes in cuts.chain(added) {
            s.write(&damaged, &bytes);
            let said = error(&s.run(&["report", &damaged, "-o", "out.html"]));
            assert_eq!(said.trim_end().lines().count(), 1, "{said}");
            assert!(said.contains(&damaged), "{} of {} bytes: {said}", bytes.len(), whole.len());
        }
    }
}
