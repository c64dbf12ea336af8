//! Tables of pages that tests of recordings write, or compare with what they measure.

use std::path::Path;

/// Writes the table into a page of measurements where `REFAULT_WRITE_TABLES` is set; else the page
/// has so many rows below its heading, and each of the table's among them. `test` is the name of
/// the test that writes it.
pub(crate) fn write_or_compare(page: &str, table: &str, rows: usize, test: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measurements").join(page);
    let text = std::fs::read_to_string(&page).expect("the page");
    let (head, rest) = text.split_once("<!-- table: begin -->\n").expect("the mark");
    let (old, tail) = rest.split_once("<!-- table: end -->").expect("the mark");
    if std::env::var_os("REFAULT_WRITE_TABLES").is_some() {
        let new = format!("{head}<!-- table: begin -->\n{table}<!-- table: end -->{tail}");
        std::fs::write(&page, new).expect("the page");
    } else {
        let anew = format!("write it anew: REFAULT_WRITE_TABLES=1 cargo test -p refault-lab --test all {test}");
        assert_eq!(old.lines().count(), rows + 2, "{anew}");
        table.lines().for_each(|row| assert!(old.contains(row), "not on the page: {row}; {anew}"));
    }
}
