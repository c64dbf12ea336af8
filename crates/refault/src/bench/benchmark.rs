//! A benchmark to run: which scenario, how small, with which seeds.

use super::builtin::{BUILTIN, default_scale};
use crate::runner::{Job, Runner, scaled};
use crate::words::printable;
use crate::{Failure, Watch};
use refault_lab::scenario::{Published, Scenario};
use std::path::Path;

/// A scenario that was named, and its text.
#[derive(Debug)]
struct Source {
    /// Name in errors.
    name: String,
    scenario: Scenario,
    text: String,
}

/// Request of published benchmarks.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    /// Benchmarks by name or by the beginning of several, or scenario files; none: all that are
    /// compiled in.
    pub names: Vec<String>,
    /// By how much sizes, work and times are divided; none: by what takes seconds.
    pub scale: Option<f64>,
    /// Seed of everything random; none: the scenario's, or the seeds that it asks for.
    pub seed: Option<u64>,
    /// Number of seeds: runs with 1 to this in place of one seed.
    pub seeds: Option<u64>,
    /// Check conservation at every sample.
    pub check: bool,
    /// Threads; none: one a core.
    pub threads: Option<u16>,
    /// Progress and cancel.
    pub watch: Watch,
}

/// A benchmark to run.
#[derive(Debug)]
pub struct Benchmark {
    /// The scenario, scaled.
    pub scenario: Scenario,
    /// Text of the scenario, as it is written.
    pub text: String,
    /// Published results.
    pub published: Published,
    /// Divisor that scales its sizes, work and times.
    pub scale: f64,
    /// The seeds it runs with.
    pub seeds: Vec<u64>,
    /// Whether it is compiled in, and the request sets neither scale nor seeds.
    pub is_default: bool,
}

impl Source {
    fn builtin(name: &str, text: &str) -> Result<Source, Failure> {
        Ok(Source { name: name.to_owned(), scenario: Scenario::parse(name, text)?, text: text.to_owned() })
    }
}

impl Bench {
    /// Benchmarks that the request names.
    ///
    /// # Errors
    /// A name that is none, or a scenario that cannot be read.
    pub fn benchmarks(&self) -> Result<Vec<Benchmark>, Failure> {
        if !self.names.is_empty() {
            let named: Vec<_> = self.names.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
            return named.into_iter().flatten().map(|source| Benchmark::new(self, source)).collect();
        }
        let all: Vec<_> = BUILTIN.iter().map(|(name, text)| Source::builtin(name, text)).collect::<Result<_, _>>()?;
        let all: Vec<_> = all.into_iter().filter(|source| source.scenario.published.is_some()).collect();
        if all.is_empty() {
            return Err("there is no benchmark in this build; name a scenario file".into());
        }
        all.into_iter().map(|source| Benchmark::new(self, source)).collect()
    }

    /// Runs machines as the request says.
    pub fn runner(&self) -> Runner {
        Runner::new(self.threads, self.check, &self.watch)
    }
}

impl Benchmark {
    fn new(args: &Bench, source: Source) -> Result<Benchmark, Failure> {
        let Source { name, scenario, text } = source;
        let shown = printable(&name);
        let Some(published) = scenario.published.clone() else {
            return Err(format!(
                "{shown}: published: is missing, so there is nothing to compare; `refault replay` runs it"
            )
            .into());
        };
        let policies: Vec<_> = published.variants.iter().map(|variant| variant.policy.clone()).collect();
        scenario.check_acts(&shown, &policies)?;
        let scale = args.scale.unwrap_or_else(|| default_scale(&scenario));
        let seeds = match (args.seeds, args.seed) {
            (Some(n), _) => (1..=n).collect(),
            (None, Some(seed)) => vec![seed],
            (None, None) => published.seeds.map_or(vec![scenario.seed], |n| (1..=n).collect()),
        };
        let is_default = BUILTIN.iter().any(|(builtin, _)| *builtin == name)
            && args.scale.is_none()
            && args.seed.is_none()
            && args.seeds.is_none();
        Ok(Benchmark { scenario: scaled(&scenario, &shown, scale)?, text, published, scale, seeds, is_default })
    }

    /// For each seed a run of each variant.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        let variants = &self.published.variants;
        self.seeds.iter().flat_map(move |&seed| {
            variants.iter().map(move |variant| Job {
                name: format!("{}, {}, seed {seed}", self.scenario.name, variant.name),
                scenario: Scenario { seed, ..self.scenario.clone() },
                policy: variant.policy.clone(),
            })
        })
    }
}

/// The scenarios with something published that are compiled in.
///
/// # Errors
/// A file of the repository is no scenario.
pub fn known() -> Result<Vec<Scenario>, Failure> {
    let all: Result<Vec<_>, _> = BUILTIN.iter().map(|(name, text)| Scenario::parse(name, text)).collect();
    Ok(all?.into_iter().filter(|scenario| scenario.published.is_some()).collect())
}

/// Sources that a name means: a compiled-in benchmark, or all that begin with the name and a
/// hyphen, or a file; each with the name that errors use.
fn named(name: &str) -> Result<Vec<Source>, Failure> {
    let is = |builtin: &str| builtin == name;
    let begins = |builtin: &str| builtin.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let exact = BUILTIN.iter().any(|(builtin, _)| is(builtin));
    let meant = BUILTIN.iter().filter(|(builtin, _)| if exact { is(builtin) } else { begins(builtin) });
    let meant: Vec<_> = meant.map(|(name, text)| Source::builtin(name, text)).collect::<Result<_, _>>()?;
    if !meant.is_empty() {
        return Ok(meant);
    }
    if name.contains('/') || name.ends_with(".toml") || Path::new(name).exists() {
        let advice = "name a scenario file, or a benchmark that refault bench --list has";
        if Path::new(name).is_dir() {
            return Err(format!("{}: is a directory; {advice}", printable(name)).into());
        }
        if !Path::new(name).exists() {
            return Err(format!("{}: cannot be opened: No such file or directory; {advice}", printable(name)).into());
        }
        let scenario = Scenario::load(name)?;
        let text = std::fs::read_to_string(name).map_err(|e| format!("{}: cannot be read: {e}", printable(name)))?;
        return Ok(vec![Source { name: name.to_owned(), scenario, text }]);
    }
    let known: Vec<_> = known()?.into_iter().map(|scenario| scenario.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(format!("unknown benchmark {name:?}; known are {known}; or name a scenario file, such as ./{name}.toml").into())
}
