//! `refault watch`: the hit-rate curves of all memory cgroups of this machine, all the time.
//!
//! `args` are the flags, `view` the table, `listen` answers Prometheus. `refault-watch` does the work; `main` calls `run`.

mod args;
mod listen;
mod view;

use crate::{Failure, print, say};
use refault_record::{catch_end, is_ended};
use refault_watch::{GroupReport, History, Host, append, emit, metrics, now_ms};
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

pub use args::WatchArgs;
use listen::Listener;

/// From one look at the events to the next.
const STEP: Duration = Duration::from_millis(100);

/// Puts the cursor to the top, and clears the rest of a terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// Watches until it is ended.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let options = args.options()?;
    let listener = args.listen.map(Listener::open).transpose()?;
    let mut host = Host::open(options)?;
    catch_end();
    if let Some(why) = host.why_filters() {
        say(&format!("refault: filters of perf events take the sample, and a cached read costs more: {why}"));
    }
    if let Some(address) = args.listen.filter(|_| !args.is_once()) {
        say(&format!("refault: metrics at http://{address}/metrics"));
    }
    let is_screen = std::io::stdout().is_terminal() && !args.is_once();
    let mut kept =
        Kept { args, history: args.history.as_deref().map(|folder| History::open(folder, args.keep)).transpose()? };
    let (started, mut reported) = (Instant::now(), Instant::now());
    let longest = args.longest();
    let mut reports = Vec::new();
    while !is_ended() && longest.is_none_or(|longest| started.elapsed() < longest) {
        std::thread::sleep(STEP);
        host.poll()?;
        if let Some(listener) = &listener {
            listener.answer(|| metrics(&reports, &host.counts()));
        }
        if reported.elapsed() < args.every || args.is_once() {
            continue;
        }
        reported = Instant::now();
        reports = host.report();
        kept.add(&host, &reports)?;
        let table = view::table(&reports, &host.counts(), args);
        print(&if is_screen { CLEAR.to_owned() + &table } else { table + "\n" })?;
    }
    reports = host.report();
    kept.add(&host, &reports)?;
    if let Some(to) = args.emit {
        return print(&reports.iter().map(|group| emit(group, to.into()) + "\n").collect::<String>());
    }
    if args.is_once() { print(&view::table(&reports, &host.counts(), args)) } else { Ok(()) }
}

/// Files that outlive the watcher.
struct Kept<'a> {
    args: &'a WatchArgs,
    history: Option<History>,
}

impl Kept<'_> {
    /// Writes history and state. A watcher is not ended by a full disk.
    fn add(&mut self, host: &Host, reports: &[GroupReport]) -> Result<(), Failure> {
        let beside = self.args.json.as_deref().map(|path| append(path, reports, now_ms())).transpose()?;
        let gap = self.history.as_mut().map(|history| history.add(reports)).transpose()?;
        beside.into_iter().chain(gap).flatten().for_each(|gap| say(&format!("refault: {gap}")));
        if let Some(path) = &self.args.state {
            // The state before stays whole.
            if let Err(e) = write_state(path, &host.state().text()) {
                say(&format!("refault: --state: {e}"));
            }
        }
        Ok(())
    }
}

/// Writes the state, whole or not at all.
fn write_state(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = crate::page::create(path)?;
    let failed = |e: std::io::Error| format!("{}: cannot be written: {e}", path.display());
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(file.commit()?)
}
