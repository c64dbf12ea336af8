//! A trace on a machine with nodes of memory. The trace becomes the one task of a scenario.

use crate::Failure;
use crate::memory_size::Size;
use refault_lab::scenario::{DeviceOverrides, DeviceSpec, NodeSpec, PolicySpec, Scenario, SwapSpec};
use refault_mm::tiering::NodePreset;
use refault_mm::{Kernel, Policy, Value};
use refault_trace::{ObjectKind, Trace};
use std::path::Path;
use std::str::FromStr;

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Where files and what is swapped out are.
const DEVICE: &str = "nvme";
/// Periods of a second are a microsecond then.
const MAX_SCALE: f64 = 1e6;
/// Nanoseconds a program computes between two accesses of a trace without times.
pub const ACCESS_NS: u64 = 100;

/// `dram=8G`.
#[derive(Clone, Debug)]
pub struct Tier {
    preset: NodePreset,
    size: Size,
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Tier, String> {
        let (name, size) = text.split_once('=').ok_or("write NAME=SIZE, such as dram=8G")?;
        let size: Size = size.parse()?;
        if size.is_max() {
            return Err("a node has a size; write 8G or 25%".into());
        }
        Ok(Tier { preset: name.parse()?, size })
    }
}

/// Request of the scenario of a trace.
#[derive(Clone, Debug)]
pub struct TieredTrace<'a> {
    /// The nodes, the fastest first; the CPU is on it.
    pub tiers: &'a [Tier],
    /// Nanoseconds between two accesses of a trace without times; none: [`ACCESS_NS`].
    pub access_ns: Option<u64>,
    /// Divisor of the periods of tiering; a whole number.
    pub scale: f64,
    /// The seed.
    pub seed: u64,
    /// The kernel whose rules hold; none: the default one.
    pub kernel: Option<Kernel>,
}

impl TieredTrace<'_> {
    /// The machine and the task of a trace with its times. The run reads `path` once more.
    ///
    /// # Errors
    /// Nodes, a scale or times that are impossible.
    pub fn scenario(&self, trace: &Trace, path: &Path) -> Result<Scenario, Failure> {
        let file = path.display().to_string();
        let footprint = u64::from(trace.footprint_pages());
        let timed = trace.time_ns.as_ref().is_some_and(|t| t.iter().any(|&at| at > 0));
        let files = trace.objects.iter().any(|o| o.kind == ObjectKind::File && !o.indices.is_empty());
        let mut scenario = Scenario::parse("--tier", &text(&trace.name, path, timed, files))?;
        scenario.machine.nodes = nodes(self.tiers, &file, footprint)?;
        scenario.machine.memory_pages = scenario.machine.nodes.iter().map(|n| n.pages).sum();
        if self.scale.fract() != 0.0 {
            return Err(format!("--scale {}: with --tier it is a whole number", self.scale).into());
        }
        if self.scale > MAX_SCALE {
            return Err(format!("--scale {}: with --tier it is at most {MAX_SCALE}", self.scale).into());
        }
        scenario.machine.scale = self.scale as u64;
        // As of a scenario with nodes, and of one that is divided.
        scenario.machine.tick_ns = 0;
        scenario.machine.per_cpu_lists &= self.scale <= 1.0;
        scenario.machine.page_blocks &= self.scale <= 1.0;
        scenario.seed = self.seed;
        if !timed {
            scenario.tasks[0].phases[0].cpu_ns = self.access_ns.unwrap_or(ACCESS_NS);
        } else if self.access_ns.is_some() {
            return Err(format!("--access-ns: {file} has times of its own").into());
        }
        // Swap takes the pages that do not fit the nodes.
        scenario.devices = vec![device(DEVICE), device("swap")];
        scenario.swap = vec![SwapSpec {
            enabled: true,
            device: 1,
            pages: footprint.max(1 << 14),
            priority: None,
            discard: false,
            rotational: false,
            file: false,
            bad_pages: Vec::new(),
        }];
        scenario.policy = PolicySpec::new(Policy::Mglru);
        scenario.policy.kernel = self.kernel.unwrap_or_default();
        scenario.policy.tiering.choose("numa_balancing", Value::Number(2));
        scenario.policy.tiering.choose("demotion_enabled", Value::Flag(true));
        Ok(scenario)
    }
}

fn device(name: &str) -> DeviceSpec {
    DeviceSpec { name: name.to_owned(), preset: DEVICE.to_owned(), overrides: DeviceOverrides::default() }
}

/// Text that is the same for all traces, as a scenario says it.
fn text(name: &str, path: &Path, timed: bool, files: bool) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(64).collect();
    let file = toml_text(&path.display().to_string());
    let device = if files { format!(", device = \"{DEVICE}\"") } else { String::new() };
    format!(
        "name = \"{}\"\nmachine = {{ memory = \"64G\", dma = \"0\", dma32 = \"0\" }}\ndevice.{DEVICE} = {{ preset = \"{DEVICE}\" }}\n\
         [[task]]\nname = \"trace\"\ntrace = {{ file = {file}, timed = {timed}{device} }}\n",
        if name.is_empty() { "trace" } else { &name },
    )
}

/// A text in TOML.
fn toml_text(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The nodes of the flags: the CPU is on the first.
fn nodes(tiers: &[Tier], file: &str, footprint: u64) -> Result<Vec<NodeSpec>, Failure> {
    if !(2..=8).contains(&tiers.len()) {
        return Err(format!(
            "--tier: {} given; give 2 to 8, the fastest first, as --tier dram=8G --tier cxl=32G",
            tiers.len()
        )
        .into());
    }
    let mut nodes = Vec::new();
    for (n, tier) in tiers.iter().enumerate() {
        let (name, pages) = (tier.preset.name(), tier.size.pages(PAGE, footprint));
        if pages < 256 {
            return Err(format!("--tier {name}={}: is {pages} pages of {file}; 256 are the least", tier.size).into());
        }
        let distance = |t: &Tier| t.preset.perf().abstract_distance(&NodePreset::Dram.perf());
        if let Some(slower) = tiers[..n].iter().find(|other| distance(other) > distance(tier)) {
            let slower = slower.preset.name();
            return Err(format!("--tier {name}={}: is faster than {slower}; give the fastest first", tier.size).into());
        }
        let same = tiers[..n].iter().filter(|other| other.preset == tier.preset).count();
        let name = if same > 0 { format!("{name}{}", same + 1) } else { name.to_owned() };
        nodes.push(NodeSpec { name, pages, preset: tier.preset, perf: tier.preset.perf(), cpus: u32::from(n == 0) });
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_read_and_mistakes_named() {
        let tier: Tier = "remote-numa=25%".parse().unwrap();
        assert_eq!((tier.preset, tier.size.pages(PAGE, 1000)), (NodePreset::RemoteNuma, 250));
        for (text, want) in
            [("dram", "NAME=SIZE"), ("hbm=1G", "known are dram"), ("dram=max", "has a size"), ("dram=x", "x")]
        {
            let error = text.parse::<Tier>().unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn a_trace_of_any_name_makes_a_scenario() {
        for (name, path) in [("a b.c", "/tmp/a \"b\".parquet"), ("", "x\\y"), ("..", "\n")] {
            Scenario::parse("t", &text(name, Path::new(path), false, true)).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
