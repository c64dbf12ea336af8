//! Arrays of numpy as columns: read where they are, in pieces, under the interpreter's lock.

use crate::source::{Columns, ROWS, Rows, Wrong};
use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Arrays by the names of their columns.
pub(crate) struct Arrays {
    arrays: Vec<(&'static str, Py<PyAny>)>,
    len: usize,
    at: usize,
}

const NAMES: [&str; 5] = ["page", "write", "object", "task", "time_ns"];

impl Arrays {
    /// In the order page, write, object, task, time; the Python code has looked at their shapes.
    pub(crate) fn new(given: [Option<Bound<'_, PyAny>>; 5]) -> PyResult<Arrays> {
        let mut len = 0;
        let mut arrays = Vec::new();
        for (name, array) in NAMES.into_iter().zip(given).filter_map(|(name, array)| Some((name, array?))) {
            let Some(n) = length(&array) else {
                return Err(PyTypeError::new_err(format!("{name}: is no array of whole numbers in one dimension")));
            };
            len = if name == "page" { n } else { len };
            arrays.push((name, array.unbind()));
        }
        Ok(Arrays { arrays, len, at: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Calls a macro with each type of whole numbers.
macro_rules! with_each {
    ($each:ident) => {
        $each! { u64, i64, u32, i32, u16, i16, u8, i8, bool }
    };
}

fn length(array: &Bound<'_, PyAny>) -> Option<usize> {
    macro_rules! of {
        ($($type:ty),*) => {$(
            if let Ok(array) = array.cast::<PyArray1<$type>>() {
                return Some(array.len());
            }
        )*};
    }
    with_each!(of);
    None
}

/// A whole number of any type.
trait Whole: Element + Copy {
    fn whole(self) -> i128;
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Whole for $type {
            #[inline]
            fn whole(self) -> i128 {
                self as i128
            }
        }
    )*};
}
with_each!(whole);

/// Appends the next rows of an array; `Err` is a row that is not allowed, and what is wrong.
fn copy<T: Whole>(
    array: &Bound<'_, PyArray1<T>>,
    rows: std::ops::Range<usize>,
    out: &mut Vec<u64>,
) -> Result<(), Wrong> {
    let from = rows.start as u64;
    let array = array.try_readonly().map_err(|e| (from, format!("the array is in use: {e}")))?;
    let view = array.as_array();
    if view.len() < rows.end {
        return Err((from, format!("the array has changed: it has {} rows now", view.len())));
    }
    for at in rows {
        let value = view[at].whole();
        out.push(u64::try_from(value).map_err(|_| (at as u64, format!("{value} is negative")))?);
    }
    Ok(())
}

fn read(array: &Bound<'_, PyAny>, rows: std::ops::Range<usize>, out: &mut Vec<u64>) -> Result<(), Wrong> {
    macro_rules! of {
        ($($type:ty),*) => {$(
            if let Ok(array) = array.cast::<PyArray1<$type>>() {
                return copy(array, rows, out);
            }
        )*};
    }
    with_each!(of);
    Err((rows.start as u64, "the array has changed its type or shape".into()))
}

impl Columns for Arrays {
    fn next(&mut self, rows: &mut Rows) -> Result<(), Wrong> {
        let range = self.at..(self.at + ROWS).min(self.len);
        self.at = range.end;
        if range.is_empty() {
            return Ok(());
        }
        Python::attach(|py| {
            for (name, array) in &self.arrays {
                let out = match *name {
                    "page" => &mut rows.page,
                    "write" => &mut rows.write,
                    "object" => &mut rows.object,
                    "task" => &mut rows.task,
                    _ => &mut rows.time_ns,
                };
                read(array.bind(py), range.clone(), out).map_err(|(row, what)| (row, format!("{name}: {what}")))?;
            }
            Ok(())
        })
    }
}
