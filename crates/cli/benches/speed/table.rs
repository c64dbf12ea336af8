//! Two files of figures as one table: policies by rows, ways and memory by columns.

use std::process::ExitCode;

use crate::replay::Way;
use crate::rows::Rows;

/// `--table OLD NEW`: medians, the old one first.
pub fn run() -> Result<ExitCode, String> {
    let (old, new) = Rows::pair("--table")?;
    let columns: Vec<(Way, u32)> = Way::ALL.into_iter().flat_map(|way| [(way, 10), (way, 50)]).collect();
    let heads: Vec<String> = columns.iter().map(|(way, percent)| format!("{way:?}, {percent} %")).collect();
    println!("| | {} |\n|---|{}", heads.join(" | "), "---:|".repeat(columns.len()));
    let median = |rows: &Rows, name: &str| rows.rows.iter().find(|row| row.name == name).map(|row| row.median());
    let mut policies: Vec<&str> = Vec::new();
    for row in &new.rows {
        // A row is named by way, memory and policy.
        if let Some((_, policy)) = row.name.split_once(" % ").filter(|(_, policy)| !policies.contains(policy)) {
            policies.push(policy);
        }
    }
    for policy in policies {
        let cell = |(way, percent): &(Way, u32)| {
            let name = format!("{way:?} {percent} % {policy}");
            match (median(&old, &name), median(&new, &name)) {
                (Some(old), Some(new)) => format!("{old:.1} → {new:.1}"),
                (None, Some(new)) => format!("{new:.1}"),
                _ => "-".into(),
            }
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        println!("| `{policy}` | {} |", cells.join(" | "));
    }
    for row in new.rows.iter().filter(|row| row.name.contains(" limit ")) {
        let old = median(&old, &row.name).map_or("-".into(), |old| format!("{old:.0}"));
        println!("{:44} {old:>6} {:6.0}", row.name, row.median());
    }
    Ok(ExitCode::SUCCESS)
}
