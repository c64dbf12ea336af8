//! Objects and tasks that a text names: numbers in the order of their first lines.

use crate::record::{Header, MAX_OBJECTS, ObjectInfo, ObjectKind};
use std::collections::HashMap;

/// Longest name of an object or a task, in bytes.
const MAX_NAME: usize = 4096;

/// Numbers of the objects of a header, by name.
#[derive(Debug, Default)]
pub(crate) struct ObjectNames(HashMap<Vec<u8>, u32>);

impl ObjectNames {
    /// The number of an object, which is added to the header when it is new.
    pub(crate) fn number(&mut self, name: &[u8], kind: ObjectKind, header: &mut Header) -> Result<u32, String> {
        if let Some(number) = self.0.get(name) {
            return Ok(*number);
        }
        checked(name, "object")?;
        let number = header.objects.len() as u32;
        if number >= MAX_OBJECTS {
            return Err(format!("more than {MAX_OBJECTS} objects"));
        }
        header.objects.push(ObjectInfo::new(String::from_utf8_lossy(name).into_owned(), kind));
        self.0.insert(name.to_owned(), number);
        Ok(number)
    }
}

/// Numbers of tasks, by name.
#[derive(Debug, Default)]
pub(crate) struct TaskNames(HashMap<Vec<u8>, u32>);

impl TaskNames {
    /// The number of a task.
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        if let Some(number) = self.0.get(name) {
            return Ok(*number);
        }
        checked(name, "task")?;
        let number = self.0.len() as u32;
        if number >= MAX_OBJECTS {
            return Err(format!("more than {MAX_OBJECTS} tasks"));
        }
        self.0.insert(name.to_owned(), number);
        Ok(number)
    }
}

fn checked(name: &[u8], what: &str) -> Result<(), String> {
    match name.len() {
        0 => Err(format!("{what} is empty")),
        1..=MAX_NAME => Ok(()),
        _ => Err(format!("{what} is longer than {MAX_NAME} bytes")),
    }
}

/// Times from the first one on, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Clock(Option<u64>);

impl Clock {
    /// Nanoseconds since the first time; one before it is at 0.
    pub(crate) fn since_first(&mut self, ns: u64) -> u64 {
        ns.saturating_sub(*self.0.get_or_insert(ns))
    }
}
