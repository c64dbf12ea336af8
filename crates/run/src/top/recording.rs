//! Screen of a recording.

use super::sample::Sample;
use super::view::{head, whole};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style};
use ratatui::widgets::Paragraph;
use refault::memory_size::human;
use refault::words::counted;

/// Draws a recording, with what changed since the last look.
pub(super) fn draw(frame: &mut Frame, pid: u32, now: &Sample, before: Option<&Sample>) {
    let lines = lines(now, before);
    let heights = std::iter::repeat_n(Constraint::Length(1), lines.len() + 2).chain([Constraint::Min(0)]);
    let rows = Layout::vertical(heights).split(frame.area());
    head(frame, rows[0], "record", pid, now);
    for (row, (text, is_bad)) in rows.iter().skip(2).zip(lines) {
        let style = if is_bad { Style::new().fg(Color::Yellow) } else { Style::new() };
        frame.render_widget(Paragraph::new(text).style(style), *row);
    }
}

/// The lines, and which of them are bad news.
fn lines(now: &Sample, before: Option<&Sample>) -> [(String, bool); 4] {
    let total = |name: &str| now.get(&format!("record_{name}_total"));
    let rate = |name: &str| now.rate(before, &format!("record_{name}"));
    let hits = |misses: f64, accesses: f64| match accesses > 0.0 {
        true => format!("{:.2} %", 100.0 * (1.0 - misses / accesses)),
        false => "no accesses".to_owned(),
    };
    let lost = total("lost");
    let (accesses, misses) = (total("accesses"), total("misses"));
    let events = format!("{}/s, {} in all, {} lost", whole(rate("events")), whole(total("events")), whole(lost));
    let touched = format!(
        "{}/s, {} in all, to {}",
        whole(rate("accesses")),
        whole(accesses),
        counted(now.get("record_files") as u64, "file", "files")
    );
    let kernel =
        format!("{} in the last second, {} in all", hits(rate("misses"), rate("accesses")), hits(misses, accesses));
    let file = format!("{}, {}/s", human(total("bytes") as u64), human(rate("bytes") as u64));
    let line = |name: &str, text: String| format!("{name:>8}  {text}");
    [
        (line("events", events), lost > 0.0),
        (line("accesses", touched), false),
        (line("hits", kernel), false),
        (line("written", file), false),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_recording_has_its_rates_and_its_losses() {
        let text = |seconds: u32, n: u32| {
            format!(
                "refault_record_info{{command=\"sqlite3 orders.db\",version=\"0\",output=\"o.parquet\"}} 1\n\
                 refault_record_wall_seconds {seconds}\nrefault_record_files 12\nrefault_record_lost_total 3\n\
                 refault_record_events_total {n}000\nrefault_record_accesses_total {n}00\n\
                 refault_record_misses_total {n}0\nrefault_record_bytes_total {n}024\n"
            )
        };
        let (before, now) = (Sample::of(&text(1, 1), Vec::new()), Sample::of(&text(3, 5), Vec::new()));
        assert!(now.is_recording());
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, 7, &now, Some(&before))).unwrap();
        let cells = terminal.backend().buffer().content();
        let lines: Vec<String> = cells.chunks(80).map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect();
        let shown = lines.join("\n");
        assert!(lines[0].starts_with("refault record 7  sqlite3 orders.db") && lines[0].contains("3 s"), "{shown}");
        assert!(lines[2].contains("events  2,000/s, 5,000 in all, 3 lost"), "{shown}");
        assert!(lines[3].contains("200/s, 500 in all, to 12 files"), "{shown}");
        assert!(lines[4].contains("hits  90.00 % in the last second, 90.00 % in all"), "{shown}");
    }
}
