//! Every mistake ends in one line that names the file or the flag, with status 2 and nothing
//! half-written.

use crate::common::command::{Sandbox, error, ok};
use std::path::PathBuf;

#[test]
fn flags() {
    let s = Sandbox::new();
    let trace = s.generate("loop.parquet", &["900: A:loop:300"]);
    std::fs::create_dir(s.path("dir")).expect("a directory");
    let before = s.files();
    let cases: &[(&[&str], &str)] = &[
        (&["--memory", "0"], "--memory 0: is less than one page"),
        (&["--memory", "0%"], "--memory 0%: is less than one page"),
        (&["--memory", "4095"], "less than one page of 4096 bytes"),
        (&["--memory", "301p"], "the footprint of loop (300 pages, 1,228,800 bytes"),
        (&["--memory", "101%"], "--beyond-footprint"),
        (&["--memory", "5x"], "\"5x\" is not a size"),
        (&["--memory", "10%,,20%"], "\"\" is not a size"),
        (&["--memory", "-5"], "invalid value '-5' for '--memory <LIST>': \"-5\" is not a size; write 512M"),
        (&["-m", "-5M"], "invalid value '-5M' for '--memory <LIST>': \"-5M\" is not a size; write 512M"),
        (&["--swap-max", "-5p"], "invalid value '-5p' for '--swap-max <SIZE>': \"-5p\" is not a size"),
        (&["--seed", "-1"], "invalid value '-1' for '--seed <N>': is not a whole number, 0 or more"),
        (&["--threads", "two"], "invalid value 'two' for '--threads <N>': is not a whole number, 0 or more"),
        (&["--scale", "-2"], "invalid value '-2' for '--scale <K>': \"-2\" is not a scale"),
        (&["--json", "-5"], "error: -5: no flag takes a negative number"),
        (&["--output", "-5"], "error: -5: no flag takes a negative number"),
        (&["--policy", "belady"], "unknown policy \"belady\"; known are lru, lru-2013"),
        (&["--policy", ""], "unknown policy \"\""),
        (&["--swap-max", "lots"], "\"lots\" is not a size"),
        (&["--swappiness", "201"], "--swappiness"),
        (&["--via", "air"], "--via"),
        (&["--threads", "0"], "--threads"),
        (&["--max-accesses", "0"], "--max-accesses"),
        (&["--windows", "0"], "--windows"),
        (&["--set", "speed=1"], "unknown key \"speed\""),
        (&["--set", "recency=9"], "it takes 3bit|literal"),
        (&["--set", "swap_cluster_max=0"], "it takes 1..1048576"),
        (&["--thp", "64k"], "write SIZE=WHEN"),
        (&["--thp", "64k=always,8k=always"], "unknown size \"8k\"; known are 16k, 32k"),
        (&["--thp", "64k=often"], "\"often\" is not a value of 64K; it takes always|inherit|madvise|never"),
        (&["--json", "--csv"], "--csv"),
        (&["--polcy", "lru"], "--polcy"),
        (&["--miss-bits", "bits"], "--miss-bits: wants one trace, one --policy and one --memory"),
        (&["--miss-bits", "bits", "--policy", "lru", "--memory", "10%,20%"], "there are 1, 1 and 2"),
        (&["--output", "no/such/file"], "no/such/file: cannot be written: No such file or directory"),
        (&["--output", "dir"], "dir: is a directory"),
        (&["--output", "loop.parquet"], "loop.parquet: is a trace to read"),
        (&["--output", "/dev/full"], "/dev/full: is not a regular file"),
        (
            &["--policy", "lru", "--memory", "10%", "--miss-bits", "same", "--output", "./same"],
            "--output and --miss-bits",
        ),
    ];
    for (flags, want) in cases {
        println!("{flags:?}"); // shown when it fails
        let line = error(&s.replay(&trace, flags));
        assert!(line.contains(want), "{flags:?}: {line}");
        assert_eq!(s.files(), before, "{flags:?}");
    }
}

#[test]
fn commands() {
    let s = Sandbox::new();
    assert!(error(&s.run(&["replay"])).contains("no trace given"));
    assert!(error(&s.run(&["reply", "x"])).contains("reply"));
    assert!(error(&s.run(&["replay", "-", "-"])).contains("standard input can be read once"));
}

#[test]
fn files() {
    let s = Sandbox::new();
    std::fs::create_dir(s.path("dir")).expect("a directory");
    s.write("empty", b"");
    s.write("blank.txt", b"\n\n# nothing\n");
    s.write("words.txt", b"12\nhello\n");
    s.write("prose.txt", b"hello\n12\n");
    s.write("noise", &[0xf7; 999]);
    s.write("good.txt", b"1\n2\n3\n");
    let cases: &[(&[&str], &str)] = &[
        (
            &["missing"],
            "missing: cannot be opened: No such file or directory; refault record and refault trace generate",
        ),
        (&["words.txt"], "words.txt:2: page \"hello\" is not a number\n"),
        (&["prose.txt"], "prose.txt: format not recognised: line 1 is a header (\"hello\")"),
        (
            &["prose.txt", "--format", "plain"],
            "prose.txt:1: page \"hello\" is not a number; line 1 looks like a header",
        ),
        (&["noise"], "say which it is with --format: native"),
        (&["noise"], "; docs/reference/formats.md has what each is"),
        (&["dir"], "dir: is a directory"),
        (&["empty"], "empty: holds no access"),
        (&["blank.txt"], "blank.txt: holds no access"),
        (&["words.txt"], "words.txt:2: "),
        (&["good.txt", "missing", "--memory", "100%"], "missing: cannot be opened"),
        (&["-"], "stdin: holds no access"),
    ];
    for (args, want) in cases {
        let line = error(&s.run(&[&["replay"], *args].concat()));
        assert!(line.contains(want), "{args:?}: {line}");
    }
}

/// Scenarios have other flags than traces, and neither goes with the other.
#[test]
fn scenarios() {
    let s = Sandbox::new();
    let tiny = include_str!("data/tiny.toml");
    let scenario = s.write("tiny.toml", tiny.as_bytes());
    let trace = s.generate("loop.parquet", &["900: A:loop:300"]);
    s.write("cut.toml", &tiny.as_bytes()[..tiny.len() / 2 + 3]);
    s.write("empty.toml", b"");
    s.write("noise.toml", &[0xff; 100]);
    s.write("key", tiny.replace("cpus", "cpu").as_bytes());
    std::fs::create_dir(s.path("dir.toml")).expect("a directory");
    let before = s.files();
    let cases: &[(&[&str], &str)] = &[
        (&["--memory", "1M"], "--memory: is for traces, and "),
        (&["--memory", "1M"], "tiny.toml is a scenario; what it has instead is machine.memory"),
        (&["--miss-bits", "bits"], "--miss-bits: is for traces"),
        (&["--curve"], "--curve: is for traces"),
        (&["--via", "fd"], "--via: is for traces"),
        (&["--swap-max", "max"], "--swap-max: is for traces"),
        (&["--swappiness", "60"], "machine.swappiness"),
        (&["--windows", "3"], "--windows: is for traces"),
        (&["--set", "charge_batch=1"], "--set: is for traces"),
        (&["--thp", "64k=always"], "--thp: is for traces"),
        (&["--max-accesses", "3"], "--max-accesses: is for traces"),
        (&["--beyond-footprint"], "--beyond-footprint: is for traces"),
        (&["--format", "plain"], "--format: is for traces"),
        (&["--raw-ids"], "--raw-ids: is for traces"),
        (&["--strict"], "--strict: is for traces"),
        (&["--policy", "lru,opt"], "--policy opt: knows the accesses to come"),
        (&["--scale", "0"], "\"0\" is not a scale"),
        (&["--scale", "64"], "tiny.toml: --scale 64: memory"),
        (
            &["--series", "out", "--policy", "lru,mglru"],
            "--series: wants one scenario and one policy, but there are 1 and 2",
        ),
        (&["--series", "no/such"], "no/such: cannot be written"),
        (&["--series", "tiny.toml"], "tiny.toml: is a scenario to read; give --series another name"),
        (&["--output", "tiny.toml"], "tiny.toml: is a scenario to read; give --output another name"),
        (&["--output", "x", "--series", "./x"], "is named by --output and --series"),
        (&["loop.parquet"], "loop.parquet is a trace; replay them one after the other"),
        (&["missing.toml"], "missing.toml: cannot be opened"),
        (&["cut.toml", "--output", "x"], "cut.toml:"),
        (&["empty.toml"], "empty.toml:"),
        (&["noise.toml"], "noise.toml: is not text in UTF-8"),
        (&["key"], "machine.cpu: unknown key; did you mean cpus?"),
        (&["dir.toml"], "dir.toml: cannot be read: "),
    ];
    for (args, want) in cases {
        println!("{args:?}"); // shown when it fails
        let line = error(&s.replay(&scenario, args));
        assert!(line.contains(want), "{args:?}: {line}");
        assert_eq!(s.files(), before, "{args:?}");
    }
    for flags in [&["--scale", "2"][..], &["--check"], &["--series", "out"]] {
        let line = error(&s.replay(&trace, flags));
        assert!(line.contains(&format!("{}: is for scenarios, and ", flags[0])), "{line}");
        assert_eq!(s.files(), before);
    }
}

/// Small files of every format, and the length at which each is cut inside a record.
fn small_files(s: &Sandbox) -> Vec<(&'static str, &'static str, Vec<u8>, usize)> {
    let general = |id: u64| [&1u32.to_le_bytes()[..], &id.to_le_bytes(), &4096u32.to_le_bytes(), &[255; 8]].concat();
    let scsi = |sector: u64| {
        let head = [1u32, 4096, 1].map(u32::to_le_bytes).concat();
        [&head[..], &0x28u16.to_le_bytes(), &0x100u16.to_le_bytes(), &sector.to_le_bytes(), &7u64.to_le_bytes()]
            .concat()
    };
    let native = std::fs::read(s.generate("whole.parquet", &["500: A:loop:100"])).expect("readable");
    let words: Vec<u8> = (0..100u64).flat_map(u64::to_le_bytes).collect();
    let csv = b"128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061630,hm,1,Wri".to_vec();
    let pgtrace = {
        let mut file = b"PGTRACE1".to_vec();
        file.extend([0; 32]);
        let head = [10u32, 100, 0, 1, 5, 1, 5];
        file.extend(head.into_iter().chain([0; 15]).chain(0..5).flat_map(u32::to_le_bytes));
        file
    };
    let half = native.len() / 2;
    vec![
        ("native", "t.parquet", native, half),
        ("oracle-general", "t.oracleGeneral.bin", (1..9).flat_map(|i| general(i * 8)).collect(), 100),
        ("vscsi", "t.vscsi", (1..9).flat_map(|i| scsi(i * 8)).collect(), 100),
        ("msr", "t.csv", csv.clone(), csv.len()),
        ("plain", "t.txt", b"12\n13 r\n14 z".to_vec(), 12),
        ("arc", "t.lis", b"1 4 0 0\n9 4 0 1\n12 4".to_vec(), 19),
        ("lirs", "t.lirs", b"1\n2\n*\n3x".to_vec(), 8),
        ("u32le", "t.u32", words.clone(), 398),
        ("u32be", "t.u32", words.clone(), 399),
        ("u64le", "t.u64", words.clone(), 399),
        ("u64be", "t.u64", words, 401),
        ("pgtrace", "t.trace", pgtrace.clone(), pgtrace.len() - 3),
        ("lackey", "t.lackey", b" L 1000,8\n S 2000,".to_vec(), 18),
        ("address", "t.trace", b"l 0x1000 1\ns 0x".to_vec(), 15),
        ("drmemtrace", "t.zip", b"PK\x03\x04not really a zip".to_vec(), 20),
    ]
}

#[test]
fn truncated_files_of_every_format() {
    let s = Sandbox::new();
    for (format, name, bytes, cut) in small_files(&s) {
        let path = s.write(name, &bytes[..cut]);
        let line = error(&s.replay(&path, &["--format", format, "--output", "result"]));
        assert!(line.contains(name), "{format}: {line}");
        println!("{format}: {}", line.replace(&*path.display().to_string(), name).trim_end());
        assert!(!s.path("result").exists());
    }
}

#[test]
fn cut_compression() {
    let s = Sandbox::new();
    let text: Vec<u8> =
        (0..20_000u32).flat_map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
    let packed = zstd::encode_all(&text[..], 3).expect("compresses");
    let path = s.write("t.txt.zst", &packed[..packed.len() / 2]);
    assert!(error(&s.replay(&path, &[])).contains("t.txt.zst"));
}

/// Names that promise one format around the bytes of another, or of none.
#[test]
fn random_bytes_and_wrong_names() {
    let s = Sandbox::new();
    let mut x = 1u64;
    let noise: Vec<u8> = (0..4099)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        })
        .collect();
    for name in ["n.parquet", "n.vscsi", "n.csv", "n.lis", "n.lirs", "n.txt", "n.lackey", "n.oracleGeneral.bin", "n"] {
        let path = s.write(name, &noise);
        let line = error(&s.replay(&path, &["--memory", "1p", "--csv"]));
        assert!(line.contains(name), "{line}");
    }
    let plain: PathBuf = s.write("plain.parquet", b"1\n2\n3\n4\n");
    // Contents win over names where they are plain to see.
    assert!(s.replay(&plain, &["--memory", "4p", "--policy", "opt"]).status.success());
    let native = s.generate("native.parquet", &["50: A:loop:10"]);
    let path = s.write("native.csv", &std::fs::read(native).expect("readable"));
    assert!(s.replay(&path, &["--memory", "5p", "--policy", "opt"]).status.success());
}

#[test]
fn a_reader_that_left_is_no_error() {
    use std::process::{Command, Stdio};
    let s = Sandbox::new();
    let trace = s.generate("loop.parquet", &["900: A:loop:300"]);
    for args in [vec!["replay", "--help"], vec!["replay", trace.to_str().expect("text"), "--vmstat", "--curve"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_refault"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        drop(child.stdout.take());
        let done = child.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{done:?}");
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// `convert` must not replace the trace that it reads.
#[test]
fn a_trace_is_not_converted_onto_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("t.txt");
    std::fs::write(&path, "1\n2\n1\n").expect("a file");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_refault"))
        .args(["trace", "convert"])
        .args([&path, &path])
        .output()
        .expect("a run");
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("is the trace to read"));
    assert_eq!(std::fs::read(&path).expect("the file"), b"1\n2\n1\n");
}

/// It exited well when nobody could read what it printed.
#[test]
fn regression_what_cannot_be_printed_is_an_error() {
    let s = Sandbox::new();
    let trace = s.generate("loop.parquet", &["900: A:loop:300"]);
    let trace = trace.to_str().expect("text");
    for words in [
        &["--help"][..],
        &["--version"],
        &["replay", "--help"],
        &["replay", "--set", "help"],
        &["replay", trace, "--memory", "20%"],
        &["replay", trace, "--kernel", "list"],
        &["trace", "info", trace],
        &["size", trace, "--target", "hit_rate>10%"],
        &["doctor"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("there");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_refault"));
        let done = command.args(words).stdin(std::process::Stdio::null()).stdout(full).output().expect("it runs");
        let said = error(&done);
        assert!(said.contains("standard output: cannot be written: No space left"), "{words:?}: {said}");
    }
}

/// A few hundred bytes took gigabytes, and the kernel's or the shell's word was all that was said.
#[test]
fn regression_ranges_stay_ranges_and_memory_has_a_bound() {
    let s = Sandbox::new();
    let lines: String = (0..24u64).map(|i| format!("{} 16777216 0 {i}\n", i << 24)).collect();
    let trace = s.write("ranges.lis", lines.as_bytes());
    let trace = trace.to_str().expect("text");
    let shown = ok(&s.run(&["trace", "info", trace, "--max-memory", "64M"]));
    assert!(shown.contains("distinct pages  402,653,184"), "{shown}");
    ok(&s.run(&["trace", "convert", trace, "out.parquet", "--max-memory", "256M"]));
    let before = s.files();
    let given = ["replay", trace, "--memory", "10%", "--output", "result", "--max-memory", "256M"];
    let said = error(&s.run(&given));
    assert!(said.starts_with("error: out of memory: ") && said.contains("--max-memory is 256 MiB"), "{said}");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 600000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_refault")]);
    let done = limited.args(&given[..6]).current_dir(s.path(".")).output().expect("it runs");
    assert!(error(&done).starts_with("error: out of memory: "), "{done:?}");
    assert_eq!(s.files(), before);
}

#[test]
fn regression_units_that_are_in_doubt_are_said() {
    let s = Sandbox::new();
    let lines: String = (0..100u64).map(|i| format!("{}\n", i * 8)).collect();
    let trace = s.write("sectors.txt", lines.as_bytes());
    let trace = trace.to_str().expect("text");
    for command in [&["replay", trace, "--memory", "20%"][..], &["trace", "info", trace], &["size", trace]] {
        let done = s.run(command);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(said.matches("note: ").count(), 1, "{said}");
        assert!(
            said.contains("all are multiples of 8: they look like sectors of 512 bytes; --block-bytes 512"),
            "{said}"
        );
        assert!(error(&s.run(&[command, &["--strict"]].concat())).contains("--strict: numbers are read as pages"));
        let sure = s.run(&[command, &["--strict", "--block-bytes", "4096"]].concat());
        assert_eq!(String::from_utf8_lossy(&sure.stderr), "");
    }
}

#[test]
fn regression_an_unknown_kernel_of_a_scenario_has_its_nearest_named() {
    let s = Sandbox::new();
    let tiny = include_str!("data/tiny.toml");
    let from = tiny.find("[policy]").map_or_else(|| format!("{tiny}\n[policy]\n"), |_| tiny.to_owned());
    let path = s.write("old.toml", from.replacen("[policy]\n", "[policy]\nkernel = \"6.8\"\n", 1).as_bytes());
    let said = error(&s.replay(&path, &[]));
    assert!(said.contains("\"6.8\" is not known; nearest to it is 6.6; known are 2022-v14, 6.1"), "{said}");
    ok(&s.replay(&s.write("tiny.toml", tiny.as_bytes()), &["--max-memory", "1G"]));
}
