//! A trace in memory, and its replay as users ask for it: what they do not say, a recording says.

use crate::memory_size::{Size, human};
use crate::recording::{CellSettings, MachineFacts, PAGE_SIZE, RecordedMachine, RecordedPlan};
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::{CellResult, PlugIn, Replay, curve_sizes, usual_sizes};
use crate::settings::{kernel_of, policy_of, swappiness_of};
use crate::{Failure, Watch, threads};
use refault_mm::{Config, Kernel, Policy};
use refault_trace::{LoadOptions, RecordSource, Recording, Records, Trace};
use std::collections::HashSet;

/// A trace in memory, and what else its file says that a replay asks for.
#[derive(Debug)]
pub struct LoadedTrace {
    /// The trace.
    pub trace: Trace,
    /// Bytes a page.
    pub page_size: u32,
    /// Machine and settings of the recording, defaults of a request; none: not a recording.
    pub recording: Option<Recording>,
    /// The machine that was recorded, if it is to be replayed as it was.
    pub machine: Option<RecordedMachine>,
}

impl LoadedTrace {
    /// Reads a trace; a recording as the machine that was recorded, too.
    ///
    /// # Errors
    /// The trace cannot be read, or holds no access, or cancel.
    pub fn read(
        mut source: Box<dyn RecordSource>,
        options: &LoadOptions,
        watch: &Watch,
    ) -> Result<LoadedTrace, Failure> {
        if source.header().recording.is_none() {
            return LoadedTrace::accesses(source, options, watch);
        }
        let kept = Records::read(&mut source)?;
        drop(source);
        let machine = RecordedMachine::read(&mut kept.clone(), options.max_accesses)?;
        let loaded = LoadedTrace::accesses(Box::new(kept), options, watch)?;
        Ok(LoadedTrace { machine: Some(machine), ..loaded })
    }

    /// Reads the accesses alone, also of a recording.
    ///
    /// # Errors
    /// The trace cannot be read, or holds no access, or cancel.
    pub fn accesses(
        source: Box<dyn RecordSource>,
        options: &LoadOptions,
        watch: &Watch,
    ) -> Result<LoadedTrace, Failure> {
        let page_size = source.header().page_size;
        let recording = source.header().recording.clone();
        let mut source = Clocked::new(source, options.max_accesses, watch);
        let trace = Trace::load(&mut source, options)?;
        Ok(LoadedTrace { trace, page_size, recording, machine: None })
    }
}

/// Replay of a trace that was loaded: the request, and which parts of it a user chose.
#[derive(Clone, Debug, Default)]
pub struct LoadedReplay<'a> {
    /// The request; what of it was not chosen, a recording says.
    pub request: Replay,
    /// Whether policies were chosen; if not, the recorded one, and none beside plug-ins.
    pub has_policies: bool,
    /// Whether sizes were, or a curve; else the limit of a recording.
    pub has_sizes: bool,
    /// Whether the sizes form a curve.
    pub is_curve: bool,
    /// Whether swappiness was; else that of a recording.
    pub has_swappiness: bool,
    /// The first choice that a recorded machine cannot have, under the name of its flag.
    pub foreign: Option<&'static str>,
    /// Replays the pages of a recording each by itself, without its machine.
    pub page_by_page: bool,
    /// Policies that the program brings, whose rows come last.
    pub plug_ins: &'a [PlugIn],
}

/// Rows of a replay, and a remark on its sizes.
#[derive(Debug, Default)]
pub struct LoadedRows {
    /// A row for each size and policy.
    pub cells: Vec<CellResult>,
    /// A remark on the sizes, if there is one.
    pub note: Option<String>,
}

impl LoadedReplay<'_> {
    /// Replays it: rows are by size, then by policy. `file` is what errors call the trace.
    ///
    /// # Errors
    /// A size or a setting that is impossible, or cancel.
    pub fn run(&self, loaded: &LoadedTrace, file: &str) -> Result<LoadedRows, Failure> {
        PlugIn::check_names(self.plug_ins)?;
        if let Some(machine) = loaded.machine.as_ref().filter(|_| !self.page_by_page) {
            return Ok(LoadedRows { cells: self.run_recorded(machine, Some(&loaded.trace))?, note: None });
        }
        let recording = loaded.recording.as_ref();
        let lists = self.with_rules(recording).config(Policy::Lru)?;
        let plug_ins: Vec<_> = self.plug_ins.iter().map(|plug_in| (plug_in, lists.clone())).collect();
        let policies = match plug_ins.is_empty() || self.has_policies {
            true => self.policies(recording)?,
            false => Vec::new(),
        };
        self.cells(loaded, &policies, &plug_ins, file)
    }

    /// Replays it under these policies.
    ///
    /// # Errors
    /// A size that is impossible, or cancel.
    pub fn cells(
        &self,
        loaded: &LoadedTrace,
        policies: &[(RowPolicy, Option<Config>)],
        plug_ins: &[(&PlugIn, Config)],
        file: &str,
    ) -> Result<LoadedRows, Failure> {
        let LoadedTrace { trace, page_size, recording, .. } = loaded;
        let recorded_bytes = recording.as_ref().and_then(|recording| recording.memory_max);
        let footprint = u64::from(trace.footprint_pages());
        if let Some(swap) = self.request.swap_setup()? {
            swap.check_touches(file, None, recording.as_ref())?;
        }
        let (sizes, note) = self.sizes(&trace.name, (*page_size, footprint), recorded_bytes)?;
        let request = Replay { kernel: self.kernel(recording.as_ref()), ..self.request.clone() };
        let plan = request.plan(trace, *page_size, sizes, policies, plug_ins);
        Ok(LoadedRows { cells: plan.run().map_err(|e| format!("{file}: {e}"))?, note })
    }

    /// The kernel whose rules hold; none: the default one.
    pub fn kernel(&self, recording: Option<&Recording>) -> Option<Kernel> {
        self.request.kernel.or(recording.map(kernel_of))
    }

    /// The policies, with their configurations.
    ///
    /// # Errors
    /// Settings that contradict each other, or do nothing under any of the policies.
    pub fn policies(&self, recording: Option<&Recording>) -> Result<Vec<(RowPolicy, Option<Config>)>, Failure> {
        let own =
            recording.filter(|_| !self.has_policies).map(|recording| vec![RowPolicy::Linux(policy_of(recording))]);
        let request = self.with_rules(recording);
        Replay { policies: own.unwrap_or(request.policies), ..request }.configs()
    }

    /// The request with the kernel and the swappiness of a recording, where none was chosen.
    fn with_rules(&self, recording: Option<&Recording>) -> Replay {
        let recorded = recording.and_then(swappiness_of).filter(|_| !self.has_swappiness);
        let swappiness = recorded.unwrap_or(self.request.swappiness);
        Replay { kernel: self.kernel(recording), swappiness, ..self.request.clone() }
    }

    /// Sizes to replay, in pages; `page_size` is in bytes, `footprint` in pages. Without sizes in
    /// the request: the recorded limit, or the footprint and a remark if the limit was larger.
    ///
    /// # Errors
    /// A size of no page, or one in which nothing would be reclaimed.
    pub fn sizes(
        &self,
        trace: &str,
        (page_size, footprint): (u32, u64),
        recorded_bytes: Option<u64>,
    ) -> Result<(Vec<u64>, Option<String>), Failure> {
        let limit = recorded_bytes.filter(|_| !self.has_sizes).map(|bytes| (bytes, bytes / u64::from(page_size)));
        let Some((bytes, limit)) = limit.filter(|(_, limit)| (*limit).min(footprint) > 0) else {
            return Ok((self.request.sizes(trace, page_size, footprint)?, None));
        };
        let note = (limit > footprint).then(|| {
            format!(
                "{trace}: the recorded limit of {} is more than all that the trace touches ({}); replayed with that",
                human(bytes),
                human(footprint * u64::from(page_size))
            )
        });
        Ok((vec![limit.min(footprint)], note))
    }

    /// Rows of the machine that was recorded, with its readahead. `trace` is its accesses page by
    /// page, which OPT needs.
    ///
    /// # Errors
    /// A size or a setting that is impossible, or cancel.
    pub fn run_recorded(&self, machine: &RecordedMachine, trace: Option<&Trace>) -> Result<Vec<CellResult>, Failure> {
        let (about, request) = (machine.about(), &self.request);
        self.check_foreign(&about.name)?;
        let own = [RowPolicy::Linux(policy_of(&about.recording))];
        let plan = RecordedPlan {
            machine,
            trace,
            sizes: self.recorded_sizes(about)?,
            policies: match self.has_policies {
                true => &request.policies,
                false if self.plug_ins.is_empty() => &own,
                false => &[],
            },
            plug_ins: self.plug_ins,
            settings: CellSettings {
                kernel: request.kernel,
                swappiness: self.has_swappiness.then_some(request.swappiness),
                set: &request.set,
                seed: request.seed,
                windows: request.windows,
                bits: request.bits,
                lru_gen: request.lru_gen,
            },
            threads: threads(request.threads),
            watch: request.watch.clone(),
        };
        Ok(plan.run()?)
    }

    /// Fails on a choice that the machine of a recording cannot have.
    ///
    /// # Errors
    /// A line that says what to do instead.
    pub fn check_foreign(&self, file: &str) -> Result<(), Failure> {
        let Some(flag) = self.foreign else { return Ok(()) };
        let what = "is a recording, which is replayed with its own settings and readahead";
        Err(format!("--{flag}: {file} {what}; add --page-by-page to replay its pages").into())
    }

    /// Sizes in pages, each once: the chosen ones, or the recorded limit.
    fn recorded_sizes(&self, about: &MachineFacts) -> Result<Vec<u64>, Failure> {
        let limit = about.recording.memory_max.map(|bytes| bytes / u64::from(PAGE_SIZE)).filter(|&pages| pages > 0);
        // A share of the files comes on top of what is not of files.
        let on_top = |sizes: Vec<Size>| -> Vec<u64> {
            let share = |size: &Size| about.besides_pages + size.pages(PAGE_SIZE, about.footprint_pages).max(1);
            sizes.iter().map(share).collect()
        };
        let mut sizes = match (self.has_sizes, self.is_curve, limit) {
            (true, true, _) => on_top(curve_sizes()),
            (true, false, _) => {
                self.request.memory.iter().map(|size| recorded_size(size, about)).collect::<Result<_, _>>()?
            }
            (false, _, Some(limit)) => vec![limit],
            (false, _, None) => on_top(usual_sizes()),
        };
        let mut seen = HashSet::new();
        sizes.retain(|&pages| seen.insert(pages));
        Ok(sizes)
    }
}

/// A chosen size of a recorded machine in pages.
fn recorded_size(size: &Size, about: &MachineFacts) -> Result<u64, String> {
    match size.pages(PAGE_SIZE, about.footprint_pages) {
        0 => Err(format!("--memory {size}: is less than one page of {PAGE_SIZE} bytes; give at least 1p")),
        _ if size.is_max() => {
            Err("--memory max: with no limit nothing is reclaimed; refault verify compares that".to_owned())
        }
        pages => Ok(pages),
    }
}
