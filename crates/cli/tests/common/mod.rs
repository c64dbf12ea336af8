//! Parts that the tests of the replay share.

pub mod command;

use refault_cli::replay::cell::{Cell, CountOnly};
use refault_mm::opt::{Opt, next_uses};
use refault_mm::{Config, Policy};
use refault_trace::{
    Header, LoadOptions, ObjectKind, Op, OpenOptions, Record, RecordSource, Trace, TraceError, Via, open,
};
use std::path::Path;

/// Loads a trace; `only_reads` takes every access for a read of a file, as textbook policies know
/// nothing else.
pub fn load(path: &Path, raw_ids: bool, via: Via, only_reads: bool) -> Trace {
    let source = open(path, &OpenOptions { raw_ids, ..OpenOptions::default() }).expect("opens");
    let opts = LoadOptions { default_via: via, ..LoadOptions::default() };
    Trace::load(&mut Retyped { header: source.header().clone(), source, only_reads, via }, &opts).expect("loads")
}

/// A source whose objects may all be taken for files that are read.
struct Retyped {
    source: Box<dyn RecordSource>,
    header: Header,
    only_reads: bool,
    via: Via,
}

impl RecordSource for Retyped {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let more = self.source.next_chunk(out)?;
        self.header = self.source.header().clone();
        if self.only_reads {
            self.header.objects.iter_mut().for_each(|object| object.kind = ObjectKind::File);
            out.iter_mut().for_each(|record| record.op = Op { write: false, via: Some(self.via) });
        }
        Ok(more)
    }
}

/// The misses of OPT.
pub fn opt_misses(trace: &Trace, pages: u64) -> u64 {
    let ids = trace.accesses.iter().map(|a| a.page());
    let next = next_uses(ids, trace.footprint_pages() as usize).expect("not too long");
    let mut opt = Opt::new(pages, next.len());
    next.iter().filter(|&&next| !opt.access(next)).count() as u64
}

/// A replay of the whole trace, with swap without limit.
pub fn replay(trace: &Trace, cfg: Config, pages: u64) -> Cell {
    let mut cell = Cell::new(trace, cfg, pages, u64::MAX).expect("a cell");
    cell.run(&trace.accesses, None, &mut CountOnly);
    cell
}

/// No batches, nothing charged but the pages, one list that nothing is promoted from.
pub fn one_list() -> Config {
    let mut cfg = Config::new(Policy::LruNone);
    cfg.lru.one_list = true;
    cfg.lru.batch_folios = 0;
    cfg.lru.swap_cluster_max = 1;
    cfg.memcg.charge_batch = 1;
    cfg.memcg.charge_kernel = false;
    cfg.fault_around.pages = 1;
    cfg
}
