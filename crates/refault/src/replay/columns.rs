//! A row of results as the columns of a table: what stands in an object of its own is a column of
//! its own.

use serde_json::{Map, Value};

/// Objects of a row whose fields become columns, and the prefix of these columns' names.
const FLAT: [(&str, &str); 5] = [
    ("counters", ""),
    ("gauges", ""),
    ("memory.events", "memory.events."),
    ("memory.swap.events", "memory.swap.events."),
    ("mthp", "mthp."),
];

/// Prefix of a counter or a size whose name means something else in a row: `kernel` in
/// `memory.stat` is memory, not the name of a kernel.
const APART: &str = "memory.stat.";

/// The fields of a row as columns: each name once.
pub fn columns(row: Map<String, Value>) -> Vec<(String, Value)> {
    let own: Vec<String> = row.keys().cloned().collect();
    let mut all = Vec::new();
    for (name, value) in row {
        let begin = FLAT.iter().find(|(flat, _)| *flat == name).map(|(_, begin)| begin);
        match (begin, value) {
            (Some(begin), Value::Object(fields)) => all.extend(fields.into_iter().map(|(field, value)| {
                let column = format!("{begin}{field}");
                let is_taken = own.contains(&column);
                (if is_taken { format!("{APART}{column}") } else { column }, value)
            })),
            (_, value) => all.push((name, value)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::columns;
    use crate::replay::row::{EngineFigures, Row};
    use refault_mm::{Config, Engine, Kernel, MemcgId, Policy, SizeCounter, SizeStats, ThpConfig};
    use serde_json::{Map, Value};

    /// A row with every counter, size and event that there is.
    fn row() -> Row {
        let config = Config::new(Policy::Mglru);
        let engine = Engine::new(config.clone()).expect("an engine");
        let events = engine.memcg_events(MemcgId::ROOT);
        let inside = EngineFigures {
            counters: engine.vmstat(),
            gauges: engine.memcg_gauges(MemcgId::ROOT),
            sizes: SizeStats::default(),
            lru_gen: Some(String::new()),
            events: events.iter().collect(),
            swap_events: events.swap_iter().collect(),
            swap: Vec::new(),
            swap_map: false,
            kernel: Kernel::default(),
            config,
        };
        Row {
            trace: "t".to_owned(),
            policy: super::super::policy::RowPolicy::Linux(Policy::Mglru),
            plug_in: None,
            memory_pages: 1,
            memory_bytes: 4096,
            page_size: 4096,
            footprint_pages: 1,
            trace_accesses: 1,
            seed: 1,
            accesses: 1,
            misses: 1,
            sampling_error: None,
            reads: Some(super::super::row::DiskReads::default()),
            oom_at: None,
            seconds: 1.0,
            window_misses: Some(vec![1]),
            swap: None,
            inside: Some(inside),
        }
    }

    fn fields() -> Map<String, Value> {
        let Value::Object(mut fields) = serde_json::to_value(row()).expect("JSON") else { panic!("an object") };
        let orders = ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER;
        let sizes = orders.flat_map(|o| SizeCounter::ALL.iter().map(move |c| format!("{}kB.{}", 4u32 << o, c.name())));
        fields.insert("mthp".to_owned(), Value::Object(sizes.map(|name| (name, 0.into())).collect()));
        fields
    }

    fn twice<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// The kernel's name was replaced by how much memory the kernel has.
    #[test]
    fn regression_the_kernel_of_a_row_is_its_name() {
        let columns = columns(fields());
        let get = |name: &str| columns.iter().find(|(column, _)| column == name).map(|(_, value)| value);
        assert_eq!(get("kernel"), Some(&Value::from(Kernel::default().name())));
        assert!(get("memory.stat.kernel").is_some_and(Value::is_u64));
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let fields = fields();
        assert_eq!(fields["counters"].as_object().map(Map::len), Some(refault_mm::Counter::ALL.len()));
        let columns = columns(fields);
        assert_eq!(twice(columns.iter().map(|(name, _)| name.as_str())), Vec::<&str>::new());
    }
}
