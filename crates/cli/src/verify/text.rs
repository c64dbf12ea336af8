//! The comparison for people.

use crate::flags::size::human;
use crate::table::Table;
use refault::recording::{Compared, LoadedRecording, kernel_count};
use refault::settings::policy_of;
use refault::verify::{ComparedRecordings, Verified};
use refault::words::{counted, grouped, printable};
use std::fmt::Write as _;

pub(super) fn render(verified: &Verified<'_>) -> String {
    let Verified { recording: loaded, settings, compared, verdict } = verified;
    let recording = &loaded.recording;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    line("recording", printable(&recording.target));
    let other = |flag: &str, is_other: bool, recorded: &str| match is_other {
        true => format!(" (--{flag}; recorded {recorded})"),
        false => String::new(),
    };
    let recorded = policy_of(recording);
    let policy = other("policy", settings.policy != recorded, recorded.name());
    line("kernel", format!("Linux {}, {}{policy}", printable(&recording.kernel), settings.policy.name()));
    let size = |pages: Option<u64>| pages.map_or("none".to_owned(), |pages| human(pages.saturating_mul(4096)));
    let recorded = recording.memory_max.map(|bytes| bytes / 4096);
    let limit = size(settings.memory_pages) + &other("memory", settings.memory_pages != recorded, &size(recorded));
    let group = recording.group.as_deref().map_or(String::new(), |path| format!(" of {}", printable(path)));
    line("limit", format!("{limit}{group}"));
    line("readahead", human(u64::from(loaded.read_ahead_pages(settings)) * 4096));
    let order = verified.largest_order();
    if order > 0 {
        line("large folios", format!("of files, up to {}", human(4096 << order)));
    }
    if recording.oom_kills > 0 {
        line("oom kills", format!("{} of the group", counted(recording.oom_kills, "process", "processes")));
    }
    let exact = if recording.lost == 0 { "" } else { ": not exact" };
    line("events", format!("{}, {} lost{exact}", grouped(recording.events), grouped(recording.lost)));
    line("accesses", grouped(compared.total.accesses));
    if let Some(sample) = recording.sample {
        let error = compared
            .error_of_difference()
            .map_or(String::new(), |error| format!("; lab less kernel ±{:.2} points by the choice", 200.0 * error));
        line("sample", format!("{sample}{error}"));
    }
    if let Some(touches) = recording.touches {
        let (all, missed) = (grouped(compared.sampled.accesses), grouped(compared.sampled.lab_misses));
        line("touches", format!("{all} of files in place ({touches}), {missed} not in memory in the lab"));
        line("", "each is an accessed bit, seen at the end of its interval, and no access of those above".to_owned());
    }
    if loaded.shmem_touches > 0 {
        let all = counted(loaded.shmem_touches, "touch", "touches");
        line("shared memory", format!("{all}, not compared: it takes room as anonymous memory does"));
    }
    if compared.warm > 0 {
        let whose = if loaded.start.is_own { "" } else { ", of other groups" };
        line("warm", format!("{} in memory at the start{whose}", counted(compared.warm, "page was", "pages were")));
    }
    text += "\n";
    text += &figures(loaded, compared);
    if !compared.is_out_of_memory {
        text += &windows(compared);
        text += &objects(loaded, compared);
    }
    let _ = writeln!(text, "\n{}", printable(&verdict.text));
    text
}

/// Two recordings of one program.
pub(super) fn beside(beside: &ComparedRecordings) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    for (name, side) in ["first", "second"].into_iter().zip(&beside.sides) {
        let limit = side.memory_max.map_or("no limit".to_owned(), human);
        let (file, kernel) = (printable(&side.recording), printable(&side.kernel));
        line(name, format!("{file}: Linux {kernel}, {limit}, {} lost", counted(side.lost, "event", "events")));
    }
    let files = counted(beside.files, "file", "files");
    line("accesses", format!("{} by descriptor to {files}", grouped(beside.total.accesses)));
    let [ours, theirs] = beside.left_out.map(grouped);
    line("left out", format!("{ours} and {theirs}: by mapping, or to files that are accessed otherwise in each"));
    let mut table = Table::new(["", "first", "second"], 1);
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    let (rate, other) = beside.total.rates();
    let mut row = |name: &str, first: String, second: String| table.row(vec![name.to_owned(), first, second]);
    row("hit rate", percent(rate), percent(other));
    row("misses", grouped(beside.total.first_misses), grouped(beside.total.second_misses));
    row("same accesses", String::new(), percent(beside.total.agreement()));
    let _ = write!(text, "\n{}", table.render());
    let (low, high) = beside.extremes();
    let all = beside.windows.iter().filter(|w| w.accesses > 0);
    let (all, near) = (all.clone().count(), all.filter(|w| w.difference().abs() <= 0.5).count());
    let _ = writeln!(text, "\n{near} of {all} windows within half a point; between {low:+.2} and {high:+.2} points");
    if !beside.objects.is_empty() {
        let mut table = Table::new(["object", "accesses", "first\nmisses", "second\nmisses", "not the\nsame"], 1);
        for object in &beside.objects {
            let pair = &object.pair;
            let numbers = [pair.accesses, pair.first_misses, pair.second_misses, pair.accesses - pair.same];
            table.row([vec![printable(&object.name)], numbers.map(grouped).to_vec()].concat());
        }
        let _ = write!(text, "\nobjects with the largest difference\n{}", table.render());
    }
    let _ = writeln!(text, "\n{}", printable(&beside.verdict));
    text
}

fn figures(loaded: &LoadedRecording, compared: &Compared) -> String {
    let mut table = Table::new(["", "kernel", "lab"], 1);
    let (kernel, lab) = compared.total.rates();
    // Counts of a lab that ran out of memory are not whole.
    let is_over = compared.is_out_of_memory;
    let mut row = |name: &str, kernel: String, lab: String| {
        table.row(vec![name.to_owned(), kernel, if is_over { "-".to_owned() } else { lab }]);
    };
    row("hit rate", format!("{kernel:.2}%"), format!("{lab:.2}%"));
    row("misses", grouped(compared.total.kernel_misses), grouped(compared.total.lab_misses));
    let (kernel, lab) = (&compared.kernel_reads, &compared.lab_reads);
    row("disk reads", human(kernel.bytes()), human(lab.bytes()));
    row("- requests", grouped(kernel.reads), grouped(lab.reads));
    if kernel.metadata_pages + lab.metadata_pages > 0 {
        row("- metadata", human(4096 * kernel.metadata_pages), human(4096 * lab.metadata_pages));
    }
    row("same accesses", String::new(), format!("{:.2}%", 100.0 * compared.total.agreement()));
    if compared.by_descriptor.accesses > 0 && compared.by_mapping.accesses > 0 {
        for (name, both) in [("- by descriptor", &compared.by_descriptor), ("- by mapping", &compared.by_mapping)] {
            row(name, String::new(), format!("{:.2}%", 100.0 * both.agreement()));
        }
    }
    let ours = |name: &str| compared.ours.get(name).copied().unwrap_or(0);
    row("evicted pages", grouped(compared.evicted), grouped(ours("pgsteal_file")));
    let kernel = kernel_count(loaded, "workingset_refault_file").map_or("-".to_owned(), grouped);
    row("refaults", kernel, grouped(ours("workingset_refault_file")));
    if let Some(kernel) = kernel_count(loaded, "workingset_activate_file") {
        row("activations", grouped(kernel), grouped(ours("workingset_activate_file")));
    }
    table.render()
}

/// Windows in which the two differ by more than half a point; those that are alike share a line.
fn windows(compared: &Compared) -> String {
    let (low, high) = compared.extremes();
    let all = compared.windows.iter().filter(|w| w.accesses > 0).count();
    let near = compared.windows.iter().filter(|w| w.accesses > 0 && w.difference().abs() <= 0.5).count();
    format!("\n{near} of {all} windows within half a point; between {low:+.2} and {high:+.2} points\n")
}

fn objects(loaded: &LoadedRecording, compared: &Compared) -> String {
    let worst = compared.worst();
    if worst.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["object", "accesses", "kernel\nmisses", "lab\nmisses", "difference"], 1);
    for (at, both) in worst {
        let difference = both.lab_misses as i64 - both.kernel_misses as i64;
        table.row(vec![
            printable(&loaded.objects[at].name),
            grouped(both.accesses),
            grouped(both.kernel_misses),
            grouped(both.lab_misses),
            format!("{difference:+}"),
        ]);
    }
    format!("\nobjects with the largest difference\n{}", table.render())
}
