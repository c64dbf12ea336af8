//! Columns, written in every unit that somebody could have written: what is not read as it was
//! meant is doubted, and the flags of the doubt read it as it was meant.

use refault_testing::{one_in, reports, traces};
use refault_trace::{Columns, Input, OpenOptions, RecordSource, TraceError, open_input, read_header};
use std::io::Cursor;

/// Times: the first one, and the nanoseconds of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clock(u64, u64);

const DATES: [Clock; 6] = [
    Clock(1_600_000_000, 1_000_000_000),
    Clock(1_600_000_000_000, 1_000_000),
    Clock(1_600_000_000_000_000, 1000),
    Clock(16_000_000_000_000_000, 100),
    Clock(128_166_372_003_061_629, 100),
    Clock(1_600_000_000_000_000_000, 1),
];

/// How a file is written: bytes that a place and a size count, and times.
#[derive(Clone, Copy, Debug)]
struct Writing {
    place: u64,
    size: u64,
    clock: Clock,
}

/// Accesses: byte, bytes, nanoseconds. Those of a program begin at words anywhere in its memory.
fn accesses(is_memory: bool) -> Vec<(u64, u64, u64)> {
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let access = |i: u64| match (is_memory, next(50_000), next(4)) {
        (true, page, _) => (0x7f00_0000_0000 + page * 4096 + i % 500 * 8, 8, 0),
        (false, page, pages) => (page * 4096, (1 + pages) * 4096, 3_100_000_000 * i),
    };
    (0..2000).map(access).collect()
}

/// A description: its fields, what is between them, lines in front, and whether it is of memory.
struct Described {
    name: String,
    fields: Vec<String>,
    separator: &'static str,
    lines: u64,
    is_memory: bool,
}

fn described() -> Vec<Described> {
    let fields = |text: &str| text.split(',').map(str::to_owned).collect();
    let named = Columns::all_named().map(|(name, text, what)| Described {
        name: name.to_owned(),
        fields: fields(text),
        separator: if what.contains("SPC")
            || ["alibaba", "tencent", "systor", "twitter", "libcachesim-csv", "meta-kv", "meta-kv-2022", "fio-log"]
                .contains(&name)
        {
            ","
        } else {
            " "
        },
        lines: u64::from(name.starts_with("fio-iolog")),
        is_memory: what.contains("memory"),
    });
    let places = ["page", "offset:bytes", "offset:512", "offset:pages", "offset:4096"];
    let sizes = ["_", "size:bytes", "size:512", "size:pages"];
    let times = ["ns", "100ns", "us", "ms", "s"];
    let pairs = places.into_iter().flat_map(|place| sizes.map(|size| (place, size)));
    let times = times.map(|time| format!("time:{time},op=R|W,offset:bytes,size:bytes"));
    let own = pairs.map(|(place, size)| format!("time:us,op=R|W,{place},{size}")).chain(times);
    let own = own.map(|text| Described {
        name: format!("columns:{text}"),
        fields: fields(&text),
        separator: ",",
        lines: 0,
        is_memory: false,
    });
    named.chain(own).collect()
}

impl Described {
    /// The unit of a field: bytes or nanoseconds.
    fn unit(&self, what: &str) -> Option<u64> {
        let unit = |field: &String| match field.split_once(':') {
            None if field == "page" && what == "offset" => Some(4096),
            Some((name, unit)) if name == what => Some(match unit {
                "bytes" | "hex" | "ns" => 1,
                "100ns" => 100,
                "us" => 1000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "pages" => 4096,
                number => number.parse().expect("a number"),
            }),
            _ => None,
        };
        self.fields.iter().find_map(unit)
    }

    fn own(&self) -> Writing {
        let tick = self.unit("time").unwrap_or(1);
        let clock = DATES.into_iter().find(|clock| clock.1 == tick).expect("a clock");
        let (place, size) = (self.unit("offset").unwrap_or(1), self.unit("size").unwrap_or(1));
        Writing { place, size, clock }
    }

    fn write(&self, how: Writing) -> String {
        let mut text = "fio version\n".repeat(self.lines as usize);
        for (i, (byte, bytes, ns)) in accesses(self.is_memory).into_iter().enumerate() {
            let field = |field: &String| match field.split([':', '=']).next().expect("a field") {
                "time" => (how.clock.0 + ns / how.clock.1).to_string(),
                "offset" if field.ends_with("hex") => format!("{:x}", byte / how.place),
                "offset" | "page" => (byte / how.place).to_string(),
                "size" if self.is_memory => bytes.to_string(),
                "size" => (bytes / how.size).to_string(),
                "op" => field[3..].split(['|', '+']).next().expect("a word").to_owned(),
                "is" => field[3..].to_owned(),
                "rwbs" => "R".to_owned(),
                "key" => format!("key{}", i * 7 % 300),
                _ => "1".to_owned(),
            };
            let line: Vec<_> = self.fields.iter().map(field).collect();
            text += &(line.join(self.separator) + "\n");
        }
        text
    }

    fn opts(&self) -> OpenOptions {
        let mut opts = OpenOptions::default();
        opts.set_format(&self.name).expect("a format");
        opts
    }
}

/// Time, first page and pages of each record.
type Read = Vec<(u64, u64, u32)>;

/// The records, and the doubts.
fn read(text: &str, opts: &OpenOptions) -> Result<(Read, Vec<String>), TraceError> {
    let input = Input::from_reader("t", Box::new(Cursor::new(text.as_bytes().to_vec())))?;
    let mut source = open_input(input, opts)?;
    let (mut chunk, mut records) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk)? {
        records.extend(chunk.iter().map(|record| (record.time_ns, record.page, record.pages)));
    }
    Ok((records, source.header().doubts.clone()))
}

/// The flags that a note names.
fn flags_of(note: &str) -> OpenOptions {
    let (_, flags) = note.split_once("--format '").unwrap_or_else(|| panic!("no flag: {note}"));
    let (format, rest) = flags.split_once('\'').expect("a quote");
    let mut opts = OpenOptions::default();
    opts.set_format(format).unwrap_or_else(|e| panic!("{note}: {e}"));
    let value = |flag: &str| rest.split_once(flag).and_then(|(_, value)| value.split_whitespace().next());
    let (separator, lines) = (value("--separator "), value("--skip-lines ").and_then(|n| n.parse().ok()));
    opts.columns = opts.columns.map(|c| c.with(separator, lines).expect("flags"));
    opts
}

/// Whether there is a doubt: also refused under `--strict`, and its flags read the file.
fn is_doubted(of: &Described, how: Writing, what: &str) -> bool {
    let (text, opts) = (of.write(how), of.opts());
    let strict = OpenOptions { strict: true, ..opts.clone() };
    let refused = read(&text, &strict).err().map(|e| e.to_string());
    match read(&text, &opts) {
        Ok((_, doubts)) if doubts.is_empty() => {
            assert_eq!(refused, None, "{what}");
            false
        }
        Ok((_, doubts)) => {
            assert_eq!(doubts.len(), 1, "{what}: {doubts:?}");
            assert_eq!(refused, Some(format!("t: --strict: {}", doubts[0])), "{what}");
            read_as_meant(&text, &flags_of(&doubts[0]), how, &format!("{what}: {}", doubts[0]));
            true
        }
        // Impossible numbers are refused in any case.
        Err(_) => true,
    }
}

/// The flags of a doubt read the pages and times that were meant.
#[track_caller]
fn read_as_meant(text: &str, opts: &OpenOptions, how: Writing, what: &str) {
    let strict = OpenOptions { strict: true, ..opts.clone() };
    let (records, doubts) = read(text, &strict).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(doubts, [""; 0], "{what}");
    let has = |column: &str| what.contains(column);
    let tick = how.clock.1;
    let meant = accesses(false).into_iter().map(|(byte, bytes, ns)| {
        let time = if has("time:") { ns / tick * tick } else { 0 };
        (time, byte / 4096, if has("size:") { bytes.div_ceil(4096) as u32 } else { 1 })
    });
    // Places of memory in sectors are read as pages, which is the commoner of the two.
    let is_told = records[0].1 < 1 << 30 && (has("size:") || how.place != 512);
    if is_told && (has("page") || has("offset:")) {
        assert_eq!(records, meant.collect::<Vec<_>>(), "{what}");
    }
}

/// Nothing in a file of these tells another unit from their own: why.
fn nothing_tells(of: &Described, field: &str, unit: u64) -> Option<&'static str> {
    let is = |place: u64, size: u64| of.unit("offset") == Some(place) && of.unit("size") == Some(size);
    match (&*of.name, field) {
        ("dinero" | "pinatrace" | "ramulator", "offset") => Some("there are no sizes, and programs touch bytes, too"),
        (_, "size") if of.is_memory => Some("programs touch as many bytes as they like"),
        (_, "size") if is(4096, 1) => Some("values of a cache are as long as they like"),
        (_, "both") if is(4096, 1) && unit == 4096 => Some("as above: the places are pages"),
        _ => None,
    }
}

#[test]
fn every_unit_of_places_and_sizes_is_doubted_but_the_own_one() {
    for of in described().into_iter().step_by(one_in(3)) {
        let own = of.own();
        if of.unit("offset").is_none() {
            continue;
        }
        for unit in [1, 512, 4096] {
            let both = Writing { place: unit, size: if of.unit("size").is_some() { unit } else { 1 }, ..own };
            let is_own =
                both.place == own.place && (of.unit("size").is_none() || of.is_memory || both.size == own.size);
            let place_own = unit == own.place;
            let cases = [
                ("both", both, is_own),
                ("offset", Writing { place: unit, ..own }, place_own),
                ("size", Writing { size: unit, ..own }, unit == own.size || of.unit("size").is_none()),
            ];
            for (field, how, is_own) in cases {
                if nothing_tells(&of, field, unit).is_some() || nothing_tells(&of, "offset", unit).is_some() {
                    continue;
                }
                let what = format!("{}: {field} of {unit}", of.name);
                assert_eq!(
                    is_doubted(&of, how, &what),
                    !is_own,
                    "{what}: {:?}",
                    read(&of.write(how), &of.opts()).map(|r| r.1)
                );
            }
        }
    }
}

#[test]
fn every_date_in_another_unit_is_doubted() {
    for of in described().into_iter().filter(|of| of.unit("time").is_some()).step_by(one_in(3)) {
        for clock in DATES {
            let what = format!("{}: {clock:?}", of.name);
            let doubted = is_doubted(&of, Writing { clock, ..of.own() }, &what);
            assert_eq!(doubted, Some(clock.1) != of.unit("time"), "{what}");
        }
        let tick = of.unit("time").expect("times");
        let what = format!("{}: from 0", of.name);
        assert!(!is_doubted(&of, Writing { clock: Clock(0, tick), ..of.own() }, &what), "{what}");
    }
}

/// Times from 0 look alike in every unit, but no disk takes a million requests a millisecond, no
/// trace lasts 30 years, and no clock is finer than a nanosecond.
#[test]
fn times_that_cannot_be_are_doubted() {
    let line = |i: u64, time: &str| format!("{time},{}\n", i * 977 % 5003);
    let text = |n: u64, time: &dyn Fn(u64) -> String| (0..n).map(|i| line(i, &time(i))).collect::<String>();
    let doubts = |text: &str, unit: &str| {
        let mut opts = OpenOptions::default();
        opts.set_format(&format!("columns:time:{unit},page")).expect("columns");
        read(text, &opts).expect("reads").1
    };
    let whole = text(10_000, &|i| i.to_string());
    assert!(doubts(&whole, "ns")[0].contains("10000 requests would come within 9999 ns"));
    ["100ns", "us", "ms", "s"].into_iter().for_each(|unit| assert_eq!(doubts(&whole, unit), [""; 0], "{unit}"));
    let slow = text(100, &|i| (i * 20_000_000).to_string());
    assert!(doubts(&slow, "s")[0].contains("the trace would last 62 years"));
    assert_eq!(doubts(&slow, "ms"), [""; 0]);
    let fine = text(100, &|i| format!("0.{:06}", i * 1009 + 1));
    assert!(doubts(&fine, "us")[0].contains("finer than a nanosecond"));
    assert_eq!(doubts(&fine, "s"), [""; 0]);
    let error = {
        let mut opts = OpenOptions::default();
        opts.set_format("columns:time:s,page").expect("columns");
        read("1600000000000000000,1\n", &opts).unwrap_err().to_string()
    };
    assert!(
        error.contains("looks like nanoseconds since 1970, which --format 'columns:time:ns,page' reads"),
        "{error}"
    );
}

#[test]
fn what_is_marked_as_meant_is_not_doubted() {
    let of = Described {
        name: "columns:time:us!,page!,size:bytes!".into(),
        fields: ["time:us", "offset:bytes", "size:512"].map(str::to_owned).to_vec(),
        separator: ",",
        lines: 0,
        is_memory: false,
    };
    let text = of.write(Writing { place: 1, size: 512, clock: DATES[0] });
    assert_eq!(read(&text, &of.opts()).expect("reads").1, [""; 0]);
}

/// A disk of a virtual machine, whose sectors begin anywhere, in columns of its units.
#[test]
fn a_real_disk_is_not_doubted() {
    let Some(traces) = traces() else { return };
    let bytes = std::fs::read(traces.join("block/cloudPhysicsIO.vscsi")).expect("readable");
    let number = |record: &[u8], at: usize, n: usize| {
        record[at..at + n].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let requests = || bytes.chunks_exact(32).map(|r| (number(r, 16, 8), number(r, 4, 4), number(r, 24, 8)));
    for (place, size) in [(1, 1), (512, 1), (512, 512)] {
        let line = |(sector, bytes, us)| format!("{us},{},{}\n", sector * 512 / place, bytes / size);
        let text: String = requests().map(line).collect();
        let name = |unit| if unit == 1 { "bytes" } else { "512" };
        let mut opts = OpenOptions::default();
        opts.set_format(&format!("columns:time:us,offset:{},size:{}", name(place), name(size))).expect("columns");
        assert_eq!(read(&text, &opts).expect("reads").1, [""; 0], "{place} {size}");
    }
}

/// Samples as their publishers have them, read by name.
#[test]
fn samples_are_not_doubted() {
    let Some(reports) = reports() else { return };
    let files = [
        ("alibaba", "alibaba-block.csv"),
        ("tencent", "tencent-cbs.csv"),
        ("systor", "systor17.csv"),
        ("spc", "umass-spc.csv"),
        ("twitter", "twitter.csv"),
        ("libcachesim-csv", "lcs-num.csv"),
        ("camelab", "camelab.txt"),
        ("mqsim", "mqsim.trace"),
        ("fiu", "fiu.blkparse"),
        ("ibm-cos", "ibm-cos.txt"),
        ("meta-kv", "meta-kv-old.csv"),
        ("meta-kv-2022", "meta-kv-2022.csv"),
        ("libcachesim-txt", "ids-str.txt"),
        ("fio-log", "fio_lat.1.log"),
        ("ramulator", "ramulator.trace"),
        ("fio-iolog-2", "fio-v2.log"),
        ("fio-iolog-3", "fio-v3.log"),
        ("dinero", "dinero.din"),
        ("pinatrace", "pinatrace.out"),
        ("prospero", "prospero.txt"),
    ];
    for (format, file) in files {
        let mut opts = OpenOptions { strict: true, ..OpenOptions::default() };
        opts.set_format(format).expect("a format");
        let read = read_header(&reports.join("formats").join(file), &opts);
        assert!(read.is_ok(), "{format}: {:?}", read.err());
    }
}

/// A note was a chain of clauses; it is the sign, the flags, and the mark if all is well.
#[test]
fn notes_say_what_looks_like_what_and_both_ways_out() {
    let of = |name: &str, line: &dyn Fn(u64) -> String| {
        let mut opts = OpenOptions::default();
        opts.set_format(name).expect("columns");
        read(&(0..100).map(line).collect::<String>(), &opts).expect("reads").1.concat()
    };
    assert_eq!(
        of("columns:offset:bytes,_", &|i| format!("{},1\n", i * i * 8 + i % 97 * 8)),
        "offsets look like sectors of 512 bytes, for 97 % of the offsets are not multiples of 512: --format \
         'columns:offset:512!,_' reads them so; if they are bytes, write offset:bytes!"
    );
    assert_eq!(
        of("columns:time:ms,page", &|i| format!("{},{}\n", 1_600_000_000 + i, i * 7 % 97 * 4096)),
        "times look like seconds, for as seconds since 1970 they are dates; pages look like bytes, for all are multiples \
         of 4096: --format 'columns:time:s!,offset:bytes!' reads them so; if they are milliseconds and pages, write \
         time:ms! and page!"
    );
}
