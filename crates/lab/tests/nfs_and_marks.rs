//! Public reports as scenarios: `docs/measurements/reports.md` has what they saw
//! beside what the lab says.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;

fn machine(text: &str) -> Machine {
    let s = Scenario::parse("report.toml", text).unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&s, &s.policy).expect("a machine").checked()
}

/// A program of 35 MB writes a file to a share that takes a quarter of that; its group has 64 MiB
/// of a machine of 2 GiB.
fn nfs(policy: &str, writeback: bool) -> RunResult {
    nfs_of("64M", "6s", policy, writeback)
}

/// The same with a group of any size.
fn nfs_of(size: &str, end: &str, policy: &str, writeback: bool) -> RunResult {
    let text = format!(
        r#"
name = "nfs-dirty"
end = "{end}"
machine = {{ cpus = 2, memory = "2G", kernel = "64M", cgroup_writeback = {writeback} }}
{policy}
device.nfs = {{ preset = "hdd", write_bandwidth = "25MB/s", read_bandwidth = "60MB/s" }}
memcg."/fetch" = {{ max = "{size}" }}
object.rss = {{ kind = "anon", size = "8M" }}
object.model = {{ kind = "file", size = "512M", device = "nfs" }}
[[task]]
name = "fetch"
memcg = "/fetch"
phase = [{{ write = "rss", passes = 1, measured = false }}, {{ write = "model", block = "1M", rate = "105/s", passes = 1 }}]
"#
    );
    machine(&text).run().expect("a run")
}

/// The report about dirty pages of NFS: the group fills with them, and is killed.
#[test]
fn dirty_pages_fill_a_group_without_a_limit_of_their_own() {
    for lru in ["mglru", "lru"] {
        let old = format!("policy = {{ name = \"{lru}\", kernel = \"6.1\" }}");
        let (with, without) = (nfs(&old, true), nfs(&old, false));
        assert_eq!((with.oom_kills, without.oom_kills), (0, 1), "{lru}");
        let dirty = |r: &RunResult| r.series.fold("dirty_pages", "max").expect("a column");
        assert!(dirty(&with) < 0.2 * 16_384.0 + 512.0, "{lru}: {}", dirty(&with));
        assert!(dirty(&without) < 0.2 * 524_288.0, "{lru}: the machine is far from its own limit");
    }
}

/// Since Linux 6.3 reclaim waits there for the flusher that it has woken: the program is as fast as
/// the share, and lives.
#[test]
fn reclaim_waits_for_the_flusher_since_6_3() {
    for policy in ["policy = { name = \"lru\", kernel = \"6.12\" }", "policy = { name = \"mglru\", kernel = \"6.18\" }"]
    {
        let r = nfs(policy, false);
        assert_eq!(r.oom_kills, 0, "{policy}");
        let written = r.tasks[0].accesses as f64 * 4096.0 / r.seconds;
        assert!((20e6..45e6).contains(&written), "{policy}: {written} bytes/s");
        assert!(r.memcgs[1].psi[0].total_us > 1_000_000, "{policy}: it waits in reclaim");
    }
}

/// A group of which all is under writeback was scanned from end to end, seventeen times a wait, and
/// that again with every request that ended.
#[test]
fn regression_reclaim_that_waits_for_the_flusher_does_not_go_round_meanwhile() {
    for policy in [
        "policy = { name = \"mglru\", kernel = \"6.12\" }",
        "policy = { name = \"mglru\", kernel = \"7.2\" }",
        "policy = { name = \"lru\", kernel = \"6.12\" }",
    ] {
        let r = nfs_of("256M", "12s", policy, false);
        assert_eq!(r.oom_kills, 0, "{policy}");
        let (scanned, freed) = (r.memcgs[1].counter("pgscan_direct"), r.memcgs[1].counter("pgsteal_direct"));
        assert!(freed > 10_000, "{policy}: it goes on");
        assert!(scanned < 40 * freed, "{policy}: {scanned} scanned for {freed}");
        let seconds = r.cpu.direct_reclaim_seconds;
        assert!(seconds < 0.5, "{policy}: {seconds} s in reclaim");
        assert!(r.memcgs[1].psi[0].total_us > 3_000_000, "{policy}: it waits");
    }
}

/// The report about marks: a node of 8 GiB has a `min_free_kbytes` of 67,584.
#[test]
fn a_node_of_8_gib_with_huge_pages_keeps_67584_kb() {
    let kbytes = |thp: &str| {
        let text = format!(
            "name = \"m\"\nmachine = {{ memory = \"8G\" {thp} }}\nobject.a = {{ kind = \"anon\", size = \"1M\" }}\n[[task]]\nname = \"t\"\nphase = [{{ read = \"a\", passes = 1 }}]\n"
        );
        machine(&text).engine().zones().map(|z| z.3.min * 4).sum::<u64>()
    };
    let near = |kb: u64, wanted: u64| assert!((wanted - 12..=wanted).contains(&kb), "{kb} in place of {wanted}");
    near(kbytes(", thp = { enabled = \"madvise\" }"), 67_584);
    near(kbytes(", thp = { enabled = \"never\", 2M = \"always\" }"), 67_584);
    near(kbytes(", thp = { 64K = \"always\" }"), 11_585);
    near(kbytes(""), 11_585);
    near(kbytes(", min_free_kbytes = 20000, thp = { enabled = \"always\" }"), 20_000);
}
