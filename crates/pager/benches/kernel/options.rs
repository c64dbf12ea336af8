//! Options of the benchmark.

use std::fmt;
use std::path::PathBuf;

use refault_pager::Policy;

use super::rig::Swap;

const HELP: &str = "\
cargo bench -p refault-pager --bench kernel -- [OPTIONS]

  --region-mib N     memory that is accessed [256]
  --memory-mib N     limit of the cgroup, and memory of the pager for pages in place [half of the region]
  --swap-mib N       swap that there is, for both [the region, and a little more for the kernel]
  --inside           memory_max of the pager is that limit: pool and tables inside (the kernel does not count zram)
  --threads LIST     [1,2]
  --workloads LIST   of uniform, zipf, scan, phases [all]
  --swap LIST        of zram (the pager: a pool), file (the pager: its swap file), mapped: no swap, the memory is a file that is mapped
                     (the pager: a MappedFile, whose faults threads serve) [zram,file]
  --faults LIST      of threads, signal: who serves those of the pager [threads,signal]
  --random           the kernel is told that a mapped file is accessed at random (MADV_RANDOM): it reads nothing around what is touched
  --dirty-background PERCENT  of the pager's mapped files [10]
  --swap-dir DIR     where the swap files and the mapped ones are made
  --rounds N         runs of each row; the table has the medians [1]
  --scale F          more or fewer accesses [1]
  --reads PERCENT    accesses that only read; the others write, too [0]
  --policy NAME      of the pager [mglru]
  --standby PERCENT  of the pager [0]
  --sample PERCENT   of the pager: of a processor, for access sampling [0]
  --folio-order N    of the pager: folios of 2^N pages, 2 to 6; 0: single pages [0]
  --folio-swap-in    of the pager: folios come back from swap whole
  --fault-threads N  of the pager; 0: as it likes [0]
  --verbose          what the pager counted";

/// Way in which faults of the pager are served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    Threads,
    Signal,
}

impl Faults {
    pub fn parse(s: &str) -> Result<Faults, String> {
        let all = [Faults::Threads, Faults::Signal];
        all.into_iter().find(|f| f.name() == s).ok_or_else(|| format!("unknown {s:?}; known are threads, signal"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Faults::Threads => "threads",
            Faults::Signal => "signal",
        }
    }
}

/// Places that pages go to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    Swap(Swap),
    /// To the file that is mapped.
    Mapped,
}

impl Backing {
    pub fn parse(s: &str) -> Result<Backing, String> {
        match s {
            "mapped" => Ok(Backing::Mapped),
            _ => Swap::parse(s).map(Backing::Swap).map_err(|e| e + ", mapped"),
        }
    }

    pub fn swap(self) -> Option<Swap> {
        match self {
            Backing::Swap(swap) => Some(swap),
            Backing::Mapped => None,
        }
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backing::Swap(swap) => swap.fmt(f),
            Backing::Mapped => f.write_str("mapped"),
        }
    }
}

pub struct Options {
    pub region: usize,
    pub memory: usize,
    /// 0: as much as the region.
    pub swap_bytes: usize,
    pub inside: bool,
    pub threads: Vec<usize>,
    pub workloads: Vec<String>,
    pub backings: Vec<Backing>,
    pub random: bool,
    pub dirty_background_ratio: u32,
    pub faults: Vec<Faults>,
    pub directory: PathBuf,
    pub rounds: usize,
    pub scale: f64,
    pub reads_percent: u64,
    pub policy: Policy,
    pub standby_percent: u32,
    pub sample_cpu_percent: u32,
    pub folio_order: usize,
    pub folio_swap_in: bool,
    pub fault_threads: usize,
    pub verbose: bool,
}

impl Options {
    /// `None`: there is nothing to do.
    pub fn parse(args: &[String]) -> Result<Option<Options>, String> {
        let mut o = Options {
            region: 256 << 20,
            memory: 0,
            swap_bytes: 0,
            inside: false,
            threads: vec![1, 2],
            workloads: super::load::WORKLOADS.map(String::from).to_vec(),
            backings: [Swap::Zram, Swap::File].map(Backing::Swap).to_vec(),
            random: false,
            dirty_background_ratio: 10,
            faults: vec![Faults::Threads, Faults::Signal],
            directory: env!("CARGO_TARGET_TMPDIR").into(),
            rounds: 1,
            scale: 1.0,
            reads_percent: 0,
            policy: Policy::Mglru,
            standby_percent: 0,
            sample_cpu_percent: 0,
            folio_order: 0,
            folio_swap_in: false,
            fault_threads: 0,
            verbose: false,
        };
        let mut is_bench = false;
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--bench" => is_bench = true,
                "--inside" => o.inside = true,
                "--random" => o.random = true,
                "--folio-swap-in" => o.folio_swap_in = true,
                "--verbose" => o.verbose = true,
                "--help" => {
                    println!("{HELP}");
                    return Ok(None);
                }
                _ => {
                    let value = args.next().ok_or_else(|| format!("{flag}: a value is missing (--help lists them)"))?;
                    o.set(flag, value).map_err(|e| format!("{flag} {value}: {e}"))?;
                }
            }
        }
        if !is_bench {
            println!("skipped: this takes minutes, and is run by cargo bench");
            return Ok(None);
        }
        if o.memory == 0 {
            o.memory = o.region / 2;
        }
        if o.swap_bytes == 0 {
            o.swap_bytes = o.region;
        }
        if !(8 << 20..o.region).contains(&o.memory) {
            return Err("the memory is at least 8 MiB and less than the region".into());
        }
        Ok(Some(o))
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<usize>().map_err(|e| e.to_string());
        let list = || value.split(',').map(str::to_string);
        match flag {
            "--region-mib" => self.region = number()? << 20,
            "--memory-mib" => self.memory = number()? << 20,
            "--swap-mib" => self.swap_bytes = number()? << 20,
            "--threads" => {
                self.threads = list().map(|v| v.parse().map_err(|e| format!("{v}: {e}"))).collect::<Result<_, _>>()?
            }
            "--workloads" => {
                self.workloads = list().collect();
                if let Some(w) = self.workloads.iter().find(|w| !super::load::WORKLOADS.contains(&w.as_str())) {
                    return Err(format!("unknown workload {w:?}"));
                }
            }
            "--swap" => self.backings = list().map(|v| Backing::parse(&v)).collect::<Result<_, _>>()?,
            "--faults" => self.faults = list().map(|v| Faults::parse(&v)).collect::<Result<_, _>>()?,
            "--dirty-background" => self.dirty_background_ratio = number()? as u32,
            "--swap-dir" => self.directory = value.into(),
            "--rounds" => self.rounds = number()?.max(1),
            "--scale" => self.scale = value.parse().map_err(|e: std::num::ParseFloatError| e.to_string())?,
            "--reads" => self.reads_percent = number()?.min(100) as u64,
            "--policy" => self.policy = value.parse()?,
            "--standby" => self.standby_percent = number()? as u32,
            "--sample" => self.sample_cpu_percent = number()? as u32,
            "--folio-order" => match number()? {
                order @ (0 | 2..=6) => self.folio_order = order,
                _ => return Err("0, or 2 to 6".into()),
            },
            "--fault-threads" => self.fault_threads = number()?,
            _ => return Err("unknown option (--help lists them)".into()),
        }
        Ok(())
    }

    pub fn describe(&self) -> String {
        let limit = if self.inside { "limit (pool of the pager inside)" } else { "memory for pages in place" };
        format!(
            "region {} MiB, {limit} {} MiB, {} % of accesses only read; pager: {}, standby {} %, folios of order {}{}; load average {}",
            self.region >> 20,
            self.memory >> 20,
            self.reads_percent,
            self.policy,
            self.standby_percent,
            self.folio_order,
            if self.folio_swap_in { " (read whole)" } else { "" },
            std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default()
        )
    }
}
