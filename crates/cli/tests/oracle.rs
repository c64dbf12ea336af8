//! Against real kernels.

use refault_cli::replay::cell::{Cell, MissBits};
use refault_mm::{Config, Policy};
use refault_trace::{LoadOptions, OpenOptions, Trace, Via, open};
use std::path::Path;

#[test]
fn quick() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracle"));
    let cases: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(root.join("cases.json")).unwrap()).unwrap();
    let filter = std::env::var("CASE").unwrap_or_default();
    for c in &cases {
        if c["limit_pages"].is_null() {
            continue;
        }
        let kernel = c["kernel"].as_str().unwrap();
        if kernel == "6.1" || kernel == "6.18" {
            continue;
        }
        let name = c["bits"].as_str().unwrap();
        if !name.contains(&filter) {
            continue;
        }
        let access = c["access"].as_str().unwrap();
        let via = if access == "fd" { Via::Fd } else { Via::Map };
        let mut src = open(&root.join(c["trace"].as_str().unwrap()), &OpenOptions::default()).unwrap();
        let t = Trace::load(src.as_mut(), &LoadOptions { default_via: via, ..Default::default() }).unwrap();
        let policy: Policy = c["policy"].as_str().unwrap().parse().unwrap();
        let mut cfg = Config::new(policy);
        if c["recency"].as_str() == Some("literal") {
            cfg.recency = refault_mm::Recency::Literal;
        }
        cfg.reserved_pages = 20;
        let mut cell = Cell::new(&t, cfg, c["limit_pages"].as_u64().unwrap(), u64::MAX).unwrap();
        let mut bits = MissBits::new(t.accesses.len());
        cell.run(&t.accesses, None, &mut bits);
        cell.engine.validate().unwrap();
        let kbits = zstd::decode_all(std::fs::File::open(root.join(name)).unwrap()).unwrap();
        let agree = kbits.iter().zip(&bits.0).map(|(a, b)| (a ^ b).count_ones() as u64).sum::<u64>();
        let n = t.accesses.len() as f64;
        let k = c["misses"].as_array().unwrap().iter().map(|m| m.as_f64().unwrap()).collect::<Vec<_>>();
        let kh = c["hit_rate"].as_f64().unwrap();
        let h = 1.0 - cell.misses as f64 / n;
        println!(
            "{:60} kernel {:.4} ours {:.4} diff {:+.3}pp differ {:.3}% misses k {:?} ours {}",
            name,
            kh,
            h,
            100.0 * (h - kh),
            100.0 * agree as f64 / n,
            k,
            cell.misses
        );
        if !filter.is_empty() {
            for (n, v) in cell.engine.vmstat().iter() {
                if v > 0 {
                    println!("   {n} {v}  kernel {} {}", c["memcg_counters"][n], c["vmstat_counters"][n])
                }
            }
            for g in cell.engine.memcg_gauges(cell.group) {
                println!(
                    "   {} {} kernel {}",
                    g.name,
                    g.value,
                    c["memcg_counters"][g.name].as_f64().unwrap_or(0.0) / 4096.0
                )
            }
        }
    }
}
