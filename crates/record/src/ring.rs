//! Rings of a live kernel: one for each CPU, with all events of that CPU, and the merging of them.

use crate::bpf::Programs;
use crate::event::{COMM, Decoder, Event, EventKind};
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use perf_event_open_sys::ioctls;
use std::io;
use std::os::fd::AsRawFd;

/// Types of records in a ring.
const LOST: u32 = 2;
const COMM_RECORD: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
/// Flag of a record of a name: the thread runs another program.
const COMM_EXEC: u16 = 1 << 13;

/// Nanoseconds after its time at which an event is visible to its reader at the latest: rings are
/// read one after the other, and another CPU may be in the middle of writing an event.
const SETTLED_NS: u64 = 20_000_000;

struct Ring {
    sampler: Sampler,
    /// Events that write into it: they end when these are closed.
    _events: Vec<Counter>,
}

/// The rings of all CPUs.
pub struct Rings {
    rings: Vec<Ring>,
    /// Programs in the kernel that tell of most events; none: all are in the rings.
    programs: Option<Programs>,
    decoder: Decoder,
    /// Read, and not handed on.
    held: Vec<Event>,
    /// Events that were read.
    pub read: u64,
    /// Events that found a ring full.
    pub lost: u64,
    /// Samples that could not be decoded.
    pub undecoded: u64,
}

impl Rings {
    /// Opens a ring of `ring_bytes` bytes on each CPU, and starts the events; `groups`: with the
    /// cgroup of each event, if the kernel says it.
    pub fn open(decoder: Decoder, ring_bytes: usize, mut groups: bool) -> Result<Rings, String> {
        allow_descriptors();
        let mut rings = Vec::new();
        for cpu in online()? {
            let mut ring = Ring::open(cpu, &decoder, ring_bytes, groups);
            if groups && ring.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput) {
                groups = false;
                ring = Ring::open(cpu, &decoder, ring_bytes, groups);
            }
            rings.push(ring.map_err(|e| refused(cpu, &e))?);
        }
        Ok(Rings { rings, programs: None, decoder, held: Vec::new(), read: 0, lost: 0, undecoded: 0 })
    }

    /// Takes the events of programs in the kernel, too.
    pub(crate) fn with_programs(self, programs: Programs) -> Rings {
        Rings { programs: Some(programs), ..self }
    }

    /// Programs in the kernel, if there are any.
    pub(crate) fn programs(&mut self) -> Option<&mut Programs> {
        self.programs.as_mut()
    }

    /// Events that were lost, or could not be decoded, since the start.
    pub(crate) fn all_lost(&self) -> u64 {
        self.lost + self.undecoded + self.programs.as_ref().map_or(0, Programs::lost)
    }

    /// Sets what [`Decoder::last_beyond`] is.
    pub fn set_last_beyond(&mut self, pages: u64) {
        self.decoder.last_beyond = pages;
    }

    /// Adds an event of the recorder itself, among the others by its time.
    pub fn add(&mut self, event: Event) {
        self.held.push(event);
    }

    /// Appends what happened up to a moment ago, in the order of time. `all`: up to now, as nothing
    /// more is to come. The time up to which that is all.
    pub fn take(&mut self, out: &mut Vec<Event>, all: bool) -> u64 {
        let until = if all { u64::MAX } else { now_ns().saturating_sub(SETTLED_NS) };
        let Rings { rings, programs, decoder, held, read, lost, undecoded } = self;
        *read += programs.as_mut().map_or(0, |programs| programs.take(held));
        for ring in rings {
            while let Some(record) = ring.sampler.next_record() {
                let data = record.to_contiguous();
                match record.ty() {
                    LOST => *lost += word64(&data, 8).unwrap_or(0),
                    SAMPLE => match sample(decoder, &data) {
                        Some(event) => held.push(event),
                        None => *undecoded += 1,
                    },
                    kind => held.extend(of_task(kind, record.misc(), &data)),
                }
                *read += 1;
            }
        }
        // Runs that are sorted already, one a ring: that is what the sort of the library is fast
        // for. Events of one time and one ring keep their order.
        held.sort_by_key(|event| event.time_ns);
        let ready = held.partition_point(|event| event.time_ns <= until);
        out.extend(held.drain(..ready));
        until
    }
}

impl Ring {
    fn open(cpu: usize, decoder: &Decoder, bytes: usize, groups: bool) -> io::Result<Ring> {
        let groups = if groups { SampleFlag::CGROUP } else { SampleFlag::empty() };
        // An event that never happens owns the ring and tells of processes and their names.
        let leader = common(&mut Builder::new(Software::DUMMY), cpu)
            .sample(groups)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .build()?;
        let mut sampler = leader.sampled(bytes)?;
        let mut events = Vec::new();
        for id in decoder.ids() {
            let event = Tracepoint::with_id(u64::from(id));
            let mut counter = common(&mut Builder::new(event), cpu).sample(groups).build()?;
            // SAFETY: both descriptors are open, and the request takes a descriptor by value.
            let set = unsafe { ioctls::SET_OUTPUT(counter.as_raw_fd(), sampler.as_raw_fd()) };
            if set < 0 {
                return Err(io::Error::last_os_error());
            }
            if let Some(filter) = decoder.filter(id) {
                let filter = std::ffi::CString::new(filter).unwrap_or_default();
                // SAFETY: the descriptor is open, and the text ends with a zero and outlives the
                // call.
                let set = unsafe { ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
                // Without a filter there are more events: too many, where they are to be a sample.
                if set < 0 && decoder.is_filtered() {
                    let e = io::Error::last_os_error();
                    return Err(io::Error::new(e.kind(), format!("the kernel takes no filter of a sample: {e}")));
                }
            }
            counter.enable()?;
            events.push(counter);
        }
        sampler.enable()?;
        Ok(Ring { sampler, _events: events })
    }
}

/// Settings that all events of a ring have in common.
fn common<'a, 'b>(builder: &'b mut Builder<'a>, cpu: usize) -> &'b mut Builder<'a> {
    builder
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .sample_period(1)
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(1 << 20)
}

fn word32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn word64(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// A sample: process, thread, time, the raw data behind their length, and the cgroup.
#[inline]
fn sample(decoder: &Decoder, data: &[u8]) -> Option<Event> {
    let length = word32(data, 16)? as usize;
    let kind = decoder.decode(data.get(20..20 + length)?)?;
    let cgroup = word64(data, 20 + length).unwrap_or(0);
    Some(Event { pid: word32(data, 0)?, tid: word32(data, 4)?, time_ns: word64(data, 8)?, cgroup, kind })
}

/// Event of a task in a ring. Each ends with process, thread and time.
fn of_task(kind: u32, misc: u16, data: &[u8]) -> Option<Event> {
    let (pid, time_ns) = (word32(data, 0)?, word64(data, data.len().checked_sub(8)?)?);
    match kind {
        FORK => {
            let (parent, tid) = (word32(data, 4)?, word32(data, 8)?);
            Some(Event { time_ns, pid, tid, cgroup: 0, kind: EventKind::Fork { parent } })
        }
        // The first thread of a process stands for it.
        EXIT if word32(data, 8)? == pid => Some(Event { time_ns, pid, tid: pid, cgroup: 0, kind: EventKind::Exit }),
        COMM_RECORD => {
            let text = data.get(8..data.len().checked_sub(16)?)?;
            let exec = misc & COMM_EXEC != 0;
            let mut name = [0; COMM];
            let length = text.iter().position(|&b| b == 0).unwrap_or(text.len()).min(COMM);
            name[..length].copy_from_slice(&text[..length]);
            Some(Event { time_ns, pid, tid: word32(data, 4)?, cgroup: 0, kind: EventKind::Comm { name, exec } })
        }
        _ => None,
    }
}

fn refused(cpu: usize, error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "; recording takes root, or the capabilities PERFMON, SYS_PTRACE, DAC_READ_SEARCH and IPC_LOCK (without the \
             last one a --ring of 256K): sudo refault record ..."
        }
        Some(libc::EMFILE) => "; raise the limit of open files: ulimit -n 65536",
        Some(libc::ENOMEM) => "; give less to --ring",
        _ => "",
    };
    format!("perf_event_open on CPU {cpu}: {error}{hint}")
}

/// The time of the clock that events have.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure that the pointer is to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPUs that are online.
fn online() -> Result<Vec<usize>, String> {
    let path = "/sys/devices/system/cpu/online";
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: cannot be read: {e}"))?;
    list(text.trim()).ok_or_else(|| format!("{path}: {:?} is not understood", text.trim()))
}

/// A list such as `0-3,8`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

/// An event takes a descriptor on each CPU: as many as the administrator allows.
fn allow_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or fill the structure that the pointer is to.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list("x"), None);
        assert_eq!(list(""), None);
    }

    #[test]
    fn records_of_tasks() {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>();
        // pid, ppid, tid, ptid, time, and once more process, thread and time.
        let fork = words(&[5, 4, 6, 4, 77, 0, 4, 4, 77, 0]);
        let event = of_task(FORK, 0, &fork).expect("whole");
        assert_eq!(event, Event { time_ns: 77, pid: 5, tid: 6, cgroup: 0, kind: EventKind::Fork { parent: 4 } });
        let mut comm = words(&[5, 6]);
        comm.extend(b"cat\0\0\0\0\0");
        comm.extend(words(&[5, 6, 78, 0]));
        let Some(Event { kind: EventKind::Comm { name, exec: true }, time_ns: 78, .. }) =
            of_task(COMM_RECORD, COMM_EXEC, &comm)
        else {
            panic!("no name");
        };
        assert_eq!(&name[..4], b"cat\0");
        assert_eq!(of_task(1, 0, &comm), None);
        // A thread that ends is not the end of its process.
        let exit = |tid: u32| of_task(EXIT, 0, &words(&[5, 4, tid, 4, 79, 0, 5, tid, 79, 0])).map(|event| event.kind);
        assert_eq!((exit(5), exit(6)), (Some(EventKind::Exit), None));
        assert!((0..comm.len()).all(|n| of_task(COMM_RECORD, 0, &comm[..n]).is_none_or(|e| e.pid == 5)));
    }
}
