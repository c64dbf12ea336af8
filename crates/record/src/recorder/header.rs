//! Header of a recording: what it says of itself.

use super::{Options, RecordTarget, Recorder};
use crate::event::{Decoder, Feature};
use crate::group::Cgroup;
use crate::ring::now_ns;
use crate::touches::Sampler;
use refault_trace::{Format, Header, ObjectInfo};

impl Recorder {
    pub(super) fn checkpoint(&mut self) -> Result<(), String> {
        self.recording.duration_ns = now_ns().saturating_sub(self.start_ns);
        let mut header = self.header();
        if let Some(recording) = &mut header.recording {
            recording.cut = true;
        }
        self.writer.checkpoint(&header).map_err(|e| e.to_string())
    }

    pub(super) fn header(&mut self) -> Header {
        (self.recording.events, self.recording.lost) = (self.rings.read, self.rings.all_lost());
        let killed = self.group.as_ref().map_or(0, Cgroup::oom_kills);
        self.recording.oom_kills = killed.saturating_sub(self.killed_before).max(self.recording.oom_kills);
        self.recording.counted = self.counted();
        self.recording.touches = self.sampler.as_ref().map(Sampler::about);
        self.recording.read_ahead_pages = self.names.read_ahead_pages();
        let mut header = Header::new(Format::Native);
        let read_ahead = self.names.read_ahead_by_file();
        header.objects = self
            .names
            .all(self.anonymized)
            .into_iter()
            .enumerate()
            .map(|(at, about)| ObjectInfo {
                pages: about.pages,
                shmem: about.shmem,
                direct: self.assembler.direct(at),
                residency_known: self.assembler.is_residency_known(at),
                first_pages: self.assembler.first_pages(at),
                touches: self.recording.touches.filter(|_| self.assembler.is_in_view(at)),
                folio_order: self.assembler.folio_order(at),
                read_ahead_pages: read_ahead[at],
                ..ObjectInfo::new(about.name, about.kind)
            })
            .collect();
        header.tasks = self.tasks.names.clone();
        header.memcgs = self.tasks.groups.clone();
        if self.anonymized {
            let number = |what: &str, i: usize| format!("{what}{i}");
            header.tasks.iter_mut().enumerate().for_each(|(i, name)| *name = number("task ", i));
            header.memcgs.iter_mut().enumerate().for_each(|(i, path)| *path = number("/group", i));
            self.recording.group = self.recording.group.take().map(|_| "/group0".to_owned());
            "not said".clone_into(&mut self.recording.target);
        }
        header.source = Some(format!("refault record: {}", self.recording.target));
        header.recorded_on = Some(format!("Linux {}", self.recording.kernel));
        let mut recording = self.recording.clone();
        recording.sees.push(self.warm.in_words(self.assembler.unlooked()));
        header.recording = Some(recording);
        header
    }
}

/// Accesses that are seen, in words.
pub(super) fn sees(decoder: &Decoder) -> Vec<String> {
    let parts = [
        (Feature::Cache, "reads by descriptor"),
        (Feature::Writes, "writes by descriptor"),
        (Feature::Faults, "faults on mapped files"),
        (Feature::Advice, "advice"),
        (Feature::Syncs, "fsync"),
    ];
    parts.into_iter().filter(|(part, _)| decoder.has(*part)).map(|(_, words)| words.to_owned()).collect()
}

pub(super) fn words(options: &Options) -> String {
    match &options.target {
        // Arguments may be passwords.
        RecordTarget::Command(words) if !options.command_line => {
            words.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned())
        }
        RecordTarget::Command(words) => words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" "),
        RecordTarget::Pids(pids) => format!("pid {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        RecordTarget::Group => format!("cgroup {}", options.group.as_deref().unwrap_or("/".as_ref()).display()),
        RecordTarget::All => "all processes".to_owned(),
    }
}
