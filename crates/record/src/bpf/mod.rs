//! Programs in the kernel that look at each event before anything is written: a perf event is
//! made first and filtered then. They also count all accesses.
//!
//! `bpf/sample.bpf.c` are the programs, `bpf/build` makes the object that is part of this library.
//! They are attached as long as their descriptors are open: nothing is left, also after a kill.
//! Filters of perf events (`event`) do the work where a kernel lacks what they need.

mod counts;
mod decode;

use crate::event::Event;
use crate::tracefs::Tracefs;
use aya::maps::{Array, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::{FEntry, Program, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, programs::BtfTracePoint};
use counts::{Counts, WORDS};
use decode::BpfEvent;
use refault_trace::SpaceSample;

/// The programs, as `bpf/build` makes them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/sample.bpf.o");

/// Events of which one of the programs does the work.
struct EventPart {
    /// Events of the kernel for which it stands.
    stands_for: &'static [&'static str],
    /// Alternatives: a program, and the tracepoint or the function that it is attached to. The
    /// first that can be is taken.
    programs: &'static [(&'static str, Place)],
}

/// Place that a program is attached to.
#[derive(Clone, Copy, Debug)]
enum Place {
    Tracepoint(&'static str),
    Function(&'static str),
}

/// Parts without which all is left to filters: what is touched, and what comes and goes.
const NEEDED: [EventPart; 5] = [
    EventPart {
        stands_for: &["filemap/mm_filemap_get_pages"],
        programs: &[
            ("read", Place::Tracepoint("mm_filemap_get_pages")),
            ("read_begin", Place::Function("filemap_read")),
        ],
    },
    EventPart {
        stands_for: &["filemap/mm_filemap_map_pages"],
        programs: &[
            ("around", Place::Tracepoint("mm_filemap_map_pages")),
            ("around_begin", Place::Function("filemap_map_pages")),
        ],
    },
    EventPart {
        stands_for: &["filemap/mm_filemap_fault"],
        programs: &[
            ("fault", Place::Tracepoint("mm_filemap_fault")),
            ("fault_begin", Place::Function("filemap_fault")),
        ],
    },
    EventPart {
        stands_for: &["filemap/mm_filemap_add_to_page_cache"],
        programs: &[("add", Place::Tracepoint("mm_filemap_add_to_page_cache"))],
    },
    EventPart {
        stands_for: &["filemap/mm_filemap_delete_from_page_cache"],
        programs: &[("delete", Place::Tracepoint("mm_filemap_delete_from_page_cache"))],
    },
];

/// Parts that filters do alone where these cannot be: file systems that are modules.
const OTHERS: [EventPart; 4] = [
    EventPart {
        stands_for: &["ext4/ext4_da_write_begin"],
        programs: &[("ext4_da_write", Place::Tracepoint("ext4_da_write_begin"))],
    },
    EventPart {
        stands_for: &["ext4/ext4_write_begin"],
        programs: &[("ext4_write", Place::Tracepoint("ext4_write_begin"))],
    },
    EventPart {
        stands_for: &["xfs/xfs_file_buffered_write"],
        programs: &[("xfs_write", Place::Tracepoint("xfs_file_buffered_write"))],
    },
    EventPart {
        stands_for: &["syscalls/sys_enter_fadvise64", "syscalls/sys_enter_readahead"],
        programs: &[("advise", Place::Function("vfs_fadvise"))],
    },
];

/// Settings of the programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BpfSettings {
    /// Pages whose events are told.
    pub(crate) sample: SpaceSample,
    /// Pages by which the last index of a read is beyond its last page.
    pub(crate) last_beyond: u64,
    /// Counts are of processes, and not of memory cgroups.
    pub(crate) by_process: bool,
    /// Bytes of the ring for each CPU, a power of two.
    pub(crate) ring_bytes: usize,
}

/// The programs at work.
pub(crate) struct Programs {
    /// Keeps them attached.
    _programs: Ebpf,
    ring: RingBuf<MapData>,
    places: Array<MapData, [u64; WORDS]>,
    lost: PerCpuArray<MapData, u64>,
    /// The epoch, and the mask of the sample.
    shared: Array<MapData, [u64; 2]>,
    epochs: u64,
    mask: u64,
    counts: Counts,
    stands_for: Vec<&'static str>,
    /// Events that could not be decoded.
    undecoded: u64,
}

/// Whether the programs can be loaded and attached here.
///
/// # Errors
/// The reason why not, in one line.
pub fn bpf_possible(tracefs: &Tracefs) -> Result<(), String> {
    let sample = SpaceSample::new(256, 0)?;
    let settings = BpfSettings { sample, last_beyond: 0, by_process: false, ring_bytes: 1 << 16 };
    Programs::load(tracefs, settings).map(|_| ())
}

impl Programs {
    /// Loads and attaches them.
    pub(crate) fn load(tracefs: &Tracefs, settings: BpfSettings) -> Result<Programs, String> {
        let btf = Btf::from_sys_fs().map_err(|e| format!("/sys/kernel/btf/vmlinux: {}", in_words(&e)))?;
        allow_locked_memory();
        let cpus = aya::util::nr_cpus().map_err(|(path, e)| format!("{path}: {e}"))?.max(1);
        let ring = settings.ring_bytes.saturating_mul(cpus).next_power_of_two().clamp(1 << 16, 1 << 30);
        let by_process = u64::from(settings.by_process);
        let mut programs = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("salt", &settings.sample.salt, true)
            .override_global("beyond", &settings.last_beyond, true)
            .override_global("by_process", &by_process, true)
            .map_max_entries("counts", cpus as u32)
            .map_max_entries("ring", ring as u32)
            .load(OBJECT)
            .map_err(|e| in_words(&e))?;
        let mut map = |name: &str| programs.take_map(name).ok_or_else(|| format!("the programs have no map {name}"));
        let failed = |e: MapError| in_words(&e);
        let ring_map = RingBuf::try_from(map("ring")?).map_err(failed)?;
        let places = Array::try_from(map("counts")?).map_err(failed)?;
        let lost = PerCpuArray::try_from(map("lost")?).map_err(failed)?;
        let mut shared = Array::try_from(map(".data.shared")?).map_err(failed)?;
        let mask = settings.sample.one_in - 1;
        shared.set(0, [1, mask], 0).map_err(failed)?;
        let mut stands_for = Vec::new();
        for part in &NEEDED {
            attach(&mut programs, part, &btf)?;
            stands_for.extend(part.stands_for);
        }
        for part in &OTHERS {
            let is_there = part.stands_for.iter().any(|event| tracefs.format(event).is_ok_and(|f| f.is_some()));
            if is_there && attach(&mut programs, part, &btf).is_ok() {
                stands_for.extend(part.stands_for);
            }
        }
        drop(btf);
        give_back_memory();
        Ok(Programs {
            ring: ring_map,
            places,
            lost,
            shared,
            epochs: 1,
            mask,
            counts: Counts::default(),
            stands_for,
            undecoded: 0,
            _programs: programs,
        })
    }

    /// Another rate of the sample, from the next event on.
    pub(crate) fn set_sample(&mut self, sample: SpaceSample) -> Result<(), String> {
        self.mask = sample.one_in - 1;
        self.shared.set(0, [self.epochs, self.mask], 0).map_err(|e| in_words(&e))
    }

    /// Events of the kernel that need no other events any more.
    pub(crate) fn stands_for(&self) -> &[&'static str] {
        &self.stands_for
    }

    /// Appends the events that are there; how many these were.
    pub(crate) fn take(&mut self, out: &mut Vec<Event>) -> u64 {
        let mut read = 0;
        while let Some(raw) = self.ring.next() {
            match decode::decode(&raw) {
                Some(BpfEvent::Event(event)) => out.push(event),
                Some(BpfEvent::Count(count)) => {
                    self.counts.told(count);
                    continue;
                }
                None => self.undecoded += 1,
            }
            read += 1;
        }
        read
    }

    /// Events that found the ring full, or could not be decoded.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get(&0, 0).map_or(0, |all| all.iter().sum::<u64>()) + self.undecoded
    }

    /// Accesses since the last call, by number of the memory cgroup or of the process.
    pub(crate) fn accesses(&mut self) -> Vec<(u64, u64)> {
        for cpu in 0..self.places.len() {
            if let Ok(words) = self.places.get(&cpu, 0) {
                self.counts.look(cpu as usize, &words);
            }
        }
        // A task that changed its group is looked up anew.
        self.epochs += 1;
        _ = self.shared.set(0, [self.epochs, self.mask], 0);
        self.counts.take()
    }
}

/// Attaches the first of the alternatives that this kernel takes.
fn attach(programs: &mut Ebpf, part: &EventPart, btf: &Btf) -> Result<(), String> {
    let mut why = String::new();
    for &(name, place) in part.programs {
        let Some(program) = programs.program_mut(name) else { continue };
        match attach_one(program, place, btf) {
            Ok(()) => return Ok(()),
            Err(e) => why = format!("{}: {}", at(place), in_words(&e)),
        }
    }
    Err(why)
}

fn attach_one(program: &mut Program, place: Place, btf: &Btf) -> Result<(), ProgramError> {
    match place {
        Place::Tracepoint(name) => {
            let program: &mut BtfTracePoint = program.try_into()?;
            program.load(name, btf)?;
            program.attach()?;
        }
        Place::Function(name) => {
            let program: &mut FEntry = program.try_into()?;
            program.load(name, btf)?;
            program.attach()?;
        }
    }
    Ok(())
}

fn at(place: Place) -> &'static str {
    match place {
        Place::Tracepoint(name) | Place::Function(name) => name,
    }
}

/// An error with its causes, in one line: the verifier's log has many.
fn in_words(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (first_line(error), error.source());
    while let Some(error) = cause {
        let more = first_line(error);
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn first_line(error: &dyn std::error::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// Before Linux 5.11 maps count as locked memory.
fn allow_locked_memory() {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call reads the structure that the pointer is to. Without the right to it nothing
    // changes.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &all) };
}

/// Gives memory that is free back to the kernel: types of a whole kernel take 20 MiB and more.
fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call has no conditions, and changes nothing that is in use.
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_made_of_its_source() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
        let sums = std::process::Command::new("sha256sum")
            .args(["--check", "--strict", "--quiet", "sample.bpf.sum"])
            .current_dir(folder)
            .output()
            .expect("sha256sum runs");
        let said = String::from_utf8_lossy(&sums.stdout);
        assert!(sums.status.success(), "{said}run crates/record/bpf/build");
    }

    #[test]
    fn the_programs_are_in_the_object() {
        let object = aya_programs();
        let named = NEEDED.iter().chain(&OTHERS).flat_map(|part| part.programs).map(|(name, _)| *name);
        let missing: Vec<_> = named.filter(|name| !object.iter().any(|known| known == name)).collect();
        assert_eq!(missing, [""; 0]);
    }

    /// Names of symbols of the object, as its table of strings has them.
    fn aya_programs() -> Vec<String> {
        OBJECT.split(|&byte| byte == 0).filter_map(|text| String::from_utf8(text.to_vec()).ok()).collect()
    }

    #[test]
    fn errors_are_one_line() {
        let error = std::io::Error::other("first:\nsecond");
        assert_eq!(in_words(&error), "first");
    }
}
