//! Values that a replay's flags have for a recording, unless they are given.

use crate::say;
use refault::words::printable;
use refault_trace::Recording;
use std::path::Path;

pub(crate) use refault::settings::{kernel_of as kernel, policy_of as policy};

/// Says what is to be known of a recording that is sized.
pub(crate) fn note_sized(recording: &Recording, path: &Path) {
    note_cut(Some(recording), path);
    note_touches(Some(recording), path);
    note_files_only(recording, path);
}

/// Says that touches were sampled, and how.
pub(crate) fn note_touches(recording: Option<&Recording>, path: &Path) {
    if let Some(touches) = recording.and_then(|recording| recording.touches) {
        let path = printable(&path.display().to_string());
        say(&format!(
            "note: {path}: touches of memory in place were sampled ({touches}): each is an accessed bit, seen at the end \
             of its interval"
        ));
    }
}

/// Says that a recording is not whole.
pub(crate) fn note_cut(recording: Option<&Recording>, path: &Path) {
    if recording.is_some_and(|recording| recording.cut) {
        let path = printable(&path.display().to_string());
        say(&format!(
            "note: {path}: is cut: its recorder was ended, or the file is not whole; what is there is replayed"
        ));
    }
}

/// Says that nothing but files has a size, where no group was recorded.
pub(crate) fn note_files_only(recording: &Recording, path: &Path) {
    if recording.group.is_none() {
        let path = printable(&path.display().to_string());
        say(&format!(
            "note: {path}: was recorded without a memory cgroup, so that sizes are of pages of files only; what the \
             programs take besides comes on top. With record --cgroup or --memory it is in the size"
        ));
    }
}
