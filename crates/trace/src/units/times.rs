//! Units of times: which one dates look like, and in which a trace would go faster than any disk or
//! longer than any recording.

use super::UnitDetector;
use super::column::{Column, LEAST};

/// Ticks of 100 ns since 1601: the years 1970 and, for the end, 2108.
const FILETIME: std::ops::Range<u64> = 116_444_736_000_000_000..160_000_000_000_000_000;

/// Times since 1970, from 1998 to 2100: the name of the unit and its nanoseconds.
const UNIX: [(&str, u64); 4] =
    [("seconds", 1_000_000_000), ("milliseconds", 1_000_000), ("microseconds", 1000), ("nanoseconds", 1)];

/// Nanoseconds of a year, which is as long as a trace lasts, and of ten, which is no trace.
const YEAR: u64 = 31_557_600_000_000_000;
const TOO_LONG: u64 = 10 * YEAR;

/// Nanoseconds from one request to the next: fewer have no disk, and these have common ones.
const TOO_CLOSE: u64 = 100;
const COMMON: u64 = 10_000;

/// Records that it takes to tell a burst from a rate.
const RATE: u64 = 1000;

/// Names of units in the order of their lengths.
const LENGTHS: [u64; 5] = [1, 100, 1000, 1_000_000, 1_000_000_000];

/// The unit that a number looks like if it is the time of a day: its name and nanoseconds.
pub(crate) fn unix_time_unit(n: u64) -> Option<(&'static str, u64)> {
    date_unit(n, n)
}

/// The unit of times from 1998 to 2100, a few years at most apart.
fn date_unit(least: u64, most: u64) -> Option<(&'static str, u64)> {
    let since_1970 = |unit_ns: u64| {
        let years = |n: u64| u128::from(n) * u128::from(YEAR) / u128::from(unit_ns);
        let is_date = (years(28)..years(130)).contains(&u128::from(least)) && u128::from(most) < years(130);
        is_date && u128::from(most - least) < years(10)
    };
    let named = [
        ("seconds since 1970", 1_000_000_000),
        ("milliseconds since 1970", 1_000_000),
        ("microseconds since 1970", 1000),
        ("ticks of 100 ns since 1970", 100),
        ("nanoseconds since 1970", 1),
    ];
    let found = named.into_iter().find(|(_, unit_ns)| since_1970(*unit_ns));
    let is_filetime = || FILETIME.contains(&least) && FILETIME.contains(&most);
    found.or_else(|| is_filetime().then_some(("ticks of 100 ns since 1601", 100)))
}

/// Whether times that are read in this unit are in doubt: why, and the unit that they could be in.
///
/// Other times from a start at 0 look the same in every unit: disks are idle or busy.
pub(super) fn other_unit(watch: &UnitDetector, unit_ns: u64, is_memory: bool) -> Option<(String, u64)> {
    let UnitDetector { time, clock, decimals, .. } = watch;
    let seen = time.seen();
    if seen < LEAST as u64 || clock.is_constant() {
        return None;
    }
    if let Some((name, of)) = date_unit(time.least(), time.most()) {
        return (of != unit_ns).then(|| (format!("as {name} they are dates"), of));
    }
    if 10u128.saturating_pow(*decimals) >= 100 * u128::from(unit_ns) && *decimals > 1 {
        let why = format!("with {decimals} digits behind the point they would be finer than a nanosecond");
        return Some((why, 1_000_000_000));
    }
    let span = clock.most() - clock.least();
    let gap = |of: u64| u128::from(span) * u128::from(of) / u128::from(unit_ns) / u128::from(seen - 1);
    if !is_memory && seen >= RATE && gap(unit_ns) < u128::from(TOO_CLOSE) {
        let other = LENGTHS.into_iter().find(|of| gap(*of) >= u128::from(COMMON)).unwrap_or(1_000_000_000);
        return Some((format!("{seen} requests would come within {span} ns"), other));
    }
    if span > TOO_LONG {
        let fits = |of: &u64| u128::from(span) * u128::from(*of) / u128::from(unit_ns) < u128::from(YEAR);
        let other = LENGTHS.into_iter().rev().find(fits).unwrap_or(1);
        return Some((format!("the trace would last {} years", span / YEAR), other));
    }
    None
}

/// Name of a unit of times that is `unit_ns` nanoseconds long.
pub(super) fn in_words(unit_ns: u64) -> &'static str {
    match unit_ns {
        100 => "ticks of 100 ns",
        _ => UNIX.into_iter().find(|(_, of)| *of == unit_ns).map_or("seconds", |(name, _)| name),
    }
}

/// The unit of times since 1970, if that is what numbers look like: they never go down by much, and
/// lie between 1998 and 2100.
pub(super) fn unix_time(column: &Column) -> Option<String> {
    let (name, _) = unix_unit(column)?;
    (column.is_enough() && !column.goes_down()).then(|| format!("they look like {name} since 1970"))
}

pub(super) fn unix_unit(column: &Column) -> Option<(&'static str, u64)> {
    let year = 31_557_600;
    let is_of = |tick_ns: u64| {
        let second = 1_000_000_000 / tick_ns;
        let range = 28 * year * second..130u64.saturating_mul(year).saturating_mul(second);
        range.contains(&column.first()) && range.contains(&column.most())
    };
    UNIX.into_iter().find(|(_, tick_ns)| is_of(*tick_ns))
}

pub(super) fn no_filetime(column: &Column) -> Option<String> {
    (!column.is_constant() && column.seen() >= LEAST as u64 && !FILETIME.contains(&column.first()))
        .then(|| format!("they begin at {}, which is no time since 1970 in ticks since 1601", column.first()))
}
