//! Columns of text: descriptions of them, and formats of others by name.

use refault_trace::{Columns, ErrorKind, Input, LoadOptions, OpenOptions, Trace, TraceError, open_input};
use std::io::Cursor;

fn load(text: &str, opts: &OpenOptions) -> Result<Trace, TraceError> {
    let input = Input::from_reader("t", Box::new(Cursor::new(text.as_bytes().to_vec())))?;
    let mut source = open_input(input, opts)?;
    let limits = LoadOptions { keep_time: true, keep_task: true, ..LoadOptions::default() };
    Trace::load(&mut source, &limits)
}

fn format(text: &str) -> OpenOptions {
    let mut opts = OpenOptions::default();
    opts.set_format(text).expect("a format");
    opts
}

/// Object, index of the page, and whether it is a write, of each access.
fn accesses(trace: &Trace) -> Vec<(String, u64, bool)> {
    let find = |page: u32| {
        let object = trace.objects.iter().rfind(|o| o.first_page <= page).expect("an object");
        (object.name.clone(), object.indices[(page - object.first_page) as usize])
    };
    trace.accesses.iter().map(|a| (find(a.page()), a.is_write())).map(|((name, at), write)| (name, at, write)).collect()
}

fn blocks(pages: &[(u64, bool)]) -> Vec<(String, u64, bool)> {
    pages.iter().map(|&(page, write)| ("blocks".to_owned(), page, write)).collect()
}

#[test]
fn a_description_says_the_units() {
    let text = "time;kind;disk;where;bytes\n1.5;R;a;8;8192\n# said\n2.25;W;b;3;1\n\n";
    let mut opts = format("columns:time:ms,op=R|W,object,offset:512,size:bytes");
    opts.columns = opts.columns.map(|c| c.with(Some(";"), None).expect("columns"));
    let trace = load(text, &opts).expect("read");
    let want = [("a", 1, false), ("a", 2, false), ("b", 0, true)];
    assert_eq!(accesses(&trace), want.map(|(o, p, w)| (o.to_owned(), p, w)));
    assert_eq!(trace.time_ns, Some(vec![0, 0, 750_000]));
}

#[test]
fn lines_in_front_and_words_of_operations() {
    let mut opts = format("columns:page,op=get+gets|set|del");
    opts.columns = opts.columns.map(|c| c.with(None, Some(2)).expect("columns"));
    let trace = load("made by me\n7,get\n1,GET\n0x10,set\n3,del\n4,gets\n", &opts).expect("read");
    assert_eq!(accesses(&trace), blocks(&[(1, false), (16, true), (4, false)]));
}

/// Each named format, with two or three lines as its publishers have them.
const NAMED: [(&str, &str, usize, usize); 20] = [
    ("alibaba", "419,R,413696,4096,1577808000000000\n420,W,32768,8192,1577808000001100\n", 3, 2),
    ("tencent", "1538323200,808,8,0,1283\n1538323201,64,16,1,1284\n", 3, 2),
    (
        "systor",
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456750800.5,0.0004,R,2,413696,4096\n1456750801.0,,W,3,0,512\n",
        2,
        1,
    ),
    ("spc", "0,808,4096,r,0.000000\n1,64,4096,W,0.026000\n", 2, 1),
    ("twitter", "0,nz:u:1,17,120,0,get,0\n0,nz:u:2,17,120,1,set,9\n1,nz:u:1,17,120,1,delete,0\n", 2, 1),
    ("meta-kv", "key,op,size,op_count,key_size\n7,GET,88,3,30\n8,SET,1,1,3\n9,DELETE,1,1,3\n9,GET,1,0,3\n", 4, 1),
    (
        "meta-kv-2022",
        "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n0,M1,50,GET,2,100,2,0,a,b\n9,M2,50,SET,1,9,1,0,a,b\n",
        3,
        1,
    ),
    ("libcachesim-csv", "time,obj_id,obj_size\n0,101,4096\n1,8,4096\n2,101,4096\n", 3, 0),
    ("libcachesim-txt", "obj_7\n12345678901234567890123\nobj_7\n", 3, 0),
    ("camelab", "0.000000 R 808 8 120\n0.010000 W 64 8 120\n", 2, 1),
    ("mqsim", "4851300 1 808 8 1\n4852300 1 64 8 0\n", 2, 1),
    ("fiu", "8971320000000 4892 syslogd 808 8 R 6 0 38b3\n8971321500000 4893 cron 64 8 W 6 0 c9f0\n", 2, 1),
    ("ibm-cos", "0 REST.GET.OBJECT 3e 4056 0 4055\n117 REST.PUT.OBJECT 4f 4056\n118 REST.DELETE.OBJECT 4f\n", 2, 1),
    (
        "fio-iolog-2",
        "fio version 2 iolog\n/dev/vdb add\n/dev/vdb open\n/dev/vdb read 413696 4096\n/dev/vdb write 0 4096\n/dev/vdb close\n",
        2,
        1,
    ),
    (
        "fio-iolog-3",
        "fio version 3 iolog\n21 /tmp/fx add\n126 /tmp/fx open\n133 /tmp/fx read 0 4096\n13855 /tmp/fx write 4096 4096\n",
        2,
        1,
    ),
    ("fio-log", "0, 80000, 0, 4096, 413696, 0\n2, 80001, 1, 8192, 32768, 0\n3, 80001, 2, 8192, 0, 0\n", 3, 2),
    ("dinero", "0 7f065000\n1 7f008000\n2 7f066000\n", 3, 1),
    ("pinatrace", "0x400000: R 0x7f0000065008\n0x400005: W 0x7f0000008008\n", 2, 1),
    ("prospero", "0 R 140734193313696 8\n1 W 140734192932768 8\n", 2, 1),
    ("ramulator", "0x7f065040 R\n0x7f0080c0 W\n", 2, 1),
];

#[test]
fn formats_of_others_are_read_by_name() {
    assert_eq!(NAMED.map(|named| named.0).to_vec(), Columns::all_named().map(|named| named.0).collect::<Vec<_>>());
    for (name, text, touches, writes) in NAMED {
        let trace = load(text, &format(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let written = trace.accesses.iter().filter(|a| a.is_write()).count();
        assert_eq!((trace.accesses.len(), written), (touches, writes), "{name}");
    }
}

/// Formats with a first line that no other file has.
const MARKED: [&str; 6] = ["systor", "meta-kv", "meta-kv-2022", "libcachesim-csv", "fio-iolog-2", "fio-iolog-3"];

/// A sample with a mark is read unasked; every other one names the flag that reads it.
#[test]
fn what_looks_like_a_named_format_is_read_or_says_its_name() {
    for (name, text, touches, writes) in NAMED.into_iter().filter(|named| named.0 != "libcachesim-txt") {
        if MARKED.contains(&name) {
            let trace = load(text, &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let written = trace.accesses.iter().filter(|a| a.is_write()).count();
            assert_eq!((trace.accesses.len(), written), (touches, writes), "{name}");
            continue;
        }
        let error = load(text, &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("--format {name} reads")), "{name}: {error}");
    }
}

#[test]
fn mistakes_in_lines_have_their_place() {
    for (columns, text, what) in [
        ("page,op=r|w", "1,r\n2\n", "t:2: 1 field instead of 2"),
        ("page,op=r|w", "1,r\n2,x\n", "t:2: \"x\" is no word for a read (r) or a write (w)"),
        ("page,op=r|w", "1,r\nx1,r\n", "t:2: offset \"x1\" is not a number"),
        ("time:us,page", "1,2\n1.x,2\n", "t:2: time \"1.x\" is not a number"),
        ("time:s,page", "1,2\n99999999999999,2\n", "t:2: time \"99999999999999\" is beyond"),
        (
            "offset:512,size:bytes",
            "1,2\n18446744073709551615,2\n",
            "t:2: 18446744073709551615 times 512 bytes is beyond",
        ),
        ("page,size:pages", "1,2\n1,99999999\n", "t:2: one access to 99999999 pages"),
        ("object,page", "a,1\n,2\n", "t:2: object is empty"),
        ("page,count", "1,2\n1,x\n", "t:2: count \"x\" is not a number"),
        ("page,count", "1,2\n1,9999999\n", "t:2: a count of 9999999 is more than"),
    ] {
        let error = load(text, &format(&format!("columns:{columns}"))).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert!(error.to_string().contains(what), "{columns}: {error}");
    }
    let mut opts = format("columns:page");
    opts.tick_ns = Some(5);
    assert_eq!(load("1\n", &opts).unwrap_err().kind(), ErrorKind::Usage);
}

fn notes(text: &str, opts: &OpenOptions) -> Vec<String> {
    let input = Input::from_reader("t", Box::new(Cursor::new(text.as_bytes().to_vec()))).expect("an input");
    let mut source = open_input(input, opts).expect("opens");
    while source.next_chunk(&mut Vec::new()).expect("reads") {}
    source.header().notes()
}

/// A first line with one broken field is no heading, and a heading is said: it was passed over
/// without a word.
#[test]
fn regression_a_damaged_first_line_is_no_heading() {
    let columns = format("columns:time:us,page,size:bytes");
    let error = load("x1,x2,4096\n2,2,4096\n", &columns).unwrap_err();
    assert!(error.to_string().starts_with("t:1: time \"x1\""), "{error}");
    let said = notes("when,where,bytes\n2,2,4096\n", &columns);
    assert!(
        said[0].starts_with("line 1 is taken for names of columns (\"when,where,bytes\"); --skip-lines 1 "),
        "{said:?}"
    );
    let skipped = format("columns:time:us,page,size:bytes").columns.map(|c| c.with(None, Some(1)).expect("columns"));
    assert!(notes("when,where,bytes\n2,2,4096\n", &OpenOptions { columns: skipped, ..columns }).is_empty());
}

/// A trace of which no line is read says which words it has, and how they are read.
#[test]
fn regression_a_trace_without_the_word_says_which_it_has() {
    let line = |n: u32, word: &str| format!("  8,16   0        {n}     1.4{n}  5529  {word}   R 808 + 8 [app]\n");
    let text = line(1, "D") + &line(2, "C") + &line(3, "D");
    let mut queued = format("columns:object,_,_,time:s,task,is=Q,rwbs,offset:512,_,size:512,*");
    queued.columns = queued.columns.map(|c| c.with(Some("space"), None).expect("columns"));
    let error = load(&text, &queued).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Empty);
    let error = error.to_string();
    assert!(
        error.contains("holds no access: lines with Q are read, and it has 2 with \"D\", 1 with \"C\"; "),
        "{error}"
    );
    let (_, advice) = error.split_once("--format '").expect("a flag");
    let (columns, _) = advice.split_once("' --separator space reads lines with D").expect("a separator");
    let mut dispatched = format(columns);
    dispatched.columns = dispatched.columns.map(|c| c.with(Some("space"), None).expect("columns"));
    assert_eq!(load(&text, &dispatched).expect("read").accesses.len(), 2);
    let error = load("1,x,del\n", &format("columns:time:s,key,op=get|set|del")).unwrap_err().to_string();
    assert!(error.contains("holds no access: its lines are passed over: 1 with \"del\""), "{error}");
}

/// A key took as many pages as its size, and so those of the keys beside it.
#[test]
fn regression_a_key_with_a_size_is_refused_and_is_one_page_without() {
    let mut opts = OpenOptions::default();
    let error = opts.set_format("columns:time:s,key,size:bytes").unwrap_err();
    assert!(error.to_string().contains("leave the size out, with _ in its place"), "{error}");
    let text: String = (0..1000).map(|i| format!("{i},k{},81920\n", i % 300)).collect();
    let trace = load(&text, &format("columns:time:s,key,_")).expect("read");
    assert_eq!(trace.footprint_pages(), 300);
    // The advice on a file whose line of names has both is not refused.
    let named = "stamp,key,size\n1,k1,81920\n2,k2,4096\n";
    let error = load(named, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--format 'columns:_,key,_' reads it"), "{error}");
}

/// The advice on a broken time was the unit that was said, and failed again.
#[test]
fn regression_a_broken_time_has_no_advice_that_fails_again() {
    for (time, name) in [("1456750800.02z", "systor"), ("1456750800z", "columns:time:ns,_,op=R|W,_,page,_")] {
        let text = format!("{time},0.0004,R,2,413696,4096\n");
        let error = load(&text, &format(name)).unwrap_err().to_string();
        assert!(error.ends_with("is not a number"), "{error}");
    }
    let error = load("1456750800000000000.5,1\n", &format("columns:time:s,page")).unwrap_err().to_string();
    assert!(error.contains("which --format 'columns:time:ns,page' reads"), "{error}");
}

/// Words that are cut, or cannot be typed, were put into flags.
#[test]
fn regression_words_that_cannot_be_typed_are_no_flag() {
    for word in ["é".to_owned(), "long".repeat(20)] {
        let mut opts = format("columns:is=Q,page");
        opts.columns = opts.columns.map(|c| c.with(Some("space"), None).expect("columns"));
        let said = load(&format!("1 1\n{word} 1\n{word} 1\n"), &opts).unwrap_err().to_string();
        assert!(said.contains("lines with Q are read") && !said.contains("--format"), "{said}");
    }
}
