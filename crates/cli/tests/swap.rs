//! Traces with swap on zram, zswap and disks: traffic, pools, and refusals.

use crate::common::command::{Sandbox, error, ok};
use serde_json::Value;

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.generate("heap.parquet", &["60000: A:zipf:4000:kind=anon,op=w,via=map"]);
    s.generate("files.parquet", &["5000: A:loop:500"]);
    s
}

/// The row of a replay at half of the heap, under the two lists.
fn row(s: &Sandbox, flags: &[&str]) -> Value {
    let words = [&["replay", "heap.parquet", "-m", "50%", "-p", "lru", "--json"], flags].concat();
    let mut all: Value = serde_json::from_str(&ok(&s.run(&words))).expect("JSON");
    all["rows"][0].take()
}

fn number(row: &Value, path: &str) -> u64 {
    row.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {row}"))
}

#[test]
fn zram_and_disks_have_the_same_misses_and_zswap_has_more() {
    let s = sandbox();
    let misses = |flags: &[&str]| number(&row(&s, flags), "/misses");
    let plain = misses(&[]);
    assert_eq!([misses(&["--swap", "zram"]), misses(&["--swap", "disk"])], [plain; 2]);
    // Compressed pages are charged: the worse they shrink, the less is left.
    let (well, badly) = (["--swap", "zswap", "--compression", "ratio=8"], ["--swap", "zswap"]);
    let (well, badly) = (misses(&well), misses(&badly));
    assert!(plain < well && well < badly, "{plain} {well} {badly}");
}

#[test]
fn the_pool_is_what_its_pages_take() {
    let s = sandbox();
    let zram = row(&s, &["--swap", "zram", "--compression", "ratio=4,compress=10us,decompress=1us"]);
    let of = |path: &str| number(&zram, path);
    let (ins, outs, stored) = (of("/pool/pool_ins"), of("/pool/pool_outs"), of("/pool/stored_pages"));
    assert_eq!((ins, outs), (of("/counters/pswpin"), of("/counters/pswpout")));
    assert_eq!(stored, outs - ins, "a page that comes back gives up its slot");
    assert_eq!(of("/pool/codec_ns"), 10_000 * outs + 1_000 * ins);
    let bytes = of("/pool/pool_bytes");
    // A quarter of its pages, and the ends of some sixty classes of sizes, each of up to 8 pages.
    let most = stored * 1024 + 60 * 8 * 4096;
    assert!((stored * 1024..most).contains(&bytes), "{stored} pages in {bytes}");
    assert!(of("/pool/pool_peak_bytes") >= bytes);
    assert_eq!(zram["pool"]["pool_parts_bytes"].as_array().map(Vec::len), Some(32));
    // Pages that do not shrink go past zswap.
    let half = row(&s, &["--swap", "zswap", "--compression", "incompressible=50%"]);
    let (pool, disk) = (number(&half, "/pool/pool_outs"), number(&half, "/pool/disk_outs"));
    assert!(pool > 0 && disk > 0, "{half}");
    assert_eq!((pool, disk), (number(&half, "/counters/zswpout"), number(&half, "/counters/pswpout")));
    assert_eq!(number(&half, "/pool/written_back"), 0);
    let small = row(&s, &["--swap", "zswap", "--compression", "pool=1M"]);
    // A store that is let in may take a group of pages.
    assert!(number(&small, "/pool/pool_peak_bytes") <= (1 << 20) + 8 * 4096, "{small}");
    assert!(number(&small, "/pool/written_back") > 0, "{small}");
}

#[test]
fn a_pool_without_room_leaves_pages_in_memory() {
    let s = sandbox();
    let full = row(&s, &["--swap", "zram", "--compression", "pool=512K"]);
    assert!(number(&full, "/pool/refused") > 0 && full["oom_at"].is_u64(), "{full}");
    let none = row(&s, &["--swap", "none"]);
    assert_eq!(none["oom_at"], row(&s, &["--swap-max", "0"])["oom_at"]);
}

#[test]
fn streams_threads_and_csv_have_the_same_figures() {
    let s = sandbox();
    let of = |flags: &[&str]| row(&s, &[&["--swap", "zram"], flags].concat())["pool"].take();
    let plain = of(&[]);
    assert_eq!(of(&["--stream"]), plain);
    assert_eq!(of(&["--threads", "2", "-m", "20%,50%"]).as_object().map(serde_json::Map::len), Some(15));
    let csv = ok(&s.run(&["replay", "heap.parquet", "-m", "50%", "-p", "lru,opt", "--swap", "zram", "--csv"]));
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|name| *name == "pool_peak_bytes").expect("a column");
    assert_eq!(lines[1][at], plain["pool_peak_bytes"].to_string());
    assert_eq!((lines[2][at], lines[2].len()), ("", lines[0].len()));
    let table = ok(&s.run(&["replay", "heap.parquet", "-m", "50%", "-p", "lru", "--swap", "zswap"]));
    assert!(table.contains("swap on zswap: pages shrink to 1/2.2; 4.30 us to compress one"), "{table}");
}

#[test]
fn sizes_say_what_the_pool_takes() {
    let s = sandbox();
    let words = ["size", "heap.parquet", "--target", "hit_rate>90%", "--policy", "lru", "--json", "--swap"];
    let answer =
        |swap: &str| -> Value { serde_json::from_str(&ok(&s.run(&[&words[..], &[swap]].concat()))).expect("JSON") };
    let (zram, zswap) = (answer("zram"), answer("zswap"));
    let bytes = |of: &Value| of["answer_bytes"].as_u64().expect("an answer");
    assert!(bytes(&zram) < bytes(&zswap), "{zram} {zswap}");
    let point = &zswap["points"][0];
    assert!(point["pool_peak_bytes"].is_u64() && point["pool_ins"].is_u64(), "{point}");
}

#[test]
fn swap_that_cannot_be_known_is_refused() {
    let s = sandbox();
    for (words, want) in [
        (&["replay", "files.parquet", "--swap", "zram"][..], "which has no touches of anonymous memory"),
        (&["size", "files.parquet", "--swap", "zram"], "which has no touches of anonymous memory"),
        (&["replay", "heap.parquet", "--swap", "floppy"], "is no kind of swap; write none, zram, disk, zswap"),
        (&["replay", "heap.parquet", "--swap", "none:2G"], "none has no size"),
        (&["replay", "heap.parquet", "--swap", "disk", "--compression", "ratio=2"], "does nothing without --swap zram"),
        (&["replay", "heap.parquet", "--compression", "ratio=2"], "--swap"),
        (&["replay", "heap.parquet", "--swap", "zram", "--compression", "ratio=0"], "is not a ratio"),
        (&["replay", "heap.parquet", "--swap", "zram", "--set", "swap_pages=9"], "leave one of them out"),
        (&["replay", "heap.parquet", "--swap", "zram", "-p", "opt"], "does nothing under opt"),
        (&["replay", "heap.parquet", "--swap", "zram", "--sample", "10%"], "--sample"),
        (&["size", "heap.parquet", "--swap", "zram", "--sample", "10%", "--target", "hit_rate>9%"], "--sample"),
        (&["size", "heap.parquet", "--swap", "zram", "--group", "/"], "leave --group out"),
    ] {
        let said = error(&s.run(words));
        assert!(said.contains(want), "{words:?}: {said}");
    }
}
