//! The events of a recording, opened: programs in the kernel where these are possible and a sample
//! is asked for, else perf events, with filters or without.

use crate::bpf::{BpfSettings, Programs};
use crate::event::Decoder;
use crate::group;
use crate::machine::{self, Calibration};
use crate::probes::{self, Probes};
use crate::ring::Rings;
use crate::tracefs::Tracefs;
use refault_trace::SpaceSample;

/// Bytes of a perf ring at most where programs tell of pages: tasks, and what is rare, are left.
const RARE_BYTES: usize = 1 << 18;

/// Bytes of a perf ring that one event is looked for in.
const LOOK_BYTES: usize = 1 << 16;

/// Part of the kernel that takes a sample, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplerChoice {
    /// Programs, and filters where these are not possible.
    #[default]
    Auto,
    /// BPF programs, or nothing.
    Bpf,
    /// Filters of perf events.
    Filter,
}

/// Events that are wanted, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedEvents {
    /// Pages whose events are wanted; none: all.
    pub(crate) sample: Option<SpaceSample>,
    pub(crate) sampler: SamplerChoice,
    /// Events of pages and of deleted files alone.
    pub(crate) of_pages: bool,
    /// Events say the group that they are of.
    pub(crate) groups: bool,
    /// Counts of programs are of processes, and not of memory cgroups.
    pub(crate) by_process: bool,
    /// Bytes of the ring of each CPU.
    pub(crate) ring_bytes: usize,
}

/// Events that are open.
pub(crate) struct Opened {
    pub(crate) rings: Rings,
    /// Removed after the events on them have ended.
    pub(crate) probes: Option<Probes>,
    pub(crate) decoder: Decoder,
    /// Whether the numbers of groups in events are those of memory cgroups.
    pub(crate) has_groups: bool,
    /// Reason why filters take the sample, if programs were wanted, too.
    pub(crate) why_filters: Option<String>,
}

impl Opened {
    /// Opens the events, on probes that are there already if there are any.
    pub(crate) fn open(tracefs: &Tracefs, wanted: WantedEvents, probes: Option<Probes>) -> Result<Opened, String> {
        let mut why_filters = None;
        if let Some(sample) = wanted.sample.filter(|_| wanted.sampler != SamplerChoice::Filter) {
            match with_programs(tracefs, wanted, sample) {
                Ok(opened) => return Ok(opened),
                Err(why) if wanted.sampler == SamplerChoice::Bpf => {
                    return Err(format!("--sampler bpf: {why}; auto takes filters in its place"));
                }
                Err(why) => why_filters = Some(why),
            }
        }
        let probes = if probes.is_some() { probes } else { probes::needed(tracefs)? };
        let decoder = Decoder::new(tracefs, probes.as_ref().map(Probes::group), wanted.sample, &[])?;
        let decoder = if wanted.of_pages { decoder.of_pages() } else { decoder };
        let (mut rings, calibration) = open_rings(decoder.clone(), wanted.ring_bytes, wanted.groups)?;
        rings.set_last_beyond(calibration.last_beyond);
        let has_groups = calibration.cgroup != 0 && group::own_id() == Some(calibration.cgroup);
        Ok(Opened { rings, probes, decoder, has_groups, why_filters })
    }
}

fn with_programs(tracefs: &Tracefs, wanted: WantedEvents, sample: SpaceSample) -> Result<Opened, String> {
    // The number of the last page is that of the call where the kernel has no event.
    let last_beyond = match Decoder::new(tracefs, None, Some(sample), &[]) {
        Ok(decoder) => look(&decoder, wanted.groups)?.last_beyond,
        Err(_) => 0,
    };
    let settings = BpfSettings { sample, last_beyond, by_process: wanted.by_process, ring_bytes: wanted.ring_bytes };
    let programs = Programs::load(tracefs, settings)?;
    let decoder = Decoder::new(tracefs, None, Some(sample), programs.stands_for())?;
    let decoder = if wanted.of_pages { decoder.of_pages() } else { decoder };
    let rings = Rings::open(decoder.clone(), wanted.ring_bytes.min(RARE_BYTES), wanted.groups)?;
    let rings = rings.with_programs(programs);
    Ok(Opened { rings, probes: None, decoder, has_groups: true, why_filters: None })
}

/// Opens the rings, and finds out how events are to be taken. A sample has no event of a page that
/// is not in it: that is asked of rings of this thread alone, before.
fn open_rings(decoder: Decoder, bytes: usize, groups: bool) -> Result<(Rings, Calibration), String> {
    if !decoder.is_filtered() {
        let mut rings = Rings::open(decoder, bytes, groups)?;
        let calibration = machine::calibrate(&mut rings)?;
        return Ok((rings, calibration));
    }
    let calibration = look(&decoder, groups)?;
    Ok((Rings::open(decoder, bytes, groups)?, calibration))
}

/// Looks at the events of this thread how they are to be taken.
fn look(decoder: &Decoder, groups: bool) -> Result<Calibration, String> {
    let thread = refault_syscalls::newer::gettid();
    machine::calibrate(&mut Rings::open(decoder.of_thread(thread), LOOK_BYTES, groups)?)
}
