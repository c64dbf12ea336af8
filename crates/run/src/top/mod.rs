//! `refault top`: a `refault run` or a `refault record` while it runs, in the terminal.
//!
//! `sample` reads what the run writes once a second and what `/proc` says of its processes; `view`
//! draws it, in 80 columns and 24 lines if there is no more, `recording` what is recorded. It calls
//! `live`, which finds runs, and `metrics`, which reads their files; `main` calls `run`.

mod recording;
mod sample;
mod view;

use clap::Parser;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use refault_cli::{Failure, live};
use sample::Sample;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Show a run or a recording that is under way: memory, faults, stalls, the largest mappings
#[derive(Debug, Parser)]
#[command(name = "refault top", version)]
pub(crate) struct TopArgs {
    /// The process of `refault run` or `refault record` [default: the only one there is]
    #[arg(value_name = "PID")]
    pid: Option<u32>,
}

/// From one look at the run to the next: it writes once a second.
const EVERY: Duration = Duration::from_millis(500);

/// Shows a run until it ends, or until `q`.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let (pid, path) = find(args.pid)?;
    if !std::io::stdout().is_terminal() {
        return Err("top: standard output is no terminal".into());
    }
    let mut terminal = ratatui::try_init().map_err(|e| format!("top: the terminal cannot be used: {e}"))?;
    let shown = show(&mut terminal, pid, &path);
    ratatui::restore();
    shown
}

fn find(asked: Option<u32>) -> Result<(u32, PathBuf), Failure> {
    let runs = live::runs();
    let pids = runs.iter().map(|(pid, _)| pid.to_string()).collect::<Vec<_>>().join(", ");
    match (asked, runs.len()) {
        (Some(asked), _) => match runs.into_iter().find(|(pid, _)| *pid == asked) {
            Some(found) => Ok(found),
            None if pids.is_empty() => {
                Err(format!("{asked}: is no run, and there is none: start refault run or record").into())
            }
            None => Err(format!("{asked}: is no run; there are {pids}").into()),
        },
        (None, 0) => Err("no run is under way: start refault run or record; it is found a second later".into()),
        (None, 1) => Ok(runs.into_iter().next().unwrap_or_default()),
        (None, _) => Err(format!("several runs are under way: name one of {pids}").into()),
    }
}

fn show(terminal: &mut ratatui::DefaultTerminal, pid: u32, path: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| format!("top: the terminal cannot be used: {e}");
    let mut before: Option<Sample> = None;
    let mut now: Option<Sample> = None;
    loop {
        // The file is gone with the run.
        let Some(sample) = Sample::read(path) else { return Ok(()) };
        if now.as_ref().is_none_or(|now| now.wall_s() != sample.wall_s()) {
            before = now.replace(sample);
        }
        if let Some(now) = &now {
            let draw = if now.is_recording() { recording::draw } else { view::draw };
            terminal.draw(|frame| draw(frame, pid, now, before.as_ref())).map_err(failed)?;
        }
        let until = Instant::now() + EVERY;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if !event::poll(left).map_err(failed)? {
                break;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    _ => {}
                },
                // Drawn anew at once.
                Event::Resize(..) => break,
                _ => {}
            }
        }
    }
}
