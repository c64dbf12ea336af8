//! Times in flags: `90s`, `10m`, `1h`, `500ms`.

use std::time::Duration;

/// Longest time that may be asked for, in seconds: a year.
const YEAR_SECONDS: f64 = 365.0 * 24.0 * 3600.0;

/// A time such as `90s`.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time; write 90s, 10m, 1h or 500ms");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    if number * seconds > YEAR_SECONDS {
        return Err(format!("{text:?} is more than a year (8760h)"));
    }
    Duration::try_from_secs_f64(number * seconds).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}
