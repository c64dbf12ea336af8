//! Every format, written in every unit and order of columns that somebody could have written: what
//! is not read as it was meant is doubted, or the list of what nothing tells has it and why.

use super::table::{TABLE, Topic};
use crate::format::Format;
use crate::input::Input;
use crate::open::open_input;
use crate::options::OpenOptions;
use crate::record::RecordSource;
use crate::summary::Summary;
use std::fmt::Write as _;

/// Times: the first one, and the nanoseconds of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clock(u64, u64);

const FILETIME: Clock = Clock(128_166_372_003_061_629, 100);
const UNIX: [Clock; 4] = [
    Clock(1_600_000_000, 1_000_000_000),
    Clock(1_600_000_000_000, 1_000_000),
    Clock(1_600_000_000_000_000, 1000),
    Clock(1_600_000_000_000_000_000, 1),
];

/// How a file is written.
#[derive(Clone, Copy, Debug)]
struct Writing {
    /// Bytes that numbers and counts beside them count.
    number: u64,
    count: u64,
    clock: Clock,
    decimal: bool,
    /// Columns of arc by place: start, count, unused, request, time, write.
    columns: [usize; 4],
}

/// Accesses of a disk: page, pages, nanoseconds.
fn accesses() -> Vec<(u64, u64, u64)> {
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..2000).map(|i| (next(50_000), 1 + next(4), 3_100_000_000 * i)).collect()
}

/// Writing of a format that is honest.
fn own(format: Format) -> Writing {
    let (number, count) = match format {
        Format::Msr | Format::Lackey | Format::Address | Format::Drmemtrace => (1, 1),
        Format::OracleGeneral | Format::Vscsi => (512, 1),
        _ => (4096, 4096),
    };
    let clock = match format {
        Format::Msr => FILETIME,
        Format::Vscsi => Clock(0, 1000),
        _ => Clock(0, 1_000_000_000),
    };
    Writing { number, count, clock, decimal: false, columns: [0, 1, 2, 3] }
}

const FORMATS: [Format; 13] = [
    Format::Plain,
    Format::Lirs,
    Format::Arc,
    Format::U32Le,
    Format::U32Be,
    Format::U64Le,
    Format::U64Be,
    Format::OracleGeneral,
    Format::Vscsi,
    Format::Msr,
    Format::Lackey,
    Format::Address,
    Format::Drmemtrace,
];

/// Formats whose unit is part of the format.
const SURE: [Format; 10] = [
    Format::Native,
    Format::PgTrace,
    Format::Blkparse,
    Format::Blktrace,
    Format::Biosnoop,
    Format::Strace,
    Format::Events,
    Format::PerfTrace,
    Format::DrcachesimView,
    Format::IoTracer,
];

fn write(format: Format, how: Writing) -> Vec<u8> {
    let mut text = String::new();
    let mut bytes = Vec::new();
    if format == Format::Drmemtrace {
        bytes.extend([25, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }
    for (i, (page, pages, ns)) in accesses().into_iter().enumerate() {
        // Programs touch words anywhere in a page.
        let is_memory = matches!(format, Format::Lackey | Format::Address | Format::Drmemtrace);
        let at = if is_memory { 0x7f00_0000_0000 + page * 4096 + i as u64 % 500 * 8 } else { page * 4096 };
        let (number, count) = (at / how.number, pages * 4096 / how.count);
        let time = how.clock.0 + ns / how.clock.1;
        let write = i % 3 == 0;
        let digits = if how.decimal { number.to_string() } else { format!("{number:x}") };
        let columns = [number, count, 0, i as u64, time, u64::from(write)];
        let _ = match format {
            Format::Plain => writeln!(text, "{number}{}", if write { " w" } else { "" }),
            Format::Lirs => writeln!(text, "{number}"),
            Format::Arc => {
                let [a, b, c, d] = how.columns.map(|place| columns[place]);
                writeln!(text, "{a} {b} {c} {d}")
            }
            Format::Msr => {
                let op = if write { "Write" } else { "Read" };
                writeln!(text, "{time},hm,1,{op},{number},{count},99")
            }
            Format::Lackey => writeln!(text, " {} {digits},8", if write { "S" } else { "L" }),
            Format::Address => writeln!(text, "{} 0x{digits} 3", if write { "s" } else { "l" }),
            _ => {
                bytes.extend(record(format, number, count, time, write));
                Ok(())
            }
        };
    }
    if format == Format::Drmemtrace {
        bytes.extend([26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    if bytes.is_empty() { text.into_bytes() } else { bytes }
}

fn record(format: Format, number: u64, count: u64, time: u64, write: bool) -> Vec<u8> {
    let small = number as u32;
    let parts: &[&[u8]] = match format {
        Format::U32Le => &[&small.to_le_bytes()],
        Format::U32Be => &[&small.to_be_bytes()],
        Format::U64Le => &[&number.to_le_bytes()],
        Format::U64Be => &[&number.to_be_bytes()],
        Format::OracleGeneral => {
            &[&(time as u32).to_le_bytes(), &number.to_le_bytes(), &(count as u32).to_le_bytes(), &[255; 8]]
        }
        Format::Vscsi => &[
            &[0; 4],
            &(count as u32).to_le_bytes(),
            &[1, 0, 0, 0, if write { 0x2a } else { 0x28 }, 0, 0, 1],
            &number.to_le_bytes(),
            &time.to_le_bytes(),
        ],
        Format::Drmemtrace => &[&[u8::from(write), 0, 8, 0], &number.to_le_bytes()],
        _ => panic!("{format} is text"),
    };
    parts.concat()
}

fn open(bytes: &[u8], opts: &OpenOptions) -> Result<Box<dyn RecordSource>, crate::TraceError> {
    open_input(Input::from_reader("t", Box::new(std::io::Cursor::new(bytes.to_vec())))?, opts)
}

/// The doubts of a file that is read to its end; `Err` is an error of the reader.
fn notes(bytes: &[u8], opts: &OpenOptions) -> Result<Vec<String>, String> {
    let mut source = open(bytes, opts).map_err(|e| e.to_string())?;
    Summary::of(&mut source).map_err(|e| e.to_string())?;
    Ok(source.header().doubts.clone())
}

/// Bare numbers have no mark.
fn options(format: Format) -> OpenOptions {
    let bare = matches!(format, Format::U32Le | Format::U32Be | Format::U64Le | Format::U64Be);
    OpenOptions { format: bare.then_some(format), ..OpenOptions::default() }
}

/// Whether there is a doubt; a note is an error under `strict`, and nothing else is.
#[track_caller]
fn is_doubted(bytes: &[u8], opts: &OpenOptions, what: &str) -> bool {
    let strict = open(bytes, &OpenOptions { strict: true, ..opts.clone() }).map(drop);
    match notes(bytes, opts) {
        Ok(notes) if notes.is_empty() => {
            assert_eq!(strict.map_err(|e| e.to_string()), Ok(()), "{what}");
            false
        }
        Ok(notes) => {
            let error = strict.expect_err(what).to_string();
            assert_eq!(error, format!("t: --strict: {}", notes[0]), "{what}");
            notes.iter().for_each(|note| assert!(note.contains(", but ") && note.contains("--"), "{what}: {note}"));
            true
        }
        // Impossible numbers are refused in any case.
        Err(_) => true,
    }
}

#[test]
fn honest_files_are_not_doubted() {
    for format in FORMATS {
        let bytes = write(format, own(format));
        assert_eq!(notes(&bytes, &options(format)), Ok(Vec::new()), "{format}");
        assert!(!is_doubted(&bytes, &options(format), format.name()));
    }
}

/// Nothing in a file of the format tells this unit from its own: why.
fn nothing_tells(format: Format, topic: Topic, unit: u64) -> Option<&'static str> {
    match (format, topic, unit) {
        (Format::Address, Topic::Unit, _) => Some("there are no sizes, and programs touch bytes, too"),
        (Format::Arc, Topic::Counts, 2048) => Some("requests of an even number of pages are common"),
        _ => None,
    }
}

#[test]
fn every_unit_of_numbers_and_counts_is_doubted_but_the_own_one() {
    for format in FORMATS {
        let own = own(format);
        let has_count = matches!(format, Format::Arc | Format::Msr | Format::OracleGeneral | Format::Vscsi);
        for unit in [1, 512, 1024, 2048, 4096] {
            let both = Writing { number: unit, ..own };
            let cases = [(Topic::Unit, both, own.number), (Topic::Counts, Writing { count: unit, ..own }, own.count)];
            for (topic, how, of_format) in cases {
                if topic == Topic::Counts && !has_count || nothing_tells(format, topic, unit).is_some() {
                    continue;
                }
                let what = format!("{format}: {topic:?} of {unit}");
                assert_eq!(is_doubted(&write(format, how), &options(format), &what), unit != of_format, "{what}");
            }
        }
    }
}

#[test]
fn flags_settle_what_they_say() {
    for format in FORMATS {
        for unit in [1, 512, 4096] {
            let bytes = write(format, Writing { number: unit, ..own(format) });
            let opts = OpenOptions { block_bytes: Some(unit as u32), format: Some(format), ..OpenOptions::default() };
            assert_eq!(notes(&bytes, &opts), Ok(Vec::new()), "{format} in units of {unit}");
        }
    }
}

#[test]
fn times_of_another_unit_are_doubted() {
    for clock in UNIX.into_iter().chain([Clock(0, 1), Clock(0, 1_000_000)]) {
        let bytes = write(Format::Msr, Writing { clock, ..own(Format::Msr) });
        assert!(is_doubted(&bytes, &OpenOptions::default(), "msr"), "{clock:?}");
        let settled = OpenOptions { tick_ns: Some(clock.1), ..OpenOptions::default() };
        assert_eq!(notes(&bytes, &settled), Ok(Vec::new()), "{clock:?}");
        // Relative times of any unit look the same.
        if clock.0 > 0 {
            let bytes = write(Format::Vscsi, Writing { clock, ..own(Format::Vscsi) });
            assert_eq!(is_doubted(&bytes, &OpenOptions::default(), "vscsi"), clock.1 != 1000, "{clock:?}");
        }
    }
    // A column of times, where pages are expected.
    for Clock(first, tick) in UNIX {
        let text: String = accesses().iter().map(|(.., ns)| format!("{}\n", first + ns / tick)).collect();
        let notes = notes(text.as_bytes(), &OpenOptions::default()).expect("numbers");
        assert!(notes[0].contains("since 1970"), "{notes:?}");
    }
}

#[test]
fn regression_columns_in_another_order_are_not_taken_for_arc_in_silence() {
    let own = own(Format::Arc);
    let mut orders = 0;
    // Start, count, unused, request, time, write.
    for n in 0..6usize.pow(4) {
        let columns = [n / 216, n / 36 % 6, n / 6 % 6, n % 6];
        let is_twice = (0..4).any(|i| columns[..i].contains(&columns[i]));
        if is_twice || !columns.contains(&0) {
            continue;
        }
        orders += 1;
        for clock in UNIX.into_iter().chain([Clock(0, 1_000_000)]) {
            let bytes = write(Format::Arc, Writing { columns, clock, ..own });
            let doubted = is_doubted(&bytes, &OpenOptions::default(), "arc");
            // The third is not used, a time rises as the number of a request does, and 0 is none.
            let is_right = columns[..2] == [0, 1] && matches!(columns[3], 2..=4);
            assert_eq!(doubted, !is_right, "{columns:?} {clock:?}");
        }
    }
    assert_eq!(orders, 240);
}

#[test]
fn bare_numbers_of_another_width_or_order_are_doubted() {
    let bare = [Format::U32Le, Format::U32Be, Format::U64Le, Format::U64Be];
    for written in bare {
        let bytes = write(written, own(written));
        for read in bare {
            let what = format!("{written} as {read}");
            assert_eq!(is_doubted(&bytes, &options(read), &what), read != written, "{what}");
        }
    }
}

#[test]
fn keys_are_doubted() {
    let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..100).map(|i| format!("{}\n", key(i))).collect();
    assert!(is_doubted(text.as_bytes(), &OpenOptions::default(), "plain"));
    for (id, size) in
        [(&key as &dyn Fn(u64) -> u64, 4096), (&|i| i * 37 % 91, 62), (&|i| i, 1), (&|i| key(i) >> 32, 4096)]
    {
        let bytes: Vec<u8> = (0..100).flat_map(|i| record(Format::OracleGeneral, id(i), size, i, false)).collect();
        assert!(is_doubted(&bytes, &OpenOptions::default(), "oracle-general"));
    }
}

#[test]
fn decimal_addresses_are_doubted_where_hexadecimal_ones_are_read() {
    for format in [Format::Lackey, Format::Address] {
        let bytes = write(format, Writing { decimal: true, ..own(format) });
        assert!(notes(&bytes, &OpenOptions::default()).expect("digits")[0].contains("no letter"), "{format}");
    }
    let low = |i: u64| format!(" L {:x},8\n", i * 8);
    let text: String = (0..100).map(low).collect();
    assert!(is_doubted(text.as_bytes(), &OpenOptions::default(), "pages"));
}

/// The end of a trace is looked at as its front is: 100,000 pages that begin with multiples of 8
/// are pages, and what comes behind the front is doubted, too.
#[test]
fn the_whole_trace_is_judged() {
    let text: String = (0..100_000).map(|i| format!("{}\n", if i < 50_000 { i * 8 } else { i })).collect();
    assert!(!is_doubted(text.as_bytes(), &OpenOptions::default(), "pages"));
    let text: String = (0..100_000).map(|i| format!("{}\n", if i < 50_000 { i % 10 } else { i << 20 })).collect();
    assert!(is_doubted(text.as_bytes(), &OpenOptions::default(), "addresses"));
    let few = "0\n8\n16\n24\n";
    assert!(!is_doubted(few.as_bytes(), &OpenOptions::default(), "too few"));
}

#[test]
fn every_format_has_alternatives_or_a_unit_of_its_own() {
    for (format, ..) in Format::all() {
        let has = TABLE.iter().any(|of| of.formats.contains(&format));
        assert_ne!(has, SURE.contains(&format), "{format}");
        assert_eq!(has, FORMATS.contains(&format), "{format} is not tried");
    }
    TABLE.iter().for_each(|of| assert!(!of.meant.is_empty()));
}

/// Doubts after a file has been read.
fn doubts(bytes: Vec<u8>, format: Format) -> Vec<String> {
    let opts = OpenOptions { format: Some(format), ..OpenOptions::default() };
    let input = Input::from_reader("t", Box::new(std::io::Cursor::new(bytes))).expect("an input");
    let mut source = open_input(input, &opts).expect("opens");
    while source.next_chunk(&mut Vec::new()).expect("reads") {}
    source.header().doubts.clone()
}

/// Records of whole pages that begin anywhere in a page, from a sector on; half of them go on where
/// the one before ended, or none.
fn unaligned(first: u64, goes_on: bool) -> Vec<u8> {
    let record = |n: u64| {
        let at = if goes_on { n / 2 } else { n };
        let number = first + at * 977 % 40_009 + 8 * (n % 2) * u64::from(goes_on);
        let command = [1, 0, 0, 0, 0x28, 0, 0, 1];
        [&[0; 4][..], &4096u32.to_le_bytes(), &command, &number.to_le_bytes(), &(1000 * n).to_le_bytes()].concat()
    };
    (0..2000).flat_map(record).collect()
}

/// Sectors that go on where others end, and those of large disks, are no pages, as a note said.
#[test]
fn regression_no_unit_is_offered_in_which_a_disk_makes_no_sense() {
    for (first, goes_on, is_offered) in [(0, false, true), (0, true, false), (1 << 36, false, false)] {
        let doubts = doubts(unaligned(first, goes_on), Format::Vscsi);
        assert_eq!(doubts.iter().any(|doubt| doubt.contains("as pages")), is_offered, "{first}: {doubts:?}");
    }
}

/// Times in a unit that they look like are offered in that one and no other.
#[test]
fn times_are_offered_in_the_unit_that_they_look_like() {
    for (Clock(first, tick_ns), name) in
        UNIX.into_iter().zip(["seconds", "milliseconds", "microseconds", "nanoseconds"])
    {
        let how = Writing { clock: Clock(first, tick_ns), ..own(Format::Msr) };
        let doubts = doubts(write(Format::Msr, how), Format::Msr);
        let want = format!("--tick-ns {tick_ns} reads them as {name}; if they are ticks of 100 ns, give --tick-ns 100");
        assert!(doubts.iter().any(|doubt| doubt.contains(&want)), "{want}: {doubts:?}");
    }
}
