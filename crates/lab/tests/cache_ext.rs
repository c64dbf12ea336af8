//! Published results of policies in the form of cache_ext ("cache_ext: Customizing the Page Cache
//! with eBPF", SOSP 2025), on machines of the lab.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;
use refault_mm::CacheExtPolicy;
use refault_testing::{is_whole, only_long};

fn run(text: &str) -> RunResult {
    let s = Scenario::parse("f.toml", text).unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&s, &s.policy).expect("a machine").run().expect("a run")
}

fn get(r: &RunResult, name: &str) -> f64 {
    r.metric(name).unwrap_or_else(|| panic!("no {name}"))
}

/// A search goes through its files ten times; 70 % of them fit into its group.
fn file_search(machine: &str, group: &str) -> RunResult {
    run(&format!(
        r#"
name = "file-search"
machine = {{ memory = "256M", cpus = 4 }}
policy = {{ name = "{machine}" }}
device.ssd = {{ preset = "sata-ssd" }}
memcg."/search" = {{ max = "45M"{group} }}
object.files = {{ kind = "file", size = "64M", device = "ssd" }}
[[task]]
name = "search"
memcg = "/search"
phase = [{{ read = "files", passes = 10, cpu = "2us" }}]
"#
    ))
}

/// A figure of one run over that of another, and where it must be.
fn within(what: &str, ratio: f64, band: std::ops::Range<f64>) {
    println!("{what}: {ratio:.2}");
    assert!(band.contains(&ratio), "{what}: {ratio:.2} is not within {band:?}");
}

/// Published: almost twice as fast as under both of Linux's.
#[test]
fn mru_searches_files_faster() {
    let speed = |machine, group| get(&file_search(machine, group), "task.search.bytes_per_s");
    let mru = speed("lru", ", cache_ext = \"mru\"");
    for linux in ["lru", "mglru"] {
        within(&format!("search, mru beside {linux}"), mru / speed(linux, ""), 1.4..2.2);
    }
}

/// Eight tasks that get from a database by popularity, first to fill memory, then measured.
fn gets(fill: &str, measured: &str) -> String {
    let phase = |more: String| {
        format!(
            r#"
[[task.phase]]
read = "db"
pattern = "zipf"
skew = 0.99
advice = "random"
cpu = "5us"
{more}
"#
        )
    };
    let head = "[[task]]\nname = \"get\"\ncount = 8\nmemcg = \"/db\"";
    let fill = phase(format!("measured = false\nduration = \"{fill}\""));
    format!("{head}{fill}{}", phase(format!("duration = \"{measured}\"")))
}

/// GETs of a database by popularity, scans of it beside them; a tenth of it fits. Two rules of
/// Linux are off. With `read_ahead_history` a scan reads what it asks for at once, and `get-scan`
/// gains 37 % in the place of 70 %; with ticks multi-gen LRU is 1 % above the default in the place
/// of 3 % below.
fn get_scan(machine: &str, group: &str, scans: &str) -> RunResult {
    let gets = gets("4s", "8s");
    run(&format!(
        r#"
name = "get-scan"
machine = {{ memory = "256M", cpus = 16, tick = 0, read_ahead_history = false }}
policy = {{ name = "{machine}" }}
device.ssd = {{ preset = "sata-ssd" }}
memcg."/db" = {{ max = "25M"{group} }}
object.db = {{ kind = "file", size = "256M", device = "ssd" }}
{gets}
[[task]]
name = "scan"
memcg = "/db"
cache_ext_hint = 1
phase = [{{ read = "db", pattern = "uniform", block = "4M", duration = "12s", cpu = "5us"{scans} }}]
"#
    ))
}

/// Published: GETs +70 %, their 99th percentile -57 %, SCANs -18 %; advice hardly helps, and
/// multi-gen LRU is below the default. The percentile is not reached: a GET that misses while the
/// disk is at 4 MiB of a scan waits for all of it, 7 ms, and that still happens to more than one in
/// a hundred.
#[test]
fn what_is_got_is_kept_from_scans() {
    if !only_long("what_is_got_is_kept_from_scans") {
        return;
    }
    let rates = |machine, group, advice| {
        let r = get_scan(machine, group, advice);
        [get(&r, "task.get.ops_per_s"), get(&r, "task.get.p99_ns"), get(&r, "task.scan.bytes_per_s")]
    };
    let default = rates("lru", "", "");
    let beside = |what: &str, other: [f64; 3], bands: [std::ops::Range<f64>; 3]| {
        for (i, (figure, band)) in ["gets", "p99 of gets", "scans"].into_iter().zip(bands).enumerate() {
            within(&format!("{figure}, {what}"), other[i] / default[i], band);
        }
    };
    beside("get-scan", rates("lru", ", cache_ext = \"get-scan\"", ""), [1.4..2.1, 0.85..1.0, 0.75..0.95]);
    if !is_whole() {
        return;
    }
    beside("lfu", rates("lru", ", cache_ext = \"lfu\"", ""), [1.3..1.9, 0.85..1.05, 0.7..0.95]);
    beside("mglru", rates("mglru", "", ""), [0.85..1.0, 0.9..1.1, 0.9..1.05]);
    for advice in [", advice = \"sequential\"", ", advice = \"noreuse\""] {
        beside(advice, rates("lru", "", advice), [0.85..1.1, 0.9..1.1, 0.9..1.1]);
    }
}

/// Where the percentile comes from: with pauses between scans fewer than one GET in a hundred waits
/// for one under `get-scan`, and still more than one by default.
#[test]
fn the_percentile_of_gets_is_whether_one_in_a_hundred_meets_a_scan() {
    if !only_long("the_percentile_of_gets_is_whether_one_in_a_hundred_meets_a_scan") {
        return;
    }
    let p99 = |group| get(&get_scan("lru", group, ", think = \"2ms\""), "task.get.p99_ns");
    let (default, own) = (p99(""), p99(", cache_ext = \"get-scan\""));
    assert!(default > 5e6, "{default} ns: a scan of 4 MiB");
    within("p99 of gets, get-scan, pauses between scans", own / default, 0.01..0.1);
}

/// Two groups on one disk: GETs of a database, and a search.
fn two_groups(policies: [&str; 2]) -> RunResult {
    let [database, search] = policies;
    let gets = gets("2s", "6s");
    run(&format!(
        r#"
name = "two-groups"
machine = {{ memory = "512M", cpus = 16 }}
policy = {{ name = "lru" }}
device.ssd = {{ preset = "sata-ssd" }}
memcg."/db" = {{ max = "25M"{database} }}
memcg."/search" = {{ max = "45M"{search} }}
object.db = {{ kind = "file", size = "256M", device = "ssd" }}
object.files = {{ kind = "file", size = "64M", device = "ssd" }}
{gets}
[[task]]
name = "search"
memcg = "/search"
phase = [{{ read = "files", duration = "8s", cpu = "2us" }}]
"#
    ))
}

/// Published: each with its own policy, +50 % and +80 %; a policy that fits one does not fit the
/// other.
#[test]
fn groups_have_the_policy_that_fits_them() {
    if !only_long("groups_have_the_policy_that_fits_them") {
        return;
    }
    let rates = |policies| {
        let r = two_groups(policies);
        [get(&r, "task.get.ops_per_s"), get(&r, "task.search.bytes_per_s")]
    };
    let [lfu, mru] = [", cache_ext = \"lfu\"", ", cache_ext = \"mru\""];
    let default = rates(["", ""]);
    let beside = |what: &str, policies| {
        let other = rates(policies);
        let ratios = [other[0] / default[0], other[1] / default[1]];
        println!("{what}: gets {:.2}, search {:.2}", ratios[0], ratios[1]);
        ratios
    };
    let both = beside("lfu and mru", [lfu, mru]);
    within("gets under lfu", both[0], 1.2..2.0);
    within("search under mru", both[1], 1.4..2.4);
    let swapped = beside("mru and mru", [mru, mru]);
    assert!(swapped[0] < both[0] * 0.8, "mru is not for GETs");
}

/// The keys of a group and of a task, and what is wrong with them.
#[test]
fn keys_of_policies_that_are_plug_ins() {
    let text = |policy: &str, group: &str, hint: &str| {
        format!(
            r#"
name = "keys"
machine = {{ memory = "64M" }}
policy = {{ name = "{policy}" }}
device.ssd = {{ preset = "nvme" }}
memcg."/g" = {{ cache_ext = "{group}" }}
object.file = {{ kind = "file", size = "1M", device = "ssd" }}
[[task]]
name = "t"
memcg = "/g"
cache_ext_hint = {hint}
phase = [{{ read = "file", passes = 1 }}]
"#
        )
    };
    let parsed = |policy, group, hint| Scenario::parse("f.toml", &text(policy, group, hint)).map_err(|e| e.to_string());
    let s = parsed("s3fifo", "2q", "7").expect("a scenario");
    assert_eq!((s.memcgs[0].cache_ext, s.tasks[0].cache_ext_hint), (Some(CacheExtPolicy::TwoQ), 7));
    let unknown = parsed("lru", "belady", "0").expect_err("no such policy");
    assert!(unknown.starts_with("f.toml:6: memcg.\"/g\".cache_ext: \"belady\" is not known"), "{unknown}");
    assert!(parsed("lru", "mru", "256").expect_err("too much").starts_with("f.toml:11: "));
    let generations = parsed("mglru", "mru", "0").expect("a scenario");
    let error = Machine::new(&generations, &generations.policy).err().expect("an error");
    assert!(error.contains("two lists"), "{error}");
}
