//! Measures the cost of faults on this machine, for the costs of the lab
//! (`crates/lab/src/cost.rs`): `cargo run --release --example fault_costs`.
//!
//! The kernel's hint fault cannot be ordered from a program without `numa_balancing`, and moving a
//! page takes two nodes. Measured is what a hint fault consists of, the trap and the change of an
//! entry, by a fault that does no more: the first write to a page after `clear_refs` has
//! write-protected it. Beside it a fault that maps a page that is in memory, and one that makes a
//! new page.

use std::fs;
use std::io;
use std::time::Instant;

/// Page size.
const PAGE: usize = 4096;
/// Pages of a round.
const PAGES: usize = 16 * 1024;
/// Rounds; the fastest counts, since the others met something else.
const ROUNDS: usize = 15;
/// Fault-around maps so many pages at once.
const AROUND: usize = 16;

/// Memory of this process.
struct Area {
    at: *mut u8,
    bytes: usize,
}

impl Area {
    fn new(pages: usize, fd: i32) -> io::Result<Area> {
        let bytes = pages * PAGE;
        let flags = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in
        // use.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let area = Area { at: at.cast(), bytes };
        area.advise(libc::MADV_NOHUGEPAGE)?;
        Ok(area)
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is the mapping of this area; nothing in it is borrowed.
        match unsafe { libc::madvise(self.at.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Touches every `stride`-th page; nanoseconds for each.
    fn touch(&self, stride: usize, write: bool) -> f64 {
        let start = Instant::now();
        for offset in (0..self.bytes).step_by(stride * PAGE) {
            // SAFETY: the offset is within the mapping, which lives as long as the area and is only
            // used by volatile accesses.
            unsafe {
                let at = self.at.add(offset);
                if write { at.write_volatile(1) } else { _ = at.read_volatile() }
            }
        }
        start.elapsed().as_nanos() as f64 / (self.bytes / PAGE / stride) as f64
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this area's own, and nothing points into it any more.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

fn best(mut round: impl FnMut() -> io::Result<f64>) -> io::Result<f64> {
    (0..ROUNDS).try_fold(f64::INFINITY, |best, _| Ok(best.min(round()?)))
}

fn main() -> io::Result<()> {
    let anon = Area::new(PAGES, -1)?;
    let fresh = best(|| {
        anon.advise(libc::MADV_DONTNEED)?;
        Ok(anon.touch(1, true))
    })?;
    let plain = best(|| Ok(anon.touch(1, true)))?;
    println!("touch without a fault          {plain:7.0} ns");
    println!("fault that makes a page        {fresh:7.0} ns");
    let protected = best(|| {
        fs::write("/proc/self/clear_refs", "4")?;
        Ok(anon.touch(1, true))
    })?;
    match protected > 4.0 * plain {
        true => println!("fault that changes an entry    {protected:7.0} ns"),
        false => println!("fault that changes an entry          - (the kernel does not track soft-dirty pages)"),
    }
    let fd = refault_syscalls::newer::memfd_create(c"fault_costs") as i32;
    // SAFETY: the descriptor was just opened and is closed at the end of the program.
    if fd < 0 || unsafe { libc::ftruncate(fd, (PAGES * PAGE) as i64) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let shared = Area::new(PAGES, fd)?;
    shared.touch(1, true);
    let minor = best(|| {
        shared.advise(libc::MADV_DONTNEED)?;
        Ok(shared.touch(AROUND, false))
    })?;
    println!("fault that maps {AROUND} pages        {minor:7.0} ns");
    let one = best(|| {
        shared.advise(libc::MADV_DONTNEED)?;
        Ok(shared.touch(AROUND, true))
    })?;
    println!("write fault that maps a page   {one:7.0} ns");
    Ok(())
}
