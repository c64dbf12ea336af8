//! `refault watch`: the hit-rate curves of all memory cgroups of this machine, all the time.
//!
//! `args` are the flags, `view` the table, `page` the page of HTML, `listen` answers Prometheus.
//! `refault-watch` does the work; `main` calls `run`.

mod args;
mod listen;
mod page;
mod view;

use crate::page::write_text;
use crate::{Failure, print, say};
use refault_record::{catch_end, is_ended};
use refault_watch::{GroupReport, History, Host, append, emit, metrics, now_ms};
use std::io::IsTerminal;
use std::time::Instant;

pub use args::WatchArgs;
use listen::Listener;
use page::Past;

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
    let history = args.history.as_deref().map(|folder| History::open(folder, args.keep)).transpose()?;
    let mut kept = Kept { args, history, past: Past::new() };
    let (started, mut reported) = (Instant::now(), Instant::now());
    let longest = args.longest();
    let mut reports = Vec::new();
    while !is_ended() && longest.is_none_or(|longest| started.elapsed() < longest) {
        std::thread::sleep(host.pause().min(args.every));
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
        // The numbers that they rest on, as a comment of either system.
        let table = view::table(&reports, &host.counts(), args).lines().map(|line| format!("# {line}\n")).collect();
        return print(&reports.iter().fold(table, |text: String, group| text + "\n" + &emit(group, to.into())));
    }
    if args.is_once() { print(&view::table(&reports, &host.counts(), args)) } else { Ok(()) }
}

/// Files that outlive the watcher.
struct Kept<'a> {
    args: &'a WatchArgs,
    history: Option<History>,
    past: Past,
}

impl Kept<'_> {
    /// Writes history and state. A watcher is not ended by a full disk.
    fn add(&mut self, host: &Host, reports: &[GroupReport]) -> Result<(), Failure> {
        let beside = self.args.json.as_deref().map(|path| append(path, reports, now_ms())).transpose()?;
        let gap = self.history.as_mut().map(|history| history.add(reports)).transpose()?;
        beside.into_iter().chain(gap).flatten().for_each(|gap| say(&format!("refault: {gap}")));
        if let Some(path) = &self.args.state {
            // The state before stays whole.
            if let Err(e) = write_text(path, &host.state().text()) {
                say(&format!("refault: --state: {e}"));
            }
        }
        if let Some(path) = &self.args.page
            && let Err(e) = self.past.write(path, reports)
        {
            say(&format!("refault: --page: {e}"));
        }
        Ok(())
    }
}
