//! Output of tracers, a sample of each made for these tests. Accesses, pages and writes were
//! counted by hand; each comment says how.

use refault_trace::{Format, Header, Input, LoadOptions, OpenOptions, Seen, Trace, TraceError, open_input};
use std::io::Cursor;

fn load(bytes: &[u8], opts: &OpenOptions) -> Result<(Trace, Header), TraceError> {
    let input = Input::from_reader("t", Box::new(Cursor::new(bytes.to_vec())))?;
    let mut source = open_input(input, opts)?;
    let limits = LoadOptions { keep_time: true, keep_task: true, ..LoadOptions::default() };
    let trace = Trace::load(&mut source, &limits)?;
    let header = source.header().clone();
    Ok((trace, header))
}

/// Accesses, distinct pages and writes.
fn counts(trace: &Trace) -> [usize; 3] {
    let writes = trace.accesses.iter().filter(|access| access.is_write()).count();
    [trace.accesses.len(), trace.footprint_pages() as usize, writes]
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.objects.iter().map(|object| object.name.as_str()).collect()
}

const BLKPARSE: &str = "\
Input file sdc.blktrace.0 added
259,0    3        1     0.000000000   901  Q   R 1000 + 16 [my prog]
259,0    3        2     0.000001000   901  G   R 1000 + 16 [my prog]
259,0    3        3     0.000002000   901  P   N [my prog]
259,0    3        4     0.000003000   901  U   N [my prog] 1
259,0    3        5     0.000004000   901  D   R 1000 + 16 [my prog]
  8,0    1       11     0.000500000   902  Q  WS 24 + 8 [jbd2/sda1-8]
  8,0    1       12     0.000501000   902  Q FWS [jbd2/sda1-8]
  8,0    1       13     0.000502000   902  Q  DS 80 + 8 [fstrim]
  8,0    1       14     0.000503000     0  C  WS 24 + 8 [0]
  8,0    1       15     0.000504000     0  m   N cfq901 insert
CPU1 (8,0):
 Reads Queued:           0,        0KiB	 Writes Queued:           1,        4KiB
Total (259,0):
 Reads Queued:           1,        8KiB	 Writes Queued:           0,        0KiB
";

/// The read of sectors 1000 to 1015 is bytes 512,000 to 520,191, pages 125, 126; the write of
/// sectors 24 to 31 page 3 of the other disk.
#[test]
fn blkparse_reads_queued_requests() {
    for opts in [OpenOptions::default(), OpenOptions { format: Some(Format::Blkparse), ..OpenOptions::default() }] {
        let (trace, header) = load(BLKPARSE.as_bytes(), &opts).expect("a trace");
        assert_eq!(counts(&trace), [3, 3, 1]);
        assert_eq!(names(&trace), ["259,0", "8,0"]);
        assert_eq!(trace.objects[0].indices, [125, 126]);
        assert_eq!(trace.time_ns, Some(vec![0, 0, 500_000]));
        assert_eq!((header.seen, header.remarks.len()), (Some(Seen::BlockRequests), 0));
    }
    let sent = BLKPARSE.lines().filter(|line| line.contains("  D  ")).collect::<Vec<_>>().join("\n");
    let (trace, header) = load(sent.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!(counts(&trace), [2, 2, 0]);
    assert!(header.remarks[0].contains("sent to the device (D)"), "{:?}", header.remarks);
}

/// A record of blktrace in the byte order of either kind of machine.
fn blktrace(is_big: bool, [time, sector]: [u64; 2], [bytes, action]: [u32; 2], tail: u16) -> Vec<u8> {
    let four = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let eight = |n: u64| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let two = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut record = [four(0x6561_7407), four(1)].concat();
    record.extend([eight(time), eight(sector)].concat());
    record.extend([four(bytes), four(action), four(77), four(8 << 20 | 16), four(0)].concat());
    record.extend([two(0), two(tail)].concat());
    record.extend(vec![b'x'; usize::from(tail)]);
    record
}

/// Queued: a read of pages 1, 2 (sector 8, 8192 bytes) and a write of page 0. A completion, a
/// message of 5 bytes and a discard are no accesses.
#[test]
fn blktrace_in_both_byte_orders() {
    for is_big in [false, true] {
        let records = [
            blktrace(is_big, [100, 8], [8192, 0x0001_0001], 0),
            blktrace(is_big, [150, 8], [8192, 0x0001_0008], 0),
            blktrace(is_big, [160, 0], [0, 0x0400_0002], 5),
            blktrace(is_big, [170, 64], [4096, 0x2002_0001], 0),
            blktrace(is_big, [200, 0], [512, 0x0002_0001], 3),
        ];
        let bytes = records.concat();
        let (trace, header) = load(&bytes, &OpenOptions::default()).expect("a trace");
        assert_eq!((counts(&trace), names(&trace)), ([3, 3, 1], vec!["8,16"]));
        assert_eq!(trace.time_ns, Some(vec![0, 0, 100]));
        assert_eq!(header.seen, Some(Seen::BlockRequests));
        for cut in [10, 50, bytes.len() - 1] {
            let error = load(&bytes[..cut], &OpenOptions::default()).expect_err("cut").to_string();
            assert!(error.contains("the file is truncated"), "{cut}: {error}");
        }
    }
    let newer = [&[8][..], &blktrace(false, [1, 1], [512, 0x0001_0001], 0)[1..]].concat();
    let error = load(&newer, &OpenOptions::default()).expect_err("version 8").to_string();
    assert!(error.contains("version 8, and 7 is read; blkparse makes text of it"), "{error}");
}

const BIOSNOOP: &str = "\
Tracing block device I/O... Hit Ctrl-C to end.
TIME(s)     COMM           PID    DISK    T  SECTOR     BYTES  QUE(ms) LAT(ms)
0.500000    Web Content    1950   xvda1   W  16         4096      0.01    0.74
0.500100    x              1951   xvda1   RA 9          4096      0.01    0.61
0.600000    kworker/0:1H   7      xvda1   F  0          0         0.01    0.61
^C
";

/// A write of page 2; a read from byte 4,608 on, which touches pages 1 and 2; a flush.
#[test]
fn biosnoop_with_columns_of_a_flag_and_spaces_in_a_command() {
    let (trace, header) = load(BIOSNOOP.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!((counts(&trace), names(&trace)), ([3, 2, 1], vec!["xvda1"]));
    assert_eq!(trace.task, Some(vec![0, 1, 1]));
    assert_eq!((header.format, header.seen), (Format::Biosnoop, Some(Seen::BlockRequests)));
}

const STRACE: &str = "\
100 10.000000 execve(\"/usr/bin/app\", [\"app\"], 0x7ffe /* 20 vars */) = 0
100 1700000000.000000 openat(AT_FDCWD, \"/data/a,b\", O_RDONLY|O_CLOEXEC) = 3
100 1700000000.000100 read(3, \"x, (y) = 7\\\"\"..., 8192) = 8192 <0.000010>
100 1700000000.000200 pread64(3, \"\"..., 4096, 40960) = 4096
100 1700000000.000300 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
101 1700000000.000400 read(3, <unfinished ...>
100 1700000000.000500 <... clone resumed>, child_tidptr=0x7f) = 101
101 1700000000.000600 <... read resumed>\"z\"..., 100) = 100
100 1700000000.000700 lseek(3, 4095, SEEK_SET) = 4095
100 1700000000.000800 dup(3)                = 4
100 1700000000.000900 write(4, \"q\", 2)      = 2
100 1700000000.001000 --- SIGCHLD {si_signo=SIGCHLD} ---
100 1700000000.001100 read(9, \"\"..., 5)     = 5
100 1700000000.001200 read(3, 0x7f, 5)      = -1 EIO (Input/output error)
100 1700000000.001300 +++ exited with 0 +++
";

/// Pages 0, 1 by the first read; 10; the child reads 100 bytes from 8,192 on, page 2, and moves the
/// place of its parent, which shares the open file; the write of bytes 4,095 and 4,096 is pages 0
/// and 1. Descriptor 9 is not known.
#[test]
fn strace_follows_descriptors_and_places() {
    let (trace, header) = load(STRACE.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!((counts(&trace), names(&trace)), ([6, 4, 2], vec!["/data/a,b"]));
    assert_eq!(trace.objects[0].indices, [0, 1, 2, 10]);
    assert_eq!(trace.task, Some(vec![0, 0, 0, 1, 0, 0]));
    assert_eq!(header.seen, Some(Seen::SystemCalls));
    assert!(header.remarks[0].starts_with("1 calls on descriptors that were opened before"), "{:?}", header.remarks);
}

/// With -y names are in the lines: a file, of which pages 0 and 1 are read, a socket, a device
/// without pages, and a file that is copied: page 1 is read, page 1 of the other is written (bytes
/// 4,096 to 8,191). A note of strace may come into a line.
const STRACE_Y: &str = "\
[pid  7] 01:02:03.5 read(3</srv/x y>, \"a\"..., 4096) = 4096
[pid  7] 01:02:03.6 read(4<TCP:[1.1.1.1:80->2.2.2.2:9]>, \"a\"..., 4096) = 4096
[pid  7] 01:02:03.7 read(0</dev/pts/1<char 136:1>>, \"a\", 1) = 1
strace: Process 8 attached
[pid  7] 01:02:03.8 read(3</srv/x y>, strace: Process 9 attached
 <unfinished ...>
[pid  7] 01:02:03.9 <... read resumed>\"b\", 4096) = 1
> /usr/lib/libc.so.6(read+0x5) [0x5]
[pid  8] 01:02:04 copy_file_range(3</srv/x y>, [4096], 5</srv/z>, [4096], 4096, 0) = 4096
[pid  8] 01:02:04 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</srv/x y>, 0) = 0x7f0000000000
";

#[test]
fn strace_with_names_of_descriptors() {
    let (trace, header) = load(STRACE_Y.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!((counts(&trace), names(&trace)), ([4, 3, 1], vec!["/srv/x y", "/srv/z"]));
    assert_eq!(trace.time_ns, Some(vec![0, 400_000_000, 500_000_000, 500_000_000]));
    assert!(header.remarks[0].starts_with("1 files were mapped"), "{:?}", header.remarks);
}

/// perf, trace-cmd and tracefs; the number of accesses, of pages and of writes.
const EVENTS: [(&str, [usize; 3], Seen); 6] = [
    // 2 pages of a folio of order 1 at byte 8,192, and page 7; a page that leaves is none.
    (
        "# tracer: nop\n#\n  my-prog-7  [001] .....  9.100000: mm_filemap_add_to_page_cache: dev 8:1 ino 2f pfn=0x1 ofs=8192 order=1\n\
         \x20 my-prog-7  [001] .....  9.200000: mm_filemap_delete_from_page_cache: dev 8:1 ino 2f pfn=0x1 ofs=8192 order=1\n\
         \x20 my-prog-7  [001] .....  9.300000: mm_filemap_add_to_page_cache: dev 8:1 ino 2f page=000001 pfn=8 ofs=28672\n",
        [3, 3, 0],
        Seen::Additions,
    ),
    // Pages 0 and 1 are read, and page 1 faults; what the kernel added is in these.
    (
        "  app  7 [000] 9.1: filemap:mm_filemap_get_pages: dev=8:1 ino=2f ofs=0-8191\n\
         \x20 app  7 [000] 9.2: filemap:mm_filemap_add_to_page_cache: dev 8:1 ino 2f pfn=0x1 ofs=0 order=0\n\
         \x20 app  7 [000] 9.3: filemap:mm_filemap_fault: dev=8:1 ino=2f ofs=4096\n",
        [3, 2, 0],
        Seen::SystemCalls,
    ),
    // A read of page 2 and a write from there on of two pages, each of which counts.
    (
        "  app-7 (7) [000] 9.1: block_rq_issue: 8,16 R 4096 () 16 + 8 none,0,0 [app]\n\
         \x20 app-7 (7) [000] 9.2: block_rq_issue: 8,16 WS 8192 () 16 + 16 [app two]\n\
         \x20 app-7 (7) [000] 9.2: block_rq_issue: 8,16 FF 0 () 0 + 0 [app]\n\
         \x20 app-7 (7) [000] 9.3: block_rq_complete: 8,16 WS () 16 + 16 [0]\n",
        [3, 2, 2],
        Seen::BlockRequests,
    ),
    // Faults of two processes at one address, with a stack.
    (
        "Web Content  8/9 [000] 9.1:  1 page-faults:u:  7f0000065000 [unknown] (/usr/bin/y) 55d0a1 f+0x1 (/usr/bin/x)\n\t   55d0a1 f+0x1 (/usr/bin/x)\n\n\
         app  10/10 [000] 9.2:  1 page-faults:u:  7f0000065008\n",
        [2, 2, 0],
        Seen::Faults,
    ),
    ("  app-7 [000] 9.1: page_fault_user: address=0x7f0000065008 ip=0x5 error_code=0x6\n", [1, 1, 1], Seen::Faults),
    // 4,097 bytes from 4,096 on: pages 1 and 2. A read that says no place is counted.
    (
        "  app  7 [000] 9.1: syscalls:sys_enter_pread64: fd: 0x00000003, buf: 0x7ffd, count: 0x00001001, pos: 0x00001000\n\
         \x20 app  7 [000] 9.1: syscalls:sys_enter_pwrite64: fd: 0x00000003, buf: 0x7ffd, count: 0x10, pos: 0x00001000\n\
         \x20 app  7 [000] 9.2: syscalls:sys_enter_read: fd: 0x00000003, buf: 0x7ffd, count: 0x10\n",
        [3, 2, 1],
        Seen::SystemCalls,
    ),
];

#[test]
fn events_of_three_programs() {
    for (text, want, seen) in EVENTS {
        let (trace, header) = load(text.as_bytes(), &OpenOptions::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((counts(&trace), header.seen), (want, Some(seen)), "{text}");
        assert_eq!(header.format, Format::Events);
        assert!(header.remarks[0].starts_with("events "), "{:?}", header.remarks);
    }
    let (_, header) = load(EVENTS[5].0.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert!(header.remarks[1].starts_with("1 calls read or write without saying where"), "{:?}", header.remarks);
}

/// A fault at 0x5010 is page 5 of a file; one of the heap is anonymous, and so is one without name.
#[test]
fn perf_trace_has_files_and_memory() {
    let text = "  0.000 ( 0.000 ms): my app/11 majfault [main+0x4] => /srv/a b.dat@0x5010 (d.)\n\
                \x20 0.500 ( 0.002 ms): my app/11 read(fd: 3, count: 5) = 5\n\
                \x20 1.500 ( 0.000 ms): my app/12 minfault [0x7f] => [heap]@0x1000 (d.)\n\
                \x20 1.500 ( 0.000 ms): my app/12 minfault [0x7f] => 0x7f0000001000 (?k)\n";
    let (trace, header) = load(text.as_bytes(), &OpenOptions::default()).expect("a trace");
    let objects = vec!["/srv/a b.dat", "[heap] of 12", "memory of 12"];
    assert_eq!((counts(&trace), names(&trace)), ([3, 3, 0], objects));
    assert_eq!(trace.objects[0].indices, [5]);
    assert_eq!((trace.time_ns, header.seen), (Some(vec![0, 1_500_000, 1_500_000]), Some(Seen::Faults)));
}

/// 8 bytes from the last 4 of page 1 on are two pages; an instruction is fetched from page 4.
#[test]
fn drcachesim_view_reads_loads_and_stores() {
    let text = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n-----\n\
                \x20  1   0:   21 <marker: version 3>\n   2   0:   21 read   8 byte(s) @ 0x0000000000001ffc by PC 0x4000\n\
                \x20  3   1:   21 ifetch   4 byte(s) @ 0x0000000000004000 non-branch\n\
                \x20  4   1:   22 write  4 byte(s) @ 0x0000000000001000 by PC 0x4004\n\
                View tool results:\n              1 : total instructions\n";
    let (trace, _) = load(text.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!(counts(&trace), [3, 2, 1]);
    let opts = OpenOptions { instructions: true, ..OpenOptions::default() };
    assert_eq!(counts(&load(text.as_bytes(), &opts).expect("a trace").0), [4, 3, 1]);
}

/// A miss of page 5, its hit, a write of it, and a hit of two pages of another file.
#[test]
fn io_tracer_has_hits_and_misses() {
    let text = "2024-01-15 10:30:45.000000,7,a,MISS,9,5,256,0,2049,1\n2024-01-15 10:30:45.000100,7,a,HIT,9,5,256,0,2049,1\n\
                2024-01-15 10:30:45.000200,7,a,DIRTY,9,5,256,0,2049,1\n2024-01-15 10:30:45.000300,0,k,WRITEBACK_START,9,5,256,2,2049,1\n\
                2024-01-15 10:30:45.000400,7,a,HIT,10,,256,0,2049,2\n2024-01-15 10:30:46.000000,7,a,EVICT,9,5,256,0,2049,1\n";
    let (trace, header) = load(text.as_bytes(), &OpenOptions::default()).expect("a trace");
    assert_eq!((counts(&trace), names(&trace)), ([5, 3, 1], vec!["dev 2049 ino 9", "dev 2049 ino 10"]));
    assert_eq!(header.seen, Some(Seen::PageCache));
}

/// Its schema 2 has a line of names and a second clock, which tells events of a microsecond apart.
#[test]
fn regression_io_tracer_with_its_monotonic_clock_is_read() {
    let names_of =
        "timestamp,pid,command,event_type,inode,page_index,size_pages,cpu_id,device_id,count,mono_ns\n".to_owned();
    let at = "2026-01-15 10:30:45.000000,7";
    let rows = format!(
        "{at},a,MISS,9,5,256,0,2049,1,81000000100\n{at},a,HIT,9,5,256,0,2049,1,81000000350\n\
         {at},a,b,HIT,10,,256,0,2049,2,81000000900\n"
    );
    for text in [names_of + &rows, rows] {
        let (trace, _) = load(text.as_bytes(), &OpenOptions::default()).expect("a trace");
        assert_eq!((counts(&trace), names(&trace)), ([4, 3, 0], vec!["dev 2049 ino 9", "dev 2049 ino 10"]));
        assert_eq!(trace.time_ns, Some(vec![0, 250, 800, 800]));
    }
}

/// Lines that are damaged, and lines of others: each is refused with its place.
#[test]
fn damage_has_its_place() {
    let head = |text: &str, n: usize| text.lines().take(n).map(|line| format!("{line}\n")).collect::<String>();
    let (queued, snooped, straced) = (head(BLKPARSE, 2), head(BIOSNOOP, 3), head(STRACE, 2));
    let block = "  a-7 [0] 9.1: block_rq_issue: 8,16 R 4096 () 16 + 8 [a]\n";
    for (text, what) in [
        (format!("{queued}259,0 3 1 0.5 901 Q R 1000\n"), "t:3: \"1000\" is not followed by +"),
        (format!("{queued}259,0 3 1 0.5 901 Q R -8 + 8 [x]\n"), "t:3: sector \"-8\" is not a number"),
        (format!("{queued}259,0 3 1 0.5 901\n"), "t:3: 5 fields instead of at least 7"),
        (format!("{queued}259,0 3 1 x 901 Q R 8 + 8 [x]\n"), "t:3: time \"x\" is not a number"),
        (format!("{queued}nonsense\n"), "t:3: \"nonsense\" is no device"),
        (format!("{snooped}0.6 x 7 sda W 8 4096\n"), "t:4: 7 fields instead of at least 9"),
        (format!("{snooped}0.6 x 7 sda W -8 4096 0.1 0.1\n"), "t:4: sector \"-8\" is not a number"),
        (format!("{straced}100 1700000000.2 pread64(3, \n"), "t:3: \"100 1700000000.2 pread64(3,\": the line is cut"),
        (format!("{straced}100 1700000000.2 pread64(3, \"\", 5, -1) = 5\n"), "t:3: \"-1\" is no place in a file"),
        (format!("{block}  a-7 [0] 9.1: block_rq_issue: 8,16 R 4096 () 16 +\n"), "t:2: the line is cut"),
        (format!("{block}  a-7 [0] 9.1: block_rq_issue: sda R 4096 () 16 + 8\n"), "t:2: \"sda\" is no device"),
        (format!("{block}nonsense\n"), "t:2: \"nonsense\" is no event"),
        ("  a 7 9.1: 1 page-faults: 55d0a1 f+0x1 (/x)\n".into(), "t:1: the line has an instruction and no address"),
        (
            "  0.0 ( 0.0 ms): a/1 majfault [x] => /f@0x1 (d.)\n  0.0 ( 0.0 ms): a/1 majfault [x] => /f\n".into(),
            "t:2: \"/f\" has no place",
        ),
        ("Output format:\n 1 0: 21 read 8 byte(s) @ \n".into(), "t:2: the line is cut: it has no address"),
        (
            "2024-01-15 10:30:45.0,7,a,HIT,9,5,2,0,8,1\n2024-01-15 10:30:45.0,7,a,HIT,9,x,2,0,8,1\n".into(),
            "t:2: index \"x\" is not a number",
        ),
        (
            "2024-01-15 10:30:45.0,7,a,HIT,9,5,2,0,8,1\n2024-01-15 10:30:45.0,7,a,HAT,9,5,2,0,8,1\n".into(),
            "t:2: \"HAT\" is no event",
        ),
        (
            "2024-01-15 10:30:45.0,7,a,HIT,9,5,2,0,8,1,5\n2024-01-15 10:30:45.0,7,a,HAT,9,5,2,0,8,1,6\n".into(),
            "t:2: \"HAT\" is no event",
        ),
    ] {
        let error = load(text.as_bytes(), &OpenOptions::default()).expect_err(&text).to_string();
        assert!(error.starts_with(what), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Files of tools that have no accesses say why, and what would.
#[test]
fn files_without_an_order_of_accesses_are_refused() {
    for (text, parts) in [
        ("  a 7 9.1: 33 cpu/mem-loads,ldlat=30/P: 7f0000065010 |OP LOAD|\n", ["samples of perf mem", "no replay"]),
        ("base_time_absolute: 8 m\n\nmonitoring_start: 0 ns\n", ["DAMON's damo", "no order of accesses"]),
        ("  RES PAGES  SIZE FILE\n 12M  3072   40M /srv/db/a.dat\n", ["fincore", "of no accesses"]),
        ("0x7f065040 R\n0x7f008080 W\n", ["Ramulator", "--format ramulator"]),
        ("  a-7 [0] 9.1: sched_switch: prev_comm=a\n", ["no event", "filemap and block"]),
    ] {
        let error = load(text.as_bytes(), &OpenOptions::default()).expect_err(text).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Accesses that a format has are said of a converted trace, too.
#[test]
fn accesses_that_are_seen_are_said_in_the_native_format() {
    let path = std::env::temp_dir().join(format!("seen-{}.parquet", std::process::id()));
    let input = Input::from_reader("t", Box::new(Cursor::new(BLKPARSE.as_bytes()))).expect("text");
    let mut source = open_input(input, &OpenOptions::default()).expect("a trace");
    let mut writer = refault_trace::NativeWriter::create(&path).expect("a file");
    let mut chunk = Vec::new();
    while source.next_chunk(&mut chunk).expect("records") {
        writer.write(&chunk).expect("written");
    }
    writer.finish(source.header()).expect("a trace");
    let native = refault_trace::open(&path, &OpenOptions::default()).expect("native");
    assert_eq!(native.header().seen, Some(Seen::BlockRequests));
    std::fs::remove_file(path).expect("removed");
}

/// The answer to any broken file is a trace or one line.
#[test]
fn damage_anywhere_is_a_trace_or_one_line() {
    let records =
        [blktrace(false, [100, 8], [8192, 0x0001_0001], 3), blktrace(false, [150, 8], [8192, 0x0002_0001], 0)];
    let mut samples: Vec<Vec<u8>> = [BLKPARSE, BIOSNOOP, STRACE, STRACE_Y].map(|text| text.as_bytes().to_vec()).into();
    samples.extend(EVENTS.iter().map(|(text, ..)| text.as_bytes().to_vec()));
    samples.push(records.concat());
    let answer = |bytes: &[u8], opts: &OpenOptions| {
        if let Err(error) = load(bytes, opts) {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    };
    for sample in samples {
        let format = load(&sample, &OpenOptions::default()).expect("a trace").1.format;
        let opts = OpenOptions { format: Some(format), ..OpenOptions::default() };
        for at in 0..sample.len() {
            answer(&sample[..at], &opts);
            for byte in [b' ', b',', b'<', b')', b'"', b'9', b'-', 0xff] {
                let mut broken = sample.clone();
                broken[at] = byte;
                answer(&broken, &opts);
            }
        }
    }
}
