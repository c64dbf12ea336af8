//! Tests of what this layer says the kernel does, asked of the kernel. Where it has no userfaultfd,
//! tests say that they skip.

use super::*;
use crate::mem::{AnonymousMapping, Pagemap};
use refault_testing::{Need, absent, require};

/// A descriptor, or the reason for skipping, printed.
fn open(wanted: &[UffdFeature]) -> Option<Uffd> {
    require(Need::Uffd, Uffd::open(wanted))
}

fn watched(uffd: &Uffd, pages: usize) -> AnonymousMapping {
    let m = AnonymousMapping::new(pages * PAGE).unwrap();
    // SAFETY: a new mapping, that only this test knows.
    unsafe { uffd.register(m.start(), m.bytes()).unwrap() };
    m
}

fn read(at: usize) -> u8 {
    // SAFETY: tests read mapped memory, which is served when it faults.
    unsafe { std::ptr::read_volatile(at as *const u8) }
}

fn populated(m: &AnonymousMapping) -> Vec<bool> {
    Pagemap::open().unwrap().populated(m.start(), m.bytes() / PAGE).unwrap()
}

#[test]
fn a_fault_is_reported_and_a_copy_resolves_it() {
    let Some(uffd) = open(&[]) else { return };
    let m = watched(&uffd, 4);
    std::thread::scope(|s| {
        let reader = s.spawn(|| read(m.start() + 2 * PAGE + 5));
        let mut faults = Vec::new();
        uffd.wait(&mut faults).unwrap();
        assert_eq!(faults, [Fault { address: m.start() + 2 * PAGE, write: false, thread: 0 }]);
        let page = [7u8; PAGE];
        // SAFETY: a missing page of a watched range, from a local buffer.
        let done = unsafe { uffd.copy(m.start() + 2 * PAGE, page.as_ptr(), PAGE) };
        assert_eq!(done, UffdProgress { bytes: PAGE, errno: 0 });
        assert_eq!(reader.join().unwrap(), 7);
    });
    assert_eq!(populated(&m), [false, false, true, false]);
}

#[test]
fn a_page_that_is_there_is_not_replaced() {
    let Some(uffd) = open(&[]) else { return };
    let m = watched(&uffd, 2);
    let page = [1u8; PAGE];
    // SAFETY: as above; `page` is one page, and only one is copied at a time.
    unsafe {
        assert_eq!(uffd.copy(m.start(), page.as_ptr(), PAGE).errno, 0);
        let again = [2u8; PAGE];
        assert_eq!(uffd.copy(m.start(), again.as_ptr(), PAGE), UffdProgress { bytes: 0, errno: libc::EEXIST });
        assert_eq!(uffd.zero(m.start(), PAGE), UffdProgress { bytes: 0, errno: libc::EEXIST });
    }
    assert_eq!(read(m.start()), 1);
}

#[test]
fn move_takes_pages_away_with_their_content_and_says_how_far_it_came() {
    let Some(uffd) = open(&[UffdFeature::MOVE]) else { return };
    let (from, to) = (watched(&uffd, 8), watched(&uffd, 8));
    let bytes: Vec<u8> = (0..8 * PAGE).map(|i| (i / PAGE) as u8 + 1).collect();
    // SAFETY: both mappings belong to this test alone, which reads only what is there.
    unsafe {
        assert_eq!(uffd.copy(from.start(), bytes.as_ptr(), 8 * PAGE).errno, 0);
        assert_eq!(uffd.move_pages(to.start(), from.start(), 3 * PAGE), UffdProgress { bytes: 3 * PAGE, errno: 0 });
        assert_eq!(populated(&from)[..4], [false, false, false, true]);
        assert_eq!((read(to.start()), read(to.start() + 2 * PAGE)), (1, 3));
        // A source that is missing is not taken for moved.
        assert_eq!(uffd.move_pages(to.start() + 4 * PAGE, from.start(), PAGE).errno, libc::ENOENT);
        // A destination that is in use stops it, after what could be done.
        let page = [9u8; PAGE];
        assert_eq!(uffd.copy(to.start() + 5 * PAGE, page.as_ptr(), PAGE).errno, 0);
        let part = uffd.move_pages(to.start() + 3 * PAGE, from.start() + 3 * PAGE, 4 * PAGE);
        assert_eq!(part, UffdProgress { bytes: 2 * PAGE, errno: 0 });
        let rest = uffd.move_pages(to.start() + 5 * PAGE, from.start() + 5 * PAGE, PAGE);
        assert_eq!(rest, UffdProgress { bytes: 0, errno: libc::EEXIST });
        assert_eq!(populated(&from)[3..6], [false, false, true]);
    }
}

#[test]
fn move_takes_pages_of_zeros_among_others() {
    let Some(uffd) = open(&[UffdFeature::MOVE]) else { return };
    let (from, to) = (watched(&uffd, 8), watched(&uffd, 8));
    let page = [3u8; PAGE];
    // SAFETY: both mappings belong to this test alone.
    unsafe {
        for i in 0..8 {
            let at = from.start() + i * PAGE;
            let done = if i % 3 == 0 { uffd.copy(at, page.as_ptr(), PAGE) } else { uffd.zero(at, PAGE) };
            assert_eq!(done.errno, 0);
        }
        assert_eq!(uffd.move_pages(to.start(), from.start(), PAGE), UffdProgress { bytes: PAGE, errno: 0 });
        assert_eq!(
            uffd.move_pages(to.start() + PAGE, from.start() + PAGE, PAGE),
            UffdProgress { bytes: PAGE, errno: 0 },
            "one page of zeros"
        );
        let mut done = 2;
        while done < 8 {
            let p = uffd.move_pages(to.start() + done * PAGE, from.start() + done * PAGE, (8 - done) * PAGE);
            assert!(p.bytes > 0, "at page {done}: {p:?}");
            done += p.bytes / PAGE;
        }
    }
    assert_eq!(populated(&from), [false; 8]);
    assert_eq!(populated(&to), [true; 8]);
    (0..8).for_each(|i| assert_eq!(read(to.start() + i * PAGE), if i % 3 == 0 { 3 } else { 0 }));
}

#[test]
fn a_poisoned_page_is_an_error_until_a_copy_heals_it() {
    let Some(uffd) = open(&[UffdFeature::POISON]) else { return };
    let m = watched(&uffd, 1);
    let (mut pipe_read, pipe_write) = std::io::pipe().unwrap();
    // A system call that reads the page fails; a load would raise SIGBUS.
    // SAFETY: the write reads one byte of mapped memory.
    let give = || unsafe { libc::write(pipe_write.as_raw_fd(), m.start() as *const _, 1) };
    // SAFETY: a mapping that only this test knows.
    assert_eq!(unsafe { uffd.poison(m.start(), PAGE) }, UffdProgress { bytes: PAGE, errno: 0 });
    assert_eq!((give(), give()), (-1, -1));
    let page = [5u8; PAGE];
    // SAFETY: as above.
    assert_eq!(unsafe { uffd.copy(m.start(), page.as_ptr(), PAGE) }.errno, 0);
    assert_eq!(give(), 1);
    let mut got = [0];
    std::io::Read::read_exact(&mut pipe_read, &mut got).unwrap();
    assert_eq!(got, [5]);
}

#[test]
fn a_feature_that_no_kernel_has_is_an_error_that_names_it() {
    let made_up = UffdFeature { bit: 1 << 63, name: "MADE_UP" };
    match Uffd::open(&[made_up]) {
        Ok(_) => panic!("it has it"),
        Err(e) if e.kind() == io::ErrorKind::Unsupported => assert!(e.to_string().contains("MADE_UP"), "{e}"),
        Err(e) => absent(Need::Uffd, e),
    }
}
