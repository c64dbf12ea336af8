//! `refault trace generate`.

use crate::Failure;
use crate::bars::Accesses;
use clap::Args;
use refault::watch::Meter;
use refault_trace::generate::Workload;
use refault_trace::{NativeWriter, RecordSource};
use std::path::PathBuf;
use std::time::Instant;

/// Help about phases.
const GRAMMAR: &str = "\
A phase is ACCESSES: STREAM; STREAM; ... and a stream is OBJECT:PATTERN:PAGES[:KEY=VALUE,...].

Patterns:
  uniform          any page, all equally likely
  zipf             rank k with a probability proportional to k^-skew
  seq              once from the start to the end; then the stream is over
  loop             round and round

Keys:
  weight=N         share of the accesses of the phase [default: 1]
  start=PAGE       where seq and loop begin in the set [default: 0]
  base=PAGE        where the set begins in the object [default: 0]
  skew=X           zipf: 0 is uniform, at most 32 [default: 1.0]
  permute=yes|no   zipf: scatter the ranks over the set [default: no, rank 1 is the first page]
  op=r|w           read or write [default: r]
  via=fd|map       by descriptor or by mapping [default: left to the replay]
  kind=file|anon   what backs the object [default: file]
  task=N           the task [default: the place of the stream in its phase]
  memcg=/PATH      the memory cgroup of the task [default: /, the root]

Streams of one OBJECT name share its pages. Each stream begins anew in every phase.
Among the streams, interleave=round takes turns in a fixed order, as evenly as the weights
allow; interleave=random draws them by weight [default: random].

Examples:
  Two sets read in a loop, one after the other:
    refault trace generate switch.parquet --phase '245760: A:loop:12288' --phase '245760: B:loop:12288'
  Four readers of uneven speed going round one file, after idle memory was written once:
    refault trace generate readers.parquet --phase '4915: idle:seq:4915:kind=anon,op=w' \\
      --phase '400000: interleave=round; F:loop:20480:weight=4; F:loop:20480:start=5120,weight=3;
               F:loop:20480:start=10240,weight=2; F:loop:20480:start=15360'
  Two tenants, one with a hot set, one that streams:
    refault trace generate two.parquet \\
      --phase '400000: web:zipf:8192:memcg=/web; log:loop:65536:memcg=/batch'";

#[derive(Debug, Args)]
#[command(after_long_help = GRAMMAR)]
pub struct GenerateArgs {
    /// The native trace to write; an existing file is replaced once the new one is whole
    #[arg(value_name = "OUT")]
    to: PathBuf,

    /// A phase, such as "491520: A:uniform:12288; B:loop:20480:start=5120,weight=3"; repeat for
    /// more. The grammar is in the long help (--help)
    #[arg(long = "phase", value_name = "SPEC", required = true)]
    phases: Vec<String>,

    /// Seed of everything that is random; the same seed gives the same trace on every machine
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let workload = Workload::parse(&args.phases, args.seed)?;
    let mut generator = workload.generator("workload")?;
    let mut writer = NativeWriter::create(&args.to)?;
    let progress = Accesses::new("generating".to_owned(), Some(workload.accesses()), Instant::now());
    let mut chunk = Vec::new();
    while generator.next_chunk(&mut chunk)? {
        progress.add(chunk.len() as u64);
        writer.write(&chunk)?;
    }
    let mut header = generator.header().clone();
    header.source =
        Some(format!("refault trace generate --seed {} --phase '{}'", args.seed, args.phases.join("' --phase '")));
    writer.finish(&header)?;
    Ok(())
}
