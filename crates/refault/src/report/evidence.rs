//! Evidence that the figures of a trace rest on, in words.

use super::request::ReportRequest;
use crate::units::counted;
use refault_trace::{Header, Seen};

/// Parts of the evidence: which accesses there are, and what is missing.
pub(super) fn evidence(request: &ReportRequest, header: &Header, accesses: u64, writes: u64) -> Vec<String> {
    let counted_accesses = counted(accesses, "access");
    let mut all = vec![match request.max_accesses {
        Some(most) if most <= accesses => format!("the first {counted_accesses}"),
        _ => format!("the whole trace, {counted_accesses}"),
    }];
    if accesses > 0 && writes == accesses {
        all.push("writes only: what is read is not in it".into());
    }
    all.extend(header.seen.map(|seen| {
        match seen {
            Seen::BlockRequests => "requests to a block device, without the hits of the page cache above",
            Seen::Additions => "pages that came into the page cache, without its hits",
            Seen::Faults => "page faults, without touches of pages that are mapped",
            Seen::SystemCalls => "system calls, without touches of mapped memory",
            Seen::PageCache => "hits and additions of the page cache",
            Seen::Objects => "requests to a cache of objects, a page each",
        }
        .to_owned()
    }));
    let Some(recording) = &header.recording else { return all };
    if let Some(sample) = &recording.sample {
        all.push(format!("a sample of 1 page in {}", sample.one_in));
    }
    if recording.attached == Some(true) {
        all.push("a warm start: programs ran before they were recorded".into());
    }
    if recording.lost > 0 {
        all.push(format!("{} were lost", counted(recording.lost, "event")));
    }
    if recording.cut {
        all.push("the recorder was ended before its end".into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_trace_and_writes_alone_are_said() {
        let header = Header { seen: Some(Seen::BlockRequests), ..Header::new(refault_trace::Format::Blkparse) };
        let said = |most, writes| {
            let request = ReportRequest { max_accesses: most, ..ReportRequest::default() };
            evidence(&request, &header, 10, writes).join("; ")
        };
        assert!(said(None, 3).starts_with("the whole trace, 10 accesses; requests to a block device"));
        assert!(said(Some(10), 10).starts_with("the first 10 accesses; writes only"));
    }
}
