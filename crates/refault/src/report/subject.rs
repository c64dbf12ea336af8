//! The trace of a report in memory, read once; and the report on it.

use super::groups;
use super::recorded::{self, OfFiles};
use super::request::{Open, ReportRequest};
use super::trace::{EngineRules, Policies, Work, windows};
use crate::Failure;
use crate::document::trace::{GroupsUnder, TraceDocument};
use crate::recording::RecordedMachine;
use crate::replay::clocked::Clocked;
use crate::replay::groups::{Tree, load};
use crate::replay::policy::RowPolicy;
use crate::settings::{check_on_policies, check_on_trace};
use refault_trace::{Header, LoadOptions, RecordSource, Records, Trace};

/// A trace or a recording in memory.
#[derive(Debug)]
pub struct ReportSubject {
    trace: Trace,
    header: Header,
    machine: Option<RecordedMachine>,
    /// Where windows begin, and the end.
    windows: Vec<u64>,
    /// The same in seconds, if the trace has times.
    seconds: Option<Vec<f64>>,
    has_groups: bool,
}

impl ReportSubject {
    /// Reads a trace, or a recording as the machine that was recorded, too. `open` is called once.
    ///
    /// # Errors
    /// The trace cannot be read, holds nothing, or says nothing of the groups that have limits.
    pub fn read(request: &ReportRequest, open: &Open<'_>) -> Result<ReportSubject, Failure> {
        let mut source = open()?;
        let is_recording = source.header().recording.is_some();
        let mut machine = None;
        if is_recording {
            let kept = Records::read(&mut source)?;
            machine = Some(RecordedMachine::read(&mut kept.clone(), request.max_accesses)?);
            source = Box::new(kept);
        }
        // Groups are page by page: of a recording that would be another question.
        let keep_memcg = !is_recording && !source.header().memcgs.is_empty();
        let mut source = Clocked::new(Box::new(OfFiles(source)), request.max_accesses, &request.watch);
        let trace = Trace::load(&mut source, &LoadOptions { keep_memcg, ..request.load_options() })?;
        let windows = windows(trace.accesses.len() as u64);
        let (seconds, has_groups) = (source.seconds(&windows), source.has_groups());
        let header = source.header().clone();
        Ok(ReportSubject { trace, header, machine, windows, seconds, has_groups })
    }

    /// The machine that was recorded; none: it is no recording.
    pub fn machine(&self) -> Option<&RecordedMachine> {
        self.machine.as_ref()
    }

    /// Whether accesses say which memory cgroup they come from.
    pub fn has_groups(&self) -> bool {
        self.has_groups
    }

    /// Replays it as often as a report needs. `name` is what errors call it; `open` is called for a
    /// trace whose groups were not known before it was read.
    ///
    /// # Errors
    /// A size, a policy or a limit that is impossible, or cancel.
    pub fn report(&self, request: &ReportRequest, name: &str, open: &Open<'_>) -> Result<TraceDocument, Failure> {
        let policies = self.policies(request, name)?;
        let work = Work {
            request,
            trace: &self.trace,
            page_size: self.header.page_size,
            rules: EngineRules::of(request, self.header.recording.as_ref()),
            policies: &policies,
            machine: self.machine.as_ref().map(|machine| recorded::MachineReplay { machine, request }),
        };
        let document = work.document(&self.header, self.windows.clone(), self.seconds.clone());
        let document = document.map_err(|e| format!("{name}: {e}"))?;
        let groups = self.groups(request, (name, open), &policies, document.detail_pages)?;
        Ok(TraceDocument { groups, ..document })
    }

    fn policies(&self, request: &ReportRequest, name: &str) -> Result<Policies, Failure> {
        if let Some(flag) = request.flags.iter().find(|flag| ["swap-max", "via"].contains(flag)) {
            match self.machine {
                Some(_) => {
                    let what = "is a recording, which is replayed with its own settings and readahead";
                    return Err(format!("--{flag}: {name} {what}; leave it out").into());
                }
                None => check_on_trace(&request.flags, &self.trace, name)?,
            }
        }
        let mut policies = EngineRules::of(request, self.header.recording.as_ref()).policies(request)?;
        if self.machine.is_some() {
            // OPT knows pages only: beside readahead its misses say nothing.
            policies.retain(|(policy, _)| *policy != RowPolicy::Opt);
            if policies.is_empty() {
                return Err(format!(
                    "--policy opt: {name} is a recording, which is replayed with readahead, and opt has none; refault \
                     replay --page-by-page has it"
                )
                .into());
            }
        }
        check_on_policies(&request.flags, policies.iter().map(|(policy, config)| (policy.name(), config.as_ref())))?;
        Ok(policies)
    }

    fn groups(
        &self,
        request: &ReportRequest,
        (name, open): (&str, &Open<'_>),
        policies: &Policies,
        detail_pages: u64,
    ) -> Result<Vec<GroupsUnder>, Failure> {
        if !self.has_groups || self.machine.is_some() {
            return Ok(Vec::new());
        }
        let page_size = self.header.page_size;
        let run = |trace: &Trace, tree: Tree| {
            groups::under(request, (trace, tree, page_size), policies, &self.windows, detail_pages)
        };
        if self.trace.memcg.is_some() {
            let tree = Tree::new(&self.trace.groups).map_err(|e| format!("{name}: {e}"))?;
            return run(&self.trace, tree);
        }
        match load(open()?, &request.load_options())? {
            (trace, Some(tree), _) => run(&trace, tree),
            _ => Ok(Vec::new()),
        }
    }
}
