//! A sample of each format of lines, with something else between its fields, a line of names on top
//! or line ends of Windows: it is read as it was, or the error has flags that read it so.

use refault_trace::{Columns, Input, OpenOptions, RecordSource, open_input};
use std::io::Cursor;

/// Formats, what is between their fields, and lines.
const SAMPLES: [(&str, char, &str); 21] = [
    (
        "msr",
        ',',
        "128166372003061629,hm,1,Read,413696,4096,1331\n128166372003062629,hm,0,Write,32768,8192,1331\n128166372003063629,src,1,Read,417792,4096,9",
    ),
    ("arc", ' ', "5 3 0 0\n70 1 0 1\n9 2 0 2"),
    ("plain", ' ', "5 r\n70 w\n9 r"),
    ("plain", ' ', "5\n70\n0x9"),
    ("lirs", ' ', "5\n70\n9"),
    ("lackey", ' ', "L 1ffe1000 8\nS 1ffe2ff8 16\nM 4025310 4\nI 4000000 3"),
    ("address", ' ', "l 0x1fffff50 1\ns 0x1fff1f58 3\nl 0x1ffaff88 6"),
    ("alibaba", ',', "419,R,413696,4096,1577808000000000\n420,W,32768,8192,1577808000001100"),
    ("tencent", ',', "1538323200,808,8,0,1283\n1538323201,64,16,1,1284"),
    ("systor", ',', "1456750800.5,0.0004,R,2,413696,4096\n1456750801.0,0.1,W,3,0,512"),
    ("spc", ',', "0,808,4096,r,0.000000\n1,64,4096,W,0.026000"),
    ("twitter", ',', "0,nz:u:1,17,120,0,get,0\n0,nz:u:2,17,120,1,set,9\n1,nz:u:1,17,120,1,delete,0"),
    ("libcachesim-csv", ',', "0,101,4096\n1,8,4096\n2,101,4096"),
    ("camelab", ' ', "0.000000 R 808 8 120\n0.010000 W 64 8 120"),
    ("mqsim", ' ', "4851300 1 808 8 1\n4852300 1 64 8 0"),
    ("fiu", ' ', "8971320000000 4892 syslogd 808 8 R 6 0 38b3\n8971321500000 4893 cron 64 8 W 6 0 c9f0"),
    ("ibm-cos", ' ', "0 REST.GET.OBJECT 3e 4056 0 4055\n117 REST.PUT.OBJECT 4f 4056"),
    ("dinero", ' ', "0 7f065000\n1 7f008000\n2 7f066000"),
    ("pinatrace", ' ', "0x400000: R 0x7f0000065008\n0x400005: W 0x7f0000008008"),
    ("prospero", ' ', "0 R 140734193313696 8\n1 W 140734192932768 8"),
    ("ramulator", ' ', "0x7f065040 R\n0x7f0080c0 W"),
];

/// Named formats that are not among the samples: why.
const WITHOUT: [(&str, &str); 6] = [
    ("fio-iolog-2", "has a first line of its own"),
    ("fio-iolog-3", "has a first line of its own"),
    ("meta-kv", "has a line of names"),
    ("meta-kv-2022", "has a line of names"),
    ("libcachesim-txt", "has one field"),
    ("fio-log", "numbers may be anything"),
];

/// Time, object, first page, pages, and whether it is a write.
type Read = Vec<(u64, u32, u64, u32, bool)>;

fn read(text: &str, opts: &OpenOptions) -> Result<Read, String> {
    let input = Input::from_reader("t", Box::new(Cursor::new(text.as_bytes().to_vec()))).map_err(|e| e.to_string())?;
    let mut source = open_input(input, opts).map_err(|e| e.to_string())?;
    let (mut chunk, mut all) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk).map_err(|e| e.to_string())? {
        all.extend(chunk.iter().map(|r| (r.time_ns, r.object, r.page, r.pages, r.op.write)));
    }
    Ok(all)
}

fn format(name: &str) -> OpenOptions {
    let mut opts = OpenOptions::default();
    opts.set_format(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    opts
}

/// A word of a shell behind a flag.
fn word<'t>(text: &'t str, flag: &str) -> Option<&'t str> {
    let (_, rest) = text.rsplit_once(flag)?;
    let quoted = rest.strip_prefix('\'').and_then(|rest| rest.split('\'').next());
    quoted.or_else(|| rest.split([' ', ',', ';']).next())
}

/// Reads a text by the command in an error: flags, or lines that are left out.
fn follow(error: &str, text: &str, of: &OpenOptions) -> Result<Read, String> {
    let mut opts = word(error, "--format ").map_or(of.clone(), format);
    if opts.columns.is_none() {
        let Some((_, rest)) = error.rsplit_once("tail -n +") else {
            return if error.contains("--format ") { read(text, &opts) } else { Err("no command".into()) };
        };
        let from: usize =
            rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).expect("a line");
        let rest: Vec<_> = text.split_inclusive('\n').skip(from - 1).collect();
        return read(&rest.concat(), &OpenOptions::default());
    }
    let columns = opts.columns.take().expect("columns");
    let lines = word(error, "--skip-lines ").and_then(|n| n.parse().ok());
    opts.columns = Some(columns.with(word(error, "--separator "), lines).map_err(|e| e.to_string())?);
    read(text, &opts)
}

/// Nothing is said, or cannot be.
fn nothing_tells(name: &str, between: char, has_names: bool) -> Option<&'static str> {
    match (name, between, has_names) {
        ("libcachesim-csv", _, false) => Some("three numbers may be anything"),
        _ => None,
    }
}

/// The sample as it is read: lackey has a comma behind its addresses.
fn own(name: &str, rows: &[Vec<&str>], between: char) -> String {
    let line = |row: &Vec<&str>| match (name, &row[..]) {
        ("lackey", ["I", address, size]) => format!("I  {address},{size}\n"),
        ("lackey", [kind, address, size]) => format!(" {kind} {address},{size}\n"),
        _ => row.join(&between.to_string()) + "\n",
    };
    rows.iter().map(line).collect()
}

#[test]
fn a_sample_with_other_separators_is_read_or_its_error_reads_it() {
    let mut tried = 0;
    for (name, between, text) in SAMPLES {
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(between).collect()).collect();
        let own_text = own(name, &rows, between);
        let meant = read(&own_text, &format(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let names = match name {
            "libcachesim-csv" => vec!["time".to_owned(), "obj_id".into(), "obj_size".into()],
            _ => (0..rows[0].len()).map(|n| format!("field{n}")).collect(),
        };
        for (separator, has_names) in [',', ';', '\t', ' ', '|'].into_iter().flat_map(|c| [(c, false), (c, true)]) {
            if nothing_tells(name, separator, has_names).is_some() {
                continue;
            }
            let lines = rows.iter().map(|row| row.join(&separator.to_string()) + "\n");
            let top = names.join(&separator.to_string()) + "\n";
            let text: String = has_names.then_some(top).into_iter().chain(lines).collect();
            for text in [text.clone(), text.replace('\n', "\r\n")] {
                tried += 1;
                let what = format!("{name} with {separator:?}, names {has_names}");
                match read(&text, &OpenOptions::default()) {
                    Ok(read) => assert_eq!(read, meant, "{what}"),
                    Err(error) => {
                        assert_eq!(error.lines().count(), 1, "{what}: {error}");
                        let read = follow(&error, &text, &OpenOptions::default());
                        let read = read.unwrap_or_else(|why| panic!("{what}: {error}: {why}"));
                        assert_eq!(read, meant, "{what}: {error}");
                    }
                }
            }
        }
    }
    assert!(tried > 350, "{tried}");
}

/// Asked for by name, it is read or the error says which separator reads it.
#[test]
fn a_format_that_is_named_says_the_separator() {
    for (name, between, text) in
        SAMPLES.into_iter().filter(|(name, ..)| *name == "msr" || Columns::named(name).is_some())
    {
        let meant = read(&(text.to_owned() + "\n"), &format(name)).expect("reads");
        for separator in [',', ';', '\t', ' ', '|'] {
            if nothing_tells(name, separator, true).is_some() || separator == between {
                continue;
            }
            let text: String = text.replace(between, &separator.to_string()) + "\n";
            let error = read(&text, &format(name)).err();
            // Blanks are blanks.
            let Some(error) = error else { continue };
            let read = follow(&error, &text, &format(name)).unwrap_or_else(|why| panic!("{name}: {error}: {why}"));
            assert_eq!(read, meant, "{name} with {separator:?}: {error}");
        }
    }
}

#[test]
fn every_named_format_has_a_sample() {
    for (name, ..) in Columns::all_named() {
        let has = SAMPLES.iter().any(|sample| sample.0 == name);
        assert_ne!(has, WITHOUT.iter().any(|without| without.0 == name), "{name}");
    }
}

/// Files that only need their columns said, and were called not read, of no format or another one.
#[test]
fn regression_columns_that_could_be_read_are_said() {
    let seconds = |n: u32| format!("{n}.5,hm,1,Read,{},4096,9\n", n * 4096);
    let cases = [
        ("page,op\n68,w\n70,r\n".to_owned(), vec![(0, 0, 68, 1, true), (0, 0, 70, 1, false)]),
        ("page,op\n68,write\n70,read\n".into(), vec![(0, 0, 68, 1, true), (0, 0, 70, 1, false)]),
        ("68;write\n70;read\n".into(), vec![(0, 0, 68, 1, true), (0, 0, 70, 1, false)]),
        (
            "ts;file;offset;length;rw\n1600000000;a;8192;8192;Read\n1600000001;b;0;1;Write\n".into(),
            vec![(0, 0, 2, 2, false), (1_000_000_000, 1, 0, 1, true)],
        ),
        (seconds(1) + &seconds(3), vec![(0, 0, 1, 1, false), (2_000_000_000, 0, 3, 1, false)]),
    ];
    for (text, meant) in cases {
        let error = read(&text, &OpenOptions::default()).expect_err(&text);
        assert!(error.starts_with("t: format not recognised"), "{error}");
        assert_eq!(follow(&error, &text, &OpenOptions::default()), Ok(meant), "{text}: {error}");
    }
    let error = read("1;2\n", &format("columns:time:us,_,page")).unwrap_err();
    assert!(error.ends_with("t:1: 1 field instead of 3"), "{error}");
}

/// Times that begin at 0 are of no unit that is known.
#[test]
fn regression_no_unit_is_made_up_for_times_from_a_start() {
    let text: String = (0..50).map(|n| format!("{n},hm,1,Read,{},4096,9\n", n * 4096)).collect();
    let error = read(&text, &OpenOptions { strict: true, ..OpenOptions::default() }).unwrap_err();
    assert!(error.contains("--tick-ns 1000000000 reads them as seconds, 1000000 as milliseconds"), "{error}");
}
