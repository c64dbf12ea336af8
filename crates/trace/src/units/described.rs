//! Columns that are described: the other units that their numbers could be meant in, what speaks
//! for each, and the flags for both.
//!
//! Each rule takes the unit that is said and looks for one that fits better. Places of memory are
//! judged as those of other formats of addresses are.

use super::column::LEAST;
use super::table::{CONTINUES, LARGEST_DISK, MOST, anywhere, beyond_pages, enough, multiples, odd};
use super::{LOOKED_AT, UnitDetector, times};
use crate::columns::{Columns, Field, Unit};

/// A sector, and a page of those who write traces.
const SECTOR: Unit = Unit::Bytes(512);
const BYTES: Unit = Unit::Bytes(1);

/// Shares in percent: of numbers that have the same place in a page, and of requests that are
/// shorter than one.
const SAME_PLACE: usize = 75;
const HALF: u64 = 50;

/// Number of a sector from which on it is beyond the largest disks.
const BEYOND_SECTORS: u64 = 8 * LARGEST_DISK;

/// Another unit of a field, and what speaks for it.
struct Other<U> {
    why: String,
    unit: U,
}

fn other<U>(why: Option<String>, unit: U) -> Option<Other<U>> {
    why.map(|why| Other { why, unit })
}

/// The doubt after the numbers that were seen: one sentence on all fields, since one line of flags
/// reads them.
pub(super) fn doubt(watch: &UnitDetector, columns: &Columns) -> Option<String> {
    let mut meant = columns.clone();
    let (mut said, mut units, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let judged = Judged::of(watch, columns);
    // Words of a program are no requests to a disk.
    meant.sure.size |= judged.is_memory;
    for (field, other_field) in columns.fields.iter().zip(&mut meant.fields) {
        let (what, is_read, is, why) = match (field, &judged) {
            (Field::Offset(unit), Judged { place: Some(other), .. }) => {
                *other_field = Field::Offset(other.unit);
                meant.sure.place = true;
                let what = if *unit == Unit::Pages { "pages" } else { "offsets" };
                (what, in_words(*unit), in_words(other.unit), &other.why)
            }
            (Field::Size(unit), Judged { size: Some(other), .. }) => {
                *other_field = Field::Size(other.unit);
                meant.sure.size = true;
                ("sizes", in_words(*unit), in_words(other.unit), &other.why)
            }
            (Field::Time(unit), Judged { time: Some((why, other)), .. }) => {
                *other_field = Field::Time(*other);
                meant.sure.time = true;
                let name = |unit| times::in_words(unit).to_owned();
                ("times", name(*unit), name(*other), why)
            }
            _ => continue,
        };
        said.push(format!("{what} look like {is}, for {why}"));
        if !units.contains(&is_read) {
            units.push(is_read);
        }
        kept.push(format!("{}!", columns.field_text(field)));
    }
    let flags = meant.flags();
    let (units, kept) = (units.join(" and "), kept.join(" and "));
    let said = said.join("; ");
    (!said.is_empty()).then(|| format!("{said}: {flags} reads them so; if they are {units}, write {kept}"))
}

fn in_words(unit: Unit) -> String {
    match unit {
        Unit::Bytes(1) => "bytes".into(),
        Unit::Bytes(512) => "sectors of 512 bytes".into(),
        Unit::Bytes(bytes) => format!("blocks of {bytes} bytes"),
        Unit::Pages => "pages".into(),
        Unit::Hex(1) => "hexadecimal bytes".into(),
        Unit::Hex(bytes) => format!("hexadecimal blocks of {bytes} bytes"),
    }
}

/// The other units of the fields of a description.
struct Judged {
    place: Option<Other<Unit>>,
    size: Option<Other<Unit>>,
    time: Option<(String, u64)>,
    is_memory: bool,
}

impl Judged {
    fn of(watch: &UnitDetector, columns: &Columns) -> Judged {
        let place = columns.fields.iter().find_map(|field| match field {
            Field::Offset(unit) => Some(*unit),
            _ => None,
        });
        let size = columns.fields.iter().find_map(|field| match field {
            Field::Size(unit) => Some(*unit),
            _ => None,
        });
        let time = columns.fields.iter().find_map(|field| match field {
            Field::Time(unit) => Some(*unit),
            _ => None,
        });
        let is_memory = columns.is_memory
            || matches!(place, Some(Unit::Hex(_)))
            || place == Some(BYTES) && watch.number.most() >= BEYOND_SECTORS;
        let sure = columns.sure;
        let page = Unit::Bytes(watch.opts.page_size);
        let other_place = place.filter(|_| enough(watch)).and_then(|unit| match is_memory {
            true => of_memory(watch, unit, page),
            false => of_disk(watch, unit, size, page),
        });
        let of_size = |(place, size)| size_of_disk(watch, place, size, other_place.as_ref().map(|of| of.unit), page);
        let other_size = place.zip(size).filter(|_| !is_memory && enough(watch)).and_then(of_size);
        let other_time = time.and_then(|unit| times::other_unit(watch, unit, is_memory));
        Judged {
            place: other_place.filter(|_| !sure.place),
            size: other_size.filter(|_| !sure.size),
            time: other_time.filter(|_| !sure.time),
            is_memory,
        }
    }
}

/// Addresses, as [`super::table`] has them.
fn of_memory(watch: &UnitDetector, unit: Unit, page: Unit) -> Option<Other<Unit>> {
    let pages = match (unit, page) {
        (BYTES, _) => page,
        (Unit::Hex(1), Unit::Bytes(bytes)) => Unit::Hex(bytes),
        _ => return None,
    };
    let low = watch.number.low();
    let is_low = (low >= MOST).then(|| format!("{low} % are below 64 KiB, where Linux gives programs no memory"));
    let inside = 100 * watch.inside / watch.wide.max(1);
    let is_inside = (watch.wide >= LEAST as u64 && inside >= HALF)
        .then(|| format!("{inside} % of the accesses of 4 bytes and more begin inside a word"));
    other(is_low.or(is_inside), pages)
}

/// Places on a disk or in a file.
fn of_disk(watch: &UnitDetector, unit: Unit, size: Option<Unit>, page: Unit) -> Option<Other<Unit>> {
    let begin_anywhere = watch.number.aligned() < SAME_PLACE && watch.number.most() < LARGEST_DISK;
    match unit {
        BYTES => {
            let blocks = if begin_anywhere { page } else { SECTOR };
            other(odd(&watch.number, "offsets"), blocks)
        }
        // Numbers of pages, and of blocks of that size.
        _ if unit == Unit::Pages || unit == page => {
            let as_bytes = multiples(watch, 512).or_else(|| beyond_pages(watch));
            let as_blocks = |by: u64, bytes| other(multiples(watch, by), Unit::Bytes(bytes));
            let blocks = || as_blocks(8, 512).or_else(|| as_blocks(4, 1024)).or_else(|| as_blocks(2, 2048));
            other(as_bytes, BYTES).or_else(blocks)
        }
        SECTOR => {
            let few = watch.count.few();
            let short = || {
                let why = format!("{few} % of the accesses are shorter than a page, and they begin anywhere in one");
                (begin_anywhere && size.is_some() && few > HALF).then_some(why)
            };
            let follows = watch.follows * CONTINUES >= watch.seen.min(LOOKED_AT);
            let whole = || match size {
                Some(BYTES) => anywhere(watch),
                Some(SECTOR) if begin_anywhere && !follows && watch.count.eighths() >= MOST => {
                    Some("accesses of whole pages begin anywhere in a page".into())
                }
                None if begin_anywhere && watch.number.aligned() < HALF as usize => {
                    Some("they begin anywhere in a page".into())
                }
                _ => None,
            };
            other(multiples(watch, 512), BYTES).or_else(|| other(whole().or_else(short), page))
        }
        _ => other(multiples(watch, 512), BYTES),
    }
}

/// Sizes beside places on a disk. `meant`: the unit that the places could be in.
fn size_of_disk(watch: &UnitDetector, place: Unit, size: Unit, meant: Option<Unit>, page: Unit) -> Option<Other<Unit>> {
    let count = &watch.count;
    let is_page = |unit: Unit| unit == Unit::Pages || unit == page;
    let by = count.multiple_of().min(4096);
    let all = |by| Some(format!("all are multiples of {by}"));
    match size {
        // A cache of pages has values of any length.
        BYTES if is_page(place) && meant.is_none() => None,
        BYTES => {
            let in_pages = meant.is_some_and(is_page) || meant.is_none() && watch.number.aligned() >= SAME_PLACE;
            let unit = if by < 8 && in_pages { page } else { SECTOR };
            other(odd(count, "sizes"), unit)
        }
        _ if is_page(size) && by >= 512 => other(all(by), BYTES),
        // Requests of 4 pages each are nothing special.
        _ if is_page(size) && by >= 8 => other(all(by), SECTOR),
        _ if is_page(size) && by == 4 && !count.is_constant() => other(all(by), Unit::Bytes(1024)),
        SECTOR if by >= 512 => other(all(by), BYTES),
        SECTOR => {
            let begin_whole = match place {
                BYTES => watch.number.whole_pages() >= MOST,
                _ => watch.number.aligned() as u64 >= MOST,
            };
            let parts = 100 - count.eighths();
            let why = format!("{parts} % are no whole pages");
            let is_short = meant.is_some_and(is_page) || is_page(place) || begin_whole && meant != Some(SECTOR);
            other((is_short && parts > HALF).then_some(why), page)
        }
        _ => None,
    }
}
