//! Plays a trace on the kernel of this machine, in a memory cgroup of its own, and notes of each
//! access whether its page was in memory.
//!
//! All pages of files are one sparse file, which takes no reading from a disk; anonymous memory is
//! one mapping. Before each access `mincore` of a mapping that nobody touches says whether the page
//! is there. Nothing is read ahead: descriptors are advised so, and what a mapping misses comes in
//! by itself before it is touched.

use crate::group::Cgroup;
use crate::pages::TracePages;
use crate::program;
use refault_trace::{ObjectKind, PackedAccess, Trace};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const PAGE: u64 = 4096;

/// Results of a trace on a kernel.
#[derive(Clone, Debug)]
pub struct KernelReplay {
    /// Whether the page of the access was not in memory, by access.
    pub missed: Vec<bool>,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
}

impl KernelReplay {
    /// Accesses whose page was not in memory.
    pub fn misses(&self) -> u64 {
        self.missed.iter().filter(|missed| **missed).count() as u64
    }

    /// Hits of all accesses, 0 to 1.
    pub fn hit_rate(&self) -> f64 {
        1.0 - self.misses() as f64 / self.missed.len().max(1) as f64
    }
}

/// Accesses as they are to a kernel that has one descriptor for all files: `trace`'s accesses with
/// the mark of a read that goes on set anew.
pub fn with_one_descriptor(trace: &Trace) -> Vec<PackedAccess> {
    let mut last = None;
    let mut all = Vec::with_capacity(trace.accesses.len());
    for access in &trace.accesses {
        let reads = !access.is_map() && !access.is_write();
        let goes_on = reads && last == Some(access.page());
        all.push(PackedAccess::new(access.page(), access.is_write(), access.via(), goes_on));
        if !access.is_map() {
            last = Some(access.page());
        }
    }
    all
}

/// Plays it once with this limit; the file is made in `folder`.
///
/// # Errors
/// One line: no rights, no memory cgroups, a folder without a page cache, too little swap.
pub fn play(trace: &Trace, accesses: &[PackedAccess], limit_bytes: u64, folder: &Path) -> Result<KernelReplay, String> {
    let all = u64::from(trace.footprint_pages());
    let is_anon = kinds(trace);
    check_swap(is_anon.iter().filter(|anon| **anon).count() as u64, limit_bytes)?;
    let fail = |what: &str| {
        let what = format!("{}: {what}", folder.display());
        move |e: std::io::Error| format!("{what}: {e}")
    };
    let file = tempfile::tempfile_in(folder).map_err(fail("no file can be made there"))?;
    file.set_len(all * PAGE).map_err(fail("no sparse file can be made there"))?;
    let pages = TracePages::new(&file, all).map_err(fail("a file there cannot be mapped"))?;
    check_cache(&file, &pages).map_err(|e| format!("{}: {e}", folder.display()))?;
    program::catch_end();
    // Memory of the loop is allocated before the group is entered, which would be charged for it.
    let mut missed = vec![true; accesses.len()];
    let mut buffer = vec![1; PAGE as usize];
    let group = Cgroup::create(&format!("refault-play-{}", std::process::id()), limit_bytes)?;
    let before = group.enter()?;
    let begun = Instant::now();
    let done = run(&file, &pages, &is_anon, accesses, &mut missed, &mut buffer);
    let duration_ns = begun.elapsed().as_nanos() as u64;
    // This process does not stay, even after an error.
    before.come_back()?;
    done.map_err(fail("an access failed"))?;
    Ok(KernelReplay { missed, duration_ns })
}

fn run(
    file: &File,
    pages: &TracePages,
    is_anon: &[bool],
    accesses: &[PackedAccess],
    missed: &mut [bool],
    buffer: &mut [u8],
) -> std::io::Result<()> {
    for (i, (access, missed)) in accesses.iter().zip(missed).enumerate() {
        // Ctrl-C ends it here, so that the group does not stay behind.
        if i % 1024 == 0 && program::is_ended() {
            return Err(std::io::Error::other("it was interrupted"));
        }
        let page = access.page();
        let at = u64::from(page) * PAGE;
        if is_anon[page as usize] {
            *missed = !pages.is_anon_there(page)?;
            pages.touch_anon(page, access.is_write());
            continue;
        }
        *missed = !pages.is_file_there(page)?;
        match (access.is_map(), access.is_write()) {
            (false, false) => file.read_exact_at(buffer, at)?,
            (false, true) => file.write_all_at(buffer, at)?,
            (true, writes) => {
                if *missed {
                    pages.bring_in(file, page)?;
                }
                pages.touch_file(page, writes);
            }
        }
    }
    Ok(())
}

/// Pages of a file there come into memory when they are read, and can leave it: not so on tmpfs,
/// which is memory.
fn check_cache(file: &File, pages: &TracePages) -> Result<(), String> {
    let there = || pages.is_file_there(0).map_err(|e| format!("mincore: {e}"));
    let mut byte = [0];
    file.read_exact_at(&mut byte, 0).map_err(|e| format!("a file cannot be read: {e}"))?;
    let was_there = there()?;
    pages.send_out(file, 0).map_err(|e| format!("posix_fadvise: {e}"))?;
    match was_there && !there()? {
        true => Ok(()),
        false => Err("files there do not come and go by the page cache; give --folder one on a disk".to_owned()),
    }
}

/// Whether a page is anonymous, by page.
fn kinds(trace: &Trace) -> Vec<bool> {
    let mut kinds = vec![false; trace.footprint_pages() as usize];
    for object in trace.objects.iter().filter(|object| object.kind == ObjectKind::Anon) {
        let first = object.first_page as usize;
        kinds[first..first + object.indices.len()].fill(true);
    }
    kinds
}

/// Without swap, anonymous memory beyond the limit would have this process killed.
fn check_swap(anon_pages: u64, limit_bytes: u64) -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free_kib =
        text.lines().find_map(|line| line.strip_prefix("SwapFree:")?.split_whitespace().next()?.parse().ok());
    let (wanted, swap) = (anon_pages * PAGE, free_kib.unwrap_or(0u64) * 1024);
    // Page tables and the kernel's own take some of it.
    if wanted + wanted / 64 + (1 << 20) > limit_bytes.saturating_add(swap) {
        return Err(format!(
            "{} MiB of anonymous memory do not fit into {} MiB, and there are {} MiB of free swap: this process would \
             be killed; add swap (swapon), or give more to --memory",
            wanted >> 20,
            limit_bytes >> 20,
            swap >> 20
        ));
    }
    Ok(())
}
