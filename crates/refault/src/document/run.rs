//! Output of `refault run --json`.

use crate::names::shown;
use crate::units::Unit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A program that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunDocument {
    /// The version of refault.
    pub refault: String,
    /// The program and its arguments.
    pub command: String,
    /// All figures, by their names.
    pub figures: BTreeMap<String, f64>,
    /// The ending, in words.
    pub ending: String,
}

pub(super) fn read(value: Value) -> Result<RunDocument, serde_json::Error> {
    let all: BTreeMap<String, Value> = serde_json::from_value(value)?;
    let text = |key: &str| all.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let words = all.get("command").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let number = |key: &str| all.get(key).and_then(Value::as_i64);
    let ending = match (number("exit_status"), number("signal")) {
        (Some(status), _) => format!("exit status {status}"),
        (_, Some(signal)) => format!("ended by signal {signal}"),
        _ => "not ended".to_owned(),
    };
    Ok(RunDocument {
        refault: shown(&text("refault")),
        command: shown(&words.collect::<Vec<_>>().join(" ")),
        ending,
        figures: all.iter().filter_map(|(key, n)| Some((shown(key), n.as_f64()?))).take(200).collect(),
    })
}

impl RunDocument {
    /// Unit of a figure, by its name.
    pub fn unit(name: &str) -> Unit {
        match name {
            n if n.ends_with("_bytes") => Unit::Bytes,
            n if n.ends_with("_s") => Unit::Seconds,
            n if n.ends_with("_share") => Unit::Number,
            _ => Unit::Count,
        }
    }

    /// A figure, or 0.
    pub fn get(&self, key: &str) -> f64 {
        self.figures.get(key).copied().unwrap_or(0.0)
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        format!("refault run of: {}; {}, refault {}", self.command, self.ending, self.refault)
    }
}
