//! `refault trace convert`.

use super::InputArgs;
use crate::Failure;
use crate::bars::Accesses;
use clap::Args;
use refault::watch::Meter;
use refault_trace::{Collapse, Collapser, Header, NativeWriter, RecordSource};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The trace to convert; `-` is standard input
    #[arg(value_name = "IN")]
    from: PathBuf,

    /// The native trace to write; an existing file is replaced once the new one is whole
    #[arg(value_name = "OUT")]
    to: PathBuf,

    /// Drop an access to one of the N pages touched last, unless it is the first write of a page
    /// since it came among them: 1 merges runs, 64 acts like a TLB [default: 0, keep all]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    collapse: u32,

    /// Note in the header what the trace is a trace of [default: what the trace says, or its name]
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,

    /// Note in the header where it was recorded [default: what the trace says]
    #[arg(long, value_name = "TEXT")]
    recorded_on: Option<String>,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    if crate::is_same_file(&args.from, &args.to) {
        return Err(format!("{}: is the trace to read; give the output another name", args.to.display()).into());
    }
    let mut source = args.input.open(&args.from)?;
    let mut writer = NativeWriter::create_like(&args.to, &args.from)?;
    let mut collapser = Collapser::new(args.collapse);
    let progress = Accesses::new("converting".to_owned(), source.header().records_hint, Instant::now());
    let mut chunk = Vec::new();
    while source.next_chunk(&mut chunk)? {
        progress.add(chunk.len() as u64);
        if args.collapse > 0 {
            collapser.apply(&mut chunk);
        }
        writer.write(&chunk)?;
    }
    writer.finish(&header(args, &source, collapser.dropped()))?;
    Ok(())
}

/// The header of the output: that of the input, and what was done to it.
fn header(args: &ConvertArgs, source: &dyn RecordSource, dropped: u64) -> Header {
    let mut header = source.header().clone();
    if let Some(text) = &args.source {
        header.source = Some(text.clone());
    } else if header.source.is_none() {
        // The directories are the user's own business.
        let name = Path::new(source.name()).file_name();
        let name = name.map_or_else(|| source.name().into(), |name| name.to_string_lossy());
        header.source = Some(format!("{name} ({})", header.format));
    }
    if let Some(text) = &args.recorded_on {
        header.recorded_on = Some(text.clone());
    }
    if args.collapse > 0 {
        let before = header.collapse.unwrap_or_default();
        header.collapse =
            Some(Collapse { window: args.collapse.max(before.window), dropped: before.dropped + dropped });
    }
    header
}
