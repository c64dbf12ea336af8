//! Readings whose cause is known: each has its sentence, and no other cause.

use super::*;

fn counters(text: &str) -> Counters {
    Counters::parse(text, "reading").unwrap_or_else(|e| panic!("{e}"))
}

/// Causes of the time between two readings, of a minute.
fn causes(before: &str, after: &str) -> Vec<Cause> {
    let explanation = of(before, after);
    explanation.findings.iter().map(|finding| finding.cause).collect()
}

fn of(before: &str, after: &str) -> Explanation {
    explain(&counters(before), &counters(after), Some(60.0)).unwrap_or_else(|e| panic!("{e}"))
}

const GROUP: &str = "==> memory.stat <==\nanon 0\ninactive_file 67108864\nactive_file 33554432\ninactive_anon 4096\n\
                     active_anon 0\nworkingset_refault_file 5\nworkingset_activate_file 5\nworkingset_restore_file 0\n\
                     pgscan 5\npgsteal 5\npswpin 0\npswpout 0\n==> memory.events <==\nlow 0\nhigh 0\nmax 0\noom_kill 0\n\
                     ==> memory.pressure <==\nsome avg10=0.00 total=0\nfull avg10=0.00 total=0\n";

/// The reading with other values.
fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(GROUP.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

#[test]
fn nothing_short_is_said() {
    let quiet = of(GROUP, GROUP);
    assert!(quiet.findings.is_empty() && quiet.unknown[0].contains("memory was not short"), "{quiet:?}");
    assert!(quiet.next.is_empty());
}

#[test]
fn files_that_do_not_fit_are_told_from_scans() {
    let refaults = ("refault_file 5", "refault_file 90000");
    let in_use = of(GROUP, &with(&[refaults, ("activate_file 5", "activate_file 80000"), ("max 0", "max 300")]));
    let sentences: Vec<_> = in_use.findings.iter().map(|finding| finding.sentence.as_str()).collect();
    assert!(sentences.iter().any(|text| text.contains("in use do not fit: 89,995 pages")), "{sentences:?}");
    assert!(sentences.iter().any(|text| text.contains("met its memory.max 300 times")), "{sentences:?}");
    let scan = of(GROUP, &with(&[refaults, ("active_file 33554432", "active_file 0")]));
    assert!(scan.findings.iter().any(|finding| finding.sentence.contains("scans larger than memory")), "{scan:?}");
    assert!(scan.next.iter().any(|line| line.starts_with("refault record")), "{scan:?}");
}

#[test]
fn swap_says_what_is_in_use_and_what_is_idle() {
    let (out, back) = (("pswpout 0", "pswpout 50000"), ("pswpin 0", "pswpin 40000"));
    assert_eq!(causes(GROUP, &with(&[out])), [Cause::SwappedOut]);
    assert_eq!(causes(GROUP, &with(&[out, back])), [Cause::Anon]);
    let anon = ("inactive_anon 4096", "inactive_anon 900000000");
    let stays = of(GROUP, &(with(&[anon, ("refault_file 5", "refault_file 90000")]) + "==> memory.swap.max <==\n0\n"));
    assert!(stays.findings.iter().any(|finding| finding.sentence.ends_with("memory.swap.max is 0")), "{stays:?}");
}

#[test]
fn the_machine_has_kswapd_and_tasks() {
    let machine = |kswapd: u64, direct: u64| {
        format!("nr_free_pages 9\npgscan_kswapd {kswapd}\npgscan_direct {direct}\npgsteal_kswapd 0\npgsteal_direct 0\n")
    };
    assert_eq!(causes(&machine(0, 0), &machine(90_000, 10)), [Cause::Machine]);
    assert_eq!(causes(&machine(0, 0), &machine(90_000, 90_000)), [Cause::DirectReclaim]);
    let both = GROUP.to_owned() + "==> /proc/vmstat <==\n" + &machine(0, 0);
    let of_group = with(&[("pgscan 5", "pgscan 70000")]) + "==> /proc/vmstat <==\n" + &machine(0, 0);
    let found = of(&both, &of_group);
    assert!(
        found.findings.iter().any(|finding| finding.sentence.contains("not the memory of the machine")),
        "{found:?}"
    );
}

#[test]
fn waiting_without_a_cause_is_not_explained() {
    let waits = of(GROUP, &with(&[("some avg10=0.00 total=0", "some avg10=0.00 total=30000000")]));
    assert!(waits.findings[0].sentence.contains("waited for memory in 50.0 % of the time"), "{waits:?}");
    assert!(waits.unknown[0].starts_with("why tasks waited"), "{waits:?}");
}

#[test]
fn readings_that_cannot_be_compared_are_errors() {
    let error = |before: &str, after: &str| match explain(&counters(before), &counters(after), None) {
        Ok(explanation) => panic!("{explanation:?}"),
        Err(e) => e.to_string(),
    };
    assert!(error(&with(&[("pgscan 5", "pgscan 9")]), GROUP).contains("give the earlier one first"));
    assert!(error("nr_free_pages 4\n", "anon 4\n").contains("no counter in common"));
    assert!(error(&with(&[("pswpout 0", "pswpout 9")]), GROUP).contains("pswpout is smaller in the second"));
}

/// Memory was short in the same readings, whole.
#[test]
fn regression_a_reading_that_was_cut_does_not_say_that_memory_was_not_short() {
    let after = with(&[("refault_file 5", "refault_file 90000")]);
    let cut = &after[..after.find("workingset_refault").expect("there")];
    for (before, after) in
        [(GROUP, cut), ("MemTotal: 9 kB\n", "MemTotal: 9 kB\n"), ("nr_free_pages 4\n", "nr_free_pages 4\n")]
    {
        let said = of(before, after).unknown;
        assert!(said.iter().any(|line| line.starts_with("whether the memory of ")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("memory was not short")), "{said:?}");
    }
    assert!(of(GROUP, cut).unknown.iter().any(|line| line.contains("was it cut?")));
}

#[test]
fn regression_nobody_waits_longer_than_time_passed() {
    let waits = with(&[("some avg10=0.00 total=0", "some avg10=0.00 total=30000000")]);
    let error = explain(&counters(GROUP), &counters(&waits), Some(5.0)).expect_err("a wrong --for").to_string();
    assert!(error.starts_with("tasks of the group waited 30.0 s for memory in 5.0 s"), "{error}");
}

/// A recording is not told to record.
#[test]
fn regression_a_recording_is_what_would_tell_more() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/orders.parquet");
    let source = refault_trace::open(path.as_ref(), &refault_trace::OpenOptions::default()).expect("a recording");
    let recording = source.header().recording.clone().expect("a recording");
    let all = explain_recording(&recording, "orders.parquet").expect("explained").to_string();
    assert!(all.contains("refault size orders.parquet") && !all.contains("refault record"), "{all}");
    assert!(!all.contains("whether the memory of"), "{all}");
}

/// Generations of a group: pages of files in the oldest of three, and in the two others.
fn generations(seq: u64, pages: [u64; 3], oldest_ms: u64) -> String {
    let line = |n: u64, age: u64| format!("  {}  {age}  0  {}\n", seq + n, pages[n as usize]);
    let lines = [line(0, oldest_ms), line(1, oldest_ms / 2), line(2, oldest_ms / 4)].concat();
    format!("==> /sys/kernel/debug/lru_gen <==\nmemcg 1 /\n node 0\nmemcg 7 /web\n node 0\n{lines}")
}

#[test]
fn generations_say_what_reclaim_can_take() {
    let scanned = with(&[("pgscan 5", "pgscan 70000")]);
    let found = |pages: [u64; 3], more: &str| {
        let (before, after) = (generations(4, pages, 8_000), generations(5, pages, 8_000));
        let all = of(&(GROUP.to_owned() + &before), &(scanned.clone() + &after + more));
        let of = |finding: &&Finding| finding.cause == Cause::Generations;
        all.findings.iter().find(of).map(|of| (of.sentence.clone(), of.because.join(", ")))
    };
    assert_eq!(found([5_000, 5_000, 5_000], ""), None, "ages that differ");
    let (sentence, because) = found([0, 9_000, 9_000], "").unwrap_or_default();
    assert!(sentence.contains("nothing old is left of the group"), "{sentence}");
    assert!(because.contains("max_seq +1"), "{because}");
    let (sentence, _) = found([100, 0, 18_000], "").unwrap_or_default();
    assert!(sentence.contains("in the youngest generation") && sentence.contains("2.00 s ago"), "{sentence}");
    let ttl = |ms: u64| format!("==> /sys/kernel/mm/lru_gen/min_ttl_ms <==\n{ms}\n");
    let (sentence, because) = found([5_000, 5_000, 5_000], &ttl(10_000)).unwrap_or_default();
    assert!(sentence.contains("nothing of the group is older than min_ttl_ms"), "{sentence}");
    assert!(because.contains("min_ttl_ms 10000"), "{because}");
    assert_eq!(found([5_000, 5_000, 5_000], &ttl(1_000)), None);
    // A quiet group of two generations is nothing to speak of.
    let quiet = generations(4, [0, 9_000, 9_000], 8_000);
    let all = of(&(GROUP.to_owned() + &quiet), &(GROUP.to_owned() + &quiet));
    assert!(all.findings.is_empty(), "{all:?}");
}

/// Looks of a recording as below prints them: rates a second since the look before, and sizes.
fn as_below(recording: &Recording) -> String {
    let series = &recording.series;
    let at = |name: &str| series.names.iter().position(|of| of == name);
    let rates = [
        ("Workingset Refault File", "workingset_refault_file"),
        ("Workingset Activate File", "workingset_activate_file"),
        ("Pgscan", "pgscan"),
    ];
    // A counter that the recording lacks is no column.
    let rates: Vec<_> = rates.into_iter().filter(|(_, name)| at(name).is_some()).collect();
    let sizes = [("Inactive File", "inactive_file"), ("Active File", "active_file"), ("Mem Total", "usage")];
    let titles = rates.iter().chain(&sizes).map(|(title, _)| *title).collect::<Vec<_>>().join(",");
    let mut out = format!("Full Path,{titles},Timestamp,\n");
    for (n, look) in series.snapshots.iter().enumerate() {
        let before = &series.snapshots[n.saturating_sub(1)];
        let seconds = look.time_ns.saturating_sub(before.time_ns) as f64 / 1e9;
        let value = |of: &[u64], name: &str| at(name).map_or(0, |at| of[at]);
        let rate = |(_, name): &(&str, &str)| {
            (value(&look.values, name) - value(&before.values, name)) as f64 / seconds.max(1e-9)
        };
        let rates = rates.iter().map(|of| rate(of).to_string());
        let sizes = sizes.iter().map(|(_, name)| value(&look.values, name).to_string());
        let fields = rates.chain(sizes).collect::<Vec<_>>().join(",");
        out += &format!("/job,{fields},{},\n", look.time_ns as f64 / 1e9);
    }
    out
}

/// The group of this recording reads more files than its 24 MiB hold.
#[test]
fn output_of_below_has_the_cause_of_the_recording_that_it_is_made_of() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/orders.parquet");
    let source = refault_trace::open(path.as_ref(), &refault_trace::OpenOptions::default()).expect("a recording");
    let recording = source.header().recording.clone().expect("a recording");
    let dump = below::read(&as_below(&recording), "dump", None).expect("a dump");
    let of_dump = explain(&dump.before, &dump.after, Some(dump.seconds)).expect("explained");
    let of_recording = explain_recording(&recording, "orders").expect("explained");
    let files = |all: &Explanation| {
        let own = all.findings.iter().filter(|finding| finding.scope == Scope::Group && finding.cause == Cause::Files);
        own.map(|finding| finding.sentence.clone()).collect::<Vec<_>>()
    };
    assert_eq!(files(&of_dump), files(&of_recording));
    assert_eq!(files(&of_dump).len(), 1, "{of_dump:?}");
}
