//! Cases as guests played them (`data/groups/cases.txt`), as a machine of the lab plays them.

use std::fmt::Write as _;
use std::path::Path;

use refault_lab::scenario::Scenario;
use refault_trace::{Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record, Via};
use serde_json::Value;

const CASES: &str = include_str!("../data/groups/cases.txt");

/// When the tasks start: guests are up long before.
pub(super) const START_MS: u64 = 2000;

/// Accesses that are due at the same time.
const BLOCK: u64 = 32;

/// Draws of a popular page.
const TABLE: u64 = 1 << 16;

/// Pages of zone DMA that are managed.
const DMA_PAGES: u64 = 3840;

/// Pages that the guest gave back when it was up: its initrd, and memory of init.
const INIT_PAGES: u64 = 2149;

/// The lines of a case.
pub(super) fn lines(name: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let (_, rest) = CASES.split_once(&format!("case {name}\n")).expect("a case");
    rest.lines().take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect())
}

/// The groups of a case that have tasks, in its order.
pub(super) fn groups(name: &str) -> Vec<&'static str> {
    let mut groups: Vec<&str> = lines(name).filter(|words| words[0] == "play").map(|words| words[1]).collect();
    groups.dedup();
    groups
}

/// Numbers of the tasks of a group, of which those of the guest's boot are the first.
pub(super) fn tasks(name: &str, group: &str) -> impl Iterator<Item = usize> {
    let plays = lines(name).filter(|words| words[0] == "play").enumerate();
    plays.filter(move |(_, words)| words[1] == group).map(|(i, _)| i + 1)
}

/// Whole seconds in which some task of a case has something to do.
pub(super) fn seconds(name: &str) -> u64 {
    let end = |w: Vec<&str>| number(w[8]) + (number(w[5]) - 1) / BLOCK * BLOCK * number(w[6]) / 1_000_000;
    lines(name).filter(|w| w[0] == "play").map(|w| end(w) / 1000).max().unwrap_or(0)
}

pub(super) fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// Popular pages are strewn over the object: draws of ranks, by the weight 1 / rank.
fn zipf_table(pages: u64) -> Vec<u64> {
    let mut state = 88_172_645_463_325_252;
    let mut place: Vec<u64> = (0..pages).collect();
    let sum: f64 = (0..pages).fold(0.0, |sum, i| sum + 1.0 / (i + 1) as f64);
    for i in (1..pages).rev() {
        place.swap(i as usize, (draw(&mut state) % (i + 1)) as usize);
    }
    let (mut at, mut rank) = (0.0, 0);
    let popular = (0..TABLE).map(|i| {
        while rank + 1 < pages && (i as f64 + 0.5) / TABLE as f64 > (at + 1.0 / (rank + 1) as f64) / sum {
            rank += 1;
            at += 1.0 / rank as f64;
        }
        place[rank as usize]
    });
    popular.collect()
}

/// Writes the accesses of a line `play`.
fn write_trace(words: &[&str], path: &Path) {
    let [pages, accesses, ns, seed] = [4, 5, 6, 7].map(|i| number(words[i]));
    let is_file = words[2] == "file";
    let table = if words[3] == "zipf" { zipf_table(pages) } else { Vec::new() };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let op = match is_file {
        true => Op { write: false, via: Some(Via::Fd) },
        false => Op { write: true, via: Some(Via::Map) },
    };
    let records: Vec<Record> = (0..accesses)
        .map(|i| {
            let page = match words[3] {
                "loop" => i % pages,
                "zipf" => table[(draw(&mut state) % TABLE) as usize],
                _ => draw(&mut state) % pages,
            };
            Record { time_ns: i / BLOCK * BLOCK * ns, ..Record::touch(page, op) }
        })
        .collect();
    let mut header = Header::new(Format::Native);
    let kind = if is_file { ObjectKind::File } else { ObjectKind::Anon };
    header.objects.push(ObjectInfo { pages: Some(pages), ..ObjectInfo::new("object", kind) });
    let mut writer = NativeWriter::create(path).expect("a trace");
    writer.write(&records).expect("a trace");
    writer.finish(&header).expect("a trace");
}

/// Groups, tasks and acts of a case.
fn sections(name: &str, shift_ms: u64, dir: &Path) -> String {
    let (mut text, mut nr) = (String::new(), 0);
    let start = START_MS + shift_ms;
    let limits = |words: &[&str]| -> String {
        words.chunks(2).map(|pair| format!("{} = \"{}p\"\n", pair[0], pair[1])).collect()
    };
    for words in lines(name) {
        match words[0] {
            "group" => write!(text, "[memcg.\"{}\"]\n{}", words[1], limits(&words[2..])),
            "play" => {
                nr += 1;
                let trace = dir.join(format!("{name}-{nr}.parquet"));
                if !trace.exists() {
                    write_trace(&words, &trace);
                }
                write!(
                    text,
                    "[[task]]\nname = \"task{nr}\"\nmemcg = \"{}\"\nstart = \"{}ms\"\n\
                     trace = {{ file = {trace:?}, device = \"disk\", advice = \"random\", mincore = true, timed = true }}\n",
                    words[1],
                    start + number(words[8])
                )
            }
            "at" => {
                // The guest takes its sample of a second first.
                let at = start + number(words[1]) + 1;
                let act = match words[2] {
                    "set" => format!("set = \"{}\"\n{}", words[3], limits(&words[4..])),
                    "reclaim" => format!("reclaim = \"{}\"\namount = \"{}p\"\n", words[3], words[4]),
                    _ => format!("remove = \"{}\"\n", words[3]),
                };
                write!(text, "[[event]]\nat = \"{at}ms\"\n{act}")
            }
            _ => Ok(()),
        }
        .expect("a text");
    }
    text
}

/// Groups with a limit of zswap have it on.
fn zswap_of(name: &str) -> &'static str {
    if name.starts_with("zswap-") { "zswap = {}\n" } else { "" }
}

/// Times of the guest, of which an instruction takes a nanosecond: `data/groups/README.md`.
const COSTS: &str = r#"{ read_hit = "12800ns", map_hit = "9200ns", anon_fault = "19300ns", minor_fault = "19300ns", major_fault = "9300ns", read_miss = "8300ns", scan_page = "300ns", skip_page = "90ns", reclaim_page = "1800ns", visit_group = "8us", pte_walk = "300ns" }"#;

/// The machine of a recording, started so much later, with such a seed of chance.
pub(super) fn scenario(row: &Value, shift_ms: u64, seed: u64, dir: &Path) -> Scenario {
    let name = row["case"].as_str().expect("a case");
    let before: Vec<u64> =
        row["before"].as_array().expect("a list").iter().map(|n| n.as_u64().expect("pages")).collect();
    let [pages, free, on_cpus, inactive, active, ..] = before[..] else { panic!("{before:?}") };
    let others = inactive + active;
    let kernel = pages - free - on_cpus - others;
    let profile = if row["kernel"].as_str().expect("a text").starts_with("7.2") { "7.2" } else { "6.12" };
    let policy = row["policy"].as_str().expect("a text");
    let flat = if name.ends_with("-flat") { "memory_recursiveprot = false, " } else { "" };
    let min_free = &row["min_free_kbytes"];
    let zswap = zswap_of(name);
    let head = format!(
        r#"name = "groups"
sample = "100ms"
seed = {seed}
machine = {{ memory = "{pages}p", kernel = "{kernel}p", dma = "{DMA_PAGES}p", init_memory = "{INIT_PAGES}p", min_free_kbytes = {min_free}, read_ahead = "0K", page_cluster = 3, dirty_expire = 0, per_cpu_lists = true, page_blocks = false, buffer_heads = false, stat_flush_interval = "2s", {flat}costs = {COSTS} }}
policy = {{ name = "{policy}", kernel = "{profile}" }}
device.disk = {{ preset = "ramdisk" }}
device.zram = {{ preset = "zram", compression_ratio = 64.0, compress = "20us", decompress = "10us" }}
swap = {{ device = "zram", size = "768M" }}
{zswap}[object.initrd]
kind = "anon"
size = "{others}p"
[[task]]
name = "others"
background = true
[[task.phase]]
write = "initrd"
passes = 1
[[task.phase]]
read = "initrd"
via = "fd"
passes = 2
[[task.phase]]
until = "end"
"#
    );
    Scenario::parse("groups", &(head + &sections(name, shift_ms, dir))).expect("a scenario")
}
