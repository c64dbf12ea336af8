//! Screen of a run.

use super::sample::Sample;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph, Row, Table};
use refault::memory_size::human;
use refault::words::{grouped, number};

const PAGE: f64 = 4096.0;

/// Draws a run, with what changed since the last look.
pub(super) fn draw(frame: &mut Frame, pid: u32, now: &Sample, before: Option<&Sample>) {
    let heights = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    let mut rows = Layout::vertical(heights.map(Constraint::Length).into_iter().chain([Constraint::Min(0)]))
        .split(frame.area())
        .to_vec();
    let rest = rows.pop().unwrap_or_default();
    head(frame, rows[0], "run", pid, now);
    bar(frame, rows[2], "memory", now.get("run_memory_bytes"), now.get("run_memory_max_bytes"));
    bar(
        frame,
        rows[3],
        "  pool",
        now.get("run_pool_bytes"),
        now.get("run_pool_limit_bytes").max(now.get("run_pool_bytes")),
    );
    bar(frame, rows[4], "  swap", now.get("run_swap_bytes"), now.get("run_swap_max_bytes"));
    let text = |line: String| Paragraph::new(line);
    frame.render_widget(text(beside(now)), rows[5]);
    frame.render_widget(Paragraph::new(stall(now, before)), rows[6]);
    frame.render_widget(text(faults(now, before)), rows[7]);
    frame.render_widget(text(pages(now, before)), rows[8]);
    frame.render_widget(text(lists(now)), rows[9]);
    mappings(frame, rest, now);
}

/// The first line: what runs, and for how long.
pub(super) fn head(frame: &mut Frame, area: Rect, what: &str, pid: u32, now: &Sample) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let right = format!("{:.0} s  q quits", now.wall_s());
    let left = format!("refault {what} {pid}  ");
    let room = usize::from(area.width).saturating_sub(left.len() + right.len() + 2);
    let command: String = now.command().chars().take(room).collect();
    let gap = " ".repeat(room.saturating_sub(command.chars().count()) + 2);
    let line = Line::from(vec![Span::styled(left, bold), Span::raw(command), Span::raw(gap), Span::raw(right)]);
    frame.render_widget(Paragraph::new(line), area);
}

/// A size against its limit.
fn bar(frame: &mut Frame, area: Rect, name: &str, n: f64, most: f64) {
    let [label, bar, words] =
        Layout::horizontal([Constraint::Length(8), Constraint::Min(10), Constraint::Length(26)]).areas(area);
    let share = if most > 0.0 { (n / most).clamp(0.0, 1.0) } else { 0.0 };
    // Blue and orange differ for all colour vision; the number says it, too.
    let colour = if share > 0.95 { Color::Yellow } else { Color::Blue };
    frame.render_widget(Paragraph::new(name), label);
    let percent = format!("{:.0} %", 100.0 * share);
    frame.render_widget(
        Gauge::default().ratio(share).label(percent).gauge_style(Style::new().fg(colour).bg(Color::DarkGray)),
        bar,
    );
    frame.render_widget(Paragraph::new(format!("  {} of {}", size(n), size(most))), words);
}

fn size(bytes: f64) -> String {
    human(bytes as u64)
}

fn beside(now: &Sample) -> String {
    let processes = now.get("run_processes");
    format!(
        "        peak {}; pool {} pages; file {}; pager {}; {processes} process{}",
        size(now.get("run_memory_peak_bytes")),
        grouped(now.get("run_pool_pages") as u64),
        size(now.get("run_swap_file_bytes")),
        size(now.get("run_manager_bytes")),
        if processes == 1.0 { "" } else { "es" }
    )
}

fn stall(now: &Sample, before: Option<&Sample>) -> Line<'static> {
    let share = |name: &str| (100.0 * now.rate(before, name)).min(100.0);
    let (some, full) = (share("run_pressure_some_seconds"), share("run_pressure_full_seconds"));
    let all = |name: &str| 100.0 * now.get(&format!("{name}_total")) / now.wall_s().max(1e-9);
    let style = if some >= 10.0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    Line::from(vec![
        Span::raw(" stall  "),
        Span::styled(format!("some {some:.1} %  full {full:.1} %"), style),
        Span::raw(format!(
            "   since the start: some {:.1} %  full {:.1} %",
            all("run_pressure_some_seconds").min(100.0),
            all("run_pressure_full_seconds").min(100.0)
        )),
    ])
}

fn faults(now: &Sample, before: Option<&Sample>) -> String {
    let refaults = now.rate(before, "workingset_refault_anon") + now.rate(before, "workingset_refault_file");
    format!(
        "faults  {}/s, first touches {}/s, refaults {}/s",
        whole(now.rate(before, "run_faults")),
        whole(now.rate(before, "run_first_touches")),
        whole(refaults)
    )
}

fn pages(now: &Sample, before: Option<&Sample>) -> String {
    format!(
        " pages  in {}/s, out {}/s, rescued {}/s",
        whole(now.rate(before, "run_swapped_in_pages")),
        whole(now.rate(before, "run_swapped_out_pages")),
        whole(now.rate(before, "run_rescued_pages"))
    )
}

pub(super) fn whole(n: f64) -> String {
    number(n.round())
}

/// The generations, or the two lists.
fn lists(now: &Sample) -> String {
    let generations = now.generations();
    if generations.is_empty() {
        let of = |kind: &str| size(PAGE * (now.list(&format!("{kind}_anon")) + now.list(&format!("{kind}_file"))));
        return format!(" lists  inactive {}, active {}", of("inactive"), of("active"));
    }
    let all: Vec<_> = generations.iter().map(|(seq, pages)| format!("{seq}: {}", size(pages * PAGE))).collect();
    format!("   gen  {} (the youngest is last)", all.join("  "))
}

fn mappings(frame: &mut Frame, area: Rect, now: &Sample) {
    let head = Row::new(["    pid", "        size", "    in place", "mapping"])
        .style(Style::new().add_modifier(Modifier::REVERSED));
    let rows = now.mappings.iter().map(|m| {
        Row::new([
            format!("{:>7}", m.pid),
            format!("{:>12}", human(m.size_kib << 10)),
            format!("{:>12}", human(m.resident_kib << 10)),
            m.name.clone(),
        ])
    });
    let widths = [Constraint::Length(7), Constraint::Length(12), Constraint::Length(12), Constraint::Min(20)];
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

#[cfg(test)]
mod tests {
    use super::super::sample::Mapping;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn all_of_it_fits_80_columns_and_24_lines() {
        let text = "refault_run_info{command=\"python3 -c \\\"long\\\" job.py --with many words that go on and on and on\",version=\"0\"} 1\n\
                    refault_run_wall_seconds 12.5\nrefault_run_processes 1\nrefault_run_memory_bytes 16000000\nrefault_run_memory_max_bytes 16777216\n\
                    refault_run_swap_bytes 33554432\nrefault_run_swap_max_bytes 134217728\nrefault_run_faults_total 123456789\n\
                    refault_run_pressure_some_seconds_total 3\nrefault_workingset_refault_anon_total 500\n\
                    refault_run_generation_pages{seq=\"9\"} 100\nrefault_run_generation_pages{seq=\"10\"} 2000\n";
        let mapping =
            |n: u32| Mapping { pid: 4_000_000 + n, name: "[heap]".repeat(20), size_kib: 1 << 30, resident_kib: 12_345 };
        let now = Sample::of(text, (0..10).map(mapping).collect());
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, 4_194_304, &now, None)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines: Vec<String> =
            buffer.content().chunks(80).map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect();
        let shown = lines.join("\n");
        assert!(
            lines[0].starts_with("refault run 4194304  python3 -c \"long\" job.py") && lines[0].ends_with("q quits"),
            "{shown}"
        );
        assert!(lines[2].contains("95 %") && lines[2].contains("15.3M of 16.0M"), "{shown}");
        assert!(shown.contains("some 24.0 %") && shown.contains("refaults 40/s"), "{shown}");
        assert!(lines[5].trim_end().ends_with("; 1 process"), "{shown}");
        assert!(shown.contains("9: 400.0K  10: 7.8M"), "{shown}");
        assert_eq!(lines.iter().filter(|line| line.contains("[heap]")).count(), 10, "{shown}");
    }
}
