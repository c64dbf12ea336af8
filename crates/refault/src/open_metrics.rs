//! Numbers as OpenMetrics text, which Prometheus and its node exporter's textfile collector read.
//!
//! `replay`, `record`, `watch` and `run` write it, `top` reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Type of a metric, as in OpenMetrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows; its samples end in `_total`.
    Counter,
    /// A size.
    Gauge,
}

/// All metrics, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    families: Vec<Family>,
}

#[derive(Clone, Debug)]
struct Family {
    name: String,
    kind: MetricKind,
    help: String,
    samples: Vec<(String, f64)>,
}

impl Metrics {
    /// Adds a sample of `refault_NAME`; samples of a name may come in any order.
    pub fn add(&mut self, kind: MetricKind, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name = format!("refault_{}", name.chars().map(plain).collect::<String>());
        let labels =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",");
        let sample = (if labels.is_empty() { labels } else { format!("{{{labels}}}") }, value);
        match self.families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family { name, kind, help: help.into(), samples: vec![sample] }),
        }
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for family in &self.families {
            let (kind, end) = match family.kind {
                MetricKind::Counter => ("counter", "_total"),
                MetricKind::Gauge => ("gauge", ""),
            };
            let _ = writeln!(out, "# TYPE {} {kind}", family.name);
            if let Some(unit) =
                ["bytes", "seconds", "ratio"].into_iter().find(|unit| family.name.ends_with(&format!("_{unit}")))
            {
                let _ = writeln!(out, "# UNIT {} {unit}", family.name);
            }
            let _ = writeln!(out, "# HELP {} {}", family.name, escaped(&family.help));
            for (labels, value) in &family.samples {
                let _ = writeln!(out, "{}{end}{labels} {value}", family.name);
            }
        }
        out + "# EOF\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The samples of a text that [`Metrics`] wrote: by name and labels, as they stand there.
pub fn parse(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| line.rsplit_once(' ').and_then(|(name, n)| Some((name.to_owned(), n.parse().ok()?))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_name_stand_together() {
        let mut all = Metrics::default();
        all.add(MetricKind::Counter, "x", "what", &[("trace", "a\"b\\\n")], 1.0);
        all.add(MetricKind::Gauge, "memory_bytes", "", &[], 2.5);
        all.add(MetricKind::Counter, "x", "what", &[("trace", "c")], 3.0);
        let text = all.text();
        assert_eq!(
            text,
            "# TYPE refault_x counter\n# HELP refault_x what\nrefault_x_total{trace=\"a\\\"b\\\\\\n\"} 1\nrefault_x_total{trace=\"c\"} 3\n\
             # TYPE refault_memory_bytes gauge\n# UNIT refault_memory_bytes bytes\n# HELP refault_memory_bytes \n\
             refault_memory_bytes 2.5\n# EOF\n"
        );
        assert_eq!(parse(&text)["refault_memory_bytes"], 2.5);
    }
}
