//! Two recordings of one program, access by access: what the kernel has with itself.
//!
//! Compared are accesses by descriptor, file by file: what a program touches in place it touches
//! unseen, and when it faults is the kernel's doing.

use crate::recording::{AGREEMENT, LoadedRecording, POINTS, apart};
use crate::words::counted;
use refault_trace::{Record, RecordKind, Via};
use serde::{Serialize, Serializer};
use std::collections::HashMap;

const WINDOWS: usize = 64;

/// Objects that are named.
const MOST: usize = 10;

/// Accesses that are in both recordings, and misses of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// The accesses.
    pub accesses: u64,
    /// Misses of the first.
    pub first_misses: u64,
    /// Misses of the second.
    pub second_misses: u64,
    /// Accesses that hit in both recordings, or missed in both.
    pub same: u64,
}

impl Pair {
    fn add(&mut self, first: bool, second: bool) {
        self.accesses += 1;
        self.first_misses += u64::from(first);
        self.second_misses += u64::from(second);
        self.same += u64::from(first == second);
    }

    /// Hit rates, 0 to 1.
    pub fn rates(&self) -> (f64, f64) {
        let rate = |misses: u64| 1.0 - misses as f64 / self.accesses.max(1) as f64;
        (rate(self.first_misses), rate(self.second_misses))
    }

    /// Hit rate of the second recording less that of the first, in percentage points.
    pub fn difference(&self) -> f64 {
        let (first, second) = self.rates();
        100.0 * (second - first)
    }

    /// The part of the accesses, 0 to 1, that are the same.
    pub fn agreement(&self) -> f64 {
        self.same as f64 / self.accesses.max(1) as f64
    }
}

/// A file that is in both.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectBeside {
    /// Its name.
    pub name: String,
    /// Its accesses.
    #[serde(flatten)]
    pub pair: Pair,
}

/// Result of the comparison.
#[derive(Clone, Debug)]
pub struct ComparedRecordings {
    /// The two recordings.
    pub sides: [ComparedSide; 2],
    /// All accesses that are compared.
    pub total: Pair,
    /// Windows of equal numbers of accesses.
    pub windows: Vec<Pair>,
    /// Objects with the largest difference, in accesses that are not the same.
    pub objects: Vec<ObjectBeside>,
    /// Files with the same accesses in both recordings.
    pub files: u64,
    /// Accesses of each recording that are not compared: by mapping, and of files whose accesses
    /// differ between the recordings.
    pub left_out: [u64; 2],
    /// Whether the recordings are exact, and as near to each other as a lab must be to a kernel.
    pub is_within: bool,
    /// The same in a sentence.
    pub verdict: String,
}

/// A recording that is compared.
#[derive(Clone, Debug, Default)]
pub struct ComparedSide {
    /// The name of the file.
    pub recording: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The limit of the group in bytes; none: there was none.
    pub memory_max: Option<u64>,
    /// Events that were lost.
    pub lost: u64,
}

impl ComparedSide {
    fn of(loaded: &LoadedRecording) -> ComparedSide {
        let recording = &loaded.recording;
        ComparedSide {
            recording: loaded.name.clone(),
            kernel: recording.kernel.clone(),
            memory_max: recording.memory_max,
            lost: recording.lost,
        }
    }
}

/// Events that were lost, of both recordings together.
fn lost(sides: &[ComparedSide; 2]) -> u64 {
    sides.iter().map(|side| side.lost).sum()
}

/// An access by descriptor to one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    page: u64,
    write: bool,
    missed: bool,
}

impl Access {
    fn is_like(&self, other: &Access) -> bool {
        (self.page, self.write) == (other.page, other.write)
    }

    fn words(&self) -> String {
        format!("page {} is {}", self.page, if self.write { "written" } else { "read" })
    }
}

/// A recording, file by file. A key is the name and the number of files before that had it: two
/// files may have had a name one after the other.
#[derive(Debug, Default)]
struct Files<'a> {
    by_name: HashMap<(&'a str, usize), Vec<Access>>,
    /// In the order in which they came.
    order: Vec<(&'a str, usize)>,
    accesses: u64,
}

impl<'a> Files<'a> {
    fn of(loaded: &'a LoadedRecording) -> Files<'a> {
        let mut times: HashMap<&str, usize> = HashMap::new();
        let key = |name: &'a str, times: &mut HashMap<&'a str, usize>| {
            let nth = times.entry(name).or_default();
            *nth += 1;
            (name, *nth - 1)
        };
        let keys: Vec<_> = loaded.objects.iter().map(|object| key(&object.name, &mut times)).collect();
        let mut files = Files { order: keys.clone(), ..Files::default() };
        for record in &loaded.records {
            if !matches!(record.kind, RecordKind::Touch | RecordKind::Hit | RecordKind::Miss) {
                continue;
            }
            files.accesses += u64::from(record.pages);
            if record.op.via != Some(Via::Map) {
                files.by_name.entry(keys[record.object as usize]).or_default().extend(accesses(record));
            }
        }
        files
    }
}

/// The kernel reads for the first page of a miss; it has the others by then.
fn accesses(record: &Record) -> impl Iterator<Item = Access> {
    let (write, is_miss, first) = (record.op.write, record.kind == RecordKind::Miss, record.page);
    (0..u64::from(record.pages)).map(move |i| Access { page: first + i, write, missed: is_miss && i == 0 })
}

/// Compares two recordings.
///
/// # Errors
/// They do not access the file with most accesses in the same order.
pub fn beside(first: &LoadedRecording, second: &LoadedRecording) -> Result<ComparedRecordings, String> {
    let (a, b) = (Files::of(first), Files::of(second));
    let (mut alike, mut most) = (Vec::new(), None::<(usize, Option<Parted>)>);
    for key in &a.order {
        let Some(ours) = a.by_name.get(key) else { continue };
        let parted = match b.by_name.get(key) {
            None => Some(Parted { name: key.0.to_owned(), before: 0, where_: "it is not in the second".to_owned() }),
            Some(theirs) => Parted::of(key.0, ours, theirs),
        };
        if parted.is_none() {
            alike.push((key.0, ours, &b.by_name[key]));
        }
        if most.as_ref().is_none_or(|(accesses, _)| *accesses < ours.len()) {
            most = Some((ours.len(), parted));
        }
    }
    let sides = [first, second].map(ComparedSide::of);
    let lost = lost(&sides);
    match most {
        None => Err(format!("{}: holds no access by descriptor", first.name)),
        Some((accesses, Some(parted))) => Err(parted.error([first, second], accesses, lost)),
        Some((_, None)) => Ok(ComparedRecordings::new(&alike, [a.accesses, b.accesses], sides)),
    }
}

/// Point at which two sequences of accesses to a file diverge.
struct Parted {
    name: String,
    /// Accesses before that are the same.
    before: usize,
    where_: String,
}

impl Parted {
    fn of(name: &str, ours: &[Access], theirs: &[Access]) -> Option<Parted> {
        let before = ours.iter().zip(theirs).take_while(|(a, b)| a.is_like(b)).count();
        let where_ = match (ours.get(before), theirs.get(before)) {
            (None, None) => return None,
            (Some(a), Some(b)) => format!("then {} in the first, and {} in the second", a.words(), b.words()),
            (Some(a), None) => format!("then {} in the first, and the second ends", a.words()),
            (None, Some(b)) => format!("then the first ends, and {} in the second", b.words()),
        };
        Some(Parted { name: name.to_owned(), before, where_ })
    }

    fn error(&self, [first, second]: [&LoadedRecording; 2], accesses: usize, lost: u64) -> String {
        let (name, before, where_) = (&self.name, self.before, &self.where_);
        let lost =
            if lost > 0 { format!(" ({} lost)", counted(lost, "event was", "events were")) } else { String::new() };
        format!(
            "{} and {}: are not the same accesses: of {accesses} to {name} {before} agree, {where_}{lost}; record the \
             same program twice",
            first.name, second.name
        )
    }
}

impl ComparedRecordings {
    fn new(
        alike: &[(&str, &Vec<Access>, &Vec<Access>)],
        accesses: [u64; 2],
        sides: [ComparedSide; 2],
    ) -> ComparedRecordings {
        let lost = lost(&sides);
        let compared: usize = alike.iter().map(|(_, ours, _)| ours.len()).sum();
        let (mut total, mut windows) = (Pair::default(), vec![Pair::default(); WINDOWS]);
        let mut objects = Vec::new();
        for (name, ours, theirs) in alike {
            let mut pair = Pair::default();
            for (a, b) in ours.iter().zip(theirs.iter()) {
                let window = total.accesses as usize * WINDOWS / compared.max(1);
                pair.add(a.missed, b.missed);
                total.add(a.missed, b.missed);
                windows[window].add(a.missed, b.missed);
            }
            objects.push(ObjectBeside { name: (*name).to_owned(), pair });
        }
        objects.retain(|object| object.pair.same < object.pair.accesses);
        objects.sort_by_key(|object| object.pair.same as i64 - object.pair.accesses as i64);
        objects.truncate(MOST);
        let (difference, agreement) = (total.difference(), total.agreement());
        let (is_near, is_alike) = (difference.abs() <= POINTS, agreement >= AGREEMENT);
        let mut verdict = format!(
            "the second time the kernel hits {} the first time ({}: the bound is {POINTS}), and {:.2} % of the \
             accesses are the same ({}: the bound is {} %)",
            apart(difference),
            side(is_near),
            100.0 * agreement,
            side(is_alike),
            100.0 * AGREEMENT,
        );
        if lost > 0 {
            verdict +=
                &format!("; {} lost, so that the recordings are not exact", counted(lost, "event was", "events were"));
        }
        ComparedRecordings {
            sides,
            total,
            windows,
            objects,
            files: alike.len() as u64,
            left_out: accesses.map(|all| all - compared as u64),
            is_within: is_near && is_alike && lost == 0,
            verdict,
        }
    }

    /// The largest differences in a window, in points: how much less and more the second hits.
    pub fn extremes(&self) -> (f64, f64) {
        let all = self.windows.iter().filter(|w| w.accesses > 0).map(Pair::difference);
        all.fold((0.0, 0.0), |(low, high): (f64, f64), d| (low.min(d), high.max(d)))
    }
}

impl Serialize for ComparedRecordings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (rate, other) = self.total.rates();
        let of = |at: usize, rate: f64| {
            let ComparedSide { recording, kernel, memory_max, lost } = &self.sides[at];
            serde_json::json!({
                "recording": recording,
                "kernel": kernel,
                "memory_max": memory_max,
                "lost": lost,
                "hit_rate": rate,
                "left_out": self.left_out[at],
            })
        };
        let all = serde_json::json!({
            "refault": env!("CARGO_PKG_VERSION"),
            "first": of(0, rate),
            "second": of(1, other),
            "files": self.files,
            "accesses": self.total.accesses,
            "first_misses": self.total.first_misses,
            "second_misses": self.total.second_misses,
            "agreement": self.total.agreement(),
            "windows": self.windows,
            "objects": self.objects,
            "verdict": { "is_within": self.is_within, "text": self.verdict },
        });
        all.serialize(serializer)
    }
}

fn side(is_inside: bool) -> &'static str {
    if is_inside { "inside" } else { "outside" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact() -> [ComparedSide; 2] {
        Default::default()
    }

    fn access(page: u64, missed: bool) -> Access {
        Access { page, write: false, missed }
    }

    #[test]
    fn accesses_part_where_they_are_not_the_same() {
        let ours = [access(1, true), access(2, false)];
        assert!(Parted::of("f", &ours, &[access(1, false), access(2, false)]).is_none());
        let parted = Parted::of("f", &ours, &[access(1, true), Access { write: true, ..access(2, false) }]);
        let parted = parted.expect("a write is no read");
        assert_eq!(
            (parted.before, &*parted.where_),
            (1, "then page 2 is read in the first, and page 2 is written in the second")
        );
        let parted = Parted::of("f", &ours[..1], &ours).expect("one is longer");
        assert_eq!((parted.before, &*parted.where_), (1, "then the first ends, and page 2 is read in the second"));
    }

    #[test]
    fn files_that_are_the_same_are_counted() {
        let ours: Vec<_> = (0..128).map(|page| access(page, true)).collect();
        let theirs: Vec<_> = (0..128).map(|page| access(page, page > 0)).collect();
        let beside = ComparedRecordings::new(&[("f", &ours, &theirs), ("g", &ours, &ours)], [300, 256], exact());
        assert_eq!(beside.total, Pair { accesses: 256, first_misses: 256, second_misses: 255, same: 255 });
        assert_eq!((beside.files, beside.left_out, beside.is_within), (2, [44, 0], true));
        assert_eq!((beside.objects.len(), &*beside.objects[0].name, beside.windows.len()), (1, "f", 64));
        assert_eq!(beside.extremes(), (0.0, 25.0));
        assert!(!ComparedRecordings::new(&[("f", &ours, &theirs)], [128, 128], exact()).is_within, "0.78 points");
        let lost = ComparedRecordings::new(
            &[("f", &ours, &ours)],
            [128, 128],
            [ComparedSide { lost: 1, ..ComparedSide::default() }, ComparedSide::default()],
        );
        assert!(!lost.is_within && lost.verdict.ends_with("1 event was lost, so that the recordings are not exact"));
    }
}
