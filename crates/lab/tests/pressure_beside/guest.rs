//! The guests as scenarios: `data/pressure/README.md` says where the times are from.

use refault_lab::scenario::Scenario;

/// One case: program, group and swap.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub tasks: u64,
    /// Accesses of each task before the measured ones, and measured ones.
    warm: u64,
    accesses: u64,
    program: Program,
    swap: Swap,
    limit: &'static str,
    /// Latency of the disk.
    latency: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    /// Reads of a file: the hot part of it, if there is one, gets four of five.
    File { mib: u64, hot_mib: u64 },
    /// Reads one page after the other.
    Scan { mib: u64 },
    /// Touches of memory of its own, in MiB of all tasks together.
    Anon { mib: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Swap {
    None,
    Zram,
    Disk,
}

const HOT: Program = Program::File { mib: 256, hot_mib: 40 };
const UNIFORM: Program = Program::File { mib: 96, hot_mib: 0 };
const ANON: Program = Program::Anon { mib: 96 };

const fn case(name: &'static str, (tasks, warm, accesses): (u64, u64, u64), program: Program, swap: Swap) -> Case {
    Case { name, tasks, warm, accesses, program, swap, limit: "max", latency: "100us" }
}

/// All cases.
pub const CASES: [Case; 11] = [
    case("file1", (1, 40_000, 40_000), HOT, Swap::None),
    case("file4", (4, 10_000, 15_000), HOT, Swap::None),
    case("refault1", (1, 60_000, 40_000), UNIFORM, Swap::None),
    case("refault4", (4, 15_000, 15_000), UNIFORM, Swap::None),
    Case { latency: "1ms", ..case("scan1", (1, 40_000, 65_536), Program::Scan { mib: 256 }, Swap::None) },
    case("zram1", (1, 40_000, 40_000), ANON, Swap::Zram),
    case("zram4", (4, 10_000, 15_000), ANON, Swap::Zram),
    case("disk1", (1, 20_000, 30_000), ANON, Swap::Disk),
    case("disk4", (4, 6_000, 10_000), ANON, Swap::Disk),
    Case { limit: "high", ..case("high1", (1, 20_000, 20_000), ANON, Swap::Zram) },
    Case { tasks: 2, ..case("mixed2", (2, 30_000, 20_000), Program::Anon { mib: 0 }, Swap::Zram) },
];

impl Case {
    /// Time of the program beside an access: a random number, a clock, a loop of 2,000 turns.
    pub fn own_ns(&self) -> u64 {
        match self.program {
            Program::Scan { .. } => 1_150,
            Program::File { .. } => 13_270,
            Program::Anon { .. } => 13_080,
        }
    }

    /// A phase of accesses; `begin` and `end` are its other keys.
    fn phase(&self, keys: &str) -> String {
        let head = format!("[[task.phase]]\ncpu = \"{}ns\"\n{keys}", self.own_ns());
        let part = |size: &str, weight: u64| {
            format!(
                "[[task.phase.stream]]\nread = \"data\"\npattern = \"uniform\"\nadvice = \"random\"\n{size}weight = {weight}\n"
            )
        };
        match self.program {
            Program::File { hot_mib: 0, .. } => head + "read = \"data\"\npattern = \"uniform\"\nadvice = \"random\"\n",
            Program::File { hot_mib, .. } => head + &part(&format!("size = \"{hot_mib}M\"\n"), 4) + &part("", 1),
            Program::Scan { .. } => head + "read = \"data\"\n",
            Program::Anon { mib: 0 } => {
                head + &part("", 1)
                    + "[[task.phase.stream]]\nwrite = \"heap\"\npattern = \"uniform\"\nshare = \"split\"\nweight = 1\n"
            }
            Program::Anon { .. } => head + "write = \"heap\"\npattern = \"uniform\"\nshare = \"split\"\n",
        }
    }

    /// The guest under a policy; without the measured part, to see what was there before it.
    pub fn scenario(&self, policy: &str, is_measured: bool) -> Scenario {
        let (count, mixed) = (self.tasks, self.name == "mixed2");
        let anon = matches!(self.program, Program::Anon { .. });
        let mib = match self.program {
            Program::File { mib, .. } | Program::Scan { mib } => mib,
            Program::Anon { mib } => {
                if mixed {
                    128
                } else {
                    mib
                }
            }
        };
        // The time to unmap has the order to write to a disk in it.
        let (unmap, fault) = if self.swap == Swap::Disk { (27_200, 7_500) } else { (13_400, 13_900) };
        let free = if policy == "lru" { 2_550 } else { 2_950 };
        // A slot that is given back is in the time of a fault on zram.
        let free_slot = if self.swap == Swap::Zram { 2_300 } else { 0 };
        let disk = format!(
            "{{ preset = \"nvme\", channels = 64, read_latency = \"{0}\", write_latency = \"{0}\", read_bandwidth = \"100GB/s\", write_bandwidth = \"100GB/s\", max_request = \"64K\" }}",
            self.latency
        );
        let mut text = format!(
            r#"name = "pressure"
machine.cpus = 1
machine.memory = "475848K"
machine.tick = "4ms"
machine.costs = {{ read_hit = "4240ns", write_hit = "4240ns", map_hit = "12ns", minor_fault = "2us", major_fault = "{fault}ns", read_miss = "100ns", fill_page = "9.1us", io_submit = "16.9us", anon_fault = "8us", scan_page = "1us", reclaim_page = "{free}ns", unmap_page = "{unmap}ns", pte_walk = "343ns", context_switch = "3600ns", free_slot = "{free_slot}ns" }}
policy = {{ name = "{policy}", kernel = "6.12" }}
memcg."/g" = {{ {} = "64M" }}
"#,
            self.limit
        );
        if !anon || mixed {
            text += &format!(
                "device.disk = {disk}\nobject.data = {{ kind = \"file\", size = \"{}M\", device = \"disk\" }}\n",
                if mixed { 64 } else { mib }
            );
        }
        match self.swap {
            Swap::None => {}
            Swap::Zram => {
                text += "device.zram = { preset = \"zram\", compress = \"34.7us\", decompress = \"10.5us\", compression_ratio = 3.0 }\nswap = { device = \"zram\", size = \"256M\" }\n"
            }
            Swap::Disk => text += &format!("device.swap = {disk}\nswap = {{ device = \"swap\", size = \"1G\" }}\n"),
        }
        if anon {
            text += &format!("object.heap = {{ kind = \"anon\", size = \"{mib}M\" }}\n");
        }
        text += &format!("[[task]]\nname = \"warm\"\ncount = {count}\nmemcg = \"/g\"\n");
        if anon {
            text += "[[task.phase]]\nwrite = \"heap\"\nshare = \"split\"\npasses = 1\nmeasured = false\n";
        }
        text += &self.phase(&format!("accesses = {}\nmeasured = false\n", self.warm));
        text += &format!("[[task]]\nname = \"run\"\ncount = {count}\nmemcg = \"/g\"\nafter = \"warm\"\n");
        let accesses = if is_measured { self.accesses } else { 1 };
        text += &self.phase(&format!("accesses = {accesses}\n"));
        if count == 1 {
            text = text.replace("share = \"split\"\n", "");
        }
        Scenario::parse("pressure", &text).unwrap_or_else(|e| panic!("{text}\n{e}"))
    }
}
