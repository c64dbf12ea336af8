//! Messages about files that are not read: nothing is blamed on a format that it is not.

use super::*;
use crate::columns::Columns;
use crate::open::open_input;

/// The error of a file, or the format that it is read in.
fn answer(bytes: &[u8], name: &str) -> Result<Format, String> {
    let input = Input::from_reader(name, Box::new(std::io::Cursor::new(bytes.to_vec()))).map_err(|e| e.to_string())?;
    let mut source = open_input(input, &OpenOptions::default()).map_err(|e| e.to_string())?;
    let mut chunk = Vec::new();
    while source.next_chunk(&mut chunk).map_err(|e| format!("read: {e}"))? {}
    Ok(source.header().format)
}

/// Some lines of each format that is not read, and a word of what it is.
const FOREIGN: [(&str, &str); 22] = [
    ("Alibaba", "419,R,413696,4096,1577808000000000\n420,W,32768,4096,1577808000001100\n"),
    ("SPC", "0,808,4096,r,0.000000\n1,64,4096,W,0.026000\n"),
    ("Tencent", "1538323200,808,8,0,1283\n1538323200,64,8,1,1284\n"),
    ("Systor", "1456750800.0,0.0004,R,2,413696,4096\n1456750800.1,0.0004,W,2,32768,4096\n"),
    ("Twitter", "0,nz:u:003e6bb3,17,120,0,get,0\n0,nz:u:0004f1b8,17,120,1,set,3600\n"),
    ("log of fio", "0, 80000, 0, 4096, 413696, 0\n2, 80001, 1, 4096, 32768, 0\n"),
    ("log of fio", "0, 80000, 0, 4096\n2, 80001, 0, 4096\n"),
    ("CAMELab", "0.000000 R 808 8 120\n0.010000 W 64 8 120\n"),
    ("MQSim", "4851300 1 808 8 1\n4852300 1 64 8 0\n"),
    ("FIU", "8971320000000 4892 syslogd 808 8 R 6 0 38b3eff8baf56627478ec76a704e9b52\n"),
    ("Dinero", "0 7f065000\n1 7f008000\n2 7f066000\n"),
    ("IBM", "0 REST.GET.OBJECT 0000003e6be302d5 4056 0 4055\n"),
    ("fincore", "  RES PAGES  SIZE FILE\n 12M  3072   40M /srv/db/a.dat\n"),
    ("damo", "base_time_absolute: 8 m 59.809 s\n\nmonitoring_start:                0 ns\n"),
    ("perf mem", "  app  2011  700.1:  33 cpu/mem-loads,ldlat=30/P:     7f0000065010 |OP LOAD|\n"),
    ("pin", "0x400000: R 0x7f0000065008\n0x400005: W 0x7f0000008008\n"),
    ("Prospero", "0 R 140734193313696 8\n1 W 140734192932768 8\n"),
    ("web server", "10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /a HTTP/1.1\" 200 5\n"),
    ("JSON", "{\"page\": 1}\n{\"page\": 2}\n"),
    ("HTML", "<!doctype html>\n<html></html>\n"),
    ("PDF", "%PDF-1.7\n1 0 obj\n"),
    ("UTF-16", "\u{0}"),
];

/// The sample as bytes; the last one is no UTF-8.
fn sample(what: &str, text: &str) -> Vec<u8> {
    match what {
        "UTF-16" => b"\xff\xfe1\0\n\x002\0\n\0".to_vec(),
        _ => text.as_bytes().to_vec(),
    }
}

#[test]
fn regression_formats_of_others_are_named_and_nothing_is_nearest() {
    for (what, text) in FOREIGN {
        let bytes = sample(what, text);
        // Line ends of Windows, a name that promises another format, and a mark before UTF-8.
        let crlf = text.replace('\n', "\r\n").into_bytes();
        let marked = [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat();
        let mut cases = vec![bytes.clone()];
        if what != "UTF-16" {
            cases.extend([crlf, marked]);
        }
        for (case, name) in cases.iter().flat_map(|case| ["t", "t.csv", "t.txt", "t.lis"].map(|name| (case, name))) {
            let said = answer(case, name).expect_err(what);
            assert!(said.starts_with(&format!("{name}: format not recognised: it looks like ")), "{what}: {said}");
            assert!(said.contains(what), "{what}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            for wrong in ["nearest", "can be read as", "could read", "could be read", "--format plain"] {
                assert!(!said.contains(wrong), "{what}: {said}");
            }
        }
    }
}

/// A line of each format, its fields, and what is between them.
const GENUINE: [(Format, &[&str], &str); 6] = [
    (Format::Msr, &["128166372003061629", "hm", "1", "Read", "4096", "512", "9"], ","),
    (Format::Arc, &["5", "3", "0", "0"], " "),
    (Format::Plain, &["12", "r"], " "),
    (Format::Plain, &["12"], " "),
    (Format::Lackey, &[" L", "1ffe,8"], " "),
    (Format::Address, &["l", "0x1fff", "1"], " "),
];

#[test]
fn nearest_is_the_format_whose_fields_agree_or_none() {
    for (format, fields, between) in GENUINE {
        let line = |at: usize, other: &str| {
            let mut fields = fields.to_vec();
            fields[at] = other;
            format!("{}\n", fields.join(between)).repeat(3)
        };
        for (at, junk) in (0..fields.len()).flat_map(|at| ["?", "x1", "-5", "1.5"].map(|junk| (at, junk))) {
            let text = line(at, junk);
            let Err(said) = answer(text.as_bytes(), "t.csv") else { continue };
            for (other, ..) in GENUINE.iter().filter(|(other, ..)| *other != format) {
                let blamed = format!("nearest is {other}");
                assert!(!said.contains(&blamed) && !said.contains(&format!("read as {other}")), "{text}: {said}");
            }
        }
    }
    let nearest = |text: &str| answer(text.as_bytes(), "t").expect_err(text);
    for (text, parts) in [
        ("1 2 3 x\n", &["nearest is arc", "request number \"x\" is not a number"][..]),
        ("12 read\n", &["nearest is plain", "\"read\" is neither r nor w"]),
        ("L 1ffe,8\n", &["nearest is lackey"]),
        ("l 1fff 3\n", &["nearest is address", "\"1fff\" is not an address 0x..."]),
        ("1,hm,1,Read,4096,512k,9\n", &["nearest is msr", "size \"512k\" is not a number"]),
        ("7ffe1000\nbeef\n", &["nearest is plain", "hexadecimal ones begin with 0x"]),
    ] {
        let said = nearest(text);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    }
    for text in
        ["hello\n", "hello world\n", "obj_101\nobj_8\n", "1 2\n3 4\n", "1 2 3 4 5 6\n", "1,2,3,4,5,6,7\n", "1,2\n"]
    {
        let said = nearest(text);
        assert!(!said.contains("nearest") && !said.contains("could"), "{said}");
    }
}

#[test]
fn headers_and_marks_are_said_or_read() {
    let msr = "1,hm,1,Read,4096,512,9\n";
    for (text, format) in [
        (format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{msr}"), Format::Msr),
        (format!("\u{feff}{msr}"), Format::Msr),
        (msr.to_lowercase(), Format::Msr),
        ("\u{feff}1\n2\n".to_owned(), Format::Plain),
        ("\u{feff}# by hand\n1 w\n".to_owned(), Format::Plain),
    ] {
        assert_eq!(answer(text.as_bytes(), "t"), Ok(format), "{text}");
    }
    for text in ["page\n1\n2\n", "page,op\n1\n2 w\n"] {
        let said = answer(text.as_bytes(), "t.txt").expect_err("a header");
        assert!(said.contains("line 1 is a header") && said.contains("can be read as plain: leave it out"), "{said}");
        // Asked for by name, the format is not in question.
        let opts = OpenOptions { format: Some(Format::Plain), ..OpenOptions::default() };
        let input = Input::from_reader("t", Box::new(std::io::Cursor::new(text.to_owned()))).expect("text");
        let error = open_input(input, &opts).and_then(|mut s| s.next_chunk(&mut Vec::new())).expect_err("a header");
        assert!(error.to_string().ends_with("line 1 looks like a header: leave it out"), "{error}");
    }
    let said = answer(b"sheets,tall\n1,2\n3,4\n", "t.csv").expect_err("two columns");
    assert!(said.contains("line 1 is a header") && said.contains("of no format that is read"), "{said}");
    let said = answer(b"1\nx\n2\n3\n", "t");
    assert_eq!(said, Err("read: t:2: page \"x\" is not a number".to_owned()));
    let said = answer(b"x 1\n1\n2\n3\n", "t").expect_err("line 1");
    assert!(said.contains("3 of the first 4 lines can be read as plain, but line 1 cannot"), "{said}");
}

#[test]
fn bytes_are_told_from_text() {
    assert!(about(&[0; 100], None).contains("bare numbers have no mark: if it is these, give u32le"));
    assert!(about(&[1; 100], Some(Format::Vscsi)).contains("its name says vscsi, but its bytes do not"));
    assert!(about(b"\x07tae\0", None).contains("which --format blktrace reads"));
    assert!(about(b"# only\n", None).contains("no line but comments"));
    // Text is no trace of bytes, whatever its name is, and the other way round.
    for (bytes, name) in
        [(&b"hello world, this is text\n"[..], "t.oracleGeneral"), (&[7; 64], "t.lis"), (&[7; 64], "t.csv")]
    {
        assert!(answer(bytes, name).expect_err(name).contains("format not recognised"), "{name}");
    }
}

/// Fields that only their separators keep from being read: the way to read them is said.
#[test]
fn regression_commas_in_place_of_spaces_are_named() {
    for (text, said) in [
        (
            "page,op\n68,w\n70,r\n",
            "a header (\"page,op\"), and nearest to what follows is plain: --format 'columns:page,op=r|w' reads both",
        ),
        ("68;w\n70;\n", "read as plain: tr ';' ' ' <FILE >NEW"),
        ("68;w\n70;r\n", "--format 'columns:page,op=r|w' --separator ';' reads it"),
        ("0,8,0,1\n64,8,0,2\n", "--format 'columns:page,size:pages,_,_' reads it"),
    ] {
        let error = answer(text.as_bytes(), "a.csv").unwrap_err();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

/// One line of four numbers that ARC refuses: the number at fault, not "of no format".
#[test]
fn regression_a_count_beyond_the_bound_is_named() {
    let error = answer(b"0 100000000 0 0\n", "a").unwrap_err();
    assert!(error.contains("nearest is arc") && error.contains("100000000"), "{error}");
}

/// A binary file that was to be read as lines had advice made of its bytes, or a page of garbage.
#[test]
fn regression_bytes_that_are_no_text_are_told_under_every_name_of_lines() {
    let mut blktrace = vec![0; 600];
    blktrace[..4].copy_from_slice(b"\x07tae");
    blktrace[300] = b'\n';
    let names = Columns::all_named().map(|(name, ..)| name.to_owned());
    let names = names.chain(OF_LINES.map(|format| format.to_string())).chain(["columns:key".to_owned()]);
    for name in names {
        let read = |bytes: &[u8]| {
            let mut opts = OpenOptions::default();
            opts.set_format(&name).expect("a format");
            let input = Input::from_reader("t", Box::new(std::io::Cursor::new(bytes.to_vec()))).expect("bytes");
            open_input(input, &opts).map(|_| ()).map_err(|e| e.to_string())
        };
        let error = read(&blktrace).expect_err(&name);
        assert_eq!(error, "t: it looks like a binary trace of blktrace, which --format blktrace reads");
        let error = read(&[7; 64]).expect_err(&name);
        assert!(error.starts_with("t: its bytes are not text, and "), "{error}");
        // One bad byte is for the reader, which knows the line.
        assert_eq!(read(b"1\n\x01\n3\n"), Ok(()), "{name}");
    }
}

/// A bad byte in text had the advice to read it as bare numbers, and no line.
#[test]
fn regression_a_bad_byte_in_text_has_its_line() {
    for (text, said) in [
        (&b"1\n2\n\x013\n4\n"[..], "line 3 (\"\\x013\") has the byte 0x01, which is not text in UTF-8"),
        (b" L 1ffe,8\n\x01 L 2,3\n L 1fff,8\n", "line 2 (\"\\x01 L 2,3\") has the byte 0x01"),
        (b" L 1ffe,8\n\x01 L 2,3\n L 1fff,8\n", "leave it out; the other lines can be read as lackey"),
        (b"h\xe9llo there\nsome more\nand more\n", "line 1 (\"h\\xe9llo there\") has the byte 0xe9"),
    ] {
        for name in ["t", "t.txt", "t.csv"] {
            let error = answer(text, name).unwrap_err();
            assert!(error.contains(said) && !error.contains("u32le"), "{error}");
        }
    }
    assert_eq!(answer(b"1\n2\n\xff\n", "t"), Err("read: t:3: page \"\\xff\" is not a number".into()));
}

/// The first of names was called a header.
#[test]
fn regression_a_name_in_each_line_is_read_as_a_key() {
    for text in ["obj_101\nobj_8\nobj_101\n", "/a/b\n/a/c\n", "u:1\nu:17\n", "3e6bz\nf00\n"] {
        let error = answer(text.as_bytes(), "t.txt").unwrap_err();
        assert!(
            error.contains("each line is one name") && error.ends_with("'columns:key' reads each name as a page"),
            "{error}"
        );
    }
    let error = answer(b"hello world\nand more\n", "t").unwrap_err();
    assert!(!error.contains("header") && !error.contains("columns:key"), "{error}");
}
