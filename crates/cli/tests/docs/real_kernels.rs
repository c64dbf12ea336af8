//! Sentences on the comparison with real kernels follow from its table.

use super::{none, root};

#[test]
fn the_summary_of_real_kernels_follows_from_the_table() {
    let table = std::fs::read_to_string(root().join("crates/cli/tests/data/real-kernels.txt")).expect("the table");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().rev().collect())
        .filter(|row: &Vec<&str>| row.len() >= 9)
        .collect();
    let number = |row: &[&str], n: usize| row[n].parse::<f64>().unwrap_or_else(|e| panic!("{row:?}: {e}"));
    let count = |want: &dyn Fn(&[&str]) -> bool| rows.iter().filter(|row| want(row)).count();
    let within = |points: f64| count(&|row| number(row, 1).abs() <= points);
    let agree = |percent: f64| count(&|row| number(row, 0) >= percent);
    let said = [
        format!("of {} rows", rows.len()),
        format!("at most 0.05 percentage points in {} rows, and by at most 0.1 in {}", within(0.05), within(0.1)),
        format!("99.5 % of the single accesses agree in {} rows, at least 99.9 % in {}", agree(99.5), agree(99.9)),
    ];
    let summary = std::fs::read_to_string(root().join("docs/explanation/beside-real-kernels.md")).expect("the page");
    let summary: Vec<&str> = summary.split_whitespace().collect();
    let text = summary.join(" ");
    let mut complaints: Vec<String> = said.iter().filter(|s| !text.contains(*s)).map(|s| format!("not: {s}")).collect();
    // The README: 0.2 points by descriptor, 0.1 for anonymous memory and mapped files under two
    // lists.
    for row in &rows {
        let is_classic = row.iter().any(|word| ["lru", "lru-shadow"].contains(word));
        let bound = match (row[5], is_classic) {
            ("fd", _) => 0.2,
            ("anon", _) | (_, true) => 0.1,
            _ => continue,
        };
        if number(row, 1).abs() > bound {
            complaints.push(format!("more than {bound}: {row:?}"));
        }
    }
    // Rows that the summary shows: workload, policy, kernel, refault, agreement.
    let mut shown = 0;
    for page in ["docs/explanation/beside-real-kernels.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("the page");
        for line in text.lines().filter(|line| line.starts_with("| ") && line.ends_with(" % |")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [what, policy, kernel, ours, agree] = cells[..] else { continue };
            let Some((workload, by)) = what.split_once(", ") else { continue };
            let by = match by {
                "by descriptor" => "fd",
                "mapped" => "map",
                "anonymous" => "anon",
                _ => continue,
            };
            let percent = |text: &str| text.trim_end_matches(" %").parse::<f64>().expect("a share");
            let policy = policy.trim_matches('`');
            let row = rows
                .iter()
                .find(|row| row[6] == workload && row[5] == by && row[7..] == [policy, "6.12"])
                .unwrap_or_else(|| panic!("{line}: no such row"));
            let is_so = (number(row, 4) * 100.0 - percent(kernel)).abs() < 1e-6
                && (number(row, 2) * 100.0 - percent(ours)).abs() < 1e-6
                && (number(row, 0) - percent(agree)).abs() < 1e-6;
            if !is_so {
                complaints.push(format!("{line}: the table has {row:?}"));
            }
            shown += 1;
        }
    }
    assert!(shown >= 6, "{shown} rows");
    none(&complaints);
}
