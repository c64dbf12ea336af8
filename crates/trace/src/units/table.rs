//! The other units and orders of columns that each format's numbers could be meant in, what speaks
//! for each, and the flags for both.

use super::column::{Column, LEAST};
use super::times::{no_filetime, unix_time, unix_unit};
use super::{LOOKED_AT, UnitDetector};
use crate::format::Format;
use crate::options::OpenOptions;

/// From here on numbers are no pages: these would be beyond 48 bits of addresses.
pub(super) const BEYOND_PAGES: u64 = 1 << 36;

/// Pages of the largest disks: 128 TiB.
pub(super) const LARGEST_DISK: u64 = 1 << 35;

/// Share of records that go on where the one before ends, one in this many, that is no chance.
pub(super) const CONTINUES: u64 = 50;

/// Percentage from which a pattern is the rule, not noise.
pub(super) const MOST: u64 = 90;

/// Digits of addresses without a letter among them that are no chance: of hexadecimal ones 6 in 16
/// are letters.
const DIGITS: u64 = 64;

/// The matter of a doubt; each is doubted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// The unit of numbers.
    Unit,
    /// The unit of counts beside them.
    Counts,
    /// The unit of times.
    Times,
    /// The order of columns, or the base of digits.
    Columns,
}

impl Topic {
    /// Whether the flags say what is meant.
    fn is_settled(self, opts: &OpenOptions) -> bool {
        match self {
            Topic::Unit => opts.block_bytes.is_some() || opts.raw_ids,
            Topic::Counts => opts.block_bytes.is_some(),
            Topic::Times => opts.tick_ns.is_some(),
            Topic::Columns => opts.format.is_some(),
        }
    }
}

/// Another reading.
pub(super) struct Alternative {
    pub(super) formats: &'static [Format],
    pub(super) topic: Topic,
    /// The field and how it is read.
    read: &'static str,
    /// Sign that speaks for the other reading; `None`: nothing does.
    sign: fn(&UnitDetector) -> Option<String>,
    /// Meaning of the numbers in the other reading.
    pub(super) meant: &'static str,
    /// The flags for the other reading and for this one; `{page}` is the size of a page.
    flags: &'static str,
}

use Format::{Address, Arc, Drmemtrace, Lackey, Lirs, Msr, OracleGeneral, Plain, U32Be, U32Le, U64Be, U64Le, Vscsi};

/// Formats of numbers that are pages unless it is said otherwise.
const PAGES: &[Format] = &[Plain, Lirs, Arc, U32Le, U32Be, U64Le, U64Be];
const ADDRESSES: &[Format] = &[Lackey, Address, Drmemtrace];
const SECTORS: &[Format] = &[OracleGeneral, Vscsi];

/// In the order in which they are tried; the first of a topic is said.
pub(super) const TABLE: &[Alternative] = &[
    Alternative {
        formats: &[Plain, Lirs],
        topic: Topic::Columns,
        read: "numbers are read as pages",
        sign: |w| unix_time(&w.number),
        meant: "times",
        flags: "leave these out, or say with --format that they are pages",
    },
    Alternative {
        formats: &[U32Le, U32Be, U64Le, U64Be],
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: other_order,
        meant: "numbers in the other byte order",
        flags: "--format with le for be, or be for le, reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: &[U32Le, U32Be],
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: |w| w.number.alternates_with_zero().then(|| "every other one is 0".to_owned()).filter(|_| enough(w)),
        meant: "numbers of 64 bits",
        flags: "--format u64le or u64be reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: PAGES,
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: |w| multiples(w, 512),
        meant: "addresses in bytes",
        flags: "--block-bytes 1 reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: &[U32Le, U32Be, U64Le, U64Be],
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: lowest_byte,
        meant: "numbers in the other byte order",
        flags: "--format with le for be, or be for le, reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: &[U64Le, U64Be],
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: beyond_pages,
        meant: "addresses in bytes, keys or numbers of 32 bits",
        flags: "--block-bytes 1 reads them as addresses, --format u32le or u32be as two each; if they are pages \
                or keys, give --block-bytes {page}",
    },
    Alternative {
        formats: PAGES,
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: beyond_pages,
        meant: "addresses in bytes, or keys",
        flags: "--block-bytes 1 reads them as addresses; if they are pages or keys, give --block-bytes {page}",
    },
    Alternative {
        formats: PAGES,
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: |w| multiples(w, 8),
        meant: "sectors of 512 bytes",
        flags: "--block-bytes 512 reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: PAGES,
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: |w| multiples(w, 4),
        meant: "blocks of 1024 bytes",
        flags: "--block-bytes 1024 reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: PAGES,
        topic: Topic::Unit,
        read: "numbers are read as pages",
        sign: |w| multiples(w, 2),
        meant: "blocks of 2048 bytes",
        flags: "--block-bytes 2048 reads them so; if they are pages, give --block-bytes {page}",
    },
    Alternative {
        formats: &[Arc],
        topic: Topic::Columns,
        read: "the four numbers are read as start, count, unused and request",
        sign: columns_of_arc,
        meant: "another order, such as time first",
        flags: "to read it, write a line as start, count, 0 and the line's number, or the page alone; --format arc says \
                that it is this order",
    },
    Alternative {
        formats: &[Arc],
        topic: Topic::Counts,
        read: "the second number is read as a count of pages",
        sign: counts_of_arc,
        meant: "sizes in bytes, sectors or KiB",
        flags: "--block-bytes 1 reads start and count as bytes, 512 as sectors; if they are pages, give \
                --block-bytes {page}",
    },
    Alternative {
        formats: SECTORS,
        topic: Topic::Unit,
        read: "numbers are read as sectors of 512 bytes",
        sign: |w| multiples(w, 512),
        meant: "addresses in bytes",
        flags: "--block-bytes 1 reads them so; if they are sectors, give --block-bytes 512",
    },
    Alternative {
        formats: &[OracleGeneral],
        topic: Topic::Unit,
        read: "ids are read as sectors of 512 bytes, as block traces have them",
        sign: keys,
        meant: "keys of a cache",
        flags: "--raw-ids reads an id as a page; if they are sectors, give --block-bytes 512",
    },
    Alternative {
        formats: &[Vscsi],
        topic: Topic::Unit,
        read: "numbers are read as sectors of 512 bytes",
        sign: anywhere,
        meant: "pages or other blocks",
        flags: "--block-bytes {page} reads them as pages; if they are sectors, give --block-bytes 512",
    },
    Alternative {
        formats: &[Vscsi],
        topic: Topic::Counts,
        read: "lengths are read as bytes",
        sign: |w| odd(&w.count, "lengths").filter(|_| enough(w)),
        meant: "sectors",
        flags: "no flag reads these, but columns of text with offset:512,size:512 do; if they are bytes, give \
                --block-bytes 512",
    },
    Alternative {
        formats: &[Msr],
        topic: Topic::Unit,
        read: "offsets and sizes are read as bytes",
        sign: |w| odd(&w.number, "offsets").or_else(|| odd(&w.count, "sizes")).filter(|_| enough(w)),
        meant: "sectors or pages",
        flags: "--block-bytes 512 reads them as sectors, 4096 as pages; if they are bytes, give --block-bytes 1",
    },
    Alternative {
        formats: &[Msr],
        topic: Topic::Times,
        read: "times are read as ticks of 100 ns",
        sign: |w| unix_time(&w.time).or_else(|| no_filetime(&w.time)),
        meant: "times in another unit",
        flags: "--tick-ns {ticks}; if they are ticks of 100 ns, give --tick-ns 100",
    },
    Alternative {
        formats: &[Vscsi],
        topic: Topic::Times,
        read: "times are read as microseconds",
        sign: |w| unix_time(&w.time).filter(|why| !why.contains("microseconds")),
        meant: "times in another unit",
        flags: "--tick-ns {ticks}; if they are microseconds, give --tick-ns 1000",
    },
    Alternative {
        formats: &[Lackey, Address],
        topic: Topic::Columns,
        read: "addresses are read as hexadecimal",
        sign: |w| {
            let why = format!("there is no letter among {} digits", w.digits);
            (enough(w) && w.digits >= DIGITS && !w.has_letter).then_some(why)
        },
        meant: "decimal numbers",
        flags: "to read them, write these with 0x and in hexadecimal; if they are, give --format",
    },
    Alternative {
        formats: ADDRESSES,
        topic: Topic::Unit,
        read: "addresses are read as bytes",
        sign: |w| {
            let low = w.number.low();
            let why = format!("{low} % are below 64 KiB, where Linux gives programs no memory");
            (enough(w) && low >= MOST).then_some(why)
        },
        meant: "numbers of pages",
        flags: "--block-bytes {page} reads them so; if they are bytes, give --block-bytes 1",
    },
    Alternative {
        formats: &[Lackey, Drmemtrace],
        topic: Topic::Unit,
        read: "addresses are read as bytes",
        sign: |w| {
            let inside = 100 * w.inside / w.wide.max(1);
            let why = format!("{inside} % of the accesses of 4 bytes and more begin inside a word");
            (enough(w) && w.wide >= LEAST as u64 && inside >= 50).then_some(why)
        },
        meant: "numbers of pages or sectors",
        flags: "--block-bytes {page} reads them as pages, 512 as sectors; if they are bytes, give --block-bytes 1",
    },
];

/// Doubts after the numbers that were seen, a sentence a topic.
pub(super) fn doubts(watch: &UnitDetector) -> Vec<String> {
    let mut topics = Vec::new();
    let mut said = Vec::new();
    for of in TABLE.iter().filter(|of| of.formats.contains(&watch.format)) {
        if topics.contains(&of.topic) || of.topic.is_settled(&watch.opts) {
            continue;
        }
        if let Some(why) = (of.sign)(watch) {
            topics.push(of.topic);
            let flags = of.flags.replace("{page}", &watch.opts.page_size.to_string());
            let flags = flags.replace("{ticks}", &ticks(&watch.time));
            // Signs that name a unit need no other word for it.
            let is_named = why.starts_with("they look like ");
            let meant = if is_named { String::new() } else { format!(": they look like {}", of.meant) };
            said.push(format!("{}, but {why}{meant}; {flags}", of.read));
        }
    }
    said
}

/// The ticks that times look like; if like none, all that are common.
fn ticks(times: &Column) -> String {
    match unix_unit(times) {
        Some((name, ticks)) => format!("{ticks} reads them as {name}"),
        None => "1000000000 reads them as seconds, 1000000 as milliseconds, 1000 as microseconds".into(),
    }
}

pub(super) fn enough(watch: &UnitDetector) -> bool {
    watch.number.is_enough()
}

/// Whether all are multiples of a unit; the largest one that is a block is said.
pub(super) fn multiples(watch: &UnitDetector, unit: u64) -> Option<String> {
    let found = watch.number.multiple_of().min(4096);
    (enough(watch) && found >= unit).then(|| format!("all are multiples of {found}"))
}

pub(super) fn beyond_pages(watch: &UnitDetector) -> Option<String> {
    (enough(watch) && watch.number.most() >= BEYOND_PAGES)
        .then(|| format!("{} is more than memory or a disk has pages", watch.number.most()))
}

/// Numbers that have nothing but zeros in their lower half.
fn other_order(watch: &UnitDetector) -> Option<String> {
    let half = if matches!(watch.format, U32Le | U32Be) { 1 << 16 } else { 1 << 32 };
    (enough(watch) && watch.number.multiple_of() >= half).then(|| format!("all are multiples of {half}"))
}

pub(super) fn odd(column: &Column, what: &str) -> Option<String> {
    let odd = column.odd();
    (odd >= 100 - MOST).then(|| format!("{odd} % of the {what} are not multiples of 512"))
}

fn keys(watch: &UnitDetector) -> Option<String> {
    odd(&watch.count, "sizes").filter(|_| enough(watch)).or_else(|| anywhere(watch))
}

/// Sectors of whole pages: these begin at the same place in a page, unless there are partitions of
/// several kinds.
///
/// Accesses that go on where the one before ended as sectors are sectors, and so are numbers that
/// would be beyond the largest disks as pages.
pub(super) fn anywhere(watch: &UnitDetector) -> Option<String> {
    let are_sectors = watch.continues * CONTINUES >= watch.seen.min(LOOKED_AT) || watch.number.most() >= LARGEST_DISK;
    (enough(watch) && !are_sectors && watch.number.aligned() < 75 && watch.count.whole_pages() >= MOST)
        .then(|| "accesses of whole pages begin anywhere in a page".to_owned())
}

/// The lowest byte of numbers in their own order is the one with most values.
fn lowest_byte(watch: &UnitDetector) -> Option<String> {
    let highest = if matches!(watch.format, U32Le | U32Be) { 3 } else { 7 };
    let [low, high] = watch.number.bytes(highest);
    (enough(watch) && 4 * low < high)
        .then(|| format!("the lowest byte has {low} different values and the highest {high}"))
}

fn columns_of_arc(watch: &UnitDetector) -> Option<String> {
    let UnitDetector { number, count, third, request, .. } = watch;
    if ![number, count, third, request].into_iter().any(Column::is_enough) {
        return None;
    }
    let rises = number.is_enough() && !number.goes_down();
    if let Some(why) = unix_time(number) {
        Some(format!("the first: {why}"))
    } else if request.goes_down() {
        Some("the fourth goes down, which the number of a request does not".to_owned())
    } else if request.is_constant() && request.most() != 0 {
        // Where requests have no numbers, as in the published OLTP, there is 0.
        Some(format!("the fourth is always {}, which the number of a request is not", request.most()))
    } else if count.is_enough() && count.distinct() > number.distinct() {
        Some("the second has more different values than the first".to_owned())
    } else if third.is_enough() && third.distinct() > number.distinct() {
        Some("the third, which has no use, has more different values than the first".to_owned())
    } else if count.is_enough() && !count.goes_down() {
        Some("the second never goes down".to_owned())
    } else if rises && !third.is_constant() {
        Some("the first never goes down, and the third, which has no use, is not always the same".to_owned())
    } else if rises && 2 * watch.overlaps > watch.seen {
        Some("the first never goes down, and more than half of the requests begin inside the one before".to_owned())
    } else {
        None
    }
}

fn counts_of_arc(watch: &UnitDetector) -> Option<String> {
    let unit = watch.count.multiple_of().min(4096);
    // Requests of 4 pages each are nothing special.
    (enough(watch) && (unit >= 8 || unit == 4 && !watch.count.is_constant()))
        .then(|| format!("all are multiples of {unit}"))
}
