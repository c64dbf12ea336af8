//! Text of `/proc/PID/maps`, and pages that were found in it: any text, any ranges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_record::{PageRun, Scan, Vma};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mappings = Vma::parse_all(&text);
    assert!(mappings.iter().all(|m| m.pages.start < m.pages.end));
    assert!(mappings.windows(2).all(|two| two[0].pages.end <= two[1].pages.start));
    // Regions that begin and end where the mappings do, or beside it.
    let mut regions: Vec<PageRun> = Vec::new();
    for (mapping, byte) in mappings.iter().zip(bytes) {
        let start =
            mapping.pages.start.saturating_sub(u64::from(byte % 3)).max(regions.last().map_or(0, |r| r.pages.end));
        let end = mapping.pages.end.saturating_sub(u64::from(byte % 5));
        if start < end {
            let (is_there, is_file, touched) = (byte & 8 == 0, byte & 16 == 0, byte & 32 == 0);
            regions.push(PageRun { pages: start..end, is_there, is_file, touched });
        }
    }
    let scan = Scan::of(&mappings, &regions, bytes.len().is_multiple_of(2));
    let has = |page: u64| mappings.iter().any(|m| m.pages.contains(&page));
    assert!(scan.memory.iter().all(|m| m.pages > 0 && has(m.first) && has(m.first + m.pages - 1)));
    assert!(scan.memory.windows(2).all(|two| two[0].first + two[0].pages <= two[1].first));
    assert!(
        scan.files.iter().all(|&(inode, _, pages)| pages > 0 && scan.in_view.len() <= mappings.len() && inode.ino > 0)
    );
});
