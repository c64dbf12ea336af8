//! Request of runs: scenarios, and what of them is to be otherwise.

use super::run::ScenarioRun;
use crate::replay::policy::RowPolicy;
use crate::runner::{Job, Runner, limit, scaled};
use crate::{Failure, Watch};
use refault_lab::scenario::{PolicySpec, Scenario};
use refault_mm::tiering::PromotionPolicy;
use refault_mm::{Kernel, Value};
use std::path::{Path, PathBuf};

/// A scenario, and its name in errors.
#[derive(Clone, Debug)]
pub struct NamedScenario {
    /// A file, or something else that tells people which one it is.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
}

/// Request of runs of scenarios.
#[derive(Clone, Debug)]
pub struct ScenarioRequest {
    /// Scenarios as they are written.
    pub scenarios: Vec<NamedScenario>,
    /// Divisor of sizes, amounts of work and times.
    pub scale: f64,
    /// Policies in the place of a scenario's own, with its settings.
    pub policies: Option<Vec<RowPolicy>>,
    /// Policies of promotion in the place of a scenario's own.
    pub promotion: Vec<PromotionPolicy>,
    /// The kernel in the place of a scenario's own.
    pub kernel: Option<Kernel>,
    /// The seed in the place of a scenario's own.
    pub seed: Option<u64>,
    /// A file of limits of groups in place of the file that the scenario names.
    pub limits: Option<PathBuf>,
    /// Threads; none: one a core.
    pub threads: Option<u16>,
    /// Check conservation at every sample.
    pub check: bool,
    /// Write the generations at the end.
    pub lru_gen: bool,
    /// Write the clusters of the swap devices at the end.
    pub swap_map: bool,
}

impl Default for ScenarioRequest {
    fn default() -> ScenarioRequest {
        ScenarioRequest {
            scenarios: Vec::new(),
            scale: 1.0,
            policies: None,
            promotion: Vec::new(),
            kernel: None,
            seed: None,
            limits: None,
            threads: None,
            check: false,
            lru_gen: false,
            swap_map: false,
        }
    }
}

impl ScenarioRequest {
    /// The same of one more scenario, of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no scenario.
    pub fn with_file(mut self, path: &Path) -> Result<ScenarioRequest, Failure> {
        self.scenarios.push(NamedScenario { name: path.display().to_string(), scenario: Scenario::load(path)? });
        Ok(self)
    }

    /// The scenarios with the kernel, the limits, the scale and the seed of the request.
    ///
    /// # Errors
    /// A limit or a scale that is impossible.
    pub fn prepared(&self) -> Result<Vec<NamedScenario>, Failure> {
        let prepared = |NamedScenario { name, scenario }: &NamedScenario| {
            let mut scenario = scenario.clone();
            scenario.policy.kernel = self.kernel.unwrap_or(scenario.policy.kernel);
            if let Some(limits) = &self.limits {
                limit(&mut scenario, limits)?;
            }
            let mut scenario = scaled(&scenario, name, self.scale)?;
            scenario.seed = self.seed.unwrap_or(scenario.seed);
            Ok(NamedScenario { name: name.clone(), scenario })
        };
        self.scenarios.iter().map(prepared).collect()
    }

    /// A run of each of some prepared scenarios under each policy.
    ///
    /// # Errors
    /// A policy that is impossible, or a setting that does nothing under any.
    pub fn jobs(&self, prepared: &[NamedScenario]) -> Result<Vec<Job>, Failure> {
        let mut jobs = Vec::new();
        for NamedScenario { name, scenario } in prepared {
            let policies = match &self.policies {
                Some(policies) => listed(policies, scenario)?,
                None => vec![scenario.policy.clone()],
            };
            scenario.check_acts(name, &policies)?;
            for policy in self.promotions(policies, scenario)? {
                jobs.push(Job { name: format!("{name}, {}", policy.policy), scenario: scenario.clone(), policy });
            }
        }
        Ok(jobs)
    }

    /// Runs jobs of this request.
    ///
    /// # Errors
    /// A run that fails, or cancel.
    pub fn run(&self, jobs: Vec<Job>, watch: &Watch) -> Result<Vec<ScenarioRun>, Failure> {
        let done = Runner::new(self.threads, self.check, watch).run("running", &jobs)?;
        let run = |(job, done): (Job, _)| ScenarioRun {
            scenario: job.scenario,
            scale: self.scale,
            policy: job.policy,
            done,
            lru_gen: self.lru_gen,
            swap_map: self.swap_map,
        };
        Ok(jobs.into_iter().zip(done).map(run).collect())
    }

    /// Each of these with each of the policies of promotion.
    fn promotions(&self, policies: Vec<PolicySpec>, scenario: &Scenario) -> Result<Vec<PolicySpec>, Failure> {
        if self.promotion.is_empty() {
            return Ok(policies);
        }
        if scenario.machine.nodes.is_empty() {
            return Err(format!("--promotion: {} has one node; write [node.NAME] for tiers", scenario.name).into());
        }
        let with = |policy: &PolicySpec, promotion: PromotionPolicy| {
            let mut policy = policy.clone();
            policy.tiering.choose("promotion", Value::Word(promotion.name()));
            if policy.tiering.settings.get("numa_balancing").is_none() {
                policy.tiering.choose("numa_balancing", Value::Number(2));
            }
            policy
        };
        Ok(policies.iter().flat_map(|policy| self.promotion.iter().map(move |&p| with(policy, p))).collect())
    }
}

/// Policies by their names, with what the scenario says about its own.
fn listed(policies: &[RowPolicy], scenario: &Scenario) -> Result<Vec<PolicySpec>, Failure> {
    let every = policies.len() == RowPolicy::all().count();
    let mut list = Vec::new();
    for &policy in policies {
        match policy {
            RowPolicy::Linux(policy) => {
                let spec = PolicySpec { policy, ..scenario.policy.clone() };
                spec.config().check().map_err(|e| format!("--policy {policy}: {e}"))?;
                list.push(spec);
            }
            // All means all that there are here.
            RowPolicy::Opt if every => {}
            RowPolicy::Opt => {
                return Err(
                    "--policy opt: knows the accesses to come, as a trace has them; in a scenario they depend on \
                            how long everything takes"
                        .into(),
                );
            }
        }
    }
    Ok(list)
}
