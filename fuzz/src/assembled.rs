//! Events of a kernel, in any order and with any numbers, to records.

use refault_record::{Assembler, Event, EventKind, Files, Inode, Memory, NewFile, Residency, Scan};
use refault_trace::{MAX_PAGES_PER_RECORD, Record};

/// Files whose lengths are what the fuzzer wants.
struct Lengths(u8);

impl Files for Lengths {
    fn pages(&mut self, inode: Inode, _: u32) -> Option<u64> {
        (self.0 & 1 == 0).then_some(inode.ino ^ u64::from(self.0))
    }

    fn now_ns(&mut self) -> u64 {
        u64::from(self.0) << 20
    }

    fn of_descriptor(&mut self, _: u32, fd: u64) -> Option<Inode> {
        fd.is_multiple_of(2).then_some(Inode { dev: 1, ino: fd })
    }

    fn of_memory(&mut self, _: u32, address: u64, bytes: u64) -> Vec<(Inode, u64, u64)> {
        vec![(Inode { dev: 1, ino: address % 4 }, address >> 12, bytes >> 12)]
    }

    fn numbered(&mut self, inode: Inode, _: u32, pid: u32) -> NewFile {
        let look = match self.0 >> 1 & 3 {
            0 => Residency::Seen(vec![inode.ino..inode.ino + 2, 9..70], self.now_ns()),
            1 => Residency::Later,
            2 => Residency::Failed,
            _ => Residency::Never,
        };
        NewFile { pages: self.pages(inode, pid), look, shmem: inode.ino == 3 }
    }

    fn is_anonymous(&mut self, pid: u32, address: u64) -> bool {
        (address ^ u64::from(pid)).is_multiple_of(2)
    }

    fn executable(&mut self, _: u32, address: u64) -> Option<(Inode, u64, u64)> {
        address.is_multiple_of(3).then_some((Inode { dev: 0, ino: address % 4 }, address >> 12, address % 64 + 1))
    }

    fn memory_numbered(&mut self, _: u32, _: u32) {}

    fn memory_ended(&mut self, _: u32) {}
}

/// Event, made of a kind and two numbers.
fn event_kind(kind: u8, inode: Inode, a: u64, b: u64) -> EventKind {
    match kind % 16 {
        0 => EventKind::Read { inode, first: a, last: b },
        1 => EventKind::Write { inode, pos: a, bytes: b },
        2 => EventKind::Fault { inode, page: a },
        3 => EventKind::Around { inode, first: a, last: b },
        4 => EventKind::Address { address: a, write: b & 1 == 1 },
        5 => EventKind::Add { inode, page: a, order: (b % 21) as u8 },
        6 => EventKind::Delete { inode, page: a, order: (b % 21) as u8 },
        7 => EventKind::ReclaimBegin,
        8 => EventKind::ReclaimEnd,
        9 => EventKind::Freed { inode },
        10 if b & 8 == 8 => EventKind::AdviseFile { inode, advice: b % 8, offset: a, bytes: b },
        10 => EventKind::Advise { fd: a, advice: b % 8, offset: a, bytes: b },
        12 => EventKind::AdviseMemory { address: a, bytes: b, advice: b % 22 },
        11 => EventKind::Fork { parent: a as u32 },
        13 => EventKind::Exit,
        14 => match b % 3 {
            0 => EventKind::Sync { inode },
            1 => EventKind::Direct { inode, bytes: a },
            _ => EventKind::DirectStep { inode, write: b & 8 == 0 },
        },
        _ => EventKind::Comm { name: [b as u8; 16], exec: b & 1 == 1 },
    }
}

/// Records of the events that bytes stand for, and the number of their objects.
pub fn records(bytes: &[u8]) -> (Vec<Record>, u32) {
    let mut assembler = Assembler::new(5, [1]);
    if bytes.len().is_multiple_of(2) {
        assembler.record_memory();
    }
    let (mut time_ns, mut out) = (0u64, Vec::new());
    for event in bytes.chunks_exact(8) {
        let [kind, tid, ino, shift, a, b, step, flags] = *event else { continue };
        time_ns = time_ns.saturating_add(u64::from(step) << (flags & 31));
        let inode = Inode { dev: u32::from(flags >> 7), ino: u64::from(ino % 4) };
        // Small numbers meet each other, large ones the bounds.
        let scaled = |n: u8| u64::from(n).rotate_left(u32::from(shift % 64));
        if kind >= 128 {
            // A look at the memory of a process: few pages, wherever they are.
            let (first, pages) = (scaled(a), u64::from(b % 64) + 1);
            let memory = Memory { first, pages, is_there: kind & 1 == 0, touched: kind & 2 == 0 };
            let scan = Scan {
                files: vec![(inode, first, pages)],
                in_view: vec![inode],
                memory: vec![memory],
                writes: kind & 4 == 0,
            };
            let pid = u32::from(tid % 4);
            assembler.look(
                &Event { time_ns, pid, tid: pid, cgroup: 0, kind: EventKind::Look },
                &scan,
                &mut Lengths(flags),
            );
            assert_eq!(assembler.validate(), Ok(()));
            continue;
        }
        let kind = event_kind(kind, inode, scaled(a), scaled(a).wrapping_add(u64::from(b)));
        let event = Event { time_ns, pid: u32::from(tid % 4), tid: u32::from(tid % 4), cgroup: 0, kind };
        assembler.take(&event, flags & 64 == 0, &mut Lengths(flags));
        assert_eq!(assembler.validate(), Ok(()));
        if flags & 32 == 0 {
            assembler.register(Inode { ino: 4, ..inode }, 1, &mut Lengths(flags));
            for (inode, _) in assembler.to_look() {
                let page = u64::from(b)..u64::from(b) + 1;
                let pages = a.is_multiple_of(2).then(|| std::iter::once(page).collect());
                assembler.looked(inode, pages, time_ns);
            }
            assembler.passed(time_ns);
        }
        assembler.emit(&mut out, false);
    }
    assembler.emit(&mut out, true);
    assert_eq!(assembler.validate(), Ok(()));
    assert!(out.iter().all(|r| (1..=MAX_PAGES_PER_RECORD).contains(&r.pages) && r.object < assembler.objects()));
    let pages: u64 = out.iter().filter(|r| r.kind.is_touch()).map(|r| u64::from(r.pages)).sum();
    assert_eq!(pages, assembler.accesses + assembler.touches);
    (out, assembler.objects())
}
