//! Nodes of memory, and what is set of tiering.

use super::read::{self, Field, Result, Section};
use super::types::{NodeSpec, TieringSpec};
use super::{MAX_PAGES, policy};
use refault_mm::tiering::{NodePreset, TieringConfig};
use refault_mm::{TIERING, Value};

/// A page has three bits for its node.
const MAX_NODES: usize = 8;
/// Pages of the smallest node: a smaller one has no room for its watermarks.
const MIN_NODE: u64 = 256;
/// The longest latency of memory: a millisecond.
const MAX_LATENCY_NS: u64 = 1_000_000;
const NODE_KEYS: [&str; 10] = [
    "size",
    "preset",
    "cpus",
    "latency",
    "read_latency",
    "write_latency",
    "bandwidth",
    "read_bandwidth",
    "write_bandwidth",
    "access_bytes",
];
/// `[node.NAME]`, in the order of the file.
pub(super) fn nodes(field: &Field<'_>) -> Result<Vec<NodeSpec>> {
    let named = field.named(&NODE_KEYS, MAX_NODES)?;
    let nodes: Vec<_> = named.into_iter().map(|(name, s)| node(name, &s)).collect::<Result<_>>()?;
    let pages: u64 = nodes.iter().map(|n| n.pages).sum();
    match () {
        _ if nodes.is_empty() => Err(field.error("there is no node; write [node.dram]")),
        _ if nodes.iter().all(|n| n.cpus == 0) => Err(field.error("no node has CPUs; write cpus = 16 in one")),
        _ if pages > MAX_PAGES => Err(field.error("together the nodes have more than 2^29 pages")),
        _ => Ok(nodes),
    }
}

fn node(name: &str, s: &Section<'_>) -> Result<NodeSpec> {
    read::name(name).map_err(|what| s.error(what))?;
    let presets = NodePreset::ALL.map(|p| (p.name(), p));
    let preset = s.need("preset", "preset = \"dram\"")?.choice(&presets)?;
    let mut perf = preset.perf();
    for (both, one, read, place) in [
        ("latency", "read_latency", true, &mut perf.read_latency_ns),
        ("latency", "write_latency", true, &mut perf.write_latency_ns),
        ("bandwidth", "read_bandwidth", false, &mut perf.read_bytes_per_s),
        ("bandwidth", "write_bandwidth", false, &mut perf.write_bytes_per_s),
    ] {
        if let (Some(field), true) = (s.get(both), s.has(one)) {
            return Err(field.error(format!("{one} says it, too; write one of them")));
        }
        let Some(field) = s.get(one).or(s.get(both)) else { continue };
        *place = if read { field.time(1..=MAX_LATENCY_NS)? } else { field.bytes_per_s()? };
    }
    perf.access_bytes = s.or("access_bytes", perf.access_bytes, |f| f.int(1..=4096))?;
    Ok(NodeSpec {
        name: name.to_owned(),
        pages: s.need("size", "size = \"32G\"")?.pages(MIN_NODE..=MAX_PAGES)?,
        preset,
        perf,
        cpus: s.or("cpus", 0, |f| f.int(0..=4096))?,
    })
}

/// Settings of a policy for tiering; settings that it leaves out are as in `base`.
pub(super) fn tiering(s: &Section<'_>, base: &TieringSpec) -> Result<TieringSpec> {
    let mut spec = base.clone();
    policy::choose(s, TIERING.iter(), &mut spec.settings)?;
    spec.config(1).map_err(|what| s.error(what))?;
    Ok(spec)
}

impl TieringSpec {
    /// The configuration of the engine, on a machine that was divided by `scale`.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn config(&self, scale: u64) -> std::result::Result<TieringConfig, String> {
        let mut config = TieringConfig::default();
        self.settings.apply(&mut config);
        let config = config.scaled(scale);
        config.check()?;
        Ok(config)
    }

    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == TieringSpec::default()
    }

    /// Chooses a value of one of [`TIERING`]; false: there is no such setting, or no such value.
    pub fn choose(&mut self, name: &str, value: Value) -> bool {
        let setting = TIERING.iter().find(|setting| setting.name == name);
        setting.is_some_and(|setting| self.settings.choose(setting, value))
    }

    /// Values that were chosen, by key.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.settings.settings().filter_map(|setting| Some((setting.name, self.settings.get(setting.name)?)))
    }
}
