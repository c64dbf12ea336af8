//! Misses of a trace against memory, under the two reclaim policies of Linux:
//! `cargo run --release -p refault-lib --example curve data/sqlite.parquet`.

use refault::replay::{Replay, curve_sizes};
use std::path::Path;

fn main() -> Result<(), refault::Failure> {
    let path = std::env::args().nth(1).ok_or("name a trace")?;
    let (trace, page_size) = refault::load(Path::new(&path))?;
    let policies = vec!["lru".parse()?, "mglru".parse()?];
    let replay = Replay { policies, memory: curve_sizes(), ..Replay::default() };
    for (row, _) in replay.run(&trace, page_size)? {
        println!("{:>7} {:>6} pages: {:5.2} % hits", row.policy, row.memory_pages, 100.0 * row.hit_rate());
    }
    Ok(())
}
