//! A table of Arrow as columns, batch by batch, as its producer hands it out.

use crate::source::{Columns, Rows, Wrong};
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Schema};

/// The columns that are read, all but the first if they are there.
const NAMES: [&str; 7] = ["page", "pages", "write", "op", "object", "task", "time_ns"];

/// A stream of batches.
pub(crate) struct Batches {
    reader: Box<dyn RecordBatchReader + Send>,
    row: u64,
}

impl Batches {
    /// An error if there is no column of pages, or one of another type.
    pub(crate) fn new(reader: Box<dyn RecordBatchReader + Send>) -> Result<Batches, String> {
        check(&reader.schema())?;
        Ok(Batches { reader, row: 0 })
    }

    /// Whether it has a column.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.reader.schema().column_with_name(name).is_some()
    }
}

fn check(schema: &Schema) -> Result<(), String> {
    if schema.column_with_name("page").is_none() {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(format!("the table has no column page; it has {}", names.join(", ")));
    }
    for name in NAMES {
        let Some((_, field)) = schema.column_with_name(name) else { continue };
        let whole = field.data_type().is_integer() || (name == "write" && field.data_type() == &DataType::Boolean);
        if !whole {
            return Err(format!("column {name} is of type {}, not of whole numbers", field.data_type()));
        }
    }
    Ok(())
}

fn copy<T: ArrowPrimitiveType>(column: &dyn Array, out: &mut Vec<u64>) -> Option<Result<(), Wrong>>
where
    T::Native: TryInto<u64> + std::fmt::Display,
{
    let column = column.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    for (at, &value) in column.values().iter().enumerate() {
        match value.try_into() {
            Ok(value) => out.push(value),
            Err(_) => return Some(Err((at as u64, format!("{value} is negative")))),
        }
    }
    Some(Ok(()))
}

fn read(column: &dyn Array, out: &mut Vec<u64>) -> Result<(), Wrong> {
    if let Some(at) = (column.null_count() > 0).then(|| (0..column.len()).find(|&at| column.is_null(at))).flatten() {
        return Err((at as u64, "is null".into()));
    }
    if let Some(flags) = column.as_any().downcast_ref::<BooleanArray>() {
        out.extend((0..flags.len()).map(|at| u64::from(flags.value(at))));
        return Ok(());
    }
    copy::<UInt64Type>(column, out)
        .or_else(|| copy::<Int64Type>(column, out))
        .or_else(|| copy::<UInt32Type>(column, out))
        .or_else(|| copy::<Int32Type>(column, out))
        .or_else(|| copy::<UInt16Type>(column, out))
        .or_else(|| copy::<Int16Type>(column, out))
        .or_else(|| copy::<UInt8Type>(column, out))
        .or_else(|| copy::<Int8Type>(column, out))
        .unwrap_or_else(|| Err((0, format!("is of type {}", column.data_type()))))
}

impl Batches {
    fn fill(&self, batch: &RecordBatch, rows: &mut Rows) -> Result<(), Wrong> {
        let columns = [
            &mut rows.page,
            &mut rows.pages,
            &mut rows.write,
            &mut rows.op,
            &mut rows.object,
            &mut rows.task,
            &mut rows.time_ns,
        ];
        for (name, out) in NAMES.into_iter().zip(columns) {
            let Some(column) = batch.column_by_name(name) else { continue };
            read(column, out).map_err(|(at, what)| (self.row + at, format!("{name}: {what}")))?;
        }
        Ok(())
    }
}

impl Columns for Batches {
    fn next(&mut self, rows: &mut Rows) -> Result<(), Wrong> {
        // A batch may be empty, and is not the end.
        while rows.page.is_empty() {
            let Some(batch) = self.reader.next() else { return Ok(()) };
            let batch = batch.map_err(|e| (self.row, e.to_string()))?;
            self.fill(&batch, rows)?;
            self.row += batch.num_rows() as u64;
        }
        Ok(())
    }
}
