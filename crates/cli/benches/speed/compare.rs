//! Two files of figures, row by row.

use std::process::ExitCode;

use crate::rows::Rows;

/// `--compare OLD NEW`. Spread is from the slowest run to the fastest one, as a part of the median:
/// a ratio that is nearer to 1 than the spread says nothing.
pub fn run() -> Result<ExitCode, String> {
    let (old, new) = Rows::pair("--compare")?;
    println!("{:44} {:>10} {:>10} {:>7} {:>7} {:>7}", "row (medians)", "old", "new", "new/old", "spread", "spread");
    for row in &new.rows {
        let Some(before) = old.rows.iter().find(|other| other.name == row.name && other.unit == row.unit) else {
            println!("{:44} is in the new file only", row.name);
            continue;
        };
        let (was, is) = (before.median(), row.median());
        let (a, b) = (before.spread() * 100.0, row.spread() * 100.0);
        let certain = (is / was - 1.0).abs() > before.spread().max(row.spread());
        let mark = if certain { "*" } else { "" };
        println!("{:44} {was:10.1} {is:10.1} {:7.3} {a:6.1}% {b:6.1}% {mark}", row.name, is / was);
    }
    for row in old.rows.iter().filter(|row| new.rows.iter().all(|other| other.name != row.name)) {
        println!("{:44} is in the old file only", row.name);
    }
    println!("* the change is larger than either spread");
    Ok(ExitCode::SUCCESS)
}
