//! Runs a scenario, for a look.
use refault_sim::{machine::Machine, scenario::Scenario};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let s = Scenario::load(std::path::Path::new(&args[1])).unwrap_or_else(|e| panic!("{e}"));
    let k: f64 = args.get(2).and_then(|a| a.parse().ok()).unwrap_or(1.0);
    let s = if k != 1.0 { s.scale(k).unwrap() } else { s };
    let mut variants = vec![("own", s.policy.clone())];
    if let Some(p) = &s.published {
        variants = vec![("before", p.before.clone()), ("after", p.after.clone())];
    }
    let mut results = Vec::new();
    for (name, policy) in variants {
        let t = std::time::Instant::now();
        let mut m = Machine::new(&s, &policy).unwrap();
        if std::env::var("CHECK").is_ok() {
            m = m.checked();
        }
        let r = m.run().unwrap();
        println!(
            "== {name} {:?}: {:.3} s virtual, {:.2} s real, {} events, {:?}, oom {}",
            policy.policy,
            r.seconds,
            t.elapsed().as_secs_f64(),
            r.events,
            r.ending,
            r.oom_kills
        );
        for t in &r.tasks {
            println!(
                "  {:12} x{} {:.3}s acc {} hit {:.4} ops/s {:.1} MB/s {:.2} p50 {} p99 {} err {} reclaim {:.3}s",
                t.name,
                t.count,
                t.seconds,
                t.accesses,
                t.hit_rate(),
                t.ops as f64 / t.seconds,
                t.accesses as f64 * 4096.0 / t.seconds / 1e6,
                t.latency.p50_ns(),
                t.latency.p99_ns(),
                t.errors,
                t.reclaim_seconds
            );
        }
        for (n, v) in &r.memcgs[0].counters {
            if *v > 0 {
                print!(" {n}={v}");
            }
        }
        println!();
        for d in &r.devices {
            println!("  {} {:?}", d.name, d.stats);
        }
        println!("  psi {:?} node {:?}", r.memcgs[0].psi, r.node);
        if std::env::var("GEN").is_ok() {
            println!("{}", r.lru_gen);
        }
        if std::env::var("SERIES").is_ok() {
            println!("{}", r.series.csv());
        }
        results.push(r);
    }
    if let (Some(p), [a, b]) = (&s.published, &results[..]) {
        for row in &p.rows {
            let (x, y) = (a.metric(&row.metric), b.metric(&row.metric));
            println!(
                "{:40} pub {:?} -> {:?} ({:?}) ours {:?} -> {:?} ({:?}) band {:?}",
                row.metric,
                row.before,
                row.after,
                row.after.zip(row.before).map(|(a, b)| a / b),
                x,
                y,
                y.zip(x).map(|(a, b)| a / b),
                row.band
            );
        }
    }
}
