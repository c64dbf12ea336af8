//! zram as the swap device of a machine: what it stores, what that takes, and what becomes of pages
//! that it refuses.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;

const OBJECT_PAGES: u64 = 24 << 8;

/// A machine of 32 MiB. 24 MiB of anonymous memory are written, then as much again in a second
/// object, so that half of it is swapped; then the first is written again, the second goes, and so
/// on.
fn text(zram: &str, content: &str) -> String {
    format!(
        r#"
name = "zram"
end = "50s"
machine = {{ memory = "32M", swappiness = 100 }}
device.zram = {{ preset = "zram"{zram} }}
swap = {{ device = "zram", size = "128M" }}
object.a = {{ kind = "anon", size = "24M"{content} }}
object.b = {{ kind = "anon", size = "24M"{content} }}
[[task]]
name = "t"
phase = [{{ write = "a", passes = 1 }}, {{ write = "b", passes = 1 }}, {{ write = "a", passes = 1 }}, {{ read = "b", passes = 1 }}, {{ duration = "100s" }}]
"#
    )
}

fn scenario(zram: &str, content: &str) -> Result<Scenario, String> {
    Scenario::parse("f.toml", &text(zram, content)).map_err(|e| e.to_string())
}

fn run(zram: &str, content: &str) -> RunResult {
    let s = scenario(zram, content).expect("a scenario");
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run")
}

fn get(r: &RunResult, name: &str) -> u64 {
    r.metric(name).unwrap_or_else(|| panic!("no {name}")) as u64
}

fn stored_pages(r: &RunResult) -> u64 {
    get(r, "device.zram.orig_data_size") / 4096
}

/// Folios that wait in a batch of their CPU and are on no list yet.
const BATCH: u64 = 31;

/// Every page is in memory or stored, and the tasks saw no error.
fn nothing_is_lost(r: &RunResult) {
    let in_memory = get(r, "node.active_anon") + get(r, "node.inactive_anon");
    assert!(in_memory + stored_pages(r) + BATCH >= 2 * OBJECT_PAGES, "{in_memory} + {}", stored_pages(r));
    assert_eq!((r.tasks[0].errors, r.oom_kills), (0, 0));
}

#[test]
fn same_filled_pages_take_no_memory() {
    let r = run("", ", content = { same = 1.0 }");
    nothing_is_lost(&r);
    assert!(stored_pages(&r) > OBJECT_PAGES / 2, "{}", stored_pages(&r));
    assert_eq!(get(&r, "device.zram.same_pages"), stored_pages(&r));
    assert_eq!((get(&r, "device.zram.compr_data_size"), get(&r, "device.zram.mem_used_max")), (0, 0));
}

#[test]
fn incompressible_pages_are_stored_raw() {
    // Every third page, for the machine has no room for more.
    let r = run("", ", content = { same = 0.67, incompressible = 0.33 }");
    nothing_is_lost(&r);
    let (huge, same) = (get(&r, "device.zram.huge_pages"), get(&r, "device.zram.same_pages"));
    assert!(huge > 500, "{huge}");
    assert_eq!(huge + same, stored_pages(&r));
    assert_eq!(get(&r, "device.zram.compr_data_size"), huge * 4096);
    assert_eq!(get(&r, "device.zram.mem_used_total"), huge * 4096, "a page of memory each");
}

#[test]
fn a_freed_slot_gives_its_memory_back() {
    let r = run("", ", content = { ratio = 3.0 }");
    nothing_is_lost(&r);
    let (written, used) = (get(&r, "vmstat.pswpout"), get(&r, "swap.used_pages"));
    assert!(written > 2 * stored_pages(&r), "{written} were written, {} are stored", stored_pages(&r));
    assert!(stored_pages(&r) <= used, "{} stored, {used} slots in use", stored_pages(&r));
    let (compressed, memory) = (get(&r, "device.zram.compr_data_size"), get(&r, "device.zram.mem_used_total"));
    assert!(compressed <= memory && memory < compressed * 11 / 10, "{compressed} bytes take {memory}");
    let ratio = (stored_pages(&r) * 4096) as f64 / compressed as f64;
    assert!((ratio - 3.0).abs() < 0.05, "{ratio}");
}

#[test]
fn without_content_a_page_takes_its_share_of_the_ratio() {
    let r = run(", compression_ratio = 4.0", "");
    nothing_is_lost(&r);
    assert_eq!(get(&r, "device.zram.mem_used_total"), stored_pages(&r).div_ceil(4) * 4096);
    assert_eq!((get(&r, "device.zram.same_pages"), get(&r, "device.zram.huge_pages")), (0, 0));
}

#[test]
fn beyond_the_memory_limit_pages_stay_dirty_in_memory() {
    // 48 MiB of pages, 32 MiB of memory, of which zram may take 8: some go, and what is refused is
    // killed for in the end.
    let limit = 8 << 20;
    let open = run("", ", content = { ratio = 2.0 }");
    let r = run(", mem_limit = \"8M\"", ", content = { ratio = 2.0 }");
    assert!(get(&open, "device.zram.mem_used_max") > limit, "{}", get(&open, "device.zram.mem_used_max"));
    assert_eq!(get(&r, "device.zram.mem_limit"), limit);
    assert!(get(&r, "device.zram.mem_used_max") <= limit);
    assert!(get(&r, "device.zram.mem_used_max") > limit * 9 / 10, "it was used up");
    let refused = r.devices[0].stats.write_errors;
    assert!(refused > 0 && get(&r, "vmstat.write_errors") == refused, "{refused} refused");
    assert_eq!(get(&r, "vmstat.nr_written") * 4096, r.devices[0].stats.write_bytes);
    assert_eq!((open.oom_kills, r.oom_kills), (0, 1), "with nowhere to put them the task is killed");
}

#[test]
fn what_the_limit_refuses_is_there_when_it_is_read() {
    // The machine has room for all that zram does not take, with 64 slots that wait to be freed.
    let mut s = scenario(", mem_limit = \"1M\"", ", content = { incompressible = 1.0 }").expect("a scenario");
    s.machine.memory_pages = 12_700;
    let r = Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run");
    nothing_is_lost(&r);
    assert_eq!(get(&r, "device.zram.mem_used_max"), 1 << 20);
    assert!(get(&r, "vmstat.write_errors") > 0);
}

#[test]
fn what_zram_stores_may_be_published() {
    let parse = |figure: &str| {
        let published = "[published.before]\npolicy = \"lru\"\n[published.after]\npolicy = \"mglru\"\n";
        let row = format!("[[published.row]]\nmetric = \"device.zram.{figure}\"\n");
        Scenario::parse("f.toml", &format!("{}{published}{row}", text("", ""))).map_err(|e| e.to_string())
    };
    assert!(parse("same_pages").is_ok() && parse("read_bytes").is_ok());
    let known = "read_bytes, write_bytes, orig_data_size, compr_data_size, mem_used_total, mem_limit, mem_used_max, \
                 same_pages, huge_pages";
    assert!(parse("pages").unwrap_err().ends_with(&format!("is not a result; after device. comes {known}")));
}

#[test]
fn a_limit_is_of_a_swap_device_and_zram() {
    let said = |zram: &str| scenario(zram, "").unwrap_err();
    assert_eq!(said(", mem_limit = 0"), "f.toml:5: device.zram.mem_limit: 0 is out of range; write 1p to 2T");
    let text = |preset: &str| {
        format!(
            "name = \"a\"\nmachine = {{ memory = \"32M\" }}\ndevice.d = {{ preset = \"{preset}\", mem_limit = \"8M\" }}\n\
             object.a = {{ kind = \"file\", size = \"4p\", device = \"d\" }}\n\
             task = [{{ name = \"t\", phase = [{{ read = \"a\", passes = 1 }}] }}]\n"
        )
    };
    let said = |preset| Scenario::parse("f.toml", &text(preset)).unwrap_err().to_string();
    assert_eq!(said("nvme"), "f.toml:3: device.d.mem_limit: only zram has it; the preset is nvme");
    assert_eq!(said("zram"), "f.toml:3: device.d.mem_limit: there is no swap on it, so nothing to limit; leave it out");
}
