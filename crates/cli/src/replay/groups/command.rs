//! `refault replay --memcg-column`, from its flags to its output.

use super::text;
use crate::flags;
use crate::given::{GivenFlags, GivenSettings};
use crate::replay::acts::refuse_idle_of;
use crate::replay::args::ReplayArgs;
use crate::replay::check::check;
use crate::replay::clocked::Clocked;
use crate::replay::command::{OF_ROWS, OF_RULES, json_of_lines, page_notes, write, write_page};
use crate::replay::policy::RowPolicy;
use crate::replay::rules;
use crate::{Failure, print};
use refault::document::Document;
use refault::document::replay::ReplayDocument;
use refault::replay::groups::{GroupPlan, GroupedRow, load};
use refault_mm::Config;
use refault_trace::{AtomicFile, LoadOptions};
use std::path::Path;

/// Flags of traces that have no meaning with groups, and what there is instead.
const NOT_HERE: [(&str, &str); 6] = [
    ("swap-map", "leave --memcg-column out"),
    ("curve", "`refault size` draws the curve of a group"),
    ("windows", "it is of one hit rate, and here are several"),
    ("miss-bits", "leave --memcg-column out"),
    ("metrics", "--json has all of it"),
    ("lru-gen", "--vmstat has the sizes of every group"),
];

/// Replays every trace.
pub(in crate::replay) fn run(
    args: &ReplayArgs,
    given: &GivenFlags,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(), Failure> {
    given.refuse(&NOT_HERE, "--memcg-column")?;
    let policies = linux(policies, given)?;
    check(args)?;
    for path in [&args.output.output, &args.output.html].into_iter().flatten() {
        drop(AtomicFile::create(path)?);
    }
    let mut rows = Vec::new();
    for path in &args.traces {
        rows.push(replay(args, given, path, &policies)?);
    }
    let kernel = (args.kernel.unwrap_or_default(), false);
    let rules = rules::line(kernel, policies.iter().copied());
    let settings = given.settings(&OF_ROWS);
    let text = render(args, &rows, &settings, &(rules + &settings.line(&OF_RULES)))?;
    let document = || ReplayDocument::of_groups(&rows.concat(), page_notes(args, &settings));
    write_page(args, || Document::Replay(Box::new(document())))?;
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

/// The policies that the engine runs; OPT only by default, or by `all`, is left out.
fn linux<'a>(
    policies: &'a [(RowPolicy, Option<Config>)],
    given: &GivenFlags,
) -> Result<Vec<(RowPolicy, &'a Config)>, Failure> {
    let every = policies.len() == RowPolicy::all().count();
    let named = given.has("policy") && !every;
    if named && policies.iter().any(|(policy, _)| *policy == RowPolicy::Opt) {
        return Err("--policy opt: knows no groups; leave it out with --memcg-column".into());
    }
    Ok(policies.iter().filter_map(|(policy, cfg)| Some((*policy, cfg.as_ref()?))).collect())
}

fn replay(
    args: &ReplayArgs,
    given: &GivenFlags,
    path: &Path,
    policies: &[(RowPolicy, &Config)],
) -> Result<Vec<GroupedRow>, Failure> {
    let options =
        LoadOptions { default_via: args.via.into(), max_accesses: args.max_accesses, ..LoadOptions::default() };
    let source = Clocked::new(args.input.open(path)?, args.max_accesses, &args.watch);
    let (trace, tree, page_size) = load(source, &options)?;
    let Some(mut tree) = tree else {
        let what =
            "says nothing of memory cgroups; the native format has a column for them (docs/reference/formats.md)";
        return Err(format!("{}: {what}", path.display()).into());
    };
    refuse_idle_of(args, given, &trace, path)?;
    let footprint = u64::from(trace.footprint_pages());
    if let Some(file) = &args.groups.memcg_limits {
        tree = tree.with_limits(file, page_size, footprint)?;
    }
    let own = args.memory.is_empty() && tree.is_limited();
    let sizes = match own {
        // The file says the limits: nothing else has one.
        true => vec![u64::MAX],
        false => args.request().sizes(&trace.name, page_size, footprint)?,
    };
    let plan = GroupPlan {
        trace: &trace,
        tree: &tree,
        page_size,
        sizes,
        policies,
        swap_max_pages: args.swap_max.pages(page_size, footprint),
        kernel: args.kernel.unwrap_or_default(),
        seed: args.seed,
        threads: flags::threads(args.threads),
        watch: args.watch.clone(),
    };
    plan.run().map_err(|e| format!("{}: {e}", path.display()).into())
}

/// The output as it was asked for; `rules` are lines of rules and settings that are not the default
/// ones.
fn render(
    args: &ReplayArgs,
    traces: &[Vec<GroupedRow>],
    settings: &GivenSettings,
    rules: &str,
) -> Result<String, Failure> {
    let out = &args.output;
    let all = || traces.iter().flatten().cloned().collect::<Vec<_>>();
    if out.json {
        return json_of_lines("rows", &all(), settings, &args.input.notes());
    }
    if out.csv {
        return Ok(text::csv(&all(), settings, out.vmstat));
    }
    let mut shown = String::new();
    for rows in traces {
        shown += if shown.is_empty() { "" } else { "\n" };
        shown += &text::table(rows, rules);
        if out.vmstat {
            shown.extend(rows.iter().map(text::vmstat));
        }
    }
    Ok(shown)
}
