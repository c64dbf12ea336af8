//! `refault replay` as a user meets it: results and their forms.

use crate::common::command::{Sandbox, ok, rows};
use refault_mm::Policy;
use serde_json::Value;

/// Two sets, reads and writes, a file by descriptor and anonymous memory.
const MIXED: [&str; 2] =
    ["20000: A:zipf:2000; B:loop:700:weight=2; H:uniform:500:kind=anon,op=w", "8000: B:uniform:700"];

#[test]
fn table_names_every_column_and_row() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    let text = ok(&s.replay(&trace, &["--policy", "all", "--memory", "20%,512p"]));
    assert!(text.starts_with("mixed: 28,000 accesses to "), "{text}");
    for name in ["policy", "memory", "pages", "misses", "refaults", "restores", "lru-2013", "mglru-shadow", "opt"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains('%')).count(), 14);
    assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
}

#[test]
fn json_has_the_documented_fields() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    let rows = rows(&ok(&s.replay(&trace, &["--policy", "lru,mglru,opt", "--memory", "600p", "--json"])));
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!(row["trace"], "mixed");
        assert_eq!(row["memory_pages"], 600);
        assert_eq!(row["memory_bytes"], 600 * 4096);
        assert_eq!(row["page_size"], 4096);
        assert_eq!(row["accesses"], 28_000);
        assert_eq!(row["trace_accesses"], 28_000);
        assert!(row["footprint_pages"].as_u64() > Some(2000));
        assert_eq!(row["seed"], 0);
        assert!(row["oom_at"].is_null());
        assert!(row["maccesses_per_s"].is_number());
        let (hits, misses) = (row["hits"].as_u64().expect("hits"), row["misses"].as_u64().expect("misses"));
        assert_eq!(hits + misses, 28_000);
        assert!((row["hit_rate"].as_f64().expect("a rate") - hits as f64 / 28_000.0).abs() < 1e-12);
    }
    let lru = &rows[0];
    assert_eq!(lru["policy"], "lru");
    let reclaimed = ["pgsteal_anon", "pgsteal_file"].map(|name| lru["counters"][name].as_u64().expect(name));
    assert_eq!(Some(reclaimed.iter().sum()), lru["counters"]["pgsteal_direct"].as_u64());
    assert!(lru["gauges"]["memory.current"].as_u64() <= Some(600));
    assert_eq!(lru["config"]["swappiness"], 60);
    assert_eq!(lru["config"]["clock"], "evictions-and-activations");
    assert_eq!(rows[2]["policy"], "opt");
    assert_eq!(rows[2]["counters"], serde_json::json!({}));
}

#[test]
fn csv_has_a_heading_and_a_line_a_row() {
    let s = Sandbox::new();
    let trace = s.generate("a,b.parquet", &MIXED);
    let text = ok(&s.replay(&trace, &["--memory", "600p", "--csv"]));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "trace,policy,memory_pages,memory_bytes,footprint_pages,accesses,hits,misses,hit_rate,refaults,activations,\
         restores,evicted_anon,evicted_file,swap_ins,swap_outs,oom_at,maccesses_per_s,kernel,settings"
    );
    assert_eq!(lines.len(), 4);
    assert!(lines[1].starts_with("\"a,b\",lru,600,2457600,"), "{}", lines[1]);
    let wide = ok(&s.replay(&trace, &["--memory", "600p", "--csv", "--vmstat"]));
    let columns: Vec<_> = wide.lines().map(|line| line.split(',').count()).collect();
    assert!(wide.lines().next().is_some_and(|l| l.contains(",pgscan_direct,") && l.contains(",memory.current,")));
    let mut heads: Vec<_> = wide.lines().next().unwrap_or_default().split(',').collect();
    assert!(heads.contains(&"mthp.64kB.swpout") && heads.contains(&"memory.events.oom_kill"), "{heads:?}");
    heads.sort_unstable();
    assert!(heads.windows(2).all(|pair| pair[0] != pair[1]), "a name stands twice: {heads:?}");
    // The name of the trace holds a comma.
    assert!(columns[1..].iter().all(|&n| n == columns[0] + 1), "{columns:?}");
}

#[test]
fn threads_and_repeats_change_nothing_but_the_speed() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    let run = |threads: &str| {
        let flags = ["--policy", "all", "--memory", "10%,30%,70%", "--json", "--windows", "7", "--threads", threads];
        let mut rows = rows(&ok(&s.replay(&trace, &flags)));
        let speed = |row: &mut Value| row.as_object_mut().and_then(|r| r.remove("maccesses_per_s"));
        assert!(rows.iter_mut().all(|row| speed(row).is_some()));
        serde_json::to_string(&rows).expect("JSON")
    };
    let one = run("1");
    assert_eq!(one, run("2"));
    assert_eq!(one, run("5"));
}

/// Accesses that sizes have in common are replayed once. Each size alone comes to the same.
#[test]
fn sizes_that_begin_alike_come_to_what_each_comes_to_alone() {
    let s = Sandbox::new();
    let cases = [
        ["40000: F:zipf:9000:permute=yes; G:uniform:3000:via=map; N:zipf:2000:kind=anon,op=w"],
        // In a third of it files are written, and what is dirty depends on the limit.
        ["40000: F:zipf:9000:permute=yes,weight=20; W:uniform:2000:op=w; G:seq:9000:via=map,weight=9"],
    ];
    for (i, phases) in cases.iter().enumerate() {
        let trace = s.generate(&format!("{i}.parquet"), phases);
        let run = |sizes: &str| {
            let flags = ["--policy", "lru,mglru,opt,s3fifo", "--memory", sizes, "--json", "--windows", "7"];
            let mut rows = rows(&ok(&s.replay(&trace, &[&flags[..], &["--lru-gen", "--beyond-footprint"]].concat())));
            rows.iter_mut().for_each(|row| _ = row.as_object_mut().and_then(|r| r.remove("maccesses_per_s")));
            rows
        };
        let sizes = ["1200p", "3000p", "5000p", "9000p", "100%"];
        let alone: Vec<_> = sizes.iter().flat_map(|size| run(size)).collect();
        assert_eq!(run(&sizes.join(",")), alone, "{phases:?}");
    }
}

#[test]
fn miss_bits_are_the_misses() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    for policy in ["lru", "mglru-shadow", "opt"] {
        let flags = ["--policy", policy, "--memory", "600p", "--json", "--miss-bits", "bits", "--windows", "4"];
        let row = &rows(&ok(&s.replay(&trace, &flags)))[0];
        let bits = std::fs::read(s.path("bits")).expect("written");
        assert_eq!(bits.len(), 28_000 / 8);
        let ones: u32 = bits.iter().map(|b| b.count_ones()).sum();
        assert_eq!(Some(u64::from(ones)), row["misses"].as_u64(), "{policy}");
        assert_eq!(bits[0] & 1, 1, "the first access is a miss");
        let windows: Vec<u64> =
            bits.chunks(28_000 / 8 / 4).map(|w| w.iter().map(|b| u64::from(b.count_ones())).sum()).collect();
        assert_eq!(row["window_misses"], serde_json::json!(windows), "{policy}");
    }
}

#[test]
fn output_goes_whole_into_a_file() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    for form in ["--json", "--csv", "--vmstat"] {
        let shown = ok(&s.replay(&trace, &["--memory", "600p", form, "--output", "result"]));
        assert!(shown.is_empty(), "{shown}");
        assert!(std::fs::read_to_string(s.path("result")).expect("written").contains("mglru"));
    }
    assert_eq!(s.files(), ["mixed.parquet", "result"]);
}

#[test]
fn without_swap_anonymous_memory_runs_out() {
    let s = Sandbox::new();
    let trace = s.generate("anon.parquet", &["3000: H:seq:3000:kind=anon,op=w"]);
    let flags = ["--policy", "all", "--memory", "1000p", "--swap-max", "0"];
    let text = ok(&s.replay(&trace, &flags));
    assert_eq!(text.matches("OOM at access ").count(), 6, "{text}");
    for row in rows(&ok(&s.replay(&trace, &[&flags[..], &["--json"]].concat()))) {
        if row["policy"] != "opt" {
            let at = row["oom_at"].as_u64().expect("out of memory");
            assert!((900..1000).contains(&at), "{at}");
            assert_eq!(row["accesses"], at + 1);
        }
    }
    let swapping = rows(&ok(&s.replay(&trace, &["--memory", "1000p", "--policy", "lru", "--json"])));
    assert!(swapping[0]["oom_at"].is_null());
    assert!(swapping[0]["counters"]["pswpout"].as_u64() > Some(1900));
}

#[test]
fn sizes_in_every_unit_and_each_once() {
    let s = Sandbox::new();
    let trace = s.generate("loop.parquet", &["9000: A:loop:3000"]);
    let text = ok(&s.replay(&trace, &["--policy", "opt", "--memory", "10%,300p,1.5M,4M,1228800", "--csv"]));
    let pages: Vec<_> = text.lines().skip(1).map(|l| l.split(',').nth(2).expect("a size").to_owned()).collect();
    assert_eq!(pages, ["300", "384", "1024"]);
    let beyond = ok(&s.replay(&trace, &["--policy", "lru", "--memory", "1G", "--beyond-footprint", "--csv"]));
    assert!(beyond.contains(",9000,6000,3000,"), "{beyond}");
    let most = ["--memory", "18446744073709551615p,1p", "--beyond-footprint", "--policy", "all", "--curve"];
    assert!(ok(&s.replay(&trace, &most)).contains("16777216.0T"));
}

#[test]
fn curve_windows_and_generations_are_drawn() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    let text = ok(&s.replay(&trace, &["--policy", "all", "--curve"]));
    let curve = &text[text.find("hit rate against memory").expect("a curve")..];
    assert!(curve.lines().all(|line| line.chars().count() <= 80) && curve.contains("m=mglru"), "{curve}");
    assert!(!curve.contains('\x1b'), "colours are for terminals");
    let text = ok(&s.replay(&trace, &["--memory", "600p", "--windows", "4"]));
    assert!(text.contains("hit rate by window") && text.contains("21,000"), "{text}");
    let text = ok(&s.replay(&trace, &["--memory", "600p", "--policy", "lru,mglru", "--lru-gen"]));
    assert_eq!(text.matches(": lru_gen\n").count(), 1, "only multi-gen LRU has generations: {text}");
    assert!(text.contains("memcg     1 /replay\n node     0\n"), "{text}");
}

#[test]
fn only_the_first_accesses() {
    let s = Sandbox::new();
    let trace = s.generate("mixed.parquet", &MIXED);
    let text = ok(&s.replay(&trace, &["--max-accesses", "1000"]));
    assert!(text.starts_with("mixed: 1,000 accesses"), "{text}");
}

#[test]
fn large_folios_if_they_are_asked_for() {
    let s = Sandbox::new();
    let trace = s.generate("anon.parquet", &["4000: A:loop:400:kind=anon,op=w,via=map"]);
    let flags = ["--policy", "mglru", "--memory", "50%", "--json"];
    let plain = ok(&s.replay(&trace, &flags));
    assert!(!plain.contains("mthp"), "{plain}");
    let large = ok(&s.replay(&trace, &[&flags[..], &["--thp", "64k=always,defrag=always"]].concat()));
    let rows: Value = serde_json::from_str(&large).expect("JSON");
    let count = |name: &str| rows["rows"][0]["mthp"][name].as_u64().unwrap_or_else(|| panic!("{name}: {large}"));
    // 400 pages are 25 times 64 KiB.
    assert_eq!(count("64kB.anon_fault_alloc"), 25);
    assert!(count("64kB.swpout") > 0, "{large}");
}

#[test]
fn swap_that_is_too_small_is_a_result() {
    let s = Sandbox::new();
    let trace = s.generate("anon.parquet", &["20000: H:zipf:2000:kind=anon,op=w"]);
    let flags = ["--policy", "lru", "--memory", "30%"];
    let row = |more: &[&str]| rows(&ok(&s.replay(&trace, &[&flags[..], more, &["--json"]].concat()))).remove(0);
    let roomy = row(&[]);
    assert!(roomy["oom_at"].is_null() && roomy["memory.swap.events"]["fail"] == 0, "{roomy}");
    // A limit of the group, or a device that is full.
    for (more, limit) in [(["--swap-max", "300p"], true), (["--set", "swap_pages=300"], false)] {
        let row = row(&more);
        let swap = |name: &str| row["memory.swap.events"][name].as_u64().expect(name);
        let at = row["oom_at"].as_u64().expect("it ends early");
        assert_eq!(
            (row["accesses"].as_u64(), row["gauges"]["swap.current"].as_u64()),
            (Some(at + 1), Some(300)),
            "{row}"
        );
        assert!(swap("fail") > 0 && (swap("max") > 0) == limit, "{row}");
        assert!(row["memory.events"]["oom"].as_u64() > Some(0), "{row}");
        assert_eq!(row["swap"][0]["peak_pages"], 300);
        let text = ok(&s.replay(&trace, &[&flags[..], &more, &["--vmstat"]].concat()));
        assert!(text.contains(&format!("no room in swap {} times", swap("fail"))), "{text}");
        assert!(text.contains(&format!("memory.swap.events.fail {}", swap("fail"))), "{text}");
    }
    // None at all is nothing that failed.
    let text = ok(&s.replay(&trace, &[&flags[..], &["--swap-max", "0"]].concat()));
    assert!(text.contains("OOM at access") && !text.contains("room in swap"), "{text}");
}

#[test]
fn the_swap_map_shows_clusters_by_list_and_order() {
    let s = Sandbox::new();
    let trace = s.generate("anon.parquet", &["9000: A:loop:3000:kind=anon,op=w,via=map"]);
    let flags =
        ["--policy", "mglru,opt", "--memory", "50%", "--set", "swap_pages=4000", "--thp", "64k=always,defrag=always"];
    let rows = rows(&ok(&s.replay(&trace, &[&flags[..], &["--swap-map", "--json"]].concat())));
    let device = &rows[0]["swap"][0];
    let n = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} of {device}"));
    let sum = |value: &Value| value.as_array().expect("an array").iter().map(n).sum::<u64>();
    assert_eq!((n(&device["usable_pages"]), n(&device["pages"]), n(&device["cluster_pages"])), (4000, 4001, 512));
    let c = &device["clusters"];
    let of_order_4 = n(&c["nonfull"][4]) + n(&c["frag"][4]);
    assert!(of_order_4 + n(&c["full"]) >= 1, "folios of 64 KiB have clusters: {device}");
    let all = n(&c["free"]) + sum(&c["nonfull"]) + sum(&c["frag"]) + n(&c["full"]) + n(&c["discard"]);
    assert_eq!((all, sum(&device["clusters_by_usage"])), (8, 8), "eight clusters hold 4,001 pages: {device}");
    let places: Vec<u64> = device["free_places"].as_array().expect("by order").iter().map(n).collect();
    assert_eq!((places.len(), places[0]), (10, 4000 - n(&device["used_pages"])), "{device}");
    assert!(places.windows(2).all(|two| two[1] <= two[0] / 2), "an order has half the places at most: {device}");
    assert!(rows[1]["swap"].is_null(), "OPT has no swap");
    let text = ok(&s.replay(&trace, &[&flags[..], &["--swap-map"]].concat()));
    assert_eq!(text.matches(": swap\n").count(), 1, "{text}");
    for part in [
        "# anon mglru 1500p: swap\nswap 0: ",
        " of 4,000 pages used (",
        "8 clusters of 512 pages\n",
        "  order    nonfull       frag    free places\n",
        "clusters by use, none to all:",
        "1 to a character; . free, 1 to 8 eighths used, # full, d to be discarded",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picture = text.lines().last().expect("a line").trim();
    assert!(!picture.is_empty() && picture.chars().all(|c| ".12345678#d".contains(c)), "{text}");
    // Without the flag the devices are there, their clusters are not.
    let plain = self::rows(&ok(&s.replay(&trace, &[&flags[..], &["--json"]].concat())));
    assert!(plain[0]["swap"][0]["clusters"].is_null() && plain[0]["swap"][0]["used_pages"].is_number());
}

#[test]
fn a_note_says_that_plug_ins_have_nothing_to_choose() {
    let s = Sandbox::new();
    let trace = |kind: &str| s.generate(&format!("{kind}.parquet"), &[&format!("2000: heap:zipf:100:kind={kind}")]);
    for (kind, policies, noted) in [("anon", "mru,lru,sieve", true), ("anon", "lru,opt", false), ("file", "mru", false)]
    {
        let out = s.replay(&trace(kind), &["--memory", "50%", "--policy", policies]);
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        let note = "anon.parquet: has no pages of files for mru, sieve to choose among; their rows are those of lru\n";
        assert_eq!((err.contains(note), err.is_empty()), (noted, !noted), "{err}");
    }
}

#[test]
fn help_says_units_and_defaults() {
    let s = Sandbox::new();
    let help = ok(&s.run(&["replay", "--help"]));
    for text in ["10%,25%,50%", "4096p", "[default: 60]", "[default: max]", "[default: lru,mglru,opt]"] {
        assert!(help.contains(text), "{text}: {help}");
    }
    let words: Vec<_> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for policy in Policy::every() {
        assert!(words.contains(&policy.name()), "{policy}: {help}");
    }
    let others = [
        ("size", vec!["4096p", "[default: 60]", "[default: max]", "1/64", "a recording its own", "such as /web"]),
        ("verify", vec!["4096p", "[default: 3]", "[default: that of the recording]", "[default: all]", "4 KiB"]),
    ];
    for (command, texts) in others {
        let help = ok(&s.run(&[command, "--help"]));
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in texts.into_iter().chain(Policy::ALL.map(Policy::name)) {
            assert!(help.contains(text), "{text}: {help}");
        }
    }
    assert!(ok(&s.run(&["replay", "--set", "help"])).contains("refault_counting=all|recent-only"));
    assert!(ok(&s.run(&["--version"])).starts_with("refault "));
}
