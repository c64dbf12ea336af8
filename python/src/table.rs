//! Rows as a table of Arrow: a column for each field, of the type that its values have.

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use refault_cli::replay::columns as columns_of;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Columns of whole numbers, also where every row has none.
const WHOLE: [&str; 1] = ["oom_at"];

/// A table, and the values of each column as JSON, for who has no library of Arrow.
pub(crate) type Both = (PyTable, Vec<(String, String)>);

/// A table of JSON objects, which may differ in their fields: what a row lacks is null. A list of
/// numbers is a list, any other object or list is JSON in a text.
pub(crate) fn of_rows(rows: &[String]) -> PyResult<Both> {
    let wrong = |e: serde_json::Error| PyValueError::new_err(format!("a row is no JSON object: {e}"));
    let mut names: Vec<String> = Vec::new();
    let mut columns: HashMap<String, Vec<Value>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let row: Map<String, Value> = serde_json::from_str(row).map_err(wrong)?;
        for (name, value) in columns_of(row) {
            let column = columns.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                Vec::new()
            });
            column.resize(at, Value::Null);
            column.push(value);
        }
    }
    let arrays = names.iter().map(|name| {
        let mut values = columns.remove(name).unwrap_or_default();
        values.resize(rows.len(), Value::Null);
        (name.clone(), array(name, &values), Value::from(values).to_string())
    });
    table(arrays.collect())
}

fn array(name: &str, values: &[Value]) -> ArrayRef {
    let there = || values.iter().filter(|value| !value.is_null());
    let all = |is: fn(&Value) -> bool| there().all(is);
    let numbers = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_u64));
    if there().next().is_none() && !WHOLE.contains(&name) {
        return Arc::new(StringArray::from(vec![None::<&str>; values.len()]));
    }
    match () {
        () if all(Value::is_u64) => Arc::new(values.iter().map(Value::as_u64).collect::<UInt64Array>()),
        () if all(Value::is_i64) => Arc::new(values.iter().map(Value::as_i64).collect::<Int64Array>()),
        () if all(Value::is_number) => Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>()),
        () if all(Value::is_boolean) => Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>()),
        () if all(Value::is_string) => Arc::new(values.iter().map(Value::as_str).collect::<StringArray>()),
        () if there().all(numbers) => {
            let mut lists = ListBuilder::new(UInt64Builder::new());
            for value in values {
                let list = value.as_array();
                list.into_iter().flatten().for_each(|n| lists.values().append_option(n.as_u64()));
                lists.append(list.is_some());
            }
            Arc::new(lists.finish())
        }
        () => {
            let text = |value: &Value| (!value.is_null()).then(|| value.to_string());
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
    }
}

/// A table of columns of numbers.
pub(crate) fn of_csv(text: &str) -> PyResult<Both> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut columns: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    for line in lines {
        columns.iter_mut().zip(line.split(',')).for_each(|(column, cell)| column.push(cell));
    }
    let column = |cells: &Vec<&str>| -> ArrayRef {
        let whole: Option<Vec<u64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
        match whole {
            Some(whole) => Arc::new(UInt64Array::from(whole)),
            None => Arc::new(cells.iter().map(|cell| cell.parse().ok()).collect::<Float64Array>()),
        }
    };
    let json = |cells: &Vec<&str>| {
        let number = |cell: &&str| {
            if cell.parse::<f64>().is_ok_and(f64::is_finite) { (*cell).to_owned() } else { "null".into() }
        };
        format!("[{}]", cells.iter().map(number).collect::<Vec<_>>().join(","))
    };
    table(names.iter().zip(&columns).map(|(name, cells)| ((*name).to_owned(), column(cells), json(cells))).collect())
}

fn table(columns: Vec<(String, ArrayRef, String)>) -> PyResult<Both> {
    let field = |(name, array, _): &(String, ArrayRef, String)| Field::new(name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let (mut arrays, mut texts) = (Vec::new(), Vec::new());
    for (name, array, text) in columns {
        arrays.push(array);
        texts.push((name, text));
    }
    let batches = match arrays.is_empty() {
        true => Vec::new(),
        false => {
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
            vec![batch.map_err(|e| PyValueError::new_err(e.to_string()))?]
        }
    };
    Ok((PyTable::try_new(batches, schema)?, texts))
}
