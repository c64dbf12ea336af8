//! Records what programs do with the page cache of the kernel that they run on, and what that
//! kernel does with it: every read and write by descriptor, faults on mapped files, pages that come
//! in and go. The trace is replayed by `refault replay`, and compared with what the kernel did by
//! `refault verify`.
//!
//! | file | what is in it |
//! |---|---|
//! | `recorder` | from the rings to the file, until the program ends |
//! | `unfinished` | what is left of a recording that does not end well |
//! | `tracefs`, `event` | formats of tracepoints, and events out of raw data |
//! | `probes`, `btf` | probes where a kernel lacks events, and where its structures have their fields |
//! | `bpf` | programs in the kernel that take a sample and count all accesses |
//! | `opened` | the events of a recording, by programs or by filters |
//! | `rights` | capabilities that lack |
//! | `ring` | the rings of all CPUs, read in the order of time |
//! | `assemble` | events to records: a state machine without clock and without files |
//! | `feed`, `group_names` | events of a sample as they come, and the groups that they are of |
//! | `group_target` | the group of a container, a unit of systemd or a pod, by its name |
//! | `members`, `tasks` | whose accesses are recorded; numbers and names of threads |
//! | `names` | files by inode |
//! | `residency`, `open_files` | which pages of a file are in memory; files that may have some |
//! | `touches`, `scan` | touches of memory in place, by looking at page tables; what a look found |
//! | `hierarchy`, `group`, `snapshot` | memory cgroups of both versions, and what is noted of them |
//! | `program` | the program that starts |
//! | `play`, `pages` | a trace on the kernel of this machine, an access at a time |
//! | `machine` | settings of the kernel, and how its events count pages |
//!
//! It writes with `refault-trace`. The command calls [`record`].

mod assemble;
mod bpf;
mod btf;
mod event;
mod feed;
mod group;
mod group_handle;
mod group_names;
mod group_target;
mod hierarchy;
mod machine;
mod members;
mod names;
mod open_files;
mod opened;
mod pages;
mod play;
mod probes;
mod program;
mod recorder;
mod residency;
mod rights;
mod ring;
mod scan;
mod snapshot;
mod tasks;
mod touches;
mod tracefs;
mod unfinished;

pub use assemble::{Assembler, DirectShare, Files, NewFile};
pub use bpf::bpf_possible;
pub use event::{Event, EventKind, EventSupport, Feature, Inode, release, survey};
pub use feed::EventFeed;
pub use group::{Cgroup, paths as group_paths};
pub use group_names::group_matches;
pub use group_target::{GroupOf, RuntimeNames, find_group, group_label};
pub use machine::{lru_gen, swappiness};
pub use opened::SamplerChoice;
pub use play::{KernelReplay, play, with_one_descriptor};
pub use probes::probes_possible;
pub use program::{catch_end, is_ended};
pub use recorder::{End, Options, RecordProgress, RecordReport, RecordTarget, record};
pub use residency::Residency;
pub use rights::lacking_rights;
pub use scan::{Memory, PageRun, Scan, Vma};
pub use touches::{Sampling, touches_possible};
pub use tracefs::Tracefs;
