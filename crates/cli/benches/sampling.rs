//! How far estimates by samples are from the whole replay: every policy, every trace at hand and
//! some generated ones, at three sizes, by 10 %, 1 % and 0.1 % of the pages.
//!
//! `cargo bench -p refault-cli --bench sampling`; the traces of `../shared/traces`, those of
//! `data/`, and workloads of a million pages. `-- --only NAME` is one of them, `--salts N` how many
//! samples an estimate has (5), `--cases` prints every case.

use refault_cli::Watch;
use refault_cli::replay::cell::{Cell, CountOnly};
use refault_cli::replay::policy::RowPolicy;
use refault_cli::replay::sample::{OneIn, Question, SampledEstimate, estimate};
use refault_mm::opt::{Opt, next_uses};
use refault_mm::{Config, Kernel, Policy};
use refault_trace::generate::Workload;
use refault_trace::{LoadOptions, OpenOptions, RecordSource, Sample, SampleUnit, Samples, Trace, Via, open};
use std::path::{Path, PathBuf};

/// Memory of a sample in pages from which on an estimate is counted: below it single pages show.
const ENOUGH_PAGES: u64 = 100;

/// Workloads of a million pages, and how they are touched.
const GENERATED: [(&str, &[&str]); 5] = [
    ("zipf-1.0", &["4000000: A:zipf:1000000:permute=yes"]),
    ("zipf-0.7", &["4000000: A:zipf:1000000:skew=0.7,permute=yes"]),
    ("hot-and-scan", &["4000000: H:zipf:400000:weight=3,permute=yes; S:loop:600000"]),
    (
        "switch",
        &[
            "1500000: A:zipf:500000:permute=yes",
            "1500000: A:zipf:500000:base=500000,permute=yes",
            "1000000: A:zipf:500000:permute=yes",
        ],
    ),
    ("anon-and-files", &["4000000: A:zipf:500000:kind=anon,permute=yes,op=w; F:zipf:500000:skew=0.8,permute=yes"]),
];

fn flag(name: &str) -> Option<String> {
    let args: Vec<String> = std::env::args().collect();
    args.iter().position(|a| a == name).and_then(|i| args.get(i + 1).cloned())
}

/// A workload, and how to read it from its beginning.
struct Case {
    name: String,
    via: Via,
    open: Box<dyn Fn() -> Box<dyn RecordSource>>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, open: &dyn Fn() -> Box<dyn Fn() -> Box<dyn RecordSource>>| {
        for (via, how) in [(Via::Fd, "fd"), (Via::Map, "map")] {
            cases.push(Case { name: format!("{name} {how}"), via, open: open() });
        }
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let data = ["orders.parquet", "sqlite.parquet"].map(|name| (repository.join("data").join(name), false));
    let shared = refault_testing::traces().map(|root| {
        let lirs = ["loop", "2_pools", "sprite", "zigzag", "cpp", "ps"].map(|name| format!("lirs/{name}.trace.gz"));
        let others =
            ["arc/OLTP.lis.zst", "address/gcc.trace.gz", "address/mcf.trace.gz", "drmemtrace/simple_app.trace.zip"];
        let all = lirs.into_iter().chain(others.map(str::to_owned)).map(|name| (root.join(name), false));
        let block = [("block/cloudPhysicsIO.oracleGeneral.bin", true), ("block/cloudPhysicsIO.vscsi", false)];
        all.chain(block.map(|(name, raw)| (root.join(name), raw))).collect::<Vec<_>>()
    });
    for (path, raw_ids) in data.into_iter().chain(shared.into_iter().flatten()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        add(&name, &|| {
            let path: PathBuf = path.clone();
            Box::new(move || open(&path, &OpenOptions { raw_ids, ..OpenOptions::default() }).expect("a trace"))
        });
    }
    for (name, phases) in GENERATED {
        add(name, &|| {
            Box::new(move || Box::new(Workload::parse(phases, 1).and_then(|w| w.generator(name)).expect("a workload")))
        });
    }
    cases.retain(|case| flag("--only").is_none_or(|only| case.name.contains(&only)));
    cases
}

/// Hit rates of the whole, by size, then by policy.
fn whole(trace: &Trace, sizes: &[u64], policies: &[(RowPolicy, Option<Config>)]) -> Vec<f64> {
    let n = trace.accesses.len() as f64;
    let next = next_uses(trace.accesses.iter().map(|a| a.page()), trace.footprint_pages() as usize).expect("numbers");
    let cell = |pages: u64, cfg: &Option<Config>| match cfg {
        Some(cfg) => {
            let mut cell = Cell::new(trace, cfg.clone(), pages, u64::MAX).expect("a cell");
            cell.run(&trace.accesses, None, &mut CountOnly);
            if cell.oom_at.is_some() { f64::NAN } else { 1.0 - cell.misses as f64 / n }
        }
        None => {
            let mut opt = Opt::new(pages, next.len());
            next.iter().filter(|&&next| opt.access(next)).count() as f64 / n
        }
    };
    sizes.iter().flat_map(|&pages| policies.iter().map(move |(_, cfg)| cell(pages, cfg))).collect()
}

/// Kind of an estimate.
#[derive(Clone, Copy, PartialEq)]
struct Kind {
    one_in: u64,
    unit: SampleUnit,
    /// Whether the kernel's constants are scaled, too, or memory alone.
    scaled: bool,
}

impl Kind {
    fn name(self) -> String {
        let unit = match self.unit {
            SampleUnit::Page => "pages",
            SampleUnit::Node => "nodes",
            SampleUnit::Table => "tables",
        };
        format!("1 in {}, {unit}{}", self.one_in, if self.scaled { "" } else { ", constants not scaled" })
    }
}

struct Outcome {
    kind: Kind,
    case: String,
    policy: RowPolicy,
    /// The estimate less the truth, in percentage points; the same by the sample's own accesses,
    /// and by the nominal rate in the place of that of its pages.
    points: [f64; 3],
    /// The standard error, in points.
    bar: f64,
    enough: bool,
}

fn outcome(kind: Kind, case: &str, truth: f64, e: &SampledEstimate) -> Outcome {
    let n = e.samples.len() as f64;
    let mean =
        |f: &dyn Fn(f64, f64) -> f64| e.samples.iter().map(|s| f(s.misses as f64, s.accesses as f64)).sum::<f64>() / n;
    let own = mean(&|misses, accesses| 1.0 - misses / accesses);
    let nominal = mean(&|misses, _| (1.0 - misses * kind.one_in as f64 / e.accesses as f64).clamp(0.0, 1.0));
    Outcome {
        kind,
        case: format!("{case} {}p", e.memory_pages),
        policy: e.policy,
        points: [e.hit_rate(), own, nominal].map(|rate| 100.0 * (rate - truth)),
        bar: 100.0 * e.error().unwrap_or(0.0),
        enough: e.samples.iter().all(|s| s.memory_pages >= ENOUGH_PAGES && !s.out_of_memory),
    }
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for one_in in [10, 100, 1000] {
        kinds.push(Kind { one_in, unit: SampleUnit::Page, scaled: true });
        kinds.push(Kind { one_in, unit: SampleUnit::Page, scaled: false });
        kinds.push(Kind { one_in, unit: SampleUnit::Node, scaled: true });
    }
    kinds
}

fn measure(case: &Case, all: &mut Vec<Outcome>) {
    let options = LoadOptions { default_via: case.via, ..LoadOptions::default() };
    let trace = Trace::load(&mut (case.open)(), &options).expect("a trace");
    let footprint = u64::from(trace.footprint_pages());
    let sizes = [10, 25, 50].map(|percent| footprint * percent / 100);
    let policies: Vec<_> = Policy::ALL
        .into_iter()
        .map(|policy| (RowPolicy::Linux(policy), Some(Config::new(policy))))
        .chain([(RowPolicy::Opt, None)])
        .collect();
    let truth = whole(&trace, &sizes, &policies);
    let salts = flag("--salts").map_or(5, |n| n.parse().expect("a number"));
    for kind in kinds() {
        let samples: Vec<_> = (0..salts).map(|salt| Sample::new(kind.one_in, kind.unit, salt)).collect();
        let samples = Samples::load(&mut (case.open)(), &options, &samples).expect("samples");
        let question = Question {
            one_in: OneIn(if kind.scaled { kind.one_in } else { 1 }),
            page_size: 4096,
            sizes: &sizes,
            kernel: Kernel::default(),
            policies: &policies,
            swap_max_pages: u64::MAX,
            threads: 2,
            watch: Watch::default(),
        };
        // Too few pages for a sample to have any.
        let Ok(estimates) = estimate(&samples, &question) else { continue };
        for (e, &truth) in estimates.iter().zip(&truth).filter(|(_, truth)| !truth.is_nan()) {
            let outcome = outcome(kind, &case.name, truth, e);
            if std::env::args().any(|arg| arg == "--cases") {
                let [points, own, nominal] = outcome.points;
                println!(
                    "{:28} {:12} {:38} {:7.3}%: {points:+7.3} ± {:.3}, {own:+7.3}, {nominal:+7.3}{}",
                    outcome.case,
                    outcome.policy.name(),
                    kind.name(),
                    100.0 * truth,
                    outcome.bar,
                    if outcome.enough { "" } else { "  few" }
                );
            }
            all.push(outcome);
        }
    }
}

/// Mean and worst of the errors, and the case of the worst.
fn errors<'a>(of: &[&'a Outcome], which: usize) -> (f64, f64, &'a str) {
    let mean = of.iter().map(|o| o.points[which].abs()).sum::<f64>() / of.len().max(1) as f64;
    let worst = of.iter().max_by(|a, b| a.points[which].abs().total_cmp(&b.points[which].abs()));
    (mean, worst.map_or(0.0, |o| o.points[which]), worst.map_or("-", |o| &o.case))
}

fn main() {
    let mut all = Vec::new();
    for case in cases() {
        measure(&case, &mut all);
    }
    println!("\nestimates less the truth in percentage points, of cases with {ENOUGH_PAGES} pages of memory or more\n");
    println!("| sample | policy | fd: cases | mean | worst | map: cases | mean | worst | within 2 bars |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for kind in kinds() {
        for policy in RowPolicy::all() {
            let of: Vec<_> = all.iter().filter(|o| o.kind == kind && o.enough && o.policy == policy).collect();
            let by = |via: &str| {
                let of: Vec<_> = of.iter().copied().filter(|o| o.case.contains(via)).collect();
                let (mean, worst, _) = errors(&of, 0);
                if of.is_empty() { "0 | - | -".to_owned() } else { format!("{} | {mean:.2} | {worst:+.2}", of.len()) }
            };
            let inside = of.iter().filter(|o| o.points[0].abs() <= 2.0 * o.bar.max(0.005)).count();
            if !of.is_empty() {
                let share = 100.0 * inside as f64 / of.len() as f64;
                println!("| {} | {} | {} | {} | {share:.0} % |", kind.name(), policy.name(), by(" fd "), by(" map "));
            }
        }
    }
    println!("\n| sample | case | policy | points |\n|---|---|---|---:|");
    for kind in kinds().into_iter().filter(|kind| kind.scaled) {
        let mut of: Vec<_> = all.iter().filter(|o| o.kind == kind && o.enough).collect();
        of.sort_by(|a, b| b.points[0].abs().total_cmp(&a.points[0].abs()));
        for o in of.iter().take(5) {
            println!("| {} | {} | {} | {:+.2} ± {:.2} |", kind.name(), o.case, o.policy.name(), o.points[0], o.bar);
        }
    }
    println!("\n| sample | estimator | cases | mean | worst |\n|---|---|---:|---:|---:|");
    for kind in kinds().into_iter().filter(|kind| kind.scaled) {
        let of: Vec<_> = all.iter().filter(|o| o.kind == kind && o.enough).collect();
        for (which, name) in ["misses by pages", "the sample's own accesses", "misses by the rate"].iter().enumerate() {
            let (mean, worst, _) = errors(&of, which);
            if !of.is_empty() {
                println!("| {} | {name} | {} | {mean:.2} | {worst:+.2} |", kind.name(), of.len());
            }
        }
    }
}
