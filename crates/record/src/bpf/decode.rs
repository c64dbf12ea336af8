//! Events as the programs of `bpf/sample.bpf.c` write them.

use crate::event::{Event, EventKind, Inode};

/// Bytes of one.
pub(super) const LENGTH: usize = 56;

/// An event of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BpfEvent {
    /// An event of a page, or of advice.
    Event(Event),
    /// A place of a CPU is given to others: what was counted there.
    Count(PlaceCount),
}

/// Count of a place that has another owner now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceCount {
    pub(super) cpu: usize,
    pub(super) place: usize,
    pub(super) key: u64,
    /// When the owner got it: no two owners of a place have the same.
    pub(super) since: u64,
    pub(super) accesses: u64,
}

/// Decodes one; none: it is cut, or of no kind that is known.
#[inline]
pub(super) fn decode(raw: &[u8]) -> Option<BpfEvent> {
    let raw: &[u8; LENGTH] = raw.get(..LENGTH)?.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| raw[at + i]));
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| raw[at + i]));
    let (group, first, second) = (long(8), long(24), long(32));
    let inode = Inode { dev: word(40), ino: long(16) };
    let order = raw[53].min(20);
    let kind = match raw[52] {
        0 => EventKind::Read { inode, first, last: second.max(first) },
        1 => EventKind::Begin { inode, pos: first, bytes: second },
        2 => EventKind::Write { inode, pos: first, bytes: second },
        3 => EventKind::Fault { inode, page: first },
        4 => EventKind::Around { inode, first, last: second.max(first) },
        5 => EventKind::Add { inode, page: first, order },
        6 => EventKind::Delete { inode, page: first, order },
        7 => EventKind::AdviseFile { inode, advice: u64::from(raw[53]), offset: first, bytes: second },
        8 => {
            let (cpu, place) = (word(40) as usize, long(16) as usize);
            return Some(BpfEvent::Count(PlaceCount { cpu, place, key: group, since: second, accesses: first }));
        }
        _ => return None,
    };
    Some(BpfEvent::Event(Event { time_ns: long(0), pid: word(44), tid: word(48), cgroup: group, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: u8, order: u8) -> Vec<u8> {
        let longs = [77u64, 9, 42, 3, 5].map(u64::to_ne_bytes).concat();
        let words = [8u32, 11, 12].map(u32::to_ne_bytes).concat();
        [longs, words, vec![kind, order, 0, 0]].concat()
    }

    #[test]
    fn events_are_decoded() {
        let inode = Inode { dev: 8, ino: 42 };
        let kinds = [
            EventKind::Read { inode, first: 3, last: 5 },
            EventKind::Begin { inode, pos: 3, bytes: 5 },
            EventKind::Write { inode, pos: 3, bytes: 5 },
            EventKind::Fault { inode, page: 3 },
            EventKind::Around { inode, first: 3, last: 5 },
            EventKind::Add { inode, page: 3, order: 2 },
            EventKind::Delete { inode, page: 3, order: 2 },
            EventKind::AdviseFile { inode, advice: 2, offset: 3, bytes: 5 },
        ];
        for (number, kind) in kinds.into_iter().enumerate() {
            let event = Event { time_ns: 77, pid: 11, tid: 12, cgroup: 9, kind };
            assert_eq!(decode(&raw(number as u8, 2)), Some(BpfEvent::Event(event)));
        }
        let count = PlaceCount { cpu: 8, place: 42, key: 9, since: 5, accesses: 3 };
        assert_eq!(decode(&raw(8, 0)), Some(BpfEvent::Count(count)));
    }

    #[test]
    fn cut_or_other_data_are_nothing() {
        assert_eq!(decode(&raw(9, 0)), None);
        let whole = raw(0, 0);
        assert!((0..LENGTH).all(|length| decode(&whole[..length]).is_none()));
    }
}
