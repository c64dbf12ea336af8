//! Running a workload.

use super::rng::Rng;
use super::{Interleave, MAX_PAGES, MAX_SKEW, MAX_STREAMS, Pattern, Phase, Stream, Workload, Zipf};
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::memcg::MAX_GROUPS;
use crate::record::{CHUNK, Header, MAX_OBJECTS, ObjectInfo, Op, Record, RecordSource};

/// Purposes of the random numbers of a phase.
const PICK: u64 = 0;
const DRAW: u64 = 1;
const PERMUTE: u64 = 2;

/// The accesses of a workload, in order.
#[derive(Debug)]
pub struct Generator {
    name: String,
    header: Header,
    seed: u64,
    phases: Vec<Phase>,
    /// The phase that is running, and what is left of it.
    phase: usize,
    left: u64,
    streams: Vec<Running>,
    /// Streams that are not over, by place in `streams`.
    alive: Vec<usize>,
    picker: Rng,
}

impl Generator {
    pub(super) fn new(name: &str, workload: &Workload) -> Result<Self, TraceError> {
        check(name, workload)?;
        let mut header = Header::new(Format::Generated);
        for stream in workload.phases.iter().flat_map(|phase| &phase.streams) {
            know_object(name, &mut header, stream)?;
        }
        header.memcgs = memcgs(name, workload)?;
        header.records_hint = Some(workload.accesses());
        let mut generator = Self {
            name: name.to_owned(),
            header,
            seed: workload.seed,
            phases: workload.phases.clone(),
            phase: 0,
            left: 0,
            streams: Vec::new(),
            alive: Vec::new(),
            picker: Rng::new(workload.seed, &[]),
        };
        generator.start_phase();
        Ok(generator)
    }

    /// Sets up the streams of the phase that `self.phase` names.
    fn start_phase(&mut self) {
        let Some(phase) = self.phases.get(self.phase) else {
            return;
        };
        let number = self.phase as u64;
        self.left = phase.accesses;
        self.picker = Rng::new(self.seed, &[PICK, number]);
        self.streams = phase
            .streams
            .iter()
            .zip(0..)
            .map(|(stream, i)| {
                let object =
                    self.header.objects.iter().position(|object| object.name == stream.object).unwrap_or_default()
                        as u32;
                let rng = Rng::new(self.seed, &[DRAW, number, i]);
                let memcg = self.header.memcgs.iter().position(|known| *known == path_of(stream));
                Running::new(stream, object, memcg.unwrap_or_default() as u32, self.seed, rng)
            })
            .collect();
        self.alive = (0..self.streams.len()).collect();
    }

    /// The place in `alive` of the stream whose turn it is.
    fn pick(&mut self) -> usize {
        if self.alive.len() == 1 {
            return 0;
        }
        let total: i64 = self.alive.iter().map(|s| self.streams[*s].weight).sum();
        match self.phases[self.phase].interleave {
            Interleave::Random => {
                let mut at = self.picker.below(total as u64) as i64;
                let over = |s: &usize| {
                    at -= self.streams[*s].weight;
                    at < 0
                };
                self.alive.iter().position(over).unwrap_or_default()
            }
            Interleave::Round => self.pick_round(total),
        }
    }

    /// Everyone gains its weight, the richest goes and pays the total: turns are as even as weights
    /// allow.
    fn pick_round(&mut self, total: i64) -> usize {
        let mut best = 0;
        for (place, s) in self.alive.iter().enumerate() {
            self.streams[*s].credit += self.streams[*s].weight;
            if self.streams[*s].credit > self.streams[self.alive[best]].credit {
                best = place;
            }
        }
        self.streams[self.alive[best]].credit -= total;
        best
    }

    fn step(&mut self) -> Record {
        let place = self.pick();
        let stream = &mut self.streams[self.alive[place]];
        let record = stream.next();
        if stream.is_over() {
            self.alive.remove(place);
        }
        self.left -= 1;
        record
    }
}

impl RecordSource for Generator {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        while out.len() < CHUNK {
            while self.left == 0 {
                if self.phase >= self.phases.len() {
                    return Ok(!out.is_empty());
                }
                self.phase += 1;
                self.start_phase();
            }
            out.push(self.step());
        }
        Ok(true)
    }
}

/// A stream of the running phase.
#[derive(Debug)]
struct Running {
    pattern: Order,
    first: Record,
    pages: u32,
    at: u32,
    weight: i64,
    credit: i64,
    rng: Rng,
}

#[derive(Debug)]
enum Order {
    Uniform,
    Zipf(Zipf, Option<Vec<u32>>),
    Sequential,
    Loop,
}

impl Running {
    fn new(stream: &Stream, object: u32, memcg: u32, seed: u64, rng: Rng) -> Self {
        let op = Op { write: stream.write, via: stream.via };
        let first = Record { task: stream.task, object, memcg, ..Record::touch(stream.base, op) };
        let pages = stream.pages;
        Self {
            pattern: match stream.pattern {
                Pattern::Uniform => Order::Uniform,
                Pattern::Sequential => Order::Sequential,
                Pattern::Loop => Order::Loop,
                Pattern::Zipf { skew, permute } => {
                    // The same set has the same hot pages in every phase.
                    let purpose = [PERMUTE, u64::from(object), stream.base, u64::from(pages)];
                    let order = permute.then(|| permutation(pages, Rng::new(seed, &purpose)));
                    Order::Zipf(Zipf::new(pages, skew), order)
                }
            },
            first,
            pages,
            at: stream.start,
            weight: i64::from(stream.weight),
            credit: 0,
            rng,
        }
    }

    fn next(&mut self) -> Record {
        let at = match &mut self.pattern {
            Order::Uniform => self.rng.below(u64::from(self.pages)),
            Order::Zipf(zipf, order) => {
                let rank = zipf.draw(&mut self.rng) - 1;
                u64::from(order.as_ref().map_or(rank, |order| order[rank as usize]))
            }
            Order::Sequential => {
                self.at += 1;
                u64::from(self.at - 1)
            }
            Order::Loop => {
                let at = self.at;
                self.at = if at + 1 == self.pages { 0 } else { at + 1 };
                u64::from(at)
            }
        };
        Record { page: self.first.page + at, ..self.first }
    }

    fn is_over(&self) -> bool {
        matches!(self.pattern, Order::Sequential) && self.at >= self.pages
    }
}

/// A random order of 0..n (Fisher and Yates).
fn permutation(n: u32, mut rng: Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..n as usize).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

/// The memory cgroup of a stream.
fn path_of(stream: &Stream) -> &str {
    stream.memcg.as_deref().unwrap_or("/")
}

/// The memory cgroups of all streams, in the order of first mention; none if no stream names one.
fn memcgs(name: &str, workload: &Workload) -> Result<Vec<String>, TraceError> {
    let streams = || workload.phases.iter().flat_map(|phase| &phase.streams);
    let mut paths: Vec<String> = Vec::new();
    if streams().all(|stream| stream.memcg.is_none()) {
        return Ok(paths);
    }
    for stream in streams() {
        if !paths.iter().any(|known| *known == path_of(stream)) {
            paths.push(path_of(stream).to_owned());
        }
    }
    match paths.len() > MAX_GROUPS {
        true => Err(TraceError::usage(name, format!("more than {MAX_GROUPS} memory cgroups"))),
        false => Ok(paths),
    }
}

fn know_object(name: &str, header: &mut Header, stream: &Stream) -> Result<(), TraceError> {
    let known = header.objects.iter().find(|object| object.name == stream.object);
    match known {
        Some(object) if object.kind == stream.kind => Ok(()),
        Some(_) => {
            let what = format!("object {:?} is a file and anonymous memory", stream.object);
            Err(TraceError::usage(name, what))
        }
        None if header.objects.len() >= MAX_OBJECTS as usize => {
            Err(TraceError::usage(name, format!("more than {MAX_OBJECTS} objects")))
        }
        None => {
            header.objects.push(ObjectInfo::new(stream.object.clone(), stream.kind));
            Ok(())
        }
    }
}

fn check(name: &str, workload: &Workload) -> Result<(), TraceError> {
    if workload.accesses() == 0 {
        let what = "the workload has no access";
        return Err(TraceError::new(ErrorKind::Empty, name, Place::Whole, what));
    }
    for (phase, number) in workload.phases.iter().zip(1..) {
        check_phase(phase).map_err(|what| TraceError::usage(name, format!("phase {number}: {what}")))?;
    }
    Ok(())
}

fn check_phase(phase: &Phase) -> Result<(), String> {
    let count = phase.streams.len();
    if count == 0 || count > MAX_STREAMS {
        return Err(format!("{count} streams are not in 1 to {MAX_STREAMS}"));
    }
    let mut once = 0u64;
    for stream in &phase.streams {
        let object = &stream.object;
        if stream.pages == 0 || stream.pages > MAX_PAGES {
            let pages = stream.pages;
            return Err(format!("{object}: {pages} pages are not in 1 to {MAX_PAGES}"));
        }
        if stream.start >= stream.pages {
            let (start, pages) = (stream.start, stream.pages);
            return Err(format!("{object}: start {start} is beyond its {pages} pages"));
        }
        if stream.base.checked_add(u64::from(stream.pages)).is_none() {
            return Err(format!("{object}: base {} is too large", stream.base));
        }
        if stream.weight == 0 {
            return Err(format!("{object}: weight 0 would never go"));
        }
        match stream.pattern {
            Pattern::Zipf { skew, .. } if !(0.0..=MAX_SKEW).contains(&skew) => {
                return Err(format!("{object}: skew {skew} is not in 0 to {MAX_SKEW}"));
            }
            Pattern::Sequential => once += u64::from(stream.pages - stream.start),
            _ => once = u64::MAX / 2,
        }
    }
    if once < phase.accesses {
        return Err(format!("{} accesses are asked for, but its sequential streams end after {once}", phase.accesses));
    }
    Ok(())
}
